"""One row per primitive of the typed tree: the PyTorch expression for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context as Decimals
from decimal import Decimal
from fractions import Fraction
from string import ascii_letters, ascii_lowercase, ascii_uppercase

from presk_rel.core.ein import ein_spec
from presk_rel.diagnostics import Span
from presk_rel.elab.ty import Hyper, Idx, Params, TupleOf, Type
from presk_rel.export.context import Context, unsupported
from presk_rel.export.shapes import dim_of, lined_up, shape_of
from presk_rel.export.text import ATOM, COMPARE, POWER, PRODUCT, SUM, UNARY, Py, floating, infix, real, tensor
from presk_rel.smt.linear import Linear
from presk_rel.types.tree import TPrim

Dim = Callable[[Linear], Py]


@dataclass(frozen=True, slots=True)
class Use:
    """A primitive with its operands printed."""

    e: TPrim
    args: tuple[Py, ...]
    context: Context
    dim: Dim

    def type(self, i: int) -> Type:
        return self.e.args[i].type

    def tensor(self, i: int) -> Py:
        return tensor(self.args[i])

    def method(self, i: int) -> str:
        """Operand i where a method is called on it."""
        return self.tensor(i).at(ATOM)

    def axis(self, i: int = 0) -> int:
        return dim_of(shape_of(self.type(0)), self.e.attrs[i])

    def aligned(self, i: int, like: Type) -> Py:
        """Operand i lined up with a larger tensor; a number lines up with everything."""
        if self.args[i].number:
            return self.args[i]
        suffix = lined_up(self.type(i), like)
        return Py(f"{self.args[i].at(ATOM)}{suffix}") if suffix else self.args[i]


Row = Callable[[Use], Py]

_INFIX = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_TORCH = {"add": "torch.add", "sub": "torch.sub", "mul": "torch.mul", "div": "torch.div"}


def _is_tree(ty: Type) -> bool:
    return isinstance(ty, Params | TupleOf)


def _arithmetic(u: Use) -> Py:
    if _is_tree(u.e.type):
        names = ", ".join(u.tensor(i).text for i in range(len(u.args)))
        return Py(f"{u.context.helper('tree_map')}({_TORCH[u.e.op]}, {names})")
    op, level = _INFIX[u.e.op]
    if isinstance(u.e.type, Hyper):
        if u.e.op == "div" and u.e.type.kind == "int":
            return _quotient(u)
        return infix(u.args[0], op, u.args[1], level, number=True)
    left, right = (u.aligned(i, u.e.type) for i in range(2))
    number = left.number and right.number
    return infix(floating(left) if number and u.e.op != "div" else left, op, right, level, number=number)


def _quotient(u: Use) -> Py:
    """The integer quotient, towards 0."""
    if all(u.type(i) == Hyper("nat") for i in range(2)):
        return infix(u.args[0], "//", u.args[1], PRODUCT, number=True)
    return Py(f"{u.context.helper('quotient')}({u.args[0].text}, {u.args[1].text})", ATOM, True)


def _neg(u: Use) -> Py:
    if _is_tree(u.e.type):
        return Py(f"{u.context.helper('tree_map')}(torch.neg, {u.args[0].text})")
    return Py(f"-{u.args[0].at(UNARY)}", UNARY, u.args[0].number)


def _pow(u: Use) -> Py:
    exponent = u.e.attrs[0]
    if _is_tree(u.e.type):
        return Py(f"{u.context.helper('tree_map')}(lambda x: x**{exponent}, {u.args[0].text})")
    base = u.args[0]
    if base.number:
        whole = isinstance(u.e.args[0], TPrim) and u.e.args[0].op == "real"  # of a number that may be an integer
        base = floating(base) if not whole else Py(f"float({base.text})", ATOM, True)
    return Py(f"{base.at(ATOM)} ** {exponent}", POWER, base.number)


def _dot(u: Use) -> Py:
    x, w = u.tensor(0), u.tensor(1)
    if len(shape_of(u.type(1)).axes) <= 2:
        return infix(x, "@", w, PRODUCT)
    return Py(f"torch.tensordot({x.text}, {w.text}, dims=1)")


def _function(name: str, number: str | None = None) -> Row:
    """A function of one tensor; `number` is the one for Python numbers."""

    def row(u: Use) -> Py:
        if _is_tree(u.e.type):
            return Py(f"{u.context.helper('tree_map')}({name}, {u.args[0].text})")
        if u.args[0].number and number is not None:
            return Py(f"{number}({u.args[0].text})", ATOM, True)
        return Py(f"{name}({u.tensor(0).text})")

    return row


def _reduce(u: Use) -> Py:
    inside = f"dim={u.axis()}" if u.e.attrs else ""
    return Py(f"{u.method(0)}.{u.e.op}({inside})")


def _extremum(u: Use) -> Py:
    helper = u.context.helper("maximum" if u.e.op == "max" else "minimum")
    x, y = (u.aligned(i, u.e.type) for i in range(2))
    return Py(f"{helper}({(tensor(x) if y.number else x).text}, {y.text})")


def _compare(u: Use) -> Py:
    op = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}[u.e.op]
    left, right = (u.aligned(i, u.e.type) for i in range(2))
    return Py(f"{left.at(SUM)} {op} {right.at(SUM)}", COMPARE, left.number and right.number)


def _real(u: Use) -> Py:
    if isinstance(u.type(0), Hyper):
        return Py(u.args[0].text, u.args[0].level, True)
    return Py(f"{u.args[0].at(ATOM)}.to(torch.get_default_dtype())")


def _softmax(u: Use) -> Py:
    x = u.tensor(0).text
    if len(u.args) == 2:
        mask = u.aligned(1, u.type(0)).at(UNARY)
        x = f'{u.method(0)}.masked_fill(~{mask}, float("-inf"))'
    return Py(f"torch.softmax({x}, dim={u.axis()})")


def _ein(u: Use) -> Py:
    spec = ein_spec(str(u.e.attrs[0]))
    names = [] if spec is None else [n for axes in spec.operands for n in axes]
    if spec is None or len(set(names)) > len(ascii_letters):
        raise unsupported(f"a contraction of {len(set(names))} axes", u.e.span)
    letters = _letters(names)
    lists = ",".join("".join(letters[n] for n in axes) for axes in spec.operands)
    result = "".join(letters[n] for n in spec.result)
    operands = ", ".join(u.tensor(i).text for i in range(len(u.args)))
    return Py(f'torch.einsum("{lists}->{result}", {operands})')


def _letters(names: list[str]) -> dict[str, str]:
    """One letter per axis, its own first one where that is free."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        taken = set(found.values())
        wanted = [c for c in name.lower() if c in ascii_lowercase]
        found[name] = next(c for c in (*wanted, *ascii_lowercase, *ascii_uppercase) if c not in taken)
    return found


