"""The independent checker accepts the optimizer's proofs and refuses every corruption of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from presk_rel.core.ir import Binding, Prim
from presk_rel.egraph.checker import check
from presk_rel.egraph.proof import CongruenceStep, Lemma, Proof, RuleStep, Step
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR, SCALAR_REAL, Mask
from presk_rel.exec.sampling import sample_rules
from presk_rel.exec.verdict import verify_proof
from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"
ENTRIES = [
    ("mlp.psk", "mse_grad", ()),
    ("mlp.psk", "mse_grad", (("B", 2), ("D", 4))),
    ("tour/deep.psk", "loss_grad", ()),
    ("tour/linear_regression.psk", "loss_grad", ()),
    ("tour/hinge.psk", "hinge_grad", ()),
    ("tour/grad_of_function.psk", "pair_grad", ()),
    ("field/autoencoder.psk", "Encoder.apply", ()),
    ("field/mlp_mixer.psk", "Norm.apply", ()),
    ("reference/adamw.psk", "adamw.step", ()),
]


@cache
def session(path: str) -> Session:
    return Session(str(EXAMPLES / path))


def proven(path: str, entry: str, dims: tuple[tuple[str, int], ...]):
    program = session(path)
    optimized = program.optimized(entry, dict(dims))
    return optimized.proof, program.differentiated, optimized.program


@pytest.mark.parametrize(("path", "entry", "dims"), ENTRIES)
def test_the_optimizers_proofs_are_accepted(path: str, entry: str, dims: tuple[tuple[str, int], ...]) -> None:
    proof, before, after = proven(path, entry, dims)
    verdict = verify_proof(proof, before, after)
    assert verdict.reasons == ()
    assert verdict.unsampled == ()


def corruptions(proof: Proof) -> Iterator[tuple[str, Proof]]:
    """Every kind of corruption at every step: its rule, substitution, direction, position, lemma, order."""
    for i, lemma in enumerate(proof.lemmas):
        for k, step in enumerate(lemma.steps):
            for kind, changed in _changed(step, proof):
                steps = (*lemma.steps[:k], changed, *lemma.steps[k + 1 :])
                yield f"{kind} of step {k} of lemma {i}", _with_lemma(proof, i, replace(lemma, steps=steps))
            dropped = (*lemma.steps[:k], *lemma.steps[k + 1 :])
            yield f"step {k} of lemma {i} left out", _with_lemma(proof, i, replace(lemma, steps=dropped))
        yield f"lemma {i} with its sides exchanged", _with_lemma(proof, i, Lemma(lemma.right, lemma.left, lemma.steps))
    yield "the start", replace(proof, start=_other(proof, proof.start))
    yield "the end", replace(proof, end=_other(proof, proof.end))
    if proof.start != proof.end:
        yield "no lemmas", replace(proof, lemmas=())


def _with_lemma(proof: Proof, i: int, lemma: Lemma) -> Proof:
    return replace(proof, lemmas=(*proof.lemmas[:i], lemma, *proof.lemmas[i + 1 :]))


def _other(proof: Proof, term: int) -> int:
    return next(t for t in range(len(proof.terms)) if t != term)


def _changed(step: Step, proof: Proof) -> Iterator[tuple[str, Step]]:
    if isinstance(step, RuleStep):
        yield "the direction", replace(step, forward=not step.forward)
        yield "the term before", replace(step, before=_other(proof, step.before))
        yield "the term after", replace(step, after=_other(proof, step.after))
        yield "an unknown rule", replace(step, rule="no.such-rule")
        for name in list(RULES)[::7]:
            if name != step.rule:
                yield f"the rule {name}", replace(step, rule=name)
        for j, (variable, value) in enumerate(step.substitution):
            if isinstance(value, int):
                other: object = _other(proof, value)
            elif isinstance(value, str):
                other = value + "x"
            else:
                other = Mask(SCALAR)
            pairs = (*step.substitution[:j], (variable, other), *step.substitution[j + 1 :])
            yield f"`{variable}`", replace(step, substitution=pairs)
            without = (*step.substitution[:j], *step.substitution[j + 1 :])
            yield f"`{variable}` left out", replace(step, substitution=without)
    if isinstance(step, CongruenceStep):
        yield "the term before", replace(step, before=_other(proof, step.before))
        yield "the term after", replace(step, after=_other(proof, step.after))
        if step.positions:
            yield "a position", replace(step, positions=(step.positions[0] + 1, *step.positions[1:]))
            yield "a lemma's direction", replace(step, forward=(not step.forward[0], *step.forward[1:]))
            yield "a later lemma", replace(step, lemmas=(len(proof.lemmas), *step.lemmas[1:]))
            yield "no lemma", replace(step, positions=(), lemmas=(), forward=())


@pytest.mark.parametrize(("path", "entry", "dims"), ENTRIES)
def test_every_corruption_is_refused(path: str, entry: str, dims: tuple[tuple[str, int], ...]) -> None:
    proof, before, after = proven(path, entry, dims)
    refused = 0
    everything = list(corruptions(proof))
    for what, corrupt in everything[:: 1 + len(everything) // 150]:  # evenly spaced: a check takes milliseconds
        if corrupt == proof or _says_the_same(corrupt, proof):
            continue
        assert check(corrupt, RULES, before, after), what
        refused += 1
    assert refused > 0


def _says_the_same(corrupt: Proof, proof: Proof) -> bool:
    """A rule that happens to have the same instance (`a + b` against `b + a` with a = b), or a step that was idle, is
    no corruption."""
    terms = proof.terms
    for mine, yours in zip(corrupt.lemmas, proof.lemmas):
        for a, b in zip(mine.steps, yours.steps):
            if a == b or not isinstance(a, RuleStep) or not isinstance(b, RuleStep):
                continue
            if a.rule != b.rule and (a.before, a.after) == (b.before, b.after):
                return not any(r.step is not None for r in check(corrupt, RULES, *_programs(proof)))
            if a.forward != b.forward:
                left, right = terms[a.before], terms[a.after]
                return (left.op, left.attrs) == (right.op, right.attrs) and _symmetric(RULES[a.rule])
    return False


def _programs(proof: Proof):
    for path, entry, dims in ENTRIES:
        found, before, after = proven(path, entry, dims)
        if found is proof:
            return before, after
    raise AssertionError


def _symmetric(rule: Rule) -> bool:
    return rule.left.split()[0] == rule.right.split()[0]


@pytest.mark.parametrize(("path", "entry", "dims"), ENTRIES[:3])
def test_a_corrupted_type_is_refused(path: str, entry: str, dims: tuple[tuple[str, int], ...]) -> None:
    proof, before, after = proven(path, entry, dims)
    for i, term in enumerate(proof.terms):
        if term.type == SCALAR_REAL or term.op == "const":
            continue
        changed = (*proof.terms[:i], replace(term, type=SCALAR_REAL), *proof.terms[i + 1 :])
        assert check(replace(proof, terms=changed), RULES, before, after), f"term {i} ({term.op})"


@pytest.mark.parametrize(("path", "entry", "dims"), ENTRIES[:3])
def test_another_optimized_program_is_refused(path: str, entry: str, dims: tuple[tuple[str, int], ...]) -> None:
    """The proof must be about the program that runs: a changed operation or operand order in it is found."""
    proof, before, after = proven(path, entry, dims)
    function = after.functions[entry]
    swapped = {"add": "sub", "sub": "add", "mul": "div", "gelu": "tanh", "gelu'": "gelu", "tanh": "exp", "dot": "mul"}
    swapped |= {"gelu_vjp": "relu_vjp", "sum_to": "broadcast_like", "dot_vjp_l": "dot_vjp_r"}
    tried = 0
    for i, b in enumerate(function.bindings):
        if isinstance(b.op, Prim) and b.op.op in swapped:
            wrong = Binding(b.name, b.type, replace(b.op, op=swapped[b.op.op]))
            bindings = (*function.bindings[:i], wrong, *function.bindings[i + 1 :])
            program = replace(after, functions={**after.functions, entry: replace(function, bindings=bindings)})
            assert check(proof, RULES, before, program), b.name
            tried += 1
    assert tried > 2


WRONG = Rule("wrong.gelu", "(gelu x)", "x", (), "a lie")


def test_a_wrong_rule_is_caught_by_sampling() -> None:
    """If the rule table itself holds a false rule, its instances match, and sampling over balls finds it out."""
    program = Session(str(EXAMPLES / "mlp.psk"))
    from presk_rel.egraph.optimize import optimize

    flat = program.flat("mse")
    optimized = optimize(flat, "mse", {}, rules=(*RULES.values(), WRONG))
    used = [s.rule for lemma in optimized.proof.lemmas for s in lemma.steps if isinstance(s, RuleStep)]
    if WRONG.name not in used:
        pytest.fail("the wrong rule was not taken: make it cheaper")
    (found,) = [
        s for s in sample_rules(optimized.proof, flat.modules, {**RULES, WRONG.name: WRONG}) if s.rule == WRONG.name
    ]
    assert found.disagreement is not None


def test_a_rule_that_the_checker_does_not_know_is_refused() -> None:
    proof, before, after = proven(*ENTRIES[0])
    rules = {name: rule for name, rule in RULES.items() if not any(
        isinstance(s, RuleStep) and s.rule == name for lemma in proof.lemmas for s in lemma.steps
    )}  # fmt: skip
    assert check(proof, rules, before, after)
