"""Attention as people write it: scaled by a product, a quotient, in the queries, in the keys or not at all, with a
causal mask or none. All of it, and its gradient, is the composite, and one call of torch each way."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import presk_rel
from presk_rel.exec.conform import distance
from presk_rel.exec.exact.run import Options
from presk_rel.session import Request

HEAD = """
const HD : nat = 4
dim B
dim H
dim T
type Q = ℝ[batch: B, heads: H, seq: T, hd: HD]

"""
SCORES = {
    "quotient": "ein[batch, heads, seq, seq2](q * k) / sqrt(HD : ℝ)",
    "product": "ein[batch, heads, seq, seq2](q * k) * 0.5",
    "number first": "0.25 * ein[batch, heads, seq, seq2](q * k)",
    "queries": "ein[batch, heads, seq, seq2]((q / sqrt(HD : ℝ)) * k)",
    "keys": "ein[batch, heads, seq, seq2](q * (0.5 * k))",
    "plain": "ein[batch, heads, seq, seq2](q * k)",
}


@pytest.mark.parametrize("mask", ["", ", where = causal_mask(seq: T)"], ids=["all", "causal"])
@pytest.mark.parametrize("form", SCORES)
def test_attention_and_its_gradient_are_one_call_each(form: str, mask: str, tmp_path: Path) -> None:
    path = tmp_path / "attention.psk"
    path.write_text(
        f"{HEAD}fn attend(q : Q, k : Q, v : Q) -> Q =\n"
        f"  let a = softmax(axis seq2, {SCORES[form]}{mask})\n"
        "  ein[batch, heads, seq, hd](a * v)\n\n"
        "fn loss(p : (Q, Q, Q)) -> ℝ[] =\n  let (q, k, v) = p\n  sum(attend(q, k, v)^2)\n\n"
        "fn slopes(p : (Q, Q, Q)) -> (Q, Q, Q) = grad(loss)(p)\n",
        encoding="utf-8",
    )
    program = presk_rel.load(path)
    handle = program.compile("slopes", {"B": 2, "H": 2, "T": 5}, dtype="f64", tier="emit")
    forward, _, backward = handle.source.partition("flash_attention_for_cpu_backward(")
    assert forward.count("flash_attention_for_cpu(") == 1
    assert backward
    assert "softmax" not in handle.source
    request = Request(dims={"B": 2, "H": 2, "T": 5})
    proven = program.session.run_exact("slopes", request, Options(bits=96)).value
    far = distance(proven, program.session.run_torch("slopes", request, "f64", "cpu", "emit").value)
    assert (far.relative <= Fraction(1, 10**12), far.differing) == (True, 0), far.where
