"""A proof as text that a person follows, and as JSON.

A lemma says that one value of the program equals another; its steps rewrite the one into the other, by an instance of a
rule or by lemmas before it about operands. So every step is printed once, however often its value is used: the text is
linear in the proof. The entry comes first, then the bodies of its folds, each with lemmas of its own; steps and lemmas
are numbered through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from presk_rel.egraph.conditions import Condition, discharged_by, read_conditions, variables
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.patterns import HIDDEN
from presk_rel.egraph.proof import CongruenceStep, FoldStep, Proof, RuleStep, Step, TermId
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.term_text import TermText

CONGRUENCE_LAW = "equal operands give equal results"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A step with its number, its lemma (both from 1) and the place in the function that the lemma is about."""

    writer: _Writer
    number: int
    lemma: int
    position: str
    step: Step


@dataclass(slots=True)
class _Writer:
    """Writes the proof of one function; so many `steps` and `lemmas` are before it."""

    proof: Proof
    text: TermText
    steps: int = 0
    lemmas: int = 0
    place: dict[int, str] = field(default_factory=dict[int, str])

    def placed(self) -> list[_Placed]:
        """All steps in order, numbered from 1."""
        self._find_places()
        out: list[_Placed] = []
        for k, lemma in enumerate(self.proof.lemmas):
            for step in lemma.steps:
                number = self.steps + len(out) + 1
                out.append(_Placed(self, number, self.lemmas + k + 1, self.place[k], step))
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
        match step:
            case RuleStep():
                return step.rule
            case CongruenceStep():
                return "congruence"
            case FoldStep():
                return ", ".join(step.laws)

    def law(self, step: Step) -> str:
        match step:
            case RuleStep():
                return RULES[step.rule].law
            case CongruenceStep():
                return CONGRUENCE_LAW
            case FoldStep():
                return "; ".join(FOLD_LAWS[law] for law in step.laws)

    def conditions(self, step: Step) -> list[dict[str, Any]]:
        """What the step needs, and how each was discharged."""
        if isinstance(step, CongruenceStep):
            return [
                {
                    "condition": f"operand {p + 1}",
                    "meaning": f"operand {p + 1} by lemma {self.lemmas + k + 1}"
                    + ("" if forward else ", right to left"),
                    "decided_by": "lemma",
                    "lemma": self.lemmas + k + 1,
                }
                for p, k, forward in zip(step.positions, step.lemmas, step.forward, strict=True)
            ]
        type_ = self.proof.terms[step.before].type
        if isinstance(step, FoldStep):
            return [self._bodies_agree()]
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
                    "decided_by": discharged_by(c, values),
                }
                for c in read_conditions(rule)
            ),
        ]

    def _bodies_agree(self) -> dict[str, Any]:
        meaning = "both bodies compute the same from one iteration to the next, up to these laws"
        return {"condition": "(same-folds left right)", "meaning": meaning, "decided_by": "reading the bodies"}

    def _meaning(self, c: Condition, values: dict[str, Any], kinds: dict[str, Any], left: TermId) -> str:
        shown: list[str] = []
        for arg in c.args:
            if not isinstance(arg, str):
                shown.append(c.text.removeprefix("(").split(" ", 1)[1].rsplit(" ", 1)[0])
            elif arg not in values and arg not in kinds and arg != "root":
                shown.append(arg)
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

        def full(value: Any, kind: str) -> str:
            return self.text.write(value) if kind in ("term", "shape") else str(value)

        return [(n, full(v, kinds[n])) for n, v in step.substitution if n in kinds]


def _writers(proof: Proof) -> list[tuple[_Writer, list[_Placed]]]:
    """Each part of the proof with its steps, numbered through."""
    found: list[tuple[_Writer, list[_Placed]]] = []
    steps = lemmas = 0
    for part in proof.parts:
        w = _Writer(part, TermText(part), steps, lemmas)
        placed = w.placed()
        found.append((w, placed))
        steps, lemmas = steps + len(placed), lemmas + len(part.lemmas)
    return found


def proof_document(proof: Proof) -> dict[str, Any]:
    """The JSON of `presk prove`: `steps` in order, those of one lemma (`lemma`) next to each other, each starting where
    the one before ends; `terms` explains `#n` in the steps of the entry, and that of one of `bodies` in those whose
    `function` it is."""
    written = _writers(proof)
    (entry, _), *bodies = written
    return {
        "entry": proof.entry,
        "start": entry.text.write(proof.start),
        "end": entry.text.write(proof.end),
        "steps": [_step_document(p) for _, placed in written for p in placed],
        "terms": _terms(entry),
        "bodies": [
            {
                "function": w.proof.entry,
                "start": w.text.write(w.proof.start),
                "end": w.text.write(w.proof.end),
                "terms": _terms(w),
            }
            for w, _ in bodies
        ],
    }


def _step_document(p: _Placed) -> dict[str, Any]:
    w = p.writer
    backwards = isinstance(p.step, RuleStep) and not p.step.forward
    return {
        "function": w.proof.entry,
        "rule": w.name(p.step),
        "law": w.law(p.step),
        "position": p.position,
        "before": w.text.write(p.step.before),
        "after": w.text.write(p.step.after),
        "conditions": w.conditions(p.step),
        "lemma": p.lemma,
        "direction": "right to left" if backwards else "left to right",
    }


def _terms(w: _Writer) -> list[dict[str, Any]]:
    return [
        {
            "op": t.op,
            "attrs": [str(a) for a in t.attrs],
            "operands": list(t.children),
            "type": str(t.type),
            "name": w.text.names.get(i),
        }
        for i, t in enumerate(w.proof.terms)
    ]


def proof_text(proof: Proof, *, step: int | None = None) -> str:
    """The whole proof, or step number `step` (from 1) alone and in full. IndexError if there is no such step."""
    written = _writers(proof)
    if step is not None:
        return _full([p for _, placed in written for p in placed][step - 1])
    return "\n\n".join(_part(w, placed, None if w.proof is proof else proof.entry) for w, placed in written)


def _part(w: _Writer, placed: list[_Placed], entry: str | None) -> str:
    """The proof of one function; of a body, `entry` is whose."""
    name = w.proof.entry
    what = name if entry is None else f"{name}, the body of a fold of {entry}"
    if not placed:
        return f"{what}: the optimizer left it as it is; nothing to prove."
    by_lemma: dict[int, list[_Placed]] = {}
    for p in placed:
        by_lemma.setdefault(p.lemma, []).append(p)
    parts = [f"{what}: {len(placed)} steps in {len(by_lemma)} lemmas, from the function after differentiation"]
    parts += [_lemma(w, k, steps) for k, steps in by_lemma.items()]
    last = w.lemmas + len(w.proof.lemmas)
    parts.append(f"So {name} computes {w.text.write(w.proof.end)}, by lemma {last}.")
    return "\n\n".join(parts)


def _lemma(w: _Writer, k: int, steps: list[_Placed]) -> str:
    lemma = w.proof.lemmas[k - 1 - w.lemmas]
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
    arrow = "" if isinstance(step, FoldStep) or step.forward else " (right to left)"
    return f"{w.name(step)}{arrow}: {w.law(step)}"


def _full(p: _Placed) -> str:
    w = p.writer
    lines = [
        f"Step {p.number}, of lemma {p.lemma}, at {p.position} of {w.proof.entry}",
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
