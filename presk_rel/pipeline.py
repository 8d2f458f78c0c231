"""The passes of presk, in order: each runs once, when something needs it, and the IR is verified after each. The
command line and the public API are built on `session.Session`, which adds running what the passes made.

    text ─parse→ AST ─facts→ relations ─rules→ names ─elaborate, type→ typed program ─lower→ PSK-Core
      ─facts, rules→ effects, regularity, liveness
      ─differentiate→ PSK-Core without grad ─inline→ flat entry ─optimize→ optimized entry + proof ─→ exact | torch
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, Self, TypeVar, cast

from presk_rel.diagnostics import Diagnostic, Diagnostics, PreskError
from presk_rel.diagnostics.record import mutable

if TYPE_CHECKING:
    from presk_rel.core.ir import Function, Program
    from presk_rel.egraph.fusion.fuse import Fused
    from presk_rel.egraph.optimize import Optimized
    from presk_rel.elab.files import Loaded
    from presk_rel.exec.verdict import Verdict
    from presk_rel.facts.ast_facts import Row
    from presk_rel.rules.analysis import CoreAnalysis, Names
    from presk_rel.rules.engine import Engine
    from presk_rel.types.tree import TypedProgram

T = TypeVar("T")

Pass = Literal[
    "parse", "names", "type", "lower", "analyse", "differentiate", "inline", "optimize", "fuse", "verify", "run"
]
"""The passes in order, by the names that `--time` shows."""

_MADE = re.compile(r"\.(lambda|stack)[0-9]+(\.|$)")
"""Functions that lowering made of parts of others."""

Remat = Literal["auto", "store", "recompute"]
"""What a gradient keeps of its forward pass. `auto`: AD keeps, and the optimizer computes again what is cheaper so."""
Mode = Literal["inference", "training"]


@mutable
class Pipeline:
    """One program and what the passes made of it. A pass that finds errors raises `PreskError` with all of them;
    warnings gather in `diagnostics`. `seconds` holds the time of each pass that ran. `time_limit`, in seconds, is what
    the optimizer may take; without one what it finds depends on no clock."""

    path: str
    consts: Mapping[str, int] = field(default_factory=dict[str, int])
    engine: Engine = "auto"
    remat: Remat = "auto"
    mode: Mode = "inference"
    unroll_stack: bool = False
    time_limit: float | None = None
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    sources: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    _made: dict[object, object] = field(default_factory=dict[object, object])

    # ------------------------------------------------------------------------------------------------ the passes

    @property
    def loaded(self) -> Loaded:
        """The parsed main file and its imports."""
        return self._once("loaded", self._load)

    @property
    def names(self) -> Names:
        """What every use of a name means, by rules.dl."""
        return self._once("names", self._resolve)

    @property
    def typed(self) -> TypedProgram:
        """The elaborated and typed program."""
        return self._once("typed", self._type)

    @property
    def core(self) -> Program:
        """PSK-Core with its `grad`s."""
        return self._once("core", self._lower)

    @property
    def analysis(self) -> CoreAnalysis:
        """Effects, regularity classes and liveness of the program as written, by rules.dl: of its training reading,
        whatever `mode` is, since `dropout` draws from its key there."""
        return self._once("analysis", self._analyse)

    @property
    def differentiated(self) -> Program:
        """PSK-Core without `grad`."""
        return self._once("differentiated", self._differentiate)

    def flat(self, entry: str) -> Program:
        """The differentiated entry with its calls inlined."""
        return self._once(("flat", entry), lambda: self._inline(entry))

    def optimized(self, entry: str, dims: Mapping[str, int] | None = None) -> Optimized:
        """The optimized flat entry with its proof. `dims` lets rules and cost use the numbers; a dim not in it stays
        symbolic."""
        key = ("optimized", entry, _key(dims))
        return self._once(key, lambda: self._optimize(entry, dims or {}))

    def fused(self, entry: str, dims: Mapping[str, int] | None = None) -> Fused:
        """The optimized entry partitioned into kernels. The executors run `optimized`: they compute the same."""
        return self._once(("fused", entry, _key(dims)), lambda: self._fuse(entry, dims or {}))

    def verified(self, entry: str, dims: Mapping[str, int] | None = None) -> Verdict:
        """What the independent checker, and sampling over balls, say of the proof of `optimized`."""
        return self._once(("verified", entry, _key(dims)), lambda: self._verify(entry, dims or {}))

    # --------------------------------------------------------------------------------------------------- queries

    def with_core(self, program: Program) -> Self:
        """The same program with functions added to its Core, which has been verified already."""
        kept = {k: v for k, v in self._made.items() if k in ("loaded", "names", "typed", "analysis")}
        return replace(self, _made={**kept, "core": program})

    def check(self) -> list[Diagnostic]:
        """All diagnostics of the program: errors and warnings of every pass that could run, in source order."""
        with _without_collector():
            try:
                self.analysis  # noqa: B018  runs every pass before it
            except PreskError as error:
                if error.exit_status != 1:
                    raise
        return self.diagnostics.items

    def entry(self, name: str) -> Function:
        """The function to run; wrong usage (exit status 2) with near misses when there is none of that name. `b.f` is
        the function of the file imported as `b`."""
        asked, name = name, self.named(name)
        functions = self.differentiated.functions
        if name in functions:
            return functions[name]
        self._no_initializer(name)
        if name in self.core.functions:  # inlined away, as functions of functions are
            from presk_rel.exec.inputs import executable

            executable(self.core.functions[name])
        raise PreskError([self.no_function(asked)], exit_status=2)

    def named(self, name: str) -> str:
        """The Core name of a function that is called `name` in the main file."""
        from presk_rel.elab.entries import core_name

        return name if self.path.endswith(".core") else core_name(self.loaded, name)

    def _no_initializer(self, name: str) -> None:
        """E5002 when `name` is the initializer of a module that cannot have one."""
        from presk_rel.core.initializers import missing_initializer

        problem = missing_initializer(self.core.modules, name)
        if problem is not None:
            raise PreskError([problem], exit_status=3)

    def no_function(self, name: str) -> Diagnostic:
        """Near misses are among what the program declares, never among what passes generate."""
        from difflib import get_close_matches

        near = get_close_matches(name, self._askable(), n=3)
        hint = "did you mean " + " or ".join(f"`{n}`" for n in near) + "?" if near else None
        return Diagnostic("E7001", f"there is no function `{name[:100]}` in {self.path}", None, help=hint)

    def _askable(self) -> list[str]:
        """The functions of the program as written, the initializers of modules and what optimizers do, by the names
        to ask for them."""
        from presk_rel.elab.entries import asked_names

        names = [n for n in self.core.functions if not _MADE.search(n)]
        return names if self.path.endswith(".core") else asked_names(self.loaded, names)

    def input_facts(self) -> dict[str, list[Row]]:
        """The rows of every input relation of rules.dl: those of the syntax trees and those of PSK-Core."""
        return {**self.names.facts.with_positions(), **self.analysis.facts}

    # ---------------------------------------------------------------------------------------------------- making

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    @contextmanager
    def _pass(self, name: Pass, *, stop: bool = True) -> Generator[None]:
        """Times a pass, and stops the pipeline after it if the program has errors."""
        start = time.perf_counter()
        try:
            yield
        except PreskError as error:
            for diagnostic in error.diagnostics:
                self.diagnostics.add(diagnostic)
            raise
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if stop and self.diagnostics.has_errors:
            raise PreskError([d for d in self.diagnostics.items if d.severity == "error"])

    def _take(self, found: Diagnostics) -> None:
        for diagnostic in found.items:
            self.diagnostics.add(diagnostic)

    def _load(self) -> Loaded:
        from presk_rel.elab.files import load_files

        with self._pass("parse"):
            loaded, found = load_files(self.path, self.consts)
            self.sources.update(loaded.texts)
            self._take(found)
        return loaded

    def _resolve(self) -> Names:
        from presk_rel.elab.names import report_names
        from presk_rel.facts.ast_facts import ast_facts
        from presk_rel.rules.analysis import resolve_names

        loaded = self.loaded
        with self._pass("names", stop=False):  # an unknown name has no type, and typing finds the other mistakes
            names = resolve_names(ast_facts(loaded.sources), self.engine)
            self._take(report_names(names))
        return names

    def _type(self) -> TypedProgram:
        from presk_rel.types.program import check_program

        loaded, names = self.loaded, self.names
        with self._pass("type"):
            typed, found = check_program(loaded, names)
            self._take(found)
        assert typed is not None
        return typed

    def _lower(self) -> Program:
        from presk_rel.core.lower import lower
        from presk_rel.core.verify import verify

        if self.path.endswith(".core"):
            return self._read_core()
        typed = self.typed
        with self._pass("lower"):
            program = lower(typed, self.mode, unroll_stack=self.unroll_stack)
            verify(program, "lower")
        return program

    def _as_written(self) -> Program:
        """PSK-Core with every `dropout` as its product."""
        from presk_rel.core.lower import lower
        from presk_rel.core.verify import verify

        program = self.core
        if self.path.endswith(".core") or self.mode == "training":
            return program
        typed = self.typed
        with self._pass("lower"):
            written = lower(typed, "training", unroll_stack=self.unroll_stack)
            if written != program:
                verify(written, "lower")
        return written

    def _read_core(self) -> Program:
        """A file of PSK-Core text, which `presk dump --stage core` prints."""
        from presk_rel.core.reader import load
        from presk_rel.elab.files import read_text

        with self._pass("parse"):
            text = self.sources[self.path] = read_text(self.path)
            program = load(text, self.path, self.diagnostics)
        assert program is not None
        return program

    def _analyse(self) -> CoreAnalysis:
        from presk_rel.core.core_facts import core_facts, core_spans
        from presk_rel.core.findings import report_core
        from presk_rel.elab.files import span_order
        from presk_rel.elab.unused import report_hidden, report_unused
        from presk_rel.rules.analysis import analyse_core

        program = self._as_written()
        with self._pass("analyse"):
            analysis = analyse_core(core_facts(program), core_spans(program), self.engine)
            said = report_core(program, analysis).items
            if self.path.endswith(".core"):  # Core declares no names to use, and generated functions no effects
                said = [d for d in said if d.code == "E3001"]
            else:
                place = span_order(self.loaded.files)
                named = [*report_unused(self.names).items, *report_hidden(self.names).items]
                said = sorted([*named, *said], key=lambda d: place(d.span))
            self._take(Diagnostics(said))
        return analysis

    def _differentiate(self) -> Program:
        from presk_rel.ad.reverse import differentiate
        from presk_rel.core.verify import verify

        self.analysis  # noqa: B018  what has no gradient (E3001) is not differentiated
        program = self.core
        with self._pass("differentiate"):
            program = differentiate(program, "store" if self.remat == "auto" else self.remat)
            verify(program, "differentiate")
        return program

    def _inline(self, entry: str) -> Program:
        from presk_rel.core.inline import inline_entry
        from presk_rel.core.verify import verify

        self.entry(entry)
        with self._pass("inline"):
            flat = inline_entry(self.differentiated, entry)
            verify(flat, "inline")
        return flat

    def _verify(self, entry: str, dims: Mapping[str, int]) -> Verdict:
        from presk_rel.egraph.fusion.check import check_fused
        from presk_rel.exec.verdict import verify_proof

        optimized, fused = self.optimized(entry, dims), self.fused(entry, dims)
        with self._pass("verify"):
            program = optimized.program
            verdict = verify_proof(optimized.proof, self.differentiated, program)
            return replace(verdict, reasons=(*verdict.reasons, *check_fused(entry, program, fused.program)))

    def _fuse(self, entry: str, dims: Mapping[str, int]) -> Fused:
        from presk_rel.egraph.fusion.fuse import fuse

        optimized = self.optimized(entry, dims)
        with self._pass("fuse"):
            left = None if self.time_limit is None else max(0.0, self.time_limit - self.seconds["optimize"])
            return fuse(optimized.program, entry, dims, seconds=left)

    def _optimize(self, entry: str, dims: Mapping[str, int]) -> Optimized:
        from presk_rel.core.verify import verify
        from presk_rel.egraph.budget import Limits
        from presk_rel.egraph.optimize import optimize

        flat = self.flat(entry)
        with self._pass("optimize"):
            limits = Limits(seconds=self.time_limit)
            optimized = optimize(flat, entry, dims, limits, choose_residuals=self.remat == "auto")
            verify(optimized.program, "optimize")
        return optimized


def _key(dims: Mapping[str, int] | None) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((dims or {}).items()))


@contextmanager
def _without_collector() -> Generator[None]:
    """No garbage collection meanwhile: trees, types and relations hold no cycles, and its passes would take a quarter
    of the time. What was made counts as old afterwards, so that the next pass does not begin with all of it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
