"""Every primitive has a derivative row, and every rule of every row is a derivative: to third order, by number."""

from __future__ import annotations

from fractions import Fraction

import pytest

from presk_rel.ad.derivatives import DERIVATIVES
from presk_rel.ad.row import Opaque, constant
from presk_rel.core.ir import Attr, Binding, Function, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.elab.ty import (
    SCALAR_REAL,
    Applied,
    Axis,
    Hyper,
    Idx,
    Key,
    Mask,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
)
from presk_rel.smt.linear import constant as length
from tests.ad.check import check_duality, check_gradient, weighted, with_directional
from tests.ad.programs import IN, LINEAR, MLP, OUT, B, D, real

Example = tuple[tuple[Attr, ...], tuple[Type, ...], Type | None]

BATCH, MODEL = ("batch", B), ("model", D)
X, V, S = real(BATCH, MODEL), real(MODEL), SCALAR_REAL
LEAD, ROW = real(MODEL, prefix="..."), real(prefix="...")
LIN = Params(Applied("Linear", (IN, OUT)))
NET = Params(Applied("MLP", (IN, OUT)))
PAIR = TupleOf((X, V))
ONE, TWO = length(1), length(2)
STACK = Params(Stacked(TWO, Applied("Linear", (IN, OUT))))

_BROADCASTS: list[Example] = [
    ((), (X, X), None),
    ((), (X, V), None),
    ((), (V, X), None),
    ((), (S, X), None),
    ((), (X, S), None),
    ((), (X, real(BATCH)), None),
    ((), (X, real(MODEL, BATCH)), None),
    ((), (LEAD, V), None),
    ((), (ROW, LEAD), None),
    ((), (LEAD, S), None),
]
_TREES: list[Example] = [
    ((), (NET, NET), None),
    ((), (PAIR, PAIR), None),
    ((), (NET, S), None),
    ((), (S, NET), None),
    ((), (PAIR, S), None),
    ((), (S, PAIR), None),
]
_ENTRIES: list[Example] = [((), (X,), None), ((), (LEAD,), None), ((), (S,), None)]
_REDUCTIONS: list[Example] = [
    ((), (X,), None),
    ((), (LEAD,), None),
    (("batch",), (X,), None),
    (("model",), (LEAD,), None),
]

