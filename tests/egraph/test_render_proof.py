"""Proofs as text and as JSON: every step once, in order, each starting where the one before ends."""

from __future__ import annotations

import json

import pytest

from presk_rel.ad.reverse import differentiate
from presk_rel.core.inline import inline_entry
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.proof import Proof
from presk_rel.egraph.render_proof import proof_document, proof_text
from tests.ad.programs import mlp
from tests.egraph.programs import read, residual_gradient

SMALL = """
fn f(x : ℝ[a: 2, 3], y : ℝ[a: 2, 3]) -> ℝ[a: 2, 3] {
  m : ℝ[a: 2, 3] = neg y
  d : ℝ[a: 2, 3] = add x, m
  t : ℝ[a: 2, 3] = tanh d
  z : ℝ[a: 2, 3] = zeros_like t
  r : ℝ[a: 2, 3] = add t, z
  return r
}
"""


def small() -> Proof:
    return optimize(read(SMALL), "f").proof


def test_the_text_of_a_small_proof():
    text = proof_text(small())
    assert text.startswith("f: ")
    assert "add.neg-right: x + (-y) = x - y" in text
    assert "d = add(x, m)" in text
    assert "= sub(x, y)" in text
    assert "add.zero-right: x + 0 = x" in text
    assert text.endswith(".")


def test_the_document_is_json_and_its_chains_are_whole():
    document = json.loads(json.dumps(proof_document(small())))
    assert document["entry"] == "f"
    assert document["start"] == "add(t, z)"
    assert document["end"].startswith("tanh(")
    ends: dict[int, str] = {}
    for step in document["steps"]:
        assert {"rule", "law", "position", "before", "after", "conditions"} <= step.keys()
        if step["lemma"] in ends:
            assert ends[step["lemma"]] == step["before"]
        ends[step["lemma"]] = step["after"]
        assert all({"condition", "meaning", "decided_by"} <= c.keys() for c in step["conditions"])
    assert ends[max(ends)] == document["end"]


def test_conditions_say_how_they_were_discharged():
    steps = proof_document(small())["steps"]
    found = next(s for s in steps if s["rule"] == "add.neg-right")
    said = {(c["condition"], c["decided_by"]) for c in found["conditions"]}
    assert said == {("(same-type left right)", "type fact"), ("(type y u)", "type fact"), ("(real y)", "type fact")}
    assert found["conditions"][1]["meaning"] == "y has type ℝ[a: 2, 3]"
    assert found["position"] == "d"


def test_one_step_in_full():
    proof = small()
    steps = proof_document(proof)["steps"]
    number = next(i for i, s in enumerate(steps) if s["rule"] == "add.neg-right") + 1
    text = proof_text(proof, step=number)
    assert text.startswith(f"Step {number}, of lemma")
    for part in ("before      add(x, m)", "after       sub(x, y)", "where       y = y", "because     y has type"):
        assert part in text
    with pytest.raises(IndexError):
        proof_text(proof, step=len(steps) + 1)


def test_nothing_to_prove():
    proof = optimize(read(SMALL), "f", rules=()).proof
    assert proof_document(proof)["steps"] == []
    assert "nothing to prove" in proof_text(proof)


def test_the_perceptron_is_short_and_every_lemma_is_printed_once():
    proof = optimize(inline_entry(differentiate(mlp(), "store"), "mse_grad"), "mse_grad").proof
    text = proof_text(proof)
    assert text.count("mse_vjp.definition") == 1
    assert len(text.splitlines()) < 90
    assert all(f"Lemma {k + 1}." in text for k, lemma in enumerate(proof.lemmas) if lemma.steps)


def test_the_text_is_linear_in_the_proof():
    def size(layers: int) -> tuple[int, int]:
        proof = optimize(residual_gradient(layers), "f").proof
        return len(proof_text(proof)), sum(len(lemma.steps) for lemma in proof.lemmas)

    (few, steps), (many, more) = size(2), size(16)
    assert many / few < 1.5 * more / steps
