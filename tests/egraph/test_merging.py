"""Contractions that share an operand, and sums of them, as one contraction of stacks: where it pays, what proves it,
that its laws hold as polynomials and on random shapes, and that torch launches no more for it."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from presk_rel.core.ir import Function, Prim, Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.places import Layout, Place, distance, lying_stacks
from presk_rel.egraph.proof import RuleStep
from presk_rel.egraph.rules import FAMILIES, RULES
from presk_rel.egraph.rules.merging import MOST
from presk_rel.elab.ty import Applied, Params, Stacked
from presk_rel.exec.torch.separate import separated
from presk_rel.exec.verdict import verify_proof
from presk_rel.smt.linear import constant, symbol
from tests.ad import interpreter_axes
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.egraph.evidence.test_laws import CONTEXT, Quotient, number
from tests.egraph.fold_programs import same_values
from tests.egraph.programs import read


def program(params: str, result: str, *lines: str, before: str = "") -> Program:
    text = "\n  ".join(lines)
    return read(f"{before}fn f{{B D E}}({params}) -> {result} {{\n  {text}\n  return r\n}}\n")


def tensors(names: str, ty: str) -> str:
    return ", ".join(f"{n} : {ty}" for n in names.split())


def tuple_of(ty: str, names: str) -> tuple[str, str]:
    """A type and a line that returns several values."""
    items = names.split()
    whole = f"({', '.join([ty] * len(items))})"
    return whole, f"r : {whole} = ({', '.join(items)})"


X, W, Y = "ℝ[batch: B, D]", "ℝ[D, E]", "ℝ[batch: B, E]"


def sharing_left(op: str, x: str, w: str, y: str, count: int = 3) -> Program:
    names = " ".join(f"y{k}" for k in range(count))
    result, last = tuple_of(y, names)
    lines = [f"y{k} : {y} = {op} x, w{k}" for k in range(count)]
    return program(f"x : {x}, {tensors(' '.join(f'w{k}' for k in range(count)), w)}", result, *lines, last)


def sharing_right(op: str, x: str, w: str, y: str) -> Program:
    result, last = tuple_of(y, "y0 y1 y2")
    lines = [f"y{k} : {y} = {op} x{k}, w" for k in range(3)]
    return program(f"{tensors('x0 x1 x2', x)}, w : {w}", result, *lines, last)


def adding(op: str, x: str, w: str, y: str, count: int = 4) -> Program:
    """A sum of contractions that share nothing, in another order than theirs."""
    lines = [f"y{k} : {y} = {op} x{k}, w{k}" for k in range(count)]
    lines += [
        f"s{k} : {y} = add y{k}, {f's{k + 1}' if k < count - 2 else f'y{k + 1}'}" for k in range(count - 2, -1, -1)
    ]
    given = (
        f"{tensors(' '.join(f'x{k}' for k in range(count)), x)}, {tensors(' '.join(f'w{k}' for k in range(count)), w)}"
    )
    return program(given, y, *lines[:-1], lines[-1].replace("s0 ", "r ", 1))


LEAVES = "".join(f"  param {n}{k} : ℝ[{d}]  init = zeros\n" for k in range(3) for n, d in (("w", "D, E"), ("b", "E")))
BIASED_TYPE, BIASED_LAST = tuple_of(Y, "z0 z1 z2")
BIASED = program(
    f"x : {X}, p : params P{{D, E}}",
    BIASED_TYPE,
    *(f"{n} : ℝ[{d}] = p.{n}" for k in range(3) for n, d in ((f"w{k}", "D, E"), (f"b{k}", "E"))),
    *(line for k in range(3) for line in (f"y{k} : {Y} = dot x, w{k}", f"z{k} : {Y} = add y{k}, b{k}")),
    BIASED_LAST,
    before=f"module P{{D E}} {{\n{LEAVES}}}\n\n",
)
SUMMED = program(
    f"x : {X}, {tensors('c0 c1 c2', Y)}, {tensors('b0 b1 b2', 'ℝ[E]')}",
    f"({', '.join(['ℝ[D, E]'] * 3 + ['ℝ[E]'] * 3)})",
    *(f"g{k} : ℝ[D, E] = dot_vjp_r x, c{k}" for k in range(3)),
    *(f"h{k} : ℝ[E] = sum_to c{k}, b{k}" for k in range(3)),
    f"r : ({', '.join(['ℝ[D, E]'] * 3 + ['ℝ[E]'] * 3)}) = (g0, g1, g2, h0, h1, h2)",
)
SPEC = "ein [b d, d e -> b e]"
CASES: dict[str, Program] = {
    "dot.slices-right": sharing_left("dot", X, W, Y),
    "dot.slices-left": sharing_right("dot", X, W, Y),
    "dot.slices-both": adding("dot", X, W, Y),
    "dot_vjp_l.slices-right": sharing_left("dot_vjp_l", Y, W, X),
    "dot_vjp_l.slices-left": sharing_right("dot_vjp_l", Y, W, X),
    "dot_vjp_l.slices-both": adding("dot_vjp_l", Y, W, X),
    "dot_vjp_r.slices-right": sharing_left("dot_vjp_r", X, Y, W),
    "dot_vjp_r.slices-left": sharing_right("dot_vjp_r", X, Y, W),
    "dot_vjp_r.slices-both": adding("dot_vjp_r", X, Y, W),
    "ein.slices-right": sharing_left(SPEC, X, W, "ℝ[b: B, e: E]"),
    "ein.slices-left": sharing_right(SPEC, X, W, "ℝ[b: B, e: E]"),
    "ein.slices-both": adding(SPEC, X, W, "ℝ[b: B, e: E]"),
    "add.slices": BIASED,
    "sum_to.slices": SUMMED,
    "sum.ein": adding("dot", X, W, Y, 5),
    **{f"slices.sum-{n}": adding("dot_vjp_l", Y, W, X, n) for n in range(4, MOST + 1)},
}
"""For each rule a program whose proof uses it."""


def used(done: Optimized) -> set[str]:
    return {s.rule for lemma in done.proof.lemmas for s in lemma.steps if isinstance(s, RuleStep)}


def count(f: Function, *ops: str) -> int:
    return sum(isinstance(b.op, Prim) and b.op.op in ops for b in f.bindings)


@pytest.mark.parametrize("name", CASES)
def test_a_rule(name: str):
    p = CASES[name]
    done = optimize(p, "f")
    assert name in used(done)
    assert count(done.program.functions["f"], "ein") == 1
    assert count(done.program.functions["f"], "dot", "dot_vjp_l", "dot_vjp_r", "linear") == 0
    verdict = verify_proof(done.proof, p, done.program)
    assert verdict.reasons == ()
    assert verdict.sampled[name] > 0


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_same_on_random_shapes(name: str):
    p = CASES[name]
    done = optimize(p, "f")
    rng = random.Random(name)
    for _ in range(100):
        dims = {d: rng.randrange(1, 4) for d in ("B", "D", "E")}
        assert same_values(p, done.program, "f", dims)


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_proven(name: str, monkeypatch: pytest.MonkeyPatch):
    """Both sides are the same polynomials of the entries, exactly."""
    monkeypatch.setattr(interpreter_axes, "mp", SimpleNamespace(mpf=Fraction))
    p = CASES[name]
    done = optimize(p, "f")
    for dims in ({"B": 1, "D": 2, "E": 2}, {"B": 2, "D": 1, "E": 3}, {"B": 3, "D": 2, "E": 1}):
        variables = iter(CONTEXT.gens())
        args = [
            random_value(p, q.type, dims, (), lambda v=variables: Quotient(next(v))) for q in p.functions["f"].params
        ]
        left, right = (flat(evaluate(side, "f", dims, args)) for side in (p, done.program))
        assert len(left) == len(right) > 0
        assert all(number(x) == number(y) for x, y in zip(left, right, strict=True))


def test_every_rule_has_a_case():
    """But slices of stacks and sums of two and three, which `test_a_stack` has."""
    small = {r for r in RULES if r.startswith("slice.of-stack")} | {"slices.sum-2", "slices.sum-3"}
    assert CASES.keys() | small == {r.name for r in FAMILIES["merging"]}


@pytest.mark.parametrize("size", range(2, MOST + 1))
def test_a_stack(size: int):
    """Stacks of every size, of leaves that lie next to each other; all of their slices."""
    fields = "".join(f"  param w{k} : ℝ[D, D]  init = zeros\n" for k in range(size))
    lines = [f"w{k} : ℝ[D, D] = p.w{k}" for k in range(size)]
    lines += [f"y{k} : {X} = dot_vjp_l x{k}, w{k}" for k in range(size)]
    lines += [f"s{k} : {X} = add {f's{k - 1}' if k > 1 else 'y0'}, y{k}" for k in range(1, size)]
    lines[-1] = lines[-1].replace(f"s{size - 1} ", "r ", 1)
    given = tensors(" ".join(f"x{k}" for k in range(size)), X)
    p = program(f"p : params P{{D}}, {given}", X, *lines, before=f"module P{{D}} {{\n{fields}}}\n\n")
    done = optimize(p, "f")
    assert {f"slices.sum-{size}", *(f"slice.of-stack-{size}-{k}" for k in range(size))} <= used(done)
    assert verify_proof(done.proof, p, done.program).reasons == ()
    rng = random.Random(size)
    for _ in range(100):
        dims = {d: rng.randrange(1, 4) for d in ("B", "D", "E")}
        assert same_values(p, done.program, "f", dims)


# ------------------------------------------------------------------------------------------------ where it pays

TREE = "module P{D} {\n" + "".join(f"  param {n} : ℝ[D, D]  init = zeros\n" for n in "abc") + "}\n\n"
TWO = program(
    f"p : params P{{D}}, x : {X}",
    f"({X}, {X})",
    "a : ℝ[D, D] = p.a",
    "b : ℝ[D, D] = p.b",
    f"y0 : {X} = dot x, b",
    f"y1 : {X} = dot x, a",
    f"r : ({X}, {X}) = (y0, y1)",
    before=TREE,
)


def merges(p: Program, dims: dict[str, int]) -> bool:
    return count(optimize(p, "f", dims).program.functions["f"], "ein") > 0


def test_leaves_that_lie_next_to_each_other_are_a_stack():
    """In the order in which they lie; without a launch or a copy."""
    done = optimize(TWO, "f").program.functions["f"]
    (stack,) = [b for b in done.bindings if isinstance(b.op, Prim) and b.op.op == "stack_params"]
    assert isinstance(stack.op, Prim)
    assert stack.op.args == ("a", "b")
    model = CostModel(TWO.modules, {})
    assert lying_stacks(done, TWO.modules, model.items) == {stack.name}
    assert model.function(done).kernels == 1


def test_a_copy_is_worth_two_launches_but_not_its_bytes():
    """Two are no gain, three are while what is copied is small."""
    assert not merges(sharing_left("dot", X, W, Y, 2), {})
    assert merges(sharing_left("dot", X, W, Y, 3), {"B": 8, "D": 64, "E": 64})
    assert not merges(sharing_left("dot", X, W, Y, 3), {"B": 8, "D": 2048, "E": 2048})


def test_what_is_worked_on_entry_by_entry_stays_with_its_contraction():
    names = ("w0", "w1", "w2")
    lines = [line for w in names for line in (f"y{w} : {Y} = dot x, {w}", f"z{w} : {Y} = tanh y{w}")]
    ty, last = tuple_of(Y, "zw0 zw1 zw2")
    assert not merges(program(f"x : {X}, {tensors('w0 w1 w2', W)}", ty, *lines, last), {})


def test_what_waits_for_another_is_not_merged_with_it():
    lines = [f"y{k + 1} : {X} = dot {f'y{k}' if k else 'x'}, w" for k in range(4)]
    ty, last = tuple_of(X, "y1 y2 y3 y4")
    assert not merges(program(f"x : {X}, w : ℝ[D, D]", ty, *lines, last), {})


def test_groups_are_found_in_one_pass():
    """Stacks of at most `MOST`; the work is linear."""
    n = 10 * MOST
    p = sharing_left("dot", X, W, Y, n)
    done = optimize(p, "f")
    assert count(done.program.functions["f"], "ein") == n // MOST
    assert sum(fired for rule, fired in done.report.fired if rule.startswith("slice.of")) <= 2 * n


# ------------------------------------------------------------------------------------------------ the checker


def steps(done: Optimized, rule: str) -> list[tuple[int, int, RuleStep]]:
    return [
        (i, k, s)
        for i, lemma in enumerate(done.proof.lemmas)
        for k, s in enumerate(lemma.steps)
        if isinstance(s, RuleStep) and s.rule == rule
    ]


def refused(p: Program, done: Optimized, i: int, k: int, step: RuleStep) -> bool:
    lemma = done.proof.lemmas[i]
    changed = replace(lemma, steps=(*lemma.steps[:k], step, *lemma.steps[k + 1 :]))
    proof = replace(done.proof, lemmas=(*done.proof.lemmas[:i], changed, *done.proof.lemmas[i + 1 :]))
    return bool(check(proof, RULES, p, done.program))


WRONG = {
    "dot.slices-right": ("batch j, each i0 j -> each batch i0", "i0 j, each j batch -> each batch i0"),
    "dot_vjp_l.slices-both": ("each batch i0, each j i0 -> each j batch",),
    "dot_vjp_r.slices-left": ("batch each i1, batch i0 -> each i1 i0",),
    "ein.slices-left": ("b each d, d e -> each b e", "each b d, d e -> each e b"),
    "sum.ein": ("each batch j, each j i0 -> each batch i0", "each batch j, j i0 -> batch i0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_contractions_are_refused(name: str):
    p = CASES[name]
    done = optimize(p, "f")
    for i, k, step in steps(done, name):
        for spec in WRONG[name]:
            pairs = tuple((v, spec if v == "s" else x) for v, x in step.substitution)
            assert refused(p, done, i, k, replace(step, substitution=pairs))


@pytest.mark.parametrize("name", CASES)
def test_another_rule_is_refused(name: str):
    p = CASES[name]
    done = optimize(p, "f")
    i, k, step = steps(done, name)[0]
    for other in {r.name for r in FAMILIES["merging"] if r.name != name and not r.name.startswith("slice.of")}:
        assert refused(p, done, i, k, replace(step, rule=other))


# ------------------------------------------------------------------------------------------------ torch


@pytest.mark.parametrize("name", CASES)
def test_torch_runs_slice_by_slice_what_no_plan_merges(name: str):
    """Taken apart, it is what it was: no stack is copied, nothing is computed twice."""
    p = CASES[name]
    apart = separated(optimize(p, "f").program)
    f = apart.functions["f"]
    assert count(f, "stack_params", "slice_params") == 0
    ops = ("dot", "dot_vjp_l", "dot_vjp_r", "ein", "linear")
    assert count(f, *ops) == count(p.functions["f"], *ops)
    assert same_values(p, apart, "f", {"B": 2, "D": 3, "E": 2})


# ------------------------------------------------------------------------------------------------ places


def test_where_the_leaves_of_stacks_of_trees_lie():
    """Every leaf of a stack of trees is a stack: slice 1 of b is behind all of a, and behind slice 0."""
    modules = read(TREE + "fn f{D}(p : params P{D}) -> params P{D} {\n  return p\n}\n").modules
    layout = Layout(modules, CostModel(modules, {"D": 3}).items)
    inner = Applied("P", (symbol("D"),))
    way = (("slice_params", constant(1)), ("field", "b"))
    assert layout.offset(Place("p", Params(Stacked(constant(5), inner)), way)) == (5 * 9 + 9, 9)
    assert layout.offset(Place("p", Params(Stacked(constant(5), inner)), way[::-1])) == (5 * 9 + 9, 9)
    twice = Stacked(constant(2), Stacked(constant(5), inner))
    deeper = (("slice_params", constant(1)), *way)
    assert layout.offset(Place("p", Params(twice), deeper)) == (10 * 9 + 5 * 9 + 9, 9)
    assert layout.offset(Place("p", Params(inner), (("field", "c"),))) == (18, 9)
    assert layout.offset(Place("p", Params(inner))) is None


def test_equal_distances():
    assert distance([("p", 0, 4), ("p", 6, 4), ("p", 12, 4)]) == 6
    assert distance([("p", 0, 4), ("p", 4, 4), ("p", 12, 4)]) is None
    assert distance([("p", 0, 4), ("q", 4, 4)]) is None
    assert distance([("p", 4, 4), ("p", 0, 4)]) is None
    assert distance([("p", 0, 4), ("p", 2, 4)]) is None
