"""What a run says of itself: costs per binding, memory, progress, an interruption."""

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.cli.run_costs import Progress, binding_costs
from presk_rel.exec.exact.kernel import Site
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.exact.sizes import estimate
from presk_rel.exec.inputs import prepare
from presk_rel.session import Request, Session

from .programs import MLP, program

DIMS = {"B": 2, "D": 3}
TEXT = """
fn g{N}(x : ℝ[N]) -> ℝ[N] {
  y : ℝ[N] = tanh x
  z : ℝ[N] = tanh y
  return z
}
fn f{N}(x : ℝ[N]) -> ℝ[] {
  a : ℝ[N] = fold 3 g{N = N}(stacked ; acc x)
  s : ℝ[] = sum a
  return s
}"""


def test_every_binding_that_ran_has_its_costs():
    result = run_exact(program(TEXT), "f", {"x": np.zeros(4)}, {}, options=Options(bits=64))
    found = {(c.function, c.binding): c for c in result.costs}
    assert list(found) == [("g", "y"), ("g", "z"), ("f", "s")]
    assert [c.times for c in result.costs] == [3, 3, 1]
    assert [c.bytes for c in result.costs] == [4 * found["f", "s"].bytes] * 2 + [found["f", "s"].bytes]
    assert all(c.seconds > 0 for c in result.costs)
    assert result.peak_bytes >= 8 * found["f", "s"].bytes


def test_costs_are_printed_only_when_asked_for():
    result = run_exact(program(TEXT), "f", {"x": np.zeros(4)}, {})
    nothing = binding_costs(result, time=False, memory=False)
    assert (nothing.document, nothing.text) == ({}, "")
    both = binding_costs(result, time=True, memory=True)
    assert "time per binding" in both.text
    assert "g/y : ℝ[N]" in both.text
    assert both.document["memory"]["peak"] == result.peak_bytes
    assert [b["binding"] for b in both.document["bindings"]] == ["y", "z", "s"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shows"), [(Terminal(), True), (io.StringIO(), False)])
def test_progress_is_shown_on_a_terminal_after_two_seconds(stream: io.StringIO, shows: bool):
    now = iter(range(100))
    progress = Progress(stream, lambda: float(next(now)))
    result = run_exact(program(TEXT), "f", {"x": np.zeros(4)}, {}, options=Options(progress=progress))
    progress.clear()
    written = stream.getvalue()
    assert ("operations" in written) == shows
    assert f"of {result.estimate.primitives} operations" in progress.said()
    assert progress.document() == {"precision": result.precision, "done": 6, "total": 7, "site": "`s` in `f`"}


def test_an_interruption_says_what_was_computed():
    progress = Progress(io.StringIO())
    assert "nothing is computed yet" in progress.said()

    def stop(precision: int, total: int, site: Site) -> None:
        progress(precision, total, site)
        if site.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_exact(program(TEXT), "f", {"x": np.zeros(4)}, {}, options=Options(progress=stop))
    assert "3 of 7 operations" in progress.said()
    assert "`z` in `g`" in progress.said() or "`y` in `g`" in progress.said()


# -------------------------------------------------------------------------------------------------------------- memory


def peak(text: str, last_use: Any, dims: dict[str, int]) -> int:
    found = program(text)
    _, args = prepare(found, "f", {}, dims, 0)
    return estimate(found, "f", args, dims, last_use).entries


def test_a_view_holds_what_it_is_a_view_of_and_a_small_selection_does_not():
    text = """
fn f{{N}}(x : ℝ[]) -> ℝ[] {{
  a : ℝ[4, N] = ones
  b : ℝ[4, N] = exp a
  c : {ty} = {view} b
  d : ℝ[4, N] = exp a
  s : ℝ[] = sum d
  t : ℝ[] = sum c
  u : ℝ[] = add s, t
  return u
}}"""
    uses = [("f", "b", 2), ("f", "d", 4)]
    split = peak(
        text.format(ty="ℝ[4*N]", view="merge axis p axis q").replace("ℝ[4, N]", "ℝ[p: 4, q: N]"), uses, {"N": 100}
    )
    picked = peak(text.format(ty="ℝ[N]", view="index 0: 0"), uses, {"N": 100})
    assert split >= 1200
    assert picked < 1000


def test_zeros_are_shared():
    text = """
fn f{N}(x : ℝ[]) -> ℝ[N, N] {
  a : ℝ[N, N] = zeros
  b : ℝ[N, N] = add a, a
  c : ℝ[N, N] = mul b, b
  d : ℝ[N, N] = dot c, b
  return d
}"""
    result = run_exact(program(text), "f", {"x": Fraction(1)}, {"N": 64}, options=Options(bits=24))
    raw: Any = result.raw
    assert set(raw.data.strides) == {0}


EXAMPLE = Path(__file__).parents[2] / "examples" / "mlp.psk"


def test_a_session_frees_by_the_liveness_of_every_function_that_the_entry_reaches():
    session = Session(str(EXAMPLE))
    result = session.run_exact("mse_grad", Request({}, {"B": 8, "D": 4}, 0, optimize=False), Options(bits=64))
    bound, args = prepare(session.differentiated, "mse_grad", {}, {"B": 8, "D": 4}, 0)
    kept = estimate(session.differentiated, "mse_grad", args, bound.env.dims)
    assert result.estimate.entries < kept.entries


def test_runs_are_deterministic():
    first, second = (run_exact(program(MLP), "mse_grad", {}, DIMS) for _ in range(2))
    assert first.estimate == second.estimate
    assert [c.binding for c in first.costs] == [c.binding for c in second.costs]
