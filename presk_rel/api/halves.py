"""The two halves of a generated pullback: the value with what its gradient needs, and the gradient from that.

The `compute` of a function together with its pullback is straight-line code, or loops one after another. What reads no
cotangent runs with the value; what does runs when the cotangents are known, on what the first half kept for it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from presk_rel.exec.torch.loaded import in_bf16
from presk_rel.exec.torch.numerics import undisturbed


@dataclass(frozen=True, slots=True)
class Halves:
    """`forward(*given)` is (results, kept); `backward(kept, cotangents)` is the slopes. `given` is what `prelude`
    makes; cotangents may be anything in it."""

    forward: Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]
    backward: Callable[[tuple[Any, ...], Sequence[Any]], tuple[Any, ...]]


def halves(source: str, namespace: dict[str, Any], cotangents: Sequence[str], results: int) -> Halves:
    """Cut the `compute` of a generated file, the first `results` of whose results are the value's. `namespace` is that
    of the loaded file."""
    compute = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "compute")
    *body, last = compute.body
    assert isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple)
    values, slopes = last.value.elts[:results], last.value.elts[results:]
    first, second = _cut(body, set(cotangents))
    params = [a.arg for a in compute.args.args]
    known = {*params, *(n for s in first for n in _names(s, ast.Store))} - set(cotangents)
    kept = sorted({n for s in (*second, *slopes) for n in _names(s, ast.Load)} & known)
    text = [
        f"def forward({', '.join(params)}):",
        *_rows(first),
        f"    return ({_listed(ast.unparse(v) for v in values)}), ({_listed(kept)})",
        "def backward(kept, cotangents):",
        f"    ({_listed(kept)}) = kept",
        f"    ({_listed(cotangents)}) = cotangents",
        *_rows(second),
        f"    return ({_listed(ast.unparse(s) for s in slopes)})",
    ]
    made = dict(namespace)
    exec(compile("\n".join(text), "<presk pullback>", "exec"), made)
    one, other = (
        undisturbed(made[name], made["device"].type, bf16=in_bf16(source)) for name in ("forward", "backward")
    )
    return Halves(one, other)


def _cut(body: Sequence[ast.stmt], late: set[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements that read none of the names in `late`, which grows, and those that do."""
    first: list[ast.stmt] = []
    second: list[ast.stmt] = []
    for statement in body:
        if late.isdisjoint(_names(statement, ast.Load)):
            first.append(statement)
        else:
            second.append(statement)
            late |= {*_names(statement, ast.Store), *_written(statement)}
    return first, second


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _written(node: ast.AST) -> set[str]:
    """Lists that a loop writes to."""
    found = (n.value for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return {x.id for x in found if isinstance(x, ast.Name)}


def _rows(body: Iterable[ast.stmt]) -> list[str]:
    return [f"    {row}" for statement in body for row in ast.unparse(statement).split("\n")]


def _listed(names: Iterable[str]) -> str:
    return "".join(f"{n}, " for n in names)
