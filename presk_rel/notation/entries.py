"""An expression with an `ein` in it, entry by entry: the sum at an index named by the axes of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.core.trampoline import Walk
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Idx, Mask, Real, Shape, Type
from presk_rel.notation.formula import Formula, Sym, at
from presk_rel.notation.operations import contraction, operation, summed, written
from presk_rel.notation.walk import nodes
from presk_rel.types.tree import TExpr, TPrim, TTuple


def unrenamed(e: TExpr) -> TExpr:
    """Without what only renames axes (`types.check.ascription`)."""
    while isinstance(e, TPrim) and e.op == "proj" and isinstance(e.args[0], TTuple) and len(e.args[0].items) == 1:
        e = e.args[0].items[0]
    return e


def eins(body: TExpr) -> frozenset[int]:
    """The ids of the expressions made of eins by entrywise operations."""
    found: set[int] = set()
    for node in reversed(nodes(body)):
        core = unrenamed(node)
        if not isinstance(core, TPrim):
            continue
        if core.op == "ein" or (written(core.op).entrywise and any(id(a) in found for a in core.args)):
            found.add(id(node))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Entries:
    """`value` gives the formula of a whole expression; `made` are the `eins` of the function."""

    value: Callable[[TExpr], Walk[Formula]]
    made: frozenset[int]

    def axes(self, e: TExpr) -> tuple[Sym, ...] | None:
        """The index of the entries of `e`, if it is to be written by them: if it is made of eins by entrywise
        operations and all its axes have names. An ein has names for its own, whatever its type leaves unnamed."""
        shape, core = _shape(e.type), unrenamed(e)
        if shape is None or shape.prefix is not None or id(e) not in self.made:
            return None
        if isinstance(core, TPrim) and core.op == "ein":
            return tuple(map(Sym, _spec(core).result))
        names = [a.name for a in shape.axes if a.name is not None]
        return tuple(map(Sym, names)) if len(names) == len(shape.axes) else None

    def entry(self, e: TExpr, index: tuple[Sym, ...]) -> Walk[Formula]:
        """The entry of `e` at `index`, which has a symbol for each axis of `e`."""
        if id(e) not in self.made:
            return at((yield self.value(e)), index)
        core = unrenamed(e)
        assert isinstance(core, TPrim)
        return (yield self.ein(core, index) if core.op == "ein" else self.entrywise(core, index))

    def entrywise(self, e: TPrim, index: tuple[Sym, ...]) -> Walk[Formula]:
        args: list[Formula] = []
        for arg in e.args:
            args.append((yield self.entry(arg, _lined_up(arg.type, e.type, index))))
        entries: tuple[Type, ...] = tuple(Real(Shape(None, ())) for _ in args)
        return operation(e.op, e.attrs, tuple(args), entries, e.type)

    def ein(self, e: TPrim, index: tuple[Sym, ...]) -> Walk[Formula]:
        spec = _spec(e)
        bound = dict(zip(spec.result, index, strict=True))
        for axis in summed(spec):
            bound[axis] = _beside(axis, {*bound.values(), *index})
        factors: list[Formula] = []
        for arg, axes in zip(e.args, spec.operands, strict=True):
            factors.append((yield self.entry(arg, tuple(bound[a] for a in axes))))
        return contraction(spec, tuple(factors), bound)


def _lined_up(small: Type, large: Type, index: tuple[Sym, ...]) -> tuple[Sym, ...]:
    """The index into an operand of type `small` at the entry `index` of the value. Lengths may be equal by a proof that
    is not redone here."""
    a, b = _shape(small) or Shape(None, ()), _shape(large) or Shape(None, ())
    where = align(a, b, lambda m, n: m == n)
    where = align(a, b, lambda m, n: True) if where is None else where
    if where is None:
        raise PreskBug("notation", f"{small} does not line up with {large}")
    return tuple(index[i] for i in where)


def _beside(axis: str, taken: set[Sym]) -> Sym:
    primes = 0
    while Sym(axis, primes) in taken:
        primes += 1
    return Sym(axis, primes)


def _spec(e: TPrim) -> EinSpec:
    text = e.attrs[0]
    spec = ein_spec(text) if isinstance(text, str) else None
    if spec is None:
        raise PreskBug("notation", "an ein of the typed program has no contraction")
    return spec


def _shape(ty: Type) -> Shape | None:
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape):
            return shape
        case _:
            return None
