"""The user's mistakes in names: unknown ones (with what was probably meant) and ones declared twice.

What the names mean has been decided by the rules (`rules.analysis.Names`); here is only how to say what went wrong.
W0001 of implicit dimensions is said with the signatures, E2016 of cycles by `elab.cycles`.
"""

from __future__ import annotations

from collections.abc import Set

from presk_rel.diagnostics import Diagnostics, Label
from presk_rel.rules.analysis import Names, Space, Unresolved
from presk_rel.syntax.foreign import NAMES

_UNKNOWN: dict[Space, tuple[str, str]] = {
    "name": ("E1001", "unknown name `{0}`"),
    "member": ("E1001", "the imported file declares no `{0}`"),
    "optimizer": ("E1001", "there is no optimizer block `{0}` in this file"),
    "effect": ("E4002", "unknown effect `{0}`"),
}


def report_names(names: Names) -> Diagnostics:
    """E1001 or E4002 for each use of a name that means nothing, E1002 for each declaration of a name that its scope
    already has."""
    diagnostics = Diagnostics()
    dimensions = names.facts.dimensions
    heads = {str(head) for _, head, _ in names.facts.rows.get("qualified", ())}
    for unresolved in names.unresolved:
        code, message = _UNKNOWN[unresolved.space]
        diagnostics.error(
            code, message.format(unresolved.name), unresolved.span, help=_suggestion(unresolved, heads, dimensions)
        )
    for duplicate in names.duplicates:
        diagnostics.error(
            "E1002",
            f"`{duplicate.name}` is declared twice",
            duplicate.later,
            labels=(Label(duplicate.earlier, f"`{duplicate.name}` is first declared here"),),
            help="give one of the two another name",
        )
    return diagnostics


def _suggestion(unresolved: Unresolved, heads: set[str], dimensions: Set[str]) -> str | None:
    """`heads` are the uses that something is selected from, `m` of `m.f`."""
    if unresolved.near:
        *most, last = (f"`{name}`" for name in unresolved.near)
        return f"did you mean {', '.join(most)} or {last}?" if most else f"did you mean {last}?"
    if unresolved.space == "effect":
        return "the effect of randomness is `Rand`"
    if unresolved.name in NAMES and unresolved.space == "name":
        return NAMES[unresolved.name]
    if unresolved.use in dimensions and unresolved.use not in heads:
        name = unresolved.name[:40]
        return f"declare it: dim {name}, const {name} = …, or in the braces of its module, {{{name} : dim}}"
    if unresolved.use in heads and unresolved.space == "name":
        return f'a file is imported under a name: import "path.psk" as {unresolved.name[:40]}'
    return None
