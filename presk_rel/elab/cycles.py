"""E2016: functions, modules and types that reach themselves, with the path (spec: "No recursion")."""

from __future__ import annotations

from itertools import pairwise

from presk_rel.diagnostics import Label
from presk_rel.elab.context import Elab

_HELP = {
    "function": "iteration is a stack: use blocks : stack{N}(M)",
    "module": "iteration is a stack: use blocks : stack{N}(M)",
    "type": "write out the type where it is used",
}


def report_missed(elab: Elab, decl: str) -> None:
    """E2016 for a member of a cycle that only the order of elaboration shows, so that giving it up is never silent."""
    if any(decl in cycle.decls for cycle in elab.names.cycles):
        return
    ident = elab.declared[decl].ident
    elab.error("E2016", f"`{ident.text}` leads back to itself", ident.span, help=_HELP["function"])


def report_cycles(elab: Elab) -> None:
    """One E2016 per cycle that the rules of calls found."""
    for cycle in elab.names.cycles:
        names = [elab.core.get(d) or elab.declared[d].name for d in cycle.decls]
        ring = [*names, names[0]]
        labels = tuple(
            Label(span, f"`{a}` mentions `{b}` here") for (a, b), span in zip(pairwise(ring), cycle.uses, strict=False)
        )
        verb = "calls" if cycle.kind == "function" else "includes"
        path = " → ".join(f"`{n}`" for n in ring)
        elab.diagnostics.error(
            "E2016",
            f"{cycle.kind} `{names[0]}` {verb} itself: {path}",
            elab.declared[cycle.decls[0]].ident.span,
            labels=labels,
            help=_HELP[cycle.kind],
        )
