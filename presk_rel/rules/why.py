"""`presk why`: the proof of a class or an effect of a function, or why a function has neither.

`explain` finds the goals and their proofs; `why_text` prints them for people, `why_json` for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.facts.builtins import EFFECTS
from presk_rel.rules.absence import explain_absence
from presk_rel.rules.analysis import CoreAnalysis
from presk_rel.rules.proof import Absence, Fact, ProofNode
from presk_rel.rules.proof_check import check_proof
from presk_rel.rules.proofs import Prover

CLASSES = ("Cinf", "C0plus", "Disc")
DEEPEST = 6
"""Absences explained by further absences before `--not` stops asking."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A goal that holds, with a proof of least height."""

    goal: Fact
    proof: ProofNode


@dataclass(frozen=True, slots=True)
class Refuted:
    """A goal that does not hold. `absences` explains it, then the premise that fails in it, and so on."""

    goal: Fact
    absences: tuple[Absence, ...]


Explanation = Proven | Refuted


@dataclass(frozen=True, slots=True)
class Question:
    """`absent`: ask for what does not hold (`--not`). `everything`: also classes that need no excuse (`--all`)."""

    function: str
    param: str | None = None
    effect: str | None = None
    absent: bool = False
    everything: bool = False


def explain(analysis: CoreAnalysis, question: Question) -> list[Explanation]:
    """One explanation per goal, in order of parameters. Empty if every class is C∞ and no more was asked.

    Raises `PreskError`: E9140 (exit status 2) for a function, parameter or effect that there is not, E9141 (exit
    status 1) for an effect that the function does not have, or with `--not` has.
    """
    goals = list(_goals(analysis, question))
    if not goals:
        return []
    prover = Prover(analysis.relations)
    return [_explain(prover, goal) for goal in goals]


def _explain(prover: Prover, goal: Fact) -> Explanation:
    if goal[1] in prover.relations.table(goal[0]):
        return Proven(goal, _checked(prover, prover.prove(*goal)))
    return Refuted(goal, tuple(_absences(prover, goal)))


def _checked(prover: Prover, proof: ProofNode) -> ProofNode:
    """The proof, which code that shares nothing with what found it accepts before anybody reads it."""
    problems = check_proof(prover.relations, proof)
    if problems:
        raise PreskBug("why", f"a proof was refused: {problems[0]}")
    return proof


def _goals(analysis: CoreAnalysis, question: Question) -> Iterator[Fact]:
    params = _params(analysis, question)
    if question.effect is not None:
        _known(question.effect)
        yield from _wanted(analysis, [("effect", (question.function, question.effect))], question)
    if question.effect is None or question.param is not None:
        for param in params:
            yield from _class_goals(analysis, param, question)
    if question.effect is None and question.param is None and question.everything:
        effects = analysis.effects.get(question.function, ())
        yield from _wanted(analysis, [("effect", (question.function, e)) for e in effects], question)


def _known(effect: str) -> None:
    if effect not in EFFECTS:
        there_is = "there is " + " and ".join(f"`{e}`" for e in EFFECTS)
        raise _usage(f"there is no effect `{effect[:100]}`", _near(effect, EFFECTS) or there_is)


def _class_goals(analysis: CoreAnalysis, param: str, question: Question) -> Iterator[Fact]:
    actual = analysis.regularity(question.function, param)
    asked = question.everything or question.param is not None
    if question.absent:
        yield from (("regularity", (question.function, param, k)) for k in CLASSES if k != actual)
    elif asked or actual != "Cinf":
        yield "regularity", (question.function, param, actual)


def _wanted(analysis: CoreAnalysis, goals: Sequence[Fact], question: Question) -> Iterator[Fact]:
    """Goals that hold, or those that do not, as the question asks; E9141 where it is the other way round."""
    for relation, row in goals:
        if (row in analysis.relations.table(relation)) == question.absent:
            says = "has" if question.absent else "does not have"
            flag = "leave out --not to see why" if question.absent else "ask why with --not"
            raise PreskError([Diagnostic("E9141", f"`{row[0]}` {says} the effect `{row[1]}`", None, help=flag)])
        yield relation, row


def _params(analysis: CoreAnalysis, question: Question) -> list[str]:
    """The parameters that the question is about, in order of declaration."""
    functions = [str(row[0]) for row in analysis.facts.get("core_function", [])]
    if question.function not in functions:
        raise _usage(f"there is no function `{question.function[:100]}`", _near(question.function, functions))
    rows = [row for row in analysis.facts.get("parameter", []) if row[0] == question.function]
    names = [str(name) for _, _, name in sorted(rows)]
    if question.param is None:
        return names
    if question.param not in names:
        message = f"`{question.function}` has no parameter `{question.param[:100]}`"
        raise _usage(message, _near(question.param, names) or f"it has {', '.join(f'`{n}`' for n in names) or 'none'}")
    return [question.param]


def _near(name: str, names: Sequence[str]) -> str | None:
    near = get_close_matches(name, names, n=3)
    return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?" if near else None


def _usage(message: str, help: str | None) -> PreskError:
    return PreskError([Diagnostic("E9140", message, None, help=help)], exit_status=2)


def _absences(prover: Prover, goal: Fact) -> Iterator[Absence]:
    """Why the goal fails, why the premise fails at which its most promising rule ends, …"""
    asked: set[object] = set()
    pattern = goal
    while len(asked) < DEEPEST and pattern not in asked:
        asked.add(pattern)
        absence = explain_absence(prover, *pattern)
        yield absence
        failed = [a.failed for a in absence.attempts if a.failed.kind == "fact" and a.failed.fact is not None]
        open_goals = [f.fact for f in failed if f.fact is not None and prover.rules[f.fact[0]]]
        if len(open_goals) != 1:
            return
        pattern = open_goals[0]
