"""What the source calls things that elaboration replaces: type aliases of parameters, constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from unicodedata import normalize

from presk_rel.diagnostics import Span
from presk_rel.syntax import ast

_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class SourceNames:
    """`aliases`: by the span of a parameter's name, the type it is declared with, where that is a bare name (`Q`)."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    aliases: Mapping[Span, str] = field(default_factory=dict[Span, str])

    def constant(self, span: Span) -> str | None:
        """The name at `span`, if one stands there: a literal of the typed program was a constant then."""
        text = self.texts.get(span.file, "")[span.start.offset : span.end.offset]
        name = normalize("NFC", text)
        return name if _PATH.fullmatch(name) else None


def source_names(files: Iterable[ast.File], texts: Mapping[str, str]) -> SourceNames:
    """The names of a program's files; `texts` has the text of each by its path."""
    aliases = {
        p.name.span: alias
        for file in files
        for function in _functions(file)
        for p in function.params
        if (alias := _alias(p.type)) is not None
    }
    return SourceNames(texts, aliases)


def _functions(file: ast.File) -> Iterable[ast.Fn]:
    for decl in file.decls:
        match decl:
            case ast.Fn():
                yield decl
            case ast.Module():
                yield from (m for m in decl.members if isinstance(m, ast.Fn))
            case _:
                pass


def _alias(ty: ast.TypeExpr | None) -> str | None:
    return _path(ty.path) if isinstance(ty, ast.NamedType) and ty.dims is None else None


def _path(node: ast.Expr) -> str | None:
    match node:
        case ast.Name(text):
            return text
        case ast.Field(base, name):
            start = _path(base)
            return None if start is None else f"{start}.{name.text}"
        case _:
            return None
