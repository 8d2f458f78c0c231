"""Gradients of random programs: against central differences, and `store` against `recompute` to the last bit."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.ad.reverse import Remat
from presk_rel.core.verify import verify
from tests.ad.check import check_duality, check_gradient, with_directional
from tests.ad.interpreter_values import flat
from tests.ad.random_programs import DIMS, random_program

seeds = st.integers(0, 2**32)


@settings(max_examples=80, deadline=None)
@given(seeds, st.integers(4, 24))
def test_the_gradient_is_the_central_difference_and_store_changes_no_bit(seed: int, size: int):
    program = random_program(Random(seed), size)
    verify(program, "random")
    _, kept = check_gradient(program, "loss", DIMS, seed=seed, remat="store")
    _, computed = check_gradient(program, "loss", DIMS, seed=seed, remat="recompute")
    assert flat(kept) == flat(computed)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(4, 12))
def test_the_second_derivative_is_the_central_difference_of_the_first(seed: int, size: int):
    program = with_directional(random_program(Random(seed), size), "loss")
    _, kept = check_gradient(program, "loss∂", DIMS, seed=seed, remat="store")
    _, computed = check_gradient(program, "loss∂", DIMS, seed=seed, remat="recompute")
    assert flat(kept) == flat(computed)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(4, 20), st.sampled_from(["store", "recompute"]))
def test_forward_mode_is_dual_to_reverse_mode(seed: int, size: int, remat: Remat):
    check_duality(random_program(Random(seed), size), "loss", DIMS, seed=seed, remat=remat)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_every_gradient_of_five_hundred_programs_is_the_central_difference(seed: int):
    program = random_program(Random(seed), Random(seed).randrange(8, 40))
    _, kept = check_gradient(program, "loss", DIMS, seed=seed, remat="store")
    _, computed = check_gradient(program, "loss", DIMS, seed=seed, remat="recompute")
    assert flat(kept) == flat(computed)
    check_duality(program, "loss", DIMS, seed=seed)
