"""rules.dl as a whole: every engine gives the same relations on facts of real and of random programs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from presk_rel.core.core_facts import core_facts
from presk_rel.facts.ast_facts import Row
from presk_rel.rules import souffle
from presk_rel.rules.engine import solve
from presk_rel.rules.facts_io import read_rows, write_facts
from presk_rel.rules.program import rule_program, rules_for, rules_path
from tests.facts.read import facts
from tests.rules.clingo_oracle import solve_clingo
from tests.rules_program.core_programs import random_core

MISTAKES = """
const D = 3
const D = N
module A{K : dim} { use b : B ∘ A
  fn apply(x : ℝ[K, T], net : B) = net.apply(b.apply(x), totel) }
module B { fn apply(x) = f(x) }
fn f(x : ℝ[Dd]) -> ℝ[] uses Randm = g(x) + A.aply(x)
fn g(x) = f(x)
type T = (T, key)
training run { model = C }
"""


def everything(text: str, seed: int) -> dict[str, list[Row]]:
    """Facts of a source text and of a random Core program."""
    return {
        **facts(text).rows,
        **core_facts(random_core(seed, local=False)),
        "similar": [("totel", "total"), ("C", "D")],
    }


def program_text() -> str:
    return (Path(rules_path()).parent / "examples/mlp.psk").read_text(encoding="utf-8")


def cases() -> list[Mapping[str, list[Row]]]:
    lets = "".join(f"  let v{i % 7} = x + v{(i * 3) % 9}\n" for i in range(60))
    return [everything(MISTAKES, 1), everything(program_text(), 2), everything(f"fn f(x) =\n{lets}  v3\n", 3)]


def test_clingo_gives_the_same_relations() -> None:
    program = rule_program()
    for given in cases():
        wanted = solve_clingo(program, given)
        found = solve(program, given, "embedded")
        assert {name: set(found.table(name)) for name in program.relations} == wanted


def test_a_part_of_the_program_gives_the_same_as_the_whole() -> None:
    (given, *_) = cases()
    whole = solve(rule_program(), given, "embedded")
    for name in rule_program().outputs:
        part = rules_for(frozenset((name,)))
        rows = {n: r for n, r in given.items() if n in part.inputs}
        assert solve(part, rows, "embedded").rows(name) == whole.rows(name)


@pytest.mark.souffle
def test_souffle_gives_the_same_relations() -> None:
    program = rule_program()
    for given in cases():
        wanted, found = solve(program, given, "souffle"), solve(program, given, "embedded")
        for name in program.relations:
            assert wanted.rows(name) == found.rows(name)


@pytest.mark.souffle
def test_souffle_runs_the_files_as_they_are(tmp_path: Path) -> None:
    parts = tmp_path / "presk_rel/rules"
    parts.mkdir(parents=True)
    shutil.copyfile(rules_path(), tmp_path / "rules.dl")
    for part in (rules_path().parent / "presk_rel/rules").glob("*.dl"):
        shutil.copyfile(part, parts / part.name)
    given = everything(MISTAKES, 4)
    write_facts(tmp_path, rule_program(), given)
    command = [str(souffle.binary()), "--no-preprocessor", "-F", ".", "-D", ".", "rules.dl"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    found = solve(rule_program(), given, "embedded")
    for name in rule_program().outputs:
        rows = read_rows(tmp_path / f"{name}.csv", rule_program().relations[name])
        assert sorted(rows) == found.rows(name)
