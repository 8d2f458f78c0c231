"""Derivatives of random programs, from source text to proven digits: against central differences at 512 bits, against
torch at f64, forward against reverse mode, and one way of keeping residuals against the other."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch.run import Dtype
from presk_rel.exec.values import Tensor, leaves
from presk_rel.session import Request, Session
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
    assume(smooth or not d.tied("loss_grad"))
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
@example(seed=416644, size=10, smooth=False)
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
TOWER = """\
dim B
dim T
module Layer{D : dim} {
  param w : ℝ[D, D]  init = xavier_uniform
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = x + tanh(x · w)
}
module Tower{D : dim} {
  use layers : stack{3}(Layer{D})
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = layers.apply(x)
}
fn loss_grad(net : Tower{2}, θ : params net, x : ℝ[batch: B, seq: T, 2]) -> params net =
  grad(λ θ. mean(net.apply(θ, x)^2))(θ)
"""
"""A stack of any number of leading axes."""
GPT = Path(__file__).parents[2] / "examples" / "gpt.psk"
"""Drops in every layer: the key of each is in the stack."""
TEXTS = {
    "random": random_program(200, 8, smooth=False).text,
    "another": random_program(201, 8, smooth=False).text,
    "leading axes": TOWER,
    "dropout": GPT.read_text(encoding="utf-8"),
}
SMALL_GPT = {"V": 5, "D": 4, "H": 2, "L": 3}
REQUEST = Request(dims=DIMS, optimize=False)


def bits(session: Session, dtype: Dtype) -> list[bytes]:
    value = session.run_torch("loss_grad", REQUEST, dtype, "cpu").value
    return [leaf.data.tobytes() for _, leaf in leaves(value) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", TEXTS)
def test_neither_kept_residuals_nor_unrolled_stacks_change_a_digit(name: str, mode: Any, tmp_path: Path) -> None:
    """Kept or computed again, a residual has the same bits; a fold and its calls have the same proven digits."""
    path = tmp_path / "program.psk"
    path.write_text(TEXTS[name], encoding="utf-8")
    consts = SMALL_GPT if name == "dropout" else {}
    made = {form: Session(str(path), consts, mode=mode, **options) for form, options in FORMS.items()}
    for dtype in ("f64", "f32", "bf16"):
        for form in ("store", "store, unrolled"):
            assert bits(made[form], dtype) == bits(made[form.replace("store", "recompute")], dtype)
    digits = [texts(s.run_exact("loss_grad", REQUEST, Options(bits=128)).value) for s in made.values()]
    assert all(d == digits[0] for d in digits)
