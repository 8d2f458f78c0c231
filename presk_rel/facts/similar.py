"""Names one slip of the keyboard apart, in time linear in the text (Garbe's symmetric deletions)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

LONGEST = 64
MOST = 8
"""Candidates kept for one name."""


def similar(unknown: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """(name, candidate) for candidates that differ by one letter inserted, left out, replaced, or swapped with its
    neighbour, or by capitals only. Deterministic: candidates in alphabetical order, at most `MOST` a name."""
    index: defaultdict[str, list[str]] = defaultdict(list)
    for candidate in sorted(set(known)):
        for key in set(_keys(candidate)):
            index[key].append(candidate)
    pairs: list[tuple[str, str]] = []
    for name in sorted(set(unknown)):
        found = {c for key in set(_keys(name)) for c in index[key][:MOST] if c != name and _alike(name, c)}
        pairs.extend((name, candidate) for candidate in sorted(found)[:MOST])
    return pairs


def _alike(name: str, candidate: str) -> bool:
    """Whether a slip is likely: one letter is near to every name of two."""
    return min(len(name), len(candidate)) > 1 or name.casefold() == candidate.casefold()


def _keys(name: str) -> Iterator[str]:
    """The name itself and it without one letter; two names that share a key are close. Never the empty string, by
    which all names of one letter would be alike."""
    folded = name.casefold()
    yield folded
    if 1 < len(folded) <= LONGEST:
        for i in range(len(folded)):
            yield folded[:i] + folded[i + 1 :]
