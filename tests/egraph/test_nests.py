"""Nests of folds: the checker reads each body once, however often it is folded, and tells apart whatever a reading
depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from presk_rel.core.ir import Binding, Fold, Function, Prim, Program
from presk_rel.egraph import denote as reading
from presk_rel.egraph.checker import check
from presk_rel.egraph.denote import denote, denote_all
from presk_rel.egraph.denote_terms import Terms
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.fusion.check import check_fused
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import Proof
from presk_rel.egraph.rules import RULES
from tests.egraph.families import nested
from tests.egraph.programs import read

DEEP = 20
WRONG = "wrong"


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bodies that are read, each as often as it is."""
    found: list[str] = []
    of = reading.frame_of

    def noted(function: Function, dims: Any, values: Any, level: int, key: Any = None) -> reading.Frame:
        found.extend([function.name] if key is not None else [])
        return of(function, dims, values, level, key)

    monkeypatch.setattr(reading, "frame_of", noted)
    return found


@pytest.mark.parametrize("n", [10, 20, 90])
def test_every_body_is_read_once(n: int, bodies: list[str]):
    denote(nested(n), "f", Terms())
    assert sorted(bodies) == sorted(f"b{i}" for i in range(n + 1))


@pytest.mark.parametrize("law", [law for law in FOLD_LAWS if law != "fold.invariant-part"])
def test_up_to_laws_bodies_read_grow_as_the_depth(law: str, bodies: list[str]):
    """Not where leaves may stay what they were: that is tried on the start itself, which differs from fold to fold."""
    laws = frozenset([law])
    counts: list[int] = []
    for n in (10, 20):
        bodies.clear()
        denote_all(nested(n), "f", Terms(), laws)
        counts.append(len(bodies))
    assert counts[1] - counts[0] in (10, 20)


# ------------------------------------------------------------------------------------------------ honest and wrong


@pytest.fixture(scope="module")
def deep() -> Optimized:
    return optimize(nested(DEEP), "f")


def test_an_honest_proof_of_a_nest_is_accepted(deep: Optimized):
    assert check(deep.proof, RULES, nested(DEEP), deep.program) == []


@pytest.mark.slow
def test_as_deep_as_folds_are_looked_into():
    program = nested(98)
    done = optimize(program, "f")
    assert done.report.cuts == ()
    assert check(done.proof, RULES, program, done.program) == []


def test_no_nest_is_too_deep_for_the_stack():
    assert check_fused("f", nested(400), nested(400)) == []


def subtracting(program: Program, name: str) -> Program:
    """The program where a body subtracts what it should add."""

    def other(b: Binding) -> Binding:
        return replace(b, op=replace(b.op, op="sub")) if isinstance(b.op, Prim) and b.op.op == "add" else b

    function = program.functions[name]
    made = replace(function, bindings=tuple(map(other, function.bindings)))
    assert made != function
    return replace(program, functions={**program.functions, name: made})


def folding(program: Program, outer: str, inner: str, only: int) -> Program:
    """The program where a fold of a body, the first (0) or second (1) one, folds WRONG in its place."""
    function = program.functions[outer]
    at = [i for i, b in enumerate(function.bindings) if isinstance(b.op, Fold)][only]
    b = function.bindings[at]
    assert isinstance(b.op, Fold)
    changed = replace(b, op=replace(b.op, body=WRONG))
    functions = {
        **program.functions,
        outer: replace(function, bindings=(*function.bindings[:at], changed, *function.bindings[at + 1 :])),
        WRONG: replace(program.functions[inner], name=WRONG),
    }
    return subtracting(replace(program, functions=functions), WRONG)


def test_another_innermost_body_is_refused(deep: Optimized):
    """In the program before, after, or both, and the proof."""
    before, after = nested(DEEP), deep.program
    for one, other in (
        (subtracting(before, "b0"), after),
        (before, subtracting(after, "b0")),
        (subtracting(before, "b0"), subtracting(after, "b0")),
    ):
        assert check(deep.proof, RULES, one, other)
        assert one is not before or check_fused("f", one, other)


@pytest.mark.parametrize("only", [0, 1])
def test_one_of_the_innermost_folds_is_another(only: int, deep: Optimized):
    """The program and the proof agree, and the proof has a proof for the wrong body; but the law does not say so."""
    after = folding(deep.program, "b1'", "b0", only)
    inner = next(part for part in deep.proof.bodies if part.entry == "b0")
    wrong = replace(inner, entry=WRONG, terms=tuple(replace(t, op="sub") if t.op == "add" else t for t in inner.terms))
    parts = tuple(_folding(part, only) if part.entry == "b1'" else part for part in deep.proof.bodies)
    proof = replace(deep.proof, bodies=(*parts, wrong))
    said = [str(r) for r in check(proof, RULES, nested(DEEP), after)]
    assert said == ["lemma 0, step 0: the folds differ in more than fold.invariant-code"]


def _folding(part: Proof, only: int) -> Proof:
    at = [i for i, t in enumerate(part.terms) if t.op == "fold"][only]
    term = part.terms[at]
    changed = replace(term, attrs=(term.attrs[0], WRONG, *term.attrs[2:]))
    return replace(part, terms=(*part.terms[:at], changed, *part.terms[at + 1 :]))


# ------------------------------------------------------------------------------------------------ what a reading is of


def folded(first: str, second: str) -> Program:
    """Two folds, of bodies generic in a dim, which differ in their last operation."""
    body, other = (
        f"""fn {name}{{N}}(s : ℝ[3], a : ℝ[3], e : ℝ[3]) -> ℝ[3] {{
      i : ℝ[N] = ones
      n : ℝ[] = sum i
      t : ℝ[3] = mul a, n
      u : ℝ[3] = mul t, s
      r : ℝ[3] = {last} u, e
      return r
    }}"""
        for name, last in (("body", "add"), ("other", "sub"))
    )
    return read(f"""
    {body}
    {other}
    fn f(xs : ℝ[4, 3], ys : ℝ[4, 3], a : ℝ[3], e : ℝ[3]) -> ℝ[3] {{
      b : ℝ[3] = fold 4 {first}
      c : ℝ[3] = fold 4 {second}
      return c
    }}
    """)


PLAIN = "body{N = 2}(stacked xs; acc b; e)"
OTHERS = {
    "dims": "body{N = 3}(stacked xs; acc b; e)",
    "body": "other{N = 2}(stacked xs; acc b; e)",
    "stack": "body{N = 2}(stacked ys; acc b; e)",
    "extra": "body{N = 2}(stacked xs; acc b; a)",
    "start": "body{N = 2}(stacked xs; acc a; e)",
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("laws", [frozenset[str](), frozenset(FOLD_LAWS)], ids=["strictly", "laws"])
def test_a_fold_is_not_taken_for_one_read_before(what: str, laws: frozenset[str]):
    terms = Terms()
    first = "body{N = 2}(stacked xs; acc a; e)"
    one, other = (denote_all(folded(first, second), "f", terms, laws)["c"] for second in (PLAIN, OTHERS[what]))
    assert one != other