EXAMPLES: dict[str, list[Example]] = {
    "pi": [((), (), S)],
    "dropout_mask": [((Fraction(1, 3),), (Key(), X), None)],
    "const": [((Fraction(1, 3),), (), S)],
    "zeros": [((), (), X)],
    "ones": [((), (), X)],
    "add": [*_BROADCASTS, *_TREES],
    "sub": [*_BROADCASTS, *_TREES],
    "mul": [*_BROADCASTS, *_TREES],
    "div": [*_BROADCASTS, *_TREES],
    "neg": [*_ENTRIES, ((), (NET,), None)],
    "pow": [*(((n,), (X,), None) for n in (0, 1, 2, 3, 7)), ((3,), (PAIR,), None)],
    "sqrt": [*_ENTRIES, ((), (NET,), None)],
    **dict.fromkeys(("gelu", "relu", "exp", "tanh", "abs", "log", "sigmoid", "sin", "cos"), _ENTRIES),
    **dict.fromkeys(("gelu'", "normal_pdf", "heaviside", "sign"), _ENTRIES),
    "dot": [
        ((), (X, real(D, OUT)), None),
        ((), (LEAD, real(D, OUT, IN)), None),
        ((), (V, V), None),
        ((), (LEAD, V), None),
    ],
    "dot_vjp_l": [((), (real(BATCH, OUT), real(D, OUT)), None), ((), (ROW, V), None)],
    "dot_vjp_r": [
        ((), (X, real(BATCH, OUT)), None),
        ((), (LEAD, ROW), None),
        ((), (LEAD, real(OUT, prefix="...")), None),
    ],
    "mean": _REDUCTIONS,
    "sum": _REDUCTIONS,
    "mean_vjp": [((), (S, X), None), (("batch",), (V, X), None), (("model",), (ROW, LEAD), None)],
    "broadcast_like": [
        ((), (S, X), None),
        ((), (V, LEAD), None),
        ((), (real(BATCH), X), None),
        (("model",), (ROW, LEAD), None),
    ],
    "sum_to": [
        ((), (X, V), None),
        ((), (X, real(BATCH)), None),
        ((), (X, real(MODEL, BATCH)), None),
        ((), (LEAD, ROW), None),
    ],
    "zeros_like": [((), (X,), None), ((), (NET,), None), ((), (PAIR,), None)],
    "ones_like": [((), (X,), None), ((), (NET,), None), ((), (PAIR,), None)],
    "field": [(("w",), (LIN,), None), (("l2",), (NET,), None)],
    "set_field": [(("b",), (LIN, real(OUT)), None), (("l1",), (NET, LIN), None)],
    "record": [((), (real(IN, OUT), real(OUT)), LIN)],
    "tuple": [((), (X, V, NET), None)],
    "proj": [((1,), (PAIR,), None), ((0,), (TupleOf((NET, X)),), None)],
    "set_elem": [((1,), (PAIR, V), None), ((0,), (TupleOf((NET, X)), NET), None)],
    **dict.fromkeys(("max", "min"), _BROADCASTS),
    "softmax": [
        (("model",), (X,), None),
        (("batch",), (X,), None),
        (("model",), (LEAD,), None),
        (("model",), (X, Mask(V.shape)), None),
        (("batch",), (X, Mask(X.shape)), None),
    ],
    "ein": [
        (("batch model, model out -> batch out",), (X, real(MODEL, OUT)), None),
        (("a, b -> b a",), (V, real(BATCH)), None),
        (("batch model -> model",), (X,), None),
        (("a b c ->",), (real(OUT, MODEL, B),), None),
        (("a m, b m, m -> a b",), (X, real(IN, MODEL), V), None),
        (("model n, n q -> q model",), (real(MODEL, MODEL), real(MODEL, D)), None),
        (("q k, q k -> q",), (X, X), None),
    ],
    "embed": [((), (real(OUT, D), Idx(OUT, real(BATCH).shape)), None), ((), (real(OUT, D), Idx(OUT, ROW.shape)), None)],
    "embed_vjp": [((), (real(BATCH, D), Idx(OUT, real(BATCH).shape), real(OUT, D)), None)],
    "one_hot": [((), (Idx(OUT, real(BATCH).shape),), None)],
    "cross_entropy": [((), (X, Idx(D, real(B).shape)), None), ((), (LEAD, Idx(D, ROW.shape)), None)],
    "cross_entropy_vjp": [
        ((), (real(BATCH), real(B, D), Idx(D, real(B).shape)), None),
        ((), (ROW, LEAD, Idx(D, ROW.shape)), None),
    ],
    "merge": [(("batch", "model"), (real(BATCH, ("model", TWO), IN),), None)],
    "split": [(("pair", "two", length(2), "d", D), (real(BATCH, ("pair", D.scale(2)), IN),), None)],
    "reshape_like": [((), (X, real(D, B)), None), ((), (LEAD, real(D, prefix="...")), None)],
    "split_heads": [((2, 3), (real(BATCH, ("seq", D), length(6)),), None)],
    "merge_heads": [((2, 3), (real(BATCH, ("heads", TWO), ("seq", D), ("hd", length(3))),), None)],
    "index": [(("model", length(-1)), (X,), None), ((1, length(0)), (real(OUT, D, MODEL),), None)],
    "scatter_index": [(("model", length(-1)), (real(BATCH), X), None), ((0, length(1)), (V, X), None)],
    "slice": [(("model", length(1), D), (X,), None), ((0, length(1), length(1)), (X,), None)],
    "slice_vjp": [(("model", length(0), TWO), (real(BATCH, ("model", TWO)), X), None)],
    "concat": [(("model",), (X, real(B, ("model", OUT))), None), (("batch",), (X, X), None)],
    "stack_params": [((), (LIN, LIN), Params(Stacked(TWO, Applied("Linear", (IN, OUT))))), ((), (X,), real(ONE, B, D))],
    "slice_params": [((length(1),), (STACK,), None), ((length(0),), (X,), None)],
    "scatter_params": [((length(1),), (LIN, STACK), None), ((length(0),), (V, X), None)],
    "set_slice": [((length(0),), (STACK, LIN), None), ((length(1),), (TupleOf((X, X)), TupleOf((V, V))), None)],
    "sum_squares": [((), (NET,), None), ((), (X,), None), ((), (PAIR,), None)],
}
"""For each primitive with a real operand or result: attributes, operand types, and the result where they do not say."""

_CONSTANT = {"const", "zeros", "ones", "zeros_like", "ones_like", "heaviside", "sign", "one_hot", "pi", "dropout_mask"}
"""Rows without a rule whose values are reals all the same: their derivative is zero."""

DIMS = {"B": 2, "D": 3, "In": 2, "Out": 2}
CASES = [pytest.param(op, example, id=f"{op}-{i}") for op, found in EXAMPLES.items() for i, example in enumerate(found)]


