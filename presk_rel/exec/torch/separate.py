"""Merged contractions (`egraph.merging`) taken apart again, slice by slice.

The optimizer says that three projections are one product of a stack, and proves it. Whether the stack is there already
only a plan knows, which has a place for every tensor: there the three are one call (`families`), on weights that lie at
equal distances and results that are written so. Code without a plan (`presk run`, what a compiler gets) would copy the
weights in every run, so it calls the product for each slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.core.expand import composite_type
from presk_rel.core.ir import Attr, Binding, Function, Op, Prim, Program, Var, operands
from presk_rel.core.names import Fresh
from presk_rel.core.shapes import compatible_types
from presk_rel.elab.ty import ModuleDef, Real, Type
from presk_rel.smt.linear import Linear


@dataclass(frozen=True, slots=True)
class Slice:
    """How one slice of a value is computed: an operation on variables and on slices of others."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Var | Slice, ...]
    type: Type


def separated(program: Program) -> Program:
    """The program with its stacked contractions written out."""
    functions = {name: _separated(f, program.modules) for name, f in program.functions.items()}
    return replace(program, functions=functions)


def _separated(function: Function, modules: dict[str, ModuleDef]) -> Function:
    if not any(isinstance(b.op, Prim) and b.op.op == "stack_params" for b in function.bindings):
        return function
    types = {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}
    writer = _Writer(modules, types, Fresh(types))
    for b in function.bindings:
        writer.bindings += writer.written(b)
    return replace(function, bindings=tuple(_live(writer.bindings, function.ret)))


def _live(bindings: list[Binding], ret: Var) -> list[Binding]:
    """Without what nothing reads."""
    read = {ret}
    kept: list[Binding] = []
    for b in reversed(bindings):
        if b.name in read:
            read.update(operands(b.op))
            kept.append(b)
    return kept[::-1]


