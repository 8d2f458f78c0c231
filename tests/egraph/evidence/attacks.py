"""Instances of rules made without regard to their conditions, for the checker to judge: types of equal lengths, axes
of one name or of none, prefixes, axes and bounds that are out of place, another type declared than inferred."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import mpmath as mp

from presk_rel.core.ir import Binding, Function, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types
from presk_rel.core.typing_rules import infer
from presk_rel.egraph.instances import attribute
from presk_rel.egraph.patterns import ABSENT, Apply, Attribute, Name, Pattern, read_rule, read_sexp
from presk_rel.egraph.proof import Lemma, Proof, RuleStep, Term
from presk_rel.egraph.rule import Rule
from presk_rel.elab.ty import SCALAR_REAL, Applied, Axis, Idx, Mask, Params, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant, symbol
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.egraph.programs import real
from tests.egraph.test_rules_hold import MODULES

A, B, EACH = ("a", 2), ("b", 2), ("each", 2)


def prefixed(*axes: int | str | tuple[str, int | str]) -> Real:
    """A type with a prefix."""
    return Real(Shape("S", real(*axes).shape.axes))


TYPES: tuple[Type, ...] = (
    *[SCALAR_REAL] * 3,
    *(real(*axes) for axes in ((2,), (A,), (B,), (A, B), (B, A), (2, 2), (A, 2), (2, A), (2, B), (B, 2))),
    *(real(*axes) for axes in ((A, B, 2), (2, A, B), (A, 2, B), (EACH, A, B), (EACH, B), (EACH, 2, A))),
    *(real(*axes) for axes in ((("a", 1),), (A, ("b", 1)), (("a", 4),), (("a", 3), B), ("N",), (("a", "N"), B))),
    *(real(*axes) for axes in ((("p", 2), ("q", 2)), (("heads", 2), 2, ("hd", 2)), (2, 4))),
    *(prefixed(*axes) for axes in ((), (2,), (A,), (A, B), (2, 2))),
)
LARGE = tuple(real(*axes) for axes in ((A, B, 2), (A, 2, B), (2, A, B), (A, 2, 2), (2, 2, B), (2, 2, 2), (A, B), (B,)))
"""Types that take each other's place when names are left out and given anew."""
OTHERS: tuple[Type, ...] = (
    Idx(constant(2), real(2).shape),
    Idx(constant(2), real(A).shape),
    Mask(real(2, 2).shape),
    Params(Applied("M", ())),
    TupleOf((real(2), real(2))),
    TupleOf((real(A), SCALAR_REAL)),
)
NAMES = ("a", "b", "each", "p", "q", ABSENT)
ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "axis": NAMES,
    "axis?": NAMES,
    "name": ("p", "q", "a", "b", "f", "g"),
    "place": (*NAMES, 0, 1),
    "int": (-1, 0, 1, 2, 3),
    "rational": tuple(Fraction(c) for c in ("0", "1", "-1", "2", "1/2", "4")),
    "dim": (*map(constant, (-2, -1, 0, 1, 2, 3, 4)), symbol("N")),
}
LETTERS = ("a", "b", "c", "d", "each")
RIGHTLY = 0.75
"""How often a choice is made as the rule would have it."""


class NoInstance(Exception):
    """The random choices make no well-typed terms."""


