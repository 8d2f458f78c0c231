"""A result has the axis names that its type declares, whatever the program called them on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.cli.harness import presk

TIED = """
module Tied {
  param tok : ℝ[5, model: 3]  init = ones
  fn scores(x : ℝ[model: 3]) -> ℝ[vocab: 5] =
    let e = (tok : ℝ[vocab: 5, model: 3])
    ein[vocab](x * e)
}
fn g(θ : params Tied, x : ℝ[model: 3]) -> (params Tied, ℝ[model: 3]) =
  (grad(λ θ. sum(exp(Tied.scores(θ, x))))(θ), x)
"""


@pytest.mark.parametrize("options", [(), ("--no-opt",)])
@pytest.mark.parametrize("executor", ["exact", "torch"])
def test_of_a_parameter_that_is_read_under_other_names(executor: str, options: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "tied.psk"
    path.write_text(TIED, encoding="utf-8")
    assert Session(str(path)).check() == []
    said = presk("run", str(path), "--entry", "g", "--executor", executor, *options).out
    assert [line.split("]")[0] + "]" for line in said.splitlines() if "ℝ" in line] == [
        "0.tok : ℝ[5, model: 3]",
        "1 : ℝ[model: 3]",
    ]
