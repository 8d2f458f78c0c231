"""`@record`: what `@dataclass(frozen=True, slots=True)` makes, at a third of the price.

`presk check` defines about 250 such classes before it reads a line, and `dataclass` compiles six methods for each one
by one. Here three are compiled at once, from the names of the fields alone, and the others are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A class of immutable values: fields, `fields`, `replace`, `match`, equality, hash and `repr` as of a frozen
    dataclass with slots."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else `dataclass` would write the signature
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    parts = fields(cast("Any", made))
    methods = _methods(made, parts)
    methods |= {"__repr__": _repr, "__setattr__": _refuse, "__delattr__": _refuse, "__reduce__": _reduce}
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _methods(made: type, parts: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    scope: dict[str, Any] = {"MISSING": MISSING}
    params: list[str] = []
    body: list[str] = []
    for part in parts:
        name = part.name
        scope[f"_set_{name}"] = getattr(made, name).__set__
        value = name
        if part.default_factory is not MISSING:
            scope[f"_make_{name}"] = part.default_factory
            value = f"_make_{name}() if {name} is MISSING else {name}" if part.init else f"_make_{name}()"
        if part.init:
            params.append(name + _default(part, scope))
        body.append(f"  _set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        body.append("  self.__post_init__()")
    mine, theirs = ("".join(f"{who}.{p.name}," for p in parts if p.compare) for who in ("self", "other"))
    source = [f"def __init__({', '.join(['self', *params])}):", *(body or ["  pass"])]
    source += [
        "def __eq__(self, other):",
        f"  return ({mine}) == ({theirs}) if other.__class__ is self.__class__ else NotImplemented",
        "def __hash__(self):",
        f"  return hash(({mine}))",
    ]
    exec("\n".join(source), scope)  # the names of fields of our own classes, no text of the user
    return {name: scope[name] for name in ("__init__", "__eq__", "__hash__")}


def _default(part: Field[Any], scope: dict[str, Any]) -> str:
    if part.default is not MISSING:
        scope[f"_default_{part.name}"] = part.default
        return f"=_default_{part.name}"
    return "" if part.default_factory is MISSING else "=MISSING"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *_: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot change the field {name!r}")


def _reduce(self: Any) -> tuple[object, tuple[object, ...]]:
    return self.__class__, tuple(getattr(self, f.name) for f in fields(self) if f.init)
