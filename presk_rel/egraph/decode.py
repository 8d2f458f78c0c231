"""From chosen terms back to a Core function: bindings in a deterministic order, names kept, templates made real.

An operand that is read for its type only may be any value of that type. The encoded program names the type; here a
parameter, a view of one, or a binding that is there anyway takes the place, and only where there is none a `zeros`.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Binding, Function, Op, Var
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.language import INPUT, Encoded, Head, Terms, to_op
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.templates import shape_operands
from presk_rel.elab.ty import Real


@dataclass(frozen=True, slots=True)
class Decoded:
    """The function, the term of its result with its real templates, and the name of every term that it binds."""

    function: Function
    root: TermId
    names: dict[TermId, Var]


@dataclass(slots=True)
class _Decoder:
    function: Function
    encoded: Encoded
    closure: Closure
    origin: dict[TermId, tuple[int, Binding]]
    used: set[Var]
    bindings: list[Binding] = field(default_factory=list[Binding])
    real: dict[TermId, TermId] = field(default_factory=dict[TermId, TermId])
    name: dict[TermId, Var] = field(default_factory=dict[TermId, Var])
    of_type: dict[TypeId, TermId] = field(default_factory=dict[TypeId, TermId])
    waiting: dict[TypeId, list[TermId]] = field(default_factory=dict[TypeId, list[TermId]])
    ready: list[tuple[int, TermId]] = field(default_factory=list[tuple[int, TermId]])
    rank: dict[TermId, int] = field(default_factory=dict[TermId, int])
    number: int = 0

    @property
    def terms(self) -> Terms:
        return self.encoded.terms

    def operands(self, term: TermId) -> list[TermId]:
        """The operands whose values are read."""
        shapes = shape_operands(self.terms.op(term))
        return [a for i, a in enumerate(self.terms.args[term]) if i not in shapes]

    def needed(self, root: TermId) -> list[TermId]:
        seen = {root}
        stack = [root]
        while stack:
            for a in self.operands(stack.pop()):
                if a not in seen:
                    seen.add(a)
                    stack.append(a)
        return sorted(seen)

    def run(self, root: TermId) -> Decoded:
        needed = self.needed(root)
        missing = {t: len(set(self.operands(t))) for t in needed}
        users: dict[TermId, list[TermId]] = {}
        for t in needed:
            for a in set(self.operands(t)):
                users.setdefault(a, []).append(t)
            origin = self.origin.get(self.closure.find(t))
            self.rank[t] = origin[0] if origin else max((self.rank[a] for a in self.operands(t)), default=0)
        self.ready = [(self.rank[t], t) for t in needed if not missing[t]]
        heapq.heapify(self.ready)
        while self.ready or self.waiting:
            for t in self.emitted():
                for user in users.get(t, []):
                    missing[user] -= 1
                    if not missing[user]:
                        heapq.heappush(self.ready, (self.rank[user], user))
        done = replace(self.function, bindings=tuple(self.bindings), ret=self.name[root])
        return Decoded(done, self.real[root], {self.real[t]: name for t, name in self.name.items() if t in self.real})

    def emitted(self) -> list[TermId]:
        """Bind the next term that can be, or a template for one that waits; the terms that are bound now."""
        if not self.ready:
            ty = min(self.waiting)
            self.make_template(ty)
            self.wake(ty)
            return []
        _, term = heapq.heappop(self.ready)
        templates = [self.terms.type[self.terms.args[term][i]] for i in shape_operands(self.terms.op(term))]
        for ty in templates:
            if not self.available(ty):
                self.waiting.setdefault(ty, []).append(term)
                return []
        args = list(self.terms.args[term])
        for i, ty in zip(shape_operands(self.terms.op(term)), templates, strict=True):
            args[i] = self.of_type[ty]
        for i, a in enumerate(args):
            args[i] = self.real.get(a, a)
        self.bind(term, tuple(args))
        return [term]

    def bind(self, term: TermId, args: tuple[TermId, ...]) -> None:
        """Add a binding for a term whose operands are bound, unless there is one."""
        if term in self.real:
            return
        terms = self.terms
        head, ty = terms.op(term), terms.type[term]
        real = self.real[term] = terms.make(terms.head[term], args)
        if real in self.name:
            self.name[term] = self.name[real]
            return
        if head.op == INPUT:
            name = str(head.attrs[0])
        else:
            name = self.new_binding(term, Binding("", terms.table.types[ty], self.operation(head, args)))
        self.name[term] = self.name[real] = name
        self.of_type.setdefault(ty, real)
        self.wake(ty)

    def operation(self, head: Head, args: tuple[TermId, ...]) -> Op:
        return to_op(head, tuple(self.name[a] for a in args))

    def new_binding(self, term: TermId, made: Binding) -> Var:
        """Add a binding under the name, span and note that this value had in the program, if it had one."""
        found = self.origin.get(self.closure.find(term))
        old = found[1] if found and found[1].name not in self.used else made
        name = old.name or self.fresh()
        self.used.add(name)
        self.bindings.append(replace(made, name=name, span=old.span, note=old.note))
        return name

    def wake(self, ty: TypeId) -> None:
        for t in self.waiting.pop(ty, []):
            heapq.heappush(self.ready, (self.rank[t], t))

    def fresh(self) -> Var:
        n = max(self.number, len(self.function.params) + len(self.function.bindings))
        while f"%{n}" in self.used or f"%{n}" in self.encoded.of_name:
            n += 1
        self.number = n + 1
        return f"%{n}"

    # ------------------------------------------------------------------------------------------------ templates

    def available(self, ty: TypeId) -> bool:
        """Whether a value of this type is bound; a view of a parameter is bound now, for nothing."""
        if ty not in self.of_type:
            view = self.encoded.views.get(ty)
            if view is not None:
                self.bind_all(view)
        return ty in self.of_type

    def make_template(self, ty: TypeId) -> None:
        """A value of a type that nothing else has."""
        terms = self.terms
        if isinstance(terms.table.types[ty], Real):
            zeros = terms.make(terms.intern(Head("zeros", (), ty)), ())
            self.closure.extend()
            self.bind(zeros, ())
        else:
            self.bind_all(terms.template(ty))

    def bind_all(self, term: TermId) -> None:
        """Bind a term of the start program with everything under it."""
        for t in self.terms.reachable(term):
            self.bind(t, tuple(self.real[a] for a in self.terms.args[t]))


def decode(function: Function, encoded: Encoded, closure: Closure, root: TermId) -> Decoded:
    """The function that computes `root` (whose templates stand for their types) with the parameters of `function`."""
    origin: dict[TermId, tuple[int, Binding]] = {}
    for i, b in enumerate(function.bindings):
        origin.setdefault(closure.find(encoded.of_name[b.name]), (i + 1, b))
    decoder = _Decoder(function, encoded, closure, origin, {p.name for p in function.params})
    for p in function.params:
        decoder.bind(encoded.of_name[p.name], ())
    return decoder.run(root)
