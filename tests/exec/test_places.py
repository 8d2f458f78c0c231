"""Where something has no value: in the function that the user wrote, whatever passes moved the operation to."""

from pathlib import Path
from typing import Any

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.exec.exact.run import Options
from presk_rel.session import Request, Session

TEXT = """
dim B
const L : nat = 3

module Step {
  param w : ℝ[2]  init = ones
  fn apply(x : ℝ[batch: B, m: 2]) -> ℝ[batch: B, m: 2] =
    let h = x / (w - 1)
    tanh(h)
}

module Net {
  use blocks : stack{L}(Step)
  fn apply(x : ℝ[batch: B, m: 2]) -> ℝ[batch: B, m: 2] = blocks.apply(x)
}

fn loss(θ : params Net, x : ℝ[batch: B, m: 2]) -> ℝ[] = mean(Net.apply(θ, x)^2)

fn loss_grad(θ : params Net, x : ℝ[batch: B, m: 2]) -> params Net = grad(λ θ. loss(θ, x))(θ)
"""


def said(path: Path, entry: str, dims: dict[str, int], *, optimize: bool, **options: Any) -> Any:
    path.write_text(TEXT, encoding="utf-8")
    session = Session(str(path), **options)
    with pytest.raises(PreskError) as raised:
        session.run_exact(entry, Request(dims=dims, optimize=optimize), Options(bits=64))
    return raised.value.diagnostics[0]


@pytest.mark.parametrize("entry", ["loss", "loss_grad"])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("unroll", [True, False])
def test_an_undefined_operation_is_said_to_be_where_it_is_written(
    entry: str, optimize: bool, unroll: bool, tmp_path: Path
):
    found = said(tmp_path / "p.psk", entry, {"B": 2}, optimize=optimize, unroll_stack=unroll)
    assert found.message == "division by zero at entry [0, 0], in `h` in `Step.apply`"
    assert (found.span.start.line, found.span.start.column) == (8, 13)


@pytest.mark.parametrize("optimize", [True, False])
def test_an_operation_undefined_at_the_dimensions_too(optimize: bool, tmp_path: Path):
    found = said(tmp_path / "p.psk", "loss_grad", {"B": 0}, optimize=optimize)
    assert (found.code, found.message) == ("E7003", "a mean over no element in `loss`")
