"""Tier `emit`: Python functions of torch calls from the flat PSK-Core of an entry.

`%3 : ℝ[batch: B, 16] = dot x, w` becomes `v5 = torch.mm(v1, v3)`. Trees, tuples and constants exist only while
generating; what runs is calls on tensors. A fold is a Python loop over a function generated from its body, or its
iterations one after another. Every name in the source is generated (`v0`, `c1`, `f2`): no text of the user's program
gets into it, except in comments, which hold the names of bindings and nothing that could end a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Attr, Binding, Fold, Function, Op, Prim, Program, Var, operands
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, TupleOf, Type
from presk_rel.exec.shapes import Env, fail, int_of, length
from presk_rel.exec.torch.edges import rounded, widened
from presk_rel.exec.torch.fuse import fused
from presk_rel.exec.torch.host_scalars import host_scalar, tensor_of
from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.library import prepared
from presk_rel.exec.torch.nodes import Branch, Node, Single, built, declared, groups, named, operands_of, with_operands
from presk_rel.exec.torch.operand import Made, Operand, Reader, Step, run_axes
from presk_rel.exec.torch.ops import ROWS
from presk_rel.exec.torch.parts import Body, Loop, body_of, entry_text, file_text, on_host, sliced_stacks
from presk_rel.exec.torch.plan import Plan, plan
from presk_rel.exec.torch.precision import Types, types_of
from presk_rel.exec.torch.structure import hyper, sliced, structural
from presk_rel.exec.torch.trace import Host, counted
from presk_rel.exec.torch.writer import Line, Writer, printable
from presk_rel.smt.linear import Linear

MAX_ITERATIONS = 10**6  # of a fold, whose stacks are tuples of as many slices when it runs


@dataclass(frozen=True, slots=True)
class Input:
    """One leaf of the entry's parameters: `parameter` and the path inside it (`l1.w`; empty for a plain tensor)."""

    parameter: str
    path: tuple[str, ...]
    operand: Operand


@dataclass(frozen=True, slots=True)
class Emitted:
    """A generated file with `def entry(inputs)`, in the parts that `exec.torch.parts` describes: `inputs` is a tuple in
    the order of `Emitted.inputs`, tensors, exact `Fraction`s for hyperparameters and bytes for keys; `result` says how
    the returned tuple forms the entry's value (each leaf's operand name is its index). `kernels` counts the calls per
    run that move data."""

    source: str
    inputs: tuple[Input, ...]
    result: Node
    kernels: int
    env: Env
    trees: tuple[tuple[int, ...], ...]
    """The inputs that are the leaves of one parameter tree."""
    plan: Plan | None
    slices: tuple[int, ...] = ()
    """Of a file for a compiler: of how many tensors each result of `compute` is the stack, which it returns as a tuple
    of these; 0 for a tensor."""


def _read(op: Op) -> Iterator[Var]:
    """The operands whose values are read, not only their shapes: sizes are numbers by now."""
    shape_only = PRIMS[op.op].shape_only if isinstance(op, Prim) else ()
    return (v for i, v in enumerate(operands(op)) if i not in shape_only)


@dataclass(slots=True)
class _Scope:
    """One generated function."""

    env: Env
    uses: Counter[str]
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    lines: list[Line] = field(default_factory=list[Line])
    known: dict[str, str] = field(default_factory=dict[str, str])
    """The name of each expression computed so far."""
    histories: dict[str, str] = field(default_factory=dict[str, str])
    """For a stack that a scan made, the list of its slices."""

    def line(self, writer: Writer, expression: str, label: str = "") -> str:
        return writer.line(self.lines, self.known, expression, printable(label))


