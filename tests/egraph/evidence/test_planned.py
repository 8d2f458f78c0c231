"""How many kernels the gradients of the examples are planned as: no more than when this was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"train_minigpt": {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": 2}}
PLANNED = {
    ("gpt", "loss_grad"): 185,
    ("mlp", "mse_grad"): 5,
    ("train_minigpt", "loss_grad"): 73,
    ("autoencoder", "loss_grad"): 5,
    ("contrastive", "loss_grad"): 6,
    ("cross_attention", "loss_grad"): 8,
    ("diffusion", "loss_grad"): 5,
    ("flow", "loss_grad"): 4,
    ("gaussian_process", "loss_grad"): 3,
    ("graph_network", "loss_grad"): 15,
    ("grouped_query_attention", "loss_grad"): 15,
    ("gru", "loss_grad"): 39,
    ("hessian_vector", "loss_grad"): 2,
    ("huber", "loss_grad"): 2,
    ("linear_attention", "loss_grad"): 4,
    ("logistic_regression", "loss_grad"): 2,
    ("lora", "loss_grad"): 6,
    ("matrix_factorization", "loss_grad"): 3,
    ("meta_learning", "loss_grad"): 6,
    ("mlp_mixer", "loss_grad"): 56,
    ("multi_query_attention", "loss_grad"): 13,
    ("physics_informed", "loss_grad"): 1,
    ("poisson_regression", "loss_grad"): 2,
    ("policy_gradient", "loss_grad"): 4,
    ("polynomial_fit", "loss_grad"): 1,
    ("q_learning", "loss_grad"): 4,
    ("residual_tower", "loss_grad"): 52,
    ("rnn", "loss_grad"): 9,
    ("rnn", "settled_grad"): 16,
    ("rotary", "loss_grad"): 10,
    ("schedule_constant", "loss_grad"): 2,
    ("schedule_cosine", "loss_grad"): 2,
    ("schedule_linear", "loss_grad"): 2,
    ("softmax_regression", "loss_grad"): 3,
    ("support_vectors", "loss_grad"): 2,
    ("two_experts", "loss_grad"): 7,
    ("vae", "loss_grad"): 5,
    ("word_vectors", "loss_grad"): 5,
    ("adamw", "loss_grad"): 2,
    ("deep", "loss_grad"): 14,
    ("grad_of_function", "pair_grad"): 1,
    ("hinge", "hinge_grad"): 2,
    ("linear_regression", "loss_grad"): 2,
}
"""Launches of the partition by example and entry, every dimension 64."""
SAMPLE = ("mlp", "lora", "poisson_regression", "diffusion", "gaussian_process", "rnn")


@pytest.mark.parametrize(
    ("stem", "entry"), [pytest.param(*k, marks=() if k[0] in SAMPLE else pytest.mark.slow) for k in PLANNED]
)
def test_no_more_kernels_than_before(stem: str, entry: str):
    session = Session(str(next(EXAMPLES.rglob(f"{stem}.psk"))), SMALL.get(stem, {}))
    dims = dict.fromkeys(session.core.functions[entry].dims, 64)
    assert session.fused(entry, dims).work.kernels <= PLANNED[stem, entry]
