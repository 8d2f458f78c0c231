"""Function values of a body that are known at compile time: which function, and which values it captured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from presk_rel.ad.apart import holds_function
from presk_rel.core.ir import Binding, Call, Closure, DimArgs, Prim, Var
from presk_rel.elab.ty import TupleOf, Type


@dataclass(frozen=True, slots=True)
class Known:
    """`closure fn{dim_args}[captured]`, its captured values named in the body at hand."""

    fn: str
    dim_args: DimArgs
    captured: tuple[Var, ...]

    def applied(self, args: tuple[Var, ...]) -> Call:
        """The direct call that `apply` of this value is."""
        return Call(self.fn, self.dim_args, (*self.captured, *args))


Made = Known | tuple["Made | Var", ...]
"""A known function, or the items of a tuple with such ones; other items are names."""


def read_of(value: Made) -> Iterator[Var]:
    """The names that a value is made of, in order."""
    if isinstance(value, Known):
        yield from value.captured
        return
    for part in value:
        yield from (part,) if isinstance(part, str) else read_of(part)


@dataclass(slots=True)
class KnownFunctions:
    """The function values met so far: closures, and what `proj` takes out of tuples that hold closures."""

    values: dict[Var, Known] = field(default_factory=dict[Var, Known])
    tuples: dict[Var, tuple[Var, ...]] = field(default_factory=dict[Var, tuple[Var, ...]])

    def see(self, binding: Binding) -> None:
        match binding.op:
            case Closure(fn, dim_args, captured):
                self.values[binding.name] = Known(fn, dim_args, captured)
            case Prim("tuple", _, args):
                self.tuples[binding.name] = args
            case Prim("proj", (int(i),), (whole,)) if whole in self.tuples:
                self._alias(binding.name, self.tuples[whole][i])
            case _:
                pass

    def made(self, name: Var, ty: Type) -> Made | None:
        """A value that is a known function, or a tuple that holds only known ones; None where it holds others."""
        if name in self.values or not isinstance(ty, TupleOf):
            return self.values.get(name)
        if name not in self.tuples:
            return None
        items: list[Made | Var] = []
        for v, t in zip(self.tuples[name], ty.items, strict=True):
            part = self.made(v, t) if holds_function(t) else v
            if part is None:
                return None
            items.append(part)
        return tuple(items)

    def _alias(self, name: Var, original: Var) -> None:
        if original in self.values:
            self.values[name] = self.values[original]
        if original in self.tuples:
            self.tuples[name] = self.tuples[original]


def known_functions(bindings: Iterable[Binding]) -> dict[Var, Known]:
    """The known function values of a whole body."""
    known = KnownFunctions()
    for binding in bindings:
        known.see(binding)
    return known.values
