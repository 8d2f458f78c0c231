"""Names in a function of the typed program: a let that binds a name anew is primed (`let x = x + …` is x' = x + …)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from presk_rel.notation.formula import Sym
from presk_rel.types.tree import Binder


@dataclass(slots=True)
class Scope:
    """`shown` says how a binder is written, by its id; `latest` has the primes of the last binding of each name."""

    shown: dict[int, Sym] = field(default_factory=dict[int, Sym])
    latest: dict[str, int] = field(default_factory=dict[str, int])

    def reserve(self, names: Iterable[str]) -> None:
        """Names that stand for something already: a module's parameters."""
        for name in names:
            self.latest.setdefault(name, 0)

    def bind(self, binder: Binder) -> Sym:
        """By a parameter or a let."""
        primes = self.latest.get(binder.name, -1) + 1
        self.latest[binder.name] = primes
        return self._show(binder, Sym(binder.name, primes))

    def shadow(self, binder: Binder) -> Sym:
        """By a λ, in whose body nothing else of that name can be meant."""
        self.latest.setdefault(binder.name, 0)
        return self._show(binder, Sym(binder.name))

    def inner(self) -> Scope:
        """A scope for the body of a λ: what it binds is not seen outside."""
        return Scope(self.shown, dict(self.latest))

    def _show(self, binder: Binder, sym: Sym) -> Sym:
        self.shown[binder.id] = sym
        return sym
