"""PSK-Core analysed by the rules: its facts, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable

from presk_rel.core.core_facts import core_facts, core_spans, liveness_facts
from presk_rel.core.ir import Function, Program, callees
from presk_rel.rules.analysis import CoreAnalysis, Liveness, analyse_core, analyse_liveness
from presk_rel.rules.engine import Engine

__all__ = ["CoreAnalysis", "Liveness", "analyse", "liveness", "reached"]


def analyse(program: Program, engine: Engine = "auto") -> CoreAnalysis:
    """Effects, regularity classes and liveness of a verified program."""
    return analyse_core(core_facts(program), core_spans(program), engine)


def liveness(functions: Iterable[Function], engine: Engine = "auto") -> Liveness:
    """Liveness alone, which is cheap, for what is about to be executed."""
    return analyse_liveness(liveness_facts(functions), engine)


def reached(program: Program, entry: str) -> list[Function]:
    """The entry and every function that it names, directly or not (called, folded, or made a closure of)."""
    found = {entry: None}
    waiting = [entry]
    while waiting:
        new = [c for b in program.functions[waiting.pop()].bindings for c in callees(b.op) if c not in found]
        found |= dict.fromkeys(new)
        waiting += dict.fromkeys(new)
    return [program.functions[name] for name in found]
