"""What the spec says of gradients, one sentence at a time."""

from __future__ import annotations

import cProfile
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Call, Function, Program, callees, operands
from presk_rel.core.printer import print_program
from presk_rel.elab.ty import SCALAR_REAL
from tests.ad.check import check_gradient, with_gradient
from tests.ad.programs import D, function, mlp, prim, program, read, real
from tests.ad.random_programs import random_program
from tests.ad.test_folds import TOWER

V = real(D)


def loss(theta: str, body: str, before: str = "") -> Program:
    return read(f"{before}\nfn loss{{D}}(x : ℝ[D], θ : {theta}) -> ℝ[] {{\n{body}\n}}")


def grad_of(done: Program) -> str:
    return print_program(Program(done.modules, {"loss.vjp": done.functions["loss.vjp"]}))


def test_a_parameter_nothing_reads_has_a_zero_gradient():
    p = loss("ℝ[D]", "  %2 : ℝ[] = sum x\n  return %2")
    done, gradient = check_gradient(p, "loss", {"D": 3})
    assert list(gradient) == [0, 0, 0]
    assert "zeros_like θ" in grad_of(done)


def test_a_value_used_twice_receives_the_sum():
    done, _ = check_gradient(loss("ℝ[D]", "  %2 : ℝ[D] = mul θ, θ\n  %3 : ℝ[] = sum %2\n  return %3"), "loss", {"D": 3})
    assert " = add " in grad_of(done)


@pytest.mark.parametrize(
    ("theta", "body"),
    [
        ("ℝ[]", "  %2 : ℝ[D] = mul x, θ\n  %3 : ℝ[D] = sin %2\n  %4 : ℝ[] = sum %3\n  return %4"),
        ("ℝ[D]", "  %2 : ℝ[] = dot x, θ\n  %3 : ℝ[] = exp %2\n  return %3"),
        ("(ℝ[D], (ℝ[], ℝ[D]))", "  a : ℝ[D] = θ.0\n  b : (ℝ[], ℝ[D]) = θ.1\n  c : ℝ[] = b.0\n  d : ℝ[D] = b.1\n"
         "  %6 : ℝ[D] = mul a, d\n  %7 : ℝ[D] = mul %6, c\n  %8 : ℝ[] = mean %7\n  return %8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_one_may_differentiate_by_a_scalar_a_tensor_a_tuple(theta: str, body: str, remat: Remat):
    check_gradient(loss(theta, body), "loss", {"D": 3}, remat=remat)


def test_a_lambda_of_the_body_is_differentiated_with_what_it_captured():
    check_gradient(
        loss(
            "ℝ[D]",
            "  f : (ℝ[D]) -> ℝ[D] = closure loss.lambda0[θ]\n  %3 : ℝ[D] = apply f(x)\n  %4 : ℝ[D] = apply f(%3)\n"
            "  %5 : ℝ[] = sum %4\n  return %5",
            "fn loss.lambda0{D}(y : ℝ[D], a : ℝ[D]) -> ℝ[D] {\n  %2 : ℝ[D] = mul a, y\n  %3 : ℝ[D] = tanh %2\n"
            "  return %3\n}",
        ),
        "loss",
        {"D": 3},
    )


def test_relu_abs_and_sign_have_the_derivatives_of_their_sides_at_a_kink():
    p = loss("ℝ[D]", "  %2 : ℝ[D] = sub θ, θ\n  %3 : ℝ[D] = relu %2\n  %4 : ℝ[D] = abs %2\n  %5 : ℝ[D] = add %3, %4\n"
             "  %6 : ℝ[] = sum %5\n  return %6")  # fmt: skip
    _, gradient = check_gradient(p, "loss", {"D": 2})
    assert list(gradient) == [0, 0]


def unread(f: Function) -> list[str]:
    read = {f.ret, *(v for b in f.bindings for v in operands(b.op))}
    return [b.name for b in f.bindings if b.name not in read]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["store", "recompute"]))
def test_nothing_generated_is_unread(seed: int, remat: Remat):
    before = with_gradient(random_program(Random(seed), 12), "loss")
    done = differentiate(before, remat)
    named = {c for f in done.functions.values() for b in f.bindings for c in callees(b.op)}
    for name in done.functions.keys() - before.functions.keys():
        assert not unread(done.functions[name]), name
        assert name in named


def test_differentiating_twice_is_the_same_text():
    a, b = (print_program(differentiate(mlp(), "store")) for _ in range(2))
    assert a == b


def test_a_function_called_often_has_one_vjp():
    body = [(f"%{i + 1}", V, Call("g", (("D", D),), (f"%{i}" if i else "θ",))) for i in range(20)]
    body.append(("%21", SCALAR_REAL, prim("sum", "%20")))
    g = function("g", "D", [("a", V)], V, [("%1", V, prim("sin", "a"))], "%1")
    p = program([g, function("loss", "D", [("θ", V)], SCALAR_REAL, body, "%21")])
    done = differentiate(with_gradient(p, "loss"), "recompute")
    assert sorted(n for n in done.functions if "vjp" in n) == ["g.vjp", "loss.vjp"]


def chain(n: int) -> Program:
    """A body of n operations."""
    ops = [prim("sin", "θ")] + [prim(op, f"%{i + 1}") for i, op in zip(range(n - 1), ("tanh", "exp") * n)]
    body = [(f"%{i + 1}", V, op) for i, op in enumerate(ops)]
    body.append((f"%{n + 1}", SCALAR_REAL, prim("sum", f"%{n}")))
    return with_gradient(program([function("loss", "D", [("θ", V)], SCALAR_REAL, body, f"%{n + 1}")]), "loss")


def calls(n: int) -> Program:
    """n functions, each calling the one before."""
    fs = [function("f0", "D", [("a", V)], V, [("%1", V, prim("sin", "a"))], "%1")]
    for i in range(1, n):
        body = [("%1", V, Call(f"f{i - 1}", (("D", D),), ("a",))), ("%2", V, prim("mul", "%1", "a"))]
        fs.append(function(f"f{i}", "D", [("a", V)], V, body, "%2"))
    body = [("%1", V, Call(f"f{n - 1}", (("D", D),), ("θ",))), ("%2", SCALAR_REAL, prim("sum", "%1"))]
    fs.append(function("loss", "D", [("θ", V)], SCALAR_REAL, body, "%2"))
    return with_gradient(program(fs), "loss")


def size(p: Program) -> int:
    return sum(len(f.bindings) for f in p.functions.values())


@pytest.mark.parametrize("remat", ["store", "recompute"])
@pytest.mark.parametrize("make", [chain, calls])
def test_bindings_grow_linearly(make, remat: Remat):
    small, middle, large = (size(differentiate(make(n), remat)) for n in (50, 100, 200))
    assert large - middle <= 2 * (middle - small) + 20


def work(p: Program, remat: Remat) -> int:
    """How many functions of Python a differentiation calls: the same on every machine."""
    profile = cProfile.Profile()
    profile.runcall(differentiate, p, remat)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("remat", ["store", "recompute"])
@pytest.mark.parametrize("make", [chain, calls])
def test_ten_times_the_bindings_take_at_most_twelve_times_the_work(make, remat: Remat):
    assert work(make(1500), remat) <= 12 * work(make(150), remat)


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_no_depth_of_calls_is_a_problem(remat: Remat):
    done = differentiate(calls(1100), remat)  # deeper than Python's stack
    assert "loss.grad" in done.functions


def test_the_gradient_of_a_stack_does_not_grow_with_its_height():
    done = differentiate(with_gradient(read(TOWER), "loss"), "store")
    assert size(done) < 120
