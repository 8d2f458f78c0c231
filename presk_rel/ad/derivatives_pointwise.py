"""Derivative rows of the primitives that work entry by entry (spec: "Automatic differentiation"). `ct` is the cotangent
of the result, of the result's shape; a binary operand's is summed down to the operand's shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from presk_rel.ad.axes import as_large, larger
from presk_rel.ad.builder import Builder
from presk_rel.ad.forward import each, mixed, result_type, symmetric, widened
from presk_rel.ad.row import Flat, Forward, Point, Row, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import SCALAR_REAL, Params, Real, TupleOf, Type, field_names, field_type

_STEP = Flat("constant on either side of 0")

# ------------------------------------------------------------------------------------------------------- arithmetic


def _summed(b: Builder, v: Var, operand: Var) -> Var:
    """`v` summed down to the operand's shape; pruning removes it between equal types."""
    return b.prim("sum_to", b.types[operand], v, operand)


def _is_tree(ty: Type) -> bool:
    return isinstance(ty, (Params, TupleOf))


def _pass(b: Builder, s: Site, i: int) -> Var:
    """x + y: the cotangent itself; of a scalar beside a tree, the sum of all its entries."""
    x = s.args[i]
    if _is_tree(b.types[x]):
        return s.ct
    if _is_tree(b.types[s.result]):
        return _entries_total(b, s.ct)
    return _summed(b, s.ct, x)


def _subtrahend(b: Builder, s: Site, i: int) -> Var:
    """x - y with respect to y: -ct."""
    return b.prim("neg", tangent(b.types[s.args[i]]), _pass(b, s, i))


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
    quotient = b.prim("div", tangent(b.types[s.result]), s.ct, y)
    if _is_tree(b.types[x]):
        return quotient
    if _is_tree(b.types[s.result]):
        return _entries_total(b, quotient)
    return _summed(b, quotient, x)


def _divisor(b: Builder, s: Site, i: int) -> Var:
    """r = x / y with respect to y: -ct · r / y."""
    y = s.args[i]
    ty = tangent(b.types[s.result])
    if _is_tree(ty) and not _is_tree(b.types[y]):
        return b.prim("neg", SCALAR_REAL, b.prim("div", SCALAR_REAL, _inner(b, s.ct, s.result), y))
    share = b.prim("mul", ty, s.ct, b.prim("div", ty, s.result, y))
    return b.prim("neg", tangent(b.types[y]), share if _is_tree(ty) else _summed(b, share, y))


def _inner(b: Builder, u: Var, v: Var) -> Var:
    """Σ u·v over the leaves of two trees of one type."""
    return _over_leaves(b, (u, v), lambda ty, leaf: b.prim("mul", ty, *leaf))


def _entries_total(b: Builder, u: Var) -> Var:
    """Σ u over the leaves of a tree."""
    return _over_leaves(b, (u,), lambda ty, leaf: leaf[0])


def _over_leaves(b: Builder, trees: tuple[Var, ...], term: Callable[[Type, tuple[Var, ...]], Var]) -> Var:
    """The sum of all entries of what `term` makes of each leaf of trees of one type."""
    total: Var | None = None
    stack = [trees]
    while stack:
        at = stack.pop()
        ty = b.types[at[0]]
        if _is_tree(ty):
            stack.extend(reversed([tuple(part(x) for x in at) for part in _parts(b, ty)]))
        elif isinstance(ty, Real):
            one = b.prim("sum", SCALAR_REAL, term(ty, at))
            total = one if total is None else b.prim("add", SCALAR_REAL, total, one)
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


