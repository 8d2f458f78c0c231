"""Contractions as data: which axes are one, and the contraction that does the same to every slice of a stack."""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId
from presk_rel.elab.ty import Real, Shape

PRODUCTS = ("dot", "dot_vjp_l", "dot_vjp_r", "ein", "linear")
STACKED = "each"
"""What the axis of a stack is called, if no other axis is."""

Labels = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction of `left` and `right` that is the operation `op`; `term` is it, or that and a sum (`linear`)."""

    term: TermId
    op: str
    spec: str
    operands: tuple[TermId, TermId]
    bias: TermId | None


def product(terms: Terms, t: TermId) -> Product | None:
    """The contraction of two tensors that a term is."""
    head, args = terms.op(t), terms.args[t]
    if head.op not in PRODUCTS or any(shape_of(terms, a) is None for a in (t, *args)):
        return None
    if head.op == "linear":
        return Product(t, "dot", "", (args[0], args[1]), args[2])
    if len(args) != 2:
        return None
    return Product(t, head.op, str(head.attrs[0]) if head.op == "ein" else "", (args[0], args[1]), None)


def shape_of(terms: Terms, t: TermId) -> Shape | None:
    """The shape of a tensor of reals without a prefix."""
    ty = terms.table.types[terms.type[t]]
    return ty.shape if isinstance(ty, Real) and ty.shape.prefix is None else None


def lengths(terms: Terms, t: TermId) -> tuple[object, ...]:
    """The lengths of a tensor's axes."""
    shape = shape_of(terms, t)
    return () if shape is None else tuple(a.length for a in shape.axes)


def per_slice(terms: Terms, p: Product, result: Shape, side: str) -> tuple[str, str] | None:
    """The contraction of a stack of left operands, right ones, or both, and the name of the stack's axis; None where
    two axes of the result have one name."""
    form = _form(p.op, p.spec, len(lengths(terms, p.operands[0])), len(lengths(terms, p.operands[1])))
    given = [a.name for a in result.axes if a.name is not None]
    if form is None or len(set(given)) < len(given):
        return None
    left, right, out = form
    names = {n: str(n) if p.op == "ein" else name for n, name in zip(out, axis_names(result), strict=True)}
    taken = {*given, *names.values()}
    for label in (*left, *right):
        if label not in names:
            names[label] = str(label) if p.op == "ein" else _fresh("j", taken)
    taken.update(names.values())
    each = _fresh(STACKED, taken)
    lists = [tuple(names[n] for n in labels) for labels in (left, right, out)]
    stacked = (side in ("left", "both"), side in ("right", "both"), True)
    x, w, y = ((each, *names_) if s else names_ for s, names_ in zip(stacked, lists, strict=True))
    return str(EinSpec((x, w), y)), each


def summed(spec: str, axis: str) -> str:
    """The contraction that sums over an axis of its result too."""
    found = ein_spec(spec)
    assert found is not None
    return str(EinSpec(found.operands, tuple(n for n in found.result if n != axis)))


def _form(op: str, spec: str, m: int, n: int) -> tuple[Labels, Labels, Labels] | None:
    """The axes of both operands, of `m` and `n` axes, and of the result: equal labels are one axis."""
    match op:
        case "dot":
            lead, rest = tuple(range(m - 1)), tuple(range(100, 99 + n))
            return (*lead, -1), (-1, *rest), (*lead, *rest)
        case "dot_vjp_l":
            lead, rest = tuple(range(m - n + 1)), tuple(range(100, 99 + n))
            return (*lead, *rest), (-1, *rest), (*lead, -1)
        case "dot_vjp_r":
            lead, rest = tuple(range(m - 1)), tuple(range(100, 101 + n - m))
            return (*lead, -1), (*lead, *rest), (-1, *rest)
        case _:
            found = ein_spec(spec)
            return None if found is None else (found.operands[0], found.operands[1], found.result)


def axis_names(shape: Shape) -> list[str]:
    """The names of a tensor's axes, new ones for those that have none, counted from the last."""
    taken = {a.name for a in shape.axes if a.name is not None}
    last = len(shape.axes) - 1
    return [a.name or _fresh(f"i{last - k}", taken) for k, a in enumerate(shape.axes)]


def common_names(shapes: list[Shape]) -> list[str | None]:
    """Names of axes that tensors of one shape may all have; None where two are called differently."""
    found: list[str | None] = []
    for k, name in enumerate(axis_names(shapes[0])):
        given = {s.axes[k].name for s in shapes} - {None}
        found.append(name if not given else given.pop() if len(given) == 1 else None)
    named = [n for n in found if n is not None]
    return found if len(set(named)) == len(named) else [None] * len(found)


def _fresh(base: str, taken: set[str]) -> str:
    """A name like `base` that is taken from now on."""
    name, k = base, 0
    while name in taken:
        name, k = f"{base}{k}", k + 1
    taken.add(name)
    return name
