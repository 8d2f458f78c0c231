"""Composite primitives: what they mean, that rules find them in what is written, and that what rules say of them holds
on random shapes over balls at 256 bits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.expand import expanded, own_operations
from presk_rel.core.ir import Binding, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.reader import read_program
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostics, PreskError
from presk_rel.egraph.denote import denote
from presk_rel.egraph.denote_terms import Terms
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.patterns import read_rule
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import FAMILIES, RULES
from presk_rel.elab.ty import SCALAR_REAL, Axis, Idx, Mask, Real, Shape
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.sampling import _Instance
from presk_rel.exec.values import leaves
from presk_rel.exec.verdict import verify_proof
from presk_rel.smt.linear import constant
from tests.egraph.test_rules_hold import NoInstance, Search

ROOT = Path(__file__).parents[2]
SAMPLES = 100
EPSILON = Fraction(1, 100)


def tensor(*axes: tuple[str | None, int]) -> Real:
    return Real(Shape(None, tuple(Axis(name, constant(n)) for name, n in axes)))


def lengths(rng: random.Random, names: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, rng.randrange(1, 4)) for name in names)


# ------------------------------------------------------------------------------------------- what rules say of them


def norm(rng: random.Random, *operands: str) -> dict[str, Any]:
    """x with the axis `a` anywhere, cotangents of its type, and what is summed down to or repeated along it."""
    axes = list(lengths(rng, "bc"[: rng.randrange(3)]))
    axes.insert(rng.randrange(len(axes) + 1), ("a", rng.randrange(1, 4)))
    x, row, last = tensor(*axes), tensor(*(p for p in axes if p[0] != "a")), tensor((None, axes[-1][1]))
    types = {"r": row, "g": last, "b": last}
    return {"a": "a", "e": EPSILON, "x": x} | {n: types.get(n, x) for n in operands}


def pair(rng: random.Random, *operands: str) -> dict[str, Any]:
    x = tensor(*lengths(rng, "abc"[: rng.randrange(1, 4)]))
    return {"a": "a"} | {n: SCALAR_REAL if n == "ct" and "t" in operands else x for n in operands}


def heads(rng: random.Random, *operands: str) -> dict[str, Any]:
    batch, seq, width = (rng.randrange(1, 4) for _ in range(3))
    x = tensor(("batch", batch), ("heads", 2), ("seq", seq), ("hd", width))
    mask = Mask(Shape(None, (Axis("seq", constant(seq)), Axis("seq2", constant(seq)))))
    types: dict[str, Any] = {"c": SCALAR_REAL, "m": mask}
    return {"a": "seq2"} | {n: types.get(n, x) for n in operands}


QK = "batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2"
AV = "batch heads seq seq2, batch heads seq2 hd -> batch heads seq hd"
ATTENTION = {
    "attention": {"p": QK, "r": AV},
    "attention_vjp_q": {"p": QK, "r": QK, "s": AV},
    "attention_vjp_k": {
        "p": QK,
        "r": QK,
        "s": "batch heads seq2 seq, batch heads seq2 hd -> batch heads seq hd",
    },
    "attention_vjp_v": {"p": QK, "r": "batch heads seq2 hd, batch heads seq2 seq -> batch heads seq hd"},
}


def linear(rng: random.Random, *_: str) -> dict[str, Any]:
    inner, outer = rng.randrange(1, 4), rng.randrange(1, 4)
    x = tensor(*lengths(rng, "bc"[: rng.randrange(1, 3)]), ("d", inner))
    return {"x": x, "w": tensor((None, inner), (None, outer)), "b": tensor((None, outer))}


def stacked(rng: random.Random, *operands: str) -> dict[str, Any]:
    part = lengths(rng, "ab"[: rng.randrange(3)])
    whole = tensor((None, sum(n.startswith("v") for n in operands)), *part)
    return {n: tensor(*part) if n.startswith("v") else whole for n in operands}


def rows(rng: random.Random, *operands: str) -> dict[str, Any]:
    """x with the axis `a` last where indices choose along it, else anywhere; the row without it."""
    axes = list(lengths(rng, "bc"[: rng.randrange(3)]))
    last = "i" in operands
    axes.insert(len(axes) if last else rng.randrange(len(axes) + 1), ("a", rng.randrange(1, 4)))
    x, row = tensor(*axes), tensor(*(p for p in axes if p[0] != "a"))
    types: dict[str, Any] = {"r": row, "m": row}
    if last:
        types["i"] = Idx(constant(axes[-1][1]), row.shape)
    return {"a": "a", "x": x, "t": x} | {n: types.get(n, x) for n in operands}


def softmaxes(rule: Rule, rng: random.Random, *operands: str) -> dict[str, Any]:
    found = rows(rng, *operands)
    row = tensor(*((a.name, int(a.length.const)) for a in found["x"].shape.axes if a.name != "a"))
    if "(type c d)" in rule.conditions:
        found["c"] = row
    if "(type c s)" in rule.conditions:
        found["c"] = SCALAR_REAL
    return found | {"d": row, "z": found["x"]}


def types_of(rule: Rule, rng: random.Random) -> dict[str, Any]:
    """Types and attributes for the variables of a rule."""
    operands = [n for n, kind in read_rule(rule).kinds.items() if kind in ("term", "shape")]
    name = rule.name.removesuffix(".definition")
    if name.startswith("attention"):
        number = {"u": SCALAR_REAL, "n": Fraction(rng.choice((-3, -1, 1, 2, 5)), rng.randrange(1, 5))}
        return heads(rng, *operands) | number | ATTENTION[name.partition(".")[0].removesuffix("_masked")]
    if name.startswith("stack.of-"):
        return stacked(rng, *operands)
    if rule.name.startswith(("softmax.", "log_softmax.", "cross_entropy.")) and rule.law != "definition":
        return softmaxes(rule, rng, *operands)
    if name == "linear":
        return linear(rng)
    return (norm if ":value e" in rule.left else pair)(rng, *operands)


def instance(rule: Rule, rng: random.Random) -> Program:
    """Both sides of a rule as functions, at random shapes."""
    while True:
        search = Search(rule, rng)
        search.values = {k: v for k, v in search.values.items() if k not in read_rule(rule).kinds}
        search.values |= types_of(rule, rng)
        search.ascribed = lambda ty: ty  # type: ignore[method-assign]
        if rule.name.startswith("stack.of-"):
            search.values["t"] = search.values["z0"]
        try:
            return search.instance()
        except NoInstance:
            continue


class Sampler(_Instance):
    """Fresh inputs of a type at no dims."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.dims, self.modules = rng, {}, {}