@dataclass(slots=True)
class Attack:
    """One instance: what the variables stand for, and the terms of both sides."""

    rule: Rule
    rng: random.Random
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    terms: list[Term] = field(default_factory=list[Term])
    few: list[Type] = field(default_factory=list[Type])

    def proof(self) -> Proof:
        """That the rule turns its left side into its right one. NoInstance where that is no question of conditions."""
        side = read_rule(self.rule)
        pool = self.rng.choice((TYPES, TYPES, TYPES, LARGE, (*OTHERS, real(2), SCALAR_REAL)))
        self.few = [self.rng.choice(pool) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        left = self.term(side.left, None)
        for text in self.rule.conditions:
            self.bound(read_sexp(text), left)
        right = self.term(side.right, self.terms[left].type)
        if self.terms[right].type != self.terms[left].type:
            raise NoInstance
        pairs = tuple((n, v) for n, v in self.values.items() if not n.startswith("#"))
        return Proof(
            "f",
            tuple(self.terms),
            (Lemma(left, right, (RuleStep(self.rule.name, pairs, True, left, right),)),),
            left,
            right,
        )

    # --------------------------------------------------------------------------------------------------- terms

    def made(self, term: Term) -> int:
        if term not in self.terms:
            self.terms.append(term)
        return self.terms.index(term)

    def term(self, pattern: Pattern, root: Type | None) -> int:
        """The term of a pattern; on the right side `root` is the type that it has to have."""
        if isinstance(pattern, Name):
            if pattern.name not in self.values:
                number = sum(t.op == "input" for t in self.terms)
                self.values[pattern.name] = self.made(Term("input", (f"p{number}",), (), self.rng.choice(self.few)))
            return self.values[pattern.name]
        children = tuple(self.term(a, None) for a in pattern.args)
        types = tuple(self.terms[c].type for c in children)
        known = root or self.values.get(pattern.type.name)
        attrs = self.attributes(pattern, types, len(known.shape.axes) if isinstance(known, Real) else None)
        found = infer(PRIMS[pattern.op], attrs, types, known or self.rng.choice(self.few), MODULES)
        if isinstance(found, str):
            raise NoInstance
        own = known or self.ascribed(found)
        self.values.setdefault(pattern.type.name, own)
        if not compatible_types(found, own) or self.values[pattern.type.name] != own:
            raise NoInstance
        return self.made(Term(pattern.op, attrs, children, own))

    def ascribed(self, ty: Type) -> Type:
        others = [t for t in (*TYPES, *self.few) if compatible_types(ty, t)]
        return ty if self.rng.random() < RIGHTLY or not others else self.rng.choice(others)

    # --------------------------------------------------------------------------------------------------- attributes

    def attributes(self, pattern: Apply, types: tuple[Type, ...], rank: int | None) -> tuple[Any, ...]:
        """The attributes of an operation on operands of these types whose result has so many axes."""
        given = [self.attribute(a, k, types, rank) for a, k in zip(pattern.attrs, pattern.attr_kinds, strict=True)]
        return tuple(v for v in given if v != ABSENT)

    def attribute(self, attr: Attribute, kind: str, types: tuple[Type, ...], rank: int | None) -> Any:
        if isinstance(attr, Name) and attr.name not in self.values:
            self.values[attr.name] = self.spec(types, rank) if kind == "spec" else self.drawn(kind, types)
        try:
            return attribute(attr, self.values)
        except (KeyError, ZeroDivisionError) as error:
            raise NoInstance from error

    def drawn(self, kind: str, types: tuple[Type, ...]) -> Any:
        names = [a.name for t in types if isinstance(t, Real) for a in t.shape.axes if a.name is not None]
        if kind in ("axis", "axis?", "place") and names and self.rng.random() < RIGHTLY:
            return self.rng.choice(names)
        return self.rng.choice(ATTRIBUTES[kind])

    def spec(self, types: tuple[Type, ...], rank: int | None) -> str:
        """The axes of operands of these types, and of the result; now and then with an axis that comes first."""
        if not all(isinstance(t, Real) and len(t.shape.axes) <= len(LETTERS) for t in types):
            raise NoInstance
        lists = [self.rng.sample(LETTERS, len(t.shape.axes)) for t in types if isinstance(t, Real)]
        first = self.rng.random() < 0.5
        for names in lists if first else ():
            if "each" in names:
                names.sort(key=lambda n: n != "each")
        known = sorted({n for names in lists for n in names})
        count = self.rng.randint(0, min(3, len(known))) if rank is None else min(rank, len(known))
        result = self.rng.sample(known, count)
        if first and "each" in result:
            result.sort(key=lambda n: n != "each")
        return (", ".join(map(" ".join, lists)) + " -> " + " ".join(result)).strip()

    # --------------------------------------------------------------------------------------------------- conditions

    def bound(self, condition: Any, left: int) -> None:
        """Choose what only a condition says, mostly as it says it."""
        name, *arguments = condition
        last = arguments[-1] if arguments else None
        if not isinstance(last, str) or last in self.values or last == "root" or last.lstrip("-").isdigit():
            return
        true = self.true(str(name), arguments, left)
        if true is not None and self.rng.random() < RIGHTLY:
            self.values[last] = true
        elif name in ("type", "typed", "scalar-type"):
            self.values[last] = self.rng.choice(self.few)
        elif name in ("length", "stack-of"):
            self.values[last] = self.rng.choice(ATTRIBUTES["dim"])
        elif name == "entries":
            self.values[last] = self.rng.choice(ATTRIBUTES["rational"])

    def true(self, name: str, arguments: list[Any], left: int) -> Any:
        first = left if arguments[0] == "root" else self.values.get(str(arguments[0]))
        ty = self.terms[first].type if isinstance(first, int) and name in ("type", "length", "stack-of") else None
        match name, ty:
            case "type", _:
                return ty
            case "scalar-type", _:
                return SCALAR_REAL
            case (("length" | "stack-of"), Real(shape)):
                return next((a.length for a in shape.axes if a.name == self.values.get(arguments[1])), None)
            case "entries", _ if isinstance(first, Real) and all(a.length.is_constant for a in first.shape.axes):
                count = Fraction(1)
                for a in first.shape.axes:
                    count *= a.length.const
                return count
            case _:
                return None


def programs(proof: Proof) -> tuple[Program, Program]:
    """The sides of the proof's claim as functions of all its inputs."""
    inputs = {t.attrs[0]: t.type for t in proof.terms if t.op == "input"}
    params = tuple(Param(str(n), t) for n, t in inputs.items())
    made: list[Program] = []
    for root in (proof.start, proof.end):
        needed, stack = {root}, [root]
        while stack:
            new = [c for c in proof.terms[stack.pop()].children if c not in needed]
            needed.update(new)
            stack += new
        names = [str(t.attrs[0]) if t.op == "input" else f"v{i}" for i, t in enumerate(proof.terms)]
        bindings = tuple(
            Binding(names[i], t.type, Prim(t.op, t.attrs, tuple(names[c] for c in t.children)))
            for i, t in enumerate(proof.terms)
            if i in needed and t.op != "input"
        )
        f = Function("f", ("N",), params, proof.terms[root].type, bindings, names[root])
        made.append(Program(MODULES, {"f": f}))
    return made[0], made[1]


def differ(left: Program, right: Program, rng: random.Random, points: int = 3) -> str | None:
    """Where the sides have different values: the left one has one, the right one another or none."""
    for _ in range(points):
        dims = {"N": rng.choice((1, 2, 3))}
        low, high = rng.choice(((-2, 2), (0.3, 2)))
        draw = lambda a=low, b=high: mp.mpf(rng.uniform(a, b))  # noqa: E731
        args = [random_value(left, p.type, dims, (2,), draw) for p in left.functions["f"].params]
        found = [_value(side, dims, args) for side in (left, right)]
        if found[0] is None:
            continue
        if found[1] is None or len(found[0]) != len(found[1]):
            return f"{found[0]} against {found[1]} at {dims}"
        if not all(_close(x, y) for x, y in zip(found[0], found[1], strict=True)):
            return f"{found[0]} against {found[1]} at {dims}"
    return None


def _value(program: Program, dims: dict[str, int], args: list[Any]) -> list[Any] | None:
    """The entries of the result; None where it, or a value on the way to it, is none of the reals."""
    f = program.functions["f"]
    kept = [b.name for b in f.bindings] or [f.ret]
    types = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    if not all(_within(b, types, dims) for b in f.bindings):
        return None
    whole = Binding("whole", TupleOf(tuple(types[n] for n in kept)), Prim("tuple", (), tuple(kept)))
    every = replace(f, bindings=(*f.bindings, whole), ret="whole", result=whole.type)
    try:
        values = evaluate(Program(program.modules, {"f": every}), "f", dims, args)
    except (ZeroDivisionError, IndexError, ValueError, OverflowError, TypeError):
        return None
    if not all(not isinstance(x, mp.mpc) and mp.isfinite(x) for x in flat(values)):
        return None
    return flat(values[kept.index(f.ret)] if f.ret in kept else args[[p.name for p in f.params].index(f.ret)])


def _within(b: Binding, types: dict[str, Type], dims: dict[str, int]) -> bool:
    """Whether what an operation selects is there at these dimensions."""
    assert isinstance(b.op, Prim)
    ends = [int(a.evaluate(dims)) for a in b.op.attrs if isinstance(a, Linear)]
    match b.op.op:
        case "index" | "slice" | "scatter_index" | "slice_vjp":
            axes = _axes(types[b.op.args[b.op.op in ("scatter_index", "slice_vjp")]])
            place = b.op.attrs[0]
            n = next(int(a.length.evaluate(dims)) for k, a in enumerate(axes) if place in (k, a.name))
            return -n <= ends[0] < n if len(ends) == 1 else 0 <= ends[0] <= ends[1] <= n
        case "slice_params" | "set_slice" | "scatter_params":
            axes = _axes(types[b.op.args[b.op.op == "scatter_params"]])
            return 0 <= ends[0] < int(axes[0].length.evaluate(dims))
        case _:
            return True


def _axes(ty: Type) -> tuple[Axis, ...]:
    assert isinstance(ty, Real | Idx | Mask)
    return ty.shape.axes


def _close(x: Any, y: Any) -> bool:
    return bool(mp.almosteq(x, y, rel_eps=mp.mpf(10) ** -15, abs_eps=mp.mpf(10) ** -15))
