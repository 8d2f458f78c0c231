"""Source text → what elaboration and typing say of it, by the real parser and the real relations of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from presk_rel.diagnostics import Diagnostic
from presk_rel.elab.files import Loaded, load_files
from presk_rel.elab.names import report_names
from presk_rel.facts.ast_facts import ast_facts
from presk_rel.rules.analysis import resolve_names
from presk_rel.types.program import check_program
from presk_rel.types.tree import TFn, TypedProgram


@dataclass(frozen=True, slots=True)
class Checked:
    program: TypedProgram | None
    diagnostics: list[Diagnostic]
    loaded: Loaded

    @property
    def codes(self) -> list[str]:
        return [d.code for d in self.diagnostics]

    @property
    def only(self) -> Diagnostic:
        assert len(self.diagnostics) == 1, self.said()
        return self.diagnostics[0]

    def said(self) -> str:
        return "\n".join(f"{d.span}: [{d.code}] {d.message}" for d in self.diagnostics)

    def text_at(self, diagnostic: Diagnostic) -> str:
        """The source under the caret."""
        assert diagnostic.span is not None
        span = diagnostic.span
        return self.loaded.texts[span.file][span.start.offset : span.end.offset]

    def fn(self, name: str) -> TFn:
        assert self.program is not None, self.said()
        return next(f for f in self.program.functions if f.name == name)

    def result(self, name: str) -> str:
        return str(self.fn(name).result)


def check(text: str, files: Mapping[str, str] | None = None, consts: Mapping[str, str | int] | None = None) -> Checked:
    """Checks a program; `files` are what it may import, by path relative to it."""
    texts = {"main.psk": text, **(files or {})}

    def read(path: str) -> str:
        if path not in texts:
            raise FileNotFoundError(2, "no such file", path)
        return texts[path]

    loaded, found = load_files("main.psk", consts or {}, read)
    if found.has_errors:
        return Checked(None, found.items, loaded)
    names = resolve_names(ast_facts(loaded.sources))
    found = report_names(names)
    program, more = check_program(loaded, names)
    for d in more.items:
        found.add(d)
    return Checked(None if found.has_errors else program, found.items, loaded)


def accepted(
    text: str, files: Mapping[str, str] | None = None, consts: Mapping[str, str | int] | None = None
) -> Checked:
    """`check`, of a program without errors or warnings."""
    checked = check(text, files, consts)
    assert not checked.diagnostics, checked.said()
    assert checked.program is not None
    return checked


LINEAR = """
module Linear{In Out : dim} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]
  fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = x · w + b
}
"""
