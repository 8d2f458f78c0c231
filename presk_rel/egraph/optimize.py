"""The optimizer: a flat Core function in, the cheapest equal one that the rules find out, with the proof.

    encode → saturate with logging → read back → congruence closure → extract → decode → explain

The start program itself is one of the candidates: what comes out never costs more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from presk_rel.core.ir import Function, Program, operands
from presk_rel.core.verify import verify
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.cost import CostModel, Work
from presk_rel.egraph.decode import Decoded, decode
from presk_rel.egraph.egglog_dialect import Session
from presk_rel.egraph.extract import Choice, Choices, ClassId, Extraction, extract
from presk_rel.egraph.language import Encoded, Terms, encode
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.proof import Proof, TermId
from presk_rel.egraph.prove import trivial_proof, write_proof
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.saturate import Limits, Saturation, saturate
from presk_rel.egraph.snapshot import Graph, read_graph, read_instances
from presk_rel.egraph.templates import canonicalize, shape_operands


@dataclass(frozen=True, slots=True)
class Size:
    """What the report's table says about a program."""

    bindings: int
    kernels: int
    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """`fired` counts logged instances per rule, in the order of the rule table; `gap` is 0 where the extraction is proven
    optimal; `stopped` says how saturation ended ("saturated", or the limit that was met)."""

    before: Size
    after: Size
    fired: tuple[tuple[str, int], ...]
    e_nodes: tuple[int, int]
    phases: tuple[tuple[str, float], ...]
    gap: float
    stopped: str


@dataclass(frozen=True, slots=True)
class Optimized:
    program: Program
    proof: Proof
    report: Report


@dataclass(slots=True)
class _Clock:
    phases: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    last: float = field(default_factory=perf_counter)

    def lap(self, phase: str) -> None:
        now = perf_counter()
        self.phases.append((phase, now - self.last))
        self.last = now


def optimize(
    flat: Program,
    entry: str,
    dims: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    rules: tuple[Rule, ...] | None = None,
) -> Optimized:
    """Optimize function `entry` of a flat program. `dims` only weigh costs: the result is right at any dimensions.
    PreskBug if the program is not flat or a rule breaks an invariant."""
    limits = limits or Limits()
    clock = _Clock()
    function = live(flat.functions[entry])
    model = CostModel(flat.modules, dict(dims or {}))
    encoded = encode(function, Terms(TypeTable(flat.modules)))
    terms, closure = encoded.terms, Closure(encoded.terms)
    start = terms.reachable(encoded.root)
    canonicalize(terms, closure, 0)
    clock.lap("encode")
    chosen_rules = tuple(r for r in (RULES.values() if rules is None else rules) if r.ruleset != "encode")
    session = Session(terms, chosen_rules)
    session.load([(t, _loaded(terms, t)) for t in start])
    clock.lap("load")
    saturation = saturate(session, limits)
    clock.lap("saturate")
    reading = session.freeze()
    graph = read_graph(session, reading)
    known = len(terms)
    instances = read_instances(session, reading)
    clock.lap("read")
    for instance in instances:
        closure.add(instance)
    canonicalize(terms, closure, known)
    clock.lap("close")
    extraction = extract(_choices(graph, terms, model, start), graph.of_term[encoded.root], limits.solver)
    clock.lap("extract")
    decoded = _decoded(function, encoded, closure, graph, extraction)
    before, after = model.function(function), model.function(decoded.function)
    better = after.units < before.units or (
        after.units == before.units and len(decoded.function.bindings) < len(function.bindings)
    )
    proof = trivial_proof(entry, encoded)
    if better:
        names = _names(encoded, decoded)
        proof = write_proof(entry, closure, encoded.root, decoded.root, names)
    result = decoded.function if better else function
    program = replace(flat, functions={**flat.functions, entry: result})
    verify(program, "egraph")
    clock.lap("prove")
    report = Report(
        before=_size(flat.functions[entry], model),
        after=_size(result, model),
        fired=_fired(instances),
        e_nodes=(saturation.before, saturation.after),
        phases=tuple(clock.phases),
        gap=extraction.gap,
        stopped=saturation.stopped,
    )
    return Optimized(program, proof, report)


def live(function: Function) -> Function:
    """The function without bindings that nothing reads."""
    needed = {function.ret}
    kept = []
    for b in reversed(function.bindings):
        if b.name in needed:
            needed.update(operands(b.op))
            kept.append(b)
    return replace(function, bindings=tuple(reversed(kept)))


def _loaded(terms: Terms, term: TermId) -> tuple[int, ...]:
    """A term's operands as the e-graph has them."""
    shapes = shape_operands(terms.op(term))
    return tuple(-1 - terms.type[a] if i in shapes else a for i, a in enumerate(terms.args[term]))


def _choices(graph: Graph, terms: Terms, model: CostModel, start: list[TermId]) -> Choices:
    """Every node with its cost; at equal cost a node of the start program is preferred."""
    types = terms.table.types
    own = {
        (graph.of_term[t], terms.head[t], tuple(graph.of_term[a] if a >= 0 else a for a in _loaded(terms, t)))
        for t in start
    }
    choices: Choices = {}
    for c, nodes in enumerate(graph.nodes):
        ways: list[Choice] = []
        for i, node in enumerate(nodes):
            head = terms.heads[node.head]
            operand_types = tuple(types[graph.types[a]] if a >= 0 else types[-1 - a] for a in node.args)
            units = model.work(head.op, head.attrs, operand_types, types[head.type]).units
            new = (c, node.head, node.args) not in own
            ways.append(Choice(2 * units + new, frozenset(a for a in node.args if a >= 0), i))
        choices[c] = ways
    return choices


def _decoded(function: Function, encoded: Encoded, closure: Closure, graph: Graph, extraction: Extraction) -> Decoded:
    terms = encoded.terms
    root = graph.of_term[encoded.root]
    known = len(terms)
    made: dict[ClassId, TermId] = {}
    stack = [root]
    while stack:
        c = stack[-1]
        node = graph.nodes[c][extraction.chosen[c].key]
        missing = [a for a in node.args if a >= 0 and a not in made]
        if c in made or not missing:
            stack.pop()
        if c not in made and not missing:
            made[c] = terms.make(node.head, tuple(made[a] if a >= 0 else terms.template(-1 - a) for a in node.args))
        stack += missing
    closure.extend()
    decoded = decode(function, encoded, closure, made[root])
    canonicalize(terms, closure, known)
    if not closure.equal(encoded.root, decoded.root):
        raise PreskBug("egraph", "the logged instances do not prove the result equal to the program")
    return decoded


def _size(function: Function, model: CostModel) -> Size:
    work: Work = model.function(function)
    return Size(len(function.bindings), work.kernels, work.flops, work.bytes)


def _fired(instances) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for instance in instances:
        counts[instance.rule.name] = counts.get(instance.rule.name, 0) + 1
    return tuple(counts.items())


def _names(encoded: Encoded, decoded: Decoded) -> dict[TermId, str]:
    """Bindings' names for the proof: a name that the end program gives to another term is primed."""
    before = {t: v for v, t in reversed(encoded.of_name.items())}
    after = {t: f"{v}'" if v in encoded.of_name else v for t, v in decoded.names.items()}
    return after | before
