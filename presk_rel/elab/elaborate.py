"""Elaboration (spec) in its order: constants, bounds, aliases and modules, signatures, assertions last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from presk_rel.diagnostics import Diagnostics
from presk_rel.diagnostics.record import mutable
from presk_rel.elab.asserts import check_assertions
from presk_rel.elab.bounds import collect_bounds
from presk_rel.elab.constants import evaluate_constants
from presk_rel.elab.context import Elab
from presk_rel.elab.cycles import report_cycles
from presk_rel.elab.declared import Declared
from presk_rel.elab.modules import elaborate_modules
from presk_rel.elab.names_protocol import Resolver
from presk_rel.elab.paths import paths
from presk_rel.elab.signatures import Signature, elaborate_signatures
from presk_rel.syntax import ast


@mutable
class Elaborated:
    """Everything about a program but its function bodies. `signatures` by declaration id, in order of declaration."""

    elab: Elab
    signatures: dict[str, Signature]


def elaborate(
    files: Sequence[ast.File],
    main: str,
    names: Resolver,
    overrides: Mapping[tuple[str, str], int],
    diagnostics: Diagnostics,
) -> Elaborated:
    """Elaborates `files` (imports first). Errors go to `diagnostics`; what has one is absent from the tables."""
    elab = Elab(files, main, names, diagnostics)
    elab.hidden = _hidden(elab)
    report_cycles(elab)
    evaluate_constants(elab, overrides)
    collect_bounds(elab)
    elaborate_modules(elab)
    signatures = elaborate_signatures(elab)
    check_assertions(elab)
    return Elaborated(elab, signatures)


def _hidden(elab: Elab) -> frozenset[str]:
    """File dims that are bounded, or that a type alias mentions where its users do not see them."""
    bounded = {d.name for d in elab.declared.values() if isinstance(d.node, ast.Dim) and d.node.bound is not None}
    aliases = [d.node.type for d in elab.declared.values() if isinstance(d.node, ast.TypeAlias)]
    targets = (elab.target(path) for alias in aliases for path in paths(alias))
    return frozenset(bounded | {t.name for t in targets if isinstance(t, Declared) and isinstance(t.node, ast.Dim)})
