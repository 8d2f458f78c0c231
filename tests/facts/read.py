"""Source text → facts and names, for tests."""

from __future__ import annotations

from presk_rel.facts.ast_facts import AstFacts, Sources, ast_facts, decl_id
from presk_rel.rules.analysis import Names, resolve_names
from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse


def sources(**texts: str) -> Sources:
    """Files called `name.psk`; the first is the main one. An import that names no file given stays unresolved."""
    files: list[ast.File] = []
    imports: dict[str, str] = {}
    for name, text in texts.items():
        result = parse(text, f"{name}.psk")
        assert result.diagnostics == []
        files.append(result.file)
    for file in files:
        found = [d for d in file.decls if isinstance(d, ast.Import)]
        imports |= {decl_id(d.alias): d.path.value for d in found if d.path.value.removesuffix(".psk") in texts}
    return Sources(tuple(files), imports)


def facts(text: str) -> AstFacts:
    return ast_facts(sources(main=text))


def names(text: str, **others: str) -> Names:
    return resolve_names(ast_facts(sources(main=text, **others)), "embedded")


class Marked:
    """A program in which `«name»` marks the places a test speaks of, in order."""

    def __init__(self, text: str, **others: str) -> None:
        parts = text.replace("»", "«").split("«")
        self.text = "".join(parts)
        starts = [len("".join(parts[:i])) for i in range(len(parts))]
        self.ids = [f"main.psk@{start}" for start in starts[1::2]]
        self.names = names(self.text, **others)

    def means(self, use: int) -> str | int | None:
        """What the marked place `use` means: the number of a marked place, else the id, else None."""
        span = self.names.facts.spans[self.ids[use]]
        found = self.names.resolve(span)
        return self.ids.index(found) if found in self.ids else found
