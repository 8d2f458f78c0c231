"""Derivatives of random programs, from source text to proven digits: against central differences at 512 bits, against
torch at f64, forward against reverse mode, and one way of keeping residuals against the other."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch.run import Dtype
from presk_rel.exec.values import Tensor, leaves
from presk_rel.pipeline import Request, Session
from tests.acceptance.gradients import (
    CLOSE,
    DIMS,
    PROVEN,
    curvature_errors,
    differentiated,
    duality_error,
    slope_error,
    torch_errors,
)
from tests.acceptance.programs import random_program
from tests.exec.oracle import texts

SEEDS, SIZES, SMALL = st.integers(0, 2**32), st.integers(4, 16), st.integers(4, 10)
QUIET = (HealthCheck.too_slow,)


def check(seed: int, size: int, smooth: bool) -> None:
    source = random_program(seed, size, smooth=smooth)
    with TemporaryDirectory() as folder:
        d = differentiated(source.text, Path(folder))
    assert slope_error(d) < CLOSE
    assert duality_error(d) < PROVEN
    if smooth:
        difference, other = curvature_errors(d)
        assert difference < CLOSE
        assert other < PROVEN
    errors = torch_errors(d, source)
    assert max(errors.values()) < 1e-10, errors


@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
@given(SEEDS, SMALL, st.booleans())
def test_random_programs(seed: int, size: int, smooth: bool) -> None:
    check(seed, size, smooth)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=600, deadline=None, suppress_health_check=QUIET)
@given(SEEDS, SIZES, st.booleans())
def test_six_hundred_random_programs(seed: int, size: int, smooth: bool) -> None:
    check(seed, size, smooth)


@pytest.mark.parametrize("seed", range(100, 106))
def test_with_dropout_the_masks_are_those_of_the_forward_pass(seed: int, tmp_path: Path) -> None:
    """In the training reading, where the two ways to keep residuals must draw the same masks."""
    source = random_program(seed, 12, smooth=False)
    text = source.text.replace("let (θ, p, q, s) = w\n", "let (θ, p, q, s) = w\n  let x = dropout(0.5, key, x * p)\n")
    for remat in ("store", "recompute"):
        d = differentiated(text, tmp_path, remat=remat, mode="training")
        assert any(b.op.op == "dropout_mask" for b in d.program.functions["f"].bindings if hasattr(b.op, "op"))
        assert slope_error(d) < CLOSE
        assert duality_error(d) < PROVEN


FORMS: dict[str, dict[str, Any]] = {
    "store": {},
    "recompute": {"remat": "recompute"},
    "store, unrolled": {"unroll_stack": True},
    "recompute, unrolled": {"unroll_stack": True, "remat": "recompute"},
}
REQUEST = Request(dims=DIMS, optimize=False)


def bits(session: Session, dtype: Dtype) -> list[bytes]:
    value = session.run_torch("loss_grad", REQUEST, dtype, "cpu").value
    return [leaf.data.tobytes() for _, leaf in leaves(value) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("seed", range(200, 202))
def test_neither_kept_residuals_nor_unrolled_stacks_change_a_digit(seed: int, mode: Any, tmp_path: Path) -> None:
    """Kept or computed again, a residual has the same bits; a fold and its calls have the same proven digits."""
    path = tmp_path / "program.psk"
    path.write_text(random_program(seed, 8, smooth=False).text, encoding="utf-8")
    made = {name: Session(str(path), mode=mode, **form) for name, form in FORMS.items()}
    for dtype in ("f64", "f32"):
        for form in ("store", "store, unrolled"):
            assert bits(made[form], dtype) == bits(made[form.replace("store", "recompute")], dtype)
    digits = [texts(s.run_exact("loss_grad", REQUEST, Options(bits=128)).value) for s in made.values()]
    assert all(d == digits[0] for d in digits)
