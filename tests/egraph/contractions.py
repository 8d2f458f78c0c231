"""Instances of the rules of contractions: every axis has a label, drawn from the whole down to the factors, so that the
right side is known without computing anything."""

from __future__ import annotations

import random

from presk_rel.core.ir import Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.egraph.patterns import ABSENT, Apply, Name, Pattern
from presk_rel.egraph.rule import Rule
from presk_rel.elab.ty import Type
from tests.egraph.programs import real
from tests.egraph.test_rules_hold import MODULES, NoInstance, Search

Labels = tuple[str, ...]
WIDEST = 3


class Contraction(Search):
    """One attempt to instantiate a rule of the set `contract`."""

    def __init__(self, rule: Rule, rng: random.Random) -> None:
        super().__init__(rule, rng)
        self.values.clear()
        self.lengths: dict[str, int] = {}
        self.labels: dict[str, Labels] = {}
        self.spread: set[str] = set()

    def instance(self) -> Program:
        left, right = self.side.left, self.side.right
        assert isinstance(left, Apply)
        assert isinstance(right, Apply)
        result = self.fresh(self.rng.randint(0, WIDEST))
        if "r" not in self.kinds:
            return self.linear(left, result)
        root = self.draw(left, result)
        factors = [self.labels[a.name] for a in right.args if isinstance(a, Name)]
        if not {*result, *self.spread} <= {a for x in factors for a in x}:
            raise NoInstance
        self.values["r"] = spec(factors, result)
        found = infer(PRIMS["ein"], (self.values["r"],), self.operand_types(right), root, MODULES)
        assert not isinstance(found, str), found
        return self.program(root)

    def linear(self, left: Apply, result: Labels) -> Program:
        """A sum of contractions by one spec: both are drawn alike."""
        first, second = left.args
        assert isinstance(first, Apply)
        assert isinstance(second, Apply)
        root = self.draw(first, result)
        y, z = first.args[0], second.args[0]
        assert isinstance(y, Name)
        assert isinstance(z, Name)
        self.values[z.name] = self.values["u"] = self.values[y.name]
        return self.program(root)

    def operand_types(self, pattern: Apply) -> tuple[Type, ...]:
        return tuple(self.values[a.name] for a in pattern.args if isinstance(a, Name))

    def fresh(self, count: int) -> Labels:
        made = tuple(f"a{len(self.lengths) + i}" for i in range(count))
        self.lengths |= {a: self.rng.choice((1, 2, 2, 3)) for a in made}
        return made

    def some(self, labels: Labels, least: int = 0) -> Labels:
        """Some of these, in any order."""
        return tuple(self.rng.sample(labels, self.rng.randint(min(least, len(labels)), min(WIDEST, len(labels)))))

    def type_for(self, labels: Labels, *, named: bool = False) -> Type:
        bare = not named and self.rng.random() < 0.2
        return real(*(self.lengths[a] if bare else (a, self.lengths[a]) for a in labels))

    def draw(self, pattern: Pattern, labels: Labels) -> Type:
        """The type of a part that has these axes, all that is under it drawn."""
        if isinstance(pattern, Name):
            if self.labels.setdefault(pattern.name, labels) != labels:
                raise NoInstance
            return self.values.setdefault(pattern.name, self.type_for(labels, named=True))
        if pattern.op == "broadcast_like":
            return self.repeated(pattern, labels)
        below = self.below(pattern, labels)
        types = tuple(self.draw(a, x) for a, x in zip(pattern.args, below, strict=True))
        attrs = self.attributes(pattern, below, labels)
        own = self.type_for(labels)
        found = infer(PRIMS[pattern.op], attrs, types, own, MODULES)
        if isinstance(found, str):
            raise NoInstance
        return self.bind(pattern.type.name, found if pattern.op != "ein" else own)

    def repeated(self, pattern: Apply, labels: Labels) -> Type:
        (x, template), whole = pattern.args, self.type_for(labels, named=True)
        assert isinstance(x, Name)
        assert isinstance(template, Name)
        kept = tuple(a for a in labels if self.rng.random() < 0.5)
        self.spread.update(labels)
        along = len(kept) == len(labels) - 1 and self.rng.random() < 0.5
        self.values["a"] = next(a for a in labels if a not in kept) if along else ABSENT
        self.draw(x, kept)
        self.values[template.name] = whole
        return self.bind(pattern.type.name, whole)

    def below(self, pattern: Apply, labels: Labels) -> list[Labels]:
        """The axes of the operands of a part with these axes."""
        inner = self.fresh(self.rng.randint(0, 2))
        match pattern.op:
            case "ein":
                pool = (*labels, *inner)
                return [self.some(pool) for _ in pattern.args]
            case "dot":
                cut = self.rng.randint(0, len(labels))
                summed = self.fresh(1)
                return [(*labels[:cut], *summed), (*summed, *labels[cut:])]
            case "dot_vjp_l" if labels:
                return [(*labels[:-1], *inner), (labels[-1], *inner)]
            case "dot_vjp_r" if labels:
                return [(*inner, labels[0]), (*inner, *labels[1:])]
            case "mul":
                both = [labels, self.some(labels)]
                turned = len(both[0]) > len(both[1]) and self.rng.random() < 0.5  # of equals the first one decides
                return both[::-1] if turned else both
            case "sum":
                whole = [*labels, *(self.fresh(1) if labels else inner)]
                self.rng.shuffle(whole)
                self.values["a"] = next(a for a in whole if a not in labels) if labels else ABSENT
                return [(*(a for a in whole if a not in labels), *labels)]
            case "sum_to":
                whole = [*labels, *inner]
                self.rng.shuffle(whole)
                return [tuple(whole), labels]
            case _:
                raise NoInstance

    def attributes(self, pattern: Apply, below: list[Labels], labels: Labels) -> tuple[str, ...]:
        if pattern.op == "sum":
            return tuple(a for a in (self.values["a"],) if a != ABSENT)
        if pattern.op != "ein":
            return ()
        (attr,) = pattern.attrs
        assert isinstance(attr, Name)
        if not set(labels) <= {a for x in below for a in x}:
            raise NoInstance
        self.values[attr.name] = spec(below, labels)
        return (self.values[attr.name],)


def spec(factors: list[Labels], result: Labels) -> str:
    return (", ".join(" ".join(x) for x in factors) + " -> " + " ".join(result)).strip()
