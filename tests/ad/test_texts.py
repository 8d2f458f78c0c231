"""Differentiated programs as text: attention (softmax with a mask, ein), and a stacked module that drops."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.printer import print_program
from presk_rel.core.reader import load
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostics
from tests.ad.check import check_duality, check_gradient, with_gradient, with_operators
from tests.ad.programs import read
from tests.ad.test_fold_keys import DROPOUT
from tests.golden import check

GOLDEN = Path(__file__).parent / "golden"

ATTENTION = """
fn scores{HD T}(q : ℝ[heads: 2, seq: T, hd: HD], k : ℝ[heads: 2, seq: T, hd: HD])
    -> ℝ[heads: 2, seq: T, seq2: T] {
  %2 : ℝ[heads: 2, seq: T, seq2: T] = ein [heads seq hd, heads seq2 hd -> heads seq seq2] q, k
  %3 : nat = dim HD
  %4 : ℝ[] = real %3
  %5 : ℝ[] = sqrt %4
  %6 : ℝ[heads: 2, seq: T, seq2: T] = div %2, %5
  return %6
}
fn attend{HD T}(x : ℝ[seq: T, 2*HD], w : ℝ[heads: 2, seq: T, hd: HD]) -> ℝ[] {
  q : ℝ[heads: 2, seq: T, hd: HD] = mul w, w
  s : ℝ[heads: 2, seq: T, seq2: T] = call scores{HD = HD, T = T}(q, w)
  m : bool[seq: T, seq2: T] = causal_mask
  a : ℝ[heads: 2, seq: T, seq2: T] = softmax axis seq2 s, m
  %6 : ℝ[heads: 2, seq: T, hd: HD] = ein [heads seq seq2, heads seq2 hd -> heads seq hd] a, w
  %7 : ℝ[seq: T, 2*HD] = reshape_like %6, x
  %8 : ℝ[seq: T, 2*HD] = mul %7, x
  %9 : ℝ[] = mean %8
  return %9
}
"""
TEXTS = {"attention": (ATTENTION, "attend"), "dropout": (DROPOUT, "loss")}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("remat", ["recompute", "store"])
def test_the_gradient_is_the_golden_text(name: str, remat: Remat, update_golden: bool):
    text, of = TEXTS[name]
    done = differentiate(with_gradient(read(text), of, "_grad"), remat)
    verify(done, "ad")
    shown = print_program(done)
    check(GOLDEN / f"{name}.txt", {remat: shown}, update_golden)
    said = Diagnostics()
    assert load(shown, "golden", said) == done, said.items


@pytest.mark.parametrize("name", TEXTS)
def test_the_operators_are_the_golden_text(name: str, update_golden: bool):
    text, of = TEXTS[name]
    done = differentiate(with_operators(read(text), of), "recompute")
    verify(done, "ad")
    check(GOLDEN / f"{name}.txt", {"operators": print_program(done)}, update_golden)


def test_the_gradient_of_attention_is_the_central_difference():
    check_gradient(read(ATTENTION), "attend", {"HD": 2, "T": 3})
    check_duality(read(ATTENTION), "attend", {"HD": 2, "T": 3})
