"""The proof that a closure holds for two terms, as the data of `egraph.proof`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presk_rel.core.ir import Attr
from presk_rel.egraph.budget import WHOLE
from presk_rel.egraph.closure import CONGRUENCE, Closure, Edge, goal
from presk_rel.egraph.conditions import variables
from presk_rel.egraph.instances import FoldChange
from presk_rel.egraph.language import INPUT, Encoded, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import HIDDEN
from presk_rel.egraph.proof import CongruenceStep, FoldStep, Lemma, Proof, RuleStep, Step, Term, TermId, Value
from presk_rel.egraph.templates import shape_operands


@dataclass(slots=True)
class _Writer:
    """Numbers the terms a proof mentions anew, operands first. A template that is another function's term is written as
    the first term of its type in this one, everywhere alike, so that two terms may become one."""

    encoded: Encoded
    table: list[Term] = field(default_factory=list[Term])
    number: dict[TermId, int] = field(default_factory=dict[TermId, int])
    _known: dict[Term, int] = field(default_factory=dict[Term, int])
    _templates: dict[TypeId, TermId] = field(default_factory=dict[TypeId, TermId])

    @property
    def terms(self) -> Terms:
        return self.encoded.terms

    def operands(self, t: TermId) -> tuple[TermId, ...]:
        terms = self.terms
        shapes = shape_operands(terms.op(t))
        if not shapes:
            return terms.args[t]
        return tuple(self.own(a) if i in shapes else a for i, a in enumerate(terms.args[t]))

    def own(self, operand: TermId) -> TermId:
        """What is written for an operand that is read for its type only."""
        ty = self.terms.type[operand]
        if self.terms.templates.get(ty) != operand:
            return operand
        if ty not in self._templates:
            inputs = [h for h in map(self.terms.op, self.terms.reachable(operand)) if h.op == INPUT]
            foreign = not all(map(self.encoded.owns, inputs))
            self._templates[ty] = self.encoded.firsts.get(ty, operand) if foreign else operand
        return self._templates[ty]

    def term(self, root: TermId) -> int:
        stack = [root]
        while stack:
            t = stack[-1]
            missing = [a for a in self.operands(t) if a not in self.number]
            stack += missing
            if not missing:
                stack.pop()
                self._add(t)
        return self.number[root]

    def _add(self, t: TermId) -> None:
        if t in self.number:
            return
        head = self.terms.op(t)
        own = head.op == INPUT and self.encoded.owns(head)
        attrs = head.attrs[:1] if own else head.attrs
        children = tuple(self.number[a] for a in self.operands(t))
        made = Term(head.op, attrs, children, self.terms.table.types[head.type])
        known = self.number[t] = self._known.setdefault(made, len(self.table))
        if known == len(self.table):
            self.table.append(made)


def write_proof(entry: str, encoded: Encoded, closure: Closure, end: TermId, names: Mapping[TermId, str]) -> Proof:
    """The proof that the function computes `end`. `names` are those of bindings. ValueError if the closure does not
    hold for it, OutOfBudget if the user's seconds are over."""
    start = encoded.root
    writer = _Writer(encoded)
    first = writer.term(start)
    last = writer.term(end)
    lemmas: list[Lemma] = []
    number: dict[tuple[TermId, TermId], int] = {}
    for left, right, edges in closure.explain(start, end):
        closure.budget.watch("prove", WHOLE)
        steps = [_step(writer, closure, edge, number) for edge in edges]
        number[left, right] = len(lemmas)
        kept = tuple(s for s in steps if s.before != s.after)
        lemmas.append(Lemma(writer.term(left), writer.term(right), kept))
    named = sorted((writer.number[t], name) for t, name in names.items() if t in writer.number)
    return Proof(entry, tuple(writer.table), tuple(lemmas), first, last, tuple(named))


def trivial_proof(entry: str, encoded: Encoded) -> Proof:
    """The proof that a function equals itself."""
    writer = _Writer(encoded)
    root = writer.term(encoded.root)
    named = sorted((writer.number[t], v) for v, t in encoded.of_name.items() if t in writer.number)
    return Proof(entry, tuple(writer.table), (Lemma(root, root, ()),), root, root, tuple(named))


def _step(writer: _Writer, closure: Closure, edge: Edge, number: dict[tuple[TermId, TermId], int]) -> Step:
    before, after = writer.term(edge.before), writer.term(edge.after)
    if edge.instance != CONGRUENCE:
        instance = closure.instances[edge.instance]
        if isinstance(instance, FoldChange):
            return FoldStep(instance.laws, before, after)
        substitution = tuple(
            (name, _value(writer, kind, instance.values[name]))
            for name, kind in variables(instance.rule).items()
            if not name.startswith(HIDDEN)
        )
        return RuleStep(instance.rule.name, substitution, edge.forward, before, after)
    args = zip(closure.terms.args[edge.before], closure.terms.args[edge.after], strict=True)
    written = zip(writer.table[before].children, writer.table[after].children, strict=True)
    changed = [(i, p, q) for i, ((p, q), (m, n)) in enumerate(zip(args, written, strict=True)) if m != n]
    return CongruenceStep(
        before,
        after,
        tuple(i for i, _, _ in changed),
        tuple(number[goal(p, q)] for _, p, q in changed),
        tuple(goal(p, q) == (p, q) for _, p, q in changed),
    )


def _value(writer: _Writer, kind: str, value: int | Attr) -> Value:
    """`value` is the id of a term or of a type, or an attribute: what it is, the variable's kind says."""
    if kind in ("term", "shape"):
        assert isinstance(value, int)
        return writer.term(value if kind == "term" else writer.own(value))
    if kind == "type":
        assert isinstance(value, int)
        return writer.terms.table.types[value]
    return value
