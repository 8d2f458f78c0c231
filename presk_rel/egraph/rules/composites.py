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
    """Attention is recognised where it is what libraries compute: matrices in the last two axes. So is a product with a
    bias: what else is added to one is worked on with it, entry by entry."""
    if name == "linear":
        return ("(row b)",)
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

_THROUGH_BOTH = f"(add :type t {_THROUGH_QUOTIENT} {_THROUGH_DEVIATION})"


def _without_mean(of_mean: str) -> str:
    return f"(mean_vjp :type t :axis a {of_mean} y)"


def _without_mean_of(c: str) -> str:
    return _without_mean(f"(neg :type d (sum_to :type d {c} r))")


_ADJOINTS = tuple(
    Rule(
        name,
        left,
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
    for name, left in (
        ("standardize.adjoint", f"(add :type t {_THROUGH_BOTH} {_without_mean(_OF_MEAN)})"),
        ("standardize.adjoint-of-deviations", f"(add :type t {_THROUGH_BOTH} {_without_mean_of(_THROUGH_BOTH)})"),
        (
            "standardize.adjoint-of-means",
            f"(add :type t (add :type t (add :type t {_THROUGH_DEVIATION} {_without_mean_of(_THROUGH_DEVIATION)})"
            f" {_THROUGH_QUOTIENT}) {_without_mean_of(_THROUGH_QUOTIENT)})",
        ),
    )
)
"""Where the program has a name for μ, for x - μ, and for neither."""

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


def _softmax(name: str, left: str, right: str, conditions: tuple[str, ...], law: str) -> Rule:
    """A form of softmax, of its logarithm, or of what is made of them. x has the type t, d is t without the axis a."""
    return Rule(name, left, right, ("(type x t)", *conditions), law, "recognise")


_EXP, _SUM = "(exp :type t x)", "(sum :type d :axis a (exp :type t x))"
_ALONG = "(without-axis a t d)"
_SOFTMAX, _LOGS = "(softmax :type t :axis a x)", "(log_softmax :type t :axis a x)"
_THROUGH_SUM = f"(neg :type d (sum_to :type d (mul :type t c (div :type t {_SOFTMAX} {_SUM})) r))"
_ONE_HOT = ("(last-of a t)", "(typed (cross_entropy x i) d)", _ALONG)
_PICKED = {
    "": _LOGS,
    "-of-softmax": f"(log :type t {_SOFTMAX})",
    "-of-logsumexp": "(sub :type t x (logsumexp :type d :axis a x))",
}

_SOFTMAXES = (
    _softmax(
        "softmax.quotient",
        f"(div :type t {_EXP} {_SUM})",
        "(softmax :axis a x)",
        (_ALONG,),
        "softmax is exp x over its sum",
    ),
    _softmax(
        "softmax.quotient-adjoint",
        f"(add :type t (mul :type t (broadcast_like :type t :axis a {_THROUGH_SUM} z) {_EXP})"
        f" (mul :type t (div :type t c {_SUM}) {_EXP}))",
        f"(softmax_vjp :axis a c {_SOFTMAX})",
        ("(type c t)", "(type r d)", _ALONG),
        "with e = exp x, S = Σ e and p = e/S: c/S · e - e · Σ c · p/S = p · (c - Σ c · p)",
    ),
    _softmax(
        "softmax.factored",
        f"(mul :type t (broadcast_like :type t :axis a (div :type d c {_SUM}) z) {_EXP})",
        f"(mul (broadcast_like :type t :axis a c z) {_SOFTMAX})",
        ("(type c d)", _ALONG),
        "(c / Σ exp x) · exp x = c · softmax x",
    ),
    *(
        _softmax(
            f"{op}.shifted{name}",
            f"({op} :type t :axis a (sub :type t x {shift}))",
            f"({op} :axis a x)",
            (f"(type {of} d)", _ALONG),
            "exp (x - m) = exp x / exp m, and an m that is the same along the axis cancels",
        )
        for op in ("softmax", "log_softmax")
        for name, shift, of in (("", "m", "m"), ("-along", "(broadcast_like :type t :axis a m z)", "m"))
    ),
    _softmax(
        "log_softmax.of-softmax",
        f"(log :type t {_SOFTMAX})",
        "(log_softmax :axis a x)",
        (),
        "log (exp x / Σ exp x) = x - log Σ exp x",
    ),
    _softmax(
        "log_softmax.written",
        f"(sub :type t x (log :type d {_SUM}))",
        "(log_softmax :axis a x)",
        (_ALONG,),
        "x - log Σ exp x, broadcast along the axis",
    ),
    _softmax(
        "log_softmax.of-logsumexp",
        "(sub :type t x (logsumexp :type d :axis a x))",
        "(log_softmax :axis a x)",
        (_ALONG,),
        "x - log Σ exp x, broadcast along the axis",
    ),
    _softmax(
        "log_softmax.adjoint",
        f"(softmax_vjp :type t :axis a (div :type t c {_SOFTMAX}) {_SOFTMAX})",
        f"(log_softmax_vjp :axis a c {_LOGS})",
        ("(type c t)",),
        "p · (c/p - Σ c/p · p) = c - p · Σ c, with p = softmax x = exp (log_softmax x)",
    ),
    *(
        _softmax(
            f"log_softmax.adjoint-{name}",
            f"(add :type t c (mul :type t (broadcast_like :type t :axis a (neg :type d {total}) z) {_SOFTMAX}))",
            f"(log_softmax_vjp :axis a c {_LOGS})",
            ("(type c t)", *more, _ALONG),
            "c - softmax x · Σ c, and softmax x = exp (log_softmax x)",
        )
        for name, total, more in (
            ("sum_to", "(sum_to :type d c r)", ("(type r d)",)),
            ("sum", "(sum :type d :axis a c)", ()),
        )
    ),
    *(
        _softmax(
            f"cross_entropy.{name}",
            f"(sum {kept} (mul :type t (one_hot :type h i) {logs}))",
            right,
            (*_ONE_HOT, *more),
            "the product with 1 at i and 0 elsewhere is entry i, and cross entropy is minus the logarithm there",
        )
        for written, logs in _PICKED.items()
        for name, kept, right, more in (
            (f"one-hot{written}", ":type d :axis a", "(neg (cross_entropy :type d x i))", ()),
            (
                f"one-hots{written}",
                ":type s",
                "(neg (sum :type s (cross_entropy :type d x i)))",
                ("(scalar-type s)",),
            ),
        )
    ),
    *(
        _softmax(
            f"cross_entropy.adjoint-{name}",
            f"(log_softmax_vjp :type t :axis a (mul :type t {spread} (one_hot :type h i)) {_LOGS})",
            f"(cross_entropy_vjp (neg :type d {row}) x i)",
            (*_ONE_HOT, *more),
            "c · h - softmax x · Σ c · h = c · (h - softmax x), where h has a 1 at i and sums to 1",
        )
        for name, spread, row, more in (
            ("one-hot", "(broadcast_like :type t :axis a c z)", "c", ("(type c d)",)),
            (
                "one-hots",
                "(broadcast_like :type t c z)",
                "(broadcast_like :type d c (sum :type d :axis a x))",
                ("(type c s)", "(scalar-type s)"),
            ),
        )
    ),
)

RULES: tuple[Rule, ...] = (
    *_ADJOINTS,
    *_SOFTMAXES,
    *map(_definition, COMPOSITES.values()),
    *(rule for row in COMPOSITES.values() if row.name.startswith("attention") for rule in _scaled(row)),
    *(_template(row) for row in COMPOSITES.values() if row.shape_only),
    *(_stacked(n) for n in range(DEEPEST, 0, -1)),
)
