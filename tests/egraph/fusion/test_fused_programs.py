"""Programs with kernels: they compute the same, digit by digit, are read as printed, and the checker unfolds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Function, Prim, Program
from presk_rel.core.printer import print_program
from presk_rel.core.reader import load
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics
from presk_rel.egraph.fusion.check import check_fused
from presk_rel.egraph.fusion.fuse import Fused, fuse
from presk_rel.egraph.fusion.roles import ROLES
from presk_rel.egraph.parts import live
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.session import Session
from tests.egraph.random_programs import random_program
from tests.exec.oracle import texts
from tests.exec.torch.against import agrees

EXAMPLES = Path(__file__).parents[3] / "examples"
TINY: dict[str, int] = {"m.V": 8, "m.D": 4, "m.H": 2, "m.L": 2}
ENTRIES: list[tuple[str, str, dict[str, int], dict[str, int], dict[str, Any]]] = [
    ("mlp.psk", "mse", {}, {"B": 2, "D": 2}, {}),
    ("mlp.psk", "mse_grad", {}, {"B": 2, "D": 2}, {}),
    ("tour/deep.psk", "loss_grad", {}, {"B": 2, "D": 2}, {}),
    ("tour/hinge.psk", "hinge_grad", {}, {"N": 2, "D": 2}, {}),
    ("tutorial/03_attention.psk", "", {}, {"B": 1, "T": 3}, {}),
    ("train_minigpt.psk", "loss", TINY, {"B": 1, "T": 2}, {}),
    ("train_minigpt.psk", "loss_grad", TINY, {"B": 1, "T": 2}, {}),
    ("train_minigpt.psk", "loss_grad", TINY, {"B": 1, "T": 2}, {"unroll_stack": True}),
    ("gpt.psk", "loss_grad", {"V": 5, "D": 4, "H": 2, "L": 2}, {"B": 1, "T": 2}, {"mode": "training"}),
]
"""File, entry (empty: the first), constants, dimensions, how it is lowered."""


@cache
def fused(at: int) -> tuple[str, Program, Fused]:
    """The entry, its flat program, and that with kernels."""
    file, entry, constants, dims, lowering = ENTRIES[at]
    session = Session(str(EXAMPLES / file), constants, **lowering)
    entry = entry or next(n for n, f in session.differentiated.functions.items() if f.params)
    flat = session.flat(entry)
    return entry, flat, fuse(flat, entry, dims, 0.5)


def bound(function: Function, at: int) -> dict[str, int]:
    return {d: n for d, n in ENTRIES[at][3].items() if d in function.dims}


@pytest.mark.parametrize("at", range(len(ENTRIES)))
def test_results_are_the_same_in_every_digit(at: int):
    entry, flat, made = fused(at)
    dims, options = bound(flat.functions[entry], at), Options(bits=64)
    one = run_exact(flat, entry, {}, dims, options=options)
    other = run_exact(made.program, entry, {}, dims, options=options)
    assert texts(one.value) == texts(other.value)


@pytest.mark.parametrize("at", [1, 6, 8])
def test_torch_runs_what_the_kernels_hold(at: int):
    entry, flat, made = fused(at)
    agrees(inline_entry(made.program, entry), entry, bound(flat.functions[entry], at))


@pytest.mark.parametrize("at", range(len(ENTRIES)))
def test_text_reads_back_as_the_same_program(at: int):
    made = fused(at)[2].program
    assert load(print_program(made), "fused.core", Diagnostics()) == made


@pytest.mark.parametrize("at", range(len(ENTRIES)))
def test_the_checker_unfolds_kernels(at: int):
    entry, flat, made = fused(at)
    assert check_fused(entry, flat, made.program) == []
    assert made.work.kernels < sum(1 for f in flat.functions.values() for _ in f.bindings) * 12


OTHER = {"add": "mul", "sub": "mul", "mul": "div", "gelu": "tanh", "exp": "log", "tanh": "sin"}


def corruptions(program: Program) -> Iterator[tuple[str, Program]]:
    """Kernels with the operands of one operation exchanged, another operation, two outputs exchanged, one dropped for
    another."""
    for f in program.functions.values():
        for i, b in enumerate(f.bindings):
            if not f.kernel or not isinstance(b.op, Prim):
                continue
            args, op = b.op.args, b.op
            if op.op in ("sub", "div", "dot_vjp_r") and len(set(args)) == 2:
                yield f"{f.name}/{b.name} exchanged", _with(program, f, i, replace(op, args=args[::-1]))
            if op.op in OTHER:
                yield f"{f.name}/{b.name} another", _with(program, f, i, replace(op, op=OTHER[op.op]))
            if op.op == "tuple" and i == len(f.bindings) - 1:
                yield (
                    f"{f.name} outputs exchanged",
                    _with(program, f, i, replace(op, args=(args[1], args[0], *args[2:]))),
                )
                yield (
                    f"{f.name} an output dropped",
                    _with(program, f, i, replace(op, args=(args[0], args[0], *args[2:]))),
                )


def _with(program: Program, f: Function, i: int, op: Prim) -> Program:
    bindings = (*f.bindings[:i], replace(f.bindings[i], op=op), *f.bindings[i + 1 :])
    return replace(program, functions={**program.functions, f.name: replace(f, bindings=bindings)})


@pytest.mark.parametrize("at", [1, 6, 8])
def test_every_corrupted_kernel_is_refused(at: int):
    entry, flat, made = fused(at)
    tried = 0
    everything = list(corruptions(made.program))
    for what, wrong in everything[:: 1 + len(everything) // 30]:  # evenly spaced: a check takes a while
        assert check_fused(entry, flat, wrong), what
        tried += 1
    assert tried > 3


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int):
    program = random_program(seed, 12 + seed % 30)
    program.functions["f"] = live(program.functions["f"])
    made = fuse(program, "f", {"B": 2, "D": 3}, 0.5)
    assert problems(made.program) == []
    assert check_fused("f", program, made.program) == []
    assert load(print_program(made.program), "fused.core", Diagnostics()) == made.program


def test_kernels_of_the_gradient_of_the_perceptron():
    session = Session(str(EXAMPLES / "mlp.psk"))
    report = session.optimized("mse_grad", {"B": 2, "D": 4}).report
    assert report.after.flops <= report.before.flops  # of what is run; the kernels compute `gelu` in two of them
    assert session.fused("mse_grad", {"B": 2, "D": 4}).work.kernels <= 10
    assert session.verified("mse_grad", {"B": 2, "D": 4}).reasons == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "constants", "lowering", "most"),
    [
        ("train_minigpt.psk", {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": 2}, {"unroll_stack": True}, 96),
        ("gpt.psk", {}, {"mode": "training"}, 260),
    ],
)
def test_kernels_of_the_gradients_of_transformers(
    file: str, constants: dict[str, int], lowering: dict[str, Any], most: int
):
    session = Session(str(EXAMPLES / file), constants, **lowering)
    assert session.fused("loss_grad", {"B": 2, "T": 16}).work.kernels <= most


@pytest.mark.parametrize("at", range(len(ENTRIES)))
def test_no_kernel_computes_a_product_of_matrices_that_another_computes(at: int):
    _, flat, made = fused(at)
    assert products(made.program, flat) == products(flat, flat)


def products(program: Program, flat: Program) -> int:
    """Contractions in functions of `flat` and in kernels."""
    functions = [f for f in program.functions.values() if f.kernel or f.name in flat.functions]
    ops = [b.op.op for f in functions for b in f.bindings if isinstance(b.op, Prim)]
    return sum(ROLES[op] == "contraction" for op in ops)
