"""The independent check of fusion: the program with kernels unfolds to the one without.

It knows nothing of partitions: `egraph.denote` reads both programs as canonical terms, a kernel like any other call.
That a kernel is one (primitives only, never folded or closed over) is for the verifier of Core.
"""

from __future__ import annotations

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.checker_programs import unlike
from presk_rel.egraph.denote import denote
from presk_rel.egraph.denote_terms import Terms


def check_fused(entry: str, unfused: Program, fused: Program) -> list[str]:
    """Why the fused program is not accepted; nothing where it computes what the unfused one does."""
    try:
        found = list(unlike(entry, unfused, fused))
        if found:
            return found
        terms = Terms()
        same = denote(fused, entry, terms) == denote(unfused, entry, terms)
    except (PreskBug, KeyError, IndexError, ValueError) as error:
        return [f"the fused program cannot be read: {error}"]
    return [] if same else ["the kernels do not unfold to the optimized program"]
