"""What a Core function computes, as hash-consed canonical terms: the checker's own reading of PSK-Core.

Two functions with the same denotation here compute the same real numbers. It serves to check that inlining, the
encoding of the
proof's terms and the extraction back to Core lost nothing, and shares no code with them (nor with the executors).

Canonical terms have no names: axes are positions, every implicit broadcast is a `bcast` term that says where each
axis goes,
operands read for their shape only are gone (a shape is a tuple of lengths), trees, tuples, closures and calls are
resolved, and a structural zero
added to a tensor is the tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Prim, Program
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import (
    Hyper,
    Idx,
    Key,
    Mask,
    ModuleDef,
    Params,
    Real,
    Shape,
    TupleOf,
    Type,
    field_names,
    field_type,
    map_dims,
)  # fmt: skip
from presk_rel.smt.linear import Linear, constant

Lengths = tuple[Linear, ...]
Attrs = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A canonical term and the lengths of its axes (none for a number or a key)."""

    id: int
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class Branch:
    """A tree or tuple, its parts by field name or position."""

    parts: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class FunctionValue:
    fn: str
    dims: tuple[tuple[str, Linear], ...]
    captured: tuple[Value, ...]


Value = Tensor | Branch | FunctionValue


@dataclass(slots=True)
class Terms:
    """The table of canonical terms. One table for all functions that are compared."""

    ids: dict[tuple[str, Attrs, tuple[int, ...]], int] = field(
        default_factory=dict[tuple[str, Attrs, tuple[int, ...]], int]
    )
    zeros: set[int] = field(default_factory=set[int])

    def make(self, op: str, attrs: Attrs, children: tuple[Tensor, ...], lengths: Lengths) -> Tensor:
        key = (op, attrs, tuple(c.id for c in children))
        return Tensor(self.ids.setdefault(key, len(self.ids)), lengths)

    def zero(self, lengths: Lengths) -> Tensor:
        tensor = self.make("zeros", lengths, (), lengths)
        self.zeros.add(tensor.id)
        return tensor

    def bcast(self, x: Tensor, where: tuple[int, ...], lengths: Lengths) -> Tensor:
        """`x` with axis k put at `where[k]` of a tensor of `lengths`."""
        if where == tuple(range(len(lengths))):
            return x
        return self.make("bcast", (where, lengths), (x,), lengths)

    def sum_down(self, x: Tensor, where: tuple[int, ...], lengths: Lengths) -> Tensor:
        if where == tuple(range(len(x.lengths))):
            return x
        if x.id in self.zeros:
            return self.zero(lengths)
        return self.make("sum_down", (where,), (x,), lengths)

    def inputs(self, modules: dict[str, ModuleDef], path: str, ty: Type) -> Value:
        """The value of a parameter, leaf by leaf."""
        match ty:
            case Params(instance):
                types = [(n, field_type(modules, instance, n)) for n in field_names(modules, instance)]
                return Branch(tuple((n, self.inputs(modules, f"{path}.{n}", t)) for n, t in types if t is not None))
            case TupleOf(items):
                return Branch(tuple((str(i), self.inputs(modules, f"{path}.{i}", t)) for i, t in enumerate(items)))
            case Real(shape) | Mask(shape) | Idx(_, shape):
                if shape.prefix is not None:
                    raise PreskBug("denote", f"`{path}` has an open prefix: {ty}")
                return self.make("input", (path,), (), tuple(a.length for a in shape.axes))
            case _:
                return self.make("input", (path,), (), ())


@dataclass(frozen=True, slots=True)
class Local:
    """A value with its declared type, generic in the function's dims and prefix: alignments are read off this type."""

    value: Value
    type: Type


@dataclass(slots=True)
class _Frame:
    function: Function
    dims: dict[str, Linear]
    prefix: Lengths
    env: dict[str, Local]
    pc: int = 0

    def lengths(self, shape: Shape) -> Lengths:
        lead = self.prefix if shape.prefix is not None else ()
        return (*lead, *(a.length.substitute(self.dims) for a in shape.axes))

    def positions(self, where: tuple[int, ...], small: Shape, large: Shape) -> tuple[int, ...]:
        """An alignment of axes after the prefixes as positions of the whole shapes."""
        lead = len(self.prefix)
        offset = lead if large.prefix is not None else 0
        head = tuple(range(lead)) if small.prefix is not None else ()
        return (*head, *(i + offset for i in where))


def shape_of(ty: Type) -> Shape:
    match ty:
        case Real(shape) | Mask(shape) | Idx(_, shape):
            return shape
        case Hyper() | Key():
            return Shape(None, ())
        case _:
            raise PreskBug("denote", f"no shape: {ty}")


def denote(program: Program, entry: str, terms: Terms, dims: Mapping[str, int] | None = None) -> Value:
    """The value of `entry` on its own parameters, as canonical terms, at `dims` where they are bound. Call depth is
    bounded
    by memory, not by the stack."""
    function = program.functions[entry]
    at = {name: constant(n) for name, n in (dims or {}).items()}
    types = {p.name: map_dims(p.type, lambda d: d.substitute(at)) for p in function.params}
    env = {p.name: Local(terms.inputs(program.modules, p.name, types[p.name]), p.type) for p in function.params}
    return _run(program, _Frame(function, at, (), env), terms)


