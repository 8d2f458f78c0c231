"""What a proof cannot be about: an optimized program that is none of Core, or takes and gives other values than the
entry. Denotations call inputs by name and do not see in what order or with which types they are passed."""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.core.ir import Function, Program
from presk_rel.core.verify import problems


def unlike(entry: str, before: Program, after: Program) -> Iterator[str]:
    """Why `after` cannot stand in the place of `before`, whatever it computes."""
    one, other = before.functions[entry], after.functions.get(entry)
    if other is None:
        yield f"the new program has no {entry}"
        return
    for what, old, new in _signature(one, other):
        if old != new:
            yield f"{entry} has other {what} than before"
    if before.modules != after.modules:
        yield "the new program has other modules"
    yield from (f"the new program is not well-formed: {reason}" for reason in problems(after)[:1])


def _signature(one: Function, other: Function) -> tuple[tuple[str, object, object], ...]:
    params, others = ([(p.name, p.type) for p in f.params] for f in (one, other))
    return ("parameters", params, others), ("results", one.result, other.result), ("dims", one.dims, other.dims)
