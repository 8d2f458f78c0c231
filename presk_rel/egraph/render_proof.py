"""A proof as text that a person follows, and as JSON.

A lemma says that one value of the program equals another; its steps rewrite the one into the other, by an instance of a
rule or by lemmas before it about operands. So every step is printed once, however often its value is used: the text is
linear in the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from presk_rel.egraph.conditions import Condition, read_conditions, variables
from presk_rel.egraph.patterns import HIDDEN
from presk_rel.egraph.proof import CongruenceStep, Proof, RuleStep, Step, TermId
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.term_text import TermText

CONGRUENCE_LAW = "equal operands give equal results"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A step with its number, its lemma (from 1) and the place in the program that the lemma is about."""

    number: int
    lemma: int
    position: str
    step: Step


@dataclass(slots=True)
class _Writer:
    proof: Proof
    text: TermText
    place: dict[int, str] = field(default_factory=dict[int, str])
    first: dict[int, int] = field(default_factory=dict[int, int])

    def placed(self) -> list[_Placed]:
        """All steps in order, numbered from 1."""
        self._find_places()
        out: list[_Placed] = []
        for k, lemma in enumerate(self.proof.lemmas):
            self.first[k] = len(out) + 1
            out += [_Placed(len(out) + 1 + i, k + 1, self.place[k], s) for i, s in enumerate(lemma.steps)]
        return out

    def _find_places(self) -> None:
        """A lemma is about the binding its left side is; else about an operand of what uses it first."""
        for k in range(len(self.proof.lemmas) - 1, -1, -1):
            lemma = self.proof.lemmas[k]
            known = self.text.names.get(lemma.left)
            here = known or self.place.get(k) or "the result"
            self.place[k] = here
            for step in lemma.steps:
                if isinstance(step, CongruenceStep):
                    for used in step.lemmas:
                        self.place.setdefault(used, here if here.startswith("inside ") else f"inside {here}")

    # ------------------------------------------------------------------------------------------------ one step

    def name(self, step: Step) -> str:
        return step.rule if isinstance(step, RuleStep) else "congruence"

    def law(self, step: Step) -> str:
        return RULES[step.rule].law if isinstance(step, RuleStep) else CONGRUENCE_LAW

    def conditions(self, step: Step) -> list[dict[str, Any]]:
        """What the step needs, and how each was discharged."""
        if isinstance(step, CongruenceStep):
            return [
                {
                    "condition": f"operand {p + 1}",
                    "meaning": f"operand {p + 1} by lemma {k + 1}" + ("" if forward else ", right to left"),
                    "decided_by": "lemma",
                    "lemma": k + 1,
                }
                for p, k, forward in zip(step.positions, step.lemmas, step.forward, strict=True)
            ]
        type_ = self.proof.terms[step.before].type
        both = {"condition": "(same-type left right)", "meaning": f"both sides have type {type_}"}
        values = dict(step.substitution)
        left = step.before if step.forward else step.after
        rule = RULES[step.rule]
        kinds = variables(rule)
        return [
            {**both, "decided_by": "type fact"},
            *(
                {
                    "condition": c.text,
                    "meaning": self._meaning(c, values, {k: v for k, v in kinds.items() if k[0] != HIDDEN}, left),
                    "decided_by": c.row.decided_by,
                }
                for c in read_conditions(rule)
            ),
        ]

    def _meaning(self, c: Condition, values: dict[str, Any], kinds: dict[str, Any], left: TermId) -> str:
        shown: list[str] = []
        for arg in c.args:
            if not isinstance(arg, str):
                shown.append(c.text.removeprefix("(").split(" ", 1)[1].rsplit(" ", 1)[0])
            elif arg == "root":
                shown.append(self.text.short(left))
            else:
                shown.append(self.value(values[arg], kinds[arg]))
        return c.row.meaning.format(*shown)

    def value(self, value: Any, kind: str) -> str:
        """What a variable stands for."""
        return self.text.short(value) if kind in ("term", "shape") else str(value)

    def substitution(self, step: RuleStep) -> list[tuple[str, str]]:
        kinds = variables(RULES[step.rule])
        full = {"term": self.text.write, "shape": self.text.write}
        return [(n, full.get(kinds[n], str)(v)) for n, v in step.substitution if n in kinds]  # type: ignore[operator]


