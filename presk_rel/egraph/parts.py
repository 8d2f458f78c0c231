"""The functions that are optimized together: the entry, and the bodies of the folds under it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from presk_rel.core.ir import Binding, Fold, Function, Program, operands
from presk_rel.egraph.choices import Spine, spine
from presk_rel.egraph.language import Encoded, Terms, encode
from presk_rel.egraph.proof import TermId


@dataclass(frozen=True, slots=True)
class Part:
    """One function as it was given, without its dead bindings, and as terms; `root` is what it computes, equal to the
    encoded function's root, and `spine` that of this term."""

    original: Function
    function: Function
    encoded: Encoded
    root: TermId
    spine: Spine

    @property
    def name(self) -> str:
        return self.function.name

    def computing(self, root: TermId) -> Part:
        """The same function by an equal term."""
        return replace(self, root=root, spine=spine(self.encoded.terms, root))


def reached(flat: Program, entry: str) -> dict[str, Function]:
    """The entry, then the bodies of folds in the order in which they are first named, all without what is dead."""
    names = [entry]
    known = {entry}
    functions: dict[str, Function] = {}
    for name in names:
        functions[name] = live(flat.functions[name])
        bodies = dict.fromkeys(b.op.body for b in functions[name].bindings if isinstance(b.op, Fold))
        names += [body for body in bodies if body not in known]
        known |= bodies.keys()
    return functions


def parts_of(flat: Program, entry: str, terms: Terms) -> list[Part]:
    """The functions that the entry reaches, as terms of one table."""
    functions = reached(flat, entry)
    found: list[Part] = []
    for name, function in functions.items():
        encoded = encode(function, terms, None if name == entry else name)
        found.append(Part(flat.functions[name], function, encoded, encoded.root, spine(terms, encoded.root)))
    return found


def live(function: Function) -> Function:
    """The function without bindings that nothing reads."""
    needed = {function.ret}
    kept: list[Binding] = []
    for b in reversed(function.bindings):
        if b.name in needed:
            needed.update(operands(b.op))
            kept.append(b)
    return replace(function, bindings=tuple(reversed(kept)))
