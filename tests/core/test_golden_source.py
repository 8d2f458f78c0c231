"""Source and the Core it lowers to, side by side (`golden/*.psk`), through the whole front end."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.core.ir import Fold
from presk_rel.core.printer import print_function, print_program
from presk_rel.core.reader import load
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics
from presk_rel.session import Session
from tests.golden import check, sections

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.psk"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_golden(path: Path, tmp_path: Path, update_golden: bool) -> None:
    source = tmp_path / path.name
    source.write_text(sections(path)["source"] + "\n", encoding="utf-8")
    program = Session(str(source)).core
    produced = {"core": print_program(program)}
    training = Session(str(source), mode="training").core
    other = [f for name, f in training.functions.items() if f != program.functions[name]]
    if other:
        produced["core in training"] = "\n\n".join(print_function(f, training) for f in other)
    check(path, produced, update_golden)
    for each in (program, training):
        assert problems(each) == []
        assert load(print_program(each), "t.core", Diagnostics()) == each


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_stacks_may_be_unrolled(path: Path, tmp_path: Path) -> None:
    source = tmp_path / path.name
    source.write_text(sections(path)["source"] + "\n", encoding="utf-8")
    program = Session(str(source), mode="training", unroll_stack=True).core
    assert problems(program) == []
    folds = [b.op for f in program.functions.values() for b in f.bindings if isinstance(b.op, Fold)]
    assert not any(fold.count.is_constant for fold in folds)


def test_the_excerpts_of_the_specification() -> None:
    core = sections(Path(__file__).parent / "golden" / "mlp.psk")["core"]
    for excerpt in (SPEC_APPLY, SPEC_MSE, SPEC_GRAD):
        assert excerpt in core


SPEC_APPLY = """\
fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In]) -> ℝ[..., Out] {
  w : ℝ[In, Out] = θ.w
  %3 : ℝ[..., Out] = dot x, w
  b : ℝ[Out] = θ.b
  %5 : ℝ[..., Out] = add %3, b
  return %5
}
"""
SPEC_MSE = """\
fn mse{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D]) -> ℝ[] {
  ŷ : ℝ[batch: B, D] = call MLP.apply{D = D, hidden = 4*D}(θ, x)
"""
SPEC_GRAD = """\
  %3 : (params MLP{D, 4*D}) -> ℝ[] = closure mse_grad.lambda0[x, y]
  %4 : (params MLP{D, 4*D}) -> params MLP{D, 4*D} = grad %3
  %5 : params MLP{D, 4*D} = apply %4(θ)
  return %5
}
"""
