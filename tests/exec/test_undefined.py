"""E7003: what is undefined at the dimensions given is refused before anything is drawn or computed."""

from collections.abc import Mapping
from typing import Any

import pytest

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.exec import inputs
from presk_rel.exec.exact.run import Options, run_exact

from .programs import program, single


def refused(found: Program, dims: Mapping[str, int], kernel: Any = "balls") -> str:
    with pytest.raises(PreskError) as raised:
        run_exact(found, "f", {}, dims, options=Options(kernel=kernel))
    diagnostic = raised.value.diagnostics[0]
    assert (diagnostic.code, raised.value.exit_status) == ("E7003", 1)
    assert diagnostic.span is not None
    assert diagnostic.span.start.line == 2
    return diagnostic.message


ROWS = "ℝ[seq: T, V]"
UNDEFINED: dict[str, tuple[Program, dict[str, int]]] = {
    "a mean": (single("x : ℝ[a: N, b: 2]", "ℝ[b: 2]", "mean axis a x", "N"), {"N": 0}),
    "its derivative": (single("c : ℝ[], x : ℝ[a: N]", "ℝ[a: N]", "mean_vjp c, x", "N"), {"N": 0}),
    "embed": (single("w : ℝ[V, D], t : idx[V][S]", "ℝ[S, D]", "embed w, t", "V D S"), {"V": 0, "D": 2, "S": 0}),
    "embed_vjp": (
        single("c : ℝ[S, D], t : idx[V][S], w : ℝ[V, D]", "ℝ[V, D]", "embed_vjp c, t, w", "V D S"),
        {"V": 0, "D": 2, "S": 0},
    ),
    "cross_entropy": (
        single(f"l : {ROWS}, y : idx[V][seq: T]", "ℝ[seq: T]", "cross_entropy l, y", "T V"), {"T": 0, "V": 0},
    ),
    "cross_entropy_vjp": (
        single(f"c : ℝ[seq: T], l : {ROWS}, y : idx[V][seq: T]", ROWS, "cross_entropy_vjp c, l, y", "T V"),
        {"T": 0, "V": 0},
    ),
    "argmax": (single(f"l : {ROWS}", "idx[V][seq: T]", "argmax l", "T V"), {"T": 2, "V": 0}),
    "sample": (single(f"k : key, l : {ROWS}", "idx[V][seq: T]", "sample k, l", "T V"), {"T": 2, "V": 0}),
    "an index": (single("x : ℝ[a: N, b: 2]", "ℝ[b: 2]", "index a: -1 x", "N"), {"N": 0}),
    "an index beyond": (single("x : ℝ[a: N, b: 2]", "ℝ[b: 2]", "index a: 3 x", "N"), {"N": 3}),
    "a placed index": (
        single("c : ℝ[b: 2], x : ℝ[a: N, b: 2]", "ℝ[a: N, b: 2]", "scatter_index a: 0 c, x", "N"), {"N": 0},
    ),
    "a slice": (single("x : ℝ[a: N]", "ℝ[a: M]", "slice a: 0..M x", "N M"), {"N": 2, "M": 3}),
    "a placed slice": (
        single("c : ℝ[a: M], x : ℝ[a: N]", "ℝ[a: N]", "slice_vjp a: 0..M c, x", "N M"), {"N": 2, "M": 3},
    ),
    "a layer": (single("p : ℝ[L, 2]", "ℝ[2]", "slice_params 0 p", "L"), {"L": 0}),
    "a layer set": (single("p : ℝ[L, 2], v : ℝ[2]", "ℝ[L, 2]", "set_slice 1 p, v", "L"), {"L": 1}),
}  # fmt: skip


@pytest.mark.parametrize("what", UNDEFINED)
@pytest.mark.parametrize("kernel", ["balls", "mpmath"])
def test_undefined_operations(what: str, kernel: Any):
    found, dims = UNDEFINED[what]
    assert "in " in refused(found, dims, kernel)


def test_nothing_is_drawn_before(monkeypatch: pytest.MonkeyPatch):
    def never(*_args: Any) -> Any:
        raise AssertionError("drawn")

    monkeypatch.setattr(inputs, "synthesize", never)
    found, dims = UNDEFINED["argmax"]
    refused(found, dims)


@pytest.mark.parametrize(
    "text",
    [
        # In a function that is called, in a closure that is applied, in a fold of count at least one.
        "fn f{N}(x : ℝ[N]) -> ℝ[] {\n  y : ℝ[] = call g{N = N}(x)\n  return y\n}",
        "fn f{N}(x : ℝ[N]) -> ℝ[] {\n  h : (ℝ[N]) -> ℝ[] = closure g{N = N}[]\n  y : ℝ[] = apply h(x)\n  return y\n}",
        "fn f{N}(x : ℝ[N]) -> ℝ[] {\n  z : ℝ[] = zeros\n"
        "  y : ℝ[] = fold 2 step{N = N}(stacked ; acc z; x)\n  return y\n}",
    ],
)
def test_undefined_operations_are_found_in_what_is_reached(text: str):
    callees = """
fn g{N}(x : ℝ[N]) -> ℝ[] {
  y : ℝ[] = mean x
  return y
}
fn step{N}(acc : ℝ[], x : ℝ[N]) -> ℝ[] {
  y : ℝ[] = mean x
  z : ℝ[] = add acc, y
  return z
}"""
    with pytest.raises(PreskError) as raised:
        run_exact(program(text + callees), "f", {}, {"N": 0})
    assert raised.value.diagnostics[0].code == "E7003"
    run_exact(program(text + callees), "f", {}, {"N": 1})


def test_a_fold_of_no_iterations_reaches_nothing():
    text = """
fn f{N L}(x : ℝ[N]) -> ℝ[] {
  z : ℝ[] = zeros
  y : ℝ[] = fold L step{N = N}(stacked ; acc z; x)
  return y
}
fn step{N}(acc : ℝ[], x : ℝ[N]) -> ℝ[] {
  y : ℝ[] = mean x
  z : ℝ[] = add acc, y
  return z
}"""
    run_exact(program(text), "f", {}, {"N": 0, "L": 0})