@dataclass(slots=True)
class _Writer:
    """`slices` are those of a stack, and of what is computed from stacks slice by slice."""

    modules: dict[str, ModuleDef]
    types: dict[Var, Type]
    names: Fresh
    slices: dict[Var, tuple[Var | Slice, ...]] = field(default_factory=dict[Var, tuple["Var | Slice", ...]])
    bindings: list[Binding] = field(default_factory=list[Binding])

    def written(self, b: Binding) -> Iterator[Binding]:
        """The binding, or those of what it takes the slice of, or sums over."""
        op = b.op
        if isinstance(op, Prim) and isinstance(b.type, Real):
            match op.op, op.args:
                case "stack_params", _:
                    self.slices[b.name] = op.args
                case "ein", (x, w):
                    summed = self.contraction(b, op, x, w)
                    if summed is not None:
                        yield from self.sum(b, summed)
                        return
                case "add", (x, y):
                    self.addition(b, x, y)
                case "sum_to", (x, _) if x in self.slices and _drops_behind(self.types[x], b.type):
                    ty = _slice_type(b.type)
                    self.slices[b.name] = tuple(Slice("sum_to", (), (a,), ty) for a in self.slices[x])
                case "slice_params", (x,) if (found := self.slice(x, op.attrs[0])) is not None:
                    yield from self.emitted(b, found)
                    return
                case _:
                    pass
        yield b

    def slice(self, of: Var, index: Attr) -> Slice | None:
        """The slice of a value that is computed slice by slice."""
        parts = self.slices.get(of, ())
        k = int(index.const) if isinstance(index, Linear) and index.is_constant else len(parts)
        found = parts[k] if k < len(parts) else None
        return found if isinstance(found, Slice) else None

    def contraction(self, b: Binding, op: Prim, x: Var, w: Var) -> list[Slice] | None:
        """Remember how a contraction of stacks is computed; the terms, where it sums over the stacks' axis."""
        spec = ein_spec(str(op.attrs[0]))
        given = zip(spec.operands if spec else (), (x, w), strict=False)
        lead = {axes[0] for axes, v in given if axes and v in self.slices}
        if spec is None or len(lead) != 1:
            return None
        (axis,) = lead
        sides = [axes[:1] == (axis,) and v in self.slices for axes, v in zip(spec.operands, (x, w), strict=True)]
        if any((axis in axes) != side for axes, side in zip(spec.operands, sides, strict=True)):
            return None
        kept = spec.result[:1] == (axis,)
        if not kept and (axis in spec.result or not all(sides)):
            return None
        inner = _inner(spec, axis)
        count = len(next(self.slices[v] for v, side in zip((x, w), sides, strict=True) if side))
        ty = _slice_type(b.type) if kept else b.type
        found = [
            Slice(*inner, tuple(self.slices[v][k] if side else v for v, side in zip((x, w), sides, strict=True)), ty)
            for k in range(count)
        ]
        if not kept:
            return found
        self.slices[b.name] = tuple(found)
        return None

    def addition(self, b: Binding, x: Var, y: Var) -> None:
        """Remember how a sum of stacks is computed: a product and a bias are one operation."""
        if x not in self.slices or y not in self.slices or len(self.slices[x]) != len(self.slices[y]):
            return
        ty, found = _slice_type(b.type), list[Slice]()
        for left, right in zip(self.slices[x], self.slices[y], strict=True):
            if isinstance(left, Slice) and left.op == "dot" and self.is_linear(left, right, ty):
                found.append(Slice("linear", (), (*left.args, right), ty))
            elif isinstance(left, Slice) and isinstance(right, Slice):
                found.append(Slice("add", (), (left, right), ty))
            else:
                return
        self.slices[b.name] = tuple(found)

    def is_linear(self, product: Slice, bias: Var | Slice, ty: Type) -> bool:
        types = tuple(self.types[a] if isinstance(a, str) else a.type for a in (*product.args, bias))
        found = composite_type("linear", (), types, self.modules)
        return not isinstance(found, str) and compatible_types(found, ty)

    # ------------------------------------------------------------------------------------------------ writing

    def emitted(self, b: Binding, made: Slice) -> Iterator[Binding]:
        """A slice under a binding's name and type."""
        args: list[Var] = []
        for a in made.args:
            if isinstance(a, str):
                args.append(a)
                continue
            name = self.names.like("%s")
            yield from self.emitted(Binding(name, a.type, Prim("", (), ())), a)
            args.append(name)
        if made.op == "sum_to":  # down to its own type: the operand that is read for its type is made for that
            args.append(self.names.like("%s"))
            yield Binding(args[-1], b.type, Prim("zeros", (), ()))
        op: Op = Prim(made.op, made.attrs, tuple(args))
        yield replace(b, op=op)

    def sum(self, b: Binding, terms: list[Slice]) -> Iterator[Binding]:
        """The sum of slices, one after another."""
        last = ""
        for k, term in enumerate(terms):
            name = self.names.like("%s")
            yield from self.emitted(replace(b, name=name), term)
            whole = b.name if k == len(terms) - 1 else self.names.like("%s")
            if last:
                yield replace(b, name=whole, op=Prim("add", (), (last, name)))
            last = whole if last else name


def _drops_behind(whole: Type, ty: Type) -> bool:
    """Whether a sum keeps the stack's axis."""
    return (
        isinstance(whole, Real)
        and isinstance(ty, Real)
        and bool(ty.shape.axes)
        and ty.shape.axes[0] == whole.shape.axes[0]
    )


def _slice_type(ty: Type) -> Type:
    assert isinstance(ty, Real)
    return Real(replace(ty.shape, axes=ty.shape.axes[1:]))


def _inner(spec: EinSpec, axis: str) -> tuple[str, tuple[Attr, ...]]:
    """What a contraction is without an axis: a product with a matrix, one of its adjoints, or another contraction."""
    x, w = (tuple(n for n in axes if n != axis) for axes in spec.operands)
    out = tuple(n for n in spec.result if n != axis)
    cut = len(x) - len(w) + 1
    if x and x[-1:] == w[:1] and out == x[:-1] + w[1:]:
        return "dot", ()
    if w and cut >= 0 and x[cut:] == w[1:] and out == x[:cut] + w[:1]:
        return "dot_vjp_l", ()
    if x and x[:-1] == w[: len(x) - 1] and out == x[-1:] + w[len(x) - 1 :]:
        return "dot_vjp_r", ()
    return "ein", (str(EinSpec((x, w), out)),)
