"""The ends of a proof: that its start terms, with the start terms of the bodies of folds, are the program before, and
its end terms, with the end terms of these bodies, the program after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

from presk_rel.core.ir import Binding, DimArgs, Fold, Function, Param, Prim, Program
from presk_rel.core.verify import problems
from presk_rel.egraph.denote import denote, denote_all
from presk_rel.egraph.denote_terms import Terms, Value
from presk_rel.egraph.proof import Proof, Term
from presk_rel.elab.ty import Type
from presk_rel.smt.linear import Linear

End = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Ends:
    """A proof between two programs."""

    proof: Proof
    before: Program
    after: Program
    known: dict[tuple[str, str, frozenset[str]], dict[str, Value]] = field(
        default_factory=dict[tuple[str, str, frozenset[str]], "dict[str, Value]"]
    )
    table: Terms = field(default_factory=Terms)
    typed: dict[str, dict[str, Type]] = field(default_factory=dict[str, "dict[str, Type]"])

    def problems(self) -> Iterator[str]:
        """A fold whose body has no proof, a body with two or with none to be one of."""
        names = [part.entry for part in self.proof.parts]
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"there are two proofs for {name}"
        if any(part.bodies for part in self.proof.bodies):
            yield "the proof for a body has bodies of its own"
        folds = (t for part in self.proof.parts for t in part.terms if t.op == "fold")
        for name in sorted({str(t.attrs[1]) for t in folds} - set(names[1:])):
            yield f"there is no proof for the body {name}"
        yield from self._cycles()

    def _cycles(self) -> Iterator[str]:
        """What is proven about a body may be used in proofs about functions that fold it, not the other way."""
        below = {part.entry: {str(t.attrs[1]) for t in part.terms if t.op == "fold"} for part in self.proof.parts}
        while below:
            free = [name for name, named in below.items() if not named & below.keys()]
            if not free:
                yield f"the proofs for {', '.join(sorted(below))} need each other"
                return
            for name in free:
                del below[name]

    def parameters(self, function: str) -> dict[str, Type]:
        """The parameters of the entry or of a body, with their types; none for what there is no proof for."""
        if function not in self.typed:
            parts = (part for part in self.proof.parts if part.entry == function)
            self.typed[function] = {p.name: p.type for part in parts for p in self._params(part)}
        return self.typed[function]

    def _params(self, part: Proof) -> tuple[Param, ...]:
        return self.before.functions[part.entry].params if part is self.proof else part.params

    def ill_typed(self, part: Proof) -> list[str]:
        """What the verifier of Core says of all terms of a part together."""
        program = self._program("start")
        whole = self._straight(part, len(part.terms) - 1, whole=True)
        return problems(Program(program.modules, {**program.functions, part.entry: whole}))[:1]

    def differing(self) -> Iterator[str]:
        """`start` denotes the entry before optimization and `end` the optimized one."""
        table = Terms()
        programs: tuple[tuple[End, Program, str], ...] = (
            ("start", self.before, "the entry after differentiation"),
            ("end", self.after, "the optimized program"),
        )
        for end, program, what in programs:
            value = denote(program, self.proof.entry, table)
            if denote(self._program(end), self.proof.entry, table) != value:
                yield f"the {end} term is not what {what} computes"

    def same_folds(self, part: Proof, before: int, after: int, laws: frozenset[str]) -> bool:
        """Whether two terms differ in folds only, and in nothing but what the laws say: with the bodies as they start,
        or as they end."""
        for end in ("start", "end"):
            key = (part.entry, end, laws)
            if key not in self.known:
                program = self._program(end)
                whole = self._straight(part, len(part.terms) - 1, whole=True)
                functions = {**program.functions, part.entry: whole}
                self.known[key] = denote_all(Program(program.modules, functions), part.entry, self.table, laws)
            values = self.known[key]
            if values[_name(before, part.terms[before])] == values[_name(after, part.terms[after])]:
                return True
        return False

    def _program(self, end: End) -> Program:
        """The program that the parts are at one end."""
        roots = ((part, part.start if end == "start" else part.end) for part in self.proof.parts)
        return Program(self.before.modules, {part.entry: self._straight(part, root) for part, root in roots})

    def _straight(self, part: Proof, root: int, *, whole: bool = False) -> Function:
        """The straight-line function that computes a term (with `whole`, every term)."""
        needed = set(range(len(part.terms))) if whole else {root}
        for index in range(root, -1, -1):
            if index in needed:
                needed.update(part.terms[index].children)
        names = {i: _name(i, t) for i, t in enumerate(part.terms) if i in needed}
        bindings = tuple(
            Binding(names[i], t.type, _operation(t, tuple(names[c] for c in t.children)))
            for i, t in enumerate(part.terms)
            if i in needed and t.op != "input"
        )
        foreign = [Param(names[i], t.type) for i, t in enumerate(part.terms) if whole and _is_foreign(t)]
        params = (*self._params(part), *foreign)
        dims = self.before.functions[part.entry].dims if part is self.proof else part.dims
        return Function(part.entry, dims, params, part.terms[root].type, bindings, names[root])


def _is_foreign(term: Term) -> bool:
    """Another function's parameter."""
    return term.op == "input" and len(term.attrs) > 1


def _name(index: int, term: Term) -> str:
    """What a term is called in a straight-line function: a parameter by its name, and no other value like one."""
    return str(term.attrs[0]) if term.op == "input" and not _is_foreign(term) else f"#{index}"


def _operation(term: Term, args: tuple[str, ...]) -> Prim | Fold:
    """A term's operation. A fold's attributes: count, body, reverse, scan, how many are stacked, then dims in pairs."""
    if term.op != "fold":
        return Prim(term.op, term.attrs, args)
    count, body, reverse, scan, stacked, *pairs = term.attrs
    assert isinstance(count, Linear)
    assert isinstance(stacked, int)
    dims = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    return Fold(
        count,
        str(body),
        cast("DimArgs", dims),
        args[:stacked],
        args[stacked],
        args[stacked + 1 :],
        bool(reverse),
        bool(scan),
    )
