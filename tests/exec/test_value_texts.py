"""How values are named in messages: as people write numbers, never as a library does."""

from __future__ import annotations

from pathlib import Path

import pytest
from flint import arb

from presk_rel.exec.exact.ball_text import shown, trimmed
from tests.cli.harness import presk

PROGRAM = """
fn root(x : ℝ[a: 2]) -> ℝ[a: 2] = sqrt(x)
fn close(x : ℝ[]) -> ℝ[] = sqrt(exp(x) - exp(x / 3 + x * 2 / 3))
fn tie(x : ℝ[a: 2]) -> idx[2] = argmax(exp(x) - exp(x * 1))
fn same(b : bool, t : idx[3][2], x : ℝ[]) -> ℝ[] = x
"""


def test_a_ball_known_well_is_a_number_and_another_lies_between_two() -> None:
    assert [shown(b) for b in (arb(-1), arb("1e-300") - arb("2e-300"), arb(2).sqrt())] == [
        "-1",
        "-1e-300",
        "1.41421356237309",
    ]
    assert shown(arb(0, 1e-30)) == "between -1e-30 and 1e-30"
    assert (trimmed("100"), trimmed("1.50e3"), trimmed("-0.0"), shown(arb("nan"))) == ("100", "1.5e3", "-0", "unknown")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("root", "x=[1, -1e-300]"), "the square root of a negative number: -1e-300 at entry [1], in `root`"),
        (("close", "x=1"), "in `close`, where it is between -"),
        (("tie", "x=[1, 1]"), "in `tie`, where the scores are [between -"),
        (("same", "x=true"), "argument `x`: ℝ[] holds reals, the value given holds true"),
        (("same", "t=[1, true]"), "argument `t`: idx[3][2] holds integers, the value given holds true"),
        (("same", "t=[1, 0.5]"), "argument `t`: idx[3][2] holds integers, the value given holds 1/2"),
        (("same", "b=2"), "argument `b`: a bool is true or false"),
    ],
)
def test_messages_hold_no_value_of_a_library(tmp_path: Path, args: tuple[str, str], said: str) -> None:
    path = tmp_path / "v.psk"
    path.write_text(PROGRAM, encoding="utf-8")
    ran = presk("run", str(path), "--entry", args[0], "--arg", args[1], "--no-opt", "--max-bits", "512")
    assert said in ran.err
