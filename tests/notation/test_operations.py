"""How operations are written: one row each; parentheses where, and only where, a formula would read otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.core.prims import PRIMS
from presk_rel.notation.table import INFIX, SIGNS, SOURCE_ONLY, WRITTEN
from presk_rel.notation.unicode_style import unicode_text
from presk_rel.session import Session
from tests.notation.texts import elab


def test_every_operation_has_one_row() -> None:
    assert set(WRITTEN) == set(PRIMS) | set(SOURCE_ONLY)
    assert all(row.sign in INFIX for row in WRITTEN.values() if row.form in ("infix", "product"))
    assert all(unicode and latex and latex.isascii() for unicode, latex in SIGNS.values())


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("a - (b - c)", "a − (b − c)"),
        ("a - b - c", "a − b − c"),
        ("(a + b) * c", "(a + b) ⊙ c"),
        ("a / (b * c)", "a / (b ⊙ c)"),
        ("a / b / c", "a / b / c"),
        ("-(a + b)", "−(a + b)"),
        ("-a^2", "−a²"),
        ("(-a)^2", "(−a)²"),
        ("(a^2)^3", "(a²)³"),
        ("sqrt(a)^2", "(√a)²"),
        ("sqrt(a + 1)", "√(a + 1)"),
        ("a * 2.5", "a · 2.5"),
        ("gelu(a) + b", "(gelu a) + b"),
        ("gelu(a + b)", "gelu (a + b)"),
        ("max(a, b) * c", "(max a, b) ⊙ c"),
        ("abs(a - b)", "|a − b|"),
        ("mean(a) * a", "(mean a) · a"),
    ],
)
def test_parentheses(source: str, written: str, tmp_path: Path) -> None:
    path = tmp_path / "t.psk"
    params = ", ".join(f"{n} : ℝ[i: 4]" for n in "abc")
    path.write_text(f"fn f({params}) -> ℝ[i: 4] =\n  {source}\n", encoding="utf-8")
    assert unicode_text(elab(Session(str(path)))).splitlines()[-1] == f"    ⟦f⟧(a, b, c) = {written}"


def test_an_ein_has_names_for_the_axes_that_its_type_leaves_unnamed(tmp_path: Path) -> None:
    path = tmp_path / "t.psk"
    params = "a : ℝ[i: 4, j: 4], b : ℝ[j: 4], c : ℝ[4]"
    path.write_text(f"fn f({params}) -> ℝ[4] =\n  (ein[i](a * b) : ℝ[4])\n", encoding="utf-8")
    assert unicode_text(elab(Session(str(path)))).splitlines()[-1] == "    ⟦f⟧(a, b, c)[i] = ∑_{j} a[i, j] b[j]"
    path.write_text(f"fn f({params}) -> ℝ[4] =\n  (ein[i](a * b) : ℝ[4]) + c\n", encoding="utf-8")
    last = unicode_text(elab(Session(str(path)))).splitlines()[-1]
    assert last == "    ⟦f⟧(a, b, c) = (i ↦ ∑_{j} a[i, j] b[j]) + c"


def test_a_long_sum_with_an_ein_in_it(tmp_path: Path) -> None:
    path = tmp_path / "t.psk"
    long = " + ".join(["ein[i](a * a)", *["a"] * 3_000])
    path.write_text(f"fn f(a : ℝ[i: 4]) -> ℝ[i: 4] =\n  {long}\n", encoding="utf-8")
    last = unicode_text(elab(Session(str(path)))).splitlines()[-1]
    assert last.startswith("    ⟦f⟧(a)[i] = a[i] a[i] + a[i] + a[i]")
