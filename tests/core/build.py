"""Random PSK-Core programs: arbitrary ones for the round trip through text, and well-typed ones that mean something.

In the well-typed ones every length is one dim D, so that nothing but names and prefixes says how operands line up.
"""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import strategies as st

from presk_rel.core.ein import EinSpec
from presk_rel.core.ir import (
    Apply,
    Attr,
    Binding,
    Call,
    Closure,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Param,
    Prim,
    Program,
    Vjp,
)
from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.core.shapes import absorb, prefixes_in, substitute
from presk_rel.core.typing_rules import infer
from presk_rel.elab.ty import (
    Applied,
    Axis,
    Composed,
    Hyper,
    Idx,
    Init,
    Key,
    Mask,
    ModuleDef,
    ParamField,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
    UseField,
)
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.smt.linear import Linear, constant, linear, symbol

# ------------------------------------------------------------------------------------------- arbitrary, for round trips

NAMES = st.sampled_from(
    ["x", "x̂", "θ", "ŷ", "%3", "%12", "x%7", "σ2", "_", "call", "axis", "fold", "return", "stacked", "dot", "const",
     "acc", "reverse", "scan", "fn", "param", "key", "mean", "tuple", "gelu'", "γ'", "params", "μ%40"]
)  # fmt: skip
DIMS = ("B", "D", "In", "hidden", "stack", "T_1")
FIELDS = st.sampled_from(["w", "b", "l1", "γ", "outer", "params", "mean"])
AXES = st.sampled_from(["batch", "model", "seq2", "axis", "in"])
PATHS = st.sampled_from(["f", "Linear.apply", "mse_grad.lambda0", "Linear.apply.vjp", "x̂", "fold", "init.call", "M%2"])
MODULES = st.sampled_from(["Linear", "MLP", "mlp.Linear", "stack", "T"])
rationals = st.fractions(max_denominator=1000)
decimals = st.builds(lambda m, e: Fraction(m) * Fraction(10) ** e, st.integers(-999, 999), st.integers(-30, 30))
forms = st.builds(
    linear, st.lists(st.tuples(st.sampled_from(DIMS), rationals), max_size=3), rationals
)  # fmt: skip
axes = st.lists(st.builds(Axis, st.none() | AXES, forms), max_size=3).map(tuple)
shapes = st.builds(Shape, st.none(), axes) | st.builds(Shape, st.sampled_from(["...", "S"]), axes, axes)
instances = st.recursive(
    st.builds(Applied, MODULES, st.lists(forms, max_size=2).map(tuple)),
    lambda inner: st.builds(Stacked, forms, inner) | st.builds(Composed, inner, inner),
    max_leaves=4,
)
types = st.recursive(
    st.builds(Real, shapes)
    | st.builds(Idx, forms, shapes)
    | st.builds(Mask, shapes)
    | st.sampled_from([Hyper("nat"), Hyper("int"), Hyper("rat"), Hyper("f64"), Hyper("bool"), Key()])
    | st.builds(Key, shapes)
    | st.builds(Params, instances),
    lambda inner: (
        st.builds(TupleOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(FunctionType, st.lists(inner, max_size=2).map(tuple), inner)
    ),
    max_leaves=5,
)
operand_lists = st.lists(NAMES, max_size=3).map(tuple)
dim_args = st.lists(st.tuples(st.sampled_from(DIMS), forms), max_size=2).map(tuple)


@st.composite
def ein_specs(draw: st.DrawFn) -> EinSpec:
    lists = st.lists(AXES, max_size=3, unique=True).map(tuple)
    operands_ = draw(st.lists(lists, min_size=1, max_size=3).map(tuple))
    known = sorted({name for axes_ in operands_ for name in axes_})
    return EinSpec(operands_, tuple(draw(st.lists(st.sampled_from(known), unique=True)) if known else ()))


@st.composite
def prims(draw: st.DrawFn) -> Prim:
    row = PRIMS[draw(st.sampled_from(sorted(PRIMS)))]
    attrs: list[object] = []
    for kind in row.attrs:
        match kind:
            case "axis?":
                attrs.extend([draw(AXES)] if draw(st.booleans()) else [])
            case "axis":
                attrs.append(draw(AXES))
            case "name":
                attrs.append(draw(FIELDS))
            case "int":
                attrs.append(draw(st.integers(0, 10**6)))
            case "rational":
                attrs.append(draw(rationals | decimals))
            case "dim":
                attrs.append(draw(forms))
            case "place":
                attrs.append(draw(AXES | st.integers(0, 9)))
            case "spec":
                attrs.append(str(draw(ein_specs())))
    n = draw(st.integers(0, 3)) if row.arity is None else row.arity
    args = draw(st.lists(NAMES, min_size=n, max_size=n))
    return Prim(row.name, tuple(attrs), tuple(args))  # type: ignore[arg-type]


ops = (
    prims()
    | st.builds(Call, PATHS, dim_args, operand_lists)
    | st.builds(Closure, PATHS, dim_args, operand_lists)
    | st.builds(Grad, NAMES)
    | st.builds(Vjp, NAMES)
    | st.builds(Jvp, NAMES)
    | st.builds(Apply, NAMES, operand_lists)
    | st.builds(Fold, forms, PATHS, dim_args, operand_lists, NAMES, operand_lists, st.booleans(), st.booleans())
)
notes = st.none() | st.sampled_from(["∂x", "adjoint of %3 (dot)", "a -- b", "return x", "fn f("])
bindings = st.builds(Binding, NAMES, types, ops, note=notes)
functions = st.builds(
    lambda name, params, result, bs, ret, uses, kernel: Function(
        name, DIMS, tuple(params), result, tuple(bs), ret, uses, kernel=kernel
    ),
    PATHS,
    st.lists(st.builds(Param, NAMES, types), max_size=2),
    types,
    st.lists(bindings, max_size=4),
    NAMES,
    st.sampled_from([(), ("Rand",), ("Rand", "x")]),
    st.booleans(),
)
inits = st.sampled_from(
    [Init("zeros"), Init("ones"), Init("normal", "0.02"), Init("normal", "3e-4"), Init("xavier_uniform")]
)
module_defs = st.builds(
    lambda name, explicit, fields: ModuleDef(name, DIMS, explicit, tuple(fields)),
    MODULES,
    st.integers(0, len(DIMS)),
    st.lists(
        st.builds(ParamField, FIELDS, st.builds(Real, shapes), inits) | st.builds(UseField, FIELDS, instances),
        max_size=3,
    ),
)
programs = st.builds(
    lambda ms, fs, bounds: Program({m.name: m for m in ms}, {f.name: f for f in fs}, tuple(bounds)),
    st.lists(module_defs, max_size=2),
    st.lists(functions, max_size=2),
    st.lists(st.tuples(st.sampled_from(DIMS), forms), max_size=2),
)

# --------------------------------------------------------------------------------------- well-typed, to be evaluated

D: Linear = symbol("D")
_NAMES = (None, None, "a", "b")
CELL = ModuleDef(
    "Cell",
    ("D",),
    1,
    (
        ParamField("w", Real(Shape(None, (Axis(None, D), Axis(None, D)))), Init("zeros")),
        ParamField("b", Real(Shape(None, (Axis("a", D),))), Init("zeros")),
    ),
)
PAIR = ModuleDef("Pair", ("D",), 1, (UseField("l", Applied("Cell", (D,))), UseField("r", Applied("Cell", (D,)))))
MODULE_TABLE = {"Cell": CELL, "Pair": PAIR}
_TREES = (Params(Applied("Cell", (D,))), Params(Applied("Pair", (D,))))


class Builder:
    """Grows a random well-typed program; every choice comes from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.functions: dict[str, Function] = {}

    def program(self, helpers: int = 3, steps: int = 9) -> Program:
        """Helper functions generic in their leading axes, and `main` of concrete shapes that calls them."""
        for i in range(helpers):
            self._function(f"f{i}", "...", steps)
        self._function("main", None, steps + 6)
        return Program(MODULE_TABLE, self.functions)

    def _shape(self, prefix: str | None, ranks: tuple[int, ...]) -> Real:
        axes_: list[Axis] = []
        for _ in range(self.r.choice(ranks)):
            name = self.r.choice(_NAMES)
            axes_.append(Axis(None if name in [a.name for a in axes_] else name, D))
        return Real(Shape(prefix, tuple(axes_)))

    def _function(self, name: str, prefix: str | None, steps: int) -> None:
        ranks = (0, 1, 1, 2) if prefix else (0, 1, 2, 2, 3)
        chosen = [self._shape(prefix, ranks), self._shape(prefix, ranks), self._shape(None, (0, 1, 2))]
        params = [Param(f"x{i}", t) for i, t in enumerate(chosen)]
        params.append(Param("θ", self.r.choice(_TREES)))
        scope: dict[str, Type] = {p.name: p.type for p in params}
        done: list[Binding] = []
        for _ in range(steps):
            made = self._step(scope)
            if made is not None:
                b = Binding(f"%{len(scope)}", *made)
                done.append(b)
                scope[b.name] = b.type
        ret = done[-1].name if done else "x0"
        self.functions[name] = Function(name, ("D",), tuple(params), scope[ret], tuple(done), ret)

    def _step(self, scope: dict[str, Type]) -> tuple[Type, Op] | None:
        for _ in range(20):
            made = self.r.choice((self._prim, self._prim, self._prim, self._call))(scope)
            if made is not None:
                return made
        return None

    def _prim(self, scope: dict[str, Type]) -> tuple[Type, Op] | None:
        name = self.r.choice(
            ("add", "sub", "mul", "tanh", "sin", "neg", "dot", "dot_vjp_l", "dot_vjp_r", "mean", "sum", "mean_vjp",
             "broadcast_like", "sum_to", "zeros_like", "field", "set_field", "tuple", "proj", "set_elem", "add",
             "sum_to", "ones_like", "field", "max", "min", "lt", "softmax", "softmax", "concat", "index", "slice",
             "sqrt", "scatter_index", "slice_vjp", "ein", "sum_squares", "pow")
        )  # fmt: skip
        row = PRIMS[name]
        args = tuple(self._recent(scope) for _ in range(row.arity if row.arity is not None else 2))
        if name == "softmax" and self.r.random() < 0.3:
            args = args[:1]
        attrs = [a for kind in row.attrs for a in self._attribute(kind)]
        types_ = tuple(scope[a] for a in args)
        ty = infer(row, tuple(attrs), types_, types_[0], MODULE_TABLE)
        if isinstance(ty, str) or _too_big(ty) or not _defined(name, attrs):
            return None
        return ty, Prim(name, tuple(attrs), args)

    def _attribute(self, kind: AttrKind) -> list[Attr]:
        r = self.r
        match kind:
            case "axis?":
                return r.choice(([], ["a"], ["b"]))
            case "axis":
                return [r.choice(("a", "b"))]
            case "name":
                return [r.choice(("w", "b", "l", "r"))]
            case "place":
                return [r.choice(("a", "b", 0, 1))]
            case "dim":
                return [r.choice((constant(0), constant(1), constant(-1)))]
            case "spec":
                return [r.choice(("a b, b c -> c a", "a b, a b -> a b", "a b, b -> a", "a, b -> b a", "a b c, c -> b"))]
            case _:
                return [r.randrange(2)]

    def _recent(self, scope: dict[str, Type]) -> str:
        names = list(scope)
        return self.r.choice(names[-5:] if self.r.random() < 0.5 else names)

    def _call(self, scope: dict[str, Type]) -> tuple[Type, Op] | None:
        if not self.functions:
            return None
        callee = self.functions[self.r.choice(list(self.functions))]
        args: list[str] = []
        prefixes: dict[str, Shape] = {}
        for p in callee.params:
            fits = [v for v in scope if absorb([p.type], [scope[v]], dict(prefixes)) is None]
            if not fits:
                return None
            args.append(self.r.choice(fits))
            absorb([p.type], [scope[args[-1]]], prefixes)
        result = substitute(callee.result, {}, prefixes)
        if prefixes_in(result) - {"..."} or _too_big(result):
            return None
        return result, Call(callee.name, (("D", D),), tuple(args))


def _defined(op: str, attrs: list[Attr]) -> bool:
    """Whether a selection lies in any axis that is not empty."""
    bounds = [d.const for d in attrs if isinstance(d, Linear) and d.is_constant]
    match op:
        case "index" | "scatter_index":
            return bounds in ([0], [-1])
        case "slice" | "slice_vjp":
            return bounds == [0, 1]
        case _:
            return True


def _too_big(ty: Type) -> bool:
    match ty:
        case Real(shape):
            return len(shape.axes) > 4
        case TupleOf(items):
            return len(str(ty)) > 120 or any(_too_big(t) for t in items)
        case _:
            return False


def well_typed(seed: int) -> Program:
    return Builder(seed).program()
