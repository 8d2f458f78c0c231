"""A false rule is caught by every layer: sampling of the rule, the proof of its law, types, sampling of proofs, and the
checker, which knows the true table only."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import pytest

from presk_rel.core.ir import Binding, Prim, Program
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.checker import check
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import Lemma, Proof, RuleStep, Term, Value
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import Real, Shape
from presk_rel.exec import sampling
from presk_rel.exec.sampling import Sampled, sample_rules
from presk_rel.session import Session
from tests.egraph.evidence.test_laws import CONTEXT, Quotient, sides
from tests.egraph.programs import read
from tests.egraph.test_rules_hold import BY_SEARCH, NoInstance, Search, compare

EXAMPLES = Path(__file__).parents[3] / "examples"
FALSE = Rule(
    "false.quotient",
    "(div :type t (add :type t x y) y)",
    "x",
    ("(type x t)", "(type y t)", "(real x)"),
    "(x + y) / y = x, which is false",
)
PROGRAM = read("fn f(x : ℝ[3], y : ℝ[3]) -> ℝ[3] {\ns : ℝ[3] = add x, y\nq : ℝ[3] = div s, y\nreturn q\n}\n")


def misled(rule: Rule) -> Optimized:
    done = optimize(PROGRAM, "f", {}, rules=(*RULES.values(), rule))
    assert done.program.functions["f"].bindings == (), "the false rule was not taken"
    return done


def instance(rule: Rule):
    rng = random.Random(1)
    while True:
        try:
            return Search(rule, rng).instance()
        except NoInstance:
            continue


def test_sampling_of_the_rule():
    with pytest.raises(AssertionError), mp.workdps(40):
        rng = random.Random(1)
        for _ in range(20):
            compare(instance(FALSE), rng)


def test_the_proof_of_its_law(monkeypatch: pytest.MonkeyPatch):
    from types import SimpleNamespace

    from tests.egraph import interpreter

    domain = SimpleNamespace(isfinite=lambda _: True, mpc=type(None))
    monkeypatch.setattr(interpreter, "mp", domain)
    variables = iter([Quotient(x) for x in CONTEXT.gens()])
    assert any(x != y for x, y in sides(instance(FALSE), lambda: next(variables)))


def test_sampling_of_a_proof_that_uses_it():
    done = misled(FALSE)
    (found,) = [s for s in sample_rules(done.proof, {}, {**RULES, FALSE.name: FALSE}) if s.rule == FALSE.name]
    assert found.disagreement is not None


def test_the_checker_that_does_not_know_it():
    done = misled(FALSE)
    assert any("no rule `false.quotient`" in str(r) for r in check(done.proof, RULES, PROGRAM, done.program))


def test_the_checker_where_it_takes_the_name_of_a_true_rule():
    """The optimizer's table is wrong, the checker's is not."""
    true = RULES["div.mul-right"]
    wrong = Rule(true.name, FALSE.left, FALSE.right, FALSE.conditions, true.law)
    done = optimize(PROGRAM, "f", {}, rules=(*(r for r in RULES.values() if r.name != true.name), wrong))
    assert done.program.functions["f"].bindings == ()
    assert any("does not match" in str(r) for r in check(done.proof, RULES, PROGRAM, done.program))


@pytest.mark.parametrize(
    ("left", "right"),
    [("(sum x)", "x"), ("(add :type t x x)", "(sum :type t x)"), ("(div :type t x y)", "(dot :type t x y)")],
)
def test_types(left: str, right: str):
    """A rule whose sides have different types makes no node: either it never fires, or the engine stops."""
    lines = "a : ℝ[] = sum x\nb : ℝ[3] = add x, x\nc : ℝ[3] = div b, y\nd : ℝ[3] = mul c, a"
    program = read(f"fn f(x : ℝ[3], y : ℝ[3]) -> ℝ[3] {{\n{lines}\nreturn d\n}}\n")
    rule = Rule("false.type", left, right, (), "false: the sides have different types")
    try:
        done = optimize(program, "f", {}, rules=(*RULES.values(), rule))
    except PreskBug:
        return
    assert dict(done.report.fired).get(rule.name, 0) == 0
    assert check(done.proof, RULES, program, done.program) == []


def test_a_true_table_is_accepted():
    """The same program without the false rule."""
    done = optimize(PROGRAM, "f", {})
    assert check(done.proof, RULES, PROGRAM, done.program) == []
    flat = Session(str(EXAMPLES / "mlp.psk")).flat("mse_grad")
    done = optimize(flat, "mse_grad", {"B": 2, "D": 4})
    assert all(s.disagreement is None for s in sample_rules(done.proof, flat.modules))


def test_an_instance_whose_variable_is_what_an_operation_stands_for_too():
    """`0 + 0 = 0` by `x + 0 = x`: sampled, the one zero is no input."""
    kind = PROGRAM.functions["f"].result
    step = RuleStep("add.zero-right", (("x", 0), ("u", kind)), True, 1, 0)
    terms = (Term("zeros", (), (), kind), Term("add", (), (0, 0), kind))
    (found,) = sample_rules(Proof("f", terms, (Lemma(1, 0, (step,)),), 1, 0), {})
    assert found.evaluations > 0
    assert found.disagreement is None


def test_an_instance_whose_variable_is_what_the_whole_right_side_stands_for_too():
    """`1⁰ = 1` by `x⁰ = 1`: sampled, the one 1 is no input."""
    kind = PROGRAM.functions["f"].result
    step = RuleStep("pow.zero", (("x", 0), ("t", kind)), True, 1, 0)
    terms = (Term("ones", (), (), kind), Term("pow", (0,), (0,), kind))
    (found,) = sample_rules(Proof("f", terms, (Lemma(1, 0, (step,)),), 1, 0), {})
    assert found.evaluations > 0
    assert found.disagreement is None


def sampled(rule: Rule, terms: tuple[Term, ...], substitution: dict[str, Value]) -> tuple[Sampled, list[int]]:
    """What sampling says of the last two terms, which an instance of the rule makes equal; and the largest lengths that
    it looked at."""
    before, after = len(terms) - 2, len(terms) - 1
    step = RuleStep(rule.name, tuple(substitution.items()), True, before, after)
    proof = Proof("f", terms, (Lemma(before, after, (step,)),), before, after)
    seen: list[int] = []
    axes = sampling._Instance.axes

    def noted(self: sampling._Instance, shape: Shape):
        found = axes(self, shape)
        seen.extend(n for _, n in found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling._Instance, "axes", noted)
        (found,) = sample_rules(proof, {}, {rule.name: rule})
    return found, seen


def test_a_rule_of_large_matrices_is_sampled_on_small_ones():
    program = read("fn f{B}(x : ℝ[B, 768], w : ℝ[768, 768]) -> ℝ[B, 768] {\ny : ℝ[B, 768] = dot x, w\nreturn y\n}\n")
    x, w = (p.type for p in program.functions["f"].params)
    rule = Rule("false.transposed", "(dot :type t x w)", "(dot_vjp_l :type t x w)", (), "false: x · w = x · wᵀ")
    inputs = Term("input", ("x",), (), x), Term("input", ("w",), (), w)
    terms = (*inputs, Term("dot", (), (0, 1), x), Term("dot_vjp_l", (), (0, 1), x))
    found, lengths = sampled(rule, terms, {"x": 0, "t": x, "w": 1})
    assert found.disagreement is not None
    assert 1 < max(lengths) < 10


def test_lengths_that_a_condition_needs_stay():
    """`mean x = Σ x · (1/n)` where x has n entries."""
    program = read("fn f(x : ℝ[3000]) -> ℝ[] {\ny : ℝ[] = mean x\nreturn y\n}\n")
    x, one = program.functions["f"].params[0].type, program.functions["f"].result
    inputs = Term("input", ("x",), (), x), Term("sum", (), (0,), one), Term("const", (Fraction(1, 3000),), (), one)
    terms = (*inputs, Term("mean", (), (0,), one), Term("mul", (), (1, 2), one))
    found, lengths = sampled(RULES["mean.counted"], terms, {"x": 0, "u": x, "s": one, "n": Fraction(3000), "#0": one})
    assert found.disagreement is None
    assert max(lengths) == 3000


def negated(program: Program) -> Program:
    """The rule with a sign error: its right side is the negative of what it was."""
    right = program.functions["right"]
    wrong = replace(
        right, bindings=(*right.bindings, Binding("wrong", right.result, Prim("neg", (), (right.ret,)))), ret="wrong"
    )
    return Program(program.modules, {**program.functions, "right": wrong})


def caught(program: Program, rng: random.Random) -> bool:
    try:
        for _ in range(8):
            compare(program, rng)
    except AssertionError:
        return True
    return False


def vanishes(rule: Rule) -> bool:
    """Its right side is zero, which has no sign."""
    return rule.right.startswith(("(zeros", "(const :value 0"))


@pytest.mark.parametrize("name", [n for n in BY_SEARCH if not vanishes(RULES[n])])
def test_sampling_sees_a_sign_error_in_every_rule(name: str):
    rng = random.Random(name)
    reals = 0
    with mp.workdps(40):
        for _ in range(20_000):
            try:
                program = Search(RULES[name], rng).instance()
            except NoInstance:
                continue
            if not isinstance(program.functions["right"].result, Real):
                continue
            reals += 1
            if caught(negated(program), rng):
                return
            if reals > 30:
                break
    assert not reals, "a sign error was not seen"
