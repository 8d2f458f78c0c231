"""Random well-typed PSK-Core: compositions of every primitive, calls, closures, tuples, trees, prefixes, folds."""

from __future__ import annotations

from random import Random

from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Param, Program
from presk_rel.core.shapes import stack_type
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import Params, Real, TupleOf, Type, field_names
from tests.ad.programs import LINEAR, MLP, D, mlp, real
from tests.ad.random_body import DIMS, GENERIC, LAYER, NET, OTHER, PLAIN, SAME, TWO, Body, S, V, W
from tests.ad.random_steps import CHOICES

_SMOOTH = ("gelu", "relu", "tanh", "sigmoid", "sin", "cos", "abs", "gelu'", "normal_pdf", "heaviside", "sign", "neg")


def _pointwise(b: Body) -> None:
    b.prim(b.rng.choice(_SMOOTH), b.real())


def _exponential(b: Body) -> None:
    b.prim("exp", b.prim("sin", b.real()) or b.real())


def _root(b: Body) -> None:
    b.prim(b.rng.choice(("sqrt", "log")), b.positive())


def _power(b: Body) -> None:
    b.prim("pow", b.prim("tanh", b.real()) or b.real(), attrs=(b.rng.randrange(4),))


def _binary(b: Body) -> None:
    b.prim(b.rng.choice(("add", "sub", "mul")), b.real(), b.real())


def _quotient(b: Body) -> None:
    b.prim("div", b.real(), b.positive())


def _contraction(b: Body) -> None:
    b.prim(b.rng.choice(("dot", "dot_vjp_l", "dot_vjp_r")), b.real(), b.real())


def _reduction(b: Body) -> None:
    attrs = b.rng.choice(((), ("batch",), ("model",)))
    b.prim(b.rng.choice(("sum", "mean")), b.real(), attrs=attrs)


def _shape(b: Body) -> None:
    op = b.rng.choice(("sum_to", "broadcast_like", "mean_vjp"))
    b.prim(op, b.real(), b.real(), attrs=() if op == "sum_to" else b.rng.choice(((), ("model",))))


def _fill(b: Body) -> None:
    b.prim(b.rng.choice(("zeros_like", "ones_like")), b.rng.choice(b.values)[0])


def _tuple(b: Body) -> None:
    b.prim("tuple", *(b.rng.choice(b.values)[0] for _ in range(b.rng.randrange(1, 4))))


def _part(b: Body) -> None:
    whole = b.some(lambda t: isinstance(t, TupleOf) and bool(t.items))
    if whole is None:
        return
    ty = b.type(whole)
    assert isinstance(ty, TupleOf)
    i = b.rng.randrange(len(ty.items))
    value = b.some(lambda t: t == ty.items[i])
    if value is not None and b.rng.random() < 0.4:
        b.prim("set_elem", whole, value, attrs=(i,))
    else:
        b.prim("proj", whole, attrs=(i,))


def _field(b: Body) -> None:
    tree = b.some(lambda t: isinstance(t, Params))
    if tree is None:
        return
    ty = b.type(tree)
    assert isinstance(ty, Params)
    name = b.rng.choice(field_names(b.program.modules, ty.instance))
    value = b.prim("field", tree, attrs=(name,))
    other = b.some(lambda t: t == b.type(value or tree))
    if value is not None and other is not None and b.rng.random() < 0.5:
        b.prim("set_field", tree, other, attrs=(name,))


def _tree(b: Body) -> None:
    tree, scalar = b.some(lambda t: isinstance(t, Params)), b.some(lambda t: t == S)
    if tree is None:
        return
    other = b.some(lambda t: t == b.type(tree))
    if scalar is None or b.rng.random() < 0.5:
        b.prim(b.rng.choice(("add", "sub")), tree, other or tree)
    else:
        b.prim("mul", *b.rng.choice(((tree, scalar), (scalar, tree))))


def _record(b: Body) -> None:
    w, bias = b.some(lambda t: t == W), b.some(lambda t: t == V)
    if w is not None and bias is not None:
        b.prim("record", w, bias, declared=LAYER)


