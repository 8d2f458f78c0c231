"""Function values of a body that are known at compile time: which function, and which values it captured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from presk_rel.core.ir import Binding, Call, Closure, DimArgs, Prim, Var


@dataclass(frozen=True, slots=True)
class Known:
    """`closure fn{dim_args}[captured]`, its captured values named in the body at hand."""

    fn: str
    dim_args: DimArgs
    captured: tuple[Var, ...]

    def applied(self, args: tuple[Var, ...]) -> Call:
        """The direct call that `apply` of this value is."""
        return Call(self.fn, self.dim_args, (*self.captured, *args))


def known_functions(bindings: Iterable[Binding]) -> dict[Var, Known]:
    """Every closure of a body, and what `proj` takes out of tuples that hold closures."""
    known: dict[Var, Known] = {}
    parts: dict[Var, tuple[Var, ...]] = {}
    for binding in bindings:
        match binding.op:
            case Closure(fn, dim_args, captured):
                known[binding.name] = Known(fn, dim_args, captured)
            case Prim("tuple", _, args):
                parts[binding.name] = args
            case Prim("proj", (int(i),), (whole,)) if whole in parts:
                part = parts[whole][i]
                if part in known:
                    known[binding.name] = known[part]
                if part in parts:
                    parts[binding.name] = parts[part]
            case _:
                pass
    return known
