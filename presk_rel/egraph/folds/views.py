"""A flat function with every value seen as its parts: tuples taken apart, equal computations found.

A *part* is what a path of positions leads to in nested tuples and is no tuple itself; a parameter tree is one part. A
`Ref` is a part of a parameter or of an operation's result, and equal refs are equal values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Binding, Fold, Function, Op, Prim, Var, operands
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import TupleOf, Type

Path = tuple[int, ...]
Ref = tuple[Var, Path]
Parts = dict[Path, Ref]


def paths(ty: Type) -> list[Path]:
    """The paths of a type's parts, in order. (Types nest as deep as a program's text does.)"""
    if not isinstance(ty, TupleOf):
        return [()]
    return [(k, *below) for k, item in enumerate(ty.items) for below in paths(item)]


def part_type(ty: Type, path: Path) -> Type:
    """The type that a path leads to."""
    for k in path:
        if not isinstance(ty, TupleOf):
            raise PreskBug("egraph", f"no part {path} of {ty}")
        ty = ty.items[k]
    return ty


@dataclass(slots=True)
class View:
    """A function's values by name: types, bindings, parts. `at` is where a value lies in a parameter or in the result
    of an operation, if it is one of these or a projection; `called` the first projection that lies there."""

    function: Function
    types: dict[Var, Type] = field(default_factory=dict[Var, Type])
    bindings: dict[Var, Binding] = field(default_factory=dict[Var, Binding])
    parts: dict[Var, Parts] = field(default_factory=dict[Var, Parts])
    at: dict[Var, Ref] = field(default_factory=dict[Var, Ref])
    called: dict[Ref, Binding] = field(default_factory=dict[Ref, Binding])

    def __post_init__(self) -> None:
        for p in self.function.params:
            self.types[p.name] = p.type
            self.parts[p.name] = _own(p.name, p.type)
            self.at[p.name] = (p.name, ())
        seen: dict[object, Var] = {}
        for b in self.function.bindings:
            self.types[b.name] = b.type
            self.bindings[b.name] = b
            self.parts[b.name] = self._parts(b, seen)

    def _parts(self, b: Binding, seen: dict[object, Var]) -> Parts:
        match b.op:
            case Prim("tuple", _, args):
                return {(k, *q): ref for k, a in enumerate(args) for q, ref in self.parts[a].items()}
            case Prim("proj", (int(k),), (a,)) if self._is_called(a, k, b):
                return {q[1:]: ref for q, ref in self.parts[a].items() if q[0] == k}
            case Prim("set_elem", (int(k),), (a, v)):
                new = {(k, *q): ref for q, ref in self.parts[v].items()}
                return {q: ref for q, ref in self.parts[a].items() if q[0] != k} | new
            case _:
                first = seen.setdefault(self._key(b), b.name)
                self.at[b.name] = (first, ())
                return self.parts[first] if first != b.name else _own(b.name, b.type)

    def _is_called(self, whole: Var, k: int, b: Binding) -> bool:
        """Note where a projection lies. False if what lies there has another type already: types may differ in names of
        axes, and its readers may go by them."""
        if whole in self.at:
            base, path = self.at[whole]
            if self.called.setdefault((base, (*path, k)), b).type != b.type:
                return False
            self.at[b.name] = (base, (*path, k))
        return True

    def _key(self, b: Binding) -> object:
        """Equal for bindings that compute the same."""
        args = tuple(tuple(sorted(self.parts[v].items())) for v in operands(b.op))
        return (_without_operands(b.op), args, b.type)

    def type_of(self, ref: Ref) -> Type:
        """The type of a part, with the names of axes that the projection has that lies there."""
        base, path = ref
        for k in range(len(path), 0, -1):
            if (base, path[:k]) in self.called:
                return part_type(self.called[base, path[:k]].type, path[k:])
        return part_type(self.types[base], path)

    def read(self, b: Binding) -> list[Ref]:
        """All parts of all operands, each once."""
        return list(dict.fromkeys(ref for v in operands(b.op) for ref in self.parts[v].values()))


def _own(name: Var, ty: Type) -> Parts:
    return {path: (name, path) for path in paths(ty)}


def _without_operands(op: Op) -> Op:
    match op:
        case Prim():
            return replace(op, args=())
        case Fold():
            return replace(op, stacked=("",) * len(op.stacked), acc="", extras=())
        case _:
            raise PreskBug("egraph", f"not flat: {op}")
