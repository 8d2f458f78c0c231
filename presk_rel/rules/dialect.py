"""Reader of the rule language: files and their includes → a validated `Program`.

`// [scopes.visible-here]` in the comment directly above a clause names its rules; other rules are `relation/index`.
The language is Soufflé's, cut down as `dialect.lark` says, so that every program here runs under Soufflé as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from presk_rel.diagnostics import Diagnostics, PreskError, Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.rules.ast import (
    Atom,
    Attribute,
    BaseType,
    Comparison,
    Constant,
    FactClause,
    Literal,
    Negation,
    Program,
    RelationDecl,
    Row,
    Rule,
    TypeDecl,
    Value,
)
from presk_rel.rules.items import RESERVED, Clause, Declaration, Direction, Include, Item, in_order
from presk_rel.rules.storage import Source, load_program, source_of, store_program
from presk_rel.rules.validate import validate

INCLUDE_LIMIT = 64
"""Files that may be open at once through `.include`."""

EMPTY = Program({}, (), (), ())


def read_program(path: Path, *, search: Sequence[Path] = ()) -> Program:
    """The program of the file at `path`. `.include` looks beside the including file, then along `search`.

    Raises `PreskError` with codes E9101 … E9115.
    """
    places = tuple(map(str, search))
    stored = load_program(str(path), places)
    if stored is not None:
        return stored
    loader = _Loader(tuple(search))
    program = _assemble(EMPTY, list(loader.items(path, None, ())))
    store_program(str(path), places, program, loader.sources)
    return program


def parse_program(text: str, file: str = "<rules>", *, search: Sequence[Path] = ()) -> Program:
    """The program of `text`; `file` is what its spans name."""
    return extend_program(EMPTY, text, file, search=search)


def extend_program(program: Program, text: str, file: str, *, search: Sequence[Path] = ()) -> Program:
    """`program` with the declarations and rules of `text`, validated as a whole."""
    loader = _Loader(tuple(search))
    return _assemble(program, list(loader.expand(_items(text, file), Path(), ())))


def extend_with_file(program: Program, path: Path, *, search: Sequence[Path] = ()) -> Program:
    """`program` with what the file at `path` declares, validated as a whole. Spans name the file as `path` does."""
    return _assemble(program, list(_Loader(tuple(search)).items(path, None, ())))


@record
class _Loader:
    search: tuple[Path, ...]
    sources: list[Source] = field(default_factory=list[Source])

    def items(self, path: Path, at: Span | None, opened: tuple[Path, ...]) -> Iterator[Item]:
        """The items of a file and, in place, of what it includes. `opened` are the files on the way to it."""
        found = Diagnostics()
        if path.resolve() in opened:
            chain = " → ".join(p.name for p in (*opened[opened.index(path.resolve()) :], path))
            found.error("E9104", f"`.include` goes in a circle: {chain}", at)
        elif len(opened) >= INCLUDE_LIMIT:
            found.error("E9102", f"`.include` nests deeper than {INCLUDE_LIMIT} files", at)
        if found.has_errors:
            raise PreskError(found.items)
        text = _read(path, at)
        self.sources.append(source_of(str(path), text))
        yield from self.expand(_items(text, str(path)), path.parent, (*opened, path.resolve()))

    def expand(self, items: list[Item], folder: Path, opened: tuple[Path, ...]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, Include):
                yield from self.items(self._find(item, folder), item.span, opened)
            else:
                yield item

    def _find(self, include: Include, folder: Path) -> Path:
        for place in (folder, *self.search):
            candidate = place / include.path
            if candidate.is_file():
                return candidate
        found = Diagnostics()
        found.error("E9103", f"cannot find the included file `{include.path}`", include.span)
        raise PreskError(found.items)


def _items(text: str, file: str) -> list[Item]:
    """Imports the reader, and with it lark, only when there is something to read."""
    from presk_rel.rules.reader import read_items

    return read_items(text, file)


def _read(path: Path, at: Span | None) -> str:
    found = Diagnostics()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        found.error("E9103", f"cannot read `{path}`: {error.strerror}", at)
    except UnicodeDecodeError:
        found.error("E9103", f"cannot read `{path}`: it is not UTF-8", at)
    raise PreskError(found.items)


def _assemble(base: Program, items: list[Item]) -> Program:
    assembler = _Assembler(dict(base.relations), {t.name: t for t in base.types})
    assembler.declare(items)
    assembler.read_clauses(base, [item for item in items if isinstance(item, Clause)])
    if assembler.found.has_errors:
        raise PreskError(in_order(assembler.found))
    program = Program(
        assembler.relations,
        tuple(assembler.types.values()),
        (*base.rules, *assembler.rules),
        (*base.facts, *assembler.facts),
    )
    validate(program, assembler.found)
    if assembler.found.has_errors:
        raise PreskError(in_order(assembler.found))
    return program


@mutable
class _Assembler:
    relations: dict[str, RelationDecl]
    types: dict[str, TypeDecl]
    found: Diagnostics = field(default_factory=Diagnostics)
    rules: list[Rule] = field(default_factory=list[Rule])
    facts: list[FactClause] = field(default_factory=list[FactClause])

    def declare(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, TypeDecl):
                self._declare_type(item)
        for item in items:
            if isinstance(item, Declaration):
                self._declare_relations(item)
        for item in items:
            if isinstance(item, Direction):
                self._direct(item)

    def _declare_type(self, item: TypeDecl) -> None:
        if item.name in self.types or item.name in ("number", "symbol"):
            self.found.error("E9105", f"the type `{item.name}` is declared twice", item.span)
            return
        self.types[item.name] = item

    def base_type(self, name: str, span: Span) -> BaseType:
        """`number` or `symbol`: where the chain of `.type` declarations from `name` ends."""
        seen: set[str] = set()
        todo, bases = [name], set[BaseType]()
        while todo:
            current = todo.pop()
            if current == "number" or current == "symbol":
                bases.add(current)
            elif current in self.types and current not in seen:
                seen.add(current)
                todo.extend(self.types[current].bases)
            elif current not in self.types:
                self._bad_type(current, span)
                return "symbol"
        if len(bases) != 1:
            self.found.error("E9105", f"the type `{name}` is not one of number and symbol", span)
        return "number" if bases == {"number"} else "symbol"

    def _bad_type(self, name: str, span: Span) -> None:
        if name in ("unsigned", "float"):
            self.found.error("E9113", f"the type `{name}` is not part of the rule language", span)
        else:
            self.found.error("E9105", f"the type `{name}` is not declared", span)

    def _declare_relations(self, item: Declaration) -> None:
        names = [a.name for a in item.attributes]
        if len(set(names)) != len(names):
            self.found.error("E9105", "two columns have the same name", item.span)
        types: tuple[BaseType, ...] = tuple(self.base_type(a.type_name, item.span) for a in item.attributes)
        for name in (*item.names, *names):
            if not name.isascii() or name in RESERVED:
                self.found.error("E9101", f"`{name}` cannot be declared: Soufflé does not read it as a name", item.span)
        for name in item.names:
            if name in self.relations:
                self.found.error("E9105", f"the relation `{name}` is declared twice", item.span)
            self.relations[name] = RelationDecl(name, item.attributes, types, False, False, item.span)

    def _direct(self, item: Direction) -> None:
        for name in item.names:
            decl = self.relations.get(name)
            if decl is None:
                self.found.error("E9106", f"the relation `{name}` is not declared", item.span)
                continue
            is_input = decl.is_input or item.keyword == ".input"
            is_output = decl.is_output or item.keyword == ".output"
            self.relations[name] = RelationDecl(name, decl.attributes, decl.types, is_input, is_output, decl.span)

    def read_clauses(self, base: Program, clauses: list[Clause]) -> None:
        named = {rule.name: rule.span for rule in base.rules}
        indices: dict[str, int] = {}
        for rule in base.rules:
            indices[rule.head.relation] = indices.get(rule.head.relation, 0) + 1
        for clause in clauses:
            if clause.name is not None and named.setdefault(clause.name, clause.span) != clause.span:
                self.found.error("E9114", f"two clauses have the name `{clause.name}`", clause.span)
            self._clause(clause, indices)

    def _clause(self, clause: Clause, indices: dict[str, int]) -> None:
        for head in clause.heads:
            row = _constant_row(head) if clause.alternatives == ((),) else None
            if row is not None:
                self.facts.append(FactClause(head.relation, row, head.span))
                continue
            index = indices[head.relation] = indices.get(head.relation, 0) + 1
            name = clause.name or f"{head.relation}/{index}"
            self.rules.extend(Rule(head, body, name, clause.span) for body in clause.alternatives)


def _constant_row(head: Atom) -> Row | None:
    values: list[Value] = []
    for term in head.arguments:
        if not isinstance(term, Constant):
            return None
        values.append(term.value)
    return tuple(values)


__all__ = [
    "Atom",
    "Attribute",
    "Comparison",
    "FactClause",
    "Literal",
    "Negation",
    "Program",
    "RelationDecl",
    "Rule",
    "extend_program",
    "extend_with_file",
    "parse_program",
    "read_program",
]
