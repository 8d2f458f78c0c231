"""What elaboration asks of the relations of names (`rules.analysis.Names` answers)."""

from __future__ import annotations

from typing import Protocol

from presk_rel.diagnostics import Span
from presk_rel.rules.analysis import Cycle, Duplicate, ImplicitDim, Unresolved


class Resolver(Protocol):
    """The part of `rules.analysis.Names` that elaboration and typing read."""

    @property
    def cycles(self) -> tuple[Cycle, ...]: ...

    @property
    def unresolved(self) -> tuple[Unresolved, ...]: ...

    @property
    def duplicates(self) -> tuple[Duplicate, ...]: ...

    @property
    def implicit(self) -> tuple[ImplicitDim, ...]: ...

    def resolve(self, span: Span) -> str | None:
        """The id of the declaration that the use at `span` means, `builtin:x`, or None."""
        ...
