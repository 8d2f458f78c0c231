"""An optimizer block as three functions of PSK-Core (spec: "The optimizer"): AdamW over P = params M.

    adamw.init(θ : P) -> (P, P)                                     moments at zero
    adamw.lr(t : nat, total : nat) -> ℝ[]                           the schedule; t counts from 1
    adamw.step(θ : P, s : (P, P), g : P, t : nat, total : nat) -> (P, (P, P))

Arithmetic on trees is structural. Where the spec distinguishes cases, min(1, x) = 1 - relu(1 - x) does, and
max(0, x) = relu(x).
"""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.ir import Binding, Call, Function, Param, Prim
from presk_rel.core.names import Fresh, Numbered
from presk_rel.core.shapes import symbols_in
from presk_rel.elab.ty import SCALAR_REAL, Hyper, Params, TupleOf, Type
from presk_rel.types.tree import OptimizerSpec

NAT = Hyper("nat")
NORM_EPS = Fraction(1, 10**6)
"""What `clip_grad_norm_` adds to the norm it divides by."""


def optimizer_functions(spec: OptimizerSpec, names: Fresh) -> list[Function]:
    """`NAME.init`, `NAME.lr` and `NAME.step` of a block; new names where another block has them."""
    prefix = spec.name
    while any(f"{prefix}.{part}" in names for part in ("init", "lr", "step")):
        prefix = f"{prefix}'"
    made = [_init(spec, prefix), _rate(spec, prefix), _step(spec, prefix)]
    for f in made:
        names.add(f.name)
    return made


class _Builder:
    """The bindings of one function. Numbers are bound once."""

    def __init__(self, *params: tuple[str, Type]) -> None:
        self.names = Numbered()
        self.params = tuple(Param(self.names.new(name), ty) for name, ty in params)
        self.bindings: list[Binding] = []
        self.types = {p.name: p.type for p in self.params}
        self.numbers: dict[Fraction, str] = {}

    def emit(self, ty: Type, op: Prim | Call, want: str | None = None) -> str:
        name = self.names.new(want)
        self.bindings.append(Binding(name, ty, op))
        self.types[name] = ty
        return name

    def number(self, value: Fraction | int) -> str:
        value = Fraction(value)
        if value not in self.numbers:
            self.numbers[value] = self.emit(SCALAR_REAL, Prim("const", (value,), ()))
        return self.numbers[value]

    def real(self, hyper: str) -> str:
        return self.emit(SCALAR_REAL, Prim("real", (), (hyper,)))

    def unary(self, op: str, x: str, want: str | None = None) -> str:
        return self.emit(self.types[x], Prim(op, (), (x,)), want)

    def binary(self, op: str, x: str, y: str, want: str | None = None) -> str:
        """Of two trees, two scalars, or a tree and a scalar."""
        tree = x if self.types[x] != SCALAR_REAL else y
        return self.emit(self.types[tree], Prim(op, (), (x, y)), want)

    def at_most_1(self, x: str, want: str | None = None) -> str:
        """min(1, x)."""
        one = self.number(1)
        return self.binary("sub", one, self.unary("relu", self.binary("sub", one, x)), want)

    def proj(self, pair: str, i: int, want: str) -> str:
        ty = self.types[pair]
        assert isinstance(ty, TupleOf)
        return self.emit(ty.items[i], Prim("proj", (i,), (pair,)), want)

    def function(self, name: str, dims: tuple[str, ...], ret: str) -> Function:
        return Function(name, dims, self.params, self.types[ret], tuple(self.bindings), ret)


def _dims(tree: Params) -> tuple[str, ...]:
    return tuple(sorted(symbols_in(tree)))


def _init(spec: OptimizerSpec, prefix: str) -> Function:
    b = _Builder(("θ", spec.model))
    m, v = (b.emit(spec.model, Prim("zeros_like", (), ("θ",)), name) for name in ("m", "v"))
    pair = b.emit(TupleOf((spec.model, spec.model)), Prim("tuple", (), (m, v)))
    return b.function(f"{prefix}.init", _dims(spec.model), pair)


# -------------------------------------------------------------------------------------------------------- schedules


