"""One `.vjp` per function also across rounds: what a later round wrote again, word for word, is the earlier one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from presk_rel.ad.graph import callees_first
from presk_rel.ad.names import rename_callees
from presk_rel.ad.prune import Generated
from presk_rel.core.ir import Function, Program


def share(program: Program, made: Iterable[Generated], earlier: Iterable[Generated]) -> tuple[Program, list[Generated]]:
    """The program without the functions of `made` that equal one in `earlier`, and those that are left."""
    new = {g.name: g for g in made}
    old: dict[str, list[str]] = {}
    for g in earlier:
        old.setdefault(g.primal, []).append(g.name)
    if not old:
        return program, list(new.values())
    functions = dict(program.functions)
    same: dict[str, str] = {}
    for name in callees_first(functions):
        functions[name] = _renamed(functions[name], same)
        if name not in new:
            continue
        twin = next((t for t in old.get(new[name].primal, ()) if _equal(functions[name], functions[t])), None)
        if twin is not None:
            same[name] = twin
            del functions[name]
    return replace(program, functions=functions), [g for g in new.values() if g.name not in same]


def _renamed(function: Function, same: dict[str, str]) -> Function:
    if not same:
        return function
    return replace(function, bindings=tuple(replace(b, op=rename_callees(b.op, same)) for b in function.bindings))


def _equal(new: Function, old: Function) -> bool:
    return replace(new, name=old.name) == old
