"""From drafts to bindings: final names, and alignments written out where the final types would not give them.

μ : ℝ[...] of a mean over `model`, x : ℝ[..., model: D], the prefix now [D, D] without names:

%7 : ℝ[D, D, model: D] = sub x, μ        would line up the last axes; so
%6 : ℝ[D, D, model: D] = broadcast_like axis model μ, x
%7 : ℝ[D, D, model: D] = sub x, %6
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from presk_rel.core.draft import AXIS_OPERAND, PAIRED, PLACED, Draft, Meant
from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Grad, Jvp, Op, Param, Prim, Vjp, operands
from presk_rel.core.names import Numbered
from presk_rel.core.prims import PRIMS
from presk_rel.core.rule import with_shape
from presk_rel.core.shapes import compatible_axes, compatible_types, same
from presk_rel.core.typing_rules import infer
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.broadcast import align, same_lead
from presk_rel.elab.ty import Axis, Idx, Mask, ModuleDef, Real, Shape, Type


def finish(
    drafts: list[Draft], params: tuple[Param, ...], ret: str, result: Type, modules: dict[str, ModuleDef]
) -> tuple[tuple[Binding, ...], str]:
    """The bindings of a flat function, without those that the result does not need, and the name it returns."""
    out = _Out(modules)
    for p in params:
        out.names.new(p.name)
        out.name[p.name] = p.name
        out.types[p.name] = p.type
    for draft in _live(drafts, ret):
        out.draft(draft)
    name = out.name[ret]
    if not compatible_types(out.types[name], result):
        name = out.renamed(name, result)
    return tuple(out.bindings), name


def _live(drafts: list[Draft], ret: str) -> Iterable[Draft]:
    needed = {ret}
    kept: list[Draft] = []
    for draft in reversed(drafts):
        if draft.name in needed:
            kept.append(draft)
            needed.update(operands(draft.op))
    return reversed(kept)


@dataclass(slots=True)
class _Out:
    """`name` maps drafts to bindings, `types` are those of the bindings."""

    modules: dict[str, ModuleDef]
    names: Numbered = field(default_factory=Numbered)
    name: dict[str, str] = field(default_factory=dict[str, str])
    types: dict[str, Type] = field(default_factory=dict[str, Type])
    bindings: list[Binding] = field(default_factory=list[Binding])
    _done: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _templates: dict[Real, str] = field(default_factory=dict[Real, str])

    def draft(self, d: Draft) -> None:
        args = tuple(self.name[v] for v in operands(d.op))
        if isinstance(d.op, Prim):
            final = self._prim(d, d.op, args)
        else:
            final = self._add(d, with_operands(d.op, self._agreeing(d, args)))
        self.name[d.name] = final

    def _add(self, d: Draft, op: Op, ty: Type | None = None) -> str:
        name = self.names.new(d.hint)
        ty = d.type if ty is None else ty
        self.bindings.append(Binding(name, ty, op, d.span, d.note))
        self.types[name] = ty
        return name

    def _agreeing(self, d: Draft, args: tuple[str, ...]) -> tuple[str, ...]:
        """The operands, renamed where their axis names contradict those the operation was written for."""
        return tuple(
            v if compatible_types(self.types[v], t) else self.renamed(v, t) for v, t in zip(args, d.seen, strict=True)
        )

    # ---------------------------------------------------------------------------------------------------- primitives

    def _prim(self, d: Draft, op: Prim, args: tuple[str, ...]) -> str:
        """The operation as it is if it still means the same; else on operands named as it was written for; else with
        its alignment or its axis made explicit."""
        if op.op in PLACED and d.meant.axis is not None and not self._means_it(d, op, args):
            op = replace(op, attrs=(d.meant.axis, *op.attrs[1:]))
        if self._means_it(d, op, args):
            return self._add(d, replace(op, args=args))
        if d.meant.where is not None and len(args) == 2 and op.op != "softmax":
            explicit = self._explicit(d, op, args)
            if explicit is not None:
                return explicit
        named = tuple(self.renamed(v, t) for v, t in zip(args, d.seen, strict=True))
        if self._means_it(d, op, named):
            return self._add(d, replace(op, args=named))
        return self._spelled_out(d, op, named)

    def _spelled_out(self, d: Draft, op: Prim, args: tuple[str, ...]) -> str:
        """The operation with its alignment or its axis made explicit."""
        match op.op, d.meant:
            case (("merge" | "split"), Meant()):
                return self._add(d, Prim("reshape_like", (), (*args, self._template(real_like(d.type)))))
            case "softmax", Meant(axis=int() as axis):
                return self._softmax(d, args, axis)
            case "concat", Meant(axis=int() as axis):
                return self._concat(d, args, axis)
            case _, Meant(axis=int() as axis):
                return self._with_axis(d, op, args, axis)
            case _, Meant(where=tuple() as where):
                return self._explicit(d, op, args) or self._by_fresh_names(d, op, args, where)
            case _ if (ty := self._not_contradicted(d, op, args)) is not None:
                return self._add(d, replace(op, args=args), ty)
            case _:
                pass
        raise PreskBug("inline", f"{d.name} : {d.type} = {op.op} on {', '.join(str(self.types[v]) for v in args)}")

    def _means_it(self, d: Draft, op: Prim, args: tuple[str, ...]) -> bool:
        types = tuple(self.types[v] for v in args)
        inferred = infer(PRIMS[op.op], op.attrs, types, d.type, self.modules)
        if isinstance(inferred, str) or not compatible_types(inferred, d.type):
            return False
        if d.meant.axis is not None and _place(types[AXIS_OPERAND[op.op]], op.attrs[0]) != d.meant.axis:
            return False
        return d.meant.where is None or _lines_up(op.op, types, d.meant.small, d.meant.where)

    def _not_contradicted(self, d: Draft, op: Prim, args: tuple[str, ...]) -> Type | None:
        """The type of `d` without the names of axes that its operands name otherwise: a cotangent is named as its
        variable is, a contraction's result as the operands' axes."""
        types = tuple(self.types[v] for v in args)
        inferred = infer(PRIMS[op.op], op.attrs, types, _unnamed(d.type), self.modules)
        if isinstance(inferred, str) or not compatible_types(inferred, _unnamed(d.type)):
            return None
        pairs = zip(_shape(d.type).axes, _shape(inferred).axes, strict=True)
        axes = tuple(Axis(None, a.length) if a.name != b.name and b.name is not None else a for a, b in pairs)
        return with_shape(d.type, _shape(d.type).with_axes(axes))

    def _softmax(self, d: Draft, args: tuple[str, ...], position: int) -> str:
        """Every axis gets a name of its own; those of the mask the names they mean."""
        shape = _shape(self.types[args[0]])
        wide = _fresh_names(shape)
        named = [self.renamed(args[0], Real(wide))]
        if d.meant.where is not None:
            mask = _shape(self.types[args[1]])
            narrow = mask.with_axes(tuple(wide.axes[j] for j in d.meant.where))
            named.append(self.renamed(args[1], Mask(narrow)))
        return self._add(d, Prim("softmax", (wide.axes[position].name or "",), tuple(named)), _unnamed(d.type))

    def _concat(self, d: Draft, args: tuple[str, ...], position: int) -> str:
        shapes = [_shape(self.types[v]) for v in args]
        axis = _own_name(shapes[0], shapes[1])
        named = tuple(self.renamed(v, Real(_only(s, position, axis))) for v, s in zip(args, shapes, strict=True))
        return self._add(d, Prim("concat", (axis,), named), _unnamed(d.type))

    def _explicit(self, d: Draft, op: Prim, args: tuple[str, ...]) -> str | None:
        """One missing axis: `broadcast_like axis a`, or a sum over it; None where that does not say it."""
        small, large = args[d.meant.small], args[1 - d.meant.small]
        missing = _missing(self.types[large], d.meant.where or ())
        if missing is None:
            return None
        axis, template = self._with_one_name(large, missing, op.op == "sum_to")
        if op.op == "sum_to":
            return self._plain(d, Prim("sum", (axis,), (template,)))
        widen = Prim("broadcast_like", (axis,), (small, template))
        if op.op == "broadcast_like":
            return self._plain(d, widen)
        shape = _shape(self.types[large] if template == large else _unnamed(self.types[large]))
        wide_type = with_shape(self.types[small], shape)
        if not self._typed(widen, wide_type):
            return None
        wide = self._new(widen, wide_type)
        return self._plain(d, replace(op, args=(wide, large) if d.meant.small == 0 else (large, wide)))

    def _with_one_name(self, v: str, position: int, value: bool) -> tuple[str, str]:
        """A name for one axis of `v` and a tensor of its shape that has it: `v` itself where its own name does, else
        one (with the values of `v`, if asked) in which no other axis has a name."""
        shape = _shape(self.types[v])
        axis = shape.axes[position].name
        if axis is not None and _position(self.types[v], axis) == position:
            return axis, v
        axis = _own_name(shape)
        ty = Real(_only(shape, position, axis))
        return axis, self.renamed(v, ty) if value else self._template(ty)

    def _plain(self, d: Draft, op: Prim) -> str | None:
        return self._add(d, op) if self._typed(op, d.type) else None

    def _typed(self, op: Prim, ty: Type) -> bool:
        inferred = infer(PRIMS[op.op], op.attrs, tuple(self.types[v] for v in op.args), ty, self.modules)
        return not isinstance(inferred, str) and compatible_types(inferred, ty)

    def _with_axis(self, d: Draft, op: Prim, args: tuple[str, ...], position: int) -> str:
        """Two axes have the name: the one that is meant gets one of its own."""
        i = AXIS_OPERAND[op.op]
        axis, only = self._with_one_name(args[i], position, i not in PRIMS[op.op].shape_only)
        operands_ = tuple(only if j == i else v for j, v in enumerate(args))
        return self._add(d, Prim(op.op, (axis,), operands_), _unnamed(d.type))

    def _by_fresh_names(self, d: Draft, op: Prim, args: tuple[str, ...], where: tuple[int, ...]) -> str:
        """Every axis of the larger operand gets a name of its own, and those of the smaller one the names they mean."""
        small, large = args[d.meant.small], args[1 - d.meant.small]
        wide = Real(_fresh_names(_shape(self.types[large])))
        narrow = Real(_shape(self.types[small]).with_axes(tuple(wide.shape.axes[j] for j in where)))
        if op.op == "sum_to":
            summed = Prim("sum_to", (), (self.renamed(large, wide), self._template(narrow)))
            return self._add(d, summed, _unnamed(d.type))
        widen = Prim("broadcast_like", (), (self.renamed(small, narrow), self._template(wide)))
        if op.op == "broadcast_like":
            return self._add(d, widen, _unnamed(d.type))
        spread = self._new(widen, with_shape(self.types[small], _unnamed(wide).shape))
        args = (spread, large) if d.meant.small == 0 else (large, spread)
        return self._add(d, replace(op, args=args))

    # --------------------------------------------------------------------------------------------------------- names

    def renamed(self, v: str, ty: Type) -> str:
        """`v` with the axis names of a type of the same lengths: itself where it has them already."""
        if self.types[v] == ty or not isinstance(ty, Real | Idx | Mask):
            return v
        ty = with_shape(self.types[v], ty.shape)
        key = (v, str(ty))
        if self.types[v] != ty and key not in self._done:
            template = self._template(real_like(_unnamed(ty)))
            self._done[key] = self._new(Prim("broadcast_like", (), (v, template)), ty)
        return self._done.get(key, v)

    def _template(self, ty: Real) -> str:
        """A tensor read for its type only."""
        if ty not in self._templates:
            self._templates[ty] = self._new(Prim("zeros", (), ()), ty)
        return self._templates[ty]

    def _new(self, op: Prim, ty: Type) -> str:
        name = self.names.new()
        self.bindings.append(Binding(name, ty, op))
        self.types[name] = ty
        return name


# --------------------------------------------------------------------------------------------------- small questions


def with_operands(op: Op, args: tuple[str, ...]) -> Op:
    """An operation on other operands, in the order of `ir.operands`."""
    match op:
        case Prim() | Call():
            return replace(op, args=args)
        case Closure():
            return replace(op, captured=args)
        case Grad() | Vjp() | Jvp():
            return replace(op, fn=args[0])
        case Apply():
            return Apply(args[0], args[1:])
        case Fold(stacked=stacked):
            n = len(stacked)
            return replace(op, stacked=args[:n], acc=args[n], extras=args[n + 1 :])


def _shape(ty: Type) -> Shape:
    if not isinstance(ty, Real | Idx | Mask):
        raise PreskBug("inline", f"{ty} is no tensor")
    return ty.shape


def real_like(ty: Type) -> Real:
    """The type of a real tensor of the same shape."""
    return Real(_shape(ty))


def _place(ty: Type, place: object) -> int | None:
    return place if isinstance(place, int) else _position(ty, place)


def _position(ty: Type, axis: object) -> int | None:
    """Where the one axis of that name stands; None where there is none or more than one."""
    where = [i for i, a in enumerate(_shape(ty).axes) if a.name == axis]
    return where[0] if len(where) == 1 else None


def _lines_up(op: str, types: tuple[Type, ...], small: int, where: tuple[int, ...]) -> bool:
    """Whether the operands line up by their types as meant."""
    a, b = _shape(types[small]), _shape(types[1 - small])
    if len(a.axes) == len(b.axes) and same_lead(a, b, same) and op in PAIRED:
        return where == tuple(range(len(where))) and compatible_axes(a.axes, b.axes)
    return align(a, b, same) == where


def _missing(large: Type, where: tuple[int, ...]) -> int | None:
    """The one axis of `large` that the smaller operand lacks, if the others keep their order."""
    n = len(_shape(large).axes)
    if len(where) != n - 1 or list(where) != sorted(where):
        return None
    return next(i for i in range(n) if i not in where)


def _unnamed(ty: Type) -> Real | Idx | Mask:
    shape = _shape(ty)
    return with_shape(ty, shape.with_axes(tuple(Axis(None, a.length) for a in shape.axes)))


def _only(shape: Shape, position: int, axis: str) -> Shape:
    """The shape with one axis named, and no other."""
    axes = tuple(Axis(axis if j == position else None, a.length) for j, a in enumerate(shape.axes))
    return shape.with_axes(axes)


def _fresh_names(shape: Shape) -> Shape:
    return shape.with_axes(tuple(Axis(f"axis{j}", a.length) for j, a in enumerate(shape.axes)))


def _own_name(*shapes: Shape) -> str:
    taken = {a.name for shape in shapes for a in shape.axes}
    return next(name for i in range(len(taken) + 1) if (name := f"axis{i}") not in taken)
