"""The optimizer: a flat Core function in, the cheapest equal one that the rules find out, with the proof.

    encode → saturate with logging → read back → congruence closure → extract → decode → explain

The start program itself is one of the candidates: what comes out never costs more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from presk_rel.core.ir import Binding, Function, Program, operands
from presk_rel.core.verify import verify
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.choices import Spine, Weights, choices, chosen_terms, loaded_args, spine
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.commute import commuted
from presk_rel.egraph.cost import CostModel, Work
from presk_rel.egraph.decode import Decoded, decode
from presk_rel.egraph.egglog_dialect import Session
from presk_rel.egraph.extract import Extraction, extract
from presk_rel.egraph.instances import Instance
from presk_rel.egraph.language import Encoded, Terms, encode
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.proof import Proof, TermId
from presk_rel.egraph.prove import trivial_proof, write_proof
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.saturate import Limits, Saturation, saturate
from presk_rel.egraph.snapshot import Graph, read_graph, read_instances
from presk_rel.egraph.sums import normal_sums
from presk_rel.egraph.templates import canonicalize


@dataclass(frozen=True, slots=True)
class Size:
    """What the report's table says about a program."""

    bindings: int
    kernels: int
    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """`fired` counts logged instances per rule, in the order of the rule table; `e_nodes` before and after; `gap` is 0
    where the extraction is proven optimal; `stopped` says how saturation ended ("saturated", or the limit met)."""

    before: Size
    after: Size
    fired: tuple[tuple[str, int], ...]
    e_nodes: tuple[int, int]
    phases: tuple[tuple[str, float], ...]
    gap: float
    stopped: str


@dataclass(frozen=True, slots=True)
class Optimized:
    """A program whose entry is optimized, the proof that it computes the same, and the figures."""

    program: Program
    proof: Proof
    report: Report


def optimize(
    flat: Program,
    entry: str,
    dims: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    rules: tuple[Rule, ...] | None = None,
) -> Optimized:
    """Optimize function `entry` of a flat program. `dims` only weigh costs: the result is right at any dimensions.
    PreskBug if the program is not flat or a rule breaks an invariant."""
    work = _Optimizer(flat, entry, CostModel(flat.modules, dict(dims or {}), flat.functions), limits or Limits())
    return work.run(tuple(RULES.values()) if rules is None else rules)


@dataclass(slots=True)
class _Optimizer:
    flat: Program
    entry: str
    model: CostModel
    limits: Limits
    phases: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    last: float = field(default_factory=perf_counter)

    def lap(self, phase: str) -> None:
        now = perf_counter()
        self.phases.append((phase, now - self.last))
        self.last = now

    def run(self, rules: tuple[Rule, ...]) -> Optimized:
        function = live(self.flat.functions[self.entry])
        encoded = encode(function, Terms(TypeTable(self.flat.modules)))
        closure = Closure(encoded.terms)
        canonicalize(encoded.terms, closure, 0)
        parts = spine(encoded.terms, encoded.root)
        start = encoded.terms.reachable(*parts.leaves)
        sums = normal_sums(encoded.terms, closure)
        equal = [*commuted(encoded.terms, closure), *sums]
        loaded = encoded.terms.reachable(*parts.leaves, *(t for _, t in sums))
        self.lap("encode")
        graph, instances, saturation = self.saturated(encoded.terms, loaded, equal, rules)
        known = len(encoded.terms)
        for instance in instances:
            closure.add(instance)
        canonicalize(encoded.terms, closure, known)
        self.lap("close")
        available, root = choices(graph, Weights(encoded.terms, self.model), start, parts.leaves)
        extraction = extract(available, root, self.limits.solver)
        if extraction is None:
            raise PreskBug("egraph", "nothing can be extracted, not even the program itself")
        self.lap("extract")
        decoded = decoded_program(function, encoded, closure, graph, extraction, parts)
        before, after = self.model.function(function), self.model.function(decoded.function)
        better = (after.units, len(decoded.function.bindings)) < (before.units, len(function.bindings))
        result = decoded.function if better else function
        program = replace(self.flat, functions={**self.flat.functions, self.entry: result})
        verify(program, "egraph")
        self.lap("decode")
        proof = self.proof(closure, encoded, decoded if better else None)
        self.lap("prove")
        report = Report(
            before=_size(self.flat.functions[self.entry], self.model),
            after=_sized(result, after if better else before),
            fired=_fired(instances),
            e_nodes=(saturation.before, saturation.after),
            phases=tuple(self.phases),
            gap=extraction.gap,
            stopped=saturation.stopped,
        )
        return Optimized(program, proof, report)

    def saturated(
        self, terms: Terms, loaded: list[TermId], equal: list[tuple[TermId, TermId]], rules: tuple[Rule, ...]
    ) -> tuple[Graph, list[Instance], Saturation]:
        session = Session(terms, tuple(r for r in rules if r.ruleset != "encode"))
        session.load([(t, loaded_args(terms, t)) for t in loaded], equal)
        self.lap("load")
        saturation = saturate(session, self.limits)
        self.lap("saturate")
        reading = session.freeze()
        graph = read_graph(session, reading)
        instances = read_instances(session, reading)
        self.lap("read")
        return graph, instances, saturation

    def proof(self, closure: Closure, encoded: Encoded, decoded: Decoded | None) -> Proof:
        if decoded is None:
            return trivial_proof(self.entry, encoded)
        if not closure.equal(encoded.root, decoded.root):
            raise PreskBug("egraph", "the logged instances do not prove the result equal to the program")
        return write_proof(self.entry, closure, encoded.root, decoded.root, _names(encoded, decoded))


def live(function: Function) -> Function:
    """The function without bindings that nothing reads."""
    needed = {function.ret}
    kept: list[Binding] = []
    for b in reversed(function.bindings):
        if b.name in needed:
            needed.update(operands(b.op))
            kept.append(b)
    return replace(function, bindings=tuple(reversed(kept)))


def decoded_program(
    function: Function, encoded: Encoded, closure: Closure, graph: Graph, extraction: Extraction, parts: Spine
) -> Decoded:
    """What was chosen as a function, its equalities with the start program in the closure."""
    terms = encoded.terms
    known = len(terms)
    roots = [graph.of_term[t] for t in parts.leaves]
    made = chosen_terms(graph, terms, extraction.chosen, roots)
    new: dict[TermId, TermId] = {t: made[c] for t, c in zip(parts.leaves, roots, strict=True)}
    for t in parts.builders:
        new[t] = terms.make(terms.head[t], tuple(new[a] for a in terms.args[t]))
    closure.settle()
    decoded = decode(function, encoded, closure, new[encoded.root])
    canonicalize(terms, closure, known)
    return decoded


def _size(function: Function, model: CostModel) -> Size:
    return _sized(function, model.function(function))


def _sized(function: Function, work: Work) -> Size:
    return Size(len(function.bindings), work.kernels, work.flops, work.bytes)


def _fired(instances: list[Instance]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for instance in instances:
        counts[instance.rule.name] = counts.get(instance.rule.name, 0) + 1
    return tuple(counts.items())


def _names(encoded: Encoded, decoded: Decoded) -> dict[TermId, str]:
    """Bindings' names for the proof: a name that the end program gives to another term is primed."""
    before = {t: v for v, t in reversed(encoded.of_name.items())}
    after = {t: f"{v}'" if v in encoded.of_name else v for t, v in decoded.names.items()}
    return after | before
