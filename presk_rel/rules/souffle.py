"""The Soufflé engine, as a subprocess. Never needed: the embedded engine gives the same relations.

Always with `--no-preprocessor`, since otherwise Soufflé dies where neither gcc nor mcpp is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.rules.ast import Call, Constant, Program, Row
from presk_rel.rules.facts_io import SPECIAL, read_rows, write_facts
from presk_rel.rules.printer import souffle_text
from presk_rel.rules.rule_types import orders_symbols
from presk_rel.rules.walk import deep_terms, rule_terms

MINIMUM = (2, 2)
"""The oldest version whose syntax and options are those used here."""

TIME_LIMIT = 600.0
"""Seconds that one run may take."""


def binary() -> str | None:
    """The program to run: what the environment's `PRESK_SOUFFLE` names, else `souffle` on PATH."""
    return shutil.which(os.environ.get("PRESK_SOUFFLE") or "souffle")


def available() -> bool:
    return binary() is not None


def represents(program: Program, facts: Mapping[str, Iterable[Row]]) -> bool:
    """Whether Soufflé computes the same on escaped symbols: not if a rule measures or orders symbols that need it."""
    sensitive = any(
        orders_symbols(program.relations, rule)
        or any(isinstance(t, Call) and t.function == "strlen" for t in deep_terms(rule_terms(rule)))
        for rule in program.rules
    )
    return not sensitive or not _has_special(program, facts)


def _has_special(program: Program, facts: Mapping[str, Iterable[Row]]) -> bool:
    constants = (t.value for r in program.rules for t in deep_terms(rule_terms(r)) if isinstance(t, Constant))
    rows = (row for table in (*facts.values(), [f.row for f in program.facts]) for row in table)
    values = (v for group in (rows, [tuple(constants)]) for row in group for v in row)
    return any(isinstance(v, str) and SPECIAL.search(v) is not None for v in values)


def solve_souffle(
    program: Program,
    facts: Mapping[str, Collection[Row]],
    outputs: Collection[str],
    *,
    time_limit: float = TIME_LIMIT,
) -> dict[str, list[Row]]:
    """The rows of the relations `outputs`.

    Raises `PreskError`, exit status 3, with E9121 (not installed), E9122 (too old), E9123 (failed, or out of time),
    E9124 (symbols that it cannot represent), or exit status 1 with E9130 (division by zero).
    """
    command = binary()
    if command is None:
        raise _impossible("E9121", "Soufflé is not installed", "the embedded engine needs nothing: `--engine embedded`")
    _check_version(command)
    if not represents(program, facts):
        message = "a rule measures or orders symbols, and some symbols hold a backslash, tab or line break"
        raise _impossible("E9124", message, "the embedded engine can: `--engine embedded`")
    with tempfile.TemporaryDirectory(prefix="presk-souffle-") as folder:
        place = Path(folder)
        write_facts(place, program, facts)
        text = souffle_text(program, outputs).encode("utf-8", "surrogatepass")
        (place / "rules.dl").write_bytes(text)
        options = ["--no-preprocessor", "--no-warn", "-F", folder, "-D", folder]
        _run([command, *options, str(place / "rules.dl")], time_limit)
        return {name: read_rows(place / f"{name}.csv", program.relations[name]) for name in outputs}


def _impossible(code: str, message: str, help: str | None = None) -> PreskError:
    return PreskError([Diagnostic(code, message, None, help=help)], exit_status=3)


@cache
def _check_version(command: str) -> None:
    printed = _run([command, "--version"], 20.0)
    version = re.search(r"Version:\s*(\d+)\.(\d+)", printed)
    if version is not None and (int(version[1]), int(version[2])) < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        raise _impossible("E9122", f"Soufflé {version[1]}.{version[2]} is too old; {wanted} or newer is needed")


def _run(command: list[str], time_limit: float) -> str:
    """Standard output of a run that succeeded."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=time_limit, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise _impossible("E9123", f"Soufflé took longer than {time_limit:g} s and was stopped") from None
    except OSError as error:
        raise _impossible("E9121", f"Soufflé cannot be run: {error.strerror}") from None
    said = done.stderr.decode("utf-8", "replace").strip()
    if "arithmetic exception" in said:
        raise PreskError([Diagnostic("E9130", "a rule divides by zero", None)])
    if done.returncode != 0 or "Error" in said:
        raise _impossible("E9123", f"Soufflé failed: {_complaint(said) or f'exit status {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


def _complaint(said: str) -> str:
    """The errors in what Soufflé said, without its warnings; its last words, if it calls nothing an error."""
    lines = said.splitlines()
    errors = [line for line in lines if line.startswith("Error")]
    return "; ".join(errors[:3] or lines[-3:])
