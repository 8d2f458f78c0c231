"""Queries in stages. A pattern with several branches, `(add (mul x (const c)) (mul x (const d)))`, is one join of many
relations, and egglog's planner may start it with a product of two small ones (all pairs of constants, all pairs of
products of x): at 200 operations 200 ms a step. Cut at the branches, with what a stage has found kept in a relation, it
takes 0.2 ms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STAGE_RULESET = "stage"
_VARIABLE = re.compile(r"(?<![\w@\"])([vecs]+v?\d+)(?!\w)")
_BINDS = re.compile(r"\(= ([vs]+\d+) ")


def names_in(text: str) -> set[str]:
    """The variables of a piece of a rule: `v3` and `sv3` are attributes, operands and types, `e0`, `c2` classes."""
    return set(_VARIABLE.findall(text))


@dataclass(frozen=True, slots=True)
class Query:
    """`forms` come first; `facts` are then the query of the rule itself."""

    forms: list[str]
    facts: list[str]


def staged(branches: list[list[str]], facts: list[str], later: str, sorts: dict[str, str], name: str) -> Query:
    """A query whose patterns are `branches`, in order, and whose other facts stand in the first stage that binds all
    they mention. `later` is the text of what the rule does; `sorts` those of variables that are not classes."""
    rest = list(facts)
    bound: set[str] = set()
    forms: list[str] = []
    carried: list[str] = []
    for k, branch in enumerate(branches[:-1]):
        query = [*carried, *branch]
        bound |= names_in(" ".join(branch))
        query += _placed(rest, bound)
        needed = names_in(" ".join([*(a for b in branches[k + 1 :] for a in b), *rest, later]))
        columns = sorted(bound & needed)
        relation = f"found{name}_{k}"
        forms.append(f"(relation {relation} ({' '.join(sorts.get(c, _sort(c)) for c in columns)}))")
        carried = [f"({relation} {' '.join(columns)})"]
        forms.append(f'(rule ({" ".join(query)}) ({carried[0]}) :ruleset {STAGE_RULESET} :name "S{name}_{k}")')
    return Query(forms, [*carried, *branches[-1], *rest])


def _sort(variable: str) -> str:
    return "i64" if variable.startswith("s") else "E"


def _placed(rest: list[str], bound: set[str]) -> list[str]:
    """Take the facts that mention only bound variables, or bind one by bound ones."""
    taken: list[str] = []
    moved = True
    while moved:
        moved = False
        for fact in list(rest):
            if _free(fact) <= bound:
                rest.remove(fact)
                taken.append(fact)
                bound |= names_in(fact)
                moved = True
    return taken


def _free(fact: str) -> set[str]:
    binds = _BINDS.match(fact)
    return names_in(fact[binds.end() :]) if binds else names_in(fact)