@dataclass(slots=True)
class _Emitter:
    program: Program
    unroll: bool
    reader: Reader
    types: Types
    writer: Writer = field(default_factory=Writer)
    bodies: dict[object, Body] = field(default_factory=dict[object, Body])

    # -------------------------------------------------------------------------------------------------- functions

    def scope(self, function: Function, env: Env) -> _Scope:
        uses = Counter(v for b in function.bindings for v in _read(b.op))
        uses[function.ret] += 2  # what is returned is never only a part of something fused
        return _Scope(env, uses)

    def parameters(self, ty: Type, env: Env) -> Node:
        return built(self.program.modules, ty, lambda t, _: Single(self.fresh(t, env)))

    def fresh(self, ty: Type, env: Env) -> Operand:
        return Operand(self.new_name(ty), ty, run_axes(ty, env))

    def new_name(self, ty: Type) -> str:
        return self.marked(self.writer.name(), ty)

    def marked(self, name: str, ty: Type) -> str:
        """The name, known to be of the host where its type is."""
        if isinstance(ty, Key | Hyper):
            self.writer.host.add(name)
        return name

    def bindings(self, s: _Scope, function: Function) -> Node:
        for b in function.bindings:
            made = self.fold(s, b, b.op) if isinstance(b.op, Fold) else self.binding(s, b)
            s.nodes[b.name] = named(made, b.type)
        return s.nodes[function.ret]

    def binding(self, s: _Scope, b: Binding) -> Node:
        if not isinstance(b.op, Prim):
            raise PreskBug("torch", f"`{b.name}` is no primitive: the program is not flat")
        op, args, label = b.op, [s.nodes[a] for a in b.op.args], f"{b.name} : {b.type}"
        if op.op == "split_key":
            return self.split(s, args[0], b.type)

        def call(name: str, attrs: tuple[Attr, ...], given: tuple[Operand, ...], ty: Type) -> Single:
            return Single(self.leaf(s, Prim(name, attrs, ()), given, ty, label))

        found = structural(self.program.modules, op, args, b.type, call)
        if found is not None:
            return found
        leaves = tuple(a.operand for a in args if isinstance(a, Single))
        if len(leaves) != len(args):
            raise PreskBug("torch", f"`{b.name}`: {op.op} of a tree")
        made = self.leaf(s, op, leaves, b.type, label)
        return Single(replace(made, made=Made(op.op, op.attrs, leaves, s.uses[b.name] == 1)))

    def leaf(self, s: _Scope, op: Prim, args: tuple[Operand, ...], ty: Type, label: str) -> Operand:
        """One primitive on tensors, or on hyperparameters."""
        if isinstance(ty, Hyper):
            return self.hyper(s, op, args, ty, label)
        row = ROWS.get(op.op)
        if row is None:
            fail("E7101", f"the torch executor does not run `{op.op}` yet", None, exit_status=3)
        made = host_scalar(op, args, ty, self.writer.numbers)
        if made is not None:
            return self.host_number(s, made, ty, label)

        def line(text: str) -> str:
            return s.line(self.writer, text, label)

        step = Step(op.op, op.attrs, args, ty, s.env, line, self.types, s.known, self.reader)
        result = sliced(step) or fused(step) or row(step)
        if isinstance(result, Operand):
            return result
        return Operand(step.line(result), ty, run_axes(ty, s.env))

    def host_number(self, s: _Scope, expression: str, ty: Type, label: str) -> Operand:
        """A number of the host's, and the tensor of it, which goes where only the number is read."""
        made = s.line(self.writer, expression, label)
        self.writer.host.add(made)
        name = s.line(self.writer, tensor_of(made))
        self.writer.numbers[name] = made
        return Operand(name, ty)

    def hyper(self, s: _Scope, op: Prim, args: tuple[Operand, ...], ty: Hyper, label: str) -> Operand:
        def dim(form: Linear) -> int:
            signed = ty.kind == "int"
            return int_of(form, s.env, label) if signed else length(form, s.env, label)

        found = hyper(op, args, ty, dim)
        if isinstance(found, str):
            return Operand(self.marked(s.line(self.writer, found, label), ty), ty)
        return Operand(self.writer.constant(f"Fraction({found.numerator}, {found.denominator})"), ty, scalar=found)

    def split(self, s: _Scope, key: Node, ty: Type) -> Node:
        if not isinstance(ty, TupleOf) or not isinstance(key, Single):
            raise PreskBug("torch", f"a key splits to {ty}")
        name = self.marked(s.line(self.writer, f"support.Split({key.operand.name}, {len(ty.items)})"), key.operand.type)
        return Branch(ty, tuple((str(i), Single(Operand(f"{name}[{i}]", t))) for i, t in enumerate(ty.items)))

    # ------------------------------------------------------------------------------------------------------ folds

    def fold(self, s: _Scope, b: Binding, op: Fold) -> Node:
        total = length(op.count, s.env, f"`{b.name}`")
        if total > MAX_ITERATIONS:
            fail("E7006", f"a fold of {total:,} iterations, in `{b.name}`: torch runs 10^6", b.span, exit_status=3)
        body = self.program.functions[op.body]
        dims = {d: int_of(form, s.env, op.body) for d, form in op.dim_args}
        env = Env(dims, s.env.prefixes)
        stacked = [self.unbound(s, s.nodes[v]) for v in op.stacked]
        extras = [s.nodes[v] for v in op.extras]
        order = range(total - 1, -1, -1) if op.reverse else range(total)
        if self.unroll:
            return self.unrolled(s, b, op, body, env, order, stacked, extras)
        return self.loop(s, b, op, body, env, order, stacked, extras)

    def unbound(self, s: _Scope, node: Node) -> Node:
        """A stack as a tuple of its slices."""

        def slices(x: Operand) -> Operand:
            if isinstance(x.type, Key):
                return x
            history = s.histories.get(x.name)
            return replace(x, name=history or s.line(self.writer, f"torch.unbind({x.name})"))

        return with_operands(node, iter([slices(x) for x in operands_of(node)]))

    def unrolled(
        self,
        s: _Scope,
        b: Binding,
        op: Fold,
        body: Function,
        env: Env,
        order: range,
        stacked: list[Node],
        extras: list[Node],
    ) -> Node:
        acc = s.nodes[op.acc]
        history: dict[int, Node] = {}
        count = len(stacked)
        for i in order:
            history[i] = acc
            inner = self.scope(body, env)
            inner.lines, inner.known, inner.histories = s.lines, s.known, s.histories
            slices = [_slice(x, p.type, env, str(i)) for x, p in zip(stacked, body.params)]
            given = (*slices, acc, *extras)
            inner.nodes = {
                p.name: _typed(n, self.parameters(p.type, env)) for p, n in zip(body.params, given, strict=True)
            }
            acc = self.bindings(inner, body)
        acc = _typed(acc, self.parameters(body.params[count].type, env))
        if not op.scan:
            return _typed(acc, self.parameters(b.type, s.env))
        lists = [f"({''.join(x.name + ', ' for x in row)})" for row in self.rows(acc, history)]
        return self.scanned(s, b, acc, lists, len(order))

    def rows(self, acc: Node, history: dict[int, Node]) -> Iterator[list[Operand]]:
        """The history of each leaf of the accumulator."""
        columns = [list(operands_of(history[i])) for i in sorted(history)]
        for k in range(len(list(operands_of(acc)))):
            yield [column[k] for column in columns]

    def loop(
        self,
        s: _Scope,
        b: Binding,
        op: Fold,
        body: Function,
        env: Env,
        order: range,
        stacked: list[Node],
        extras: list[Node],
    ) -> Node:
        fixed = tuple(_fixed(n) for n in extras)
        function = self.body(body, env, len(stacked) + 1, fixed)
        start = list(operands_of(s.nodes[op.acc]))
        count = len(stacked)
        shape = self.parameters(body.params[count].type, env)
        leaves = [replace(x, name=self.new_name(x.type)) for x in operands_of(shape)]
        histories = [self.new_name(x.type) for x in leaves] if op.scan else []
        taken = [replace(x, name=f"{x.name}[{{}}]") for n in stacked for x in operands_of(n)]
        taken += [*leaves, *(x for n, f in zip(extras, fixed) if f is None for x in operands_of(n))]
        made = [self.writer.name() for _ in range(function.handed)]
        for host in (True, False):
            chosen = [k for k, x in enumerate(leaves) if on_host(x) == host]
            given = [x.name for x in taken if on_host(x) == host]
            loop = Loop(
                order,
                function.host if host else function.name,
                tuple((leaves[k].name, start[k].name, histories[k] if op.scan else None) for k in chosen),
                tuple(given if host else [*given, *(f"{n}[{{}}]" for n in made)]),
                tuple(made if host else ()),
                0 if host else function.kernels,
            )
            if loop.targets:
                s.lines.append(loop.line(self.writer.name(), printable(f"{b.name} : {b.type}"), host=host))
        final = with_operands(shape, iter(leaves))
        if not op.scan:
            return _typed(final, self.parameters(b.type, s.env))
        return self.scanned(s, b, final, histories, len(order))

    def scanned(self, s: _Scope, b: Binding, acc: Node, lists: list[str], total: int) -> Node:
        """The pair of the last accumulator and the stack of those before each iteration."""
        if not isinstance(b.type, TupleOf):
            raise PreskBug("torch", f"a scan of type {b.type}")
        template = self.parameters(b.type, s.env)
        assert isinstance(template, Branch)
        leaves = list(operands_of(template.part("1")))
        stacks: list[Operand] = []
        for x, before, leaf in zip(operands_of(acc), lists, leaves, strict=True):
            if isinstance(x.type, Key):
                text = f"tuple({before})"
            elif total:
                text = f"torch.stack({before})"
            else:
                text = f"torch.empty({leaf.sizes}, dtype={x.name}.dtype, device=device)"
            name = self.marked(s.line(self.writer, text), x.type)
            s.histories[name] = before
            stacks.append(replace(leaf, name=name))
        first = _typed(acc, template.part("0"))
        return Branch(b.type, (("0", first), ("1", with_operands(template.part("1"), iter(stacks)))))

    def body(self, body: Function, env: Env, first: int, fixed: tuple[Operand | None, ...]) -> Body:
        """The generated functions of a fold's body. Of the parameters from `first` on, those that are constants of the
        file are no parameters of them."""
        key = (body.name, tuple(sorted(env.dims.items())), tuple(f and f.name for f in fixed))
        if key not in self.bodies:
            s = self.scope(body, env)
            s.nodes = {p.name: self.parameters(p.type, env) for p in body.params}
            constant = {p.name: f for p, f in zip(body.params[first:], fixed, strict=True) if f is not None}
            taken = [x for p in body.params if p.name not in constant for x in operands_of(s.nodes[p.name])]
            for name, f in constant.items():
                s.nodes[name] = Single(f)
            result = list(operands_of(self.bindings(s, body)))
            self.bodies[key] = body_of(self.writer, s.lines, taken, result)
        return self.bodies[key]


