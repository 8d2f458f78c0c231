"""Functions that checking a body makes: a stack of a stack, or of a composition, repeats no function of the source, so
what it repeats gets one of its own.

    fn run(x : ℝ[..., D]) -> ℝ[..., D] = blocks.apply(x)        with use blocks : stack{L}(stack{N}(Block))

is typed as a stack call of `Net.run.stack0(θ : params stack{N}(Block), x) = (the call through the inner stack)`. Like a
lifted lambda it has the dims of the body around that it mentions.
"""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.types.tree import Binder, TExpr, TFn
from presk_rel.types.zonk import Rewrite


@record
class Lifted:
    """A function whose types may still be unknown."""

    name: str
    params: tuple[Binder, ...]
    body: TExpr
    span: Span


def finish(lifted: Lifted, rewrite: Rewrite, mentioned: dict[str, None], uses: tuple[str, ...]) -> TFn:
    """The typed function; `mentioned` collects the dims that `rewrite` meets. Callers pass them on by name."""
    params = tuple(rewrite.binder(b) for b in lifted.params)
    body = rewrite.expr(lifted.body)
    dims = tuple(mentioned)
    rewrite.lifted[lifted.name] = dims
    return TFn(lifted.name, dims, None, params, body.type, uses, body, lifted.span, lifted.span)