def disagreement(program: Program, rng: random.Random) -> str | None:
    """Where the balls of both sides are apart, at one random input."""
    import flint

    before, flint.ctx.prec = flint.ctx.prec, 256
    try:
        params = program.functions["left"].params
        drawn = [Sampler(rng).fresh(p.type, positive=False) for p in params]
        written = expanded(program)
        found: list[Any] = []
        for side in ("left", "right"):
            kernel = Balls()
            args = tuple(replace(v, data=kernel.inject(v.data)) if is_real(v) else v for v in drawn)
            found.append(Interpreter(written, kernel).run(side, args, {}))
            assert kernel.events.first() is None
        pairs = zip(leaves(found[0]), leaves(found[1]), strict=True)
        entries = [
            (x, y)
            for (_, a), (_, b) in pairs
            for x, y in zip(np.ravel(a.data), np.ravel(b.data), strict=True)  # type: ignore[union-attr]
        ]
        return next((f"{x} against {y}" for x, y in entries if not x.overlaps(y)), None)
    finally:
        flint.ctx.prec = before


def is_real(value: Any) -> bool:
    return type(value).__name__ == "Tensor"


def masked(program: Program) -> bool:
    return any(isinstance(p.type, Mask) for p in program.functions["left"].params)


RECOGNISED = [r for r in RULES.values() if r.ruleset == "recognise" and r not in FAMILIES["dimensions"]]
"""Those of the family `dimensions` are in `test_dimensions`."""
SAMPLED = [r for r in RECOGNISED if not r.name.startswith("stack.of-") or int(r.name.split("-")[1]) < 5]


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda r: r.name)
def test_both_sides_agree_on_random_shapes(rule: Rule) -> None:
    rng = random.Random(rule.name)
    done = 0
    while done < SAMPLES:
        program = instance(rule, rng)
        try:
            assert disagreement(program, rng) is None
        except PreskError:  # a mask that refuses a whole row
            assert masked(program)
            continue
        done += 1


