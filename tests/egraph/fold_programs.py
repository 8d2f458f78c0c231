"""Programs with folds for the tests of the optimizer, and their values before and after."""

from __future__ import annotations

import random

import mpmath as mp

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from tests.ad.check import with_directional, with_gradient
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.ad.test_folds import DIMS, PROGRAMS
from tests.egraph.programs import read

NAMES = [name for name in PROGRAMS if "axes" not in name]
ENTRIES = [(name, order, remat) for name in NAMES for order in (1, 2) for remat in ("store", "recompute")]
"""Name, order of the derivative, how residuals are kept. (A prefix is no entry.)"""


def gradient(name: str, order: int, remat: Remat) -> tuple[Program, Program, str]:
    """The differentiated program, the flat one, and the entry."""
    text, of = PROGRAMS[name]
    program = read(text)
    if order == 1:
        program, entry = with_gradient(program, of), f"{of}∇"
    else:
        program, entry = with_gradient(with_directional(program, of), f"{of}∂"), f"{of}∂∇"
    done = differentiate(program, remat)
    return done, inline_entry(done, entry), entry


def same_values(before: Program, after: Program, entry: str, dims: dict[str, int] = DIMS) -> bool:
    """Whether both compute the same at random arguments, to 60 digits."""
    rng = random.Random(0)
    with mp.workdps(80):
        params = before.functions[entry].params
        args = [random_value(before, p.type, dims, (), lambda: mp.mpf(rng.uniform(0.3, 1.4))) for p in params]
        pairs = zip(flat(evaluate(before, entry, dims, args)), flat(evaluate(after, entry, dims, args)), strict=True)
        return all(mp.almosteq(x, y, rel_eps=mp.mpf(10) ** -60, abs_eps=mp.mpf(10) ** -60) for x, y in pairs)
