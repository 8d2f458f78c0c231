"""Every primitive of tensors that are filled with one number: where the result is filled with one number whatever else
is given, optimization writes that number, or the reason why not stands here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import mpmath as mp
import pytest

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ir import Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import RuleStep
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.rules.fills import LARGEST
from presk_rel.exec.verdict import verify_proof
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.egraph.fold_programs import same_values
from tests.egraph.programs import read
from tests.egraph.test_rules_hold import ELSEWHERE, MOVING, ops

DIMS = {"N": 2, "M": 3}
UNARY = ("neg", "gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos", "gelu'", "normal_pdf")
PIECES = ("heaviside", "sign")
BINARY = ("add", "sub", "mul", "div", "max", "min")
PAIR = "x : ℝ[a: N, 3], y : ℝ[a: N, 3]"
SMALL = "x : ℝ[a: N, 3], y : ℝ[3]"
WIDE, ROW = "ℝ[a: N, 3]", "ℝ[a: N]"

USES: dict[str, tuple[str, str, str]] = {
    **{op: ("x : ℝ[a: N, 3]", WIDE, f"{op} x") for op in (*UNARY, *PIECES)},
    **{op: (PAIR, WIDE, f"{op} x, y") for op in BINARY},
    **{f"{op} broadcast": (SMALL, WIDE, f"{op} x, y") for op in BINARY},
    **{f"{op} broadcast left": (SMALL, WIDE, f"{op} y, x") for op in BINARY},
    "pow": ("x : ℝ[a: N, 3]", WIDE, "pow 3 x"),
    "pow 0": ("x : ℝ[a: N, 3]", WIDE, "pow 0 x"),
    "dot": ("x : ℝ[a: N, 3], y : ℝ[3, b: M]", "ℝ[a: N, b: M]", "dot x, y"),
    "dot_vjp_l": ("x : ℝ[a: N, 3], y : ℝ[b: M, 3]", "ℝ[a: N, b: M]", "dot_vjp_l x, y"),
    "dot_vjp_r": ("x : ℝ[3, a: N], y : ℝ[3, b: M]", "ℝ[a: N, b: M]", "dot_vjp_r x, y"),
    "ein 1": ("x : ℝ[a: N, b: M]", "ℝ[b: M, a: N]", "ein [a b -> b a] x"),
    "ein 2": ("x : ℝ[a: N, b: M], y : ℝ[b: M, a: N]", "ℝ[b: M]", "ein [a b, b a -> b] x, y"),
    "ein 3": ("x : ℝ[a: N, b: M], y : ℝ[b: M], z : ℝ[a: N]", "ℝ[b: M]", "ein [a b, b, a -> b] x, y, z"),
    "ein 4": (
        "x : ℝ[a: N, b: M], y : ℝ[b: M], z : ℝ[a: N], w : ℝ[a: N]",
        "ℝ[b: M]",
        "ein [a b, b, a, a -> b] x, y, z, w",
    ),
    "ein 5": (
        "x : ℝ[a: N, b: M], y : ℝ[b: M], z : ℝ[a: N], w : ℝ[a: N], v : ℝ[b: M]",
        "ℝ[b: M]",
        "ein [a b, b, a, a, b -> b] x, y, z, w, v",
    ),
    **{op: ("x : ℝ[a: N, 3]", "ℝ[]", f"{op} x") for op in ("sum", "mean")},
    **{f"{op} axis": ("x : ℝ[a: N, 3]", "ℝ[3]", f"{op} axis a x") for op in ("sum", "mean")},
    **{op: ("x : ℝ[], y : ℝ[a: N, 3]", WIDE, f"{op} x, y") for op in ("mean_vjp", "broadcast_like")},
    **{f"{op} axis": ("x : ℝ[3], y : ℝ[a: N, 3]", WIDE, f"{op} axis a x, y") for op in ("mean_vjp", "broadcast_like")},
    "sum_to": ("x : ℝ[a: N, 3], y : ℝ[3]", "ℝ[3]", "sum_to x, y"),
    "zeros_like": ("x : ℝ[a: N, 3]", WIDE, "zeros_like x"),
    "ones_like": ("x : ℝ[a: N, 3]", WIDE, "ones_like x"),
    "softmax": ("x : ℝ[a: N, 3]", WIDE, "softmax axis a x"),
    "softmax masked": ("x : ℝ[N, a: N], m : bool[N, N]", "ℝ[N, a: N]", "softmax axis a x, m"),
    "embed": ("x : ℝ[M, 3], i : idx[M][a: N]", "ℝ[a: N, 3]", "embed x, i"),
    "embed_vjp": ("x : ℝ[a: N, 3], i : idx[M][a: N], y : ℝ[M, 3]", "ℝ[M, 3]", "embed_vjp x, i, y"),
    "cross_entropy": ("x : ℝ[a: N, M], i : idx[M][a: N]", ROW, "cross_entropy x, i"),
    "cross_entropy_vjp": ("c : ℝ[a: N], x : ℝ[a: N, M], i : idx[M][a: N]", "ℝ[a: N, M]", "cross_entropy_vjp c, x, i"),
    "merge": ("x : ℝ[a: N, b: 3]", "ℝ[3*N]", "merge axis a axis b x"),
    "split": ("x : ℝ[a: 6, N]", "ℝ[b: 2, c: 3, N]", "split axis a b: 2 c: 3 x"),
    "reshape_like": ("x : ℝ[6], y : ℝ[2, 3]", "ℝ[2, 3]", "reshape_like x, y"),
    "split_heads": ("x : ℝ[N, 6]", "ℝ[heads: 3, N, hd: 2]", "split_heads 3x2 x"),
    "merge_heads": ("x : ℝ[heads: 3, N, hd: 2]", "ℝ[N, 6]", "merge_heads 3x2 x"),
    "index": ("x : ℝ[a: N + 1, 3]", "ℝ[3]", "index a: N x"),
    "scatter_index": ("x : ℝ[3], y : ℝ[a: N, 3]", WIDE, "scatter_index a: 0 x, y"),
    "slice": ("x : ℝ[a: N + 1, 3]", WIDE, "slice a: 1..N + 1 x"),
    "slice_vjp": ("x : ℝ[a: N, 3], y : ℝ[a: N + 1, 3]", "ℝ[a: N + 1, 3]", "slice_vjp a: 1..N + 1 x, y"),
    "concat": ("x : ℝ[a: N, 3], y : ℝ[a: M, 3]", "ℝ[a: N + M, 3]", "concat a x, y"),
    **{
        f"stack_params {n}": (
            ", ".join(f"x{k} : ℝ[a: N]" for k in range(n)),
            f"ℝ[{n}, a: N]",
            f"stack_params {', '.join(f'x{k}' for k in range(n))}",
        )
        for n in range(2, LARGEST + 1)
    },
    "slice_params": ("x : ℝ[a: N, 3]", "ℝ[3]", "slice_params 1 x"),
    "scatter_params": ("x : ℝ[3], y : ℝ[a: N, 3]", WIDE, "scatter_params 1 x, y"),
    "set_slice": ("x : ℝ[a: N, 3], y : ℝ[3]", WIDE, "set_slice 1 x, y"),
    "sum_squares": ("x : ℝ[a: N, 3]", "ℝ[]", "sum_squares x"),
}
"""A use of each primitive that takes tensors of reals and gives one: parameters, type and operation."""

NO_USE = {
    **dict.fromkeys(("const", "dim", "zeros", "ones", "pi", "positions", "causal_mask"), "no operand"),
    **dict.fromkeys(("normal", "xavier_uniform", "split_key", "dropout_mask"), "no operand whose value is real"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq"), "gives a mask, of which no literal exists"),
    **dict.fromkeys(("argmax", "sample"), "gives an index, of which no literal exists"),
    **dict.fromkeys(("one_hot", "real"), "reads no real"),
    **dict.fromkeys(("field", "set_field", "record", "tuple", "proj", "set_elem"), "works part by part"),
}

ALL = "given all operands"
NOT_FILLED = {
    "softmax": ("any", "1/n, whose n may be symbolic"),
    "cross_entropy": ("any", "log n"),
    "normal_pdf": ("any", "no rational"),
    **dict.fromkeys(("gelu", "exp", "tanh", "sigmoid", "sin", "cos", "gelu'"), ("ones", "no rational")),
    **dict.fromkeys(("sum", "sum_to", "sum_squares", "mean_vjp"), ("ones", "a count, which may be symbolic")),
    **dict.fromkeys(("dot", "dot_vjp_l", "dot_vjp_r", "ein", "embed_vjp"), ("ones", "a count, which may be symbolic")),
    **dict.fromkeys(("stack_params", "set_slice"), ("ones", "not worth a rule: no derivative makes it")),
}
"""The primitives, with what they are given, whose result is left as it is, and why."""
ZEROS = {"zeros", "zeros_like", "const"}
WRITTEN = {*ZEROS, "ones", "ones_like", "broadcast_like", "mul", "add", "sub", "neg"}
"""What a number is written with that fills a tensor; no parameter is among them."""


def parameters(text: str) -> list[tuple[str, str]]:
    return [(n, t) for n, t in (p.split(" : ") for p in text.replace("], ", "]; ").split("; "))]


def filled(name: str, fills: dict[str, str]) -> Program:
    """The use of a primitive with some parameters computed as fills, or from a parameter `given`."""
    params, result, operation = USES[name]
    lines = [f"  {p} : {t} = {fills[p]}\n" for p, t in parameters(params) if p in fills]
    rest = [f"{p} : {t}" for p, t in parameters(params) if p not in fills]
    rest += [f"given : {t}" for p, t in parameters(params) if fills.get(p) == "exp given"]
    body = f"{''.join(lines)}  r : {result} = {operation}\n  return r\n"
    return read(f"fn f{{N M}}({', '.join(rest)}) -> {result} {{\n{body}}}\n")


def cases() -> Iterator[tuple[str, str, dict[str, str]]]:
    for name, (params, _, _) in USES.items():
        reals = [p for p, t in parameters(params) if t.startswith("ℝ")]
        for fill in ("zeros", "ones"):
            yield from ((name, p, {p: fill}) for p in reals)
            yield name, ALL, dict.fromkeys(reals, fill)


CASES = list(cases())


@cache
def constant(name: str, fills: tuple[tuple[str, str], ...]) -> mp.mpf | None:
    """The number that fills the result whatever the rest is; None where there is none, or where it is undefined."""
    program, rng, seen = filled(name, dict(fills)), random.Random(0), set[object]()
    with mp.workdps(30):
        for low, high in ((0.3, 2), (0.3, 2), (-2, -0.3)):
            params = program.functions["f"].params
            args = [
                random_value(program, p.type, DIMS, (), lambda a=low, b=high: mp.mpf(rng.uniform(a, b))) for p in params
            ]
            try:
                found = flat(evaluate(program, "f", DIMS, args))
            except ZeroDivisionError:
                continue
            seen.update(mp.nstr(x, 20) for x in found if isinstance(x, mp.mpf) and mp.isfinite(x))
    return mp.mpf(str(seen.pop())) if len(seen) == 1 else None


def reads(done: Optimized) -> set[str]:
    """The operations whose values are read for the result, parameters among them."""
    f = done.program.functions["f"]
    bindings = {b.name: b.op for b in f.bindings}
    names, found = [f.ret], set[str]()
    for n in names:
        op = bindings.get(n)
        if not isinstance(op, Prim):
            found.add(n)
            continue
        found.add(op.op)
        names += [a for k, a in enumerate(op.args) if k not in PRIMS[op.op].shape_only]
    return found


@pytest.mark.parametrize(("name", "operand", "fills"), CASES)
def test_a_constant_result_is_written_as_one(name: str, operand: str, fills: dict[str, str]):
    value = constant(name, tuple(fills.items()))
    program = filled(name, fills)
    done = optimize(program, "f")
    assert verify_proof(done.proof, program, done.program).accepted
    if value is not None and not left_alone(name, fills):
        assert reads(done) <= (ZEROS if value == 0 else WRITTEN), (value, reads(done))


def left_alone(name: str, fills: dict[str, str]) -> bool:
    op, values = name.split()[0], set(fills.values())
    return op in NOT_FILLED and (NOT_FILLED[op][0] in ("any", *values))


BY_USE = {n for n, r in RULES.items() if r.ruleset not in ELSEWHERE and ops(n) & MOVING}
SHAPES = [{"N": n, "M": m} for n in range(2, 12) for m in range(1, 11)]


@cache
def used(name: str, fills: tuple[tuple[str, str], ...]) -> tuple[Program, Program, set[str]]:
    """A case, what it becomes, and the rules that are not found by search."""
    program = filled(name, dict(fills))
    done = optimize(program, "f")
    rules = {s.rule for lemma in done.proof.lemmas for s in lemma.steps if isinstance(s, RuleStep)}
    return program, done.program, rules & BY_USE


def test_every_rule_that_moves_fills_holds_on_a_hundred_shapes():
    seen = set[str]()
    templates = [(name, (("y", "exp given"),)) for name, (params, _, _) in USES.items() if "y : ℝ" in params]
    for name, fills in [*((n, tuple(f.items())) for n, _, f in CASES), *templates]:
        before, after, rules = used(name, fills)
        if rules - seen:
            seen |= rules
            assert all(same_values(before, after, "f", dims) for dims in SHAPES), (name, fills)
    assert seen == BY_USE


def test_every_primitive_has_a_use():
    assert {u.split()[0] for u in USES} | NO_USE.keys() == PRIMS.keys() - COMPOSITES.keys()