def _run(program: Program, frame: _Frame, terms: Terms) -> Value:
    stack = [frame]
    returned: Value | None = None
    while True:
        top = stack[-1]
        if top.pc == len(top.function.bindings):
            returned = top.env[top.function.ret].value
            stack.pop()
            if not stack:
                return returned
            caller = stack[-1]
            bound = caller.function.bindings[caller.pc]
            caller.env[bound.name] = Local(returned, bound.type)
            caller.pc += 1
            continue
        binding = top.function.bindings[top.pc]
        inner = _enter(program, top, binding)
        if inner is not None:
            stack.append(inner)
            continue
        top.env[binding.name] = Local(_simple(program, top, binding, terms), binding.type)
        top.pc += 1


def _enter(program: Program, frame: _Frame, binding: Binding) -> _Frame | None:
    """The callee's frame of a call or an application; None for every other operation."""
    match binding.op:
        case Call(fn, dim_args, args):
            values = [frame.env[a].value for a in args]
            dims = tuple((d, form.substitute(frame.dims)) for d, form in dim_args)
        case Apply(fn, args):
            closure = frame.env[fn].value
            if not isinstance(closure, FunctionValue):
                raise PreskBug("denote", f"`{fn}` is applied but is no function")
            fn, dims = closure.fn, closure.dims
            values = [*closure.captured, *(frame.env[a].value for a in args)]
        case _:
            return None
    function = program.functions[fn]
    env = {p.name: Local(v, p.type) for p, v in zip(function.params, values, strict=True)}
    return _Frame(function, dict(dims), _prefix(function, values), env)


def _prefix(function: Function, values: list[Value]) -> Lengths:
    """The leading axes that the callee's `...` stands for: read off the first argument whose type has it."""
    for param, value in zip(function.params, values, strict=True):
        match param.type, value:
            case ((Real(shape) | Mask(shape) | Idx(_, shape)), Tensor(_, lengths)) if shape.prefix is not None:
                return lengths[: len(lengths) - len(shape.axes)]
            case _:
                continue
    return ()


def _simple(program: Program, frame: _Frame, binding: Binding, terms: Terms) -> Value:
    match binding.op:
        case Prim() as prim:
            return _Primitive(program.modules, frame, binding, prim, terms).value()
        case Closure(fn, dim_args, captured):
            dims = tuple((d, form.substitute(frame.dims)) for d, form in dim_args)
            return FunctionValue(fn, dims, tuple(frame.env[c].value for c in captured))
        case Grad():
            raise PreskBug("denote", f"`{binding.name}`: grad is left after differentiation")
        case Fold():
            raise PreskBug("denote", f"`{binding.name}`: folds are not denoted yet")
        case Call() | Apply():
            raise PreskBug("denote", "unreachable")


