"""What the analyses of PSK-Core have to say to the user: E3001, E4001, W4001, W4002.

The rules decide (`rules.analysis`); here is only how to say it, and where.
"""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.core.ir import Jvp, Program, Vjp
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import Diagnostic, Diagnostics, Label, Span
from presk_rel.diagnostics.record import record
from presk_rel.rules.analysis import CoreAnalysis, EffectSite, IllegalGradient

_SPELLED = {
    "real of an index": "real",
    "dropout_mask": "dropout",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
}
"""Primitives that the source writes otherwise."""

_TABLE = "take the gradient in the table or the scores, not in the index"
_COMPARISON = "use `sigmoid` of the scaled difference for a smooth step, or `clamp` for one with kinks"
SUBSTITUTES: dict[str, str] = {
    "argmax": "use `softmax` for a smooth surrogate, or an explicit straight-through relaxation",
    "sample": "use the probabilities, `softmax`, for a smooth surrogate, or an explicit straight-through relaxation",
    "one_hot": "use `softmax` for a smooth surrogate: an index has no neighbours to be smooth in",
    "real of an index": "keep the tensor real, or take the gradient in something else: an index has no neighbours",
    "embed": _TABLE,
    "cross_entropy": _TABLE,
    "heaviside": "use `sigmoid` for a smooth step",
    "sign": "use `tanh` for a smooth sign",
    "relu": "use `gelu`, or log(1 + exp(x)), which have all derivatives",
    "abs": "use sqrt(x^2 + ε), which has all derivatives",
    "max": "use log(exp(x) + exp(y)), which has all derivatives",
    "min": "use -log(exp(-x) + exp(-y)), which has all derivatives",
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq"), _COMPARISON),
    **dict.fromkeys(
        ("split_key", "normal", "xavier_uniform", "dropout_mask"),
        "a draw is no smooth function of its key: take the gradient in something else",
    ),
}
"""For each primitive that can be to blame, what to write instead."""


def report_core(program: Program, analysis: CoreAnalysis) -> Diagnostics:
    """E3001 for each illegal gradient, E4001 for each function that does not declare an effect of its, W4001 for keys
    drawn from twice, W4002 for keys shared by all layers of a stack; in source order of their kinds."""
    found = Diagnostics()
    for gradient in analysis.illegal_gradients():
        found.add(_illegal(analysis, gradient, _operator(program, gradient.site)))
    for diagnostic in (*_undeclared(analysis), *_reused_keys(analysis), *_shared_keys(analysis)):
        found.add(diagnostic)
    return found


def _spelled(prim: str) -> str:
    return _SPELLED.get(prim, prim)


def _shown(variable: str) -> str | None:
    """The user's name of `f/x%7.0`, None if it has none."""
    name = variable.partition("/")[2].partition("%")[0].partition(".")[0]
    return name or None


# ------------------------------------------------------------------------------------------------------- gradients


def _operator(program: Program, site: str) -> str:
    function, _, name = site.rpartition("/")
    op = next(b.op for b in program.functions[function].bindings if b.name == name)
    return "vjp" if isinstance(op, Vjp) else "jvp" if isinstance(op, Jvp) else "grad"


def _illegal(analysis: CoreAnalysis, gradient: IllegalGradient, operator: str) -> Diagnostic:
    by = gradient.parameter.partition("%")[0].partition(".")[0] or "its argument"
    place = _applied(analysis, gradient)
    prim = gradient.primitive
    kink = prim is not None and "Disc" not in PRIMS.get(prim, PRIMS["real"]).regularity and prim != "real of an index"
    if prim is None:
        message = f"cannot differentiate through a function that is not known here: it may jump in `{by}`"
        why, help_text = "what is applied here is not known", "pass a function that presk can see, or declare it here"
    elif kink:
        message = (
            f"cannot differentiate twice through `{_spelled(prim)}`: its gradient is discontinuous (Disc) in `{by}`"
        )
        why, help_text = f"`{_spelled(prim)}` has a kink: its gradient jumps in `{by}`", SUBSTITUTES[prim]
    else:
        message = f"cannot differentiate through `{_spelled(prim)}`: the function is discontinuous (Disc) in `{by}`"
        why, help_text = f"`{_spelled(prim)}` makes the result discontinuous in `{by}`", SUBSTITUTES[prim]
    labels = [Label(gradient.cause_span, why)] if gradient.cause_span is not None else []
    if place is not None:
        labels.append(Label(place, f"`{operator}` here, with respect to `{by}`"))
    return Diagnostic("E3001", message, place or gradient.cause_span, labels=tuple(labels), help=help_text)


