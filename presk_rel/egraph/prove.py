"""The proof that a closure holds for two terms, as the data of `egraph.proof`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presk_rel.egraph.closure import CONGRUENCE, Closure, Edge, goal
from presk_rel.egraph.conditions import variables
from presk_rel.egraph.language import Encoded, Terms
from presk_rel.egraph.patterns import HIDDEN
from presk_rel.egraph.proof import CongruenceStep, Lemma, Proof, RuleStep, Step, Term, TermId, Value


@dataclass(slots=True)
class _Writer:
    """Numbers the terms a proof mentions anew, operands first."""

    terms: Terms
    table: list[Term] = field(default_factory=list[Term])
    number: dict[TermId, int] = field(default_factory=dict[TermId, int])

    def term(self, root: TermId) -> int:
        stack = [root]
        while stack:
            t = stack[-1]
            missing = [a for a in self.terms.args[t] if a not in self.number]
            stack += missing
            if not missing:
                stack.pop()
                self._add(t)
        return self.number[root]

    def _add(self, t: TermId) -> None:
        if t in self.number:
            return
        head = self.terms.op(t)
        self.number[t] = len(self.table)
        children = tuple(self.number[a] for a in self.terms.args[t])
        self.table.append(Term(head.op, head.attrs, children, self.terms.table.types[head.type]))


def write_proof(entry: str, closure: Closure, start: TermId, end: TermId, names: Mapping[TermId, str]) -> Proof:
    """The proof of `start = end`; ValueError if the closure does not hold for them. `names` are those of bindings."""
    writer = _Writer(closure.terms)
    first = writer.term(start)
    last = writer.term(end)
    lemmas: list[Lemma] = []
    number: dict[tuple[TermId, TermId], int] = {}
    for left, right, edges in closure.explain(start, end):
        steps = tuple(_step(writer, closure, edge, number) for edge in edges)
        number[left, right] = len(lemmas)
        lemmas.append(Lemma(writer.term(left), writer.term(right), steps))
    named = sorted((writer.number[t], name) for t, name in names.items() if t in writer.number)
    return Proof(entry, tuple(writer.table), tuple(lemmas), first, last, tuple(named))


def trivial_proof(entry: str, encoded: Encoded) -> Proof:
    """The proof that a function equals itself."""
    writer = _Writer(encoded.terms)
    root = writer.term(encoded.root)
    named = sorted((writer.number[t], v) for v, t in encoded.of_name.items() if t in writer.number)
    return Proof(entry, tuple(writer.table), (Lemma(root, root, ()),), root, root, tuple(named))


def _step(writer: _Writer, closure: Closure, edge: Edge, number: dict[tuple[TermId, TermId], int]) -> Step:
    before, after = writer.term(edge.before), writer.term(edge.after)
    if edge.instance != CONGRUENCE:
        instance = closure.instances[edge.instance]
        substitution = tuple(
            (name, _value(writer, kind, instance.values[name]))
            for name, kind in variables(instance.rule).items()
            if not name.startswith(HIDDEN)
        )
        return RuleStep(instance.rule.name, substitution, edge.forward, before, after)
    args = zip(closure.terms.args[edge.before], closure.terms.args[edge.after], strict=True)
    changed = [(i, p, q) for i, (p, q) in enumerate(args) if p != q]
    return CongruenceStep(
        before,
        after,
        tuple(i for i, _, _ in changed),
        tuple(number[goal(p, q)] for _, p, q in changed),
        tuple(goal(p, q) == (p, q) for _, p, q in changed),
    )


def _value(writer: _Writer, kind: str, value: object) -> Value:
    assert isinstance(value, (int, str)) or hasattr(value, "numerator") or hasattr(value, "terms")
    if kind in ("term", "shape"):
        assert isinstance(value, int)
        return writer.term(value)
    if kind == "type":
        assert isinstance(value, int)
        return writer.terms.table.types[value]
    return value  # type: ignore[return-value]
