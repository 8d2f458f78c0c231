"""The optimizer: a flat Core function in, the cheapest equal one that the rules find out, with the proof.

    encode → recognise → saturate with logging → read back → congruence closure → extract → recognise, decode → explain

The function and the bodies of the folds under it share one e-graph, each with leaves of its own; each is extracted and
proven by itself. Every start function is one of its candidates: what comes out never costs more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from presk_rel.core.ir import Function, Program
from presk_rel.core.verify import verify
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.budget import WHOLE, Budget, Limits, OutOfBudget
from presk_rel.egraph.chains import shortened
from presk_rel.egraph.choices import Weights, choices_of, chosen_terms, loaded_args, nodes_of
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.commute import commuted
from presk_rel.egraph.contract.common import grouped
from presk_rel.egraph.contract.contracted import contracted
from presk_rel.egraph.contract.lower import lowered
from presk_rel.egraph.cost import CostModel, Work
from presk_rel.egraph.decode import Decoded, decode
from presk_rel.egraph.egglog_dialect import Session
from presk_rel.egraph.extract import Extraction, PartShape, SolvedShapes, extract
from presk_rel.egraph.folds.residuals import Recomputed, stacking
from presk_rel.egraph.folds.write import smaller_folds
from presk_rel.egraph.instances import FoldChange, Instance, fired
from presk_rel.egraph.language import Terms
from presk_rel.egraph.merging import merged
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.parts import Part, parts_of, reached
from presk_rel.egraph.placement import placed
from presk_rel.egraph.proof import Proof, TermId
from presk_rel.egraph.prove import trivial_proof, write_proof
from presk_rel.egraph.recognise import recognise
from presk_rel.egraph.rule import OUTSIDE, Rule
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.saturate import Saturation, saturate
from presk_rel.egraph.snapshot import Graph, read_graph, read_instances
from presk_rel.egraph.sums import normal_sums
from presk_rel.egraph.templates import canonicalize
from presk_rel.egraph.ways import Folds, bodies_first, projected, residual_ways


@dataclass(frozen=True, slots=True)
class Size:
    """What the report's table says about a program: the bindings of the entry and of the bodies of its folds; kernels,
    arithmetic and traffic of one run. `contracting` is the arithmetic of products of matrices."""

    bindings: int
    kernels: int
    flops: int
    bytes: int
    contracting: int

    @property
    def units(self) -> int:
        """What the cost model says."""
        return Work(self.kernels, self.flops, self.bytes).units


@dataclass(frozen=True, slots=True)
class Report:
    """`fired` counts logged instances per rule, in the order of the rule table; `e_nodes` before and after, with what
    `contract` and `placement` add; `gap` is 0 where the extraction is proven optimal, 1 where nothing was extracted;
    `stopped` says how saturation ended ("saturated", or the limit met), `cuts` which phases ended before they were
    done, with the best that they had found."""

    before: Size
    after: Size
    fired: tuple[tuple[str, int], ...]
    e_nodes: tuple[int, int]
    phases: tuple[tuple[str, float], ...]
    gap: float
    stopped: str
    cuts: tuple[str, ...] = ()


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
    *,
    choose_residuals: bool = True,
) -> Optimized:
    """Optimize function `entry` of a flat program and the bodies of its folds. `dims` only weigh costs: the result is
    right at any dimensions. `choose_residuals`: what a backward fold keeps may be computed again (`--remat auto`);
    keeping all, keeping what `folds.residuals` chooses, and keeping as little as may be are equal folds in the e-graph,
    of which extraction takes the cheapest, but none whose contractions are more work than with all kept.
    PreskBug if the program is not flat or a rule breaks an invariant."""
    table = tuple(RULES.values()) if rules is None else rules
    model = CostModel(flat.modules, dict(dims or {}), dict(flat.functions))
    budget = Budget.of(limits or Limits(), sum(len(f.bindings) for f in reached(flat, entry).values()))
    ways: list[Recomputed | None] = [None]
    ways = residual_ways(flat, entry, dims or {}, budget) if choose_residuals else ways
    return _Optimizer(flat, entry, model, budget, table, ways).run()


@dataclass(frozen=True, slots=True)
class _Result:
    """What became of one function; `decoded` None: it stays as it is. `gap` is that of merging contractions."""

    part: Part
    function: Function
    decoded: Decoded | None
    gap: float = 0.0


@dataclass(slots=True)
class _Optimizer:
    flat: Program
    entry: str
    model: CostModel
    budget: Budget
    rules: tuple[Rule, ...]
    ways: list[Recomputed | None]
    phases: dict[str, float] = field(default_factory=dict[str, float])
    solved: SolvedShapes = field(default_factory=dict[PartShape, tuple[list[int | None], float]])
    last: float = field(default_factory=perf_counter)

    def lap(self, phase: str) -> None:
        now = perf_counter()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self.last
        self.last = now

    @property
    def contracts(self) -> bool:
        return any(r.ruleset == "contract" for r in self.rules)

    def run(self) -> Optimized:
        terms = Terms(TypeTable(self.flat.modules))
        given = parts_of(self.flat, self.entry, terms)
        closure = Closure(terms, self.budget)
        try:
            return self.optimized(given, terms, closure)
        except OutOfBudget as late:
            self.budget.cut(late.phase)
            return self.finished(given, closure, [_Result(part, part.function, None) for part in given], gap=1.0)

    def optimized(self, given: list[Part], terms: Terms, closure: Closure) -> Optimized:
        """The best program found; OutOfBudget if not even its proof can be written."""
        folds = self.with_smaller_folds(given, terms, closure)
        canonicalize(terms, closure, 0)
        if len(terms) > self.budget.limits.terms:
            self.budget.cut("load")
            results = [_Result(part, part.function, None) for part in folds.parts]
            return self.finished(given, closure, results, gap=1.0)
        known = len(terms)
        folds = folds.map(lambda p: p.computing(recognise(terms, closure, p.root, self.rules, first=True)))
        if self.contracts:
            folds = folds.map(lambda p: p.computing(lowered(terms, closure, p.root)))
        canonicalize(terms, closure, known)
        self.lap("recognise")
        try:
            return self.searched(given, terms, closure, folds)
        except OutOfBudget as late:
            self.budget.cut(late.phase)
            results = [self.kept(part, closure, part.root, self.model) for part in folds.parts]
            return self.finished(given, closure, results, gap=1.0)

    def searched(self, given: list[Part], terms: Terms, closure: Closure, folds: Folds) -> Optimized:
        """The best program that the e-graph knows; OutOfBudget if that is not known in time."""
        leaves = [t for part in (*folds.parts, *folds.others) for t in part.spine.leaves]
        sums = shortened(terms, closure, leaves, self.rules, normal_sums(terms, closure))
        if self.contracts:
            grouped(terms, closure, sums, leaves)
        start = sums.start(terms, leaves)
        loaded = sums.loaded(terms, leaves)
        equal = sums.pairs(terms, leaves, [*commuted(terms, closure), *folds.equal(closure, loaded)])
        self.lap("encode")
        graph, instances, saturation = self.saturated(terms, loaded, equal)
        known, saturated = len(terms), graph.size
        for instance in instances:
            self.budget.watch("close")
            closure.add(instance)
        if self.contracts:
            graph = contracted(graph, terms, closure, Weights(terms, self.model), self.budget)
        graph = placed(graph, terms, closure, lambda t: self.model.bytes(terms.table.types[t]), self.budget)
        saturation.after += graph.size - saturated
        canonicalize(terms, closure, known)
        self.lap("close")
        results, gap = self.results(graph, closure, start, folds)
        return self.finished(given, closure, results, instances, saturation, gap)

    def finished(
        self,
        given: list[Part],
        closure: Closure,
        results: list[_Result],
        instances: list[Instance] | None = None,
        saturation: Saturation | None = None,
        gap: float = 0.0,
    ) -> Optimized:
        """The program of what became of every function, with its proof; without a saturation, it stays as it is."""
        made = {r.part.name: r.function for r in results}
        others = {name: f for name, f in self.flat.functions.items() if name not in {p.name for p in given}}
        used = reached(replace(self.flat, functions={**others, **made}), self.entry)
        program = replace(self.flat, functions={**others, **{n: f for n, f in made.items() if n in used}})
        verify(program, "egraph")
        self.lap("decode")
        proof = self.proof(closure, given, results, used)
        results = [r for r in results if r.part.name in used]
        self.lap("prove")
        saturation = saturation or Saturation("seconds" if self.budget.late() else "e-nodes", 0, 0)
        report = Report(
            before=self.size(given),
            after=self.size([replace(r.part, original=r.function) for r in results]),
            fired=fired([*_recognised(closure), *(instances or [])]),
            e_nodes=(saturation.before, saturation.after),
            phases=tuple(self.phases.items()),
            gap=max((gap, *(r.gap for r in results))),
            stopped=saturation.stopped,
            cuts=tuple(self.budget.cuts),
        )
        return Optimized(program, proof, report)

    def with_smaller_folds(self, given: list[Part], terms: Terms, closure: Closure) -> Folds:
        """The functions with their folds as small as can be, for every way to keep residuals, with what proves it in
        the closure. Where that is too much to find out, the folds stay as they are."""
        functions = {p.name: p.function for p in given}
        flat, found = self.flat, Folds([], [], [], set())
        old = {p.name: p.encoded for p in given}
        for way in self.ways:
            again = way or Recomputed(functions, frozenset())
            try:
                smaller = smaller_folds(flat, self.entry, again.functions, again.folds, self.budget)
            except OutOfBudget as spent:
                self.budget.cut(spent.phase)
                found.add([] if found.parts else given)
                return found
            parts = given
            if smaller is not None:
                verify(smaller.program, "folds")
                fresh = {n: f for n, f in smaller.program.functions.items() if n not in flat.functions}
                flat = replace(flat, functions={**flat.functions, **fresh})
                self.model.learn(fresh if found.parts else smaller.program.functions)
                parts = parts_of(smaller.program, self.entry, terms)
                new = {p.name: p.encoded for p in parts}
                for c in smaller.changes:
                    if c.new in new[c.function].of_name:
                        before = projected(terms, old[c.function].of_name[c.old], c.path)
                        closure.add(FoldChange(c.laws, before, new[c.function].of_name[c.new]))
                        found.changed.append(before)
            found.add(parts)
        return found

    def saturated(
        self, terms: Terms, loaded: list[TermId], equal: list[tuple[TermId, TermId]]
    ) -> tuple[Graph, list[Instance], Saturation]:
        session = Session(terms, tuple(r for r in self.rules if r.ruleset not in OUTSIDE))
        session.load([(t, loaded_args(terms, t)) for t in loaded], equal, watch=lambda: self.budget.watch("load"))
        self.lap("load")
        saturation = saturate(session, self.budget)
        self.lap("saturate")
        reading = session.freeze()
        graph = read_graph(session, reading)
        instances = read_instances(session, reading, lambda: self.budget.watch("read"))
        self.lap("read")
        return graph, instances, saturation

    def results(self, graph: Graph, closure: Closure, start: list[TermId], folds: Folds) -> tuple[list[_Result], float]:
        """What is chosen for every function, and the gap; with all residuals kept where contractions are less work."""
        found, gap = self.chosen(graph, closure, start, folds.parts, folds.others)
        if all(p.name in folds.keeping for p in folds.parts) or self.budget.late():
            return found, gap
        kept, other = self.chosen(graph, closure, start, [p for p in folds.parts if p.name in folds.keeping], [])
        least, most = (self.sized({r.part.name: r.function for r in rs}) for rs in (found, kept))
        return (kept, other) if least.contracting > most.contracting else (found, gap)

    def chosen(
        self, graph: Graph, closure: Closure, start: list[TermId], parts: list[Part], others: list[Part]
    ) -> tuple[list[_Result], float]:
        """The cheapest choice for every function, bodies of folds first: a fold costs what was chosen for its body. A
        fold of another body than of these is no choice."""
        terms = closure.terms
        model = replace(self.model, functions=dict(self.model.functions))
        own = nodes_of(graph, terms, start)
        done: dict[str, _Result] = {}
        gap = 0.0
        names = frozenset(p.name for p in parts)
        for part in bodies_first(parts, others):
            available, root = choices_of(graph, part.encoded, part.spine.leaves, Weights(terms, model, names), own)
            extraction = extract(available, root, self.budget.limits.solver, self.budget, self.solved)
            if extraction is None:
                raise PreskBug("egraph", f"{part.name}: nothing can be extracted, not even the function itself")
            gap = max(gap, extraction.gap)
            self.lap("extract")
            done[part.name] = self.result(part, closure, graph, extraction, model)
            model.learn({part.name: done[part.name].function})
            self.lap("decode")
        return [done[p.name] for p in parts], gap

    def result(self, part: Part, closure: Closure, graph: Graph, extraction: Extraction, model: CostModel) -> _Result:
        """The function that was chosen, where it is better; else the function as it was, with contractions merged."""
        decoded, gap = self.decoded(part, closure, self.extracted(part, closure, graph, extraction), model)
        if self.better(part, decoded, model):
            return _Result(part, decoded.function, decoded, gap)
        return self.kept(part, closure, part.encoded.root, model)

    def kept(self, part: Part, closure: Closure, root: TermId, model: CostModel) -> _Result:
        """The function that a term of the program is, where it is better; else the function as it was."""
        decoded, gap = self.decoded(part, closure, root, model)
        if self.better(part, decoded, model):
            return _Result(part, decoded.function, decoded, gap)
        return _Result(part, part.function, None)

    def extracted(self, part: Part, closure: Closure, graph: Graph, extraction: Extraction) -> TermId:
        """The term of what was chosen for a function, with everything recognised."""
        terms, parts = part.encoded.terms, part.spine
        known = len(terms)
        roots = [graph.of_term[t] for t in parts.leaves]
        made = chosen_terms(graph, terms, extraction.chosen, roots)
        new: dict[TermId, TermId] = {t: made[c] for t, c in zip(parts.leaves, roots, strict=True)}
        for t in parts.builders:
            new[t] = terms.make(terms.head[t], tuple(new[a] for a in terms.args[t]))
        canonicalize(terms, closure, known)
        return recognise(terms, closure, new[part.root], self.rules, first=False)

    def decoded(self, part: Part, closure: Closure, root: TermId, model: CostModel) -> tuple[Decoded, float]:
        """A term as a function, with contractions merged where that pays, its equalities with the start function in the
        closure; and the gap of that choice."""
        terms = part.encoded.terms
        known = len(terms)
        whole = merged(terms, closure, root, model, self.budget)
        canonicalize(terms, closure, known)
        self.budget.watch("decode", WHOLE)
        decoded = decode(part.function, part.encoded, closure, whole.root)
        canonicalize(terms, closure, known)
        return decoded, whole.gap

    def better(self, part: Part, decoded: Decoded, model: CostModel) -> bool:
        before, after = (model.function(f).units + stacking(f, model) for f in (part.function, decoded.function))
        return (after, len(decoded.function.bindings)) < (before, len(part.function.bindings))

    def sized(self, functions: dict[str, Function]) -> Work:
        """The work of the entry, with these bodies."""
        return replace(self.model, functions={**self.model.functions, **functions}).function(functions[self.entry])

    def proof(self, closure: Closure, given: list[Part], results: list[_Result], used: Collection[str]) -> Proof:
        """The proof of the entry with those of the bodies: of the given ones, then of the new ones that the program, or
        a proof, has folds of."""
        done = {r.part.name: r for r in results}
        start = {p.name: p for p in given}
        made: dict[str, Proof] = {}
        waiting = list(dict.fromkeys([*start, *(name for name in done if name in used)]))
        for name in waiting:
            made[name] = part_proof(closure, start[name] if name in start else done[name].part, done.get(name))
            named = [str(t.attrs[1]) for t in made[name].terms if t.op == "fold"]
            waiting += [n for n in dict.fromkeys(named) if n not in waiting]
        entry, *bodies = made.values()
        return replace(entry, bodies=tuple(bodies), dims=(), params=())

    def size(self, parts: list[Part]) -> Size:
        """The figures of the entry, the first part, with the bodies that are given."""
        functions = {**self.flat.functions, **{p.name: p.original for p in parts}}
        work: Work = replace(self.model, functions=functions).function(parts[0].original)
        return Size(sum(len(p.original.bindings) for p in parts), work.kernels, work.flops, work.bytes, work.matrices)


def part_proof(closure: Closure, start: Part, result: _Result | None) -> Proof:
    """The proof about one function from its start to its result; a body that no fold has any more stays itself."""
    encoded, function = start.encoded, start.function
    end = encoded.root
    if result is not None:
        end = result.part.encoded.root if result.decoded is None else result.decoded.root
    if end == encoded.root:
        proof = trivial_proof(start.name, encoded)
    elif closure.equal(encoded.root, end):
        assert result is not None
        proof = write_proof(start.name, encoded, closure, end, _names(start, result))
    else:
        raise PreskBug("egraph", f"what is known does not prove the result equal to {start.name}")
    return replace(proof, dims=function.dims, params=function.params)


def _recognised(closure: Closure) -> list[Instance]:
    return [
        i for i in closure.instances if isinstance(i, Instance) and i.rule.ruleset in ("recognise", "contract", "merge")
    ]


def _names(start: Part, result: _Result) -> dict[TermId, str]:
    """Bindings' names for the proof: a name that the end program gives to another term is primed."""
    names = start.encoded.of_name
    before = {t: v for v, t in reversed(names.items())}
    ends = {t: v for v, t in reversed(result.part.encoded.of_name.items())}
    ends |= result.decoded.names if result.decoded is not None else {}
    return {t: f"{v}'" if v in names else v for t, v in ends.items()} | before
