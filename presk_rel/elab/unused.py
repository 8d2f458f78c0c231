"""W1001 … W1005: what a program declares and never uses, by the relation `unused` of rules.dl."""

from __future__ import annotations

from presk_rel.diagnostics import Diagnostics
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
