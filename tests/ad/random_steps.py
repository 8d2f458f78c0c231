"""Steps of random programs that move entries, choose among them, draw, stack and contract."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from presk_rel.core.ein import EinSpec
from presk_rel.core.ir import Prim
from presk_rel.core.shapes import stack_type
from presk_rel.elab.ty import SCALAR_REAL, Idx, Key, Mask, Params, Real, TupleOf, Type
from presk_rel.smt.linear import constant
from tests.ad.random_body import DIMS, TWO, Body

Step = Callable[[Body], None]
_NAMES = ("batch", "model", "seq", "heads", "hd", 0, 1)


def _of(b: Body, kind: type[Type]) -> str:
    """A value of a kind of types, or a real."""
    return b.some(lambda t: isinstance(t, kind)) or b.real()


def _extremum(b: Body) -> None:
    b.prim(b.rng.choice(("max", "min")), b.real(), b.real())


def _compared(b: Body) -> None:
    level = b.emit(Prim("const", (Fraction(5, 7),), ()), SCALAR_REAL)  # no value is just this
    b.prim(b.rng.choice(("lt", "le", "gt", "ge")), b.real(), level)
    index = _of(b, Idx)
    b.prim("eq", index, index)


def _softmax(b: Body) -> None:
    mask = (_of(b, Mask),) if b.rng.random() < 0.5 else ()
    b.prim("softmax", b.real(), *mask, attrs=(b.rng.choice(("batch", "model")),))


def _ein(b: Body) -> None:
    args = [b.real() for _ in range(b.rng.randrange(1, 4))]
    lists: list[tuple[str, ...]] = []
    for v in args:
        ty = b.type(v)
        assert isinstance(ty, Real)
        letters = [f"{str(a.length).replace('*', '')}{b.rng.randrange(2)}" for a in ty.shape.axes]
        lists.append(tuple(n if not n[0].isdigit() else f"n{n}" for n in letters))
    known = sorted({n for axes in lists for n in axes})
    result = tuple(n for n in known if b.rng.random() < 0.6)
    b.prim("ein", *args, attrs=(str(EinSpec(tuple(lists), result)),))


def _table(b: Body) -> None:
    b.prim("embed", b.real(), _of(b, Idx))
    b.prim("embed_vjp", b.real(), _of(b, Idx), b.real())


def _loss(b: Body) -> None:
    if b.rng.random() < 0.6:
        b.prim("cross_entropy", b.real(), _of(b, Idx))
    else:
        b.prim("cross_entropy_vjp", b.real(), b.real(), _of(b, Idx))


def _choice(b: Body) -> None:
    match b.rng.randrange(4):
        case 0:
            b.prim("argmax", b.real())
        case 1:
            b.prim("sample", _of(b, Key), b.real())
        case 2:
            b.prim("one_hot", _of(b, Idx))
        case _:
            b.prim("real", _of(b, Idx))


def _dropped(b: Body) -> None:
    x = b.real()
    mask = b.prim("dropout_mask", _of(b, Key), x, attrs=(Fraction(b.rng.randrange(3), 4),))
    if mask is not None:
        b.prim("mul", x, mask)
    b.prim("split_key", _of(b, Key), attrs=(2,))


def _part(b: Body) -> None:
    place = b.rng.choice(_NAMES)
    low, high = map(constant, b.rng.choice(((0, 1), (0, 2), (1, 2))))
    i = constant(b.rng.randrange(-1, 2))
    whole = b.some(lambda t: isinstance(t, Real) and _has_two(t))
    match b.rng.randrange(4):
        case _ if whole is None:
            return
        case 0:
            b.prim(
                "index", b.some(lambda t: isinstance(t, Real | Idx | Mask) and _has_two(t)) or whole, attrs=(place, i)
            )
        case 1:
            b.prim("scatter_index", b.real(), whole, attrs=(place, i))
        case 2:
            b.prim("slice", whole, attrs=(place, low, high))
        case _:
            b.prim("slice_vjp", b.real(), whole, attrs=(place, low, high))


def _has_two(ty: Real | Idx | Mask) -> bool:
    """Whether every axis has two positions to select from."""
    lengths = [a.length.substitute({d: constant(n) for d, n in DIMS.items()}) for a in ty.shape.axes]
    return all(n.is_constant and n.const >= 2 for n in lengths)


def _joined(b: Body) -> None:
    b.prim("concat", b.real(), b.real(), attrs=(b.rng.choice(("batch", "model")),))


def _reshaped(b: Body) -> None:
    match b.rng.randrange(4):
        case 0:
            b.prim("split_heads", b.real(), attrs=(2, 2))
        case 1:
            b.prim("merge_heads", b.real(), attrs=(2, 2))
        case 2:
            b.prim("merge", b.real(), attrs=("heads", "seq"))
        case _:
            b.prim("reshape_like", b.real(), b.real())


def _stacked(b: Body) -> None:
    piece = b.rng.choice(b.values)[0]
    stack = stack_type(TWO, b.type(piece))
    other = b.some(lambda t: t == b.type(piece))
    if stack is not None and other is not None:
        b.prim("stack_params", piece, other, declared=stack)
    whole = b.some(lambda t: isinstance(t, Params | Real | TupleOf)) or piece
    i = (constant(b.rng.randrange(2)),)
    match b.rng.randrange(3):
        case 0:
            b.prim("slice_params", whole, attrs=i)
        case 1:
            b.prim("scatter_params", piece, whole, attrs=i)
        case _:
            b.prim("set_slice", whole, piece, attrs=i)


def _squares(b: Body) -> None:
    b.prim("sum_squares", b.rng.choice(b.values)[0])
    b.prim("pi")


def _tried(step: Step) -> Step:
    """A step that most operands do not fit is tried with others."""

    def several(b: Body) -> None:
        before = len(b.values)
        for _ in range(8):
            if len(b.values) == before:
                step(b)

    return several


CHOICES: tuple[Step, ...] = (
    _extremum, _compared, *map(_tried, (_softmax, _softmax, _ein, _ein, _table, _table, _loss, _loss, _choice)),
    _dropped, *map(_tried, (_part, _part, _joined, _reshaped, _reshaped)), _stacked, _squares,
)  # fmt: skip