@dataclass(slots=True)
class _Primitive:
    """One primitive applied in a frame."""

    modules: dict[str, ModuleDef]
    frame: _Frame
    binding: Binding
    prim: Prim
    terms: Terms

    def value(self) -> Value:
        args = [self.frame.env[a].value for a in self.prim.args]
        structural = self.structural(args)
        if structural is not None:
            return structural
        tensors = [a for a in args if isinstance(a, Tensor)]
        if len(tensors) != len(args):
            raise PreskBug("denote", f"`{self.binding.name}`: {self.prim.op} of a tree")
        return self.tensor(tensors)

    def types(self) -> list[Type]:
        return [self.frame.env[a].type for a in self.prim.args]

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
            case "zeros_like", [whole]:
                return self.zeros(whole)
            case (("ones_like" | "neg"), [Branch() as whole]):
                return self.each(whole)
            case (("add" | "sub"), [Branch() as left, Branch() as right]):
                return self.leafwise(left, right)
            case (("mul" | "div"), ([Branch() as tree, Tensor() as scalar] | [Tensor() as scalar, Branch() as tree])):
                return self.scaled(tree, scalar, first=args[0] is tree)
            case "split_key", [Tensor() as key]:
                count = self.prim.attrs[0]
                assert isinstance(count, int)
                return Branch(tuple((str(i), self.terms.make("key", (count, i), (key,), ())) for i in range(count)))
            case _:
                return None

    def zeros(self, value: Value) -> Value:
        match value:
            case Branch(parts):
                return Branch(tuple((k, self.zeros(v)) for k, v in parts))
            case Tensor(_, lengths):
                return self.terms.zero(lengths)
            case FunctionValue():
                raise PreskBug("denote", "zeros_like of a function")

    def each(self, value: Value) -> Value:
        if isinstance(value, Branch):
            return Branch(tuple((k, self.each(v)) for k, v in value.parts))
        assert isinstance(value, Tensor)
        return self.one(value)

    def one(self, x: Tensor) -> Tensor:
        if self.prim.op == "ones_like":
            return self.terms.make("ones", x.lengths, (), x.lengths)
        return self.terms.make(self.prim.op, self.prim.attrs, (x,), x.lengths)

    def leafwise(self, left: Value, right: Value) -> Value:
        if isinstance(left, Branch) and isinstance(right, Branch):
            other = dict(right.parts)
            return Branch(tuple((k, self.leafwise(v, other[k])) for k, v in left.parts))
        assert isinstance(left, Tensor)
        assert isinstance(right, Tensor)
        return self.sum_or_difference(left, right, left.lengths)

    def scaled(self, tree: Value, scalar: Tensor, *, first: bool) -> Value:
        if isinstance(tree, Branch):
            return Branch(tuple((k, self.scaled(v, scalar, first=first)) for k, v in tree.parts))
        assert isinstance(tree, Tensor)
        wide = self.terms.bcast(scalar, (), tree.lengths)
        pair = (tree, wide) if first else (wide, tree)
        return self.terms.make(self.prim.op, (), pair, tree.lengths)

    # ---------------------------------------------------------------------------------------------------- tensors

    def tensor(self, args: list[Tensor]) -> Value:
        op, attrs, terms = self.prim.op, self.prim.attrs, self.terms
        match op, args:
            case (("add" | "sub" | "mul" | "div"), [_, _]):
                return self.pair(args)
            case "const", []:
                return terms.make("const", (Fraction(attrs[0]),), (), ())  # type: ignore[arg-type]
            case "dim", [] if isinstance(attrs[0], Linear):
                return terms.make("dim", (attrs[0].substitute(self.frame.dims),), (), ())
            case (("real" | "retag"), [x]) if not isinstance(self.types()[0], Idx):
                return x
            case (("zeros" | "ones"), []):
                return self.of_type(self.binding.type)
            case "ones_like", [x]:
                return self.one(x)
            case (("dot" | "dot_vjp_l" | "dot_vjp_r"), [x, w]):
                return terms.make(op, (), (x, w), self.contraction(x, w))
            case (("sum" | "mean"), [x]):
                axis = self.axis(self.types()[0])
                kept = () if axis is None else tuple(n for i, n in enumerate(x.lengths) if i != axis)
                return terms.make(op, (axis,), (x,), kept)
            case (("broadcast_like" | "sum_to" | "mean_vjp"), [x, t]):
                return self.along(x, t)
            case (("normal" | "xavier_uniform"), [key]):
                lengths = self.frame.lengths(shape_of(self.binding.type))
                return terms.make(op, (*attrs, lengths), (key,), lengths)
            case _, [x]:
                return terms.make(op, attrs, (x,), x.lengths)
            case _:
                raise PreskBug("denote", f"no denotation for `{op}`")

    def of_type(self, ty: Type) -> Value:
        match ty:
            case Params(instance):
                names = field_names(self.modules, instance)
                types = [(n, field_type(self.modules, instance, n)) for n in names]
                return Branch(tuple((n, self.of_type(t)) for n, t in types if t is not None))
            case TupleOf(items):
                return Branch(tuple((str(i), self.of_type(t)) for i, t in enumerate(items)))
            case _:
                lengths = self.frame.lengths(shape_of(ty))
                return (
                    self.terms.zero(lengths)
                    if self.prim.op == "zeros"
                    else self.terms.make("ones", lengths, (), lengths)
                )

    def pair(self, args: list[Tensor]) -> Tensor:
        """Both operands lined up with the larger one, by their declared types."""
        shapes = [shape_of(t) for t in self.types()]
        large = 0 if self.rank(shapes[0]) >= self.rank(shapes[1]) else 1
        target, lengths = shapes[large], args[large].lengths
        wide: list[Tensor] = []
        for x, shape in zip(args, shapes, strict=True):
            where = align(shape, target, lambda a, b: a == b)
            if where is None:
                raise PreskBug("denote", f"`{self.binding.name}`: {shape} does not line up with {target}")
            wide.append(self.terms.bcast(x, self.frame.positions(where, shape, target), lengths))
        return self.sum_or_difference(wide[0], wide[1], lengths)

    def rank(self, shape: Shape) -> tuple[int, int]:
        return (0 if shape.prefix is None else 1, len(shape.axes))

    def sum_or_difference(self, left: Tensor, right: Tensor, lengths: Lengths) -> Tensor:
        if self.prim.op == "add" and left.id in self.terms.zeros:
            return right
        if self.prim.op in ("add", "sub") and right.id in self.terms.zeros:
            return left
        return self.terms.make(self.prim.op, (), (left, right), lengths)

    def axis(self, ty: Type) -> int | None:
        if not self.prim.attrs:
            return None
        shape = shape_of(ty)
        index = next((i for i, a in enumerate(shape.axes) if a.name == self.prim.attrs[0]), None)
        if index is None:
            raise PreskBug("denote", f"`{self.binding.name}`: no axis `{self.prim.attrs[0]}` in {ty}")
        return index + (len(self.frame.prefix) if shape.prefix is not None else 0)

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
