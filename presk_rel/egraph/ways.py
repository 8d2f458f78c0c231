"""The ways to keep residuals of folds, side by side in one e-graph (`folds.residuals` makes them)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from presk_rel.core.ir import Fold, Program
from presk_rel.egraph.budget import Budget
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.folds.residuals import Recomputed, recomputed
from presk_rel.egraph.folds.views import Path, part_type
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.parts import Part, reached
from presk_rel.egraph.proof import TermId


def residual_ways(flat: Program, entry: str, dims: Mapping[str, int], budget: Budget) -> list[Recomputed | None]:
    """The ways to keep residuals that extraction may choose from: all of them (None), those that are cheaper to keep
    before anything is optimized, and as few as may be. Their bodies have different names."""
    functions = reached(flat, entry)
    model = CostModel(flat.modules, dict(dims), dict(flat.functions))
    least = recomputed(functions, flat.functions, model, budget, everything=True)
    if least is None or budget.late():
        return [None]
    chosen = recomputed(functions, flat.functions, model, budget)
    if chosen is None or chosen == least:
        return [None, least]
    least = recomputed(functions, [*flat.functions, *chosen.functions], model, budget, everything=True)
    return [None, chosen, least]


@dataclass(slots=True)
class Folds:
    """The functions with smaller folds: `parts` each once, `keeping` the names of those where all residuals are kept;
    `others` are functions in `parts` as other ways to keep residuals have them, equal to these. `changed` are values
    of folds, equal to what took their place, in whichever way."""

    parts: list[Part]
    others: list[Part]
    changed: list[TermId]
    keeping: set[str]

    def add(self, parts: list[Part]) -> None:
        """The functions of one more way; the first one keeps all."""
        if not self.parts:
            self.keeping = {p.name for p in parts}
        known = {p.name: p.root for p in (*self.parts, *self.others)}
        self.others += [p for p in parts if p.name in known and known[p.name] != p.root]
        self.parts += [p for p in parts if p.name not in known]

    def map(self, f: Callable[[Part], Part]) -> Folds:
        return Folds(list(map(f, self.parts)), list(map(f, self.others)), self.changed, self.keeping)

    def equal(self, closure: Closure, loaded: list[TermId]) -> list[tuple[TermId, TermId]]:
        """What is loaded of one value in different ways."""
        classes = {closure.find(t) for t in self.changed} if self.others else set[TermId]()
        first: dict[TermId, TermId] = {}
        same = [(first.setdefault(closure.find(t), t), t) for t in loaded if closure.find(t) in classes]
        return [(a, b) for a, b in same if a != b]


def bodies_first(parts: list[Part], others: list[Part]) -> list[Part]:
    """The functions in an order in which the bodies of a function's folds come before it, as the `others` of its name
    have them too."""
    named = {p.name: p for p in parts}
    folded: dict[str, list[str]] = {}
    for p in (*parts, *others):
        folded.setdefault(p.name, []).extend(b.op.body for b in p.function.bindings if isinstance(b.op, Fold))
    order: dict[str, Part] = {}
    stack = [(p, False) for p in reversed(parts)]
    while stack:
        part, ready = stack.pop()
        if ready:
            order.setdefault(part.name, part)
        elif part.name not in order:
            stack += [(part, True), *((named[n], False) for n in folded[part.name] if n in named)]
    return list(order.values())


def projected(terms: Terms, term: TermId, path: Path) -> TermId:
    """The part of a value that a path leads to."""
    for k in path:
        ty = part_type(terms.table.types[terms.type[term]], (k,))
        term = terms.make(terms.intern(Head("proj", (k,), terms.table.intern(ty))), (term,))
    return term
