"""Derivative rows of the primitives that work entry by entry (spec: "Automatic differentiation"). `ct` is the cotangent
of the result, of the result's shape; a binary operand's is summed down to the operand's shape."""

from __future__ import annotations

from collections.abc import Callable

from presk_rel.ad.builder import Builder
from presk_rel.ad.row import Flat, Row, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import SCALAR_REAL, Params, Real, TupleOf, Type, field_names, field_type

# ------------------------------------------------------------------------------------------------------- arithmetic


def _summed(b: Builder, v: Var, operand: Var) -> Var:
    """`v` summed down to the operand's shape; pruning removes it between equal types."""
    return b.prim("sum_to", b.types[operand], v, operand)


def _is_tree(ty: Type) -> bool:
    return isinstance(ty, (Params, TupleOf))


def _pass(b: Builder, s: Site, i: int) -> Var:
    """x + y: the cotangent itself."""
    return s.ct if _is_tree(b.types[s.args[i]]) else _summed(b, s.ct, s.args[i])


def _subtrahend(b: Builder, s: Site, i: int) -> Var:
    """x - y with respect to y: -ct (a tree has no `neg`: 0 - ct)."""
    y = s.args[i]
    ty = tangent(b.types[y])
    if _is_tree(ty):
        return b.prim("sub", ty, b.prim("zeros_like", ty, y), s.ct)
    return b.prim("neg", ty, _summed(b, s.ct, y))


def _factor(b: Builder, s: Site, i: int) -> Var:
    """x · y: ct · the other one; of a tree and a scalar, the scalar's is the inner product of ct and the tree."""
    x, y = s.args[i], s.args[1 - i]
    if _is_tree(b.types[x]):
        return b.prim("mul", tangent(b.types[x]), s.ct, y)
    if _is_tree(b.types[y]):
        return _inner(b, s.ct, y)
    return _summed(b, b.prim("mul", b.types[s.result], s.ct, y), x)


def _dividend(b: Builder, s: Site, i: int) -> Var:
    """x / y with respect to x: ct / y."""
    x, y = s.args
    if _is_tree(b.types[x]):
        return b.prim("div", tangent(b.types[x]), s.ct, y)
    return _summed(b, b.prim("div", b.types[s.result], s.ct, y), x)


def _divisor(b: Builder, s: Site, i: int) -> Var:
    """r = x / y with respect to y: -ct · r / y."""
    y = s.args[i]
    if _is_tree(b.types[s.result]):
        return b.prim("neg", SCALAR_REAL, b.prim("div", SCALAR_REAL, _inner(b, s.ct, s.result), y))
    ty = b.types[s.result]
    return b.prim("neg", b.types[y], _summed(b, b.prim("mul", ty, s.ct, b.prim("div", ty, s.result, y)), y))


def _inner(b: Builder, u: Var, v: Var) -> Var:
    """Σ u·v over the leaves of two trees of one type."""
    total: Var | None = None
    stack = [(u, v)]
    while stack:
        x, y = stack.pop()
        ty = b.types[x]
        if _is_tree(ty):
            stack.extend(reversed([(part(x), part(y)) for part in _parts(b, ty)]))
        elif isinstance(ty, Real):
            term = b.prim("sum", SCALAR_REAL, b.prim("mul", ty, x, y))
            total = term if total is None else b.prim("add", SCALAR_REAL, total, term)
    return b.const(0) if total is None else total


def _parts(b: Builder, ty: Type) -> list[Callable[[Var], Var]]:
    """The projections of a tree or tuple, in order."""
    if isinstance(ty, TupleOf):
        return [_projection(b, "proj", i, item) for i, item in enumerate(ty.items)]
    assert isinstance(ty, Params)
    found = [(n, field_type(b.modules, ty.instance, n)) for n in field_names(b.modules, ty.instance)]
    return [_projection(b, "field", n, below) for n, below in found if below is not None]


def _projection(b: Builder, op: str, which: str | int, ty: Type) -> Callable[[Var], Var]:
    return lambda v: b.prim(op, ty, v, attrs=(which,))


def _power(b: Builder, s: Site, i: int) -> Var:
    """xⁿ: ct · n · xⁿ⁻¹; x⁰ is constant."""
    (n,), (x,) = s.attrs, s.args
    assert isinstance(n, int)
    ty = b.types[x]
    if n == 0:
        return b.prim("zeros_like", ty, x)
    if n == 1:
        return s.ct
    below = x if n == 2 else b.prim("pow", ty, x, attrs=(n - 1,))
    return b.prim("mul", ty, s.ct, b.prim("mul", ty, below, b.const(n)))


# --------------------------------------------------------------------------------------------------------- functions


def _times(derivative: Callable[[Builder, Type, Var, Var], Var]) -> Rule:
    """ct · f'(x), where `derivative` emits f'(x) from x and y = f(x)."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        ty = b.types[s.args[0]]
        return b.prim("mul", ty, s.ct, derivative(b, ty, s.args[0], s.result))

    return rule


def _of_argument(op: str) -> Rule:
    return _times(lambda b, ty, x, y: b.prim(op, ty, x))


def _one_minus(b: Builder, ty: Type, v: Var) -> Var:
    return b.prim("sub", ty, b.const(1), v)


def _gelu_second(b: Builder, ty: Type, x: Var, y: Var) -> Var:
    """φ(x)·(2 - x²)."""
    return b.prim(
        "mul", ty, b.prim("normal_pdf", ty, x), b.prim("sub", ty, b.const(2), b.prim("pow", ty, x, attrs=(2,)))
    )


def _sqrt(b: Builder, s: Site, i: int) -> Var:
    ty = b.types[s.result]
    return b.prim("div", ty, s.ct, b.prim("mul", ty, s.result, b.const(2)))


def _negated(b: Builder, s: Site, i: int) -> Var:
    return b.prim("neg", b.types[s.args[0]], s.ct)


def _log(b: Builder, s: Site, i: int) -> Var:
    return b.prim("div", b.types[s.args[0]], s.ct, s.args[0])


ROWS = (
    Row("add", (_pass,)),
    Row("sub", (_pass, _subtrahend)),
    Row("mul", (_factor,)),
    Row("div", (_dividend, _divisor)),
    Row("neg", (_negated,)),
    Row("pow", (_power,)),
    Row("gelu", (_of_argument("gelu'"),)),
    Row("relu", (_of_argument("heaviside"),)),
    Row("exp", (_times(lambda b, ty, x, y: y),)),
    Row("tanh", (_times(lambda b, ty, x, y: _one_minus(b, ty, b.prim("pow", ty, y, attrs=(2,)))),)),
    Row("sqrt", (_sqrt,)),
    Row("abs", (_of_argument("sign"),)),
    Row("log", (_log,)),
    Row("sigmoid", (_times(lambda b, ty, x, y: b.prim("mul", ty, y, _one_minus(b, ty, y))),)),
    Row("sin", (_of_argument("cos"),)),
    Row("cos", (_times(lambda b, ty, x, y: b.prim("neg", ty, b.prim("sin", ty, x))),)),
    Row("gelu'", (_times(_gelu_second),)),
    Row("normal_pdf", (_times(lambda b, ty, x, y: b.prim("neg", ty, b.prim("mul", ty, x, y))),)),
    Row("heaviside", (Flat("constant on either side of 0"),)),
    Row("sign", (Flat("constant on either side of 0"),)),
)
