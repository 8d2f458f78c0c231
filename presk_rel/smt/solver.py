"""Decides linear conditions over dimensions in ℕ: normal forms first, Z3 for the rest, smallest counterexamples.

One `Solver` per check: one Z3 context, one incremental solver, answers memoised. Z3 works under a resource limit, not a
clock, so that the same question gets the same answer on every machine; running out is the verdict `Undecided`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from importlib import import_module
from math import lcm
from typing import TYPE_CHECKING, Any, assert_never

from presk_rel.diagnostics import PreskBug
from presk_rel.diagnostics.record import mutable, record
from presk_rel.smt.linear import Linear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESOURCE_LIMIT = 20_000_000
"""Z3's `rlimit` per query: about a second."""


@record
class Equal:
    left: Linear
    right: Linear

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@record
class AtMost:
    left: Linear
    right: Linear

    def __str__(self) -> str:
        return f"{self.left} ≤ {self.right}"


@record
class Less:
    left: Linear
    right: Linear

    def __str__(self) -> str:
        return f"{self.left} < {self.right}"


@record
class Divides:
    """`divisor | dividend`; the divisor is at least 1. A dividend that is no integer is not divisible."""

    divisor: int
    dividend: Linear

    def __str__(self) -> str:
        return f"{self.divisor} | {self.dividend}"


Condition = Equal | AtMost | Less | Divides


@record
class Proven:
    """The condition holds for all naturals that satisfy the facts."""


@record
class Refuted:
    """The condition fails at `counterexample`: of all that satisfy the facts, the one with the smallest sum, then the
    lexicographically smallest by symbol name. Only symbols of the condition are named."""

    counterexample: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return "fails for " + ", ".join(f"{s} = {n}" for s, n in self.counterexample)


@record
class Undecided:
    """The solver gave up within its resource limit. `reason` is its own word for why."""

    reason: str


Verdict = Proven | Refuted | Undecided


def symbols(condition: Condition) -> frozenset[str]:
    match condition:
        case Equal(a, b) | AtMost(a, b) | Less(a, b):
            return a.symbols | b.symbols
        case Divides(_, a):
            return a.symbols
        case _:
            assert_never(condition)


def holds_at(condition: Condition, values: dict[str, int]) -> bool:
    """The truth of a condition at naturals; KeyError for an unbound symbol."""
    match condition:
        case Equal(a, b):
            return a.evaluate(values) == b.evaluate(values)
        case AtMost(a, b):
            return a.evaluate(values) <= b.evaluate(values)
        case Less(a, b):
            return a.evaluate(values) < b.evaluate(values)
        case Divides(k, a):
            quotient = a.evaluate(values) / k
            return quotient.denominator == 1
        case _:
            assert_never(condition)


def fails_at(condition: Condition, values: dict[str, int], facts: Sequence[Condition]) -> bool:
    """Whether these are naturals of which the facts are true and the condition is not."""
    naturals = all(n >= 0 for n in values.values())
    return naturals and all(holds_at(f, values) for f in facts) and not holds_at(condition, values)


def decide_by_normal_form(condition: Condition) -> bool | None:
    """True or False where the linear normal form alone decides for *all* naturals, else None."""
    match condition:
        case Equal(a, b):
            difference = a - b
            return difference.const == 0 if difference.is_constant else None
        case AtMost(a, b):
            return _nonnegative(b - a)
        case Less(a, b):
            return _nonnegative(b - a, strict=True)
        case Divides(k, a):
            if all((c / k).denominator == 1 for _, c in a.terms):
                return (a.const / k).denominator == 1
            return None
        case _:
            assert_never(condition)


def _nonnegative(form: Linear, *, strict: bool = False) -> bool | None:
    """Is `form` ≥ 0 (> 0 if strict) for all naturals? A form with coefficients of one sign is extreme at 0."""
    at_zero = form.const > 0 if strict else form.const >= 0
    if all(c > 0 for _, c in form.terms) and at_zero:
        return True
    if all(c < 0 for _, c in form.terms) and not at_zero:
        return False
    return None


