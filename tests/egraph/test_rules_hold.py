"""Every rule is true: wherever its left side is defined, its right side is, and both have one type and one value.

Instances are found by search: random types for the variables, everything else inferred, the conditions decided. (The
larger patterns of the rules that recognise composites are in `test_composites`, those that merge contractions in
`test_merging`, those that put them in order in `test_contractions`, those that move entries of fills in `test_fills`.)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from presk_rel.core.ir import Attr, Binding, Function, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types
from presk_rel.core.typing_rules import infer
from presk_rel.egraph.codes import ops_of
from presk_rel.egraph.conditions import (
    ROOT,
    TYPE_FACTS,
    Condition,
    last_of,
    read_conditions,
    variables,
    without_axis,
)
from presk_rel.egraph.conditions import (
    entries as entry_count,
)
from presk_rel.egraph.instances import attribute
from presk_rel.egraph.patterns import ABSENT, HIDDEN, Apply, Name, Pattern, read_rule
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import FAMILIES, RULES
from presk_rel.elab.ty import SCALAR_REAL, Applied, Hyper, Init, ModuleDef, ParamField, Params, TupleOf, Type
from tests.egraph.interpreter import Undefined, entries, evaluate, random_value
from tests.egraph.programs import real

WANTED, TRIES, POINTS = 5, 60_000, 3
MODULES = {
    "M": ModuleDef(
        "M", (), 0, (ParamField("f", real(3), Init("zeros")), ParamField("g", real(("a", 2), 3), Init("zeros")))
    )
}
REALS = (
    *[SCALAR_REAL] * 3,
    *[real(("a", 2), ("b", 2))] * 2,
    real(2),
    real(3),
    real(("a", 2)),
    real(("b", 2)),
    real(2, 2),
    real(2, 3),
    real(("a", 2), 3),
    real(("a", 2), 2),
    real(("b", 2), ("a", 2)),
    real(2, ("a", 2)),
)
OTHERS = (Params(Applied("M", ())), TupleOf((real(3), SCALAR_REAL)), Hyper("rat"), Hyper("nat"))
ATTRS: dict[str, tuple[Attr, ...]] = {
    "axis": ("a", "b"),
    "spec": ("a -> a", "a, b -> a b", "a b, b -> a", "a, b, a b -> a", "a, b, a, b -> b", "b, a, b, a b, a -> b"),
    "axis?": ("a", "b", ABSENT),
    "name": ("f", "g"),
    "int": (0, 1, 2, 3),
    "rational": tuple(Fraction(c) for c in ("0", "1", "-1", "2", "1/2", "-3/2")),
}


ATTRIBUTE_FACTS: dict[str, Callable[..., bool]] = {
    "distinct": lambda a, b: a != b,
    "nonzero": lambda c: c != 0,
    "positive": lambda c: c > 0,
    "negative": lambda c: c < 0,
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
    "at-least-1": lambda n: n >= 1,
}


class NoInstance(Exception):
    """The random choices do not make an instance."""


class Search:
    """One attempt to instantiate a rule: the types of terms, and the values of the other variables."""

    def __init__(self, rule: Rule, rng: random.Random) -> None:
        self.rule, self.rng, self.side = rule, rng, read_rule(rule)
        self.kinds = variables(rule)
        self.values: dict[str, Any] = {}
        pool = REALS if rng.random() < 0.9 else (*REALS, *OTHERS)
        few = [rng.choice(pool) for _ in range(rng.choice((1, 2, 2, 3)))]
        for name, kind in self.kinds.items():
            if kind in ("term", "shape"):
                self.values[name] = rng.choice(few)
            elif kind != "type":
                self.values[name] = rng.choice(ATTRS[kind])
        self.few = few

    def instance(self) -> Program:
        root = self.infer(self.side.left)
        self.values[ROOT] = root
        for condition in read_conditions(self.rule):
            if not self.holds(condition):
                raise NoInstance
        if self.infer(self.side.right, root) != root:
            raise NoInstance if isinstance(self.side.right, Name) else AssertionError("the sides' types differ")
        return self.program(root)

    def bind(self, name: str, ty: Type) -> Type:
        if self.values.setdefault(name, ty) != ty:
            raise NoInstance
        return ty

    def infer(self, pattern: Pattern, declared: Type | None = None) -> Type:
        """The type of a side; on the left it is the inferred one, on the right the one that is written."""
        if isinstance(pattern, Name):
            return self.values[pattern.name]
        row = PRIMS[pattern.op]
        given = tuple(attribute(a, self.values) for a in pattern.attrs)
        attrs = tuple(a for a in given if a != ABSENT)
        operands = tuple(self.infer(a) if declared is None else self.infer(a, self.type_of(a)) for a in pattern.args)
        if declared is None:
            guess = self.values.get(pattern.type.name) or self.rng.choice(self.few)
            found = infer(row, attrs, operands, guess, MODULES)
            if isinstance(found, str):
                raise NoInstance
            return self.bind(pattern.type.name, self.ascribed(found))
        found = infer(row, attrs, operands, declared, MODULES)
        assert not isinstance(found, str), found
        assert compatible_types(found, declared), (pattern, found, declared)
        return declared

    def ascribed(self, ty: Type) -> Type:
        """A binding may declare its type with other names than the inferred ones, where one of them lacks a name."""
        return self.rng.choice([ty, ty, *(t for t in REALS if compatible_types(ty, t))])

    def type_of(self, pattern: Pattern) -> Type:
        return self.values[pattern.name if isinstance(pattern, Name) else pattern.type.name]

    def holds(self, c: Condition) -> bool:
        args = [self.values.get(a) if isinstance(a, str) else a for a in c.args]
        match c.row.name:
            case "type":
                return self.bound(c, args[0])
            case "same-type":
                return args[0] == args[1]
            case "typed":
                assert isinstance(c.args[0], Apply)
                operands = tuple(self.values[a.name] for a in c.args[0].args if isinstance(a, Name))
                attrs = tuple(attribute(a, self.values) for a in c.args[0].attrs)
                found = infer(PRIMS[c.args[0].op], attrs, operands, SCALAR_REAL, MODULES)
                return not isinstance(found, str) and self.bound(c, found)
            case "entries":
                count = entry_count(args[0])
                self.values[str(c.args[1])] = count
                return count is not None
            case "scalar-type":
                self.values.setdefault(str(c.args[0]), SCALAR_REAL)
                return TYPE_FACTS["scalar"](self.values[str(c.args[0])])
            case "without-axis":
                return without_axis(*args)
            case "last-of":
                return last_of(*args)
            case "as-inferred":
                return self.inferred(self.side.left, whole=True) is not None
            case name if name in TYPE_FACTS:
                return TYPE_FACTS[name](args[0])
            case name:
                return ATTRIBUTE_FACTS[name](*args)

    def inferred(self, pattern: Pattern, *, whole: bool) -> Type | None:
        """The type of a left side, where every part below the root has the type that is inferred."""
        if isinstance(pattern, Name):
            return self.values[pattern.name]
        parts = tuple(self.inferred(a, whole=False) for a in pattern.args)
        if None in parts:
            return None
        attrs = tuple(a for a in (attribute(a, self.values) for a in pattern.attrs) if a != ABSENT)
        found = infer(PRIMS[pattern.op], attrs, parts, SCALAR_REAL, MODULES)  # type: ignore[arg-type]
        own = self.values[pattern.type.name]
        return own if whole or found == own else None

    def bound(self, c: Condition, ty: Type) -> bool:
        return self.values.setdefault(str(c.args[1]), ty) == ty

    def program(self, root: Type) -> Program:
        """Both sides as functions `left` and `right` of the variables."""
        names = {n: f"p{i}" for i, n in enumerate(k for k, kind in self.kinds.items() if kind in ("term", "shape"))}
        params = tuple(Param(names[n], self.values[n]) for n in names)
        functions: dict[str, Function] = {}
        for name, side in (("left", self.side.left), ("right", self.side.right)):
            bindings: list[Binding] = []
            ret = self.emit(side, names, bindings)
            functions[name] = Function(name, (), params, root, tuple(bindings), ret)
        return Program(MODULES, functions)

    def emit(self, pattern: Pattern, names: dict[str, str], bindings: list[Binding]) -> str:
        if isinstance(pattern, Name):
            return names[pattern.name]
        args = tuple(self.emit(a, names, bindings) for a in pattern.args)
        attrs = tuple(v for a in pattern.attrs if (v := attribute(a, self.values)) != ABSENT)
        bindings.append(Binding(f"v{len(bindings)}", self.values[pattern.type.name], Prim(pattern.op, attrs, args)))
        return bindings[-1].name


def compare(program: Program, rng: random.Random) -> bool:
    """Evaluate both sides at one random point; False where the left side is undefined."""
    low, high = rng.choice(((-2, 2), (0, 3), (-3, 0), (0, 0)))
    params = program.functions["left"].params
    args = [random_value(program, p.type, {}, lambda: mp.mpf(rng.uniform(low, high))) for p in params]
    try:
        left = entries(evaluate(program, "left", {}, args))
    except Undefined:
        return False
    for x, y in zip(left, entries(evaluate(program, "right", {}, args)), strict=True):
        assert mp.almosteq(x, y, rel_eps=mp.mpf(10) ** -30, abs_eps=mp.mpf(10) ** -30), (x, y)
    return True


MOVING = frozenset((
    "index", "slice", "merge", "split", "reshape_like", "split_heads", "merge_heads", "concat", "embed", "slice_params",
    "scatter_index", "slice_vjp", "scatter_params", "set_slice", "stack_params", "embed_vjp", "cross_entropy_vjp",
    "sum_squares",
))  # fmt: skip
"""Operations that `tests.egraph.interpreter` does not know; `test_fills` and `test_dimensions` have their rules."""


def ops(name: str) -> set[str]:
    """The operations of a rule."""
    side = read_rule(RULES[name])
    return ops_of(side.left) | ops_of(side.right)


ELSEWHERE = ("recognise", "contract", "merge")
BY_SEARCH = sorted(n for n, r in RULES.items() if r.ruleset not in ELSEWHERE and not ops(n) & MOVING)


@pytest.mark.parametrize("name", BY_SEARCH)
def test_both_sides_agree(name: str):
    rule = RULES[name]
    rng = random.Random(name)
    found = compared = 0
    seen: set[str] = set()
    with mp.workdps(40):
        for tried in range(TRIES):
            if compared and (found >= WANTED or tried > TRIES // 20):
                break
            search = Search(rule, rng)
            try:
                program = search.instance()
            except NoInstance:
                continue
            key = str({n: str(v) for n, v in search.values.items() if n[0] != HIDDEN})
            if key in seen:
                continue
            seen.add(key)
            found += 1
            compared += sum(compare(program, rng) for _ in range(POINTS))
    assert compared, f"no instance of {name} was evaluated ({found} found)"


def test_names_are_unique_and_every_rule_reads():
    assert sum(map(len, FAMILIES.values())) == len(RULES)
    for rule in RULES.values():
        assert variables(rule)
        assert rule.law
