"""Where the rules are found, and parts of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from presk_rel.rules.dialect import read_program
from presk_rel.rules.program import rule_program, rules_for, rules_path


def test_the_layout_of_an_installed_package(tmp_path: Path) -> None:
    """In a wheel, rules.dl lies inside the package and its includes are relative to the folder above."""
    package = tmp_path / "presk_rel"
    (package / "rules").mkdir(parents=True)
    shutil.copyfile(rules_path(), package / "rules.dl")
    for part in (rules_path().parent / "presk_rel/rules").glob("*.dl"):
        shutil.copyfile(part, package / "rules" / part.name)
    program = read_program(package / "rules.dl", search=(tmp_path,))
    assert [rule.name for rule in program.rules] == [rule.name for rule in rule_program().rules]


def test_a_part_has_what_its_relations_need_and_no_more() -> None:
    part = rules_for(frozenset(("live",)))
    assert set(part.relations) == {"live", "returned", "reads"}
    assert {rule.head.relation for rule in part.rules} == {"live"}
