"""The denotation of one primitive: how it reads as canonical terms (`egraph.denote`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ir import Attr, Binding, Prim
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.checker_rules import Sexp, attributes, parts, read
from presk_rel.egraph.denote import Frame, Local
from presk_rel.egraph.denote_terms import (
    Branch,
    Lengths,
    Tensor,
    Terms,
    Value,
    leaves,
    map_leaves,
    shape_of,
    zip_leaves,
)
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import SCALAR_REAL, Hyper, Idx, Key, Mask, ModuleDef, Params, Shape, Type, field_names
from presk_rel.smt.linear import Linear

BROADCAST = ("add", "sub", "mul", "div", "max", "min", "lt", "le", "gt", "ge", "eq")
RESHAPES = ("merge", "split", "reshape_like")


@dataclass(slots=True)
class Primitive:
    """One primitive applied in a frame."""

    modules: dict[str, ModuleDef]
    frame: Frame
    binding: Binding
    prim: Prim
    terms: Terms

    def value(self) -> Value:
        if self.prim.op in COMPOSITES:
            return self.composite()
        args = [self.frame.env[a].value for a in self.prim.args]
        structural = self.structural(args)
        if structural is not None:
            return structural
        tensors = [a for a in args if isinstance(a, Tensor)]
        if len(tensors) != len(args):
            raise PreskBug("denote", f"`{self.binding.name}`: {self.prim.op} of a tree")
        return self.tensor(tensors)

    def composite(self) -> Value:
        """What its definition denotes, part by part; types are those that Core's typing rules give."""
        row = COMPOSITES[self.prim.op]
        attrs = {name: a for (name, _), a in zip(row.attrs, self.prim.attrs, strict=True)}
        env = {n: self.frame.env[v] for n, v in zip(row.operands, self.prim.args, strict=True)}
        inner = replace(self.frame, env=dict(env))
        name = self.defined(read(row.definition), attrs, inner)
        return inner.env[name].value

    def defined(self, part: Sexp, attrs: Mapping[str, object], inner: Frame) -> str:
        """The name in `inner` of a part of a definition. (Definitions are shallow.)"""
        if isinstance(part, str):
            return part
        op, keywords, operands = parts(part)
        names = tuple(self.defined(p, attrs, inner) for p in operands)
        given = cast("tuple[Attr, ...]", attributes(op, keywords, attrs))
        found = infer(PRIMS[op], given, tuple(inner.env[n].type for n in names), SCALAR_REAL, self.modules)
        if isinstance(found, str):
            raise PreskBug("denote", f"`{self.binding.name}`: {found}")
        binding = Binding(f"{len(inner.env)}", found, Prim(op, given, names))
        value = Primitive(self.modules, inner, binding, Prim(op, given, names), self.terms).value()
        inner.env[binding.name] = Local(value, found)
        return binding.name

    def types(self) -> list[Type]:
        return [self.frame.env[a].type for a in self.prim.args]

    def declared(self) -> Lengths:
        """The lengths that the binding's type declares, in this frame."""
        return self.frame.lengths(shape_of(self.binding.type))

    def dims(self, start: int) -> tuple[object, ...]:
        """The attributes from `start` on, dimensions in this frame."""
        return tuple(a.substitute(self.frame.dims) if isinstance(a, Linear) else a for a in self.prim.attrs[start:])

    # ------------------------------------------------------------------------------------------- trees and tuples

    def structural(self, args: list[Value]) -> Value | None:
        attr = str(self.prim.attrs[0]) if self.prim.attrs else ""
        match self.prim.op, args:
            case (("field" | "proj"), [Branch(parts)]):
                return dict(parts)[attr]
            case (("set_field" | "set_elem"), [Branch(parts), value]):
                return Branch(tuple((k, value if k == attr else v) for k, v in parts))
            case "tuple", _:
                return Branch(tuple((str(i), a) for i, a in enumerate(args)))
            case "record", _ if isinstance(self.binding.type, Params):
                return Branch(tuple(zip(field_names(self.modules, self.binding.type.instance), args, strict=True)))
            case (("zeros_like" | "ones_like"), [_]):
                return self.alike(args[0], self.types()[0])
            case (("neg" | "pow" | "sqrt") as op, [Branch() as whole]):
                return map_leaves(lambda x: self.terms.make(op, self.prim.attrs, (x,), x.lengths), whole)
            case (("add" | "sub" | "mul" | "div"), [Branch() as left, Branch() as right]):
                return zip_leaves(lambda a, b: self.combined(a, b, a.lengths), left, right)
            case (
                ("add" | "sub" | "mul" | "div"),
                ([Branch() as tree, Tensor() as scalar] | [Tensor() as scalar, Branch() as tree]),
            ):
                return self.with_scalar(tree, scalar, first=args[0] is tree)
            case "sum_squares", [whole]:
                return self.squares(leaves(whole))
            case "split_key", [Tensor() as key]:
                count = self.prim.attrs[0]
                assert isinstance(count, int)
                return Branch(tuple((str(i), self.terms.make("key", (count, i), (key,), ())) for i in range(count)))
            case (("slice_params" | "scatter_params" | "set_slice"), [first, *rest]):
                return self.of_slices(first, rest)
            case "stack_params", [first, *rest]:
                return self.stacked([first, *rest])
            case _:
                return None

    def alike(self, value: Value, ty: Type) -> Value:
        """Zeros or ones of the form of a value; what has no tangent is the unit tuple (`core.shapes.tangent`)."""

        def leaf(x: Tensor, t: Type) -> Value:
            if isinstance(t, Key | Idx | Mask | Hyper):
                return Branch(())
            return self.terms.zero(x.lengths) if self.prim.op == "zeros_like" else self.ones(x.lengths)

        return self.with_types(value, ty, leaf)

    def with_types(self, value: Value, ty: Type, leaf: Callable[[Tensor, Type], Value]) -> Value:
        leaf_values = iter(leaves(value))
        return self.terms.leaves_of(self.modules, ty, lambda _, t: leaf(next(leaf_values), t))

    def ones(self, lengths: Lengths) -> Tensor:
        return self.terms.make("ones", lengths, (), lengths)

    def with_scalar(self, tree: Value, scalar: Tensor, *, first: bool) -> Value:
        def leaf(x: Tensor) -> Value:
            wide = self.terms.bcast(scalar, (), x.lengths)
            return self.combined(*((x, wide) if first else (wide, x)), x.lengths)

        return map_leaves(leaf, tree)

    def squares(self, tensors: list[Tensor]) -> Tensor:
        """The sum of all squares, leaf by leaf from the first one on."""
        first, *rest = [self.terms.make("sum_squares", (), (x,), ()) for x in tensors] or [self.terms.zero(())]
        for square in rest:
            first = self.terms.make("add", (), (first, square), ())
        return first

    def of_slices(self, first: Value, rest: list[Value]) -> Value:
        at = self.dims(0)
        match self.prim.op, rest:
            case "slice_params", []:
                return map_leaves(lambda x: self.terms.part("index", (0, *at), x, x.lengths[1:]), first)
            case "scatter_params", [like]:
                make = self.terms.make
                return zip_leaves(
                    lambda ct, t: make("scatter_index", (0, *at, t.lengths), (ct,), t.lengths), first, like
                )
            case "set_slice", [value]:
                return zip_leaves(lambda p, v: self.terms.make("set_slice", at, (p, v), p.lengths), first, value)
            case _:
                raise PreskBug("denote", f"{self.prim.op} of {len(rest) + 1} operands")

    def stacked(self, values: list[Value]) -> Value:
        columns = list(zip(*(leaves(v) for v in values), strict=True))
        numbers = iter(columns)
        count = Linear((), Fraction(len(values)))

        def leaf(x: Tensor) -> Value:
            return self.terms.make("stack", (), next(numbers), (count, *x.lengths))

        return map_leaves(leaf, values[0])

    # ---------------------------------------------------------------------------------------------------- tensors

    def tensor(self, args: list[Tensor]) -> Value:
        op, attrs, terms = self.prim.op, self.prim.attrs, self.terms
        if op in BROADCAST:
            return self.pair(args)
        if op in RESHAPES:
            return terms.reshape(args[0], args[1].lengths if op == "reshape_like" else self.declared())
        match op, args:
            case "const", []:
                value = attrs[0]
                assert isinstance(value, int | Fraction)
                return terms.make("const", (Fraction(value),), (), ())
            case (("real" | "retag"), [x]) if not isinstance(self.types()[0], Idx):
                return x
            case (("zeros" | "ones"), []):
                return terms.leaves_of(self.modules, self.binding.type, lambda _, t: self.filled(t))
            case (("dot" | "dot_vjp_l" | "dot_vjp_r"), [x, w]):
                return terms.make(op, (), (x, w), self.contraction(x, w))
            case (("sum" | "mean"), [x]):
                axis = self.axis(self.types()[0])
                kept = () if axis is None else tuple(i for i in range(len(x.lengths)) if i != axis)
                lengths = tuple(x.lengths[i] for i in kept)
                return terms.sum_down(x, kept, lengths) if op == "sum" else terms.make(op, (axis,), (x,), lengths)
            case (("broadcast_like" | "sum_to" | "mean_vjp"), [x, t]):
                return self.along(x, t)
            case "softmax", [x, *mask]:
                axis = self.frame.position(attrs[0], self.types()[0])
                masks = tuple(self.into(m, self.types()[1], x, self.types()[0]) for m in mask)
                return terms.make(op, (axis,), (x, *masks), x.lengths)
            case "ein", _:
                return terms.make(op, _indices(str(attrs[0])), tuple(args), self.declared())
            case _:
                return self.plain(args)

    def plain(self, args: list[Tensor]) -> Value:
        """Primitives that need no more than positions for names, and the shape of their result."""
        op, terms = self.prim.op, self.terms
        match op, args:
            case (("index" | "slice"), [x]):
                place = self.frame.position(self.prim.attrs[0], self.types()[0])
                return terms.part(op, (place, *self.dims(1)), x, self.declared())
            case (("scatter_index" | "slice_vjp"), [ct, t]):
                place = self.frame.position(self.prim.attrs[0], self.types()[1])
                return terms.make(op, (place, *self.dims(1), t.lengths), (ct,), t.lengths)
            case "concat", [x, _]:
                place = self.frame.position(self.prim.attrs[0], self.types()[0])
                return terms.make(op, (place,), tuple(args), self.declared())
            case "embed_vjp", [ct, indices, t]:
                return terms.make(op, (t.lengths,), (ct, indices), t.lengths)
            case "dropout_mask", [key, t]:
                return terms.make(op, (*self.prim.attrs, t.lengths), (key,), t.lengths)
            case (("normal" | "xavier_uniform" | "positions" | "causal_mask" | "one_hot"), _):
                lengths = self.declared()
                return terms.make(op, (*self.prim.attrs, lengths), tuple(args), lengths)
            case _:
                return terms.make(op, self.dims(0), tuple(args), self.declared())

    def filled(self, ty: Type) -> Tensor:
        lengths = self.frame.lengths(shape_of(ty))
        return self.terms.zero(lengths) if self.prim.op == "zeros" else self.ones(lengths)

    def pair(self, args: list[Tensor]) -> Tensor:
        """Both operands lined up with the larger one, by their declared types."""
        shapes = [shape_of(t) for t in self.types()]
        large = 0 if _rank(shapes[0]) >= _rank(shapes[1]) else 1
        lengths = args[large].lengths
        types = self.types()
        wide = [self.into(x, types[i], args[large], types[large]) for i, x in enumerate(args)]
        return self.combined(wide[0], wide[1], lengths)

    def into(self, x: Tensor, x_type: Type, target: Tensor, target_type: Type) -> Tensor:
        """`x` broadcast along `target`, by the declared types of both."""
        small, large = shape_of(x_type), shape_of(target_type)
        where = align(small, large, lambda a, b: a == b)
        if where is None:
            raise PreskBug("denote", f"`{self.binding.name}`: {small} does not line up with {large}")
        return self.terms.bcast(x, self.frame.positions(where, small, large), target.lengths)

    def combined(self, left: Tensor, right: Tensor, lengths: Lengths) -> Tensor:
        if self.prim.op == "add" and left.id in self.terms.zeros:
            return right
        if self.prim.op in ("add", "sub") and right.id in self.terms.zeros:
            return left
        return self.terms.make(self.prim.op, (), (left, right), lengths)

    def axis(self, ty: Type) -> int | None:
        return self.frame.position(self.prim.attrs[0], ty) if self.prim.attrs else None

    def along(self, x: Tensor, t: Tensor) -> Tensor:
        """broadcast_like, mean_vjp: x put along t's axes; sum_to: x summed down to t's."""
        x_type, t_type = self.types()
        axis = self.axis(t_type) if self.prim.op != "sum_to" else None
        if axis is not None:
            where = tuple(i for i in range(len(t.lengths)) if i != axis)
        else:
            small, large = (t_type, x_type) if self.prim.op == "sum_to" else (x_type, t_type)
            found = align(shape_of(small), shape_of(large), lambda a, b: a == b)
            if found is None:
                raise PreskBug("denote", f"`{self.binding.name}`: {small} does not line up with {large}")
            where = self.frame.positions(found, shape_of(small), shape_of(large))
        match self.prim.op:
            case "sum_to":
                return self.terms.sum_down(x, where, t.lengths)
            case "broadcast_like":
                return self.terms.bcast(x, where, t.lengths)
            case _:
                return self.terms.make("mean_vjp", (axis, where, t.lengths), (x,), t.lengths)

    def contraction(self, x: Tensor, w: Tensor) -> Lengths:
        match self.prim.op:
            case "dot":
                return (*x.lengths[:-1], *w.lengths[1:])
            case "dot_vjp_l":
                return (*x.lengths[: len(x.lengths) - len(w.lengths) + 1], w.lengths[0])
            case _:
                return (x.lengths[-1], *w.lengths[len(x.lengths) - 1 :])


def _rank(shape: Shape) -> tuple[int, int]:
    return (0 if shape.prefix is None else 1, len(shape.axes))


def _indices(spec: str) -> tuple[object, ...]:
    """`"b s d, d e -> b s e"` with a number for each name in order of first appearance."""
    numbers: dict[str, int] = {}
    operands, _, result = spec.partition("->")
    return tuple(
        tuple(numbers.setdefault(name, len(numbers)) for name in part.split())
        for part in [*operands.split(","), result]
    )
