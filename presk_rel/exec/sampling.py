"""Samples the rules that a proof uses: both sides evaluated in ball arithmetic on fresh inputs must overlap in every
entry.

The second, numerical, opinion of `presk prove --verify`: the checker says that a step is an instance of a rule, this
says that the rule is true. An instance is taken from the proof with its variables as inputs, at random small
dimensions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from math import lcm
from typing import Any

import numpy as np

from presk_rel.core.expand import expanded
from presk_rel.core.ir import Binding, Function, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import symbols_in
from presk_rel.diagnostics import PreskError
from presk_rel.egraph.conditions import variables
from presk_rel.egraph.patterns import Apply, Pattern, read_rule
from presk_rel.egraph.proof import Proof, RuleStep, TermId
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import (
    Hyper,
    Idx,
    Key,
    Mask,
    ModuleDef,
    Params,
    Real,
    Shape,
    TupleOf,
    Type,
    field_names,
    field_type,
)  # fmt: skip
from presk_rel.exec.smaller import smaller
from presk_rel.exec.values import (
    HyperValue,
    IndexTensor,
    KeyValue,
    MaskTensor,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    leaves,
    map_leaves,
)  # fmt: skip

PRECISION = 256
INSTANCES = 4
"""Instances of a rule that are sampled, each of another form: of those in the proof, the smallest."""
MIDDLE = 1_000
"""Entries of an instance's inputs beyond which its constant lengths are made small, where it stays an instance."""
LARGE = 50_000
"""Entries of an instance's inputs beyond which it is sampled once, and only if the rule has no smaller one."""
TRIALS = 12
"""Attempts per instance: an input outside a rule's domain (a logarithm of a negative number) is drawn again."""


@dataclass(slots=True)
class Sampled:
    """How one rule fared: evaluations of both sides, and the first disagreement in words."""

    rule: str
    evaluations: int = 0
    disagreement: str | None = None


def sample_rules(
    proof: Proof, modules: Mapping[str, ModuleDef], rules: Mapping[str, Rule] = RULES, seed: int = 0
) -> list[Sampled]:
    """Sample every rule that occurs in `proof`, in order of first use."""
    forms: dict[str, dict[str, tuple[Proof, RuleStep]]] = {}
    for part, step in _steps(proof):
        form = f"{part.terms[step.before].type} {step.forward}"
        forms.setdefault(step.rule, {}).setdefault(form, (part, step))
    found: list[Sampled] = []
    for name, given in forms.items():
        found.append(Sampled(name))
        sizes = [(_entries(part, step, modules), part, step) for part, step in given.values()]
        sizes.sort(key=lambda x: x[0])
        for k, (size, part, step) in enumerate(sizes[:INSTANCES]):
            if found[-1].disagreement is not None or (size > LARGE and found[-1].evaluations):
                break
            rng = random.Random(f"{seed} {name} {k + 1}")
            instance = _Instance(part, step, rules[name], dict(modules), rng)
            if size > MIDDLE and instance.shrink(rules):
                size = _entries(instance.proof, instance.step, modules)
            instance.into(found[-1], 2 if size <= LARGE else 1)
    return found