def without_names(ty: Type) -> Type:
    """A tensor type with no axis named."""
    return (
        Real(Shape(ty.shape.prefix, tuple(Axis(None, a.length) for a in ty.shape.axes))) if isinstance(ty, Real) else ty
    )


def loss_of(op: str, example: Example, names: bool = True) -> Program:
    """`loss(c, x) = Σ c · op(x.0, x.1, …)`, over the leaves of the result, which has names of axes where `names`."""
    attrs, types, declared = example
    result = declared or infer(PRIMS[op], attrs, types, S, {m.name: m for m in (LINEAR, MLP)})
    assert not isinstance(result, str), result
    result = result if names else without_names(result)
    body = [Binding(f"x{i}", ty, Prim("proj", (i,), ("x",))) for i, ty in enumerate(types)]
    body.append(Binding("y", result, Prim(op, attrs, tuple(f"x{i}" for i in range(len(types))))))
    program = Program({m.name: m for m in (LINEAR, MLP)}, {})
    ret = weighted(program, body, "y", "c", result)
    params = (Param("c", result), Param("x", TupleOf((*types, S))))
    loss = Function("loss", tuple(DIMS), params, S, tuple(body), ret)
    return Program(program.modules, {"loss": loss})


def named_result(op: str, example: Example) -> bool:
    """Whether the result of an example has axes with names."""
    y = loss_of(op, example).functions["loss"].params[0].type
    return without_names(y) != y


def map_of(op: str, example: Example) -> Program:
    """`map(x) = op(x.0, x.1, …)`."""
    program = loss_of(op, example)
    loss = program.functions["loss"]
    n = len(example[1])
    y = loss.bindings[n]
    made = Function("map", loss.dims, loss.params[1:], y.type, loss.bindings[: n + 1], "y")
    return Program(program.modules, {"map": made})


def test_every_primitive_has_a_row_and_every_row_a_primitive():
    assert DERIVATIVES.keys() == PRIMS.keys()


def test_every_row_says_something_of_every_operand():
    for name, row in DERIVATIVES.items():
        arity = PRIMS[name].arity
        assert arity == 0 or row.operands, name
        assert arity is None or len(row.operands) <= arity, name


def test_every_row_with_a_derivative_is_checked_by_number():
    nothing = {
        name
        for name, row in DERIVATIVES.items()
        if all(not callable(r) for r in row.operands) and name not in _CONSTANT
    }
    assert EXAMPLES.keys() == DERIVATIVES.keys() - nothing


@pytest.mark.parametrize(("op", "example"), CASES)
def test_the_first_derivative_is_the_central_difference(op: str, example: Example):
    lead = (2,)
    check_gradient(loss_of(op, example), "loss", DIMS, lead=lead)


@pytest.mark.parametrize(("op", "example"), CASES)
def test_the_second_derivative_is_the_central_difference_of_the_first(op: str, example: Example):
    program = with_directional(loss_of(op, example), "loss")
    check_gradient(program, "loss∂", DIMS, lead=(2,))


@pytest.mark.parametrize(("op", "example"), [c for c in CASES if named_result(*c.values)])
def test_a_binding_may_declare_fewer_names_than_its_operation_gives(op: str, example: Example):
    check_gradient(loss_of(op, example, names=False), "loss", DIMS, lead=(2,))
    check_duality(with_directional(loss_of(op, example, names=False), "loss"), "loss∂", DIMS, lead=(2,))


@pytest.mark.parametrize(("op", "example"), CASES)
def test_the_forward_rule_is_dual_to_the_reverse_rules(op: str, example: Example):
    check_duality(map_of(op, example), "map", DIMS, lead=(2,))


def test_every_row_with_a_reverse_rule_has_a_forward_rule():
    for name, row in DERIVATIVES.items():
        assert (row.forward is constant) == (not any(callable(r) for r in row.operands)), name


@pytest.mark.parametrize("op", ["gelu", "tanh", "sigmoid", "log", "sqrt", "div", "exp", "sin", "cos", "pow"])
def test_the_third_derivative_is_the_central_difference_of_the_second(op: str):
    program = with_directional(with_directional(loss_of(op, EXAMPLES[op][-1]), "loss"), "loss∂")
    check_gradient(program, "loss∂∂", DIMS, lead=(2,))


def test_a_hyperparameter_has_no_cotangent():
    assert isinstance(DERIVATIVES["real"].operand(0), Opaque)
    assert str(Hyper("nat")) == "nat"