WRONG = {
    "the mean with the other sign": ("(add :type t (add :type t", "(sub :type t (add :type t"),
    "twice the deviation": ("(const :value 2 :type s)", "(const :value 3 :type s)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_sampling_catches_a_wrong_adjoint(name: str) -> None:
    rule = RULES["standardize.adjoint"]
    before, after = WRONG[name]
    assert before in rule.left
    wrong = replace(rule, left=rule.left.replace(before, after, 1))
    rng = random.Random(1)
    assert any(disagreement(instance(wrong, rng), rng) for _ in range(20))


def test_the_checker_refuses_a_proof_by_a_wrong_definition() -> None:
    program = core("""fn f(x : ℝ[2, 3], w : ℝ[3, 4], b : ℝ[4]) -> ℝ[2, 4] {
  %3 : ℝ[2, 4] = dot x, w
  %4 : ℝ[2, 4] = add %3, b
  return %4
}""")
    good = optimize(program, "f")
    assert verify_proof(good.proof, program, good.program).accepted
    right = RULES["linear.definition"]
    wrong = replace(right, left="(sub (dot x w) b)")
    from presk_rel.egraph.checker import check

    assert check(good.proof, RULES | {wrong.name: wrong}, program, good.program)


# ------------------------------------------------------------------------------------------------- what they mean


def core(text: str) -> Program:
    diagnostics = Diagnostics()
    program = read_program(text, "test.core", diagnostics)
    assert program is not None, diagnostics.items
    verify(program, "test")
    return program


def zoo() -> Program:
    return core((ROOT / "tests" / "core" / "zoo.core").read_text(encoding="utf-8"))


def test_every_composite_has_its_primitive_row_and_its_rule() -> None:
    assert set(COMPOSITES) <= set(PRIMS)
    assert all(f"{name}.definition" in RULES for name in COMPOSITES)
    assert all(f"{name}.template" in RULES for name, row in COMPOSITES.items() if row.shape_only)


READ_FOR_THE_TYPE = {
    "mse_vjp": """fn f(c : ℝ[], x : ℝ[2, 3], y : ℝ[2, 3]) -> ℝ[2, 3] {
  t : ℝ[2, 3] = sub x, y
  out : ℝ[2, 3] = mse_vjp c, x, y, t
  return out
}""",
    "layer_norm_vjp_scale": """fn f(ct : ℝ[batch: 2, model: 3], x : ℝ[batch: 2, model: 3], g : ℝ[3]) -> ℝ[3] {
  t : ℝ[3] = exp g
  out : ℝ[3] = layer_norm_vjp_scale axis model 0.01 ct, x, t
  return out
}""",
}


@pytest.mark.parametrize("name", READ_FOR_THE_TYPE)
def test_nothing_is_computed_for_its_type(name: str) -> None:
    program = core(READ_FOR_THE_TYPE[name])
    done = optimize(program, "f")
    assert [b.op.op for b in done.program.functions["f"].bindings if isinstance(b.op, Prim)] == [name]
    verdict = verify_proof(done.proof, program, done.program)
    assert (verdict.reasons, verdict.unsampled) == ((), ())
    assert f"{name}.template" in verdict.sampled


@pytest.mark.parametrize("function", ["library", "attends"])
def test_the_checker_reads_a_composite_as_its_expansion(function: str) -> None:
    program = zoo()
    table = Terms()
    assert denote(program, function, table) == denote(expanded(program), function, table)


def test_an_expansion_has_no_composites_and_is_well_formed() -> None:
    program = expanded(zoo())
    verify(program, "test")
    used = {b.op.op for f in program.functions.values() for b in f.bindings if isinstance(b.op, Prim)}
    assert not used & set(COMPOSITES)


def test_work_is_counted_once_between_composites_of_one_call() -> None:
    x, g = tensor(("b", 2), ("a", 3)), tensor((None, 3))
    shared = own_operations("layer_norm_vjp_scale", ("a", EPSILON), (x, x, g), {})
    assert [op for op, *_ in shared] == ["mul", "sum_to"]


def bindings(program: Program, entry: str) -> Iterator[Binding]:
    yield from program.functions[entry].bindings


@pytest.mark.parametrize(
    "order",
    ["%5, γ", "γ, %5"],
)
def test_sums_and_products_match_in_either_order(order: str) -> None:
    text = f"""fn f(x : ℝ[b: 2, a: 3], γ : ℝ[a: 3], β : ℝ[a: 3]) -> ℝ[b: 2, a: 3] {{
  %3 : ℝ[b: 2] = mean axis a x
  %4 : ℝ[b: 2, a: 3] = sub x, %3
  %s : ℝ[b: 2, a: 3] = pow 2 %4
  %v : ℝ[b: 2] = mean axis a %s
  %c : ℝ[] = const 0.1
  %w : ℝ[b: 2] = add %c, %v
  %d : ℝ[b: 2] = sqrt %w
  %5 : ℝ[b: 2, a: 3] = div %4, %d
  %6 : ℝ[b: 2, a: 3] = mul {order}
  %7 : ℝ[b: 2, a: 3] = add β, %6
  return %7
}}"""
    program = core(text)
    optimized = optimize(program, "f")
    ops = [b.op.op for b in bindings(optimized.program, "f") if isinstance(b.op, Prim)]
    assert ops == ["layer_norm"]
    assert verify_proof(optimized.proof, program, optimized.program).accepted


@pytest.mark.parametrize(
    "form",
    [
        "(x - mean(axis a, x)) / sqrt(mean(axis a, (x - mean(axis a, x))^2) + 1e-5)",
        "let m = mean(axis a, x)\n  (x - m) / sqrt(mean(axis a, (x - m)^2) + 1e-5)",
        "let c = x - mean(axis a, x)\n  c / sqrt(mean(axis a, c^2) + 1e-5)",
    ],
    ids=["nothing-named", "mean-named", "deviation-named"],
)
def test_the_gradient_of_a_normalization_is_one_operation(form: str, tmp_path: Path) -> None:
    from presk_rel.session import Session

    x = "ℝ[b: B, a: 4]"
    text = f"dim B\nfn norm(x : {x}) -> {x} =\n  {form}\n"
    text += f"fn f(x : {x}, t : {x}) -> {x} = grad(λ x. sum(t * norm(x)))(x)\n"
    (tmp_path / "norm.psk").write_text(text, encoding="utf-8")
    session = Session(str(tmp_path / "norm.psk"))
    bindings = session.optimized("f", {}).program.functions["f"].bindings
    assert [b.op.op for b in bindings if isinstance(b.op, Prim)] == ["standardize_vjp"]
    assert session.verified("f", {}).reasons == ()