def _embed(u: Use) -> Py:
    return Py(f"{u.method(0)}[{u.args[1].text}]")


def _one_hot(u: Use) -> Py:
    ty = u.type(0)
    assert isinstance(ty, Idx)
    return Py(f"F.one_hot({u.args[0].text}, {u.dim(ty.bound).text}).to(torch.get_default_dtype())")


def _cross_entropy(u: Use) -> Py:
    rank, prefix = len(shape_of(u.type(1)).axes), shape_of(u.type(1)).prefix
    logits, y = u.tensor(0).text, u.args[1].text
    if prefix is None and rank <= 1:
        return Py(f'F.cross_entropy({logits}, {y}, reduction="none")')
    return Py(f"{u.context.helper('cross_entropy')}({logits}, {y})")


def _merge(u: Use) -> Py:
    return Py(f"{u.method(0)}.flatten({u.axis(0)}, {u.axis(1)})")


def _split(u: Use) -> Py:
    first, second = (_length(u, u.e.attrs[k]).text for k in (2, 4))
    return Py(f"{u.method(0)}.unflatten({u.axis()}, ({first}, {second}))")


def _split_heads(u: Use) -> Py:
    names = (u.context.written.of_file(u.e.span.file, name) for name in ("H", "HD"))
    heads, width = (name or str(a) for name, a in zip(names, u.e.attrs, strict=True))
    return Py(f"{u.context.helper('split_heads')}({u.tensor(0).text}, {heads}, {width})")


