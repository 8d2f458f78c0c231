"""Contractions as the products torch has kernels for: `mm`, `bmm`, `mv`, `dot`, or a product entry by entry.

`torch.matmul`, `tensordot` and `einsum` choose among these when the program runs; here the axes are known, so that
what is generated is the product itself, on views, and its kernels can be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from presk_rel.exec.torch.products import Products

Label = object
"""What names an axis of a contraction."""

FEW = 512
"""Entries of which a batch of dots is the faster way, being one launch."""


@dataclass(frozen=True, slots=True)
class Factor:
    """An operand: its name in generated code, sizes, and a label for each axis, all different."""

    name: str
    sizes: tuple[int, ...]
    labels: tuple[Label, ...]

    def length(self, label: Label) -> int:
        return self.sizes[self.labels.index(label)]

    def ordered(self, *groups: Sequence[Label]) -> str:
        """The operand viewed with one axis for each group of labels. Where the last two come in the other order in
        memory, their product is made first: no copy then, or one in the operand's own order."""
        padded: tuple[Sequence[Label], ...] = ((), (), *groups)
        front, row, column = padded[:-2], padded[-2], padded[-1]
        if row and column and [*(n for g in front for n in g), *column, *row] == list(self.labels):
            return f"{self.ordered(*groups[:-2], column, row)}.mT"
        wanted = tuple(self.labels.index(n) for group in groups for n in group)
        sizes = tuple(prod(self.length(n) for n in group) for group in groups)
        text, found = self.name, tuple(self.sizes[i] for i in wanted)
        if wanted != tuple(range(len(wanted))):
            swapped = wanted == (*range(len(wanted) - 2), len(wanted) - 1, len(wanted) - 2)
            text += ".mT" if swapped else f".permute({wanted})"
        return text if found == sizes else f"{text}.reshape({sizes})"


Line = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Onto:
    """What a batched product is added to, and the factors of that and of the product."""

    name: str
    beta: int
    alpha: str


def contraction(
    factors: Sequence[Factor], result: tuple[Label, ...], products: Products, onto: Onto | None = None
) -> str:
    """Σ over the labels that are not of the result, of the product of all factors; `products` writes products of
    matrices. `onto` is for a batched product of two."""
    line = products.line
    done, *rest = factors
    while rest:
        other, *rest = rest
        read = {*result, *(n for f in rest for n in f.labels)}
        done, other = _summed(done, {*read, *other.labels}, line), _summed(other, {*read, *done.labels}, line)
        kept = result if not rest else tuple(dict.fromkeys(n for n in (*done.labels, *other.labels) if n in read))
        rows = onto is None and _of_rows(done, other, kept)
        text, sizes = _rows(done, other, kept, line) if rows else _product(done, other, kept, products, onto)
        done = Factor(line(text) if rest else text, sizes, kept)
        if not rest:
            return text
    alone = _summed(done, set(result), line)
    return alone.ordered(*((n,) for n in result))


def _summed(x: Factor, read: set[Label], line: Line) -> Factor:
    """Without the axes that nothing else has."""
    gone = tuple(i for i, n in enumerate(x.labels) if n not in read)
    if not gone:
        return x
    kept = [i for i in range(len(x.labels)) if i not in gone]
    sizes, labels = tuple(x.sizes[i] for i in kept), tuple(x.labels[i] for i in kept)
    return Factor(line(f"torch.sum({x.name}, {gone})"), sizes, labels)


def _product(
    x: Factor, y: Factor, result: tuple[Label, ...], products: Products, onto: Onto | None
) -> tuple[str, tuple[int, ...]]:
    both = [n for n in x.labels if n in y.labels]
    batch = [n for n in result if n in both]
    inner = [n for n in (x if prod(x.sizes) >= prod(y.sizes) else y).labels if n in both and n not in result]
    sizes = tuple(x.length(n) if n in x.labels else y.length(n) for n in result)
    if not inner:
        return _outer(x, y, result), sizes
    if _first(result, y, x) and not _first(result, x, y):
        x, y = y, x
    left, right = ([n for n in result if n in f.labels and n not in both] for f in (x, y))
    text = _multiplied(x, y, (batch, left, inner, right), products, onto)
    made = (*batch, *left, *right)
    groups = (batch, left, right) if batch else tuple(g for g in (left, right) if g)
    grouped = tuple(prod(x.length(n) if n in x.labels else y.length(n) for n in g) for g in groups)
    full = tuple(x.length(n) if n in x.labels else y.length(n) for n in made)
    if grouped != full:
        text += f".reshape({full})"
    order = tuple(made.index(n) for n in result)
    return (text if order == tuple(range(len(order))) else f"{text}.permute({order})"), sizes


