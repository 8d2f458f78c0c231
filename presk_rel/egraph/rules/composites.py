"""Composite primitives recognised: every definition of `core.composites` as a rule, and the adjoint of standardization
in the form in which reverse mode writes it.

They run in `egraph.recognise`, before the e-graph and on what it chose.
"""

from __future__ import annotations

from dataclasses import replace

from presk_rel.core.composites import COMPOSITES, Composite
from presk_rel.core.ein import SCORES, TURNED, TURNED_BACK, VALUES
from presk_rel.core.expand import Part, read_definition
from presk_rel.egraph.rule import Rule

_KEYWORDS = {"axis": (":axis",), "rational": (":value",), "spec": (":spec", ":spec2", ":spec3")}
_PLACE = ":axis a :value e"


def _use(row: Composite) -> str:
    """The composite over its own variables."""
    free = {kind: iter(words) for kind, words in _KEYWORDS.items()}
    words = [f"{next(free[kind])} {name}" for name, kind in row.attrs]
    return f"({' '.join([row.name, *words, *row.operands])})"


def _definition(row: Composite) -> Rule:
    constant = "(const " in row.definition
    return Rule(
        f"{row.name}.definition",
        row.definition.replace("(const ", "(const :type s "),
        _use(row),
        ("(as-inferred)", *(["(scalar-type s)"] if constant else [])),
        "definition",
        "recognise",
        _guards(row.name),
    )


def _scaled(row: Composite) -> tuple[Rule, Rule]:
    """Attention whose scores are multiplied by a number, and attention whose scores are not scaled, as attention that
    divides them by one."""
    product = row.definition.replace("(div ", "(mul ").replace(" c)", " (const :value n :type u))")
    plain = _text(_undivided(read_definition(row.definition)))
    number = replace(row, operands=tuple("(const :value (/ 1 n) :type u)" if x == "c" else x for x in row.operands))
    one = replace(row, operands=tuple("(const :value 1 :type u)" if x == "c" else x for x in row.operands))
    conditions = ("(as-inferred)", "(scalar-type u)")
    return (
        Rule(
            f"{row.name}.of-product",
            product,
            _use(number),
            (*conditions, "(nonzero n)"),
            "x · n = x / (1/n)",
            "recognise",
            _guards(row.name),
        ),
        Rule(f"{row.name}.unscaled", plain, _use(one), conditions, "x = x / 1", "recognise", _guards(row.name)),
    )


def _undivided(part: Part) -> Part:
    """A definition without the division by `c`."""
    if isinstance(part, str):
        return part
    return _undivided(part[1]) if (part[0], part[-1]) == ("div", "c") else tuple(map(_undivided, part))


def _text(part: Part) -> str:
    return part if isinstance(part, str) else f"({' '.join(map(_text, part))})"


def _template(row: Composite) -> Rule:
    """An operand that is read for its type only may be any value of that type. (No composite has two.)"""
    (place,) = row.shape_only
    name = row.operands[place]
    other = replace(row, operands=(*row.operands[:place], "z", *row.operands[place + 1 :]))
    return Rule(
        f"{row.name}.template",
        _use(row),
        _use(other),
        (f"(same-type {name} z)",),
        f"only the type of operand {place + 1} is read",
        "encode",
    )


def _guards(name: str) -> tuple[str, ...]:
    """Attention is recognised where it is what libraries compute: matrices in the last two axes."""
    forms = {
        "attention": {"r": VALUES},
        "attention_vjp_q": {"r": SCORES, "s": VALUES},
        "attention_vjp_k": {"r": SCORES, "s": TURNED},
        "attention_vjp_v": {"r": TURNED_BACK},
    }.get(name.removesuffix("_masked"))
    if forms is None:
        return ()
    return ("(last-axis a p)", f"(of-matrices p {SCORES})", *(f"(of-matrices {s} {form})" for s, form in forms.items()))


_DEVIATION = f"(deviation :type d {_PLACE} x)"
_THROUGH_QUOTIENT = f"(div :type t c {_DEVIATION})"
_OF_DEVIATION = (
    f"(div :type d (neg :type d (sum_to :type d (mul :type t c (div :type t (standardize :type t {_PLACE} x)"
    f" {_DEVIATION})) r)) (mul :type d {_DEVIATION} (const :value 2 :type s)))"
)
_THROUGH_DEVIATION = (
    f"(mul :type t (mean_vjp :type t :axis a {_OF_DEVIATION} y)"
    " (mul :type t (sub :type t x (mean :type d :axis a x)) (const :value 2 :type s)))"
)
_OF_MEAN = (
    f"(add :type d (neg :type d (sum_to :type d {_THROUGH_QUOTIENT} r))"
    f" (neg :type d (sum_to :type d {_THROUGH_DEVIATION} r)))"
)

_ADJOINT = Rule(
    "standardize.adjoint",
    f"(add :type t (add :type t {_THROUGH_QUOTIENT} {_THROUGH_DEVIATION}) (mean_vjp :type t :axis a {_OF_MEAN} y))",
    f"(standardize_vjp {_PLACE} c x)",
    (
        "(type x t)",
        "(type c t)",
        "(type y t)",
        "(type r d)",
        "(scalar-type s)",
        "(typed (mean :axis a x) d)",
        "(without-axis a t d)",
    ),
    "the adjoint of (x - μ)/σ through the quotient, σ and μ: with y the quotient, (c - mean c - y · mean(c · y))/σ",
    "recognise",
)


DEEPEST = 24
"""Slices of a stack whose cotangents are put together in one operation."""


def _stacked(count: int) -> Rule:
    """The cotangent of a stack whose every slice is read, as reverse mode adds it up: the last slice first."""
    slices = [f"(scatter_params :type t :dim {i} v{i} z{i})" for i in range(count)]
    whole = slices[-1]
    for part in reversed(slices[:-1]):
        whole = f"(add :type t {whole} {part})"
    return Rule(
        f"stack.of-{count}",
        whole,
        f"(stack_params :type t {' '.join(f'v{i}' for i in range(count))})",
        ("(real-type t)",),
        "the sum of a stack's slices, each at its place among zeros, is the stack",
        "recognise",
    )


RULES: tuple[Rule, ...] = (
    _ADJOINT,
    *map(_definition, COMPOSITES.values()),
    *(rule for row in COMPOSITES.values() if row.name.startswith("attention") for rule in _scaled(row)),
    *(_template(row) for row in COMPOSITES.values() if row.shape_only),
    *(_stacked(n) for n in range(DEEPEST, 0, -1)),
)
