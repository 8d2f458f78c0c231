"""Names of PSK-Core: which texts are names, and fresh ones from passed state (never from a global counter)."""

from __future__ import annotations

from collections.abc import Iterable

_MARKS = str.maketrans("", "", "%'")


def is_name(text: str) -> bool:
    """Whether `text` is a name: an identifier, in which `%` and `'` may stand too (`x̂`, `%12`, `x%7`, `gelu'`)."""
    bare = text.translate(_MARKS)
    if not text or text[0] == "'" or "·" in text:
        return False
    if text[0] == "%" or not bare:
        return bool(bare) and f"_{bare}".isidentifier()
    return bare.isidentifier() and text[0] == bare[0]


class Fresh:
    """The names of one scope, and new ones beside them."""

    __slots__ = ("_next", "_used")

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._used

    def add(self, name: str) -> str:
        """`name` itself, which the caller knows to be new."""
        self._used.add(name)
        return name

    def like(self, base: str, separator: str = "%") -> str:
        """`base` if no one has it, else `base%2`, `base%3`, …: a function's or a parameter's name."""
        name, n = base, self._next.get(base, 2)
        while name in self._used:
            name, n = f"{base}{separator}{n}", n + 1
        if name != base:
            self._next[base] = n
        return self.add(name)


class Numbered:
    """The names of one function body as lowering gives them: the user's name where there is one and it is new, `x%n`
    where it is not, `%n` where there is none, with n the number of parameters and bindings before."""

    __slots__ = ("_used", "count")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self.count = 0

    def new(self, wanted: str | None = None) -> str:
        """The name of the next parameter or binding."""
        n, self.count = self.count, self.count + 1
        name = f"%{n}" if wanted is None else wanted
        while name in self._used:
            name, n = f"{wanted or ''}%{n}", n + 1
        self._used.add(name)
        return name
