"""Reading a program: the main file and what it imports, each once, imports before their importers (spec: "Imports")."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field

from presk_rel.diagnostics import Diagnostics, Label, PreskError, Span
from presk_rel.diagnostics.diagnostic import Diagnostic
from presk_rel.diagnostics.record import mutable
from presk_rel.elab.dims import LARGEST
from presk_rel.facts.ast_facts import Sources, decl_id
from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse
from presk_rel.syntax.source import read_source

Read = Callable[[str], str]


@mutable
class Loaded:
    """`files` in order of dependency, the main one last. `aliases[file][alias]` is the path of the file imported so.
    `texts` has the source of each file, for diagnostics. `overrides` are the `--const` values by (file, constant)."""

    main: str
    files: list[ast.File] = field(default_factory=list[ast.File])
    aliases: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    imports: dict[str, str] = field(default_factory=dict[str, str])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    overrides: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @property
    def sources(self) -> Sources:
        """What `facts.ast_facts` takes: the main file first."""
        return Sources(tuple(reversed(self.files)), dict(self.imports))


class Unreadable(OSError):
    """A file that is no source text; `diagnostic` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def read_text(path: str) -> str:
    """The text of a source file (`syntax.source`); OSError when it cannot be read."""
    text = read_source(path)
    if isinstance(text, Diagnostic):
        raise Unreadable(text)
    return text


def load_files(
    path: str, overrides: Mapping[str, str | int] | None = None, read: Read = read_text
) -> tuple[Loaded, Diagnostics]:
    """Parses `path` and its imports. Errors: those of the parser; E1024 for an import that cannot be read, E1025 for a
    cycle of imports, at the import. PreskError (exit 2) when the main file cannot be read or an override is wrong."""
    loader = _Loader(Loaded(path), Diagnostics(), read, os.path.dirname(path))
    loader.run(path)
    loader.loaded.overrides = _overrides(loader.loaded, overrides or {})
    return loader.loaded, loader.diagnostics


@mutable
class _Open:
    """A file whose imports are being loaded: `at` is the next one to look at."""

    file: ast.File
    real: str
    imports: list[ast.Import]
    at: int = 0


@mutable
class _Loader:
    loaded: Loaded
    diagnostics: Diagnostics
    read: Read
    folder: str
    shown: dict[str, str] = field(default_factory=dict[str, str])
    """Real path → path as diagnostics show it, of every file that was read."""
    stack: list[_Open] = field(default_factory=list[_Open])

    def run(self, path: str) -> None:
        try:
            text = self.read(path)
        except Unreadable as error:
            raise PreskError([error.diagnostic], 2 if error.diagnostic.code == "E0010" else 1) from error
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise PreskError([Diagnostic("E1024", f"cannot read {path}: {_reason(error)}", None)], 2) from error
        self._open(path, os.path.realpath(path), text)
        while self.stack:
            top = self.stack[-1]
            if top.at == len(top.imports):
                self.loaded.files.append(self.stack.pop().file)
            else:
                top.at += 1
                self._import(top, top.imports[top.at - 1])

    def _open(self, shown: str, real: str, text: str) -> None:
        result = parse(text, shown)
        for diagnostic in result.diagnostics:
            self.diagnostics.add(diagnostic)
        self.shown[real] = shown
        self.loaded.texts[shown] = text
        self.loaded.aliases[shown] = {}
        self.stack.append(_Open(result.file, real, [d for d in result.file.decls if isinstance(d, ast.Import)]))

    def _import(self, importer: _Open, node: ast.Import) -> None:
        here = os.path.join(os.path.dirname(importer.real), node.path.value)
        real = os.path.realpath(here)
        if real in self.shown:
            if any(o.real == real for o in self.stack):
                self._cycle(real, node)
            else:
                self._bind(importer, node, self.shown[real])
            return
        try:
            text = self.read(self._readable(real, here))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            self.diagnostics.error(
                "E1024",
                error.diagnostic.message
                if isinstance(error, Unreadable)
                else f'cannot read "{node.path.value}": {_reason(error)}',
                node.path.span,
                help="the path is relative to the folder of the importing file",
            )
            return
        shown = self._show(real)
        self._bind(importer, node, shown)
        self._open(shown, real, text)

    def _readable(self, real: str, here: str) -> str:
        """The path to read: relative to where presk runs, as the main file's path is."""
        del here
        main = os.path.realpath(self.folder or ".")
        return os.path.normpath(os.path.join(self.folder, os.path.relpath(real, main)))

    def _show(self, real: str) -> str:
        """Imports are shown relative to the main file's folder, unless another file is shown so already."""
        shown = os.path.relpath(real, os.path.realpath(self.folder or "."))
        return real if shown in self.loaded.texts else shown

    def _bind(self, importer: _Open, node: ast.Import, shown: str) -> None:
        self.loaded.aliases[importer.file.path].setdefault(node.alias.text, shown)
        self.loaded.imports[decl_id(node.alias)] = shown

    def _cycle(self, real: str, node: ast.Import) -> None:
        start = next(i for i, o in enumerate(self.stack) if o.real == real)
        ring = [o.file.path for o in self.stack[start:]]
        labels = tuple(
            Label(o.imports[o.at - 1].path.span, f"{o.file.path} imports {ring[(i + 1) % len(ring)]} here")
            for i, o in enumerate(self.stack[start:-1])
        )
        chain = " → ".join([*ring, ring[0]])
        self.diagnostics.error(
            "E1025",
            f"the imports run in a circle: {chain}",
            node.path.span,
            labels=labels,
            help="move what both files need into a third one",
        )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)


def _overrides(loaded: Loaded, given: Mapping[str, str | int]) -> dict[tuple[str, str], int]:
    """`--const NAME=N` and `--const m.NAME=N`, checked: the constant exists and N is a natural number."""
    out: dict[tuple[str, str], int] = {}
    by_path = {f.path: f for f in loaded.files}
    for name, value in given.items():
        file, constant = _place(loaded, name)
        declared = (
            {d.name.text for d in by_path[file].decls if isinstance(d, ast.Const)} if file in by_path else set[str]()
        )
        if constant not in declared:
            raise _usage(f"--const {name}: there is no constant `{name}`", declared)
        out[file, constant] = _natural(name, value)
    return out


def _place(loaded: Loaded, name: str) -> tuple[str, str]:
    file = loaded.main
    *path, constant = name.split(".")
    for alias in path:
        file = loaded.aliases.get(file, {}).get(alias, "")
    return file, constant


def _natural(name: str, value: str | int) -> int:
    text = str(value).strip()
    if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) and int(text) <= LARGEST:
        return int(text)
    raise _usage(f"--const {name}={text}: a constant is a natural number up to 10^18", set())


def _usage(message: str, known: set[str]) -> PreskError:
    help_text = f"constants of that file: {', '.join(sorted(known))}" if known else None
    return PreskError([Diagnostic("E1023", message, None, help=help_text)], 2)


def span_order(files: list[ast.File]) -> Callable[[Span | None], tuple[int, int]]:
    """A key that sorts diagnostics in source order, files as listed."""
    rank = {f.path: i for i, f in enumerate(files)}
    return lambda span: (-1, 0) if span is None else (rank.get(span.file, len(rank)), span.start.offset)
