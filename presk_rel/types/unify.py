"""Unification of types, shapes and lengths (spec: "Shapes").

Unknown lengths are symbols `?n`, unknown leading axes prefixes `?n`, unknown types `Meta`s. A length equation is solved
for an unknown where that gives integers; equations that cannot be solved yet wait until `settle`. Nothing is reported
here: a failure is a `Mismatch`, whose `lengths` name the equation that fails, if it was one of lengths.
"""

from __future__ import annotations

from dataclasses import field, replace

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import mutable
from presk_rel.elab.measure import LARGEST
from presk_rel.elab.ty import (
    SCALAR_REAL,
    Applied,
    Axis,
    Composed,
    Function,
    Hyper,
    Idx,
    Instance,
    Key,
    Mask,
    ModuleValue,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
)
from presk_rel.smt.linear import Linear, constant, symbol
from presk_rel.smt.solver import AtMost, Condition, Divides, Equal, Less, Solver, symbols
from presk_rel.types.forms import bare_unknown, is_integral, may_be_negative
from presk_rel.types.infer import (
    UNKNOWN,
    Broken,
    IType,
    Meta,
    NumberKind,
    function_of,
    items_of,
    params_of,
    result_of,
    tuple_of,
)
from presk_rel.types.numbers import WIDTH, admits
from presk_rel.types.problems import Mismatch, Obligation, Origin, TooLarge, Waiting