def _layer(b: Body) -> None:
    theta = b.some(lambda t: t in (LAYER, NET))
    x = b.some(lambda t: isinstance(t, Real) and bool(t.shape.axes) and t.shape.axes[-1].length == D)
    if theta is None or x is None:
        return
    ty = b.type(x)
    assert isinstance(ty, Real)
    out = Real(type(ty.shape)(ty.shape.prefix, (*ty.shape.axes[:-1], real(D).shape.axes[0])))
    dims = (("In", D), ("Out", D)) if b.type(theta) == LAYER else (("D", D), ("hidden", D))
    b.emit(Call("Linear.apply" if b.type(theta) == LAYER else "MLP.apply", dims, (theta, x)), out)


def _call(b: Body) -> None:
    made = [f for f in b.program.functions.values() if f.dims == tuple(DIMS)]
    if not made:
        return
    f = b.rng.choice(made)
    args = [b.some(lambda t, p=p: t == p.type) for p in f.params]
    given = tuple(a for a in args if a is not None)
    if len(given) < len(args):
        return
    if b.rng.random() < 0.5:
        b.emit(Call(f.name, SAME, given), f.result)
        return
    k = b.rng.randrange(len(given) + 1)
    value = FunctionType(tuple(p.type for p in f.params[k:]), f.result)
    name = f"f%{len(b.values)}"
    b.bindings.append(Binding(name, value, Closure(f.name, SAME, given[:k])))
    b.emit(Apply(name, given[k:]), f.result)


def _fold(b: Body) -> None:
    """A fold of an earlier function, its first parameter stacked where there is such a stack."""
    made = [f for f in b.program.functions.values() if f.dims == tuple(DIMS)]
    if not made:
        return
    f = b.rng.choice(made)
    reverse, scan = b.rng.random() < 0.5, b.rng.random() < 0.5
    for n in (1, 0):
        if len(f.params) <= n or f.params[n].type != f.result:
            continue
        wanted = [*(stack_type(TWO, p.type) for p in f.params[:n]), *(p.type for p in f.params[n:])]
        args = [b.some(lambda t, w=w: t == w) for w in wanted]
        given = tuple(a for a in args if a is not None)
        stack = stack_type(TWO, f.result)
        if len(given) == len(args) and (stack is not None or not scan):
            ty = TupleOf((f.result, stack)) if scan and stack is not None else f.result
            b.emit(Fold(TWO, f.name, SAME, given[:n], given[n], given[n + 1 :], reverse, scan), ty)
            return


STEPS = (
    _pointwise, _pointwise, _exponential, _root, _power, _binary, _binary, _quotient, _contraction, _reduction, _shape,
    _fill, _tuple, _part, _part, _field, _field, _tree, _record, _layer, _call, _call,
    _fold, _fold, *CHOICES,
)  # fmt: skip


def random_function(
    rng: Random, program: Program, name: str, types: list[Type], size: int, result: Type | None
) -> Function:
    """A function of parameters of these types. Without `result`, the sum of means of some values; with it, a value of
    that type (the parameter of that type, if nothing else)."""
    params = [Param(f"p{i}", ty) for i, ty in enumerate(types)]
    b = Body(rng, program, params)
    for _ in range(size):
        rng.choice(STEPS)(b)
    ret = b.some(lambda t: t == result) if result is not None else None
    if ret is not None and result is not None:
        return Function(name, tuple(DIMS), tuple(params), result, tuple(b.bindings), ret)
    total = b.const(1)
    for n, ty in list(b.values):
        if isinstance(ty, Real) and rng.random() < 0.5:
            total = b.prim("add", total, b.prim("mean", n) or total) or total
    return Function(name, tuple(DIMS), tuple(params), S, tuple(b.bindings), total)


def random_program(rng: Random, size: int = 8) -> Program:
    """Two functions that others call and `loss`, whose last parameter is what one differentiates by."""
    base = mlp()
    functions = {n: base.functions[n] for n in ("Linear.apply", "MLP.apply")}
    program = Program({m.name: m for m in (LINEAR, MLP)}, functions)
    for i in range(2):
        pool = GENERIC if rng.random() < 0.3 else PLAIN
        types = [rng.choice(pool if rng.random() < 0.8 else OTHER) for _ in range(rng.randrange(1, 4))]
        result = types[min(i, len(types) - 1)] if rng.random() < 0.7 else rng.choice(types)
        made = random_function(rng, program, f"g{i}", types, size // 2, result)
        program = Program(program.modules, program.functions | {made.name: made})
    types = [*OTHER, *(rng.choice(PLAIN) for _ in range(rng.randrange(1, 5)))]
    loss = random_function(rng, program, "loss", types, size, None)
    return Program(program.modules, program.functions | {"loss": loss})
