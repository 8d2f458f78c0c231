"""Every declaration of a program by the id that the relations of names speak of (`facts.ast_facts.decl_id`), and the
unique Core names of modules and functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import path as os_path
from unicodedata import normalize

from presk_rel.diagnostics.record import record
from presk_rel.facts.ast_facts import decl_id
from presk_rel.syntax import ast
from presk_rel.syntax.lexer import continues
from presk_rel.syntax.token import WORD_KINDS

Node = (
    ast.Import
    | ast.Const
    | ast.Dim
    | ast.TypeAlias
    | ast.Effect
    | ast.Model
    | ast.Module
    | ast.Fn
    | ast.Config
    | ast.TypeParam
    | ast.Param
    | ast.Use
    | ast.FnParam
)

Owner = ast.Module | ast.Fn | None


@record
class Declared:
    """What the identifier `ident` of `file` declares. `owner` is the module or function that it belongs to; `module`
    the module around it, if any (for a parameter of a member function, both)."""

    id: str
    ident: ast.Ident
    file: str
    node: Node
    owner: Owner = None
    module: ast.Module | None = None

    @property
    def name(self) -> str:
        return self.ident.text


def declarations(files: Sequence[ast.File]) -> dict[str, Declared]:
    """All declarations of the files, in source order. Local binders (let, λ) are not among them."""
    return {d.id: d for file in files for decl in file.decls for d in _of_decl(file.path, decl)}


def _of_decl(file: str, decl: ast.Decl) -> Iterator[Declared]:
    match decl:
        case ast.StaticAssert():
            return
        case ast.Import():
            yield Declared(decl_id(decl.alias), decl.alias, file, decl)
        case ast.Module():
            yield Declared(decl_id(decl.name), decl.name, file, decl)
            yield from _type_params(file, decl, decl)
            for member in decl.members:
                yield from _of_member(file, decl, member)
        case ast.Fn():
            yield from _of_fn(file, decl, None)
        case _:
            yield Declared(decl_id(decl.name), decl.name, file, decl)


def _of_member(file: str, module: ast.Module, member: ast.Member) -> Iterator[Declared]:
    match member:
        case ast.Fn():
            yield from _of_fn(file, member, module)
        case ast.Param() | ast.Use():
            for ident in member.names:
                yield Declared(decl_id(ident), ident, file, member, module, module)


def _of_fn(file: str, fn: ast.Fn, module: ast.Module | None) -> Iterator[Declared]:
    yield Declared(decl_id(fn.name), fn.name, file, fn, module, module)
    yield from _type_params(file, fn, module)
    for param in fn.params:
        yield Declared(decl_id(param.name), param.name, file, param, fn, module)


def _type_params(file: str, owner: ast.Module | ast.Fn, module: ast.Module | None) -> Iterator[Declared]:
    for param in owner.type_params:
        yield Declared(decl_id(param.name), param.name, file, param, owner, module)


def stem(path: str) -> str:
    """The name of a file without its ending, as an identifier: `my_lib` for `my-lib`, `_2x` for `2x`."""
    name = normalize("NFC", os_path.splitext(os_path.basename(path))[0])
    kept = "".join(c if continues(c) else "_" for c in name)
    return kept if kept[:1].isidentifier() and kept not in WORD_KINDS else "_" + kept


def core_names(files: Sequence[ast.File], main: str) -> dict[str, str]:
    """The unique Core name of every module and function, by declaration id: the user's name (`M.f` for a member), with
    the stem of its file before it (`mlp.Linear`) where another file's declaration has that name already."""
    tops = [(f.path, d.name) for f in files for d in f.decls if isinstance(d, ast.Module | ast.Fn)]
    count = Counter(ident.text for _, ident in tops)
    out: dict[str, str] = {}
    taken: set[str] = set()
    for path, ident in sorted(tops, key=lambda t: t[0] != main):
        plain = path == main or count[ident.text] == 1
        name = _fresh(ident.text if plain else f"{stem(path)}.{ident.text}", taken)
        out[decl_id(ident)] = name
    for file in files:
        for decl in file.decls:
            if isinstance(decl, ast.Module):
                _member_names(decl, out, taken)
    return out


def _member_names(module: ast.Module, out: dict[str, str], taken: set[str]) -> None:
    for member in module.members:
        if isinstance(member, ast.Fn):
            out[decl_id(member.name)] = _fresh(f"{out[decl_id(module.name)]}.{member.name.text}", taken)


def _fresh(name: str, taken: set[str]) -> str:
    candidate, n = name, 1
    while candidate in taken:
        n += 1
        candidate = f"{name}_{n}"
    taken.add(candidate)
    return candidate


def members(module: ast.Module) -> Mapping[str, tuple[ast.Ident, ast.Member]]:
    """The members of a module by name; of two of one name, the first."""
    out: dict[str, tuple[ast.Ident, ast.Member]] = {}
    for member in module.members:
        for ident in (member.name,) if isinstance(member, ast.Fn) else member.names:
            out.setdefault(ident.text, (ident, member))
    return out
