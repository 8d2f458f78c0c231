"""Shortcuts through long chains of scopes, so that a search outward takes O(log n) steps instead of n.

The pointers of Myers' random-access lists ("An applicative random-access stack", 1983): scope i of a chain points to
i - 1 and, by its skew-binary place, to one further out. A search that asks "does the stretch up to there declare the
name?" before it jumps takes at most 3·log2(n) steps.
"""

from __future__ import annotations

from collections.abc import Iterator

SHORTEST = 24
"""Chains up to this length are walked step by step: ordinary programs have no shortcuts."""


def jumps(length: int) -> Iterator[tuple[int, int, range]]:
    """For a chain of scopes 0 … length - 1, each in the one before: (scope, scope further out, the scopes passed),
    the first of which is the scope itself. About length·log2(length)/2 scopes are passed altogether."""
    if length <= SHORTEST:
        return
    far = [0]
    for scope in range(1, length):
        last = scope - 1
        same_size = last - far[last] == far[last] - far[far[last]]
        far.append(far[far[last]] if same_size else last)
        if far[scope] < last:
            yield scope, far[scope], range(scope, far[scope], -1)
