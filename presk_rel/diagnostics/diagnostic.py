"""What a pass says about a program. Passes return diagnostics; only the command line prints them.

Three things are kept apart: the user's error (`Diagnostic`, severity error), a limit of presk on a correct program
(`PreskLimit`, a diagnostic whose code the catalogue marks as a limit), and a bug of presk (`PreskBug`, exit status 4).
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from presk_rel.diagnostics.record import mutable, record
from presk_rel.diagnostics.span import Span

Severity = Literal["error", "warning"]


@record
class Label:
    """A second place that matters, with what it has to do with the first."""

    span: Span
    message: str


@record
class Diagnostic:
    """One finding. `code` is a row of `diagnostics.catalogue`; `counterexample` maps the user's names to naturals."""

    code: str
    message: str
    span: Span | None
    severity: Severity = "error"
    labels: tuple[Label, ...] = ()
    help: str | None = None
    counterexample: tuple[tuple[str, int], ...] | None = None


class PreskError(Exception):
    """Carries the diagnostics of a request that cannot go on. `exit_status` is 1, 2 or 3 as `docs/cli.md` says."""

    def __init__(self, diagnostics: list[Diagnostic], exit_status: int = 1) -> None:
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics
        self.exit_status = exit_status


class PreskBug(Exception):
    """An internal invariant failed in `pass_name`: exit status 4, and the message asks for a report."""

    def __init__(self, pass_name: str, message: str) -> None:
        super().__init__(f"{pass_name}: {message}")
        self.pass_name = pass_name
        self.message = message


@mutable
class Diagnostics:
    """A collector handed to a pass; keeps one diagnostic per (code, span, message)."""

    items: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _seen: set[tuple[str, Span | None, str]] = field(default_factory=set[tuple[str, Span | None, str]])

    def add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.span, diagnostic.message)
        if key in self._seen:
            return
        self._seen.add(key)
        self.items.append(diagnostic)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        labels: tuple[Label, ...] = (),
        help: str | None = None,
        counterexample: dict[str, int] | None = None,
    ) -> None:
        pairs = None if counterexample is None else tuple(sorted(counterexample.items()))
        self.add(Diagnostic(code, message, span, "error", labels, help, pairs))

    def warning(self, code: str, message: str, span: Span | None, *, help: str | None = None) -> None:
        self.add(Diagnostic(code, message, span, "warning", help=help))

    @property
    def has_errors(self) -> bool:
        return any(d.severity == "error" for d in self.items)