@mutable
class Unifier:
    """The unknowns of one function body. `origin[?n]` says where an unknown length or prefix comes from."""

    solver: Solver
    lengths: dict[str, Linear] = field(default_factory=dict[str, Linear])
    prefixes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    types: dict[int, IType] = field(default_factory=dict[int, IType])
    waiting: list[Waiting] = field(default_factory=list[Waiting])
    obligations: list[Obligation] = field(default_factory=list[Obligation])
    origin: dict[str, Origin] = field(default_factory=dict[str, Origin])
    count: int = 0
    solved: int = 0
    """How many unknown types and prefixes were solved: progress, for what waits on them."""
    spent: int = 0
    """Parts of types walked by the resolution that is going on."""
    where: tuple[Span, str] | None = None
    """What is being unified, for equations that wait."""

    # ------------------------------------------------------------------------------------------------ unknowns

    def fresh(self, origin: Origin) -> str:
        """An unknown length or prefix."""
        self.count += 1
        name = f"?{self.count}"
        self.origin[name] = origin
        return name

    def fresh_type(self, number: NumberKind | None = None) -> Meta:
        self.count += 1
        return Meta(self.count, number)

    # ---------------------------------------------------------------------------------------------- resolution

    def length(self, form: Linear) -> Linear:
        """`form` with every solved unknown replaced."""
        while (replaced := form.substitute(self.lengths)) is not form:
            form = replaced
        return form

    def shape(self, shape: Shape) -> Shape:
        """`shape` with solved prefixes and lengths replaced; itself where nothing is."""
        shape = self.fronted(shape)
        lengths = [self.length(a.length) for a in shape.axes]
        if all(length is a.length for length, a in zip(lengths, shape.axes, strict=True)):
            return shape
        return Shape(shape.prefix, tuple(Axis(a.name, n) for a, n in zip(shape.axes, lengths, strict=True)))

    def fronted(self, shape: Shape) -> Shape:
        """`shape` with solved prefixes replaced."""
        while shape.prefix in self.prefixes:
            front = self.prefixes[shape.prefix]
            shape = Shape(front.prefix, front.axes + shape.axes)
        return shape

    def shallow(self, ty: IType) -> IType:
        """What `ty` is by now, at its head."""
        while isinstance(ty, Meta) and ty.id in self.types:
            ty = self.types[ty.id]
        return ty

    def resolve(self, ty: IType) -> IType:
        """What `ty` is by now, throughout. `TooLarge` if that is more than any pass could walk."""
        self.spent = 0
        return self._resolve(ty)

    def _spend(self) -> None:
        self.spent += 1
        if self.spent > LARGEST:
            raise TooLarge

    def _resolve(self, ty: IType) -> IType:
        self._spend()
        ty = self.shallow(ty)
        match ty:
            case Real(shape):
                return Real(self.shape(shape))
            case Idx(bound, shape):
                return Idx(self.length(bound), self.shape(shape))
            case Mask(shape):
                return Mask(self.shape(shape))
            case TupleOf():
                return tuple_of(self._resolve(t) for t in items_of(ty))
            case Function():
                return function_of([self._resolve(t) for t in params_of(ty)], self._resolve(result_of(ty)))
            case Params(instance):
                return Params(self.instance(instance))
            case ModuleValue(instance):
                return ModuleValue(self.instance(instance))
            case _:
                return ty

    def instance(self, instance: Instance) -> Instance:
        match instance:
            case Applied(module, args):
                return Applied(module, tuple(self.length(a) for a in args))
            case Stacked(count, inner):
                return Stacked(self.length(count), self.instance(inner))
            case Composed(outer, inner):
                return Composed(self.instance(outer), self.instance(inner))

    def is_open(self, shape: Shape) -> bool:
        """Are its leading axes unknown?"""
        return shape.prefix is not None and shape.prefix.startswith("?")

    # ------------------------------------------------------------------------------------------------- lengths

    def same(self, left: Linear, right: Linear) -> bool:
        """Are two lengths equal, as far as is known? Unknown ones may become so."""
        if left == right:
            return True
        difference = self.length(left - right)
        if difference.is_constant:
            return difference.const == 0
        if any(s.startswith("?") for s, _ in difference.terms):
            return True
        return self.solver.equal(self.length(left), self.length(right))

    def unify_length(self, left: Linear, right: Linear) -> Mismatch | None:
        left, right = self.length(left), self.length(right)
        if left == right:
            return None
        for unknown, value in ((left, right), (right, left)):
            name = bare_unknown(unknown)
            if name is not None and is_integral(value) and value.coefficient(name) == 0 and not may_be_negative(value):
                self.lengths[name] = value
                return None
        difference = left - right
        if difference.is_constant:
            return None if difference.const == 0 else Mismatch(str(left), str(right), (left, right))
        if any(s.startswith("?") for s, _ in difference.terms):
            return self._solve(left, right, difference)
        return None if self.solver.equal(left, right) else Mismatch(str(left), str(right), (left, right))

    def _solve(self, left: Linear, right: Linear, difference: Linear) -> Mismatch | None:
        """Solves `difference = 0` for an unknown in which it is integral; else the equation waits."""
        for name, c in difference.terms:
            rest = (difference - symbol(name).scale(c)).scale(-1 / c)
            if not name.startswith("?") or not is_integral(rest):
                continue
            if rest.is_constant and rest.const < 0:
                return Mismatch(str(left), str(right), (left, right))
            self.lengths[name] = rest
            self._owe_natural(name, rest)
            return None
        unknown = [s for s, _ in difference.terms if s.startswith("?")]
        if len(unknown) == 1 and len(difference.terms) == 1:
            return Mismatch(str(left), str(right), (left, right))
        span, what = self._where()
        self.waiting.append(Waiting(left, right, span, what))
        return None

    def _where(self) -> tuple[Span, str]:
        assert self.where is not None, "unification without a place"
        return self.where

    def _owe_natural(self, name: str, value: Linear) -> None:
        """An unknown found by rearranging an equation stands for a natural number only if its value is one."""
        if may_be_negative(value):
            span, what = self._where()
            text = f"{what} leaves no natural number for `{self.origin[name].shown}`"
            self.obligations.append(Obligation(AtMost(constant(0), value), span, text))

    # -------------------------------------------------------------------------------------------------- shapes

    def unify_shape(self, left: Shape, right: Shape) -> Mismatch | None:
        whole, other = self.shape(left), self.shape(right)
        failed = self._unify_resolved(whole, other)
        if failed is None:
            self._refine(left, other)
            self._refine(right, whole)
        return failed

    def _unify_resolved(self, left: Shape, right: Shape) -> Mismatch | None:
        n = min(len(left.axes), len(right.axes))
        if (len(left.axes) > n and not self.is_open(right)) or (len(right.axes) > n and not self.is_open(left)):
            return _rank_mismatch(left, right)
        failed = self._unify_front(left, right, n)
        if failed is not None:
            return failed
        for a, b in zip(left.axes[len(left.axes) - n :], right.axes[len(right.axes) - n :], strict=True):
            failed = self._unify_axis(a, b)
            if failed is not None:
                return failed
        return None

    def _unify_front(self, left: Shape, right: Shape, n: int) -> Mismatch | None:
        """What stands before the last `n` axes: an unknown prefix takes the other side's."""
        front, other = (
            Shape(left.prefix, left.axes[: len(left.axes) - n]),
            Shape(right.prefix, right.axes[: len(right.axes) - n]),
        )
        if front == other:
            return None
        for unknown, value in ((front, other), (other, front)):
            if not unknown.axes and self.is_open(unknown) and unknown.prefix is not None:
                if value.prefix == unknown.prefix:
                    break
                self.prefixes[unknown.prefix] = value
                self.solved += 1
                return None
        return _rank_mismatch(left, right)

    def _refine(self, shape: Shape, other: Shape) -> None:
        """A prefix that took unnamed axes takes the names that its next use, `other`, gives them."""
        front = None if shape.prefix is None else self.prefixes.get(shape.prefix)
        theirs = other.axes[: len(other.axes) - len(shape.axes)]
        if shape.prefix is None or front is None or len(theirs) != len(front.axes):
            return
        axes = tuple(Axis(a.name or b.name, a.length) for a, b in zip(front.axes, theirs, strict=True))
        self.prefixes[shape.prefix] = Shape(front.prefix, axes)

    def _unify_axis(self, a: Axis, b: Axis) -> Mismatch | None:
        if a.name is not None and b.name is not None and a.name != b.name:
            return Mismatch(f"the axis {a.name}", f"the axis {b.name}")
        failed = self.unify_length(a.length, b.length)
        return None if failed is None else replace(failed, axis=a.name or b.name)

    # --------------------------------------------------------------------------------------------------- types

    def unify(self, left: IType, right: IType) -> Mismatch | None:
        """Makes two types equal by solving unknowns, or says what differs."""
        left, right = self.shallow(left), self.shallow(right)
        if isinstance(left, Broken) or isinstance(right, Broken) or left == right:
            return None
        if isinstance(left, Meta):
            return self._bind(left, right)
        if isinstance(right, Meta):
            return self._bind(right, left)
        match left, right:
            case (Real(s), Real(t)) | (Mask(s), Mask(t)):
                return self.unify_shape(s, t)
            case Idx(m, s), Idx(n, t):
                return self.unify_length(m, n) or self.unify_shape(s, t)
            case TupleOf(), TupleOf() if len(left.items) == len(right.items):
                return self._all(items_of(left), items_of(right))
            case Function(), Function() if len(left.params) == len(right.params):
                return self._all((*params_of(left), result_of(left)), (*params_of(right), result_of(right)))
            case (Params(i), Params(j)) | (ModuleValue(i), ModuleValue(j)):
                return self.unify_instance(i, j)
            case ((Hyper() | Key()), _) if left == right:
                return None
            case _:
                return Mismatch(self.show(left), self.show(right), whole=True)

    def _all(self, left: tuple[IType, ...], right: tuple[IType, ...]) -> Mismatch | None:
        return next((m for a, b in zip(left, right, strict=True) if (m := self.unify(a, b)) is not None), None)

    def unify_instance(self, left: Instance, right: Instance) -> Mismatch | None:
        match left, right:
            case Applied(m, a), Applied(n, b) if m == n:
                return next((f for x, y in zip(a, b, strict=True) if (f := self.unify_length(x, y)) is not None), None)
            case Stacked(m, a), Stacked(n, b):
                return self.unify_length(m, n) or self.unify_instance(a, b)
            case Composed(a, b), Composed(c, d):
                return self.unify_instance(a, c) or self.unify_instance(b, d)
            case _:
                return Mismatch(str(self.instance(left)), str(self.instance(right)))

    def _bind(self, meta: Meta, ty: IType) -> Mismatch | None:
        if meta.number is not None:
            return self._bind_number(meta, meta.number, ty)
        self.spent = 0
        if not isinstance(ty, Meta) and self._occurs(meta, ty):
            return Mismatch(self.show(meta), self.show(ty))
        self.types[meta.id] = ty
        self.solved += 1
        return None

    def _bind_number(self, meta: Meta, number: NumberKind, ty: IType) -> Mismatch | None:
        """A literal's type becomes a real scalar or a hyperparameter that has such numbers."""
        if isinstance(ty, Meta) and (ty.number is None or WIDTH[ty.number] < WIDTH[number]):
            self.types[ty.id] = meta
            self.solved += 1
            return None
        if not isinstance(ty, Meta) and not admits(ty, number):
            return Mismatch(str(meta), self.show(ty), whole=True)
        self.types[meta.id] = SCALAR_REAL if isinstance(ty, Real) else ty
        self.solved += 1
        return self.unify(SCALAR_REAL, ty) if isinstance(ty, Real) else None

    def _occurs(self, meta: Meta, ty: IType) -> bool:
        self._spend()
        match self.shallow(ty):
            case Meta() as other:
                return other == meta
            case TupleOf() as t:
                return any(self._occurs(meta, i) for i in items_of(t))
            case Function() as f:
                return any(self._occurs(meta, i) for i in (*params_of(f), result_of(f)))
            case _:
                return False

    # --------------------------------------------------------------------------------------------------- other

    def show(self, ty: IType) -> str:
        """A type as the user reads it: unknowns by the names they come from, unknown types inside it as `_`."""
        resolved = self.resolve(ty)
        text = self.show_text(str(resolved))
        return text if isinstance(resolved, Meta | Broken) else text.replace(UNKNOWN, "_")

    def show_text(self, text: str) -> str:
        if "?" not in text:
            return text
        for name in sorted(self.origin, key=len, reverse=True):
            if name in text:
                text = text.replace(name, self.origin[name].shown)
        return text

    def default_length(self, form: Linear) -> Linear:
        """`form` as it is in the end: unknowns that nothing determined replaced by their defaults."""
        form = self.length(form)
        unknown = [s for s, _ in form.terms if s.startswith("?")]
        if not unknown:
            return form
        return form.substitute({s: d for s in unknown if (d := self.origin[s].default) is not None})

    def map_condition(self, condition: Condition) -> Condition | None:
        """`condition` in the end; None if it is about lengths that nothing determines (E2024)."""
        match condition:
            case Equal(a, b):
                mapped: Condition = Equal(self.default_length(a), self.default_length(b))
            case AtMost(a, b):
                mapped = AtMost(self.default_length(a), self.default_length(b))
            case Less(a, b):
                mapped = Less(self.default_length(a), self.default_length(b))
            case Divides(k, a):
                mapped = Divides(k, self.default_length(a))
        return None if any(s.startswith("?") for s in symbols(mapped)) else mapped


def _rank_mismatch(left: Shape, right: Shape) -> Mismatch:
    if left.prefix is None and right.prefix is None:
        return Mismatch(_axes(len(left.axes)), _axes(len(right.axes)))
    return Mismatch(f"[{left}]", f"[{right}]")


def _axes(n: int) -> str:
    return "one axis" if n == 1 else "a scalar" if n == 0 else f"{n} axes"