def _merge_heads(u: Use) -> Py:
    return Py(f"{u.context.helper('merge_heads')}({u.tensor(0).text})")


def _length(u: Use, attr: object) -> Py:
    return u.dim(attr) if isinstance(attr, Linear) else Py(str(attr), ATOM, True)


def _index(u: Use) -> Py:
    return Py(f"{u.method(0)}.select({u.axis()}, {_length(u, u.e.attrs[1]).text})")


def _slice(u: Use) -> Py:
    low, high = u.e.attrs[1], u.e.attrs[2]
    assert isinstance(low, Linear) and isinstance(high, Linear)
    return Py(f"{u.method(0)}.narrow({u.axis()}, {u.dim(low).text}, {u.dim(high - low).text})")


def _concat(u: Use) -> Py:
    return Py(f"torch.cat(({u.tensor(0).text}, {u.tensor(1).text}), dim={u.axis()})")


def _positions(u: Use) -> Py:
    return Py(f"torch.arange({u.dim(shape_of(u.e.type).axes[0].length).text})")


def _causal_mask(u: Use) -> Py:
    n, m = (u.dim(a.length).text for a in shape_of(u.e.type).axes)
    return Py(f"torch.ones(({n}, {m}), dtype=torch.bool).tril()")


def _dropout(u: Use) -> Py:
    rate = u.e.attrs[0]
    assert isinstance(rate, Fraction | int)
    return Py(f"F.dropout({u.tensor(1).text}, p={float(rate)!r}, training=training)")


def _split_key(u: Use) -> Py:
    """PyTorch draws from its own generator: every part is the key as it is."""
    return Py(f"[{u.args[0].text}] * {u.e.attrs[0]}", PRODUCT)


ROWS: dict[str, Row] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), _arithmetic),
    "neg": _neg,
    "pow": _pow,
    "dot": _dot,
    "gelu": _function("F.gelu"),
    "relu": _function("torch.relu"),
    "exp": _function("torch.exp", "math.exp"),
    "tanh": _function("torch.tanh", "math.tanh"),
    "sqrt": _function("torch.sqrt", "math.sqrt"),
    "abs": _function("torch.abs", "abs"),
    "log": _function("torch.log", "math.log"),
    "sigmoid": _function("torch.sigmoid"),
    "sin": _function("torch.sin", "math.sin"),
    "cos": _function("torch.cos", "math.cos"),
    "mean": _reduce,
    "sum": _reduce,
    "max": _extremum,
    "min": _extremum,
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq"), _compare),
    "real": _real,
    "softmax": _softmax,
    "ein": _ein,
    "embed": _embed,
    "one_hot": _one_hot,
    "cross_entropy": _cross_entropy,
    "argmax": lambda u: Py(f"{u.method(0)}.argmax(dim=-1)"),
    "sample": lambda u: Py(f"{u.context.helper('sample')}({u.tensor(1).text})"),
    "merge": _merge,
    "split": _split,
    "split_heads": _split_heads,
    "merge_heads": _merge_heads,
    "index": _index,
    "slice": _slice,
    "concat": _concat,
    "positions": _positions,
    "causal_mask": _causal_mask,
    "dropout": _dropout,
    "split_key": _split_key,
    "pi": lambda _: Py("math.pi", ATOM, True),
}


def printed(u: Use) -> Py:
    row = ROWS.get(u.e.op)
    if row is None:
        raise unsupported(f"`{u.e.op}`", u.e.span)
    return row(u)


def number(value: Fraction, span: Span) -> Py:
    """A number of ℝ; E9001 for one that no float holds."""
    found = real(value)
    if found is None:
        raise unsupported(f"the number {_shown(value)} is beyond what a float holds", span)
    return found


def _shown(value: Fraction) -> str:
    """A number to a few digits, whatever its size."""
    digits = Decimals(prec=6, Emin=-(10**17), Emax=10**17).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{digits.normalize():e}"