def proof_document(proof: Proof) -> dict[str, Any]:
    """The JSON of `presk prove`: `steps` in order, those of one lemma (`lemma`) next to each other, each starting where
    the one before ends; `terms` explains `#n`."""
    w = _Writer(proof, TermText(proof))
    return {
        "entry": proof.entry,
        "start": w.text.write(proof.start),
        "end": w.text.write(proof.end),
        "steps": [
            {
                "rule": w.name(p.step),
                "law": w.law(p.step),
                "position": p.position,
                "before": w.text.write(p.step.before),
                "after": w.text.write(p.step.after),
                "conditions": w.conditions(p.step),
                "lemma": p.lemma,
                "direction": "right to left"
                if isinstance(p.step, RuleStep) and not p.step.forward
                else "left to right",
            }
            for p in w.placed()
        ],
        "terms": [
            {
                "op": t.op,
                "attrs": [str(a) for a in t.attrs],
                "operands": list(t.children),
                "type": str(t.type),
                "name": w.text.names.get(i),
            }
            for i, t in enumerate(proof.terms)
        ],
    }


def proof_text(proof: Proof, *, step: int | None = None) -> str:
    """The whole proof, or step number `step` (from 1) alone and in full. IndexError if there is no such step."""
    w = _Writer(proof, TermText(proof))
    placed = w.placed()
    if step is not None:
        return _full(w, placed[step - 1])
    if not placed:
        return f"{proof.entry}: the optimizer left it as it is; nothing to prove."
    by_lemma: dict[int, list[_Placed]] = {}
    for p in placed:
        by_lemma.setdefault(p.lemma, []).append(p)
    parts = [f"{proof.entry}: {len(placed)} steps in {len(by_lemma)} lemmas, from the function after differentiation"]
    parts += [_lemma(w, k, steps) for k, steps in by_lemma.items()]
    parts.append(f"So {proof.entry} computes {w.text.write(proof.end)}, by lemma {len(proof.lemmas)}.")
    return "\n\n".join(parts)


def _lemma(w: _Writer, k: int, steps: list[_Placed]) -> str:
    lemma = w.proof.lemmas[k - 1]
    place = steps[0].position
    about = (
        f"{place} = {w.text.write(lemma.left)}"
        if lemma.left in w.text.names
        else f"{place}: {w.text.write(lemma.left)}"
    )
    lines = [f"Lemma {k}. {about}"]
    for p in steps:
        lines.append(f"  {p.number:>4}. = {w.text.write(p.step.after)}")
        lines.append(f"        {_because(w, p.step)}")
    return "\n".join(lines)


def _because(w: _Writer, step: Step) -> str:
    if isinstance(step, CongruenceStep):
        return "; ".join(str(c["meaning"]) for c in w.conditions(step))
    arrow = "" if step.forward else " (right to left)"
    return f"{step.rule}{arrow}: {w.law(step)}"


def _full(w: _Writer, p: _Placed) -> str:
    lines = [
        f"Step {p.number}, of lemma {p.lemma}, at {p.position}",
        f"  before      {w.text.write(p.step.before)}",
        f"  after       {w.text.write(p.step.after)}",
        f"  rule        {w.name(p.step)}",
        f"  law         {w.law(p.step)}",
    ]
    if isinstance(p.step, RuleStep):
        rule = RULES[p.step.rule]
        direction = "left to right" if p.step.forward else "right to left"
        lines.append(f"  equation    {rule.left} = {rule.right}, {direction}")
        lines += [f"  where       {name} = {value}" for name, value in w.substitution(p.step)]
    lines += [f"  because     {c['meaning']} ({c['decided_by']})" for c in w.conditions(p.step)]
    return "\n".join(lines)
