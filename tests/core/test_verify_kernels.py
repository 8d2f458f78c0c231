"""Kernels in PSK-Core: functions of primitives that are only called."""

from __future__ import annotations

import pytest

from presk_rel.core.printer import print_program
from presk_rel.core.reader import load, read_program
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics

TEXT = """fn g{D}(x : ℝ[D]) -> ℝ[D] {
  y : ℝ[D] = neg x
  return y
}

kernel k1{D}(x : ℝ[D]) -> (ℝ[D], ℝ[]) {
  y : ℝ[D] = exp x
  s : ℝ[] = sum y
  t : (ℝ[D], ℝ[]) = (y, s)
  return t
}

kernel k2{D}(x : ℝ[D]) -> ℝ[D] {
  y : ℝ[D] = tanh x
  return y
}

fn f{D}(x : ℝ[D]) -> ℝ[D] {
  t : (ℝ[D], ℝ[]) = call k1{D = D}(x)
  y : ℝ[D] = t.0
  z : ℝ[D] = call k2{D = D}(y)
  return z
}
"""


def test_kernels_are_read_as_printed_and_well_formed():
    program = load(TEXT, "k.core", Diagnostics())
    assert program is not None
    assert [f.name for f in program.functions.values() if f.kernel] == ["k1", "k2"]
    assert print_program(program) == TEXT


MUTATIONS = [
    ("y : ℝ[D] = tanh x", "y : ℝ[D] = call g{D = D}(x)", "k2/y: is in a kernel, which holds primitives only"),
    ("y : ℝ[D] = tanh x", "y : ℝ[D] = fold 3 g(stacked; acc x)", "k2/y: is in a kernel, which holds primitives only"),
    ("z : ℝ[D] = call k2{D = D}(y)", "z : ℝ[D] = fold 3 k2(stacked; acc y)", "f/z: names the kernel k2"),
    ("z : ℝ[D] = call k2{D = D}(y)",
     "c : (ℝ[D]) -> ℝ[D] = closure k2[]\n  z : ℝ[D] = apply c(y)", "f/c: names the kernel"),
    ("y : ℝ[D] = t.0", "y : ℝ[D] = t.1", "f/y: is declared ℝ[D], but proj gives ℝ[]"),
    ("t : (ℝ[D], ℝ[]) = (y, s)", "t : (ℝ[D],) = (y,)", "but declares (ℝ[D], ℝ[])"),
    ("call k2{D = D}(y)", "call k2{D = D}(y, y)", "k2 takes 1 arguments, not 2"),
    ("call k2{D = D}(y)", "call k2{D = 2*D}(y)", "k2"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), MUTATIONS)
def test_each_way_of_breaking_one_is_caught(old: str, new: str, says: str):
    program = read_program(TEXT.replace(old, new), "k.core", Diagnostics())
    assert program is not None
    found = problems(program)
    assert found and any(says.split(": ")[-1] in p for p in found), found
