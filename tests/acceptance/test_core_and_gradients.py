"""PSK-Core and differentiation as the command line shows them: the perceptron's texts, the size of gradients, the loss
of the tiny MiniGPT, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import mpmath
import pytest

from benchmarks.ad import core, size
from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Fold, Function, Program
from presk_rel.session import Session
from tests.cli.harness import EXAMPLES, MLP, presk, presk_json
from tests.golden import check, sections

GOLDEN = Path(__file__).parent / "golden" / "mlp.txt"
MINIGPT = str(EXAMPLES / "train_minigpt.psk")
TINY = ("m.V=64", "m.D=32", "m.H=2", "m.L=2")
DUMPS = {
    "core": ("core",),
    "core-after-ad": ("core-after-ad",),
    "core-after-ad, recompute": ("core-after-ad", "--remat", "recompute"),
    "core-after-ad, unicode": ("core-after-ad", "--format", "unicode"),
}
EXCERPTS = {
    "core": ("  %3 : ℝ[..., Out] = dot x, w\n", "  %4 : (params MLP{D, 4*D}) -> params MLP{D, 4*D} = grad %3\n"),
    "core-after-ad": (
        "    -> (ℝ[..., D], (ℝ[..., hidden], ℝ[..., hidden])) {\n"
        "  l1 : params Linear{D, hidden} = θ.l1\n"
        "  %3 : ℝ[..., hidden] = call Linear.apply{In = D, Out = hidden}(l1, x)\n"
        "  %4 : ℝ[..., hidden] = gelu %3\n"
        "  l2 : params Linear{hidden, D} = θ.l2\n"
        "  %6 : ℝ[..., D] = call Linear.apply{In = hidden, Out = D}(l2, %4)\n"
        "  %7 : (ℝ[..., hidden], ℝ[..., hidden]) = (%3, %4)",
    ),
    "core-after-ad, recompute": ("%11 : ℝ[..., In] = dot_vjp_l ct, w", "-- adjoint of %5 (add)"),
    "core-after-ad, unicode": ("Linear.apply.bwd, of θ : params Linear{In, Out},  x : ℝ[…, In],  ct : ℝ[…, Out]",),
}


@pytest.mark.parametrize("title", DUMPS)
def test_the_perceptron_is_shown_as_the_specification_shows_it(title: str, update_golden: bool) -> None:
    stage, *options = DUMPS[title]
    shown = presk("dump", MLP, "--stage", stage, *options)
    assert shown.status == 0
    check(GOLDEN, {title: shown.out}, update_golden)
    for excerpt in EXCERPTS[title]:
        assert excerpt in sections(GOLDEN)[title]


@pytest.mark.parametrize("bits", [64, 256])
def test_the_loss_of_the_tiny_minigpt_is_ln_64_to_all_proven_digits(bits: int) -> None:
    consts = [x for c in TINY for x in ("--const", c)]
    command = [MINIGPT, "--entry", "loss", *consts, "--dim", "B=2", "--dim", "T=16", "--bits", str(bits)]
    result = presk_json("run", *command, "--no-opt").document["result"]
    digits = len(result["data"].replace(".", ""))
    with mpmath.workdps(digits + 20):
        assert result["data"] == mpmath.nstr(mpmath.log(64), digits)


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_differentiation_takes_linear_time_and_space(remat: Remat) -> None:
    _grows_linearly(remat, 400, 3_200)


@pytest.mark.slow
@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_so_it_does_up_to_ten_thousand_bindings(remat: Remat) -> None:
    _grows_linearly(remat, 1_000, 10_000)


def _grows_linearly(remat: Remat, few: int, many: int) -> None:
    """A program n times as large becomes n times as large, in n times as many calls of functions."""
    small, large = core(few), core(many)
    factor = size(large) / size(small)
    (calls, made), (more_calls, more_made) = _counted(small, remat), _counted(large, remat)
    assert size(large) >= many
    assert more_made <= 1.2 * factor * made
    assert more_calls <= 1.2 * factor * calls


def _counted(program: Program, remat: Remat) -> tuple[int, int]:
    """How many Python functions `differentiate` calls, and the size of what it gives."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        done = differentiate(program, remat)
    finally:
        sys.setprofile(before)
    return calls, size(done)


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_the_gradient_of_a_stack_does_not_grow_with_its_height(remat: Remat) -> None:
    two, many = (
        Session(MINIGPT, {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": layers}, remat=remat).differentiated
        for layers in (2, 96)
    )
    assert [_shape(f) for f in _gradient(two)] == [_shape(f) for f in _gradient(many)]
    assert any(isinstance(b.op, Fold) and b.op.reverse for f in many.functions.values() for b in f.bindings)


def _gradient(program: Program) -> list[Function]:
    """All but the initializers, which split their key for every layer."""
    return [f for f in program.functions.values() if not f.name.endswith(".init")]


def _shape(f: Function) -> tuple[str, int]:
    return f.name, len(f.bindings)


REFUSED = {
    "a key": ("fn f(k : key) -> ℝ[] uses Rand = mean(dropout(0.5, k, (1 : ℝ)))\n"
              "fn g(k : key) -> key uses Rand = grad(λ k. f(k))(k)\n", "E2012", "key"),
    "an index": ("fn f(i : idx[4]) -> ℝ[] = real(i)\nfn g(i : idx[4]) -> idx[4] = grad(f)(i)\n", "E2012", "idx[4]"),
    "a key in what one differentiates by": (
        "fn main(x : ℝ[], k : key) -> (ℝ[], key) =\n  grad(λ (p : (ℝ[], key)). let (a, b) = p\n    a * a)((x, k))\n",
        "E6002", "key"),
    "a choice": ("fn f(x : ℝ[a: 3]) -> ℝ[] = real(argmax(x))\nfn g(x : ℝ[a: 3]) -> ℝ[a: 3] = grad(f)(x)\n",
                 "E3001", "argmax"),
    "a kink, twice": ("fn f(x : ℝ[]) -> ℝ[] = relu(x)\nfn g(x : ℝ[]) -> ℝ[] = grad(λ y. grad(f)(y))(x)\n",
                      "E3001", "relu"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_gradient_is_refused_with_code_place_and_reason(what: str, tmp_path: Path) -> None:
    text, code, reason = REFUSED[what]
    path = tmp_path / "refused.psk"
    path.write_text(text, encoding="utf-8")
    ran = presk_json("run", str(path), "--entry", "g" if "fn g" in text else "main", "--dim", "B=2", "--dim", "D=2")
    assert ran.status == 1
    said = [d for d in ran.document["diagnostics"] if d["code"] == code]
    assert said and reason in said[0]["message"]
    assert said[0]["file"] == str(path) and said[0]["span"] is not None