def _applied(analysis: CoreAnalysis, gradient: IllegalGradient) -> Span | None:
    """`grad(f)(x)` rather than `grad(f)`, where the gradient is applied on the spot."""
    for site, _, function in analysis.facts.get("apply", []):
        span = analysis.spans.get(str(site))
        if function == gradient.site and span is not None and gradient.span is not None:
            if (span.file, span.start) == (gradient.span.file, gradient.span.start):
                return span
    return gradient.span


# --------------------------------------------------------------------------------------------------------- effects


@record
class _Sites:
    """What is done where: the primitive, or the function, that a site names."""

    performs: dict[str, str]
    names: dict[str, str]

    @staticmethod
    def of(analysis: CoreAnalysis) -> _Sites:
        performs = {str(site): str(prim) for site, _, prim, _ in analysis.facts.get("performs", [])}
        rows = [*analysis.facts.get("call", []), *analysis.facts.get("closure", [])]
        return _Sites(performs, {str(site): str(callee) for site, _, callee in rows})


def _undeclared(analysis: CoreAnalysis) -> Iterator[Diagnostic]:
    sites = analysis.undeclared_effects()
    if not sites:
        return
    table = _Sites.of(analysis)
    by_function: dict[tuple[str, str], list[EffectSite]] = {}
    for site in sites:
        by_function.setdefault((site.function, site.effect), []).append(site)
    lambdas = {callee for _, fn, callee in analysis.facts.get("closure", []) if _is_lambda(str(fn), str(callee))}
    for (function, effect), own in by_function.items():
        if function not in lambdas:
            first = _first(_unfolded(own, by_function, table))
            yield _no_uses(function, effect, first, table)


def _is_lambda(fn: str, callee: str) -> bool:
    return callee.startswith(f"{fn}.lambda")


def _unfolded(
    own: list[EffectSite], by_function: dict[tuple[str, str], list[EffectSite]], table: _Sites
) -> Iterator[EffectSite]:
    """The sites of a function, those of its lambdas instead of the lambdas themselves."""
    todo = list(own)
    while todo:
        site = todo.pop()
        callee = table.names.get(site.site)
        inner = by_function.get((callee, site.effect)) if callee and _is_lambda(site.function, callee) else None
        if inner:
            todo.extend(inner)
        else:
            yield site


def _first(sites: Iterator[EffectSite]) -> EffectSite:
    return min(sites, key=lambda s: ("", 0) if s.span is None else (s.span.file, s.span.start.offset))


def _no_uses(function: str, effect: str, first: EffectSite, table: _Sites) -> Diagnostic:
    prim, callee = table.performs.get(first.site), table.names.get(first.site)
    why = f"`{_spelled(prim)}` draws from its key" if prim else f"`{callee}` uses {effect}" if callee else "here"
    return Diagnostic(
        "E4001",
        f"`{function}` uses {effect} and does not say so",
        first.span,
        labels=() if first.span is None else (Label(first.span, why),),
        help=f"declare it after the type of the result: `uses {effect}`",
    )


# ------------------------------------------------------------------------------------------------------------ keys


def _reused_keys(analysis: CoreAnalysis) -> Iterator[Diagnostic]:
    reused = {str(root) for (root,) in analysis.relations.rows("reused")}
    draws: dict[str, list[tuple[Span, str]]] = {}
    for root, site, by in analysis.relations.rows("drawn") if reused else ():
        span = analysis.spans.get(str(site))
        if root in reused and span is not None:
            draws.setdefault(str(root), []).append((span, str(by)))
    for root, uses in sorted(draws.items(), key=lambda item: (min(item[1]), item[0])):
        places = sorted({span for span, _ in uses})
        shown = _key(*sorted(str(x) for x, r in analysis.relations.rows("same_key") if r == root))
        labels = tuple(
            Label(span, f"{'first' if i == 0 else 'again'} drawn from here") for i, span in enumerate(places)
        )
        yield Diagnostic(
            "W4001",
            f"{shown} is drawn from {'twice' if len(uses) == 2 else f'{len(uses)} times'}: "
            "draws from one key give the same numbers",
            places[min(1, len(places) - 1)],
            "warning",
            labels,
            help="split it: let (k1, k2) = split_key(key), and give each draw its own",
        )


def _shared_keys(analysis: CoreAnalysis) -> Iterator[Diagnostic]:
    for site, key, _ in analysis.relations.rows("one_key"):
        span = analysis.spans.get(str(site))
        if span is None:
            continue
        yield Diagnostic(
            "W4002",
            f"{_key(str(key))} is one key for all layers of the stack: every layer draws the same numbers",
            span,
            "warning",
            help="carry it in the accumulator, (x, key), and split it in every layer",
        )


def _key(*variables: str) -> str:
    name = next((name for v in variables if (name := _shown(v))), None)
    return f"`{name}`" if name else "this key"
