"""The call graph of a Core program: callers before callees. Core has no recursion (E2016), so it is a DAG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from presk_rel.core.ir import Function, callees
from presk_rel.diagnostics import PreskBug


def named(function: Function) -> tuple[str, ...]:
    """The functions a body names, once each, in order."""
    return tuple(dict.fromkeys(fn for b in function.bindings for fn in callees(b.op)))


def callees_first(functions: Mapping[str, Function], roots: Iterable[str] | None = None) -> list[str]:
    """The functions reachable from `roots` (all without it), each after the functions it names. PreskBug on a cycle."""
    order: list[str] = []
    state: dict[str, bool] = {}  # absent: not met; False: its callees are being walked; True: done
    for root in functions if roots is None else roots:
        stack = [root]
        while stack:
            name = stack[-1]
            if state.get(name) is not None:
                stack.pop()
                if not state[name]:
                    state[name] = True
                    order.append(name)
                continue
            state[name] = False
            below = [c for c in named(functions[name]) if state.get(c) is not True]
            cycle = next((c for c in below if state.get(c) is False), None)
            if cycle is not None:
                raise PreskBug("ad", f"{cycle} reaches itself")
            stack.extend(reversed(below))
    return order
