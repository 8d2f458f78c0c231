"""A block against its schema: E2010 for a field that is not there, twice, missing, or of another form."""

from __future__ import annotations

from collections.abc import Mapping

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.elab.config.forms import Natural, Value, read
from presk_rel.elab.config.records import Checkpoint
from presk_rel.elab.config.schemas import SCHEMAS, FieldRow
from presk_rel.elab.context import Elab
from presk_rel.syntax import ast
from presk_rel.syntax.foreign import FIELDS
from presk_rel.syntax.parser import parse_type
from presk_rel.syntax.printer import print_expr


@record
class Read:
    """A field as read: its value, and where that stands."""

    value: Value
    expr: ast.Expr

    @property
    def span(self) -> Span:
        return self.expr.span


@record
class Block:
    """The fields of a block that are as the schema has them. `whole`: all are, and none is missing."""

    node: ast.Config
    fields: Mapping[str, Read]
    checkpoint: Checkpoint | None
    whole: bool

    def settings(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Fields as source text, in the order of the block."""
        return tuple((name, print_expr(field.expr)) for name, field in self.fields.items() if name in names)


@mutable
class _Reader:
    elab: Elab
    node: ast.Config
    fields: dict[str, Read]
    seen: set[str]
    checkpoint: Checkpoint | None = None
    whole: bool = True

    def wrong(self, message: str, span: Span, help: str | None = None) -> None:
        self.whole = False
        self.elab.error("E2010", message, span, help=help)

    def field(self, item: ast.ConfigField) -> None:
        rows = {row.name: row for row in SCHEMAS[self.node.kind]}
        row = rows.get(item.name.text)
        if row is None:
            takes = ", ".join(rows) + (", checkpoint every N steps" if self.node.kind == "training" else "")
            meant = FIELDS.get(item.name.text, "")
            helped = f"write {meant}; it takes {takes}" if meant.split(" ")[0] in rows else f"it takes {takes}"
            self.wrong(f"{_article(self.node.kind)} block has no field `{item.name.text}`", item.name.span, helped)
        elif item.name.text in self.seen:
            self.wrong(f"`{row.name}` is given twice", item.name.span)
        else:
            self.seen.add(row.name)
            self.value(row, item)

    def value(self, row: FieldRow, item: ast.ConfigField) -> None:
        expected = None if row.type is None else parse_type(row.type).type
        if item.type is not None and item.type != expected:
            takes = "takes no type" if row.type is None else f"has the type {row.type}"
            self.wrong(f"`{row.name}` {takes}", item.type.span)
            return
        value = read(self.elab, row.form, item.value)
        if value is None:
            self.wrong(f"`{row.name}` takes {row.form}", item.value.span)
        else:
            self.fields[row.name] = Read(value, item.value)

    def checkpoints(self, item: ast.Checkpoint) -> None:
        steps = read(self.elab, Natural(1), item.steps)
        if self.node.kind != "training":
            self.wrong(f"{_article(self.node.kind)} block has no checkpoints", item.span)
        elif "checkpoint" in self.seen:
            self.wrong("`checkpoint` is given twice", item.span)
        elif not isinstance(steps, int):
            self.wrong("`checkpoint` takes every N ≥ 1 steps", item.steps.span)
        else:
            self.seen.add("checkpoint")
            self.checkpoint = Checkpoint(steps, item.path.value)


def read_block(elab: Elab, node: ast.Config) -> Block:
    """Reads a block, with an E2010 for each thing that is not as the schema has it."""
    reader = _Reader(elab, node, {}, set())
    for item in node.items:
        match item:
            case ast.ConfigField():
                reader.field(item)
            case ast.Checkpoint():
                reader.checkpoints(item)
    for row in SCHEMAS[node.kind]:
        if row.required and row.name not in reader.seen:
            reader.wrong(
                f"the {node.kind} block `{node.name.text}` has no `{row.name}`", node.name.span, f"it takes {row.form}"
            )
    return Block(node, reader.fields, reader.checkpoint, reader.whole)


def _article(kind: str) -> str:
    return f"{'a' if kind == 'training' else 'an'} {kind}"
