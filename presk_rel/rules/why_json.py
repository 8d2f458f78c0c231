"""Explanations for programs (docs/cli.md: `presk why`): every step of every proof.

A proof shares its steps. Written as a tree it may be exponentially larger: beyond `LARGEST` nodes a step that came
before is given without its premises, as `"repeated": true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from presk_rel.diagnostics import Span
from presk_rel.rules.proof import Absence, Attempt, Pattern, ProofNode
from presk_rel.rules.why import Explanation, Proven
from presk_rel.rules.why_words import fact_place, place

LARGEST = 50_000

Json = dict[str, Any]


def explanations_json(explanations: Sequence[Explanation], spans: Mapping[str, Span]) -> Json:
    """`goal`, `tree` and `height` of the first explanation; those of the others under `others`. Trees nest as deep as
    proofs are high: print them with `json_text`."""
    bodies = [_explanation(explanation, spans) for explanation in explanations]
    first = bodies[0] if bodies else {"goal": None, "tree": None, "height": 0}
    return {**first, "others": bodies[1:]}


def _explanation(explanation: Explanation, spans: Mapping[str, Span]) -> Json:
    goal = {"relation": explanation.goal[0], "tuple": list(explanation.goal[1])}
    if isinstance(explanation, Proven):
        return {"goal": goal, "tree": tree_json(explanation.proof, spans), "height": explanation.proof.height}
    absences = [_absence(absence, spans) for absence in explanation.absences]
    return {"goal": {**goal, "absent": True}, "tree": None, "height": 0, "absences": absences}


def tree_json(root: ProofNode, spans: Mapping[str, Span]) -> Json:
    """A proof as nested objects. Equal steps are one object."""
    share = _tree_size(root) <= LARGEST
    made: dict[int, Json] = {}
    for node in _children_first(root):
        because: list[Json] = []
        for child in node.because:
            known = made[id(child)]
            because.append(known if share or not child.because else _once(known))
        made[id(node)] = {**_step(node, spans), "because": because}
    return made[id(root)]


def _once(step: Json) -> Json:
    """The step itself the first time, then a mere mention of it."""
    if "seen" not in step:
        step["seen"] = True
        return step
    return {**{k: v for k, v in step.items() if k not in ("because", "seen")}, "because": [], "repeated": True}


def _children_first(root: ProofNode) -> Iterator[ProofNode]:
    done: set[int] = set()
    todo = [root]
    while todo:
        node = todo[-1]
        missing = [child for child in node.because if id(child) not in done]
        if id(node) in done or not missing:
            todo.pop()
            if id(node) not in done:
                done.add(id(node))
                yield node
        else:
            todo.extend(reversed(missing))


def _tree_size(root: ProofNode) -> int:
    sizes: dict[int, int] = {}
    for node in _children_first(root):
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.because)
    return sizes[id(root)]


def _step(node: ProofNode, spans: Mapping[str, Span]) -> Json:
    span = place(node, spans)
    return {"fact": _fact(node), "rule": node.rule, "span": None if span is None else _span(span)}


def _fact(node: ProofNode) -> Json:
    if node.fact is not None:
        body: Json = {"relation": node.fact[0], "tuple": list(node.fact[1])}
        return {**body, "absent": True} if node.kind == "absence" else body
    return {node.kind: node.text}


def _span(span: Span) -> Json:
    ends = {"start": span.start, "end": span.end}
    body: Json = {k: {"line": p.line, "column": p.column, "offset": p.offset} for k, p in ends.items()}
    return {"file": span.file, **body}


def _absence(absence: Absence, spans: Mapping[str, Span]) -> Json:
    return {
        "goal": {"relation": absence.goal[0], "tuple": list(absence.goal[1]), "absent": True},
        "span": _place(absence.goal, spans),
        "attempts": [_attempt(attempt, spans) for attempt in absence.attempts],
    }


def _attempt(attempt: Attempt, spans: Mapping[str, Span]) -> Json:
    return {
        "rule": attempt.rule,
        "satisfied": [_step(node, spans) for node in attempt.satisfied],
        "failed": _step(attempt.failed, spans),
    }


def _place(fact: Pattern, spans: Mapping[str, Span]) -> Json | None:
    span = fact_place(fact, spans)
    return None if span is None else _span(span)
