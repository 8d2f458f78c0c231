"""What the user is told about names, and what the facts of a program look like from outside."""

from __future__ import annotations

from presk_rel.core.core_facts import core_facts
from presk_rel.elab.names import report_names
from presk_rel.facts.schema import SCHEMA, inputs
from tests.facts.read import facts, names
from tests.rules_program.core_programs import random_core


def said(text: str, **others: str) -> list[tuple[str, str, str | None]]:
    return [(d.code, d.message, d.help) for d in report_names(names(text, **others)).items]


def test_an_unknown_name_with_what_was_probably_meant() -> None:
    assert said("fn f(total, totals) = totl + totale + zzz\n") == [
        ("E1001", "unknown name `totl`", "did you mean `total`?"),
        ("E1001", "unknown name `totale`", "did you mean `total` or `totals`?"),
        ("E1001", "unknown name `zzz`", None),
    ]


def test_an_unknown_member_of_an_import() -> None:
    found = said('import "lib.psk" as m\nconst D = m.Width\n', lib="const width = 3\n")
    assert found == [("E1001", "the imported file declares no `Width`", "did you mean `width`?")]


def test_an_unknown_effect_and_optimizer() -> None:
    assert [code for code, _, _ in said("fn f(x) uses Disk = x\ntraining run { optimizer = sgd }\n")] == [
        "E4002",
        "E1001",
    ]


def test_a_name_declared_twice_shows_both_places() -> None:
    (found,) = report_names(names("const D = 3\nconst E = 4\nconst D = 5\n")).items
    assert (found.code, found.message) == ("E1002", "`D` is declared twice")
    assert found.span is not None
    assert (found.span.start.line, found.labels[0].span.start.line) == (3, 1)


def test_facts_fill_the_relations_of_their_origin_only() -> None:
    of_source = facts("module M { use m : A ∘ B }\nfn f(x : ℝ[k]) uses Rand = λ y. x\ntraining run { epochs = N }\n")
    assert set(of_source.rows) <= set(inputs("ast"))
    assert set(core_facts(random_core(3, local=False))) <= set(inputs("core"))
    assert set(inputs("ast")).isdisjoint(inputs("core"))


def test_rows_have_the_columns_of_the_schema() -> None:
    of_core = core_facts(random_core(5, local=False))
    of_source = facts("fn f(x : ℝ[k], y) = let_(x.a, y)\n").rows
    for relation, rows in [*of_core.items(), *of_source.items()]:
        types = [int if column.type == "number" else str for column in SCHEMA[relation].columns]
        assert all([type(value) for value in row] == types for row in rows)


def test_chains_as_long_as_programs_make_them() -> None:
    many = 10_000
    lets = "".join(f"  let v{i} = x + v{i - 1}\n" if i else "  let v0 = x\n" for i in range(many))
    assert names(f"fn f(x) =\n{lets}  v{many - 1}\n").unresolved == ()
    assert names("fn f(x) =\n  " + " + ".join(["x"] * many) + "\n").unresolved == ()
