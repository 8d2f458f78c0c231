"""The distance of a measured result from a proven one."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from presk_rel.exec.conform import MOST, Difference, Distance, distance
from presk_rel.exec.values import IndexTensor, MaskTensor, Rounded, Tensor

INFINITY = float("inf")


def of(proven: list[str], measured: list[float], bound: str = "5e-77") -> Distance:
    axes = (("i", len(proven)),)
    text: Any = np.array(proven, dtype=object)
    return distance(Tensor(axes, Rounded(text, bound, 0)), Tensor(axes, np.array(measured)))


def test_the_distance_is_exact_and_relative_to_the_largest_entry():
    found = of(["4", "0.1", "0"], [4.0, 0.1, 0.5])
    assert (found.relative, found.where, found.differing) == (Fraction(1, 8), "result[2]", 0)
    assert of(["0.1"], [0.1]).relative == (Fraction(0.1) - Fraction(1, 10)) * 10


@pytest.mark.parametrize("bad", [INFINITY, -INFINITY, float("nan")])
@pytest.mark.parametrize("proven", ["1", "1e400"])
def test_an_infinity_and_nan_differ_from_every_number(bad: float, proven: str):
    found = of(["1", proven], [1.0, bad])
    assert (found.differing, found.first) == (1, Difference("result[1]", str(bad), proven))
    assert float(found.relative) < INFINITY


@pytest.mark.timeout(20)
def test_numbers_beyond_all_floats_have_a_distance_that_a_float_holds():
    found = of(["1.5e434294481903", "1.5e-434294481903"], [0.0, 0.0], "5e434294481890")
    assert found.relative == 1
    assert max(float(found.scale), float(found.exact_error)) <= float(MOST)
    assert float(of(["1e-4000"], [1e300]).relative) == float(MOST)


def test_discrete_results_are_compared_entry_by_entry():
    axes = (("i", 3),)
    found = distance(IndexTensor(9, axes, np.array([1, 2, 3])), IndexTensor(9, axes, np.array([1, 4, 5])))
    assert (found.entries, found.discrete, found.differing) == (0, 3, 2)
    assert found.first == Difference("result[1]", "4", "2")
    same = distance(MaskTensor(axes, np.array([True] * 3)), MaskTensor(axes, np.array([True] * 3)))
    assert (same.discrete, same.differing, same.first) == (3, 0, None)
