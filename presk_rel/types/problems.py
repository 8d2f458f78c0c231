"""What unification leaves behind: mismatches, equations that wait, conditions that are owed, unknowns and their
origin."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.smt.linear import Linear
from presk_rel.smt.solver import Condition


class TooLarge(Exception):
    """A type has more parts than any pass could walk. Never leaves `check_function`."""


@record
class Mismatch:
    """Two types that do not agree: the innermost parts that differ, and the lengths where it is lengths, of the axis
    `axis` if it has a name. `whole`: the parts are the types themselves, so naming them again says nothing."""

    left: str
    right: str
    lengths: tuple[Linear, Linear] | None = None
    whole: bool = False
    axis: str | None = None


@record
class Waiting:
    """A length equation that could not be solved when it arose."""

    left: Linear
    right: Linear
    span: Span
    what: str


@record
class Obligation:
    """A condition that must be proven once all lengths are known: `what` says why, `code` is the error otherwise."""

    condition: Condition
    span: Span
    what: str
    code: str = "E2003"


@record
class Origin:
    """Where an unknown comes from: `shown` is its name in the source, `default` what it is when nothing determines it
    (a file's dim is itself), `span` the call that made it, of `callee`."""

    shown: str
    span: Span
    callee: str
    default: Linear | None = None
