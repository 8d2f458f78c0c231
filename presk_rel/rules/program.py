"""The rule program itself: where `rules.dl` is, and parts of it for passes that need few relations."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from os import path
from typing import TYPE_CHECKING

from presk_rel.diagnostics import PreskBug
from presk_rel.rules.ast import Program
from presk_rel.rules.storage import load_program
from presk_rel.rules.strata import dependencies

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = path.dirname(path.dirname(path.realpath(__file__)))


def rules_path() -> Path:
    """`rules.dl`: at the root of a source checkout, or inside an installed package."""
    from pathlib import Path

    return Path(_place())


def _place() -> str:
    for folder in (path.dirname(_PACKAGE), _PACKAGE):
        if path.isfile(place := path.join(folder, "rules.dl")):
            return place
    raise PreskBug("rules.program", f"rules.dl is missing from {_PACKAGE}")


@cache
def rule_program() -> Program:
    """The whole program, read once. Its includes are relative to the folder that holds the package."""
    search = path.dirname(_PACKAGE)
    stored = load_program(_place(), (search,))
    if stored is not None:
        return stored
    from pathlib import Path

    from presk_rel.rules.dialect import read_program

    return read_program(rules_path(), search=(Path(search),))


@cache
def rules_for(relations: frozenset[str]) -> Program:
    """The part of the program that `relations` are defined by."""
    program = rule_program()
    needed = _closure(program, relations)
    return Program(
        {name: decl for name, decl in program.relations.items() if name in needed},
        program.types,
        tuple(rule for rule in program.rules if rule.head.relation in needed),
        tuple(fact for fact in program.facts if fact.relation in needed),
    )


def _closure(program: Program, relations: Collection[str]) -> set[str]:
    graph = dependencies(program)
    needed: set[str] = set()
    todo = sorted(relations)
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo.extend(graph[name])
    return needed
