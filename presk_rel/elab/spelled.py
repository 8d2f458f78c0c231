"""Messages in the user's names: a type parameter whose symbol got a suffix (`Elab.symbol_of`) is what it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from presk_rel.diagnostics import Diagnostic


def spelled(diagnostic: Diagnostic, names: Mapping[str, str]) -> Diagnostic:
    """The diagnostic with the names that `names` has for symbols. Where it also speaks of the file's dim of that name,
    the two must differ, and the help says which is which."""
    texts = (diagnostic.message, diagnostic.help or "", *(label.message for label in diagnostic.labels))
    used = {s: n for s, n in names.items() if any(_word(s).search(t) for t in texts)}
    both = {s: n for s, n in used.items() if any(_word(n).search(t) for t in texts)}
    plain = {s: n for s, n in used.items() if s not in both}
    notes = [f"`{s}` is the parameter `{n}`, not the dim `{n}` of the file" for s, n in both.items()]
    found = diagnostic.help and _with(diagnostic.help, plain)
    example = diagnostic.counterexample
    return replace(
        diagnostic,
        message=_with(diagnostic.message, plain),
        labels=tuple(replace(x, message=_with(x.message, plain)) for x in diagnostic.labels),
        help="; ".join([*([found] if found else []), *notes]) or None,
        counterexample=example and tuple((plain.get(n, n), value) for n, value in example),
    )


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _with(text: str, names: Mapping[str, str]) -> str:
    for symbol, name in names.items():
        text = _word(symbol).sub(name, text)
    return text
