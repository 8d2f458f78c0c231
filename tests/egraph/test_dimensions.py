"""Rules by the lengths of axes: where they hold, how the order of dimensions is discharged, values on random shapes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from presk_rel.core.ir import Program
from presk_rel.core.printer import print_function
from presk_rel.egraph.checker import check
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import Proof, RuleStep
from presk_rel.egraph.render_proof import proof_document
from presk_rel.egraph.rules import FAMILIES, RULES
from presk_rel.exec.verdict import verify_proof
from presk_rel.smt.linear import constant, symbol
from tests.egraph.fold_programs import same_values
from tests.egraph.programs import read


def program(params: str, result: str, *lines: str, dims: str = "") -> Program:
    text = "\n  ".join(lines)
    return read(f"fn f{dims}({params}) -> {result} {{\n  {text}\n  return r\n}}\n")


def used(done: Optimized) -> set[str]:
    return {s.rule for lemma in done.proof.lemmas for s in lemma.steps if isinstance(s, RuleStep)}


CASES = {
    "slice.whole": ("x : ℝ[a: N, 3]", "ℝ[a: N, 3]", ["r : ℝ[a: N, 3] = slice a: 0..N x"], []),
    "slice.slice": (
        "x : ℝ[a: 4*N, 3]",
        "ℝ[a: N, 3]",
        ["y : ℝ[a: 2*N, 3] = slice a: N..3*N x", "r : ℝ[a: N, 3] = slice a: N..2*N y"],
        ["slice a: 2*N..3*N x"],
    ),
    "index.slice": (
        "x : ℝ[a: 2*N + 1, 3]",
        "ℝ[3]",
        ["y : ℝ[a: N + 1, 3] = slice a: N..2*N + 1 x", "r : ℝ[3] = index a: N y"],
        ["index a: 2*N x"],
    ),
    "concat.adjacent": (
        "x : ℝ[a: 4*N, 3]",
        "ℝ[a: 3*N, 3]",
        [
            "y : ℝ[a: N, 3] = slice a: 0..N x",
            "z : ℝ[a: 2*N, 3] = slice a: N..3*N x",
            "r : ℝ[a: 3*N, 3] = concat a y, z",
        ],
        ["slice a: 0..3*N x"],
    ),
    "index.concat-left": (
        "x : ℝ[a: N + 1, 3], y : ℝ[a: M, 3]",
        "ℝ[3]",
        ["z : ℝ[a: N + M + 1, 3] = concat a x, y", "r : ℝ[3] = index a: N z"],
        ["index a: N x"],
    ),
    "index.concat-right": (
        "x : ℝ[a: N, 3], y : ℝ[a: M + 1, 3]",
        "ℝ[3]",
        ["z : ℝ[a: N + M + 1, 3] = concat a x, y", "r : ℝ[3] = index a: N + M z"],
        ["index a: M y"],
    ),
    "slice.concat-left": (
        "x : ℝ[a: 2*N, 3], y : ℝ[a: M, 3]",
        "ℝ[a: N, 3]",
        ["z : ℝ[a: 2*N + M, 3] = concat a x, y", "r : ℝ[a: N, 3] = slice a: N..2*N z"],
        ["slice a: N..2*N x"],
    ),
    "slice.concat-right": (
        "x : ℝ[a: N, 3], y : ℝ[a: 2*M, 3]",
        "ℝ[a: M, 3]",
        ["z : ℝ[a: N + 2*M, 3] = concat a x, y", "r : ℝ[a: M, 3] = slice a: N + M..N + 2*M z"],
        ["slice a: M..2*M y"],
    ),
    "slice.of-cotangent": (
        "x : ℝ[a: 2*N, 3], c : ℝ[a: N, 3]",
        "ℝ[a: N, 3]",
        ["z : ℝ[a: 2*N, 3] = slice_vjp a: N..2*N c, x", "r : ℝ[a: N, 3] = slice a: N..2*N z"],
        [],
    ),
    "slice.past-before": (
        "x : ℝ[a: 2*N + M, 3], c : ℝ[a: M, 3]",
        "ℝ[a: N, 3]",
        [
            "y : ℝ[a: 2*N + M, 3] = slice_vjp a: N..N + M c, x",
            "z : ℝ[a: 2*N + M, 3] = add x, y",
            "r : ℝ[a: N, 3] = slice a: 0..N z",
        ],
        ["slice a: 0..N x"],
    ),
    "slice.past-behind": (
        "x : ℝ[a: 2*N + M, 3], c : ℝ[a: M, 3]",
        "ℝ[a: N, 3]",
        [
            "y : ℝ[a: 2*N + M, 3] = slice_vjp a: N..N + M c, x",
            "z : ℝ[a: 2*N + M, 3] = add y, x",
            "r : ℝ[a: N, 3] = slice a: N + M..2*N + M z",
        ],
        ["slice a: M + N..M + 2*N x"],
    ),
    "sum.length-one": ("x : ℝ[b: N, a: 1]", "ℝ[b: N]", ["r : ℝ[b: N] = sum axis a x"], ["index a: 0 x"]),
    "mean.length-one": ("x : ℝ[b: N, a: 1]", "ℝ[b: N]", ["r : ℝ[b: N] = mean axis a x"], ["index a: 0 x"]),
    "broadcast_like.length-one": (
        "x : ℝ[b: N], y : ℝ[a: 1, b: N]",
        "ℝ[a: 1, b: N]",
        ["r : ℝ[a: 1, b: N] = broadcast_like axis a x, y"],
        ["reshape_like x, y"],
    ),
    "mean_vjp.length-one": (
        "x : ℝ[b: N], y : ℝ[a: 1, b: N]",
        "ℝ[a: 1, b: N]",
        ["r : ℝ[a: 1, b: N] = mean_vjp axis a x, y"],
        ["reshape_like x, y"],
    ),
    "merge.split": (
        "x : ℝ[b: N, a: 6]",
        "ℝ[b: N, a: 6]",
        ["y : ℝ[b: N, p: 2, q: 3] = split axis a p: 2 q: 3 x", "r : ℝ[b: N, a: 6] = merge axis p axis q y"],
        [],
    ),
}


def test_every_rule_of_the_family_has_a_case():
    assert CASES.keys() == {r.name for r in FAMILIES["dimensions"]}


def case(name: str) -> Program:
    params, result, lines, _ = CASES[name]
    dims = "{N M}" if " M" in params or "*M" in params else "{N}"
    return program(params, result, *lines, dims=dims)


def at(p: Program, n: int, m: int) -> dict[str, int]:
    return {d: k for d, k in (("N", n), ("M", m)) if d in p.functions["f"].dims}


@pytest.mark.parametrize("name", CASES)
def test_a_rule(name: str):
    p = case(name)
    done = optimize(p, "f")
    lines = print_function(done.program.functions["f"]).splitlines()[1:-1]
    assert [line.split(" = ")[1].split("  --")[0].strip() for line in lines if " = " in line] == CASES[name][3]
    assert name in used(done)
    verdict = verify_proof(done.proof, p, done.program)
    assert verdict.reasons == ()
    assert verdict.sampled[name] > 0


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_same_on_random_shapes(name: str):
    p = case(name)
    done = optimize(p, "f")
    rng = random.Random(name)
    for _ in range(100):
        assert same_values(p, done.program, "f", at(p, rng.randrange(1, 5), rng.randrange(1, 5)))


NOT = {
    "an index that may be in either": (
        "x : ℝ[a: N, 3], y : ℝ[a: M, 3]",
        "ℝ[3]",
        ["z : ℝ[a: N + M, 3] = concat a x, y", "r : ℝ[3] = index a: 1 z"],
    ),
    "a slice across": (
        "x : ℝ[a: N, 3], y : ℝ[a: M, 3]",
        "ℝ[a: M, 3]",
        ["z : ℝ[a: N + M, 3] = concat a x, y", "r : ℝ[a: M, 3] = slice a: 0..M z"],
    ),
    "slices that are apart": (
        "x : ℝ[a: 3*N + M, 3]",
        "ℝ[a: 2*N, 3]",
        [
            "y : ℝ[a: N, 3] = slice a: 0..N x",
            "z : ℝ[a: N, 3] = slice a: 2*N..3*N x",
            "r : ℝ[a: 2*N, 3] = concat a y, z",
        ],
    ),
    "the last of a concatenation": (
        "x : ℝ[a: N, 3], y : ℝ[a: M, 3]",
        "ℝ[3]",
        ["z : ℝ[a: N + M, 3] = concat a x, y", "r : ℝ[3] = index a: -1 z"],
    ),
    "a slice that meets a cotangent": (
        "x : ℝ[a: 2*N + M, 3], c : ℝ[a: M, 3]",
        "ℝ[a: N + 1, 3]",
        [
            "y : ℝ[a: 2*N + M, 3] = slice_vjp a: N..N + M c, x",
            "z : ℝ[a: 2*N + M, 3] = add x, y",
            "r : ℝ[a: N + 1, 3] = slice a: 0..N + 1 z",
        ],
    ),
    "an axis that may have length 1": ("x : ℝ[b: M, a: N]", "ℝ[b: M]", ["r : ℝ[b: M] = sum axis a x"]),
    "merged in another order": (
        "x : ℝ[b: N, c: M, a: 6]",
        "ℝ[b: N, c: M, d: 6]",
        ["y : ℝ[b: N, c: M, p: 2, q: 3] = split axis a p: 2 q: 3 x", "r : ℝ[b: N, c: M, d: 6] = merge axis p axis q y"],
    ),
}


@pytest.mark.parametrize("name", NOT)
def test_where_no_rule_holds(name: str):
    params, result, lines = NOT[name]
    done = optimize(program(params, result, *lines, dims="{N M}"), "f")
    assert not used(done) & {r.name for r in FAMILIES["dimensions"]}


def steps(proof: Proof) -> list[tuple[int, int, RuleStep]]:
    return [
        (i, k, s)
        for i, lemma in enumerate(proof.lemmas)
        for k, s in enumerate(lemma.steps)
        if isinstance(s, RuleStep) and s.rule in CASES
    ]


@pytest.mark.parametrize("name", CASES)
def test_other_dimensions_are_refused(name: str):
    p = case(name)
    done = optimize(p, "f")
    for i, k, step in steps(done.proof):
        for j, (variable, value) in enumerate(step.substitution):
            if RULES[step.rule].name != name or variable not in ("i", "j", "k", "l", "n", "m"):
                continue
            for other in (constant(17), symbol("N"), constant(0)):
                if other == value:
                    continue
                pairs = (*step.substitution[:j], (variable, other), *step.substitution[j + 1 :])
                lemma = done.proof.lemmas[i]
                changed = (*lemma.steps[:k], replace(step, substitution=pairs), *lemma.steps[k + 1 :])
                lemmas = (*done.proof.lemmas[:i], replace(lemma, steps=changed), *done.proof.lemmas[i + 1 :])
                assert check(replace(done.proof, lemmas=lemmas), RULES, p, done.program), (variable, other)


def test_how_an_order_was_discharged_is_said():
    document = proof_document(optimize(case("index.concat-left"), "f").proof)
    found = next(s for s in document["steps"] if s["rule"] == "index.concat-left")
    said = {c["condition"]: (c["meaning"], c["decided_by"]) for c in found["conditions"]}
    assert said["(length x a n)"] == ("the axis a of x has the length N + 1", "type fact")
    assert said["(at-most 0 i)"] == ("0 ≤ N", "normal form")
    assert said["(less i n)"] == ("N < N + 1", "normal form")
