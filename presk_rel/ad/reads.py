"""What the sweep of a `.vjp` reads of the copied forward pass.

Projections, tuples, key splits and constants are computed again in the sweep rather than kept; so is a number that is
computed of nothing but constants, which an executor may fold where it sees it. An operand that is read for its shape
only is read elsewhere where that saves keeping it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from presk_rel.ad.interned import TypeNumbers
from presk_rel.core.ir import Binding, Function, Prim, Var, operands
from presk_rel.core.prims import PRIMS
from presk_rel.elab.ty import SCALAR_REAL, Hyper


@dataclass(slots=True)
class Reads:
    """Parameters read, forward values that are kept, forward values that are computed again; and for a shape-only
    operand (binding, position) what is read instead."""

    params: set[Var] = field(default_factory=set[Var])
    kept: set[Var] = field(default_factory=set[Var])
    again: set[Var] = field(default_factory=set[Var])
    instead: dict[tuple[Var, int], Var] = field(default_factory=dict[tuple[Var, int], Var])

    def redirected(self, b: Binding) -> Binding:
        """`b` with its shape-only operands read where they are at hand."""
        if not isinstance(b.op, Prim) or not PRIMS[b.op.op].shape_only:
            return b
        args = tuple(self.instead.get((b.name, i), v) for i, v in enumerate(b.op.args))
        return replace(b, op=replace(b.op, args=args))


def sweep_reads(vjp: Function, copies: frozenset[Var], passed: Callable[[Binding], tuple[Var, ...]]) -> Reads:
    """The reads of the bindings of `vjp` that are not `copies`; `passed` are the operands of such a binding."""
    work = _Work(vjp, copies)
    sweep = [b for b in vjp.bindings if b.name not in copies]
    for b in sweep:
        for i, v in enumerate(passed(b)):
            if not _shape_only(b, i):
                work.read(v)
    work.templates()
    return work.reads


class _Work:
    def __init__(self, vjp: Function, copies: frozenset[Var]) -> None:
        self.reads = Reads()
        self.vjp = vjp
        self.copies = {b.name: b for b in vjp.bindings if b.name in copies}
        self.numbers = _numbers(self.copies.values())
        number = TypeNumbers()
        self.types = {x.name: number(x.type) for x in (*vjp.params, *vjp.bindings)}
        self.params = {p.name for p in vjp.params}

    def read(self, v: Var) -> None:
        """The sweep needs the value of `v`."""
        stack = [v]
        while stack:
            v = stack.pop()
            if v in self.params:
                self.reads.params.add(v)
            elif v in self.copies and v not in self.reads.again and v not in self.reads.kept:
                if v in self.numbers or _cheap(self.copies[v]):
                    self.reads.again.add(v)
                    stack.extend(operands(self.copies[v].op))
                else:
                    self.reads.kept.add(v)

    def at_hand(self, v: Var) -> bool:
        reads = self.reads
        return v in reads.params or v in reads.kept or v in reads.again or not (v in self.params or v in self.copies)

    def templates(self) -> None:
        """Settle the shape-only operands, in order: what is at hand, else a parameter, else the value itself."""
        self.read(self.vjp.params[-1].name)
        first = {self.types[p.name]: p.name for p in reversed(self.vjp.params) if p.name in self.reads.params}
        unread = {self.types[p.name]: p.name for p in reversed(self.vjp.params)}
        for b in self.vjp.bindings:
            if b.name not in self.copies or b.name in self.reads.again:
                for i, t in enumerate(operands(b.op)):
                    if _shape_only(b, i) and not self.at_hand(t):
                        self._settle(b, i, t, first, unread)
            if self.at_hand(b.name):
                first.setdefault(self.types[b.name], b.name)

    def _settle(self, b: Binding, i: int, t: Var, first: dict[int, Var], unread: dict[int, Var]) -> None:
        ty = self.types[t]
        other = first.get(ty) or unread.get(ty) or t
        if other != t:
            self.reads.instead[b.name, i] = other
        self.read(other)
        first.setdefault(ty, other)


def _shape_only(b: Binding, i: int) -> bool:
    return isinstance(b.op, Prim) and i in PRIMS[b.op.op].shape_only


def _numbers(bindings: Iterable[Binding]) -> set[Var]:
    """The scalars that depend on no parameter."""
    found: set[Var] = set()
    for b in bindings:
        scalar = isinstance(b.type, Hyper) or b.type == SCALAR_REAL
        if scalar and isinstance(b.op, Prim) and all(v in found for v in b.op.args):
            found.add(b.name)
    return found


def _cheap(b: Binding) -> bool:
    if not isinstance(b.op, Prim):
        return False
    row = PRIMS[b.op.op]
    return row.view or row.arity == 0 or b.op.op == "split_key"
