"""Composite primitives written out: their definitions as typed operations, and programs without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ir import Attr, Binding, Function, Op, Prim, Program, Var
from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.core.typing_rules import infer
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import SCALAR_REAL, ModuleDef, Type

Part = str | tuple["Part", ...]
"""A definition, read: an operand, or operation, keywords with their values, and operands, flat."""

KEYWORDS: dict[AttrKind, tuple[str, ...]] = {
    "axis": (":axis",),
    "axis?": (":axis",),
    "int": (":n",),
    "rational": (":value",),
    "spec": (":spec", ":spec2", ":spec3"),
}


@cache
def read_definition(text: str) -> Part:
    """The S-expression as nested tuples."""
    stack: list[list[Part]] = [[]]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    ((whole,),) = stack
    return whole


@dataclass(slots=True)
class _Expansion:
    """The operations of one definition, each once: `made` are operation, attributes, operands by number and type."""

    modules: Mapping[str, ModuleDef]
    operands: dict[str, int]
    attrs: dict[str, Attr]
    types: list[Type]
    made: list[tuple[str, tuple[Attr, ...], tuple[int, ...]]] = field(
        default_factory=list[tuple[str, tuple[Attr, ...], tuple[int, ...]]]
    )
    known: dict[tuple[str, tuple[Attr, ...], tuple[int, ...]], int] = field(
        default_factory=dict[tuple[str, tuple[Attr, ...], tuple[int, ...]], int]
    )

    def number(self, part: Part, declared: Type | None = None) -> int:
        """The number of a part. (Definitions are shallow: they are ours.) ValueError if it has no type."""
        if isinstance(part, str):
            return self.operands[part]
        op, given, below = _split(part)
        args = tuple([self.number(p) for p in below])
        attrs = tuple(self._attrs(op, given))
        key = (op, attrs, args)
        if key not in self.known:
            self.known[key] = self._made(key, declared)
        return self.known[key]

    def _attrs(self, op: str, given: dict[str, str]) -> Iterator[Attr]:
        for kind in PRIMS[op].attrs:
            keyword = next((k for k in KEYWORDS[kind] if k in given), None)
            if keyword is not None:
                yield _value(given.pop(keyword), kind, self.attrs)
            elif kind != "axis?":
                raise PreskBug("core", f"the definition of a composite leaves {kind} of {op} out")

    def _made(self, key: tuple[str, tuple[Attr, ...], tuple[int, ...]], declared: Type | None) -> int:
        op, attrs, args = key
        types = tuple(self.types[a] for a in args)
        found = infer(PRIMS[op], attrs, types, declared or SCALAR_REAL, dict(self.modules))
        if isinstance(found, str):
            raise ValueError(found)
        self.types.append(found)
        self.made.append(key)
        return len(self.types) - 1


def _split(part: tuple[Part, ...]) -> tuple[str, dict[str, str], tuple[Part, ...]]:
    op, *rest = part
    given: dict[str, str] = {}
    while rest and isinstance(rest[0], str) and rest[0].startswith(":"):
        given[rest[0]] = str(rest[1])
        rest = rest[2:]
    return str(op), given, tuple(rest)


def _value(text: str, kind: AttrKind, attrs: Mapping[str, Attr]) -> Attr:
    if text in attrs:
        return attrs[text]
    return int(text) if kind == "int" else Fraction(text)


def _expansion(
    op: str, attrs: tuple[Attr, ...], types: tuple[Type, ...], modules: Mapping[str, ModuleDef]
) -> tuple[_Expansion, Part]:
    row = COMPOSITES[op]
    named = {name: attr for (name, _), attr in zip(row.attrs, attrs, strict=True)}
    numbers = {name: i for i, name in enumerate(row.operands)}
    return _Expansion(modules, numbers, named, list(types)), read_definition(row.definition)


def _inlined(part: Part, operands: Mapping[str, Part], attrs: Mapping[str, str]) -> Part:
    """A definition with the composites in it written out, over other operands and attributes."""
    if isinstance(part, str):
        return operands[part]
    op, given, below = _split(part)
    args = tuple(_inlined(p, operands, attrs) for p in below)
    words = [w for k, v in given.items() for w in (k, attrs.get(v, v))]
    row = COMPOSITES.get(op)
    if row is None:
        return (op, *words, *args)
    values = words[1::2]
    return _inlined(
        read_definition(row.definition),
        dict(zip(row.operands, args, strict=True)),
        dict(zip((name for name, _ in row.attrs), values, strict=True)),
    )


@cache
def _primitive_form(op: str) -> Part:
    """The definition of a composite by primitives alone."""
    row = COMPOSITES[op]
    return _inlined(read_definition(row.definition), {n: n for n in row.operands}, {n: n for n, _ in row.attrs})


def _parts(part: Part) -> set[Part]:
    """The operations in a definition."""
    if isinstance(part, str):
        return set()
    return {part}.union(*map(_parts, _split(part)[2]))


Operation = tuple[str, tuple[Attr, ...], tuple[Type, ...], Type]


def own_operations(
    op: str, attrs: tuple[Attr, ...], types: tuple[Type, ...], modules: Mapping[str, ModuleDef]
) -> list[Operation]:
    """The primitives that a composite amounts to, with the types of their operands and of their value, but for parts
    that the composites it shares a call with, or is an adjoint of, have already."""
    row = COMPOSITES[op]
    form = _primitive_form(op)
    expansion, _ = _expansion(op, attrs, types, modules)
    expansion.number(form)
    elsewhere = set[Part]().union(*(_parts(_primitive_form(o)) for o in (row.shares, row.adjoint_of) if o))
    found: list[Operation] = []
    for part in sorted(_parts(form) - elsewhere, key=str):
        number = expansion.number(part)
        inner, given, below = expansion.made[number - len(types)]
        found.append((inner, given, tuple(expansion.types[i] for i in below), expansion.types[number]))
    return found


def composite_type(
    op: str, attrs: tuple[Attr, ...], types: tuple[Type, ...], modules: Mapping[str, ModuleDef]
) -> Type | str:
    """The type of a composite, or the text of an error."""
    expansion, definition = _expansion(op, attrs, types, modules)
    try:
        return expansion.types[expansion.number(definition)]
    except ValueError as error:
        return f"{op}: {error}"


def written_out(
    op: str,
    attrs: tuple[Attr, ...],
    args: tuple[Var, ...],
    types: tuple[Type, ...],
    declared: Type,
    modules: Mapping[str, ModuleDef],
    name: Callable[[], Var],
) -> tuple[Binding, ...]:
    """The definition of a composite as bindings under fresh names, one level deep; the last one is its value. PreskBug
    if its types do not fit."""
    expansion, definition = _expansion(op, attrs, types, modules)
    try:
        expansion.number(definition, declared)
    except ValueError as error:
        raise PreskBug("core", f"{op} of ({', '.join(map(str, types))}): {error}") from error
    names = list(args)
    bindings: list[Binding] = []
    for (inner, given, below), ty in zip(expansion.made, expansion.types[len(args) :], strict=True):
        names.append(name())
        bindings.append(Binding(names[-1], ty, Prim(inner, given, tuple(names[i] for i in below))))
    return (*bindings[:-1], replace(bindings[-1], type=declared))


@dataclass(slots=True)
class Scope:
    """What is bound so far in a function: types, and the operations of bindings."""

    types: dict[Var, Type]
    ops: dict[Var, Op] = field(default_factory=dict[Var, Op])


Keep = Callable[[Binding, Scope], bool]


def expanded(program: Program, keep: Keep = lambda b, scope: False) -> Program:
    """The program with every composite written out, down to primitives, but for those that `keep` says are run as they
    are."""
    if not any(_has_composites(f) for f in program.functions.values()):
        return program
    functions = {name: _expanded(f, program.modules, keep) for name, f in program.functions.items()}
    return replace(program, functions=functions)


def is_composite(b: Binding) -> bool:
    return isinstance(b.op, Prim) and b.op.op in COMPOSITES


def _has_composites(function: Function) -> bool:
    return any(map(is_composite, function.bindings))


def _expanded(function: Function, modules: Mapping[str, ModuleDef], keep: Keep) -> Function:
    if not _has_composites(function):
        return function
    scope = Scope({p.name: p.type for p in function.params})
    taken = {*scope.types, *(b.name for b in function.bindings)}
    fresh = _fresh_names(taken)
    done: list[Binding] = []
    waiting = list(reversed(function.bindings))
    while waiting:
        b = waiting.pop()
        if not isinstance(b.op, Prim) or b.op.op not in COMPOSITES or keep(b, scope):
            scope.types[b.name], scope.ops[b.name] = b.type, b.op
            done.append(b)
            continue
        given = tuple(scope.types[v] for v in b.op.args)
        parts = written_out(b.op.op, b.op.attrs, b.op.args, given, b.type, modules, fresh.__next__)
        notes = [replace(p, span=b.span, note=b.note) for p in parts]
        waiting += reversed([*notes[:-1], replace(notes[-1], name=b.name)])
    return replace(function, bindings=tuple(done))


def _fresh_names(taken: set[Var]) -> Iterator[Var]:
    n = 0
    while True:
        if f"%x{n}" not in taken:
            yield f"%x{n}"
        n += 1
