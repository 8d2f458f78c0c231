"""LaTeX: every example compiles; names and notes print what they are, whatever they hold."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presk_rel.notation.formula import Den, Equation, Num, Over, Root, Section, Sym, applied
from presk_rel.notation.latex_names import math_name, note_text, upright_name
from presk_rel.notation.latex_style import latex_text
from presk_rel.notation.unicode_style import unicode_text
from presk_rel.session import Session
from tests.notation.texts import after_ad, compiles, elab, well_formed
from tests.syntax.trees import NAMES

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(p for p in EXAMPLES.rglob("*.psk") if p.parent.name != "diag")

HOSTILE = ["_", "__", "a_b", "σ2", "σ_2", "x̂", "ŷ", "x̂̂", "q̇̈", "ẑ" + "\u0302" * 200, "名前", "नमस्ते", "ℓ", "Α", "ß", "ıx",
           "xᵢ", "xᵢ2", "ᵢ", "ₐₐ", "x2ₐ", "seq2", "%8", "x%7", "gelu'", "é", "한글", "ﬁ", "𝒳", "a" * 1000]  # fmt: skip
NOTES = [r"\input{/etc/passwd}", r"\end{document}", "}}}{{{", "%$#&^~_", "^^M^^5c", "a\nb\x00\x1b[31m", "\\",
         "“x” — 🙂", "ŷ (call θ.w)", "```''---<<>>", r"\csname x\endcsname"]  # fmt: skip


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_example_is_written_and_compiles(path: Path, tmp_path: Path) -> None:
    session = Session(str(path))
    sections = elab(session) + after_ad(session)
    assert {f.name for f in session.typed.functions} <= {s.name for s in sections}
    text = unicode_text(sections)
    assert all(s.name in text for s in sections)
    compiles(latex_text(sections, standalone=True), tmp_path)


def test_hostile_names_and_notes_compile(tmp_path: Path) -> None:
    equations = [Equation(Sym(n, i % 3), applied(Den(n), (Sym(n),))) for i, n in enumerate(HOSTILE)]
    equations += [Equation(Sym("x"), Sym("y"), note) for note in NOTES]
    section = Section(HOSTILE[6], ((Sym("θ_2"), Sym("ŷ")),), tuple(equations))
    compiles(latex_text([section], standalone=True), tmp_path)


@given(NAMES)
def test_no_name_leaves_its_place(name: str) -> None:
    well_formed(math_name(name))
    well_formed(upright_name(f"{name}.{name}"))


@given(st.text())
def test_no_note_leaves_its_place(note: str) -> None:
    text = note_text(note)
    well_formed(text)
    assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("x", "x"),
        ("seq", r"\mathit{seq}"),
        ("θ", r"{\theta}"),
        ("σ2", r"{\sigma}_{2}"),
        ("σ_2", r"\mathit{{\sigma}\_}_{2}"),
        ("x̂", r"\hat{x}"),
        ("ŷ", r"\hat{y}"),
        ("xᵢ", r"x_{i}"),
        ("a_b", r"\mathit{a\_b}"),
        ("名", r"\pskchar{540D}"),
    ],
)
def test_names(name: str, written: str) -> None:
    assert math_name(name) == written


def test_deep_formulas_are_written_and_compile(tmp_path: Path) -> None:
    """TeX nests 255 groups and Python a thousand calls; a program's formulas may be deeper."""
    formula: Sym | Over | Root = Sym("x")
    for _ in range(2_000):
        formula = Over(Root(formula), Num(Fraction(2)))
    section = Section("f", (), (Equation(Sym("y"), formula),))
    assert unicode_text([section]).count("√") == 2_000
    compiles(latex_text([section], standalone=True), tmp_path)
