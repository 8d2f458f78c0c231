"""`@record` makes what a frozen dataclass with slots is."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest

from presk_rel.diagnostics.record import mutable, record


@record
class Point:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default_factory=tuple[str, ...])
    seen: str = field(default="", compare=False, repr=False)

    def norm(self) -> int:
        return abs(self.x) + abs(self.y)


@dataclass(frozen=True, slots=True)
class Twin:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default_factory=tuple[str, ...])
    seen: str = field(default="", compare=False, repr=False)


@record
class Point3(Point):
    z: int = 9


@mutable
class Counter:
    n: int
    seen: list[int] = field(default_factory=list[int])

    def count(self) -> None:
        self.n += 1
        self.seen.append(self.n)


@record
class Empty:
    pass


@record
class Checked:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError(self.n)

    def __repr__(self) -> str:
        return "own"


def test_fields_defaults_equality_hash_and_text_are_those_of_a_dataclass() -> None:
    assert repr(Point(1)) == repr(Twin(1)).replace("Twin", "Point")
    assert Point(1) == Point(1, 2, (), "other") != Point(2)
    assert hash(Point(1)) == hash(Point(1, seen="other")) == hash(Twin(1))
    assert (Point(1) == Twin(1)) is False
    assert Empty() == Empty() and repr(Empty()) == "Empty()"
    assert is_dataclass(Point) and [f.name for f in fields(Point)] == ["x", "y", "tags", "seen"]
    assert replace(Point(1), y=5).norm() == 6


def test_nothing_can_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(Point(1), "__dict__")


def test_values_are_matched_copied_and_kept() -> None:
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)
    assert copy.deepcopy(Point(1, tags=("a",))) == pickle.loads(pickle.dumps(Point(1, tags=("a",))))


def test_what_a_class_defines_stays() -> None:
    assert repr(Checked(1)) == "own"
    with pytest.raises(ValueError, match="-1"):
        Checked(-1)


def test_fields_of_a_base_come_first() -> None:
    assert Point3(1, 2, ("t",), "s", 4) == Point3(1, 2, ("t",), "other", 4) != Point3(1, 2, ("t",), "s", 5)
    assert [f.name for f in fields(Point3)] == ["x", "y", "tags", "seen", "z"] and Point3(3, 4).norm() == 7


def test_what_is_mutable_changes_and_has_no_hash() -> None:
    counter = Counter(1)
    counter.count()
    assert counter == Counter(2, [2]) != Counter(2) and repr(counter).endswith("Counter(n=2, seen=[2])")
    assert Counter(0).seen is not Counter(0).seen
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_wrong_arguments_are_refused_before_and_after_the_first_call() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
            Counter()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
