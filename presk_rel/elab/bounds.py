"""`dim T <= N`: the facts that dimension questions are decided under (spec: "Facts and assertions")."""

from __future__ import annotations

from presk_rel.elab.context import Elab
from presk_rel.elab.dims import length
from presk_rel.smt.linear import Linear, symbol
from presk_rel.smt.solver import AtMost, Solver
from presk_rel.syntax import ast


def collect_bounds(elab: Elab) -> None:
    """Fills `elab.bounds`, and gives `elab` the solver that knows them."""
    seen: set[tuple[str, Linear]] = set()
    for file in elab.files:
        for decl in file.decls:
            if not isinstance(decl, ast.Dim) or decl.bound is None:
                continue
            form = length(elab, decl.bound)
            if form is not None and (decl.name.text, form) not in seen:
                seen.add((decl.name.text, form))
                elab.bounds.append((decl.name.text, form))
    elab.solver = Solver(tuple(AtMost(symbol(name), form) for name, form in elab.bounds))
