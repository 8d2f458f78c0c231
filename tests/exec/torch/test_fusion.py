"""Fused torch operations: each pattern is found where it may be, computes the same, and is not where it may not be."""

import numpy as np
import pytest
import torch

from presk_rel.core.inline import inline_entry
from presk_rel.egraph.optimize import optimize
from presk_rel.exec.inputs import prepare
from presk_rel.exec.torch.dispatch import dispatched
from presk_rel.exec.torch.emit import emit
from presk_rel.exec.torch.fuse import PATTERNS
from presk_rel.exec.torch.operand import Reader
from presk_rel.exec.torch.run import compile_entry, to_torch

from ..programs import MLP, program
from .against import agrees, on_torch

HEAD = (
    "x : ℝ[a: A, b: B], y : ℝ[a: A, b: B], w : ℝ[B, C], c : ℝ[C], d : ℝ[a: A, C], z : ℝ[g: 2, a: A, b: B], v : ℝ[b: B]"
)
RECOGNISED: dict[str, tuple[str, str, list[str]]] = {
    "linear": ("torch.addmm(", "ℝ[a: A, C]", ["ℝ[a: A, C] = dot x, w", "ℝ[a: A, C] = add {0}, c"]),
    "linear of three axes": (
        "torch.addmm(",
        "ℝ[g: 2, a: A, C]",
        ["ℝ[g: 2, a: A, C] = dot z, w", "ℝ[g: 2, a: A, C] = add c, {0}"],
    ),
    "standardize": (
        "torch.native_layer_norm(",
        "ℝ[a: A, b: B]",
        [
            "ℝ[a: A] = mean axis b x",
            "ℝ[a: A, b: B] = sub x, {0}",
            "ℝ[a: A, b: B] = pow 2 {1}",
            "ℝ[a: A] = mean axis b {2}",
            "ℝ[] = const 0.1",
            "ℝ[a: A] = add {4}, {3}",
            "ℝ[a: A] = sqrt {5}",
            "ℝ[a: A, b: B] = div {1}, {6}",
        ],
    ),
    "mse": (
        "mse_loss(",
        "ℝ[]",
        ["ℝ[a: A, b: B] = sub x, y", "ℝ[a: A, b: B] = pow 2 {0}", "ℝ[] = mean {1}"],
    ),
    "gelu_backward": ("gelu_backward(", "ℝ[a: A, b: B]", ["ℝ[a: A, b: B] = gelu' x", "ℝ[a: A, b: B] = mul y, {0}"]),
    "threshold_backward": (
        "threshold_backward(",
        "ℝ[a: A, b: B]",
        ["ℝ[a: A, b: B] = heaviside x", "ℝ[a: A, b: B] = mul {0}, y"],
    ),
    "tanh_backward": (
        "tanh_backward(",
        "ℝ[a: A, b: B]",
        [
            "ℝ[a: A, b: B] = tanh x",
            "ℝ[] = const 1",
            "ℝ[a: A, b: B] = pow 2 {0}",
            "ℝ[a: A, b: B] = sub {1}, {2}",
            "ℝ[a: A, b: B] = mul y, {3}",
        ],
    ),
    "sigmoid_backward": (
        "sigmoid_backward(",
        "ℝ[a: A, b: B]",
        [
            "ℝ[a: A, b: B] = sigmoid x",
            "ℝ[] = const 1",
            "ℝ[a: A, b: B] = sub {1}, {0}",
            "ℝ[a: A, b: B] = mul {0}, {2}",
            "ℝ[a: A, b: B] = mul y, {3}",
        ],
    ),
    "softmax_backward": (
        "_softmax_backward_data(",
        "ℝ[a: A, b: B]",
        [
            "ℝ[a: A, b: B] = softmax axis b x",
            "ℝ[a: A, b: B] = mul y, {0}",
            "ℝ[a: A] = sum axis b {1}",
            "ℝ[a: A, b: B] = broadcast_like axis b {2}, x",
            "ℝ[a: A, b: B] = sub y, {3}",
            "ℝ[a: A, b: B] = mul {0}, {4}",
        ],
    ),
}
FOUND: dict[str, tuple[str, str, list[str]]] = {
    "product_sum": ("torch.addmm(", "ℝ[a: A, C]", ["ℝ[a: A, C] = dot x, w", "ℝ[a: A, C] = add d, {0}"]),
    "product_sum of three axes": (
        "torch.addmm(",
        "ℝ[g: 2, a: A, b: B]",
        ["ℝ[g: 2, a: A, C] = dot z, w", "ℝ[g: 2, a: A, b: B] = dot_vjp_l {0}, w", "ℝ[g: 2, a: A, b: B] = add {1}, z"],
    ),
    "scaled_sum": (
        "alpha=0.3)",
        "ℝ[a: A, b: B]",
        ["ℝ[] = const 0.3", "ℝ[a: A, b: B] = mul {0}, y", "ℝ[a: A, b: B] = sub x, {1}"],
    ),
    "multiply_add": ("torch.addcmul(", "ℝ[a: A, b: B]", ["ℝ[a: A, b: B] = mul x, v", "ℝ[a: A, b: B] = add {0}, y"]),
    "multiply_add of a row": (
        "torch.addcmul(",
        "ℝ[a: A, b: B]",
        ["ℝ[a: A, b: B] = mul x, y", "ℝ[a: A, b: B] = sub v, {0}"],
    ),
    "divide_add": ("torch.addcdiv(", "ℝ[a: A, b: B]", ["ℝ[a: A, b: B] = div x, y", "ℝ[a: A, b: B] = add {0}, y"]),
}
NOT_FOUND = {
    "read elsewhere": (
        "addmm",
        ["ℝ[a: A, C] = dot x, w", "ℝ[a: A, C] = add {0}, d", "ℝ[a: A, C] = mul {0}, {1}"],
    ),
    "the other way round": (
        "addcmul",
        ["ℝ[a: A, C] = dot x, w", "ℝ[a: A, C] = mul {0}, d", "ℝ[a: A, C] = sub {1}, d"],
    ),
}
DIMS = {"A": 3, "B": 4, "C": 5}