def _extremum(sign: int) -> Rule:
    """max (sign 1), min (-1): ct where x is strictly the extremum, for y the rest, so a tie is y's."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        share = b.prim("mul", b.types[s.result], s.ct, _chosen(b, s.args, s.result, sign, i))
        return _summed(b, share, s.args[i])

    return rule


def _chosen(b: Builder, args: tuple[Var, ...], result: Var, sign: int, i: int) -> Var:
    """1 where the extremum is operand i, else 0."""
    ty = b.types[result]
    above = b.prim("sub", ty, *args)  # in this order also for min: y - x may have the axes in another order
    first = b.prim("heaviside", ty, above if sign > 0 else b.prim("neg", ty, above))
    return first if i == 0 else _one_minus(b, ty, first)


def _sum_squares(b: Builder, s: Site, i: int) -> Var:
    """Σ x²: 2·ct·x."""
    ty = tangent(b.types[s.args[0]])
    return b.prim("mul", ty, s.args[0], b.prim("mul", SCALAR_REAL, s.ct, b.const(2)))


# ---------------------------------------------------------------------------------------------------------- tangents


def _added(b: Builder, p: Point, i: int, v: Var) -> Var:
    wide = widened(b, v, p.result)
    return b.prim("neg", b.types[wide], wide) if (p.op, i) == ("sub", 1) else wide


def _divided(b: Builder, p: Point) -> Var:
    """r = x / y: (dx - r·dy) / y."""
    ty, y = result_type(b, p), p.args[1]
    dx, dy = p.tangents
    lost = None if dy is None else b.prim("mul", ty, p.result, dy)
    if lost is None:
        assert dx is not None
        return b.prim("div", ty, dx, y)
    if dx is None:
        return b.prim("neg", ty, b.prim("div", ty, lost, y))
    return b.prim("div", ty, b.prim("sub", ty, dx, lost), y)


def _extreme(sign: int) -> Forward:
    return mixed(lambda b, p, i, v: b.prim("mul", b.types[p.result], _chosen(b, p.args, p.result, sign, i), v))


def _squares(b: Builder, p: Point) -> Var:
    (v,) = p.tangents
    assert v is not None
    return b.prim("mul", SCALAR_REAL, _inner(b, p.args[0], v), b.const(2))


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


# -------------------------------------------------------------------------------------------------------- broadcasting


def _broadcasting(name: str, rules: tuple[Rule, ...], forward: Forward) -> Row:
    """A function of two operands that broadcast. Its rules see the result, and its cotangent, with names by which the
    operands line up with it; a binding may declare fewer."""
    return Row(name, tuple(_lined_up(rule) for rule in rules), _lined_up_forward(forward))


def _as_result(b: Builder, v: Var, args: tuple[Var, ...]) -> Var:
    if not isinstance(b.types[v], Real):
        return v
    return as_large(b, v, larger(b, *args), *args)


def _lined_up(rule: Rule) -> Rule:
    return lambda b, s, i: rule(
        b, replace(s, ct=_as_result(b, s.ct, s.args), result=_as_result(b, s.result, s.args)), i
    )


def _lined_up_forward(rule: Forward) -> Forward:
    def forward(b: Builder, p: Point) -> Var:
        result = _as_result(b, p.result, p.args)
        if result == p.result:
            return rule(b, p)
        return b.prim("reshape_like", b.types[p.result], rule(b, replace(p, result=result)), p.result)

    return forward


def _entrywise(name: str, rule: Rule) -> Row:
    """A function of one operand, entry by entry: its Jacobian is diagonal."""
    return Row(name, (rule,), symmetric(rule))


ROWS = (
    _broadcasting("add", (_pass,), mixed(_added)),
    _broadcasting("sub", (_pass, _subtrahend), mixed(_added)),
    _broadcasting("mul", (_factor,), each),
    _broadcasting("div", (_dividend, _divisor), _divided),
    Row("neg", (_negated,), each),
    _entrywise("pow", _power),
    _broadcasting("max", (_extremum(1),), _extreme(1)),
    _broadcasting("min", (_extremum(-1),), _extreme(-1)),
    _entrywise("gelu", _of_argument("gelu'")),
    _entrywise("relu", _of_argument("heaviside")),
    _entrywise("exp", _times(lambda b, ty, x, y: y)),
    _entrywise("tanh", _times(lambda b, ty, x, y: _one_minus(b, ty, b.prim("pow", ty, y, attrs=(2,))))),
    _entrywise("sqrt", _sqrt),
    _entrywise("abs", _of_argument("sign")),
    _entrywise("log", _log),
    _entrywise("sigmoid", _times(lambda b, ty, x, y: b.prim("mul", ty, y, _one_minus(b, ty, y)))),
    _entrywise("sin", _of_argument("cos")),
    _entrywise("cos", _times(lambda b, ty, x, y: b.prim("neg", ty, b.prim("sin", ty, x)))),
    _entrywise("gelu'", _times(_gelu_second)),
    _entrywise("normal_pdf", _times(lambda b, ty, x, y: b.prim("neg", ty, b.prim("mul", ty, x, y)))),
    Row("heaviside", (_STEP,)),
    Row("sign", (_STEP,)),
    Row("sum_squares", (_sum_squares,), _squares),
    *(Row(name, (Flat("a comparison gives a mask or a truth value"),)) for name in ("lt", "le", "gt", "ge", "eq")),
)
