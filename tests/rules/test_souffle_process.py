"""How presk treats the Soufflé program: found, checked, and its failures reported. By stand-ins, without Soufflé."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.rules import engine, souffle
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.engine import solve
from presk_rel.rules.printer import souffle_text

PROGRAM = parse_program(".decl p(x:number) .input p .decl q(x:number) q(x) :- p(x).")


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = tmp_path / "souffle"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PRESK_SOUFFLE", str(path))


def failure(time_limit: float = 60.0) -> PreskError:
    with pytest.raises(PreskError) as caught:
        souffle.solve_souffle(PROGRAM, {"p": [(1,)]}, ["q"], time_limit=time_limit)
    return caught.value


VERSION = 'if [ "$1" = --version ]; then echo "Version: 2.5"; exit; fi'


def test_a_stand_in_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts and program are written, the output is read: `$4` is the folder of facts, `$6` that of outputs."""
    check = (
        '[ "$1" = --no-preprocessor ] && [ -f "$4/p.facts" ] && grep -q "^.output q" "$7" && cp "$4/p.facts" "$6/q.csv"'
    )
    install(tmp_path, monkeypatch, f"{VERSION}\n{check}")
    assert souffle.available()
    assert solve(PROGRAM, {"p": [(7,)]}, "souffle").rows("q") == [(7,)]
    assert solve(PROGRAM, {}, "souffle").rows("q") == []


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRESK_SOUFFLE", "/no/such/souffle")
    assert not souffle.available()
    error = failure()
    assert error.exit_status == 3 and error.diagnostics[0].code == "E9121"


@pytest.mark.parametrize(("version", "code"), [("1.7.1", "E9122"), ("2.1", "E9122"), ("2.2", "E9123"), ("?", "E9123")])
def test_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, code: str) -> None:
    install(tmp_path, monkeypatch, f'if [ "$1" = --version ]; then echo "Version: {version}"; exit; fi; exit 1')
    assert failure().diagnostics[0].code == code


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Error: no such thing' >&2; exit 1", "no such thing"),
        ("echo 'Error: but status zero' >&2", "but status zero"),
        ("exit 9", "exit status 9"),
    ],
)
def test_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str) -> None:
    install(tmp_path, monkeypatch, f"{VERSION}\n{script}")
    error = failure()
    assert error.exit_status == 3 and error.diagnostics[0].code == "E9123"
    assert message in error.diagnostics[0].message


def test_an_output_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, VERSION)
    assert failure().diagnostics[0].code == "E9120"


def test_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, f"{VERSION}\nexec sleep 20")
    error = failure(time_limit=0.3)
    assert error.diagnostics[0].code == "E9123" and "0.3 s" in error.diagnostics[0].message


def test_auto_takes_it_only_for_many_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, f'{VERSION}\ncp "$4/p.facts" "$6/q.csv"')
    facts = {"p": [(i,) for i in range(10)]}
    assert solve(PROGRAM, facts).engine == "embedded"
    monkeypatch.setattr(engine, "CROSSOVER", 5)
    assert solve(PROGRAM, facts).engine == "souffle"
    monkeypatch.setenv("PRESK_SOUFFLE", "/no/such/souffle")
    assert solve(PROGRAM, facts).engine == "embedded"


def test_the_program_it_gets_has_no_names_of_variables() -> None:
    text = souffle_text(
        parse_program('.decl p(x:number) .type T <: symbol .decl s(c:T) s(cat(y, "\\t")) :- s(y), p(_), y != "\\"".'),
        ["s"],
    )
    assert text.splitlines() == [
        ".decl p(c0:number)",
        ".decl s(c0:symbol)",
        ".output s",
        's(cat(v0, "\\\\t")) :- s(v0), p(_), v0 != "\\"".',
    ]
