"""A session with egglog 13.2.0: signature, loading by tab-separated files, single steps, reading back.

With `egglog_rules` the only place that knows egglog's text, file format and Python bindings. Facts of this version:
forms are parsed one per call (every span copies its source); a panic of the engine is a `BaseException` and leaves the
session unusable; signals wait for a call to end, so callers step rule by rule and look at the size in between.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.codes import Attributes, Code, Key, code_of, opaque_code, primitive_code
from presk_rel.egraph.conditions import TYPE_FACTS, entries
from presk_rel.egraph.egglog_rules import CONSTANTS, asked, mirror, mirror_sort, rational, rule_text, sort_of, usable
from presk_rel.egraph.egglog_stages import STAGE_RULESET
from presk_rel.egraph.language import Terms
from presk_rel.egraph.patterns import Kind
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rule import Rule

if TYPE_CHECKING:
    from egglog.bindings import EGraph, FrozenEGraph

RULESETS = ("simplify", "collect", "expand", "fuse")
_FACTS = ("scalar", "real", "tensors", "tensor", "matrix")
Column = int | Fraction

CHUNK = 5_000
"""Terms that are loaded at once."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a function. Attributes and types are values; classes (`E`) and mirror terms (`T`) are the engine's
    numbers, which can be compared: a mirror term is greater than its operands."""

    columns: tuple[Any, ...]
    output: Any


@dataclass(slots=True)
class Session:
    """An e-graph loaded with the terms under a root. `step` takes a name of `RULESETS`; `matches` counts what it
    found."""

    terms: Terms
    rules: tuple[Rule, ...]
    attributes: Attributes = field(default_factory=Attributes.new)
    codes: dict[str, Code] = field(default_factory=dict[str, Code])
    matches: int = 0
    _engine: EGraph | None = None
    _numbers: dict[str, Rule] = field(default_factory=dict[str, Rule])
    _facts_about: int = 0
    _answered: dict[str, int] = field(default_factory=dict[str, int])
    _known: set[tuple[str, tuple[Column, ...]]] = field(default_factory=set[tuple[str, tuple[Column, ...]]])

    # ------------------------------------------------------------------------------------------------ the program

    def load(
        self,
        nodes: list[tuple[TermId, tuple[int, ...]]],
        equal: list[tuple[TermId, TermId]],
        also: frozenset[Key] | set[Key] = frozenset(),
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the engine with these terms; a node's operands are term numbers, or `-1 - type` for a template. Those
        in `equal` are known to be. `also`: primitives that count as present, so that rules about them are loaded.
        `watch` is called in between and may raise."""
        coded = [(t, code_of(self.terms.op(t), len(args)), args) for t, args in nodes]
        ops = {c.key for _, c, _ in coded if c.op is not None} | also
        self.rules, reached = usable(self.rules, ops)
        codes = [primitive_code(*key) for op in PRIMS for key in sorted(reached) if key[0] == op]
        arities = sorted({len(c.columns) - 1 for _, c, _ in coded if c.op is None})
        self.codes = {c.name: c for c in [*codes, *map(opaque_code, arities)]}
        with tempfile.TemporaryDirectory(prefix="presk-egraph-") as folder:
            self._engine = self._start(folder)
            loaders = _loaders(list({c.name: c for _, c, _ in coded}.values()))
            for form in [*self._signature(), *loaders, *self._rule_forms()]:
                self._do(form)
            for first in range(0, len(coded), CHUNK):
                watch()
                for form in self._written(Path(folder), coded[first : first + CHUNK]):
                    self._do(form)
                self._do("(run load 1)")
        for a, b in equal:
            watch()
            self._do(f"(union (N {a}) (N {b}))")
        self._supply_facts()
        if asked(self.rules):
            self._answer()

    def _start(self, folder: str) -> EGraph:
        return _bindings().EGraph(fact_directory=folder)

    def _signature(self) -> list[str]:
        forms = [
            "(sort E)",
            "(sort T)",
            "(constructor N (i64) E :unextractable)",
            "(constructor TIn (i64) T)",
            "(function rp (E) T :merge old)",
            "(function ty (E) i64 :no-merge)",
            "(function entries (i64) BigRat :no-merge)",
            "(function constant (E) i64 :merge (max old new))",
            "(ruleset load)",
            "(ruleset types)",
            f"(ruleset {STAGE_RULESET})",
            *(f"(relation is_{fact} (i64))" for fact in _FACTS),
        ]
        for code in self.codes.values():
            forms.append(f"(constructor {code.name} ({' '.join(map(sort_of, code.columns))}) E)")
            if code.op is None:
                continue
            forms.append(f"(constructor {mirror(code)} ({' '.join(map(mirror_sort, code.columns))}) T)")
        for code in (primitive_code(*key) for key in sorted(asked(self.rules))):
            key = " ".join(map(sort_of, table_key(code)))
            name = code.name
            forms += [f"(relation need_{name} ({key}))", f"(function of_{name} ({key}) i64 :no-merge)"]
        return forms

    def _rule_forms(self) -> list[str]:
        forms = [f"(ruleset {name})" for name in RULESETS]
        forms += [_marking(code) for code in self.codes.values() if code.op in CONSTANTS]
        forms += ["(ruleset retire)", *(_retiring(c) for c in self.codes.values() if c.op not in (None, *CONSTANTS))]
        for k, rule in enumerate(self.rules):
            self._numbers[f"L{k}"] = rule
            forms += rule_text(rule, k, rule.ruleset, self.attributes)
        return forms

    # ------------------------------------------------------------------------------------------------ loading

    def _written(self, folder: Path, coded: list[tuple[TermId, Code, tuple[int, ...]]]) -> list[str]:
        """The forms that read some terms, from files."""
        rows: dict[str, list[str]] = {}
        for t, code, args in coded:
            head = self.terms.op(t)
            columns: list[int | Fraction] = [self.terms.head[t]]
            if code.op is not None:
                columns = self.attributes.columns(code, head.attrs)
                columns.append(head.type)
            columns += [a if a >= 0 else -1 - a for a in args]
            rows.setdefault(code.name, []).append("\t".join([str(t), *(_cells(columns))]))
        rows["node"] = [f"{t}\t{self.terms.type[t]}" for t, _, _ in coded]
        for name, lines in rows.items():
            (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [f'(input in_{name} "{name}.tsv")' for name in sorted(rows)]

    def _supply_facts(self) -> None:
        """What conditions ask about types, for every type that is new."""
        types = self.terms.table.types
        for t in range(self._facts_about, len(types)):
            for fact in _FACTS:
                if TYPE_FACTS[fact](types[t]):
                    self._do(f"(is_{fact} {t})")
            n = entries(types[t])
            if n is not None:
                self._do(f"(set (entries {t}) {rational(n)})")
        self._facts_about = len(types)

    # ------------------------------------------------------------------------------------------------ running

    def _do(self, form: str) -> list[Any]:
        assert self._engine is not None
        try:
            return list(self._engine.run_program(*self._engine.parse_program(form)))
        except Exception as e:
            raise PreskBug("egraph", f"egglog refuses `{form[:200]}`: {e}") from e
        except BaseException as e:
            if type(e).__name__ == "PanicException":
                raise PreskBug("egraph", f"egglog panics at `{form[:200]}`: {e}") from e
            raise

    def step(self, ruleset: str, most: int | None = None) -> bool:
        """Run a ruleset once; whether anything may have changed. A rule with more matches than `most` does nothing (the
        search then starts anew instead of from what changed, so it is slower)."""
        self._do(f"(run-schedule (saturate {STAGE_RULESET}))")
        if most is None:
            (output,) = self._do(f"(run {ruleset} 1)")
        else:
            bounded = f"(let-scheduler bounded (back-off :match-limit {most} :ban-length 1000))"
            (output,) = self._do(f"(run-schedule {bounded} (run-with bounded {ruleset}))")
        self.matches += sum(output.report.num_matches_per_rule.values())
        if not output.report.updated:
            return False
        self._do("(run retire 1)")
        if asked(self.rules):
            self._answer()
        return True

    def _answer(self) -> None:
        """Ask the typing rules of Core what `typed` conditions want to know and did not before."""
        self._do(f"(run-schedule (saturate {STAGE_RULESET}))")
        self._do("(run types 1)")
        grown = {n: s for n, s in self.sizes().items() if n.startswith("need_") and s > self._answered.get(n, 0)}
        if not grown:
            return
        self._answered.update(grown)
        reading = self.freeze()
        for name in sorted(grown):
            code = self.codes[name.removeprefix("need_")]
            for row in reading.rows(name, table_key(code)):
                self._tell(code, row.columns)
        self._supply_facts()

    def _tell(self, code: Code, columns: tuple[Column, ...]) -> None:
        if (code.name, columns) in self._known:
            return
        self._known.add((code.name, columns))
        n = code.attr_count
        head = self.attributes.head(code, [*columns[:n], 0])
        found = self.terms.table.infer(head.op, head.attrs, tuple(int(c) for c in columns[n:]))
        if found is not None:
            self._do(f"(set (of_{code.name} {' '.join(map(str, columns))}) {found})")

    def sizes(self) -> dict[str, int]:
        """Rows per function."""
        (output,) = self._do("(print-size)")
        return dict(output.sizes)

    def counts(self) -> tuple[int, int]:
        """E-nodes, and logged instances."""
        sizes = self.sizes()
        return sum(sizes.get(name, 0) for name in self.codes), sum(sizes.get(name, 0) for name in self._numbers)

    # ------------------------------------------------------------------------------------------------ reading

    def freeze(self) -> Reading:
        assert self._engine is not None
        return Reading(self._engine, self._engine.freeze())

    def logged_rules(self) -> dict[str, Rule]:
        """The log relations with the rules that write them, in the order of the rule table."""
        return self._numbers


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a session at one moment."""

    engine: EGraph
    frozen: FrozenEGraph

    def rows(self, name: str, kinds: tuple[Kind, ...]) -> list[Row]:
        """The rows of a function whose arguments have these kinds; empty if there is no such function."""
        function = self.frozen.functions.get(name)
        if function is None:
            return []
        read = [self._reader(kind) for kind in kinds]
        return [Row(tuple([f(v) for f, v in zip(read, r.inputs, strict=True)]), r.output) for r in function.rows]

    def integer(self, value: Any) -> int:
        return self.engine.value_to_i64(value)

    def _reader(self, kind: Kind) -> Callable[[Any], Any]:
        if kind == "term":
            return _same
        return self.engine.value_to_bigrat if kind == "rational" else self.engine.value_to_i64


@cache
def _bindings() -> Any:
    """The compiled part of egglog: its Python package takes twenty times as long to import, and is not needed."""
    package = importlib.util.find_spec("egglog")
    places = list(package.submodule_search_locations or ()) if package else []
    found = importlib.machinery.PathFinder.find_spec("bindings", places)
    if found is None or found.origin is None:
        raise PreskBug("egraph", "egglog is not installed")
    loader = importlib.machinery.ExtensionFileLoader("egglog.bindings", found.origin)
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(loader.name, loader, origin=found.origin))
    loader.exec_module(module)
    return module


def _same(value: Any) -> Any:
    return value


def _cells(columns: list[int | Fraction]) -> list[str]:
    out: list[str] = []
    for c in columns:
        out += [str(c.numerator), str(c.denominator)] if isinstance(c, Fraction) else [str(c)]
    return out


def _loaders(codes: list[Code]) -> list[str]:
    """The relations that are filled from files, and the rules that make their rows e-nodes."""
    forms = [form for code in sorted(codes, key=lambda c: c.name) for form in _loader(code)]
    facts = "(set (ty (N i)) t) (set (rp (N i)) (TIn i)) (set (constant (N i)) 0)"
    return [*forms, "(relation in_node (i64 i64))", f"(rule ((in_node i t)) ({facts}) :ruleset load)"]


def _loader(code: Code) -> list[str]:
    """A relation, and the rule for its rows."""
    sorts, variables_, arguments = ["i64"], ["i"], list[str]()
    for k, kind in enumerate(code.columns):
        if kind == "rational":
            sorts += ["String", "String"]
            variables_ += [f"p{k}", f"q{k}"]
            arguments.append(f"(bigrat (from-string p{k}) (from-string q{k}))")
        else:
            sorts.append("i64")
            variables_.append(f"x{k}")
            arguments.append(f"(N x{k})" if kind == "term" else f"x{k}")
    relation = f"in_{code.name}"
    made = f"({code.name} {' '.join(arguments)})"
    return [
        f"(relation {relation} ({' '.join(sorts)}))",
        f"(rule (({relation} {' '.join(variables_)})) ((union (N i) {made})) :ruleset load)",
    ]


def _marking(code: Code) -> str:
    """The rule that marks the classes of a constant."""
    variables_ = " ".join(f"x{k}" for k in range(len(code.columns)))
    return f"(rule ((= e ({code.name} {variables_}))) ((set (constant e) 1)) :ruleset simplify)"


def _retiring(code: Code) -> str:
    """The rule that hides a node of a constant class from all other rules."""
    node = f"({code.name} {' '.join(f'x{k}' for k in range(len(code.columns)))})"
    return f"(rule ((= e {node}) (= 1 (constant e))) ((subsume {node})) :ruleset retire)"


def table_key(code: Code) -> tuple[Kind, ...]:
    """The columns that the typing table is asked with: attributes, then the types of the operands."""
    types: tuple[Kind, ...] = ("type",) * len(code.operands)
    return (*code.columns[: code.attr_count], *types)
