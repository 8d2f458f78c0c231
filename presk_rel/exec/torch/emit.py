"""Tier `emit`: one straight-line Python function of torch calls from the flat PSK-Core of an entry.

`%3 : ℝ[batch: B, 16] = dot x, w` becomes `v5 = torch.matmul(v1, v3)`. Trees, tuples and constants exist only while
generating; what runs is calls on tensors. Every name in the source is generated (`v0`, `v1`, …): no text of the
user's program gets
into it, except in comments, which hold the names of bindings and nothing that could end a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from presk_rel.core.ir import Binding, Function, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.elab.ty import (
    Hyper,
    ModuleDef,
    Params,
    TupleOf,
    Type,
    field_names,
    field_type,
    map_dims,
)  # fmt: skip
from presk_rel.exec.torch.ops import ROWS, Operand
from presk_rel.smt.linear import Linear, constant


@dataclass(frozen=True, slots=True)
class Single:
    """A tensor (or number, key) of generated code."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Branch:
    """A tree or tuple: its parts by field name, or by position as text."""

    type: Type
    parts: tuple[tuple[str, Node], ...]

    def part(self, name: str) -> Node:
        return dict(self.parts)[name]

    def replaced(self, name: str, node: Node) -> Branch:
        return Branch(self.type, tuple((k, node if k == name else v) for k, v in self.parts))


Node = Single | Branch


