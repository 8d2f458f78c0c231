"""Random flat programs: every primitive on real tensors, broadcasting, reductions and their adjoints; typed by Core's
typing rules, so well-formed by construction."""

from __future__ import annotations

import random
from fractions import Fraction

from presk_rel.core.ir import Attr, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.elab.ty import SCALAR_REAL, TupleOf, Type
from tests.egraph.programs import Builder, real

INPUTS = (real("B", ("model", "D")), real("B", ("model", "D")), real("D"), real("D", "D"), SCALAR_REAL, SCALAR_REAL)
UNARY = [
    "neg",
    "gelu",
    "relu",
    "exp",
    "tanh",
    "sqrt",
    "abs",
    "log",
    "sigmoid",
    "sin",
    "cos",
    "gelu'",
    "heaviside",
    "sign",
    "normal_pdf",
]
CONSTANTS = tuple(Fraction(c) for c in ("0", "1", "-1", "2", "1/2", "3"))
OPS = (
    *["add", "sub", "mul"] * 6,
    "div",
    *UNARY,
    *["neg", "relu", "abs", "heaviside", "sign", "exp", "log"],
    *["pow", "const"] * 3,
    *["sum_to", "broadcast_like", "sum", "mean", "mean_vjp"] * 3,
    *["zeros_like", "ones_like", "zeros", "ones"],
    *["dot", "dot_vjp_l", "dot_vjp_r"] * 2,
)


def random_program(seed: int, size: int) -> Program:
    """A program `f{B D}` of about `size` bindings that returns a tuple of its last values."""
    rng = random.Random(seed)
    b = Builder()
    for i, ty in enumerate(INPUTS):
        b.param(f"p{i}", ty)
    while len(b.bindings) < size:
        _attempt(b, rng)
    unread = [x.name for x in b.bindings if isinstance(x.type, type(SCALAR_REAL))][-4:]
    return b.program(b.prim("tuple", TupleOf(tuple(b.types[v] for v in unread)), *unread), ("B", "D"))


def _attempt(b: Builder, rng: random.Random) -> None:
    op = rng.choice(OPS)
    row = PRIMS[op]
    names = list(b.types)
    recent = names[-8:] if rng.random() < 0.7 else names
    args = tuple(rng.choice(recent) for _ in range(row.arity or 0))
    if len(args) == 2 and rng.random() < 0.1:
        args = (args[0], args[0])
    attrs = _attrs(op, rng)
    declared: Type = rng.choice(INPUTS) if op in ("zeros", "ones") else SCALAR_REAL
    found = infer(row, attrs, tuple(b.types[a] for a in args), declared, {})
    if not isinstance(found, str):
        b.prim(op, found, *args, attrs=attrs)


def _attrs(op: str, rng: random.Random) -> tuple[Attr, ...]:
    if op == "const":
        return (rng.choice(CONSTANTS),)
    if op == "pow":
        return (rng.choice((0, 1, 2, 2, 3)),)
    if op in ("sum", "mean", "mean_vjp", "broadcast_like") and rng.random() < 0.4:
        return ("model",)
    return ()
