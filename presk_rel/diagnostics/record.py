"""`@record` and `@mutable`: what `@dataclass(frozen=True, slots=True)` and `@dataclass(slots=True)` make, at a
tenth of the price.

`presk check` defines about 250 such classes before it reads a line, and uses fewer than half of them. So a class gets
its slots at once, and each method when it is first called; `fields`, `replace` and the like find the fields as of a
dataclass, made when they ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from inspect import get_annotations
from typing import Any, Final, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")

_FIELDS: Final = "__dataclass_fields__"
"""Where the functions of `dataclasses` look for the fields."""

_MISSING: Final[Any] = MISSING


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A class of immutable values: fields, `fields`, `replace`, `match`, equality, hash and `repr` as of a frozen
    dataclass with slots."""
    methods = {"__setattr__": _refuse, "__delattr__": _refuse, "__reduce__": _reduce}
    return _slotted(cls, methods, frozen=True)


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """A class of changing state: as of a dataclass with slots. It has no hash."""
    return _slotted(cls, {"__hash__": None}, frozen=False)


def _slotted(cls: type[T], methods: dict[str, Any], *, frozen: bool) -> type[T]:
    """The class anew, with slots for its fields: those of its bases and its own annotations."""
    annotations = cls.__annotations__
    own = {name: cls.__dict__.get(name, _MISSING) for name in annotations if "ClassVar" not in str(annotations[name])}
    scope = {name: value for name, value in cls.__dict__.items() if name not in own}
    scope.pop("__dict__", None)
    scope.pop("__weakref__", None)
    below: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        below |= base.__dict__.get("__record__", {})
    parts = below | own
    scope |= {"__slots__": tuple(n for n in own if n not in below), "__record__": parts}
    scope |= {"__match_args__": tuple(parts), _FIELDS: _Fields()}
    if scope.get("__doc__") is None:
        scope["__doc__"] = cls.__name__
    made: type[Any] = type(cls)(cls.__name__, cls.__bases__, scope)
    made.__qualname__ = cls.__qualname__
    for name, method in (_first_calls(made, parts, frozen=frozen) | {"__repr__": _repr} | methods).items():
        if name not in cls.__dict__ or (name == "__hash__" and "__eq__" not in cls.__dict__):
            setattr(made, name, method)
    return made


class _Fields:
    """The table of fields of a class, made when it is first asked for."""

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, Field[Any]]:
        """Of a plain twin of the class, which `dataclass` may spoil."""
        annotations = {n: a for c in reversed(owner.__mro__) for n, a in get_annotations(c).items()}
        parts: dict[str, Any] = owner.__record__
        given = {name: value for name, value in parts.items() if value is not MISSING}
        twin = type(owner.__name__, (), {"__annotations__": {n: annotations[n] for n in parts}, **given})
        made: dict[str, Field[Any]] = getattr(dataclass(init=False, repr=False, eq=False)(twin), _FIELDS)
        setattr(owner, _FIELDS, made)
        return made


def _first_calls(made: type[Any], parts: dict[str, Any], *, frozen: bool) -> dict[str, Callable[..., Any]]:
    """Methods each of which writes the method that takes its place, and calls it."""

    def init(self: Any, *given: Any, **named: Any) -> None:
        method = _define("__init__", _init_source(made, parts, frozen=frozen))
        made.__init__ = method
        method(self, *given, **named)

    def equal(self: Any, other: object) -> Any:
        method = _define("__eq__", _equal_source(parts))
        made.__eq__ = method
        return method(self, other)

    def hashed(self: Any) -> Any:
        method = _define("__hash__", _hash_source(parts))
        made.__hash__ = method
        return method(self)

    init.__qualname__ = f"{made.__qualname__}.__init__"
    return {"__init__": init, "__eq__": equal, "__hash__": hashed}


_Source = tuple[list[str], dict[str, Any]]
"""Lines of Python, made of the names of fields of our own classes, and what their other names stand for."""


def _define(name: str, source: _Source) -> Any:
    lines, scope = source
    exec("\n".join(lines), scope)  # no text of the user, see `_Source`
    return scope[name]


def _init_source(made: type[Any], parts: dict[str, Any], *, frozen: bool) -> _Source:
    scope: dict[str, Any] = {"MISSING": MISSING}
    params, body = ["self"], list[str]()
    for name, given in parts.items():
        default, factory, taken = _given(given)
        scope |= {f"_default_{name}": default, f"_make_{name}": factory, f"_set_{name}": getattr(made, name).__set__}
        value = name if taken else f"_default_{name}"
        if factory is not MISSING:
            value = f"_make_{name}() if {name} is MISSING else {name}" if taken else f"_make_{name}()"
        if taken:
            plain = "" if factory is MISSING else "=MISSING"
            params.append(f"{name}=_default_{name}" if default is not MISSING else name + plain)
        body.append(f"  _set_{name}(self, {value})" if frozen else f"  self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("  self.__post_init__()")
    return [f"def __init__({', '.join(params)}):", *(body or ["  pass"])], scope


def _given(given: Any) -> tuple[Any, Any, bool]:
    """The default and its maker, as far as there are any, and whether the field is an argument."""
    if isinstance(given, Field):
        part = cast("Field[Any]", given)
        return part.default, part.default_factory, part.init
    return given, MISSING, True


def _compared(parts: dict[str, Any], who: str) -> str:
    names = [n for n, given in parts.items() if not isinstance(given, Field) or given.compare]
    return "(" + "".join(f"{who}.{name}," for name in names) + ")"


def _equal_source(parts: dict[str, Any]) -> _Source:
    same = f"{_compared(parts, 'self')} == {_compared(parts, 'other')}"
    return [
        "def __eq__(self, other):",
        f"  return {same} if other.__class__ is self.__class__ else NotImplemented",
    ], {}


def _hash_source(parts: dict[str, Any]) -> _Source:
    return ["def __hash__(self):", f"  return hash({_compared(parts, 'self')})"], {}


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *_: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot change the field {name!r}")


def _reduce(self: Any) -> tuple[object, tuple[object, ...]]:
    return self.__class__, tuple(getattr(self, f.name) for f in fields(self) if f.init)
