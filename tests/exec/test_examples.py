"""Example entries at small dimensions: against mpmath at 200 more bits, and what never changes the digits."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from presk_rel.core.ir import Program
from presk_rel.exec.exact.rounding import round_rational
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.render import to_json
from presk_rel.session import Session

from .oracle import texts

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"m.V": 8, "m.D": 4, "m.H": 2, "m.L": 2}
DIMS = {"B": 2, "T": 3}


@pytest.fixture(scope="module")
def minigpt() -> Program:
    return Session(str(EXAMPLES / "train_minigpt.psk"), SIZES).differentiated


def arguments(entry: str) -> dict[str, Any]:
    return {"temperature": Fraction(8, 10)} if entry == "next_token" else {}


ENTRIES: list[tuple[str, Mapping[str, int]]] = [("loss", DIMS), ("loss_grad", DIMS), ("next_token", DIMS)]


@pytest.mark.parametrize(("entry", "dims"), ENTRIES)
def test_minigpt_agrees_with_mpmath_at_200_more_bits(minigpt: Program, entry: str, dims: Mapping[str, int]):
    proven = run_exact(minigpt, entry, arguments(entry), dims, options=Options(bits=64))
    oracle = run_exact(
        minigpt, entry, arguments(entry), dims, options=Options(bits=64, kernel="mpmath", extra_bits=160)
    )
    assert texts(proven.value) == texts(oracle.value)
    assert _choices(to_json(proven.value)) == _choices(to_json(oracle.value))


def _choices(document: Any) -> list[Any]:
    """The indices of a result."""
    if isinstance(document, dict) and str(document.get("type", "")).startswith("idx"):
        return [document["data"]]
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else []
    return [c for part in parts for c in _choices(part)]


def test_the_loss_of_minigpt_at_its_initial_parameters_is_the_logarithm_of_its_vocabulary(minigpt: Program):
    """ln 8: the output head starts at zero."""
    result = run_exact(minigpt, "loss", {}, DIMS, options=Options(bits=64))
    assert texts(result.value)[0].startswith("2.0794415416798359")


@pytest.mark.parametrize("entry", ["loss", "loss_grad"])
def test_the_digits_depend_on_no_working_precision_and_round_as_more_of_them_do(minigpt: Program, entry: str):
    few = run_exact(minigpt, entry, {}, DIMS, options=Options(bits=128))
    higher = run_exact(minigpt, entry, {}, DIMS, options=Options(bits=128, extra_bits=7))
    many = run_exact(minigpt, entry, {}, DIMS, options=Options(bits=512))
    assert texts(few.value) == texts(higher.value)
    assert texts(few.value) == [round_rational(Fraction(t), few.digits).text for t in texts(many.value)]


def test_a_token_is_sampled_alike_at_every_precision_and_by_every_seed_its_own(minigpt: Program):
    def token(seed: int, bits: int) -> Any:
        given = {"temperature": Fraction(8, 10)}
        return to_json(run_exact(minigpt, "next_token", given, DIMS, seed, Options(bits=bits)).value)["data"]

    assert token(0, 24) == token(0, 256) == token(0, 256)
    assert len({str(token(seed, 24)) for seed in range(8)}) > 1
