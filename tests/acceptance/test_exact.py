"""The exact executor on every entry of the examples: an independent evaluation, and what never changes a digit.

By default a few entries; all of them under `slow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from benchmarks.conformance import ARGS, CONSTS, DIMS, EXAMPLES, RETRIED, entries, requests
from presk_rel.diagnostics import PreskError
from presk_rel.exec.exact.mp import GUARD_BITS
from presk_rel.exec.exact.rounding import round_rational
from presk_rel.exec.exact.run import Options, RunResult
from presk_rel.exec.literals import arguments
from presk_rel.exec.values import IndexTensor, KeyValue, MaskTensor, Rounded, Tensor, leaves
from presk_rel.session import Request, Session

FILES = sorted(str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*.psk") if p.parent.name != "diag")
QUICK = [("tour/hinge.psk", "hinge_grad"), ("tutorial/03_attention.psk", "attend"), ("train_minigpt.psk", "next_token")]
"""Run by default."""


@cache
def session(file: str) -> Session:
    return Session(str(EXAMPLES / file), CONSTS.get(file, {}))


def cases() -> Iterator[Any]:
    """Every file's entries are found when a slow test asks for them: collecting compiles nothing."""
    yield from (pytest.param(*case, id="/".join(case)) for case in QUICK)
    yield from (pytest.param(file, "", id=file, marks=pytest.mark.slow) for file in FILES)


CASES = pytest.mark.parametrize(("file", "entry"), list(cases()))


def of(file: str, entry: str) -> list[str]:
    return [entry] if entry else entries(session(file))


@cache
def request(file: str, entry: str) -> Request:
    """The first inputs that make a value."""
    program, given = session(file), arguments(ARGS.get((file, entry), ()))
    for found in requests(program.entry(entry), given, DIMS.get((file, entry), {})):
        try:
            program.run_exact(entry, found, Options(bits=24))
        except PreskError as error:
            if error.diagnostics[0].code in RETRIED:
                continue
            raise
        return found
    raise AssertionError(f"no dims make a value of {entry}")


def run(file: str, entry: str, options: Options, *, optimize: bool = True) -> RunResult:
    asked = request(file, entry)
    return session(file).run_exact(entry, Request(asked.given, asked.dims, asked.seed, optimize=optimize), options)


def agree(found: RunResult, other: RunResult) -> bool:
    """Each real of `other`, rounded to the digits of `found`, is that of `found`, or below its bound where `found`
    proves only that; each choice and key is the same."""
    pairs = zip(leaves(found.value), leaves(other.value), strict=True)
    return all(_same(a, b, found.digits) for (_, a), (_, b) in pairs)


def _same(a: Any, b: Any, digits: int) -> bool:
    match a, b:
        case Tensor(_, Rounded() as x), Tensor(_, Rounded() as y):
            texts = zip(x.text.ravel().tolist(), y.text.ravel().tolist(), strict=True)
            return all(
                round_rational(Fraction(q), digits).text == p
                or (p == "0" and abs(Fraction(q)) <= Fraction(x.error_bound or 0))
                for p, q in texts
            )
        case (IndexTensor(_, _, x), IndexTensor(_, _, y)) | (MaskTensor(_, x), MaskTensor(_, y)):
            return x.tolist() == y.tolist()
        case KeyValue(x), KeyValue(y):
            return x == y
        case _:
            raise AssertionError(type(a))


@CASES
def test_digits_are_those_of_mpmath_at_200_more_bits(file: str, entry: str) -> None:
    oracle = Options(bits=64, kernel="mpmath", extra_bits=200 - GUARD_BITS)
    for name in of(file, entry):
        proven = run(file, name, Options(bits=64))
        assert agree(proven, run(file, name, oracle)), name


@CASES
def test_128_bits_are_the_rounding_of_512(file: str, entry: str) -> None:
    for name in of(file, entry):
        assert agree(run(file, name, Options(bits=128)), run(file, name, Options(bits=512))), name


@CASES
def test_7_bits_more_of_working_precision_change_no_digit(file: str, entry: str) -> None:
    for name in of(file, entry):
        few, more = (run(file, name, Options(bits=128, extra_bits=n)) for n in (0, 7))
        assert few.precision < more.precision
        assert agree(few, more), name


@CASES
def test_the_optimized_program_has_the_same_digits(file: str, entry: str) -> None:
    for name in of(file, entry):
        plain = run(file, name, Options(bits=256), optimize=False)
        assert agree(run(file, name, Options(bits=256)), plain), name
        assert agree(plain, run(file, name, Options(bits=256))), name
