"""The names by which one asks for a function from outside: as the main file would write them."""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.elab.declared import core_names
from presk_rel.elab.files import Loaded
from presk_rel.facts.ast_facts import decl_id
from presk_rel.syntax import ast


def core_name(loaded: Loaded, name: str) -> str:
    """The Core name of `b.f` or `b.L.apply`, where `b` is what the main file (or a file before it on the way) calls an
    import; other names are Core names already. What is generated goes by the name of its module: `b.L.init`."""
    file = loaded.files[-1]
    known = {f.path: f for f in loaded.files}
    first, dot, rest = name.partition(".")
    while dot and (path := loaded.aliases.get(file.path, {}).get(first)) is not None and path in known:
        file = known[path]
        first, dot, rest = rest.partition(".")
    if file is loaded.files[-1]:
        return name
    names = core_names(loaded.files, loaded.files[-1].path)
    found = next((names[decl_id(d.name)] for d in _named(file) if d.name.text == first), first)
    return found + dot + rest


def shown_names(loaded: Loaded) -> dict[str, str]:
    """What `core_name` takes for each module and function of the program, by Core name: by the alias of its import
    where the main file has one for it."""
    main = loaded.files[-1].path
    aliases = {path: alias for alias, path in loaded.aliases.get(main, {}).items()}
    names = core_names(loaded.files, main)
    out: dict[str, str] = {}
    for file in loaded.files:
        for decl in _named(file):
            core = names[decl_id(decl.name)]
            out[core] = f"{aliases[file.path]}.{decl.name.text}" if file.path in aliases else core
    return out


def _named(file: ast.File) -> Iterator[ast.Module | ast.Fn]:
    return (d for d in file.decls if isinstance(d, ast.Module | ast.Fn))


def asked_names(loaded: Loaded, names: list[str]) -> list[str]:
    """Core names of functions, and of what belongs to modules and optimizers, as the main file calls them."""
    shown = shown_names(loaded)
    owners = [n if n in shown else n.rpartition(".")[0] for n in names]
    return [shown.get(o, o) + n.removeprefix(o) for n, o in zip(names, owners, strict=True)]
