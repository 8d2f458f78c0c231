"""The e-graph after saturation, as data: classes with their nodes, and every rule instance that was logged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from presk_rel.egraph.codes import Code
from presk_rel.egraph.conditions import variables
from presk_rel.egraph.egglog_dialect import Reading, Session
from presk_rel.egraph.egglog_rules import mirror
from presk_rel.egraph.instances import Instance, Value, instantiate
from presk_rel.egraph.language import HeadId, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import Kind, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rule import Rule

ClassId = int


@dataclass(frozen=True, slots=True)
class ENode:
    """An operation over classes; an operand `-1 - type` is a template of that type."""

    head: HeadId
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Class i holds `nodes[i]`, all of type `types[i]`. `of_term` finds the class of a loaded term."""

    nodes: list[list[ENode]]
    types: list[TypeId]
    of_term: dict[TermId, ClassId]

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(map(len, self.nodes))


def read_graph(session: Session, reading: Reading) -> Graph:
    """Classes in the engine's order; a class without a type, and a node that mentions one, is left out."""
    typed = sorted((row.columns[0], reading.integer(row.output)) for row in reading.rows("ty", ("term",)))
    number: dict[Any, ClassId] = {value: i for i, (value, _) in enumerate(typed)}
    types = [t for _, t in typed]
    nodes: list[list[ENode]] = [[] for _ in types]
    for code in session.codes.values():
        for row in reading.rows(code.name, code.columns):
            node = _node(session, code, row.columns, number)
            if (
                node is not None
                and row.output in number
                and _well_typed(session.terms, node, types, number[row.output])
            ):
                nodes[number[row.output]].append(node)
    starts = {row.columns[0]: number[row.output] for row in reading.rows("N", ("int",)) if row.output in number}
    return Graph(nodes, types, starts)


def _node(session: Session, code: Code, columns: tuple[Any, ...], number: dict[Any, ClassId]) -> ENode | None:
    args: list[int] = []
    for kind, value in zip(code.columns, columns, strict=True):
        if kind == "term":
            if value not in number:
                return None
            args.append(number[value])
        elif kind == "shape":
            args.append(-1 - value)
    if code.op is None:
        return ENode(columns[0], tuple(args))
    return ENode(session.terms.intern(session.attributes.head(code, list(columns))), tuple(args))


def _well_typed(terms: Terms, node: ENode, types: list[TypeId], class_: ClassId) -> bool:
    """Also false for a node whose operands the typing rules refuse: no rule makes one unless it is wrong."""
    head = terms.heads[node.head]
    operands = tuple(types[a] if a >= 0 else -1 - a for a in node.args)
    return head.type == types[class_] and terms.table.fits(head.op, head.attrs, operands, head.type)


def read_instances(session: Session, reading: Reading, watch: Callable[[], None] = lambda: None) -> list[Instance]:
    """Every logged instance, rule by rule, each in the order in which it was logged. `watch` is called in between and
    may raise."""
    term_of = _mirror_terms(session, reading)
    found: list[Instance] = []
    for log, rule in session.logged_rules().items():
        kinds = variables(rule)
        columns: tuple[Kind, ...] = tuple(kinds.values())
        for row in reading.rows(log, columns):
            watch()
            found.append(_instance(session, rule, kinds, row.columns, term_of))
    return found


def _mirror_terms(session: Session, reading: Reading) -> dict[Any, TermId]:
    """The term of every mirror term; operands have smaller numbers, so one pass in order does."""
    rows: list[tuple[Any, Code | None, tuple[Any, ...]]] = [
        (row.output, None, row.columns) for row in reading.rows("TIn", ("int",))
    ]
    for code in session.codes.values():
        if code.op is not None:
            rows += [(row.output, code, row.columns) for row in reading.rows(mirror(code), code.columns)]
    rows.sort(key=lambda r: r[0])
    term_of: dict[Any, TermId] = {}
    for output, code, columns in rows:
        term_of[output] = columns[0] if code is None else _mirror_term(session, code, columns, term_of)
    return term_of


def _mirror_term(session: Session, code: Code, columns: tuple[Any, ...], term_of: dict[Any, TermId]) -> TermId:
    terms = session.terms
    args: list[TermId] = []
    for kind, value in zip(code.columns, columns, strict=True):
        if kind == "term":
            args.append(term_of[value])
        elif kind == "shape":
            args.append(terms.template(value))
    return terms.make(terms.intern(session.attributes.head(code, list(columns))), tuple(args))


def _instance(
    session: Session, rule: Rule, kinds: dict[str, Kind], columns: tuple[Any, ...], term_of: dict[Any, TermId]
) -> Instance:
    values: dict[str, Value] = {}
    for (name, kind), column in zip(kinds.items(), columns, strict=True):
        if kind == "term":
            values[name] = term_of[column]
        elif kind == "shape":
            values[name] = session.terms.template(column)
        elif kind == "type":
            values[name] = column
        else:
            values[name] = session.attributes.attr(kind, column)
    side = read_rule(rule)
    left = instantiate(session.terms, side.left, values)
    return Instance(rule, values, left, instantiate(session.terms, side.right, values))
