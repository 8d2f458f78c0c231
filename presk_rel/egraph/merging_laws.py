"""The terms of merged contractions, and the rule instances that prove them equal (`egraph.merging`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from presk_rel.core.shapes import same
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.instances import Instance, Value, instantiate
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.patterns import Apply, Name, Pattern, read_rule
from presk_rel.egraph.products import Product, common_names, per_slice, shape_of, summed
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Axis, Real, Shape
from presk_rel.smt.linear import constant

Ways = list[tuple[TermId, TermId]]
"""Terms, each with another one that it is."""


@dataclass(slots=True)
class Laws:
    """`stacks` are those that were made, by their parts; `sums` those of a contraction of stacks and biases, which is
    one operation as `linear` is."""

    terms: Terms
    closure: Closure
    stacks: dict[tuple[TermId, ...], TermId] = field(default_factory=dict[tuple[TermId, ...], TermId])
    sums: set[TermId] = field(default_factory=set[TermId])

    # ------------------------------------------------------------------------------------------------ merging

    def shared(self, members: Sequence[Product], side: str) -> Ways:
        """Contractions that share the operand that is not at `side`, as slices of one."""
        place = 0 if side == "left" else 1
        shape = shape_of(self.terms, members[0].term)
        found = None if shape is None else per_slice(self.terms, members[0], shape, side)
        if shape is None or found is None:
            return []
        spec, each = found
        stacks = list(members[0].operands)
        stacks[place] = self.stack([p.operands[place] for p in members], each)
        if members[0].bias is None:
            return [(p.term, self.sliced(p, k, side, spec, stacks)) for k, p in enumerate(members)]
        biases = self.biases(members, shape, spec, each)
        if biases is None:
            return []
        return [
            (p.term, self.biased(p, k, self.sliced(p, k, side, spec, stacks), biases)) for k, p in enumerate(members)
        ]

    def total(self, members: Sequence[Product], chain: TermId) -> Ways:
        """The sum of contractions, in this order, as one that sums over all."""
        own, shape = self.terms.type[chain], shape_of(self.terms, chain)
        found = None if shape is None else per_slice(self.terms, members[0], shape, "both")
        if found is None:
            return []
        spec, each = found
        stacks = [self.stack([p.operands[side] for p in members], each) for side in (0, 1)]
        slices = [self.sliced(p, k, "both", spec, stacks) for k, p in enumerate(members)]
        whole = slices[0]
        for part in slices[1:]:
            whole = self.make("add", own, whole, part)
        along = self.say(f"slices.sum-{len(members)}", whole, a=each, n=constant(len(members)))
        return [(chain, self.say("sum.ein", along, s=summed(spec, each)))]

    def summed_down(self, sums: Sequence[TermId], parts: tuple[TermId, ...]) -> Ways:
        """Sums of the parts of a stack as slices of its sum, where they line up by the names of axes."""
        stack = self.stacks[parts]
        whole, part, small = (shape_of(self.terms, t) for t in (stack, parts[0], sums[0]))
        if whole is None or part is None or small is None or any(a.name is None for a in whole.axes):
            return []
        where = align(small, part, same)
        if where is None:
            return []
        kept = (0, *(k + 1 for k in where))
        shape = Shape(None, tuple(whole.axes[k] for k in kept))
        if align(shape, whole, same) != kept:
            return []
        u = self.terms.table.intern(Real(shape))
        ways: Ways = []
        for k, (t, a) in enumerate(zip(sums, parts, strict=True)):
            of_slice = self.terms.make(self.terms.head[t], (self.part(stack, k, a), self.terms.args[t][1]))
            ways.append((t, self.say("sum_to.slices", of_slice, y=self.terms.template(u), u=u)))
        return ways

    # ------------------------------------------------------------------------------------------------ contractions

    def written_out(self, p: Product, bias: TermId) -> TermId:
        """A product and what is added to it, which `bias` is equal to, as a sum."""
        assert p.bias is not None
        own, inner = self.terms.type[p.term], self.contraction(p)
        self.say("linear.definition", self.make("add", own, inner, p.bias))
        if self.terms.type[inner] != own:  # the sum's operands have one type
            return p.term
        return self.make("add", own, inner, bias)

    def contraction(self, p: Product) -> TermId:
        """The contraction without a sum."""
        if p.bias is None:
            return p.term
        own = self.inferred(p.op, (), *p.operands)
        return self.terms.make(self.terms.intern(Head(p.op, (), own)), p.operands)

    def sliced(self, p: Product, k: int, side: str, spec: str, stacks: Sequence[TermId]) -> TermId:
        """`x · wₖ = x · slice k of W = slice k of (x · W)`"""
        base = self.contraction(p)
        chosen = (side in ("left", "both"), side in ("right", "both"))
        args = tuple(self.part(stack, k, a) if s else a for s, stack, a in zip(chosen, stacks, p.operands, strict=True))
        of_slices = self.terms.make(self.terms.head[base], args)
        return self.say(f"{p.op}.slices-{side}", of_slices, s=spec, u=self.inferred("ein", (spec,), *stacks))

    def biased(self, p: Product, k: int, sliced: TermId, biases: TermId) -> TermId:
        """`slice k of (x · W) + slice k of B = slice k of (x · W + B)`"""
        assert p.bias is not None
        own = self.terms.type[p.term]
        self.say("linear.definition", self.make("add", own, self.contraction(p), p.bias))
        added = self.make("add", own, sliced, self.part(biases, k, p.bias))
        (whole,) = self.terms.args[sliced]
        found = self.say("add.slices", added, u=self.inferred("add", (), whole, biases))
        self.sums.update(self.terms.args[found])
        return found

    # ------------------------------------------------------------------------------------------------ stacks

    def stack(self, parts: Sequence[TermId], each: str, names: Sequence[str | None] = ()) -> TermId:
        """The stack of tensors of one shape, its first axis named."""
        shapes = [s for a in parts if (s := shape_of(self.terms, a)) is not None]
        given = names or common_names(shapes)
        axes = (Axis(n if n != each else None, a.length) for n, a in zip(given, shapes[0].axes, strict=True))
        ty = Real(Shape(None, (Axis(each, constant(len(parts))), *axes)))
        made = self.make("stack_params", self.terms.table.intern(ty), *parts)
        self.stacks[tuple(parts)] = made
        return made

    def part(self, stack: TermId, k: int, value: TermId) -> TermId:
        """Slice k of a stack, which is its part."""
        head = Head("slice_params", (constant(k),), self.terms.type[value])
        found = self.terms.make(self.terms.intern(head), (stack,))
        self.say(f"slice.of-stack-{len(self.terms.args[stack])}-{k}", found)
        return found

    def biases(self, members: Sequence[Product], shape: Shape, spec: str, each: str) -> TermId | None:
        """What is added to each, stacked under the names of the axes it lines up with; None where these differ."""
        out = spec.split("-> ")[1].split()[1:]
        given = [p.bias for p in members if p.bias is not None]
        own = shape_of(self.terms, given[0])
        where = None if own is None else align(own, shape, same)
        if where is None or len({self.terms.type[b] for b in given}) > 1:
            return None
        return self.stack(given, each, [out[i] for i in where])

    # ------------------------------------------------------------------------------------------------ saying

    def make(self, op: str, own: int, *args: TermId) -> TermId:
        return self.terms.make(self.terms.intern(Head(op, (), own)), args)

    def inferred(self, op: str, attrs: tuple[str, ...], *args: TermId) -> int:
        """The type that the typing rules give, which allow this."""
        found = self.terms.table.infer(op, attrs, tuple(self.terms.type[a] for a in args))
        assert found is not None
        return found

    def say(self, rule: str, left: TermId, **more: Value) -> TermId:
        """The instance of a rule whose left side is a term; its right side."""
        side = read_rule(RULES[rule])
        values: dict[str, Value] = {}
        self.bind(side.left, left, values)
        values |= more
        right = instantiate(self.terms, side.right, values)
        self.closure.add(Instance(RULES[rule], values, left, right))
        return right

    def bind(self, pattern: Pattern, term: TermId, values: dict[str, Value]) -> None:
        """What the variables of a pattern stand for in a term. (Patterns are shallow.)"""
        if isinstance(pattern, Name):
            values[pattern.name] = term
            return
        assert isinstance(pattern, Apply)
        head = self.terms.op(term)
        values[pattern.type.name] = head.type
        for name, value in zip(pattern.attrs, head.attrs, strict=False):
            if isinstance(name, Name):
                values[name.name] = value
        for below, t in zip(pattern.args, self.terms.args[term], strict=True):
            self.bind(below, t, values)