@mutable
class Solver:
    """Answers conditions under `facts` (bounds of dims, divisibilities in scope). `queries` counts what Z3 was
    asked."""

    facts: tuple[Condition, ...] = ()
    queries: int = 0
    _memo: dict[Condition, Verdict] = field(default_factory=dict[Condition, Verdict])
    _backend: _Z3 | None = None

    def prove(self, condition: Condition) -> Verdict:
        known = self._memo.get(condition)
        if known is None:
            known = self._memo[condition] = self._decide(condition)
        return known

    def equal(self, left: Linear, right: Linear) -> bool:
        """Is `left = right` proven? For `elab.broadcast`."""
        return left == right or isinstance(self.prove(Equal(left, right)), Proven)

    def _decide(self, condition: Condition) -> Verdict:
        by_form = decide_by_normal_form(condition)
        if by_form is True:
            return Proven()
        if by_form is False and not symbols(condition):
            return Refuted(())
        if self._backend is None:
            self._backend = _Z3(self.facts)
        self.queries += 1
        return self._backend.decide(condition)


class _Z3:
    """The one file-local face of z3: a solver that holds the facts, asked by push and pop. What it says fails is
    evaluated without it before anybody reads it."""

    def __init__(self, facts: Sequence[Condition]) -> None:
        self.z3: Any = import_module("z3")  # untyped, and imported only when a question needs it
        self.context: Any = self.z3.Context()
        self.solver: Any = self.z3.SolverFor("QF_LIA", ctx=self.context)
        self.solver.set("rlimit", RESOURCE_LIMIT)
        self.variables: dict[str, Any] = {}
        self.facts = facts
        for fact in facts:
            self._declare(symbols(fact))
            self.solver.add(self._formula(fact))

    def decide(self, condition: Condition) -> Verdict:
        names = sorted(symbols(condition))
        self._declare(names)
        self.solver.push()
        try:
            self.solver.add(self.z3.Not(self._formula(condition)))
            return self._smallest(condition, names)
        finally:
            self.solver.pop()

    def _smallest(self, condition: Condition, names: list[str]) -> Verdict:
        answer = self.solver.check()
        if answer == self.z3.unsat:
            return Proven()
        if answer == self.z3.unknown:
            return Undecided(str(self.solver.reason_unknown()))
        total = self.z3.Sum([self.variables[n] for n in names])
        for goal in [total, *(self.variables[n] for n in names)]:
            self._minimise(goal)
        self.solver.check()
        model = self.solver.model()
        values = {n: self._value(model, variable) for n, variable in self.variables.items()}
        if not fails_at(condition, values, self.facts):
            raise PreskBug("smt", f"{condition} does not fail at {values}")
        return Refuted(tuple((n, values[n]) for n in names))

    def _minimise(self, goal: Any) -> None:
        """Pin `goal` to its least value by bisection; each probe is one incremental check. A probe that Z3 cannot
        answer counts as infeasible: the counterexample stays true, though perhaps not the smallest."""
        self.solver.check()
        low, high = 0, self._value(self.solver.model(), goal)
        while low < high:
            middle = (low + high) // 2
            if self.solver.check(goal <= middle) == self.z3.sat:
                high = self._value(self.solver.model(), goal)
            else:
                low = middle + 1
        self.solver.add(goal == high)

    def _value(self, model: Any, term: Any) -> int:
        return int(model.eval(term, model_completion=True).as_long())

    def _declare(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.variables:
                variable = self.variables[name] = self.z3.Int(name, ctx=self.context)
                self.solver.add(variable >= 0)

    def _formula(self, condition: Condition) -> Any:
        match condition:
            case Equal(a, b):
                return self._compare(a, b, lambda x, y: x == y)
            case AtMost(a, b):
                return self._compare(a, b, lambda x, y: x <= y)
            case Less(a, b):
                return self._compare(a, b, lambda x, y: x < y)
            case Divides(k, a):
                scale = _denominator(a)
                return self._integer_form(a, scale) % (k * scale) == 0
            case _:
                assert_never(condition)

    def _compare(self, a: Linear, b: Linear, relation: Callable[[Any, Any], Any]) -> Any:
        scale = lcm(_denominator(a), _denominator(b))
        return relation(self._integer_form(a, scale), self._integer_form(b, scale))

    def _integer_form(self, form: Linear, scale: int) -> Any:
        """`scale · form`, whose coefficients are integers."""
        terms = [self.variables[s] * int(c * scale) for s, c in form.terms]
        return self.z3.Sum([*terms, self.z3.IntVal(int(form.const * scale), ctx=self.context)])


def _denominator(form: Linear) -> int:
    return lcm(form.const.denominator, *(c.denominator for _, c in form.terms))
