"""Terms of a proof as compact text: a named term by its name, a view of a parameter as a path, everything else as
`op[attributes](operands)` to a small depth and `#n` (a number of the proof's table) below."""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.core.prims import PRIMS
from presk_rel.egraph.proof import Proof, Term, TermId

DEPTH = 3


@dataclass(slots=True)
class TermText:
    """Writes the terms of one proof."""

    proof: Proof
    names: dict[TermId, str] = field(default_factory=dict[TermId, str])

    def __post_init__(self) -> None:
        for t, name in self.proof.names:
            self.names.setdefault(t, name)

    def short(self, term: TermId) -> str:
        """Its name, path or number; a constant in full."""
        t = self.proof.terms[term]
        if t.op == "input":
            return ":".join(map(str, reversed(t.attrs)))
        if t.op in ("field", "proj"):
            return f"{self.short(t.children[0])}.{t.attrs[0]}"
        if t.op == "const":
            return str(t.attrs[0])
        return self.names.get(term, f"#{term}")

    def write(self, term: TermId, depth: int = DEPTH) -> str:
        """The operation in full, its operands to `depth`."""
        t = self.proof.terms[term]
        if t.op in ("input", "field", "proj", "const"):
            return self.short(term)
        if not t.children:
            return f"{t.op} : {t.type}"
        shapes = PRIMS[t.op].shape_only if t.op in PRIMS else ()
        operands = (
            f"type of {self.short(c)}" if i in shapes else self._operand(c, depth - 1) for i, c in enumerate(t.children)
        )
        return f"{_head(t)}({', '.join(operands)})"

    def _operand(self, term: TermId, depth: int) -> str:
        return self.short(term) if depth <= 0 or term in self.names else self.write(term, depth)


def _head(t: Term) -> str:
    return f"{t.op}[{' '.join(map(str, t.attrs))}]" if t.attrs else t.op