def _entries(proof: Proof, step: RuleStep, modules: Mapping[str, ModuleDef]) -> int:
    """The entries of what the variables of an instance stand for, dimensions counted as two."""
    from presk_rel.egraph.cost import CostModel

    types = [proof.terms[v].type for _, v in step.substitution if isinstance(v, int) and 0 <= v < len(proof.terms)]
    model = CostModel(dict(modules), dict.fromkeys(set[str]().union(*map(symbols_in, types)), 2))
    return sum(model.bytes(t) // 4 for t in types)


def _steps(proof: Proof) -> Iterator[tuple[Proof, RuleStep]]:
    """The rule steps with the part of the proof that each is in."""
    for part in proof.parts:
        for lemma in part.lemmas:
            yield from ((part, s) for s in lemma.steps if isinstance(s, RuleStep))


@dataclass(slots=True)
class _Instance:
    proof: Proof
    step: RuleStep
    rule: Rule
    modules: dict[str, ModuleDef]
    rng: random.Random
    dims: dict[str, int] = field(default_factory=dict[str, int])

    def into(self, result: Sampled, times: int) -> None:
        """Evaluate both sides at up to so many inputs."""
        cut = self.inputs()
        functions = [self.side(self.step.before, cut), self.side(self.step.after, cut)]
        done = 0
        for trial in range(TRIALS):
            if done == times:
                break
            values = self.evaluate(functions, positive=trial % 2 == 1)
            if values is None:
                continue
            done += 1
            result.evaluations += 1
            result.disagreement = result.disagreement or self.compare(*values)

    def shrink(self, rules: Mapping[str, Rule]) -> bool:
        """Make its constant lengths small, if the checker takes what it then is for an instance of the rule."""
        cut = self.inputs()
        sides = [self.side(root, cut) for root in (self.step.before, self.step.after)]
        computed = {int(b.name.removeprefix("v")) for side in sides for b in side.bindings}
        found = smaller(self.proof, self.step, computed, cut | self.variables(), rules, self.modules)
        if found is not None:
            self.proof, self.step = found
        return found is not None

    def inputs(self) -> set[int]:
        """The terms that the rule's variables stand for. One that is read for its type only may be a part of a side, or
        a side: it is computed as that; so is one that an operation of the rule stands for too (0 in `x + 0 = x` for
        x = 0)."""
        cut = self.variables("term") - self.operations()
        stack = [self.step.before, self.step.after]
        inside = set(stack)
        while stack:
            term = self.proof.terms[stack.pop()]
            unread = PRIMS[term.op].shape_only if term.op in PRIMS else ()
            below = {c for i, c in enumerate(term.children) if i not in unread} - cut - inside
            inside |= below
            stack += below
        return cut | (self.variables("shape") - inside)

    def variables(self, *which: str) -> set[int]:
        """The terms that variables of these kinds stand for, of all kinds if none is named."""
        kinds = variables(self.rule)
        named = which or ("term", "shape")
        return {v for name, v in self.step.substitution if isinstance(v, int) and kinds[name] in named}

    def operations(self) -> set[int]:
        """The terms that the rule's own operations stand for, the roots among them (`x⁰ = 1` for x = 1)."""
        sides = read_rule(self.rule)
        ends = (self.step.before, self.step.after) if self.step.forward else (self.step.after, self.step.before)
        stack: list[tuple[Pattern, int]] = [(sides.left, ends[0]), (sides.right, ends[1])]
        found: set[int] = set()
        while stack:
            pattern, term = stack.pop()
            if isinstance(pattern, Apply):
                found.add(term)
                stack += zip(pattern.args, self.proof.terms[term].children, strict=False)
        return found

    def side(self, root: TermId, cut: set[int]) -> Function:
        """The function that computes a term from the terms it is cut at."""
        terms = self.proof.terms
        needed, stack = {root}, [root]
        while stack:
            top = stack.pop()
            below = () if top in cut or terms[top].op == "input" else terms[top].children
            stack.extend(c for c in below if c not in needed)
            needed.update(below)
        leaf = {i for i in needed if i in cut or terms[i].op == "input"}
        params = tuple(Param(f"v{i}", terms[i].type) for i in sorted(cut | leaf))
        bindings = tuple(
            Binding(
                f"v{i}", terms[i].type, Prim(terms[i].op, terms[i].attrs, tuple(f"v{c}" for c in terms[i].children))
            )
            for i in sorted(needed - leaf)
        )
        return Function("side", tuple(sorted(self.symbols())), params, terms[root].type, bindings, f"v{root}")

    def symbols(self) -> set[str]:
        return set[str]().union(*(symbols_in(t.type) for t in self.proof.terms))

    def multiple(self) -> int:
        """What dims are multiples of, so that every length is a natural number (`D / 12`)."""
        from presk_rel.core.shapes import forms_in

        forms = (form for t in self.proof.terms for form in forms_in(t.type))
        return lcm(1, *(c.denominator for form in forms for _, c in form.terms))

    def evaluate(self, functions: list[Function], *, positive: bool) -> list[Value] | None:
        """Both sides at one random input; None where a side is undefined there, or where dims make no shape."""
        from presk_rel.exec.exact.balls import Balls
        from presk_rel.exec.exact.checked import CheckedInterpreter

        flint: Any = import_module("flint")
        step = self.multiple()
        self.dims = {s: self.rng.randrange(1, 4) * step for s in sorted(self.symbols())}
        before = flint.ctx.prec
        flint.ctx.prec = PRECISION
        try:
            inputs: dict[str, Value] = {}
            out: list[Value] = []
            for f in functions:
                kernel = Balls()
                for p in f.params:
                    inputs.setdefault(p.name, self.fresh(p.type, positive=positive))
                args = tuple(_injected(kernel, inputs[p.name]) for p in f.params)
                side = expanded(Program(self.modules, {"side": f}))
                out.append(CheckedInterpreter(side, kernel).run("side", args, self.dims))
                if kernel.events.first() is not None:
                    return None
            return out
        except PreskError:
            return None
        finally:
            flint.ctx.prec = before

    def compare(self, left: Value, right: Value) -> str | None:
        for (path, a), (_, b) in zip(leaves(left), leaves(right), strict=True):
            if isinstance(a, Tensor) and isinstance(b, Tensor):
                for x, y in zip(np.asarray(a.data).reshape(-1), np.asarray(b.data).reshape(-1), strict=True):
                    if not x.overlaps(y):
                        return f"{x} against {y}" + (f" at `{path}`" if path else "") + f", for {self.dims}"
        return None

    # ------------------------------------------------------------------------------------------------ fresh inputs

    def fresh(self, ty: Type, *, positive: bool) -> Value:
        match ty:
            case Real(shape):
                return Tensor(self.axes(shape), self.reals(self.axes(shape), positive))
            case Idx(bound, shape):
                limit = int(bound.evaluate(self.dims))
                sizes = tuple(n for _, n in self.axes(shape))
                return IndexTensor(limit, self.axes(shape), np.array(self.below(limit, sizes), dtype=np.int64))
            case Mask(shape):
                sizes = tuple(n for _, n in self.axes(shape))
                return MaskTensor(self.axes(shape), np.array(self.below(2, sizes), dtype=bool))
            case Hyper(kind):
                return HyperValue(kind, Fraction(self.rng.randrange(1, 5)))
            case Key():
                return KeyValue(self.rng.randbytes(32))
            case TupleOf(items):
                return TupleValue(tuple(self.fresh(t, positive=positive) for t in items))
            case Params(instance):
                types = ((n, field_type(self.modules, instance, n)) for n in field_names(self.modules, instance))
                return TreeValue({n: self.fresh(t, positive=positive) for n, t in types if t is not None})
            case _:
                raise PreskError([])

    def axes(self, shape: Shape) -> tuple[tuple[str | None, int], ...]:
        return tuple((a.name, int(a.length.evaluate(self.dims))) for a in (*shape.front, *shape.axes))

    def reals(self, axes: tuple[tuple[str | None, int], ...], positive: bool) -> Any:
        count = int(np.prod([n for _, n in axes], dtype=np.int64))
        draws = [self.rng.uniform(0.1, 2.0) if positive else self.rng.gauss(0.0, 1.0) for _ in range(count)]
        return np.array(draws, dtype=np.float64).reshape([n for _, n in axes])

    def below(self, limit: int, sizes: tuple[int, ...]) -> Any:
        count = int(np.prod(sizes, dtype=np.int64))
        return np.array([self.rng.randrange(limit) for _ in range(count)]).reshape(sizes)


def _injected(kernel: Any, value: Value) -> Value:
    def leaf(x: Any) -> Value:
        return Tensor(x.axes, kernel.inject(x.data)) if isinstance(x, Tensor) else x

    return map_leaves(leaf, value)
