"""The checker against proofs that are made to be false: whatever it accepts is true, by evaluation of both sides."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import mpmath as mp
import pytest

from presk_rel.core.ir import Attr, Binding, Function, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.egraph.checker import check
from presk_rel.egraph.checker_contractions import contraction_fact
from presk_rel.egraph.checker_ends import Ends
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import CongruenceStep, FoldStep, Lemma, Proof, RuleStep, Step, Term, Value
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR_REAL, TupleOf
from presk_rel.smt.linear import constant
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.ad.test_folds import DIMS
from tests.egraph.evidence.attacks import Attack, NoInstance, differ, programs
from tests.egraph.fold_programs import NAMES, gradient
from tests.egraph.programs import read, real

# ------------------------------------------------------------------------------------------- instances of rules

FAMILY = sorted({name.split(".")[0] for name in RULES})


def accepted(names: list[str], tries: int) -> int:
    """How many random instances of rules the checker accepts; all of them are true."""
    count = 0
    for name in names:
        rng = random.Random(name)
        for _ in range(tries):
            try:
                proof = Attack(RULES[name], rng).proof()
            except NoInstance:
                continue
            left, right = programs(proof)
            if not check(proof, RULES, left, right):
                count += 1
                with mp.workdps(30):
                    assert differ(left, right, rng) is None, (name, proof)
    return count


def test_what_is_accepted_of_a_rule_is_true():
    assert accepted(sorted(RULES)[::12], 120) > 300


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILY)
def test_what_is_accepted_of_each_rule_is_true(family: str):
    accepted([n for n in RULES if n.split(".")[0] == family], 400)


SLICED = [(op, side) for op in ("dot", "dot_vjp_l", "dot_vjp_r") for side in ("left", "right", "both")]


@pytest.mark.parametrize(("op", "side"), SLICED)
def test_every_contraction_that_is_taken_for_that_of_each_slice_is_it(op: str, side: str):
    """All contractions of these ranks, all axes of one length: of thousands, one names the axes rightly (and another
    its axes otherwise)."""
    ranks = [2 + (side in (s, "both")) for s in ("left", "right")]
    slot = [real(*(("each", 2) if k == 0 and r == 3 else 2 for k in range(r))) for r in ranks]
    found = 0
    rng = random.Random(0)
    for x, w, out in product(*(permutations("eabc", r) for r in (*ranks, 3))):
        spec = f"{' '.join(x)}, {' '.join(w)} -> {' '.join(out)}"
        if "e" not in out or not contraction_fact("per-slice", [f"{op}-{side}", "s"], [None, spec]):
            continue
        proof = sliced(op, side, slot, spec)
        left, right = programs(proof)
        if not check(proof, RULES, left, right):
            found += 1
            assert differ(left, right, rng) is None, spec
    assert found > 0


def sliced(op: str, side: str, slot: list, spec: str) -> Proof:
    """A contraction of slices 1 is slice 1 of this contraction."""
    flat_type, whole = real(2, 2), infer(PRIMS["ein"], (spec,), tuple(slot), SCALAR_REAL, {})
    assert not isinstance(whole, str)
    terms = [Term("input", ("p0",), (), slot[0]), Term("input", ("p1",), (), slot[1])]
    at: tuple[Attr, ...] = (constant(1),)
    places = [0, 1]
    for k, s in enumerate(("left", "right")):
        if side in (s, "both"):
            terms.append(Term("slice_params", at, (k,), flat_type))
            places[k] = len(terms) - 1
    terms.append(Term(op, (), tuple(places), flat_type))
    left = len(terms) - 1
    terms += [Term("ein", (spec,), (0, 1), whole), Term("slice_params", at, (left + 1,), flat_type)]
    pairs: tuple[tuple[str, Value], ...] = (("x", 0), ("w", 1), ("i", at[0]), ("s", spec), ("u", whole))
    step = RuleStep(f"{op}.slices-{side}", pairs, True, left, left + 2)
    return Proof("f", tuple(terms), (Lemma(left, left + 2, (step,)),), left, left + 2)


# ------------------------------------------------------------------------------------------- lemmas and substitutions

PROGRAM = read("fn f(x : ℝ[3], y : ℝ[3]) -> ℝ[3] {\n  a : ℝ[3] = mul x, y\n  b : ℝ[3] = add a, x\n  return b\n}\n")
OTHER = read("fn f(x : ℝ[3], y : ℝ[3]) -> ℝ[3] {\n  a : ℝ[3] = mul x, y\n  b : ℝ[3] = add a, y\n  return b\n}\n")
R3 = real(3)
TERMS = (
    Term("input", ("x",), (), R3),
    Term("input", ("y",), (), R3),
    Term("mul", (), (0, 1), R3),
    Term("add", (), (2, 0), R3),
    Term("add", (), (2, 1), R3),
)


def refusal(*lemmas: Lemma, start: int = 3, end: int = 4, terms: tuple[Term, ...] = TERMS) -> str:
    said = check(Proof("f", terms, lemmas, start, end), RULES, PROGRAM, OTHER)
    assert said
    return str(said[0])


def congruence(lemma: int, forward: bool = True) -> CongruenceStep:
    return CongruenceStep(3, 4, (1,), (lemma,), (forward,))


def test_a_lemma_that_cites_itself():
    assert "before it is proven" in refusal(Lemma(3, 4, (congruence(0),)))


def test_lemmas_that_cite_each_other():
    one = Lemma(0, 1, (RuleStep("add.commute", (), True, 0, 1),))
    assert "before it is proven" in refusal(Lemma(3, 4, (congruence(1),)), one, Lemma(3, 4, (congruence(1),)))
    assert "before it is proven" in refusal(Lemma(3, 4, (congruence(-1),)))


def test_a_lemma_of_no_steps_and_none_at_all():
    assert "do not lead" in refusal(Lemma(0, 1, ()), Lemma(3, 4, (congruence(0),)))
    assert "not `start = end`" in refusal()
    assert "not `start = end`" in refusal(Lemma(3, 3, ()))


@pytest.mark.parametrize("law", [(), ("fold.anything",), *((law,) for law in FOLD_LAWS), tuple(FOLD_LAWS)])
def test_a_law_of_folds_where_there_is_no_fold(law: tuple[str, ...]):
    assert "fold" in refusal(Lemma(3, 4, (FoldStep(law, 3, 4),)))


def test_a_claim_about_other_terms():
    """Both ends are one term of the proof: not what both programs compute."""
    assert "not what the optimized program computes" in refusal(start=3, end=3)
    assert "not what the entry" in refusal(start=4, end=4)


def test_a_substitution_that_says_what_the_root_is():
    """`x + x = x · 2` asks that x has the type of the whole: that of the vector which stands for `root`, it says."""
    number, wide = SCALAR_REAL, Term("input", ("y",), (), R3)
    terms = (Term("input", ("x",), (), number), wide, Term("const", (Fraction(2),), (), number))
    terms += (Term("add", (), (1, 1), R3), Term("mul", (), (1, 2), R3))
    rule = RULES["add.self"]
    only = replace(rule, conditions=("(scalar root)",))
    before, after = (
        read(f"fn f(x : ℝ[], y : ℝ[3]) -> ℝ[3] {{\n  c : ℝ[] = const 2\n  a : ℝ[3] = {op}\n  return a\n}}\n")
        for op in ("add y, y", "mul y, c")
    )
    for lie in ((), (("root", 0),)):
        step = RuleStep(rule.name, (("x", 1), ("s", number), *lie), True, 3, 4)
        proof = Proof("f", terms, (Lemma(3, 4, (step,)),), 3, 4)
        assert check(proof, RULES, before, after) == []
        (said,) = check(proof, {rule.name: only}, before, after)
        assert "its condition (scalar root) does not hold" in str(said)


@pytest.mark.parametrize("digit", [1, 20, 40, 80])
def test_a_constant_that_is_wrong_in_one_digit(digit: int):
    wrong = Fraction(5) + Fraction(1, 10**digit)
    terms = tuple(Term("const", (Fraction(c),), (), SCALAR_REAL) for c in (2, 3, wrong))
    terms += (Term("add", (), (0, 1), SCALAR_REAL),)
    pairs: tuple[tuple[str, Value], ...] = (("c", Fraction(2)), ("d", Fraction(3)), ("s", SCALAR_REAL))
    step: Step = RuleStep("add.const", pairs, True, 3, 2)
    before = read("fn f() -> ℝ[] {\n a : ℝ[] = const 2\n b : ℝ[] = const 3\n c : ℝ[] = add a, b\n return c\n}\n")
    after = read(f"fn f() -> ℝ[] {{\n  a : ℝ[] = const {decimal(wrong)}\n  return a\n}}\n")
    said = check(Proof("f", terms, (Lemma(3, 2, (step,)),), 3, 2), RULES, before, after)
    assert any("other attributes" in str(r) for r in said)
    lied = replace(step, substitution=(("c", Fraction(2)), ("d", wrong - 2), ("s", SCALAR_REAL)))
    assert check(Proof("f", terms, (Lemma(3, 2, (lied,)),), 3, 2), RULES, before, after)


def decimal(c: Fraction) -> str:
    digits = str(c * 10**80)
    return f"{digits[:-80]}.{digits[-80:]}".rstrip("0")


# ------------------------------------------------------------------------------------------- folds


def wrong_folds(part: Proof, rng: random.Random) -> Iterator[tuple[int, Term]]:
    """Folds of the proof with other operands, another direction or another body of the same type."""
    terms = part.terms
    folds = [i for i, t in enumerate(terms) if t.op == "fold"]
    for i in folds:
        t = terms[i]
        reverse = (*t.attrs[:2], not t.attrs[2], *t.attrs[3:])
        yield i, replace(t, attrs=reverse)
        bodies = {terms[k].attrs[1] for k in folds} - {t.attrs[1]}
        yield from ((i, replace(t, attrs=(t.attrs[0], b, *t.attrs[2:]))) for b in sorted(map(str, bodies)))
        for k, c in enumerate(t.children):
            alike = [n for n in range(i) if n != c and terms[n].type == terms[c].type]
            for other in rng.sample(alike, min(3, len(alike))):
                yield i, replace(t, children=(*t.children[:k], other, *t.children[k + 1 :]))
                swapped = [other if x == c else c if x == other else x for x in t.children]
                yield i, replace(t, children=tuple(swapped))


def judged(done: Optimized, before: Program, part: Proof, old: int, new: Term, laws: frozenset[str]) -> bool | None:
    """Whether the checker takes one fold for the other; None where the other is no fold at all."""
    ends, whole = claimed(done, before, part, new)
    if ends.ill_typed(whole):
        return None
    return ends.same_folds(whole, old, len(whole.terms) - 1, laws)


def claimed(done: Optimized, before: Program, part: Proof, new: Term) -> tuple[Ends, Proof]:
    whole = replace(part, terms=(*part.terms, new))
    if part is done.proof:
        return Ends(whole, before, done.program), whole
    bodies = tuple(whole if b is part else b for b in done.proof.bodies)
    return Ends(replace(done.proof, bodies=bodies), before, done.program), whole


def equal(done: Optimized, before: Program, part: Proof, old: int, new: Term) -> bool:
    """Whether both folds have one value at random parameters."""
    ends, whole = claimed(done, before, part, new)
    program = ends._program("start")
    f = ends._straight(whole, len(whole.terms) - 1, whole=True)
    pair = TupleOf((whole.terms[old].type, new.type))
    both = Binding("both", pair, Prim("tuple", (), (f"#{old}", f"#{len(whole.terms) - 1}")))
    f = Function(f.name, f.dims, f.params, pair, (*f.bindings, both), "both")
    program = Program(program.modules, {**program.functions, f.name: f})
    rng = random.Random(0)
    dims = {d: DIMS.get(d, 2) for d in f.dims}
    for _ in range(2):
        args = [random_value(program, p.type, dims, (2,), lambda: mp.mpf(rng.uniform(0.3, 1.4))) for p in f.params]
        left, right = evaluate(program, f.name, dims, args)
        if not all(mp.almosteq(x, y, rel_eps=1e-15, abs_eps=1e-15) for x, y in zip(flat(left), flat(right))):
            return False
    return True


def attacked(name: str, order: int, keep: str) -> tuple[int, int]:
    """How many wrong folds are refused, and how many are equal after all and accepted; no other is accepted."""
    before, flat_program, entry = gradient(name, order, keep)
    done = optimize(flat_program, entry)
    rng = random.Random(name)
    refused = held = 0
    for part in done.proof.parts:
        for old, new in wrong_folds(part, rng):
            for laws in (frozenset(FOLD_LAWS), frozenset(rng.sample(sorted(FOLD_LAWS), 2))):
                verdict = judged(done, before, part, old, new, laws)
                refused += verdict is False
                if verdict:
                    held += 1
                    with mp.workdps(30):
                        assert equal(done, before, part, old, new), (name, part.entry, old, part.terms[old], new, laws)
    return refused, held


@pytest.mark.parametrize("name", [n for n in NAMES if "tuple" not in n])
def test_other_folds_are_refused_by_any_law(name: str):
    assert attacked(name, 1, "store")[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["store", "recompute"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_other_folds_of_every_program_are_refused_by_any_law(name: str, order: int, keep: str):
    assert sum(attacked(name, order, keep)) > 0


def test_axes_that_are_renamed_between_two_divisions():
    """Found by the instances above: y lines up with x's first and last axis, z with the first two of (x / y), which
    calls its axes otherwise; so `x / y / z` is not `x / (y · z)`."""
    a, b = ("a", 2), ("b", 2)
    before, after = (
        read(f"fn f(x : ℝ[a: 2, 2, b: 2], y : ℝ[a: 2, b: 2], z : ℝ[a: 2, b: 2]) -> ℝ[a: 2, b: 2, 2] {{\n{lines}}}\n")
        for lines in (
            "  q : ℝ[a: 2, b: 2, 2] = div x, y\n  r : ℝ[a: 2, b: 2, 2] = div q, z\n  return r\n",
            "  q : ℝ[a: 2, b: 2] = mul y, z\n  r : ℝ[a: 2, b: 2, 2] = div x, q\n  return r\n",
        )
    )
    whole, part = real(a, b, 2), real(a, b)
    terms = (
        Term("input", ("x",), (), real(a, 2, b)),
        Term("input", ("y",), (), part),
        Term("input", ("z",), (), part),
        Term("div", (), (0, 1), whole),
        Term("div", (), (3, 2), whole),
        Term("mul", (), (1, 2), part),
        Term("div", (), (0, 5), whole),
    )
    pairs: tuple[tuple[str, Value], ...] = (("x", 0), ("y", 1), ("t", whole), ("z", 2), ("u", part))
    step = RuleStep("div.div", pairs, True, 4, 6)
    (said,) = check(Proof("f", terms, (Lemma(4, 6, (step,)),), 4, 6), RULES, before, after)
    assert "its condition (typed (div x y) t) does not hold" in str(said)
    assert optimize(before, "f").program.functions["f"].bindings == before.functions["f"].bindings
