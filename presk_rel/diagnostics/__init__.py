"""Spans, diagnostics, the catalogue of codes, and rendering. The lowest layer: imports nothing of presk."""

from presk_rel.diagnostics.diagnostic import Diagnostic, Diagnostics, Label, PreskBug, PreskError, Severity
from presk_rel.diagnostics.span import NOWHERE, Pos, Span

__all__ = ["NOWHERE", "Diagnostic", "Diagnostics", "Label", "Pos", "PreskBug", "PreskError", "Severity", "Span"]
