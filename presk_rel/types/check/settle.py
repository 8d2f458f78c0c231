"""The end of checking a function: what waited is settled, what was owed is proven, what stayed unknown is reported."""

from __future__ import annotations

from dataclasses import field

from presk_rel.diagnostics.record import mutable
from presk_rel.elab.measure import Measures
from presk_rel.elab.ty import Function, Hyper, Idx, Mask, Real, Shape, TupleOf, Type, map_dims
from presk_rel.smt.linear import Linear, constant, symbol
from presk_rel.smt.solver import AtMost, Proven, Refuted
from presk_rel.types.check.checker import Checker, bad
from presk_rel.types.forms import divisibility
from presk_rel.types.infer import Broken, IType, Meta, items_of, params_of, result_of
from presk_rel.types.numbers import DEFAULT
from presk_rel.types.problems import Obligation, TooLarge, Waiting
from presk_rel.types.tree import KEY


@mutable
class Final:
    """What every unknown is in the end. `mentioned` collects the symbols of the forms it is asked for, in order;
    `unknown` the lengths and prefixes that nothing determines."""

    c: Checker
    mentioned: dict[str, None] = field(default_factory=dict[str, None])
    unknown: dict[str, None] = field(default_factory=dict[str, None])
    untyped: bool = False
    known: dict[int, tuple[Type, Type]] = field(default_factory=dict[int, "tuple[Type, Type]"])
    """By identity: nothing is solved any more. What is known is kept alive, so that its identity stays its own."""

    def type(self, ty: Type) -> Type:
        known = self.known.get(id(ty))
        if known is None:
            known = self.known[id(ty)] = (ty, self._fitting(ty))
        return known[1]

    def _fitting(self, ty: Type) -> Type:
        final = self._final(self.c.unifier.resolve(ty))
        if not isinstance(final, Real | Idx | Mask | Hyper) and not Measures().of(final).fits:
            raise TooLarge
        return final

    def _final(self, ty: IType) -> Type:
        match ty:
            case Meta(number=number):
                self.untyped |= number is None
                return KEY if number is None else DEFAULT[number]
            case Broken():
                self.untyped = True
                return KEY
            case TupleOf():
                return TupleOf(tuple(self._final(t) for t in items_of(ty)))
            case Function():
                return Function(tuple(self._final(t) for t in params_of(ty)), self._final(result_of(ty)))
            case Real(shape) | Idx(_, shape) | Mask(shape):
                self._prefix(shape)
                return map_dims(ty, self.length)
            case Hyper():
                return ty
            case _:
                return map_dims(ty, self.length)

    def _prefix(self, shape: Shape) -> None:
        if self.c.unifier.is_open(shape) and shape.prefix is not None:
            self.unknown[shape.prefix] = None

    def length(self, form: Linear) -> Linear:
        form = self.c.unifier.default_length(form)
        for s, _ in form.terms:
            (self.unknown if s.startswith("?") else self.mentioned)[s] = None
        return form

    def report(self) -> None:
        """E2024 for unknowns that nothing determines, once per function."""
        if not self.untyped and not self.unknown:
            return
        for binder in self.c.env.values():
            if _undetermined(self.c.unifier.resolve(binder.type)):
                self.c.error(
                    "E2024",
                    f"the type of `{binder.name}` cannot be inferred",
                    binder.span,
                    help=f"write it: ({binder.name} : T)",
                )
                return
        name = next(iter(self.unknown), None)
        signature = self.c.signature
        if name is not None:
            origin = self.c.unifier.origin[name]
            what = "leading axes" if origin.shown == "..." else f"dimension `{origin.shown}`"
            self.c.error(
                "E2024",
                f"nothing determines the {what} of `{origin.callee}` in this call",
                origin.span,
                help=f"say it: {origin.callee}{{…}}(…)" if what.startswith("dim") else None,
            )
        elif signature is not None:
            self.c.error("E2024", f"a type in `{signature.core}` cannot be inferred", signature.node.name.span)


def _undetermined(ty: IType) -> bool:
    match ty:
        case Meta(number=number):
            return number is None
        case TupleOf():
            return any(_undetermined(t) for t in items_of(ty))
        case Function():
            return any(_undetermined(t) for t in (*params_of(ty), result_of(ty)))
        case Real(shape) | Idx(_, shape) | Mask(shape):
            return shape.prefix is not None and shape.prefix.startswith("?")
        case _:
            return False


def settle(c: Checker) -> Final:
    """Brings everything that waits to an end, and reports what fails."""
    c.retry()
    for stuck in c.stuck:
        if not c.failed:
            c.error(
                "E2024",
                "the type of this cannot be inferred",
                stuck.span,
                help="annotate the parameter that it depends on: λ (x : T). …",
            )
        stuck.hole.node = bad(stuck.span)
    _settle_lengths(c)
    for check in c.at_end:
        check()
    for owed in c.unifier.obligations:
        _prove(c, owed)
    return Final(c)


def _settle_lengths(c: Checker) -> None:
    """Equations that waited: first again as they are, then solved with fractions that must turn out natural."""
    u = c.unifier
    before = -1
    while u.waiting and before != len(u.lengths):
        before = len(u.lengths)
        waiting, u.waiting = u.waiting, []
        for equation in waiting:
            _again(c, equation)
    while u.waiting:
        _by_fractions(c, u.waiting.pop(0))


def _again(c: Checker, equation: Waiting) -> None:
    c.unifier.where = (equation.span, equation.what)
    failed = c.unifier.unify_length(equation.left, equation.right)
    if failed is not None:
        reason, example = c.reason(failed)
        c.error("E2003", f"{equation.what} has the wrong shape{reason}", equation.span, counterexample=example)


def _by_fractions(c: Checker, equation: Waiting) -> None:
    u = c.unifier
    difference = u.length(equation.left - equation.right)
    unknown = next((s for s, _ in difference.terms if s.startswith("?")), None)
    if unknown is None:
        _again(c, equation)
        return
    k = difference.coefficient(unknown)
    value = (difference - symbol(unknown).scale(k)).scale(-1 / k)
    u.lengths[unknown] = value
    what = f"{equation.what} leaves no natural number for `{u.origin[unknown].shown}`"
    u.obligations.append(Obligation(AtMost(constant(0), value), equation.span, what))
    whole = divisibility(value)
    if whole is not None:
        u.obligations.append(Obligation(whole, equation.span, what))


def _prove(c: Checker, owed: Obligation) -> None:
    u = c.unifier
    condition = u.map_condition(owed.condition)
    if condition is None or condition in u.solver.facts:
        return
    verdict = u.solver.prove(condition)
    if isinstance(verdict, Proven):
        return
    example = dict(verdict.counterexample) if isinstance(verdict, Refuted) else None
    text = str(verdict) if example else "does not hold" if isinstance(verdict, Refuted) else "could not be decided"
    c.error(owed.code, f"{owed.what}: `{condition}` {text}", owed.span, counterexample=example)
