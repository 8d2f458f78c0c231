"""The whole pipeline on the examples: optimization changes no digit, torch is near, a second kernel agrees."""

from __future__ import annotations

import pytest

from tests.cli.harness import EXAMPLES, presk_json

ENTRIES = [
    ("mlp.psk", "mse", ("B=3", "D=2")),
    ("mlp.psk", "mse_grad", ("B=2", "D=4")),
    ("tour/linear_regression.psk", "loss_grad", ("N=5", "D=3")),
    ("tour/hinge.psk", "hinge_grad", ("N=4", "D=3")),
    ("tour/hinge.psk", "smooth", ("N=4", "D=3")),
    ("tour/deep.psk", "loss_grad", ("B=2", "D=3")),
    ("tour/grad_of_function.psk", "force", ("N=4",)),
    ("tour/grad_of_function.psk", "pair_grad", ("N=4",)),
]
CASES = pytest.mark.parametrize(("path", "entry", "dims"), ENTRIES)


def args(path: str, entry: str, dims: tuple[str, ...]) -> list[str]:
    extra = [x for d in dims for x in ("--dim", d)]
    targets = ["--arg", "y=[1, -1, 1, -1]"] if entry.startswith(("hinge", "smooth")) else []
    labels = ["--arg", "y=[[0.25, 0.5, 0.75], [0.5, 0.125, 1]]"] if "deep" in path else []
    return [str(EXAMPLES / path), "--entry", entry, *extra, *targets, *labels]


@CASES
def test_optimization_changes_no_proven_digit(path: str, entry: str, dims: tuple[str, ...]) -> None:
    """… nor does the way residuals are kept, nor verifying the proof first."""
    command = args(path, entry, dims)
    plain = presk_json("run", *command, "--no-opt").document["result"]
    assert presk_json("run", *command, "--verify").document["result"] == plain
    assert presk_json("run", *command, "--no-opt", "--remat", "recompute").document["result"] == plain


@CASES
def test_more_bits_round_to_the_same(path: str, entry: str, dims: tuple[str, ...]) -> None:
    command = args(path, entry, dims)
    few = presk_json("run", *command, "--bits", "128").document["result"]
    more = presk_json("run", *command, "--bits", "512", "--digits", "38").document["result"]
    assert _data(more) == _data(few)


@CASES
def test_torch_is_within_its_bounds(path: str, entry: str, dims: tuple[str, ...]) -> None:
    command = args(path, entry, dims)
    assert presk_json("conform", *command).status == 0
    assert presk_json("conform", *command, "--dtype", "f32").status == 0


def test_mpmath_is_a_second_kernel() -> None:
    command = args(*ENTRIES[1])
    balls, mpmath = (presk_json("run", *command, "--kernel", k).document for k in ("balls", "mpmath"))
    assert _data(balls["result"]) == _data(mpmath["result"])
    assert (balls["proven"], mpmath["proven"]) == (True, False)


def _data(result: object) -> object:
    if isinstance(result, dict):
        return result["data"] if "data" in result else {k: _data(v) for k, v in result.items()}
    return [_data(v) for v in result] if isinstance(result, list) else result
