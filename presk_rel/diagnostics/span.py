"""Positions in source text. Lines, columns and offsets count characters; lines and columns from 1, offsets from 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Pos:
    """A place between two characters of a file."""

    line: int
    column: int
    offset: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The half-open stretch `start … end` of `file`: its path as the user gave it; of imports, from the main file's."""

    file: str
    start: Pos
    end: Pos

    def to(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(self.file, min(self.start, other.start), max(self.end, other.end))

    def __str__(self) -> str:
        return f"{self.file}:{self.start.line}:{self.start.column}"


NOWHERE = Span("<generated>", Pos(1, 1, 0), Pos(1, 1, 0))
"""The span of a node that no source text stands for."""
