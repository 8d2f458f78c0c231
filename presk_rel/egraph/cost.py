"""What an operation costs: launches, bytes moved and arithmetic, as plain Python over shapes.

The model is a machine with a launch overhead of 5 µs, 1 TB/s of memory traffic and 10 Tflop/s; only ratios matter. One
cost unit is 0.1 ps: a launch is 50,000,000 units, a byte 10, a floating-point operation 1. A real is 4 bytes, an index
8, a mask 1. A view costs nothing. Unbound dimensions count as `NOMINAL` each (a `...` prefix as one axis of it): they
decide which program is chosen, never whether it is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, prod

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ein import ein_spec
from presk_rel.core.expand import own_operations
from presk_rel.core.ir import Attr, Fold, Function, Op, Prim, operands
from presk_rel.core.prims import PRIMS
from presk_rel.egraph.contract.price import Price, priced
from presk_rel.egraph.language import INPUT
from presk_rel.egraph.places import lying_stacks
from presk_rel.elab.ty import Idx, Mask, ModuleDef, Params, Real, Shape, TupleOf, Type, leaves
from presk_rel.smt.linear import Linear

NOMINAL = 64
LAUNCH, BYTE, FLOP = 50_000_000, 10, 1
LARGEST = 10**14
"""The cost of one operation saturates here: sums stay far from 64 bits."""

_FLOPS_PER_ENTRY = {
    **dict.fromkeys(
        [
            "add",
            "sub",
            "mul",
            "div",
            "neg",
            "abs",
            "relu",
            "heaviside",
            "sign",
            "sum",
            "mean",
            "sum_to",
            "mean_vjp",
            "sqrt",
        ],
        1,
    ),
    **dict.fromkeys(["exp", "log", "sin", "cos", "tanh", "sigmoid", "normal_pdf"], 8),
    **dict.fromkeys(["gelu", "gelu'"], 14),
    **dict.fromkeys(["softmax", "cross_entropy", "cross_entropy_vjp"], 10),
    **dict.fromkeys(
        ["max", "min", "lt", "le", "gt", "ge", "eq", "argmax", "embed_vjp", "dropout_mask", "sum_squares"], 1
    ),
}
"""Arithmetic per entry of the largest operand or result; contractions are counted apart, everything else moves data."""

CONTRACTIONS = frozenset(("dot", "dot_vjp_l", "dot_vjp_r", "ein"))


@dataclass(frozen=True, slots=True)
class Work:
    """What one operation, or a program, does; `contracting` is the part of `flops` that contractions do,
    `matrices` the part of that which products of matrices do."""

    kernels: int = 0
    flops: int = 0
    bytes: int = 0
    contracting: int = 0
    matrices: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.kernels + other.kernels,
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.contracting + other.contracting,
            self.matrices + other.matrices,
        )

    def times(self, n: int) -> Work:
        return Work(*(n * x for x in (self.kernels, self.flops, self.bytes, self.contracting, self.matrices)))

    @property
    def units(self) -> int:
        return min(LARGEST, LAUNCH * self.kernels + BYTE * self.bytes + FLOP * self.flops)


@dataclass(slots=True)
class CostModel:
    """Costs at given dimensions, with those of functions by name kept: what a fold costs is asked for at every level of
    a nest. `stacked` are the stacks that their folds write (`folds.residuals`)."""

    modules: dict[str, ModuleDef]
    dims: dict[str, int]
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    _bytes: dict[Type, int] = field(default_factory=dict[Type, int])
    _seen: dict[int, tuple[Type, int]] = field(default_factory=dict[int, tuple[Type, int]])
    _eins: dict[tuple[object, ...], tuple[tuple[Type, ...], Price]] = field(
        init=False, default_factory=dict[tuple[object, ...], tuple[tuple[Type, ...], Price]]
    )
    _works: dict[str, Work] = field(init=False, default_factory=dict[str, Work])
    stacked: dict[str, int] = field(init=False, default_factory=dict[str, int])

    def learn(self, functions: Mapping[str, Function]) -> None:
        """Functions that are new, or others than before."""
        if all(self.functions.get(name) == f for name, f in functions.items()):
            return
        self.functions.update(functions)
        self._works.clear()
        self.stacked.clear()

    def length(self, form: Linear) -> int:
        """A length, rounded up where unbound dimensions make it no natural number."""
        values = {s: self.dims.get(s, NOMINAL) for s in form.symbols}
        return max(0, ceil(form.evaluate(values)))

    def entries(self, shape: Shape) -> int:
        lead = 1 if shape.prefix is None else NOMINAL
        return lead * prod(self.length(a.length) for a in (*shape.front, *shape.axes))

    def bytes(self, ty: Type) -> int:
        """The size of a value in memory. (Types are mostly one object; hashing them costs more than all else here.)"""
        seen = self._seen.get(id(ty))
        if seen is not None and seen[0] is ty:
            return seen[1]
        known = self._bytes.get(ty)
        if known is None:
            known = self._bytes[ty] = self._size(ty)
        self._seen[id(ty)] = (ty, known)
        return known

    def _size(self, ty: Type) -> int:
        match ty:
            case Real(shape):
                return 4 * self.entries(shape)
            case Idx(_, shape):
                return 8 * self.entries(shape)
            case Mask(shape):
                return self.entries(shape)
            case TupleOf(items):
                return sum(self.bytes(t) for t in items)
            case Params(instance):
                return sum(self.bytes(t) for _, t in leaves(self.modules, instance))
            case _:
                return 0

    def items(self, ty: Type) -> int:
        """The number of entries of real tensors."""
        return self.bytes(ty) // 4

    def work(self, op: str, attrs: tuple[Attr, ...], operand_types: tuple[Type, ...], result: Type) -> Work:
        """The work of one operation; operands that are read for their type only move nothing."""
        row = PRIMS.get(op)
        if op == INPUT or (row is not None and row.view) or _renames(op, operand_types, result):
            return Work()
        if op == "fold":
            return self._fold(attrs)
        read = [t for i, t in enumerate(operand_types) if row is None or i not in row.shape_only]
        if op in COMPOSITES:
            return self._composite(op, attrs, operand_types, result)
        moved = sum(map(self.bytes, read)) + self.bytes(result)
        if op == "ein":
            price = self._ein(str(attrs[0]), tuple(read))
            return Work(price.launches, price.flops, 4 * price.moved, price.flops, price.matrices)
        return replace(self._arithmetic(op, attrs, tuple(read), result), kernels=1, bytes=moved)

    def _composite(self, op: str, attrs: tuple[Attr, ...], operand_types: tuple[Type, ...], result: Type) -> Work:
        """The arithmetic of its definition, in one launch; of what shares another's call, only the result is moved."""
        done = Work()
        for inner, given, types, own in own_operations(op, attrs, operand_types, self.modules):
            done += self._arithmetic(inner, given, self._read(inner, types), own)
        if COMPOSITES[op].shares:
            return replace(done, bytes=self.bytes(result))
        return replace(done, kernels=1, bytes=sum(map(self.bytes, self._read(op, operand_types))) + self.bytes(result))

    def _read(self, op: str, operand_types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of the operands whose values are read."""
        return tuple(t for i, t in enumerate(operand_types) if i not in PRIMS[op].shape_only)

    def _fold(self, attrs: tuple[Attr, ...]) -> Work:
        """As many times its body as it counts."""
        count, body = attrs[0], attrs[1]
        if not isinstance(count, Linear) or str(body) not in self.functions:
            return Work(1)
        for name in self.nested(str(body)) if str(body) not in self._works else ():
            if name not in self._works:
                self._works[name] = self.function(self.functions[name])
        return self._works[str(body)].times(self.length(count))

    def nested(self, body: str) -> list[str]:
        """The bodies of folds under one, those inside first, and itself."""
        order: dict[str, None] = {}
        stack = [(body, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                order.setdefault(name)
            elif name not in order and name in self.functions:
                below = {b.op.body for b in self.functions[name].bindings if isinstance(b.op, Fold)}
                stack += [(name, True), *((n, False) for n in sorted(below))]
        return list(order)

    def _arithmetic(self, op: str, attrs: tuple[Attr, ...], read: tuple[Type, ...], result: Type) -> Work:
        """The arithmetic of an operation, without launches and traffic."""
        if op == "ein":
            price = self._ein(str(attrs[0]), read)
            return Work(flops=price.flops, contracting=price.flops, matrices=price.matrices)
        flops = self._flops(op, attrs, read, result)
        if op not in CONTRACTIONS:
            return Work(flops=flops)
        return Work(flops=flops, contracting=flops, matrices=flops if _multiplies_matrices(op, read) else 0)

    def _flops(self, op: str, attrs: tuple[Attr, ...], read: tuple[Type, ...], result: Type) -> int:
        entries = [self.bytes(t) // 4 for t in (*read, result)]
        match op:
            case "dot":
                return 2 * entries[-1] * self._contracted(read[1])
            case "dot_vjp_l":
                return 2 * entries[0] * self._contracted(read[1]) if _rank(read[1]) > 1 else entries[-1]
            case "dot_vjp_r":
                summed = 2 * entries[0] * entries[-1] // max(1, self._contracted(result))
                return summed if _rank(read[0]) > 1 else entries[-1]
            case "pow":
                n = attrs[0]
                return max(entries) * max(1, min(int(n), 64).bit_length() if isinstance(n, int) else 1)
            case _:
                return max(entries) * _FLOPS_PER_ENTRY.get(op, 0)

    def _ein(self, text: str, read: tuple[Type, ...]) -> Price:
        """A contraction as executors run it, two factors at a time. (Types are mostly one object, as in `bytes`.)"""
        key = (text, *map(id, read))
        if key not in self._eins:
            self._eins[key] = (read, self._price(text, read))
        return self._eins[key][1]

    def _price(self, text: str, read: tuple[Type, ...]) -> Price:
        spec = ein_spec(text)
        lengths: dict[str, int] = {}
        for names, ty in zip(spec.operands if spec else (), read, strict=True):
            if isinstance(ty, Real):
                lengths |= {n: self.length(a.length) for n, a in zip(names, ty.shape.axes, strict=False)}
        return priced(spec.operands, spec.result, lengths.__getitem__) if spec else Price()

    def _contracted(self, weight: Type) -> int:
        """The length of the first axis of a matrix."""
        return self.length(weight.shape.axes[0].length) if isinstance(weight, Real) else 1

    def function(self, function: Function) -> Work:
        """The work of a flat function: one kernel per binding that is no view. A stack of tensors that lie at equal
        distances in their tree's buffer is one."""
        types = {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}
        total = Work()
        views = lying_stacks(function, self.modules, self.items)
        biases = self._biases(function, types)
        for b in function.bindings:
            if b.name in views:
                continue
            name, attrs = operation(b.op)
            work = self.work(name, attrs, tuple(types[v] for v in operands(b.op)), b.type)
            total += self.bias(work, biases[b.name]) if b.name in biases else work
        return total

    def bias(self, work: Work, ty: Type) -> Work:
        """The work of adding what is smaller, of this type, to a contraction as that is written: only it is read."""
        return Work(0, work.flops, self.bytes(ty))

    def _biases(self, function: Function, types: Mapping[str, Type]) -> dict[str, Type]:
        """The sums of a contraction of stacks, which nothing else reads, and something smaller, with the type of that.
        (`linear` is the same without stacks.)"""
        uses = Counter(v for b in function.bindings for v in operands(b.op))
        made = {b.name for b in function.bindings if isinstance(b.op, Prim) and b.op.op == "ein" and uses[b.name] == 1}
        found: dict[str, Type] = {}
        for b in function.bindings if made else ():
            if isinstance(b.op, Prim) and b.op.op == "add" and b.op.args[0] in made - {function.ret}:
                small = types[b.op.args[1]]
                found |= {b.name: small} if self.bytes(small) < self.bytes(b.type) else {}
        return found


def _rank(ty: Type) -> int:
    """The number of axes, a prefix counted as one."""
    return len(ty.shape.axes) + (ty.shape.prefix is not None) if isinstance(ty, Real) else 0


def _multiplies_matrices(op: str, read: tuple[Type, ...]) -> bool:
    """Whether both factors of a contraction have axes of their own, and some are summed."""
    left, right = map(_rank, read)
    match op:
        case "dot":
            return left > 1 and right > 1
        case "dot_vjp_l":
            return left >= right > 1
        case _:
            return right >= left > 1


def _renames(op: str, operand_types: tuple[Type, ...], result: Type) -> bool:
    """A sum over no axis, a repetition along none: the same tensor under other names of axes, or another order."""
    match operand_types[:1], result:
        case (Real(x),), Real(y) if op in ("sum_to", "broadcast_like"):
            return x.prefix == y.prefix and (len(x.front), len(x.axes)) == (len(y.front), len(y.axes))
        case _:
            return False


def operation(op: Op) -> tuple[str, tuple[Attr, ...]]:
    """What the model calls an operation, and its attributes."""
    match op:
        case Prim(name, attrs, _):
            return name, attrs
        case Fold():
            return "fold", (op.count, op.body)
        case _:
            return "call", ()
