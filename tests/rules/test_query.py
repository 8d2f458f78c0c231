"""Queries: text of a body → a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.rules.ast import Row
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.proof_check import check_proof
from presk_rel.rules.proofs import Prover
from presk_rel.rules.query import Answer, ask

PROGRAM = parse_program(
    """
    .decl calls(f:symbol, g:symbol)                  .input calls
    .decl class_of(f:symbol, p:symbol, k:number)     .input class_of
    .decl query(x:symbol)
    """
)
FACTS: dict[str, list[Row]] = {
    "calls": [("f", "g"), ("g", "h"), ("f", "h")],
    "class_of": [("f", "x", 2), ("g", "x", 0), ("h", "y", 2)],
}


def answer(text: str, **options: Path) -> Answer:
    return ask(PROGRAM, FACTS, text, **options)


def test_columns_are_the_variables_in_order_and_rows_are_sorted() -> None:
    found = answer("class_of(f, p, 2), calls(f, g)")
    assert found.columns == ("f", "p", "g")
    assert found.rows == [("f", "x", "g"), ("f", "x", "h")]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("calls(θ, _), !class_of(θ, _, 2)", ("θ",), [("g",)]),
        ("class_of(f, _, n), n * 2 > 1 + n", ("f", "n"), [("f", 2), ("h", 2)]),
        ("calls(x, y) ; calls(y, x)", ("x", "y"), sorted([*FACTS["calls"], *((b, a) for a, b in FACTS["calls"])])),
        ("n = count : { calls(_, _) }", ("n",), [(3,)]),
        ("class_of(f, _, _), n = count : { calls(f, g) }", ("f", "n"), [("f", 2), ("g", 1), ("h", 0)]),
        ('calls("f", "g")', (), [()]),
        ('calls("g", "f")', (), []),
        ("calls(as, ord)", ("as", "ord"), sorted(FACTS["calls"])),
        ("calls(x, y), z = cat(x, y)", ("x", "y", "z"), [("f", "g", "fg"), ("f", "h", "fh"), ("g", "h", "gh")]),
    ],
)
def test_what_a_query_may_say(text: str, columns: tuple[str, ...], rows: list[Row]) -> None:
    found = answer(text)
    assert (found.columns, found.rows) == (columns, rows)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("calls(x", "E9101", "<query>:1:8"),
        ("", "E9101", "<query>:1:1"),
        ("calls(x, y).", "E9101", "<query>:1:12"),
        ("calls(x, y), cals(y, z)", "E9106", "<query>:1:14"),
        ("calls(x)", "E9107", "<query>:1:1"),
        ("calls(x, y), x > 1", "E9108", "<query>:1:14"),
        ("!calls(x, y)", "E9109", "<query>:1:1"),
        ("calls(x, y) ; calls(x, z)", "E9109", "<query>:1:1"),
        ("(" * 50_000, "E9101", "<query>:1:50001"),
        ("calls(x, y), x = " + "cat(x, " * 200 + "x" + ")" * 200, "E9102", "<query>:1:711"),
        ("calls(x, y), x = 99999999999", "E9115", "<query>:1:1"),
    ],
)
def test_errors_point_into_the_query(text: str, code: str, place: str) -> None:
    with pytest.raises(PreskError) as caught:
        answer(text)
    assert caught.value.diagnostics[0].code == code
    assert str(caught.value.diagnostics[0].span) == place


def test_rules_of_a_file_are_added(tmp_path: Path) -> None:
    path = tmp_path / "extra.dl"
    path.write_text(".decl reaches(f:symbol, g:symbol)\nreaches(f, g) :- calls(f, g).\n// [reach.more]\n")
    with path.open("a") as file:
        file.write("reaches(f, h) :- reaches(f, g), calls(g, h).\n")
    found = answer('reaches(f, "h")', rules=path)
    assert found.rows == [("f",), ("g",)]
    proof = Prover(found.relations).prove(found.query.relation, ("g",))
    assert check_proof(found.relations, proof) == []


def test_errors_in_a_file_of_rules_point_into_it(tmp_path: Path) -> None:
    path = tmp_path / "extra.dl"
    path.write_text("\ncalls(x, y) :- cals(x, y).")
    with pytest.raises(PreskError, match="E9106") as caught:
        answer("calls(x, y)", rules=path)
    assert str(caught.value.diagnostics[0].span) == f"{path}:2:16"
    with pytest.raises(PreskError, match="E9103"):
        answer("calls(x, y)", rules=tmp_path / "none.dl")
