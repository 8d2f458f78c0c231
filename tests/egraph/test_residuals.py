"""Residuals of folds by cost: kept where that is cheap, computed again where it is not, and proven either way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from presk_rel.core.ir import Fold, Prim, Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.folds.residuals import kept_residuals, recomputed
from presk_rel.egraph.folds.views import View
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.parts import live
from presk_rel.egraph.proof import FoldStep
from presk_rel.egraph.rules import RULES
from tests.egraph.fold_programs import NAMES, gradient, same_values
from tests.egraph.programs import read

SMALL = {"B": 2, "D": 2, "L": 3}
LARGE = {"B": 4096, "D": 1024, "L": 12}

CHEAP = """
fn forward(s : ℝ[N], acc : (ℝ[N], ℝ[N]), e : ℝ[N]) -> (ℝ[N], ℝ[N]) {
  x : ℝ[N] = acc.0
  c : ℝ[N] = CODE
  n : ℝ[N] = sin c
  r : (ℝ[N], ℝ[N]) = (n, c)
  return r
}
fn shift(s : ℝ[N], a : ℝ[N]) -> ℝ[N] {
  return s
}
fn backward(s : ℝ[N], r : ℝ[N], ct : ℝ[N]) -> ℝ[N] {
  m : ℝ[N] = mul ct, r
  n : ℝ[N] = mul m, s
  return n
}
fn f(xs : ℝ[8, N], a : ℝ[N], e : ℝ[N], g : ℝ[N]) -> ℝ[N] {
  z : ℝ[N] = zeros
  p : (ℝ[N], ℝ[N]) = (a, z)
  q : ((ℝ[N], ℝ[N]), (ℝ[8, N], ℝ[8, N])) = fold 8 forward(stacked xs; acc p; e) FORWARDscan
  l : (ℝ[N], ℝ[N]) = q.0
  h : (ℝ[8, N], ℝ[8, N]) = q.1
  own : ℝ[N] = l.1
  others : ℝ[8, N] = h.1
  both : (ℝ[N], ℝ[8, N]) = fold 8 shift(stacked others; acc own) SHIFTscan
  kept : ℝ[8, N] = both.1
  out : ℝ[N] = fold 8 backward(stacked xs, kept; acc g) BACKWARD
  return out
}
"""


def program(n: int, code: str, *, forward: str = "", shift: str = "reverse ", backward: str = "reverse") -> Program:
    text = CHEAP.replace("CODE", code).replace("ℝ[N]", f"ℝ[{n}]").replace("8, N", f"8, {n}")
    for word, given in (("FORWARD", forward), ("SHIFT", shift), ("BACKWARD", backward)):
        text = text.replace(word, given)
    return read(text)


def laws(done: Optimized) -> set[str]:
    steps = (s for part in done.proof.parts for lemma in part.lemmas for s in lemma.steps)
    return {law for s in steps if isinstance(s, FoldStep) for law in s.laws}


LITTLE = "add x, e"


@pytest.mark.parametrize(("n", "again"), [(3, False), (4_000_000, True)])
@pytest.mark.parametrize("directions", [("", "reverse ", "reverse"), ("reverse ", "", ""), ("", "reverse ", "")])
def test_a_large_residual_that_costs_little_is_computed_again(n: int, again: bool, directions: tuple[str, str, str]):
    forward, shift, backward = directions
    p = program(n, LITTLE, forward=forward, shift=shift, backward=backward)
    done = optimize(p, "f")
    assert check(done.proof, RULES, p, done.program) == []
    assert ("fold.recompute" in laws(done)) == again
    folds = [b.op for b in done.program.functions["f"].bindings if isinstance(b.op, Fold)]
    assert len(folds) == (2 if again else 3)


@pytest.mark.parametrize(
    ("code", "extra", "again"),
    [("sin x", "ℝ[3]", True), ("dot x, e", "ℝ[3, 3]", False), ("linear x, e, x", "ℝ[3, 3]", False)],
)
def test_what_takes_a_contraction_is_kept_whatever_it_costs(code: str, extra: str, again: bool):
    """One iteration of these sizes costs less to compute again than two stacks."""
    text = CHEAP.replace("CODE", code).replace("e : ℝ[N]", f"e : {extra}").replace("ℝ[N]", "ℝ[3]")
    text = text.replace("8, N", "1, 3").replace("fold 8", "fold 1").replace("FORWARD", "")
    p = read(text.replace("SHIFT", "reverse ").replace("BACKWARD", "reverse"))
    for everything in (False, True):
        found = recomputed(p.functions, p.functions, CostModel({}, {}, dict(p.functions)), everything=everything)
        assert (found is not None) == again
    done = optimize(p, "f")
    assert ("fold.recompute" in laws(done)) == again
    assert check(done.proof, RULES, p, done.program) == []


MIXED = """
fn forward(s : ℝ[N], acc : (ℝ[N], ℝ[N], ℝ[3]), e : ℝ[N], w : ℝ[3]) -> (ℝ[N], ℝ[N], ℝ[3]) {
  x : ℝ[N] = acc.0
  y : ℝ[3] = acc.2
  c : ℝ[N] = add x, e
  n : ℝ[N] = sin c
  a0 : ℝ[3] = add y, w
  LINES
  r : (ℝ[N], ℝ[N], ℝ[3]) = (n, c, a8)
  return r
}
fn shift(s : (ℝ[N], ℝ[3]), a : (ℝ[N], ℝ[3])) -> (ℝ[N], ℝ[3]) {
  return s
}
fn backward(s : ℝ[N], r : (ℝ[N], ℝ[3]), ct : (ℝ[N], ℝ[3])) -> (ℝ[N], ℝ[3]) {
  ra : ℝ[N] = r.0
  rb : ℝ[3] = r.1
  ca : ℝ[N] = ct.0
  cb : ℝ[3] = ct.1
  m : ℝ[N] = mul ca, ra
  o : ℝ[3] = mul cb, rb
  q : (ℝ[N], ℝ[3]) = (m, o)
  return q
}
fn f(xs : ℝ[8, N], a : ℝ[N], b : ℝ[3], e : ℝ[N], w : ℝ[3], g : (ℝ[N], ℝ[3])) -> (ℝ[N], ℝ[3]) {
  z : ℝ[N] = zeros
  p : (ℝ[N], ℝ[N], ℝ[3]) = (a, z, b)
  q : ((ℝ[N], ℝ[N], ℝ[3]), (ℝ[8, N], ℝ[8, N], ℝ[8, 3])) = fold 8 forward(stacked xs; acc p; e, w) scan
  l : (ℝ[N], ℝ[N], ℝ[3]) = q.0
  h : (ℝ[8, N], ℝ[8, N], ℝ[8, 3]) = q.1
  l1 : ℝ[N] = l.1
  l2 : ℝ[3] = l.2
  h1 : ℝ[8, N] = h.1
  h2 : ℝ[8, 3] = h.2
  own : (ℝ[N], ℝ[3]) = (l1, l2)
  others : (ℝ[8, N], ℝ[8, 3]) = (h1, h2)
  both : ((ℝ[N], ℝ[3]), (ℝ[8, N], ℝ[8, 3])) = fold 8 shift(stacked others; acc own) reverse scan
  kept : (ℝ[8, N], ℝ[8, 3]) = both.1
  out : (ℝ[N], ℝ[3]) = fold 8 backward(stacked xs, kept; acc g) reverse
  return out
}
"""
"""Two residuals: a large one that is a sum, and one of three numbers that takes eight operations."""


def test_one_residual_is_kept_and_another_is_computed_again():
    lines = "\n  ".join(f"a{i + 1} : ℝ[3] = {op} a{i}" for i, op in enumerate(["tanh", "sin", "exp", "cos"] * 2))
    p = read(MIXED.replace("LINES", lines).replace("N]", "4000000]"))
    done = optimize(p, "f")
    assert check(done.proof, RULES, p, done.program) == []
    assert "fold.recompute" in laws(done)
    (backward,) = [
        b.op
        for b in done.program.functions["f"].bindings
        if isinstance(b.op, Fold) and b.op.body.startswith("backward")
    ]
    operations = {b.op.op for b in done.program.functions[backward.body].bindings if isinstance(b.op, Prim)}
    assert "add" in operations  # the sum is computed again
    assert not operations & {"tanh", "exp", "cos"}  # the other is not


def test_a_choice_is_made_in_one_run():
    """Folds that keep and folds that compute again are equal in one e-graph: each rule fires once."""
    p = program(4_000_000, LITTLE)
    report = optimize(p, "f").report
    assert [phase for phase, _ in report.phases].count("saturate") == 1
    assert all(phase != "other residuals" for phase, _ in report.phases)


def test_the_choice_can_be_forced():
    p = program(4_000_000, LITTLE)
    done = optimize(p, "f", choose_residuals=False)
    assert "fold.recompute" not in laws(done)
    assert check(done.proof, RULES, p, done.program) == []


@pytest.mark.parametrize(("forward", "shift"), [("", ""), ("reverse ", "reverse ")])
def test_a_stack_that_is_not_of_what_iterations_computed_is_no_residual(forward: str, shift: str):
    p = program(4_000_000, LITTLE, forward=forward, shift=shift)
    view = View(p.functions["f"])
    bodies = {name: View(f) for name, f in p.functions.items()}
    assert kept_residuals(view, bodies) == []
    assert len(kept_residuals(View(program(3, LITTLE).functions["f"]), bodies)) == 1


def test_values_are_the_same_when_everything_is_computed_again():
    """The small program with the choice that the cost model makes for a large one."""
    p = program(3, LITTLE)
    functions = {name: live(f) for name, f in p.functions.items()}
    again = recomputed(functions, p.functions, _Cheap({}, {}, functions))
    assert again is not None
    changed = Program(p.modules, again.functions)
    assert same_values(p, changed, "f", {})


class _Cheap(CostModel):
    """Computing costs nothing."""

    def work(self, *args: object) -> object:  # type: ignore[override]
        from presk_rel.egraph.cost import Work

        return Work()


@cache
def large(name: str, order: int) -> tuple[Program, Program, str, Optimized]:
    before, flat, entry = gradient(name, order, "store")
    return before, flat, entry, optimize(flat, entry, LARGE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [pytest.param(1), pytest.param(2, marks=pytest.mark.slow)])
def test_gradients_at_large_dimensions(name: str, order: int):
    before, flat, entry, done = large(name, order)
    assert check(done.proof, RULES, before, done.program) == []
    assert same_values(flat, done.program, entry)


def test_a_second_derivative_computes_again():
    """Without the law a step that needs it is refused. (A later fold's step names the laws of those before it too.)"""
    before, _, _, done = large("scan", 2)
    assert "fold.recompute" in laws(done)
    refused = 0
    for i, lemma in enumerate(done.proof.lemmas):
        for k, step in enumerate(lemma.steps):
            if not isinstance(step, FoldStep) or "fold.recompute" not in step.laws:
                continue
            without = replace(step, laws=tuple(law for law in step.laws if law != "fold.recompute"))
            steps = (*lemma.steps[:k], without, *lemma.steps[k + 1 :])
            lemmas = (*done.proof.lemmas[:i], replace(lemma, steps=steps), *done.proof.lemmas[i + 1 :])
            refused += bool(check(replace(done.proof, lemmas=lemmas), RULES, before, done.program))
    assert refused
