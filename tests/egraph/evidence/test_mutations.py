"""More than five hundred corrupted proofs of real programs, each refused for the right reason; honest ones accepted.

Every kind of corruption is one that no other proof of the same claim could have: another rule is one about another
operation, another direction turns a step between different operations, another type is not the inferred one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from presk_rel.core.ir import Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.fusion.check import check_fused
from presk_rel.egraph.patterns import Apply, read_rule
from presk_rel.egraph.proof import CongruenceStep, Lemma, Proof, RuleStep, Step, Term
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR, SCALAR_REAL, Mask
from presk_rel.exec.verdict import verify_proof
from presk_rel.session import Session
from tests.egraph.evidence.wrong_programs import reached, wrong_programs

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"m.V": 8, "m.D": 4, "m.H": 2, "m.L": 2}
PROGRAMS = [
    ("mlp.psk", "mse_grad"),
    ("tour/deep.psk", "loss_grad"),
    ("tour/linear_regression.psk", "loss_grad"),
    ("tour/hinge.psk", "hinge_grad"),
    ("field/huber.psk", "loss_grad"),
    ("field/logistic_regression.psk", "loss_grad"),
    ("field/vae.psk", "loss_grad"),
    ("field/physics_informed.psk", "loss_grad"),
    ("field/autoencoder.psk", "loss_grad"),
    ("field/gru.psk", "loss_grad"),
]
FOLDED = ("train_minigpt.psk", "loss_grad")
EACH = 6
"""Corruptions of one kind in one program, spread over its proof."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """What is handed to the checker in place of the honest proof, rules and programs."""

    proof: Proof
    rules: dict[str, Rule]
    before: Program
    after: Program


@cache
def honest(path: str, entry: str) -> Corrupt:
    session = Session(str(EXAMPLES / path), SMALL if path.startswith("train") else {})
    dims = dict.fromkeys(session.flat(entry).functions[entry].dims, 2)
    done = session.optimized(entry, dims)
    return Corrupt(done.proof, RULES, session.differentiated, done.program)


@pytest.mark.parametrize(("path", "entry"), [*PROGRAMS, FOLDED])
def test_honest_proofs_are_accepted(path: str, entry: str):
    given = honest(path, entry)
    assert verify_proof(given.proof, given.before, given.after).reasons == ()


# --------------------------------------------------------------------------------------------------- corruptions


def with_part(c: Corrupt, old: Proof, new: Proof) -> Corrupt:
    """The proof with that of one function replaced."""
    if old is c.proof:
        return replace(c, proof=new)
    return replace(c, proof=replace(c.proof, bodies=tuple(new if b is old else b for b in c.proof.bodies)))


def steps(c: Corrupt) -> Iterator[tuple[Proof, int, int, Step]]:
    for part in c.proof.parts:
        for i, lemma in enumerate(part.lemmas):
            for k, step in enumerate(lemma.steps):
                yield part, i, k, step


def put(c: Corrupt, part: Proof, i: int, k: int, step: Step) -> Corrupt:
    lemma = part.lemmas[i]
    changed = replace(lemma, steps=(*lemma.steps[:k], step, *lemma.steps[k + 1 :]))
    return with_part(c, part, replace(part, lemmas=(*part.lemmas[:i], changed, *part.lemmas[i + 1 :])))


def roots(rule: Rule) -> set[str]:
    sides = read_rule(rule)
    return {s.op for s in (sides.left, sides.right) if isinstance(s, Apply)}


def another_rule(c: Corrupt) -> Iterator[Corrupt]:
    for n, (part, i, k, step) in enumerate(steps(c)):
        if isinstance(step, RuleStep):
            here = {part.terms[step.before].op, part.terms[step.after].op}
            others = [r.name for r in RULES.values() if not roots(r) & here]
            yield put(c, part, i, k, replace(step, rule=others[7 * n % len(others)]))


def unknown_rule(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, RuleStep):
            yield put(c, part, i, k, replace(step, rule=step.rule + "-not"))


def substitution(c: Corrupt) -> Iterator[Corrupt]:
    for n, (part, i, k, step) in enumerate(steps(c)):
        if isinstance(step, RuleStep) and step.substitution:
            j = n % len(step.substitution)
            name, value = step.substitution[j]
            wrong: object = Mask(SCALAR)
            if isinstance(value, int):
                wrong = (value + 1) % len(part.terms)
            pairs = (*step.substitution[:j], (name, wrong), *step.substitution[j + 1 :])
            yield put(c, part, i, k, replace(step, substitution=pairs))  # type: ignore[arg-type]


def direction(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, RuleStep) and part.terms[step.before].op != part.terms[step.after].op:
            yield put(c, part, i, k, replace(step, forward=not step.forward))


def broken_chain(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        yield put(c, part, i, k, replace(step, after=(step.after + 1) % len(part.terms)))


def position(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, CongruenceStep) and step.positions:
            yield put(c, part, i, k, replace(step, positions=tuple(p + 1 for p in step.positions)))


def other_lemma(c: Corrupt) -> Iterator[Corrupt]:
    for part, i, k, step in steps(c):
        if isinstance(step, CongruenceStep) and step.lemmas:
            used = part.lemmas[step.lemmas[0]]
            others = (n for n, x in enumerate(part.lemmas[:i]) if {x.left, x.right} != {used.left, used.right})
            other = next(others, i)
            yield put(c, part, i, k, replace(step, lemmas=(other, *step.lemmas[1:])))


def turned_lemma(c: Corrupt) -> Iterator[Corrupt]:
    for part in c.proof.parts:
        for i, lemma in enumerate(part.lemmas):
            if lemma.left != lemma.right:
                turned = Lemma(lemma.right, lemma.left, lemma.steps)
                yield with_part(c, part, replace(part, lemmas=(*part.lemmas[:i], turned, *part.lemmas[i + 1 :])))


def types(c: Corrupt) -> Iterator[Corrupt]:
    for part in c.proof.parts:
        for i, term in enumerate(part.terms):
            if term.type != SCALAR_REAL and term.op not in ("const", "fold"):
                wrong: Term = replace(term, type=SCALAR_REAL)
                yield with_part(c, part, replace(part, terms=(*part.terms[:i], wrong, *part.terms[i + 1 :])))


def condition(c: Corrupt) -> Iterator[Corrupt]:
    """A condition that this instance does not meet: two of its term variables cannot have a scalar's type, say."""
    for part, _, _, step in steps(c):
        if not isinstance(step, RuleStep):
            continue
        for name, value in step.substitution:
            if isinstance(value, int) and 0 <= value < len(part.terms) and part.terms[value].type != SCALAR_REAL:
                if name in read_rule(RULES[step.rule]).kinds and read_rule(RULES[step.rule]).kinds[name] == "term":
                    rule = RULES[step.rule]
                    stricter = replace(rule, conditions=(*rule.conditions, f"(scalar {name})"))
                    yield replace(c, rules={**c.rules, rule.name: stricter})
                    break