def _rate(spec: OptimizerSpec, prefix: str) -> Function:
    """lr · min(1, t/w), times what is left of it after the warmup. A number of steps that a schedule divides by is at
    least 1, so that a run no longer than its warmup has a rate too."""
    b = _Builder(("t", NAT), ("total", NAT))
    rate = b.number(spec.lr)
    if spec.schedule == "constant":
        return b.function(f"{prefix}.lr", (), rate)
    t, total, w = b.real("t"), b.real("total"), b.number(spec.warmup)
    if spec.warmup > 0:
        rate = b.binary("mul", rate, b.at_most_1(b.binary("div", t, w), "warm"))
    span = _at_least_1(b, b.binary("sub", total, w))
    decay = _linear(b, t, total, span) if spec.schedule == "linear" else _cosine(b, t, w, span)
    return b.function(f"{prefix}.lr", (), b.binary("mul", rate, decay))


def _at_least_1(b: _Builder, x: str) -> str:
    one = b.number(1)
    return b.binary("add", one, b.unary("relu", b.binary("sub", x, one)), "span")


def _linear(b: _Builder, t: str, total: str, span: str) -> str:
    """(total - t)/(total - w) after the warmup, 1 before."""
    return b.at_most_1(b.binary("div", b.binary("sub", total, t), span), "decay")


def _cosine(b: _Builder, t: str, w: str, span: str) -> str:
    """½(1 + cos(π (t - w)/(total - w))) after the warmup, 1 before."""
    after = b.unary("relu", b.binary("sub", t, w))
    angle = b.binary("mul", b.emit(SCALAR_REAL, Prim("pi", (), ())), b.binary("div", after, span))
    return b.binary("mul", b.number(Fraction(1, 2)), b.binary("add", b.number(1), b.unary("cos", angle)), "decay")


# ------------------------------------------------------------------------------------------------------------- step


def _step(spec: OptimizerSpec, prefix: str) -> Function:
    tree, moments = spec.model, TupleOf((spec.model, spec.model))
    b = _Builder(("θ", tree), ("s", moments), ("g", tree), ("t", NAT), ("total", NAT))
    g = _clipped(b, "g", spec.grad_clip)
    t = b.real("t")
    β1, β2 = spec.betas
    m = _moment(b, b.proj("s", 0, "m"), g, β1)
    v = _moment(b, b.proj("s", 1, "v"), b.emit(tree, Prim("pow", (2,), (g,))), β2)
    m̂, v̂ = _unbiased(b, m, t, β1, "m̂"), _unbiased(b, v, t, β2, "v̂")
    change = b.binary("div", m̂, b.binary("add", b.unary("sqrt", v̂), b.number(spec.eps)))
    if spec.weight_decay:
        change = b.binary("add", change, b.binary("mul", b.number(spec.weight_decay), "θ"))
    lr = b.emit(SCALAR_REAL, Call(f"{prefix}.lr", (), ("t", "total")), "lr")
    after = b.binary("sub", "θ", b.binary("mul", lr, change))
    state = b.emit(moments, Prim("tuple", (), (m, v)))
    both = b.emit(TupleOf((tree, moments)), Prim("tuple", (), (after, state)))
    return b.function(f"{prefix}.step", _dims(tree), both)


def _clipped(b: _Builder, g: str, most: Fraction | None) -> str:
    """g · min(1, c / (‖g‖ + 1e-6)), the norm over the whole tree."""
    if most is None:
        return g
    norm = b.unary("sqrt", b.emit(SCALAR_REAL, Prim("sum_squares", (), (g,))), "norm")
    factor = b.at_most_1(b.binary("div", b.number(most), b.binary("add", norm, b.number(NORM_EPS))))
    return b.binary("mul", factor, g)


def _moment(b: _Builder, before: str, new: str, β: Fraction) -> str:
    """β · before + (1 - β) · new."""
    kept = b.binary("mul", b.number(β), before)
    return b.binary("add", kept, b.binary("mul", b.number(1 - β), new))


def _unbiased(b: _Builder, moment: str, t: str, β: Fraction, name: str) -> str:
    """moment / (1 - βᵗ), the power as exp(t · log β)."""
    if β == 0:
        return moment
    power = b.unary("exp", b.binary("mul", t, b.unary("log", b.number(β))))
    return b.binary("div", moment, b.binary("sub", b.number(1), power), name)
