"""Explanations for people: the claim, then one line per step from the parameter to the result, calls opened below
their line. Bookkeeping premises are left out here (`why_json` has them all)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from presk_rel.diagnostics import Span
from presk_rel.rules.analysis import CoreAnalysis
from presk_rel.rules.culprit import culprit
from presk_rel.rules.proof import Absence, Attempt, Fact, ProofNode
from presk_rel.rules.why import Explanation, Proven, Question, Refuted
from presk_rel.rules.why_words import CLASS, place, sentence, short

OPENED = 30
"""Calls within calls that are opened; deeper ones are named only."""

WIDTH = 64
"""The column at which rule names start, where the text leaves room."""


def explanations_text(explanations: Sequence[Explanation], analysis: CoreAnalysis, question: Question) -> str:
    """All explanations; one line if there is nothing to explain."""
    if not explanations:
        params = [f"`{p}`" for f, p in analysis.classes if f == question.function]
        return f"`{question.function}` is C∞ in {', '.join(params) if params else 'nothing: it has no parameters'}"
    printer = _Printer(analysis.spans)
    for i, explanation in enumerate(explanations):
        if i:
            printer.lines.append("")
        match explanation:
            case Proven():
                printer.proof(explanation)
            case Refuted():
                printer.refutation(explanation)
    return "\n".join(printer.lines)


@dataclass(slots=True)
class _Printer:
    spans: Mapping[str, Span]
    lines: list[str] = field(default_factory=list[str])
    opened: set[int] = field(default_factory=set[int])

    def proof(self, explanation: Proven) -> None:
        node = explanation.proof
        self.line("", _claim(explanation.goal), node.rule, place(node, self.spans))
        self.blame(explanation)
        if explanation.goal[0] == "effect":
            self.effect(node)
        else:
            self.paths(_summary(node))

    def blame(self, explanation: Proven) -> None:
        relation, row = explanation.goal
        if relation != "regularity" or row[2] == "Cinf":
            return
        primitive, site = culprit(explanation.proof)
        what = "a function value that may be anything" if primitive is None else f"`{primitive}`"
        span = self.spans.get(site)
        self.lines.append(f"because of {what}" + ("" if span is None else f" at {span}"))

    def line(self, lead: str, text: str, rule: str | None, span: Span | None) -> None:
        said = f"{lead}{text}"
        if rule is not None:
            said = f"{said:<{WIDTH}}  [{rule}]"
        self.lines.append(said if span is None else f"{said}  {span}")

    def effect(self, node: ProofNode) -> None:
        """The chain of calls down to the primitive that has the effect."""
        while node.rule == "effects.via-call":
            named, node_below = node.because
            assert named.fact is not None
            _, fn, callee = named.fact[1]
            self.line("└─ ", f"`{fn}` calls `{callee}`", node.rule, place(named, self.spans))
            node = node_below
        (performed,) = node.because
        assert performed.fact is not None
        _, fn, prim, _ = performed.fact[1]
        self.line("└─ ", f"`{fn}` draws: `{prim}`", node.rule, place(performed, self.spans))

    def paths(self, summary: ProofNode | None) -> None:
        """The steps of a path, and below each call those of the callee's path, and so on."""
        todo = [] if summary is None else [("", step, last) for step, last in reversed(_steps(summary))]
        while todo:
            indent, step, last = todo.pop()
            self.step(indent, step, last)
            inner = _callee_path(step)
            if inner is None or id(inner) in self.opened or len(indent) > 3 * OPENED:
                continue
            self.opened.add(id(inner))
            below = indent + ("   " if last else "│  ")
            todo.extend((below, s, end) for s, end in reversed(_steps(inner)))

    def step(self, indent: str, step: ProofNode, last: bool) -> None:
        assert step.fact is not None
        source, target, kind, _ = step.fact[1]
        lead = indent + ("└─ " if last else "├─ ")
        text = f"{short(source)} → {short(target)}: {_reason(step, id(_callee_path(step)) in self.opened)}"
        self.line(lead, f"{text} is {CLASS[str(kind)]}", step.rule, place(step, self.spans))

    def refutation(self, explanation: Refuted) -> None:
        self.line("", _claim(explanation.goal, negated=True), None, None)
        for depth, absence in enumerate(explanation.absences):
            self.absence("   " * depth, absence)

    def absence(self, indent: str, absence: Absence) -> None:
        if not absence.attempts:
            self.line(f"{indent}└─ ", f"no input fact says that {sentence(absence.goal)}", None, None)
        for attempt in absence.attempts:
            self.line(f"{indent}└─ ", _failure(attempt), attempt.rule, place(attempt.failed, self.spans))


def _claim(goal: Fact, negated: bool = False) -> str:
    relation, row = goal
    not_ = " not" if negated else ""
    if relation == "effect":
        return f"`{row[0]}` does not have the effect `{row[1]}`" if negated else f"`{row[0]}` has the effect `{row[1]}`"
    return f"`{row[0]}` is{not_} {CLASS[str(row[2])]} in `{row[1]}`"


def _failure(attempt: Attempt) -> str:
    """The first premise that fails, in words."""
    failed = attempt.failed
    match failed.kind:
        case "fact" if failed.fact is not None:
            return f"it does not hold that {sentence(failed.fact)}"
        case "absence" if failed.fact is not None:
            return f"it does hold that {sentence(failed.fact)}"
        case _:
            return f"{failed.text} is false"


def _summary(node: ProofNode) -> ProofNode | None:
    """The summary at the bottom of a proof of `regularity`; None where the result does not depend on the parameter."""
    for relation in ("some_path", "summary"):
        found = [b for b in node.because if b.kind == "derived" and b.fact is not None and b.fact[0] == relation]
        if not found:
            return None
        node = found[0]
    return node


def _steps(summary: ProofNode) -> list[tuple[ProofNode, bool]]:
    """The edges of a summary's path from the parameter to the result, each with whether it is the last."""
    node = summary.because[-1]
    edges: list[ProofNode] = []
    while node.rule == "regularity.step":
        node, edge, _ = node.because
        edges.append(edge)
    return [(edge, i == 0) for i, edge in reversed([*enumerate(edges)])]


def _callee_path(step: ProofNode) -> ProofNode | None:
    """The summary of the callee that an edge through a call stands on."""
    if step.rule in ("regularity.via-call", "regularity.via-gradient"):
        return step.because[1]
    return None


def _reason(step: ProofNode, shown: bool) -> str:
    above = " (shown above)" if shown else ""
    match step.rule:
        case "regularity.via-primitive":
            assert step.because[0].fact is not None
            return f"`{step.because[0].fact[1][3]}`"
        case "regularity.via-call":
            return f"`{_callee(step)}`{above}"
        case "regularity.via-gradient":
            return f"the gradient of `{_callee(step)}`{above}"
        case "regularity.via-fold":
            return "the fold, which starts with it,"
        case "regularity.via-capture" | "regularity.via-gradient-value":
            return "the function value"
        case _:
            return "a function value that may be anything"


def _callee(step: ProofNode) -> str:
    decided = step.because[0].fact
    assert decided is not None
    return str(decided[1][1]).rpartition("/")[0]