@dataclass(frozen=True, slots=True)
class Input:
    """One leaf of the entry's parameters: `parameter` and the path inside it (`l1.w`; empty for a plain tensor)."""

    parameter: str
    path: tuple[str, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Emitted:
    """Generated source of `def entry(inputs, torch, keys, dtype, device)`. `inputs` is a tuple in the order of
    `Emitted.inputs`; `result` says how the returned leaves form the entry's value (each leaf's operand name is its
    index in the returned tuple); `keys` is `exec.keys`. `kernels` counts the calls that move data."""

    source: str
    inputs: tuple[Input, ...]
    result: Node
    kernels: int


@dataclass(slots=True)
class _Emitter:
    modules: dict[str, ModuleDef]
    dims: dict[str, Linear]
    lines: list[str] = field(default_factory=list[str])
    env: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: list[Input] = field(default_factory=list[Input])
    kernels: int = 0
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def at_dims(self, ty: Type) -> Type:
        return map_dims(ty, lambda d: d.substitute(self.dims))

    def parameter(self, name: str, path: tuple[str, ...], ty: Type) -> Node:
        match ty:
            case Params(instance):
                names = field_names(self.modules, instance)
                types = [field_type(self.modules, instance, n) for n in names]
                return Branch(ty, tuple((n, self.parameter(name, (*path, n), t)) for n, t in zip(names, types) if t))
            case TupleOf(items):
                return Branch(
                    ty, tuple((str(i), self.parameter(name, (*path, str(i)), t)) for i, t in enumerate(items))
                )
            case _:
                self.inputs.append(Input(name, path, ty))
                return Single(Operand(self.fresh(), ty))

    def binding(self, b: Binding) -> Node:
        ty = self.at_dims(b.type)
        if not isinstance(b.op, Prim):
            raise PreskBug("torch", f"`{b.name}` is no primitive: the program is not flat")
        args = [self.env[a] for a in b.op.args]
        structural = self.structural(b.op, args, ty)
        return structural if structural is not None else self.tensor(b, ty, args)

    def structural(self, op: Prim, args: list[Node], ty: Type) -> Node | None:
        """Primitives that move no data: resolved here, no code. None for all others."""
        attr = str(op.attrs[0]) if op.attrs else ""
        match op.op, args:
            case "field" | "proj", [Branch() as whole]:
                return whole.part(attr)
            case "set_field" | "set_elem", [Branch() as whole, part]:
                return whole.replaced(attr, part)
            case "tuple", _:
                return Branch(ty, tuple((str(i), a) for i, a in enumerate(args)))
            case "record", _ if isinstance(ty, Params):
                return Branch(ty, tuple(zip(field_names(self.modules, ty.instance), args)))
            case "real", [Single(Operand(name, Hyper(), scalar))]:
                return Single(Operand(name, ty, scalar))
            case "zeros_like" | "ones_like", [Branch() as whole]:
                return self.filled(whole, op.op)
            case "add" | "sub", [Branch() as left, Branch() as right]:
                return self.leafwise(op, left, right)
            case "split_key", [Single(Operand(name))]:
                return self.split(name, int(attr), ty)
            case "mul" | "div", [Single() as scalar, Branch() as tree] | [Branch() as tree, Single() as scalar]:
                return self.scaled(op, tree, scalar, tree_first=args[0] is tree)
            case _:
                return None

    def split(self, key: str, count: int, ty: Type) -> Node:
        assert isinstance(ty, TupleOf)
        name = self.fresh()
        self.lines.append(f"{name} = keys.split({key}, {count})")
        parts = tuple((str(i), Single(Operand(f"{name}[{i}]", t))) for i, t in enumerate(ty.items))
        return Branch(ty, parts)

    def filled(self, node: Node, op: str) -> Node:
        if isinstance(node, Branch):
            return Branch(node.type, tuple((k, self.filled(v, op)) for k, v in node.parts))
        return self.call(op, (), (node.operand,), node.operand.type, op)

    def leafwise(self, op: Prim, left: Node, right: Node) -> Node:
        if isinstance(left, Branch) and isinstance(right, Branch):
            pairs = zip(left.parts, right.parts)
            return Branch(left.type, tuple((k, self.leafwise(op, a, b)) for (k, a), (_, b) in pairs))
        assert isinstance(left, Single)
        assert isinstance(right, Single)
        return self.call(op.op, (), (left.operand, right.operand), left.operand.type, op.op)

    def scaled(self, op: Prim, tree: Node, scalar: Single, *, tree_first: bool) -> Node:
        if isinstance(tree, Branch):
            return Branch(
                tree.type, tuple((k, self.scaled(op, v, scalar, tree_first=tree_first)) for k, v in tree.parts)
            )
        pair = (tree.operand, scalar.operand) if tree_first else (scalar.operand, tree.operand)
        return self.call(op.op, (), pair, tree.operand.type, op.op)

    def tensor(self, b: Binding, ty: Type, args: list[Node]) -> Node:
        assert isinstance(b.op, Prim)
        match b.op:
            case Prim("const", (value,), ()):
                assert isinstance(value, int | Fraction)
                return self.constant(Fraction(value), ty)
            case Prim("dim", (dim,), ()):
                assert isinstance(dim, Linear)
                return self.constant(dim.substitute(self.dims).const, ty)
            case _:
                operands = tuple(a.operand for a in args if isinstance(a, Single))
                if len(operands) != len(args):
                    raise PreskBug("torch", f"`{b.name}`: {b.op.op} of a tree")
                return self.call(b.op.op, b.op.attrs, operands, ty, b.name)

    def constant(self, value: Fraction, ty: Type) -> Node:
        from presk_rel.exec.torch.ops import number

        name = self.fresh()
        self.lines.append(f"{name} = torch.scalar_tensor({number(value)}, dtype=dtype, device=device)")
        return Single(Operand(name, ty, value))

    def call(self, op: str, attrs: tuple[object, ...], args: tuple[Operand, ...], ty: Type, label: str) -> Node:
        row = ROWS.get(op)
        if row is None:
            raise PreskError([Diagnostic("E7101", f"the torch executor does not run `{op}` yet", None)], exit_status=3)
        name = self.fresh()
        expression = row(attrs, args, ty)  # type: ignore[arg-type]
        self.lines.append(f"{name} = {expression}  # {label} : {ty}")
        self.kernels += 0 if PRIMS[op].view else 1
        return Single(Operand(name, ty))


def emit(program: Program, entry: str, dims: dict[str, int]) -> Emitted:
    """Generate the function of `entry`, which must be flat; every dim it mentions must be in `dims`."""
    function = program.functions[entry]
    emitter = _Emitter(program.modules, {k: constant(v) for k, v in dims.items()})
    for p in function.params:
        emitter.env[p.name] = emitter.parameter(p.name, (), emitter.at_dims(p.type))
    count = emitter.count
    for b in function.bindings:
        emitter.env[b.name] = emitter.binding(b)
    returned: list[str] = []
    result = _numbered(emitter.env[function.ret], returned)
    return Emitted(_source(function, count, emitter.lines, returned), tuple(emitter.inputs), result, emitter.kernels)


def _without_unread_constants(lines: list[str], last: str) -> list[str]:
    """A constant that every reader takes as a Python number needs no tensor."""
    read = set(re.findall(r"\bv\d+\b", last))
    for line in lines:
        read.update(re.findall(r"\bv\d+\b", line.split(" = ", 1)[1].split("  # ", 1)[0]))
    return [x for x in lines if " = torch.scalar_tensor(" not in x or x.split(" = ", 1)[0] in read]


def _numbered(node: Node, returned: list[str]) -> Node:
    match node:
        case Single(Operand(name, ty, scalar)):
            returned.append(name)
            return Single(Operand(str(len(returned) - 1), ty, scalar))
        case Branch(ty, parts):
            return Branch(ty, tuple((k, _numbered(v, returned)) for k, v in parts))


def _source(function: Function, count: int, lines: list[str], returned: list[str]) -> str:
    taken = "".join(f"v{i}, " for i in range(count))
    head = [f"({taken}) = inputs"] if count else []
    last = f"return ({''.join(name + ', ' for name in returned)})"
    body = [*head, *_without_unread_constants(lines, last), last]
    title = "".join(c for c in function.name if c.isprintable())
    return f"def entry(inputs, torch, keys, dtype, device):  # {title}\n" + "".join(f"    {line}\n" for line in body)