def program(c: Corrupt) -> Iterator[Corrupt]:
    """Another optimized program: the entry, or the body of a fold, computes something else."""
    for wrong in wrong_programs(c.after, reached(c.after, c.proof.entry)):
        yield replace(c, after=wrong)


def claim(c: Corrupt) -> Iterator[Corrupt]:
    for term in range(len(c.proof.terms)):
        if term not in (c.proof.start, c.proof.end):
            yield replace(c, proof=replace(c.proof, start=term))
            yield replace(c, proof=replace(c.proof, end=term))


KINDS: list[tuple[Callable[[Corrupt], Iterator[Corrupt]], str]] = [
    (another_rule, "side does not match|malformed"),
    (unknown_rule, "no rule"),
    (substitution, "does not match|condition|malformed|no program|different types"),
    (direction, "does not match|malformed"),
    (broken_chain, "chain is broken|do not lead|does not match|congruence|operand|lemma"),
    (position, "operand .* differs|does not say|malformed"),
    (other_lemma, "before it is proven|does not say"),
    (turned_lemma, "chain is broken|do not lead"),
    (types, r"term \d+|no program|not well-typed|is not what|type|malformed"),
    (condition, "condition .* does not hold"),
    (program, "the end term is not what the optimized program computes"),
    (claim, "is not what|not `start = end`|malformed"),
]


def spread(found: list[Corrupt], count: int) -> list[Corrupt]:
    return found[:: max(1, len(found) // count)][:count]


IDS = [k.__name__ for k, _ in KINDS]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=IDS)
def test_refused_for_the_right_reason(kind: int):
    assert sum(refusals(kind, path, entry, EACH) for path, entry in PROGRAMS) >= 30


def test_there_are_more_than_five_hundred():
    made = [spread(list(make(honest(*where))), EACH) for make, _ in KINDS for where in PROGRAMS]
    assert sum(map(len, made)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=IDS)
def test_refused_in_a_program_with_folds(kind: int):
    assert refusals(kind, *FOLDED, 40) >= 10


def refusals(kind: int, path: str, entry: str, count: int) -> int:
    """How many corruptions of a kind there are; all of them are refused."""
    make, expected = KINDS[kind]
    found = spread(list(make(honest(path, entry))), count)
    for corrupt in found:
        said = check(corrupt.proof, corrupt.rules, corrupt.before, corrupt.after)
        assert said, (path, make.__name__)
        assert any(re.search(expected, str(r)) for r in said), (path, [str(r) for r in said[:3]])
    return len(found)


def test_wrong_kernels_are_refused():
    """A kernel that computes something else, that is called with its operands exchanged, or that returns another
    value."""
    refused = 0
    for path, entry in PROGRAMS:
        session = Session(str(EXAMPLES / path))
        dims = dict.fromkeys(session.flat(entry).functions[entry].dims, 2)
        unfused, fused = session.optimized(entry, dims).program, session.fused(entry, dims).program
        assert check_fused(entry, unfused, fused) == []
        wrong = list(wrong_programs(fused, [name for name, f in fused.functions.items() if f.kernel]))
        for other in spread(wrong, EACH):
            assert check_fused(entry, unfused, other) == ["the kernels do not unfold to the optimized program"]
            refused += 1
    assert refused >= 30
