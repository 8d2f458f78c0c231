"""The text of generated code: lines, what is computed once when the code is loaded, and what nothing reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"\b[vcf]\d+\b")
_LOCAL = re.compile(r"\bv\d+\b")
_COMMENT = re.compile(r"  # .*")
"""It may hold names of the user's like those of generated code."""
_CALL = re.compile(r"\btorch(?:\.[A-Za-z_]\w*)+(?=\()|\.(?:to)(?=\()|\bsupport\.sample(?=\()")
VIEWS = frozenset(
    f"torch.{name}" for name in ("select", "narrow", "unbind", "arange", "device", "full", "scalar_tensor", "empty")
)
"""Calls that move no data, or that only make constants."""


@dataclass(frozen=True, slots=True)
class Line:
    """`targets = …`: one statement, of more than one text line where it loops. `kernels` is what it runs. A line of the
    `host` reads only keys and hyperparameters."""

    targets: tuple[str, ...]
    text: str
    kernels: int
    host: bool = False

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(_NAME.findall(_COMMENT.sub("", self.text))) - frozenset(self.targets)


def kernels_in(expression: str) -> int:
    """The calls of an expression that run a kernel."""
    return sum(1 for call in _CALL.findall(expression) if call not in VIEWS)


@dataclass(slots=True)
class Writer:
    """Names are unique in a generated file: `v…` in functions, `c…` for constants, `f…` for functions. `host` has those
    of keys and hyperparameters, which are no tensors."""

    constants: list[Line] = field(default_factory=list[Line])
    functions: list[str] = field(default_factory=list[str])
    host: set[str] = field(default_factory=set[str])
    numbers: dict[str, str] = field(default_factory=dict[str, str])
    """The host's number of a scalar tensor that is made of it."""
    count: int = 0
    _known: dict[str, str] = field(default_factory=dict[str, str])

    def name(self, kind: str = "v") -> str:
        self.count += 1
        return f"{kind}{self.count - 1}"

    def line(self, lines: list[Line], known: dict[str, str], expression: str, comment: str = "") -> str:
        """Add a line that computes the expression, or find the one that does; where it reads no input, once for all.
        Every expression is a function of the names in it."""
        if not _LOCAL.search(expression):
            return self.constant(expression)
        if expression in known:
            return known[expression]
        name = known[expression] = self.name()
        note = f"  # {comment}" if comment else ""
        host = self.host.issuperset(_LOCAL.findall(expression))
        lines.append(Line((name,), f"{name} = {expression}{note}", kernels_in(expression), host))
        return name

    def constant(self, expression: str) -> str:
        if expression not in self._known:
            name = self._known[expression] = self.name("c")
            self.constants.append(Line((name,), f"{name} = {expression}", 0))
        return self._known[expression]


def needed(lines: list[Line], read: set[str]) -> list[Line]:
    """The lines that `read`, or a line that it needs, reads; `read` grows."""
    kept: list[Line] = []
    for line in reversed(lines):
        if any(t in read for t in line.targets):
            kept.append(line)
            read |= line.reads
    return kept[::-1]


def printable(text: str) -> str:
    """Text of the user's in a comment: nothing in it can end the line."""
    return "".join(c for c in text if c.isprintable())
