"""W1001 … W1006: what a program declares and never uses, and constants that it hides, by the relations `unused` and
`shadows` of rules.dl."""

from __future__ import annotations

from presk_rel.diagnostics import Diagnostic, Diagnostics, Label
from presk_rel.rules.analysis import Names

_SAID: dict[str, tuple[str, str, str]] = {
    "let": ("W1001", "`{0}` is never used", "name it `_`, or leave it out"),
    "argument": ("W1002", "the parameter `{0}` is never used", "name it `_{0}` if it has to be there"),
    "import": ("W1003", "the import `{0}` is never used", "leave it out"),
    "use": ("W1004", "the sub-module `{0}` is never used", "its parameters would be stored and never trained"),
    "param": ("W1005", "the parameter `{0}` of the module is never used", "it would be stored and never trained"),
}


def report_unused(names: Names) -> Diagnostics:
    """A warning for each declaration that nothing uses, in source order within a file. Names that begin with `_` are
    exempt."""
    found = Diagnostics()
    unused = names.relations.rows("unused")
    if not unused:
        return found
    declared = {str(decl): str(name) for _, name, decl, _ in names.facts.rows.get("declares", [])}
    rows = [(names.facts.spans[str(decl)], declared[str(decl)], str(what)) for decl, what in unused]
    for span, name, what in sorted(rows):
        code, message, help_text = _SAID[what]
        found.warning(code, message.format(name), span, help=help_text.format(name))
    return found


def report_hidden(names: Names) -> Diagnostics:
    """W1006 for each parameter and local name that hides a constant, whose number it is easily taken for."""
    found = Diagnostics()
    kinds = {str(decl): str(kind) for decl, kind in names.facts.rows.get("kind", [])} if names.hidden else {}
    declared = {str(decl): str(name) for _, name, decl, _ in names.facts.rows.get("declares", [])} if kinds else {}
    spans = names.facts.spans
    pairs = [(d, o) for d, o in names.hidden.items() if kinds[d] in _VALUES and kinds[o] == "const"]
    for span, outer, name in sorted((spans[d], spans[o], declared[d]) for d, o in pairs):
        label = Label(outer, "the constant is declared here")
        said = f"`{name}` hides the constant of that name"
        found.add(Diagnostic("W1006", said, span, "warning", (label,), "rename one of them"))
    return found


_VALUES = ("argument", "local")
"""Kinds of declarations that stand for a value; a dimension of a module is often named as that of its file."""