def body(result: str, lines: list[str]) -> str:
    names = [f"%{7 + i}" for i in range(len(lines))]
    text = "".join(f"  {n} : {line.format(*names)}\n" for n, line in zip(names, lines, strict=True))
    return f"fn f{{A B C}}({HEAD}) -> {result} {{\n{text}  return {names[-1]}\n}}"


@pytest.mark.parametrize("name", FOUND)
def test_pattern(name: str):
    operation, result, lines = FOUND[name]
    found = program(body(result, lines))
    assert operation in on_torch(found, "f", DIMS, {}).source
    agrees(found, "f", DIMS)


@pytest.mark.parametrize("name", RECOGNISED)
def test_recognised(name: str):
    """What rules recognise runs as the one call it is."""
    operation, result, lines = RECOGNISED[name]
    found = program(body(result, lines))
    optimized = optimize(inline_entry(found, "f"), "f").program
    ran, written = on_torch(optimized, "f", DIMS, {}), on_torch(found, "f", DIMS, {})
    assert operation in ran.source
    assert ran.kernels < written.kernels
    agrees(optimized, "f", DIMS)


@pytest.mark.parametrize("name", NOT_FOUND)
def test_no_pattern(name: str):
    operation, lines = NOT_FOUND[name]
    found = program(body("ℝ[a: A, C]", lines))
    assert operation not in on_torch(found, "f", DIMS, {}).source
    agrees(found, "f", DIMS)


@pytest.mark.parametrize("reader", ["compiler", "machine"])
def test_no_compiler_gets_a_sum_with_a_factor(reader: Reader):
    """Inductor, as of torch 2.13, loses it where what is added is a product: `add(x, mm(a, b), alpha=c)`."""
    _, result, lines = FOUND["scaled_sum"]
    found = program(body(result, lines))
    bound, _ = prepare(found, "f", {}, DIMS, 0)
    assert "alpha=" in emit(found, "f", bound.env, "float64", "cpu").source
    assert "torch.sub(" in (source := emit(found, "f", bound.env, "float64", "cpu", reader=reader).source)
    assert "alpha=" not in source


def test_every_pattern_has_a_case():
    names = {p.__name__ for patterns in PATTERNS.values() for p in patterns}
    assert names == {name.split(" ")[0] for name in FOUND}


def test_kernels_are_those_that_torch_dispatches():
    found = optimize(inline_entry(program(MLP), "mse_grad"), "mse_grad").program
    bound, values = prepare(found, "mse_grad", {}, {"B": 2, "D": 4}, 0)
    compiled = compile_entry(found, "mse_grad", bound.env, "f64")
    named = dict(zip((p.name for p in bound.fn.params), values, strict=True))
    inputs = []
    for i in compiled.emitted.inputs:
        value = named[i.parameter]
        for part in i.path:
            value = value.fields[part]  # type: ignore[union-attr]
        inputs.append(to_torch(torch, compiled, value))
    seen = dispatched(lambda: compiled.generated(tuple(inputs)))
    assert len(seen) == compiled.emitted.kernels == 10, seen


def test_what_is_returned_is_never_a_constant_of_the_code():
    found = program("fn f() -> ℝ[2] {\n  out : ℝ[2] = zeros\n  return out\n}")
    bound, _ = prepare(found, "f", {}, {}, 0)
    compiled = compile_entry(found, "f", bound.env, "f64")
    compiled.generated(())[0].add_(1)
    assert np.array_equal(compiled.generated(())[0].numpy(), [0, 0])