def _of_rows(x: Factor, y: Factor, result: tuple[Label, ...]) -> bool:
    """Whether both have the same axes, of which some are kept, and more than a few entries."""
    summed = [n for n in x.labels if n not in result]
    return set(x.labels) == set(y.labels) and 0 < len(summed) < len(x.labels) and prod(x.sizes) > FEW


def _rows(x: Factor, y: Factor, result: tuple[Label, ...], line: Line) -> tuple[str, tuple[int, ...]]:
    """The rows of x with those of y: a product and its sum, which is many times as fast as a batch of dots."""
    order = tuple(y.labels.index(n) for n in x.labels)
    turned = y.name if order == tuple(range(len(order))) else f"{y.name}.permute({order})"
    entries = line(f"torch.mul({x.name}, {turned})")
    text = f"torch.sum({entries}, {tuple(i for i, n in enumerate(x.labels) if n not in result)})"
    made = [n for n in x.labels if n in result]
    places = tuple(made.index(n) for n in result)
    sizes = tuple(x.length(n) for n in result)
    return (text if places == tuple(range(len(places))) else f"{text}.permute({places})"), sizes


def _first(result: tuple[Label, ...], x: Factor, y: Factor) -> bool:
    """Whether all axes that only x has come before those that only y has."""
    mine = [i for i, n in enumerate(result) if n not in y.labels]
    others = [i for i, n in enumerate(result) if n not in x.labels]
    return not mine or not others or max(mine) < min(others)


Axes = tuple[list[Label], list[Label], list[Label], list[Label]]
"""Of a product: of both operands and the result; of the left one; of both, summed over; of the right one."""


def _multiplied(x: Factor, y: Factor, axes: Axes, products: Products, onto: Onto | None) -> str:
    batch, left, inner, right = axes
    if batch or (left and right):
        return _of_matrices(x, y, axes, products, onto)
    assert onto is None
    if left:
        return f"torch.mv({x.ordered(left, inner)}, {y.ordered(inner)})"
    if right:
        return f"torch.mv({y.ordered(right, inner)}, {x.ordered(inner)})"
    return f"torch.dot({x.ordered(inner)}, {y.ordered(inner)})"


def _of_matrices(x: Factor, y: Factor, axes: Axes, products: Products, onto: Onto | None) -> str:
    batch, left, inner, right = axes
    lengths = (prod(x.length(n) if n in x.labels else y.length(n) for n in group) for group in axes)
    sizes = (next(lengths), next(lengths), next(lengths), next(lengths))
    names = products.operands(sizes, x.name, y.name)
    x, y = replace(x, name=names[0]), replace(y, name=names[1])
    if not batch:
        assert onto is None
        return products.product("mm", sizes, x.ordered(left, inner), y.ordered(inner, right))
    pair = x.ordered(batch, left, inner), y.ordered(batch, inner, right)
    if onto is not None:
        return products.scaled(sizes, onto.name, *pair, onto.beta, onto.alpha)
    return products.product("bmm", sizes, *pair)


def _outer(x: Factor, y: Factor, result: tuple[Label, ...]) -> str:
    return f"torch.mul({_spread(x, result)}, {_spread(y, result)})"


def _spread(x: Factor, result: tuple[Label, ...]) -> str:
    """The operand along the axes of the result, of length one where it has none."""
    own = [n for n in result if n in x.labels]
    order = tuple(x.labels.index(n) for n in own)
    text = x.name if order == tuple(range(len(order))) else f"{x.name}.permute({order})"
    sizes = tuple(x.length(n) if n in x.labels else 1 for n in result)
    lead = next((i for i, n in enumerate(result) if n in x.labels), len(result))
    return text if sizes[lead:] == tuple(x.length(n) for n in own) else f"{text}.reshape({sizes[lead:]})"
