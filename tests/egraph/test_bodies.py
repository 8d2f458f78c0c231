"""The bodies of folds share the e-graph of the entry, and each is proven by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from presk_rel.core.analysis import reached
from presk_rel.core.ir import Fold, Program
from presk_rel.core.printer import print_function
from presk_rel.egraph.checker import check
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import Proof
from presk_rel.egraph.render_proof import proof_document, proof_text
from presk_rel.egraph.rules import RULES
from presk_rel.exec.verdict import verify_proof
from tests.egraph.fold_programs import ENTRIES, gradient, same_values
from tests.egraph.programs import read
from tests.egraph.test_checker import corruptions

NEGATED = """
fn body(s : ℝ[3], acc : ℝ[3], e : ℝ[3]) -> ℝ[3] {
  n : ℝ[3] = neg acc
  m : ℝ[3] = neg n
  r : ℝ[3] = add s, m
  q : ℝ[3] = mul r, e
  return q
}
fn f(xs : ℝ[4, 3], a : ℝ[3], e : ℝ[3]) -> ℝ[3] {
  out : ℝ[3] = fold 4 body(stacked xs; acc a; e)
  return out
}
"""

NESTED = """
fn inner(acc : ℝ[3], e : ℝ[3]) -> ℝ[3] {
  z : ℝ[3] = zeros
  x : ℝ[3] = add acc, z
  r : ℝ[3] = mul x, e
  return r
}
fn outer(s : ℝ[3], acc : ℝ[3], e : ℝ[3]) -> ℝ[3] {
  n : ℝ[3] = neg e
  m : ℝ[3] = neg n
  t : ℝ[3] = fold 2 inner(stacked ; acc acc; m)
  r : ℝ[3] = add t, s
  return r
}
fn f(xs : ℝ[4, 3], a : ℝ[3], e : ℝ[3]) -> ℝ[3] {
  out : ℝ[3] = fold 4 outer(stacked xs; acc a; e)
  return out
}
"""


def body(done: Optimized, name: str) -> list[str]:
    lines = print_function(done.program.functions[name]).splitlines()[1:-1]
    return [line.split(" = ")[1].split("  --")[0].strip() for line in lines if " = " in line]


def test_rules_fire_in_a_body():
    program = read(NEGATED)
    done = optimize(program, "f")
    assert body(done, "body") == ["add s, acc", "mul r, e"]
    assert done.program.functions["f"] == program.functions["f"]
    assert check(done.proof, RULES, program, done.program) == []
    assert (done.report.before.bindings, done.report.after.bindings) == (5, 3)
    assert (done.report.before.kernels, done.report.after.kernels) == (16, 8)
    assert same_values(program, done.program, "f", {})


def test_a_fold_in_a_fold():
    program = read(NESTED)
    done = optimize(program, "f")
    assert body(done, "inner") == ["mul acc, e"]
    assert body(done, "outer'") == ["fold 2 inner(stacked; acc acc; m)", "add t, s"]
    assert body(done, "f") == ["fold 4 outer'(stacked xs; acc a; e)"]
    assert [part.entry for part in done.proof.parts] == ["f", "outer", "inner", "outer'"]
    assert check(done.proof, RULES, program, done.program) == []
    assert done.report.after.kernels == 4 * (2 + 1)


def test_what_cannot_be_improved_stays_as_it_is():
    program = read(NEGATED.replace("add s, m", "add s, acc"))
    best = optimize(program, "f").program
    again = optimize(best, "f")
    assert again.program == best
    assert [part.start == part.end for part in again.proof.parts] == [True, True]


def test_parameters_of_one_name_are_two_values():
    """`x` of the body is no `x` of the entry: the sums `x + x` and `x - x` across them are not found."""
    program = read("""
    fn body(x : ℝ[3], y : ℝ[3]) -> ℝ[3] {
      a : ℝ[3] = sub x, y
      return a
    }
    fn f(y : ℝ[3], x : ℝ[3]) -> ℝ[3] {
      a : ℝ[3] = fold 4 body(stacked ; acc x; y)
      b : ℝ[3] = sub x, y
      c : ℝ[3] = add a, b
      return c
    }
    """)
    done = optimize(program, "f")
    assert done.program == program
    assert same_values(program, done.program, "f", {})


@cache
def optimized(name: str, order: int, remat: str) -> tuple[Program, Program, str, Optimized]:
    before, flat, entry = gradient(name, order, remat)  # type: ignore[arg-type]
    return before, flat, entry, optimize(flat, entry, {"B": 2, "D": 2, "L": 3})


@pytest.mark.parametrize(
    ("name", "order", "remat"),
    [pytest.param(*e, marks=pytest.mark.slow) if e[1] == 2 and "tuples" in e[0] else e for e in ENTRIES],
)
def test_gradients_through_folds(name: str, order: int, remat: str):
    before, flat, entry, done = optimized(name, order, remat)
    verdict = verify_proof(done.proof, before, done.program)
    assert verdict.reasons == ()
    assert done.report.after.kernels < done.report.before.kernels
    assert same_values(flat, done.program, entry)


# ------------------------------------------------------------------------------------------------ corruption


def corrupted(proof: Proof) -> Iterator[tuple[str, Proof]]:
    """Every corruption of the chain of a body; a body left out, said twice, or taken for another."""
    for i, part in enumerate(proof.bodies):
        for what, changed in corruptions(part) if len(part.terms) > 1 else ():
            yield f"{part.entry}: {what}", _with(proof, i, changed)
        for k, p in enumerate(part.params):
            params = (*part.params[:k], *part.params[k + 1 :])
            yield f"{part.entry} without {p.name}", _with(proof, i, replace(part, params=params))
            read = {t.attrs[0] for t in part.terms if t.op == "input"}
            if k and p.name in read and p.type == part.params[k - 1].type:
                params = (*part.params[: k - 1], p, part.params[k - 1], *part.params[k + 1 :])
                yield f"{part.entry} with {p.name} earlier", _with(proof, i, replace(part, params=params))
        yield f"{part.entry} left out", replace(proof, bodies=(*proof.bodies[:i], *proof.bodies[i + 1 :]))
        yield f"{part.entry} twice", replace(proof, bodies=(*proof.bodies, part))
        for other in proof.bodies:
            if not _may_be_one(other, part):
                yield f"{part.entry} taken for {other.entry}", _with(proof, i, replace(part, entry=other.entry))
    for i, one in enumerate(proof.bodies):
        for j, two in enumerate(proof.bodies[:i]):
            if _may_be_one(one, two):
                continue
            swapped = _with(_with(proof, i, replace(two, entry=one.entry)), j, replace(one, entry=two.entry))
            yield f"{one.entry} and {two.entry} exchanged", swapped


def _may_be_one(one: Proof, two: Proof) -> bool:
    """A body and what it became without an operand may be the same but for their parameters."""
    return one.entry.rstrip("'") == two.entry.rstrip("'") or _content(one) == _content(two)


def _content(part: Proof) -> object:
    """What a body computes in the end, its parameters by place."""
    place = {p.name: i for i, p in enumerate(part.params)}

    def read(index: int) -> object:
        t = part.terms[index]
        attrs = place[str(t.attrs[0])] if t.op == "input" else t.attrs
        return (t.op, t.type, attrs, tuple(map(read, t.children)))

    return read(part.end)


def _with(proof: Proof, i: int, part: Proof) -> Proof:
    return replace(proof, bodies=(*proof.bodies[:i], part, *proof.bodies[i + 1 :]))


@pytest.mark.parametrize(
    "which", [("tuples", 1, "recompute"), ("parameters of a tower", 1, "store"), ("scan", 2, "store")]
)
def test_every_corruption_of_a_body_is_refused(which: tuple[str, int, str]):
    before, _, _, done = optimized(*which)
    everything = list(corrupted(done.proof))
    structural = [(what, c) for what, c in everything if ":" not in what]
    others = [(what, c) for what, c in everything if ":" in what]
    refused = 0
    for what, corrupt in [*structural, *others[:: 1 + len(others) // 100]]:
        if corrupt == done.proof or _same_rule_instance(corrupt, done.proof):
            continue
        assert check(corrupt, RULES, before, done.program), what
        refused += 1
    assert refused > 20


def _same_rule_instance(corrupt: Proof, proof: Proof) -> bool:
    """Another rule that has the same instance, or a rule used backwards whose sides are alike, is no lie."""
    changed = [(a, b) for a, b in zip(corrupt.bodies, proof.bodies, strict=False) if a != b]
    for mine, yours in changed:
        for a, b in zip(mine.lemmas, yours.lemmas, strict=False):
            for s, t in zip(a.steps, b.steps, strict=False):
                if s != t and (s.before, s.after) == (t.before, t.after) and type(s) is type(t):
                    return hasattr(s, "rule") and _alike(s, t)
    return False


def _alike(s: object, t: object) -> bool:
    one, two = RULES.get(s.rule), RULES[t.rule]  # type: ignore[attr-defined]
    if one is None:
        return False
    return one != two or one.left.split()[0] == one.right.split()[0]


@pytest.mark.parametrize("which", [("tuples", 1, "recompute"), ("parameters of a tower", 1, "store")])
def test_another_body_in_the_optimized_program_is_refused(which: tuple[str, int, str]):
    before, _, entry, done = optimized(*which)
    functions = done.program.functions
    for f in reached(done.program, entry):
        for i, b in enumerate(f.bindings):
            if getattr(b.op, "op", None) not in ("mul", "add"):
                continue
            wrong = replace(b, op=replace(b.op, op="sub"))  # type: ignore[type-var]
            changed = replace(f, bindings=(*f.bindings[:i], wrong, *f.bindings[i + 1 :]))
            program = replace(done.program, functions={**functions, f.name: changed})
            assert check(done.proof, RULES, before, program), (f.name, b.name)


def test_a_fold_of_another_body_is_refused():
    before, _, entry, done = optimized("parameters of a tower", 1, "store")
    f = done.program.functions[entry]
    folds = [(i, b) for i, b in enumerate(f.bindings) if isinstance(b.op, Fold)]
    for i, b in folds:
        assert isinstance(b.op, Fold)
        changed = replace(b, op=replace(b.op, reverse=not b.op.reverse))
        program = replace(done.program, functions={**done.program.functions, entry: replace(
            f, bindings=(*f.bindings[:i], changed, *f.bindings[i + 1 :])
        )})  # fmt: skip
        assert check(done.proof, RULES, before, program), b.name


# ------------------------------------------------------------------------------------------------ printed


def test_all_parts_are_printed_and_the_entry_comes_first():
    program = read(NESTED)
    proof = optimize(program, "f").proof
    text = proof_text(proof)
    heads = [line.split(":")[0] for line in text.splitlines() if ": " in line and not line.startswith(("Lemma", " "))]
    assert heads == ["f", *(f"{name}, the body of a fold of f" for name in ("outer", "inner", "outer'"))]
    document = json.loads(json.dumps(proof_document(proof)))
    assert "fold.invariant-code" in [s["rule"] for s in document["steps"] if s["function"] == "f"]
    assert [b["function"] for b in document["bodies"]] == ["outer", "inner", "outer'"]
    assert len({(s["function"], s["lemma"]) for s in document["steps"]}) == len({s["lemma"] for s in document["steps"]})
    last = len(document["steps"])
    assert proof_text(proof, step=last).startswith(f"Step {last}, of lemma")
    assert "of inner" in proof_text(proof, step=last).splitlines()[0]
