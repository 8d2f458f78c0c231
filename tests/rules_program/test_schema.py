"""The schema table and the rule files say the same, and every rule and relation of them is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from presk_rel.facts.schema import SCHEMA
from presk_rel.rules.program import rule_program, rules_path

FILES = [rules_path(), *sorted((Path(rules_path()).parent / "presk_rel/rules").glob("*.dl"))]


def test_the_schema_and_the_declarations_name_the_same_relations() -> None:
    assert set(SCHEMA) == set(rule_program().relations)


@pytest.mark.parametrize("name", sorted(SCHEMA))
def test_a_schema_row_agrees_with_the_declaration(name: str) -> None:
    row, decl = SCHEMA[name], rule_program().relations[name]
    assert [(c.name, c.type) for c in row.columns] == [
        (a.name, t) for a, t in zip(decl.attributes, decl.types, strict=True)
    ]
    assert (row.role == "input") == decl.is_input
    assert set(re.findall(r"\{(\w+)\}", row.meaning)) <= {c.name for c in row.columns}


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in rule_program().rules]
    assert all(re.fullmatch(r"[a-z]+\.[a-z-]+", name) for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_declaration_has_a_comment_above_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if line.startswith(".decl") and not above.startswith("//")
    ]
    assert bare == []


def test_rules_dl_holds_no_rules_of_its_own() -> None:
    lines = rules_path().read_text(encoding="utf-8").splitlines()
    assert all(re.match(r"//|\.include|\.decl (position|place)\b|\.input (position|place)$|$", line) for line in lines)
