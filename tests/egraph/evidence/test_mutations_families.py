"""Corrupted steps of each family of rules and laws: composites, merged contractions, sums of products, and folds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from presk_rel.egraph.checker import check
from presk_rel.egraph.proof import FoldStep, RuleStep
from presk_rel.egraph.rules import RULES
from tests.egraph.evidence.test_mutations import FOLDED, Corrupt, honest, put, spread, steps

FAMILIES = {
    "recognise": ["tour/deep.psk", "field/vae.psk", "field/physics_informed.psk"],
    "merge": ["field/gru.psk", "field/rnn.psk", "field/vae.psk"],
    "contract": ["field/physics_informed.psk"],
    "encode": ["tour/deep.psk", "field/gru.psk"],
}
RULES_SAY = "does not match|no program|malformed|condition"
LAWS = r"a fold changes by no law|the folds differ in more than"


def other_terms(c: Corrupt, family: str) -> Iterator[Corrupt]:
    """A rule's variable stands for another term of the same type: nothing but what is computed is wrong."""
    for n, (part, i, k, step) in enumerate(steps(c)):
        if not isinstance(step, RuleStep) or RULES[step.rule].ruleset != family:
            continue
        for j, (name, value) in enumerate(step.substitution):
            if not isinstance(value, int) or not 0 <= value < len(part.terms):
                continue
            alike = [t for t, x in enumerate(part.terms) if t != value and x.type == part.terms[value].type]
            if alike:
                wrong = (name, alike[n % len(alike)])
                pairs = (*step.substitution[:j], wrong, *step.substitution[j + 1 :])
                yield put(c, part, i, k, replace(step, substitution=pairs))


def other_result(c: Corrupt, family: str) -> Iterator[Corrupt]:
    """The step leads to another term of the same type."""
    for n, (part, i, k, step) in enumerate(steps(c)):
        if isinstance(step, RuleStep) and RULES[step.rule].ruleset == family:
            own = part.terms[step.after].type
            alike = [t for t, x in enumerate(part.terms) if t not in (step.after, step.before) and x.type == own]
            if alike:
                yield put(c, part, i, k, replace(step, after=alike[n % len(alike)]))


@pytest.mark.parametrize("corrupt", [other_terms, other_result])
@pytest.mark.parametrize("family", FAMILIES)
def test_refused(family: str, corrupt):
    refused = 0
    for path in FAMILIES[family]:
        for wrong in spread(list(corrupt(honest(path, "loss_grad"), family)), 10):
            said = check(wrong.proof, wrong.rules, wrong.before, wrong.after)
            assert any(re.search("does not match|no program|malformed|condition", str(r)) for r in said), (
                path,
                said[:2],
            )
            refused += 1
    assert refused >= 6


def without_laws(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, FoldStep):
            yield put(c, part, i, k, replace(step, laws=()))


def without(c: Corrupt, law: str) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, FoldStep) and law in step.laws:
            yield put(c, part, i, k, replace(step, laws=tuple(x for x in step.laws if x != law)))


def other_fold(c: Corrupt) -> Iterator[Corrupt]:
    """The laws of the step are said to lead to another term of the same type."""
    for n, (part, i, k, step) in enumerate(steps(c)):
        if isinstance(step, FoldStep):
            own = part.terms[step.after].type
            alike = [t for t, x in enumerate(part.terms) if t not in (step.before, step.after) and x.type == own]
            if alike:
                yield put(c, part, i, k, replace(step, after=alike[n % len(alike)]))


@pytest.mark.parametrize("corrupt", [without_laws, other_fold])
def test_folds_that_are_not_equal_by_a_law(corrupt):
    refused = 0
    for path, entry in (("field/gru.psk", "loss_grad"), FOLDED):
        for wrong in spread(list(corrupt(honest(path, entry))), 4):
            assert check(wrong.proof, wrong.rules, wrong.before, wrong.after), (path, corrupt.__name__)
            refused += 1
    assert refused >= 6


@pytest.mark.parametrize("law", ["fold.invariant-code", "fold.unread-part", "fold.recompute"])
def test_a_law_that_is_needed(law: str):
    """Without it a step is refused (a later step may name it beside others that do as well)."""
    found = spread(list(without(honest(*FOLDED), law)), 4)
    said = [check(c.proof, c.rules, c.before, c.after) for c in found]
    assert any(re.search(LAWS, str(r)) for reasons in said for r in reasons)