def _fixed(node: Node) -> Operand | None:
    """The operand, where it is a constant of the file."""
    return node.operand if isinstance(node, Single) and re.fullmatch(r"c\d+", node.operand.name) else None


def _typed(node: Node, like: Node) -> Node:
    """The node with the types and axes of another of its form; tuples and trees are rebuilt to it."""
    leaves = zip(operands_of(node), operands_of(like), strict=True)
    given = (replace(x, type=t.type, axes=t.axes, made=None) for x, t in leaves)
    return with_operands(like, given)


def _slice(stack: Node, ty: Type, env: Env, index: str) -> Node:
    """Slice `index` of a stack that was unbound; its type comes from the body's parameter."""
    return with_operands(stack, (Operand(f"{x.name}[{index}]", x.type) for x in operands_of(stack)))


def emit(
    program: Program, entry: str, env: Env, dtype: str, device: str, *, unroll: bool = False, reader: Reader = "torch"
) -> Emitted:
    """Generate the file of `entry`, which must be flat; `env` has every dim it mentions. `dtype` is torch's name for
    it. `unroll` writes the iterations of folds one after another. Only torch's has a plan."""
    machine, types = reader == "machine", types_of(dtype, device)
    program = prepared(program, types, entry, env, machine=machine)
    function = program.functions[entry]
    emitter = _Emitter(program, unroll, reader, types)
    s = emitter.scope(function, env)
    inputs: list[Input] = []
    for p in function.params:

        def leaf(ty: Type, path: tuple[str, ...], name: str = p.name) -> Node:
            operand = emitter.fresh(ty, env)
            inputs.append(Input(name, path, operand))
            return Single(widened(operand, types, lambda text: s.line(emitter.writer, text), s.known))

        s.nodes[p.name] = built(program.modules, p.type, leaf)
    result = declared(program.modules, emitter.bindings(s, function), function.result)
    leaves, slices = list(operands_of(result)), ()
    if machine:
        leaves, slices = sliced_stacks(s.lines, leaves)
    leaves = [rounded(x, types) for x in leaves]
    title = f"  # {printable(function.name)}"
    text = entry_text(emitter.writer, s.lines, [i.operand for i in inputs], leaves, title)
    numbered = (replace(x, name=str(k)) for k, x in enumerate(leaves))
    source = file_text(emitter.writer, text, types.inner, device)
    read = [taken(i.operand, dtype) for i in inputs]
    trees = tuple(groups((s.nodes[p.name] for p in function.params), whole=True))
    planned = None if reader != "torch" else plan(source, types.inner, read, trees, groups([result]))
    kernels = counted(source, types.inner, read) if planned is None else planned.kernels
    return Emitted(source, tuple(inputs), with_operands(result, numbered), kernels, env, trees, planned, slices)


def taken(x: Operand, dtype: str) -> Array | Host:
    """An input, as it is before there is one: tensors are in row-major order."""
    match x.type:
        case Hyper() | Key():
            return Host()
        case Idx():
            found = "int64"
        case Mask():
            found = "bool"
        case _:
            found = dtype
    return replace(fresh(x.sizes, found), name=x.name, root=x.name)


def environment(dims: Mapping[str, int]) -> Env:
    """The environment of an entry without prefixes."""
    return Env(dims, {})
