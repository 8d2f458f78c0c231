"""Folds made smaller: each law alone, that it is needed, and that the checker's reading of folds takes no others for
equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from presk_rel.core.analysis import reached
from presk_rel.core.ir import Fold, Program
from presk_rel.core.printer import print_function
from presk_rel.egraph.checker import check
from presk_rel.egraph.denote import denote_all
from presk_rel.egraph.denote_terms import Terms
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.proof import FoldStep, Proof
from presk_rel.egraph.render_proof import proof_document, proof_text
from presk_rel.egraph.rules import RULES
from tests.egraph.fold_programs import same_values
from tests.egraph.programs import read

DIMS = {"N": 3}


def program(body: str, fold: str, *, result: str = "ℝ[3]", params: str = "", state: str = "ℝ[3]") -> Program:
    """A fold of `body` (parameters, then lines) in an entry with xs, ys : ℝ[4, 3] and a, e : ℝ[3]."""
    signature, _, lines = body.strip().partition("\n")
    lines = lines.strip()
    return read(f"""
    fn body{signature} -> {state} {{
      {lines}
      return r
    }}
    fn f{{N}}(xs : ℝ[4, 3], ys : ℝ[4, 3], zs : ℝ[N, 3], a : ℝ[3], e : ℝ[3]{params}) -> {result} {{
      {fold}
      return out
    }}
    """)


PAIR = "(ℝ[3], ℝ[3])"
TRIPLE = "(ℝ[3], ℝ[3], ℝ[3])"
BOTH = f"p : {PAIR} = (a, e)"
CASES = {
    "a stack is not read": (
        program(
            "(s : ℝ[3], t : ℝ[3], acc : ℝ[3])\nr : ℝ[3] = mul s, acc", "out : ℝ[3] = fold 4 body(stacked xs, ys; acc a)"
        ),
        ("fold.unread-operand",),
        ["fold 4 body'(stacked xs; acc a)"],
    ),
    "an extra is not read": (
        program(
            "(s : ℝ[3], acc : ℝ[3], x : ℝ[3])\nr : ℝ[3] = mul s, acc", "out : ℝ[3] = fold 4 body(stacked xs; acc a; e)"
        ),
        ("fold.unread-operand",),
        ["fold 4 body'(stacked xs; acc a)"],
    ),
    "an extra is given twice": (
        program(
            "(acc : ℝ[3], x : ℝ[3], y : ℝ[3])\nq : ℝ[3] = add acc, y\nr : ℝ[3] = mul q, x",
            "out : ℝ[3] = fold 4 body(stacked ; acc a; e, e)",
        ),
        ("fold.same-operand",),
        ["fold 4 body'(stacked; acc a; e)"],
    ),
    "a part is not read": (
        program(
            f"(s : ℝ[3], acc : {PAIR})\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nu : ℝ[3] = mul x, s\nv : ℝ[3] = add x, y\n"
            f"r : {PAIR} = (u, v)",
            f"{BOTH}\nq : {PAIR} = fold 4 body(stacked xs; acc p)\nout : ℝ[3] = q.0",
            state=PAIR,
        ),
        ("fold.unread-part",),
        ["fold 4 body'(stacked xs; acc a)"],
    ),
    "a part is not read, and operands are tuples": (
        program(
            f"(s : {PAIR}, acc : {PAIR}, m : {PAIR})\nk : ℝ[3] = s.0\nl : ℝ[3] = s.1\nn : ℝ[3] = m.0\no : ℝ[3] = m.1\n"
            "h : ℝ[3] = mul k, l\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nj : ℝ[3] = mul x, h\n"
            f"i : ℝ[3] = mul j, n\nu : ℝ[3] = sub i, o\nv : ℝ[3] = add x, y\nr : {PAIR} = (u, v)",
            f"{BOTH}\ng : (ℝ[4, 3], ℝ[4, 3]) = (xs, ys)\nm : {PAIR} = (e, a)\n"
            f"q : {PAIR} = fold 4 body(stacked g; acc p; m)\nout : ℝ[3] = q.0",
            state=PAIR,
        ),
        ("fold.unread-part",),
        ["fold 4 body'(stacked xs, ys; acc a; e, a)"],
    ),
    "two parts are one": (
        program(
            f"(s : ℝ[3], acc : {TRIPLE})\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nz : ℝ[3] = acc.2\nu : ℝ[3] = mul x, s\n"
            f"w : ℝ[3] = add y, z\nv : ℝ[3] = add w, u\nr : {TRIPLE} = (u, v, v)",
            f"p : {TRIPLE} = (a, e, e)\nq : {TRIPLE} = fold 4 body(stacked xs; acc p)\ny : ℝ[3] = q.1\nz : ℝ[3] = q.2\n"
            "out : ℝ[3] = mul y, z",
            state=TRIPLE,
        ),
        ("fold.same-part",),
        ["(a, e)", "fold 4 body'(stacked xs; acc %)", "%.1", "mul %, %"],
    ),
    "a part never changes": (
        program(
            f"(s : ℝ[3], acc : {PAIR})\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nw : ℝ[3] = mul x, s\n"
            f"u : ℝ[3] = add w, y\nr : {PAIR} = (u, y)",
            f"{BOTH}\nq : {PAIR} = fold 4 body(stacked xs; acc p)\nx : ℝ[3] = q.0\n"
            "y : ℝ[3] = q.1\nout : ℝ[3] = mul x, y",
            state=PAIR,
        ),
        ("fold.invariant-part",),
        ["fold 4 body'(stacked xs; acc a; e)", "mul %, e"],
    ),
    "code does not change": (
        program(
            "(s : ℝ[3], acc : ℝ[3], x : ℝ[3])\nt : ℝ[3] = log x\nu : ℝ[3] = mul s, acc\nr : ℝ[3] = add u, t",
            "out : ℝ[3] = fold 4 body(stacked xs; acc a; e)",
        ),
        ("fold.invariant-code",),
        ["log e", "fold 4 body'(stacked xs; acc a; t)"],
    ),
    "only a total operation leaves a body that perhaps never runs": (
        program(
            "(s : ℝ[3], acc : ℝ[3], x : ℝ[3])\nk : ℝ[3] = exp x\nt : ℝ[3] = log k\nl : ℝ[3] = log x\n"
            "m : ℝ[3] = add l, k\nu : ℝ[3] = mul s, acc\nv : ℝ[3] = sin u\nw : ℝ[3] = mul v, m\nr : ℝ[3] = add w, k",
            "out : ℝ[3] = fold N body(stacked zs; acc a; e)",
        ),
        ("fold.invariant-code",),
        ["exp e", "fold N body'(stacked zs; acc a; e, k)"],
    ),
    "nothing changes": (
        program(
            f"(s : ℝ[3], acc : {PAIR})\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nw : ℝ[3] = mul x, s\nr : {PAIR} = (w, y)",
            f"{BOTH}\nq : {PAIR} = fold 4 body(stacked xs; acc p)\nout : ℝ[3] = q.1",
            state=PAIR,
        ),
        ("fold.unread-operand", "fold.unread-part", "fold.invariant-part"),
        [],
    ),
    "the stack of a scan is not read": (
        program(
            "(s : ℝ[3], acc : ℝ[3])\nr : ℝ[3] = mul s, acc",
            "q : (ℝ[3], ℝ[4, 3]) = fold 4 body(stacked xs; acc a) scan\nout : ℝ[3] = q.0",
        ),
        ("fold.unread-stack",),
        ["fold 4 body'(stacked xs; acc a)"],
    ),
    "a stack of parts": (
        program(
            f"(s : ℝ[3], acc : {PAIR})\nx : ℝ[3] = acc.0\ny : ℝ[3] = acc.1\nu : ℝ[3] = mul x, s\nv : ℝ[3] = add x, y\n"
            f"r : {PAIR} = (u, v)",
            f"{BOTH}\nq : ({PAIR}, (ℝ[4, 3], ℝ[4, 3])) = fold 4 body(stacked xs; acc p) reverse scan\n"
            "h : (ℝ[4, 3], ℝ[4, 3]) = q.1\nout : ℝ[4, 3] = h.0",
            state=PAIR,
            result="ℝ[4, 3]",
        ),
        ("fold.unread-part",),
        ["fold 4 body'(stacked xs; acc a) reverse scan", "%.1"],
    ),
}


def optimized(p: Program) -> Optimized:
    return optimize(p, "f", {"N": 3})


def steps(proof: Proof) -> list[FoldStep]:
    return [s for part in proof.parts for lemma in part.lemmas for s in lemma.steps if isinstance(s, FoldStep)]


def operations(done: Optimized) -> list[str]:
    import re

    lines = print_function(done.program.functions["f"]).splitlines()[1:-1]
    found = [
        re.sub(r"\{.*?\}", "", line.split(" = ", 1)[1].split("  --")[0].strip()) for line in lines if " = " in line
    ]
    return [re.sub(r"%\d+|\b[qhxyz]\b(?=\.)", "%", x) for x in found]


@pytest.mark.parametrize("name", CASES)
def test_a_law(name: str):
    p, laws, expected = CASES[name]
    done = optimized(p)
    assert check(done.proof, RULES, p, done.program) == []
    assert same_values(p, done.program, "f", DIMS)
    assert {law for s in steps(done.proof) for law in s.laws} == set(laws)
    assert _plain(operations(done)) == _plain(expected)
    for law in laws:
        assert FOLD_LAWS[law] in proof_text(done.proof)
    documented = [s for s in proof_document(done.proof)["steps"] if s["rule"].startswith("fold.")]
    assert all(s["conditions"][0]["decided_by"] == "reading the bodies" for s in documented)


def _plain(operations: list[str]) -> list[str]:
    """Names of values do not matter, but for the entry's parameters."""
    import re

    return [
        re.sub(r"(?<![\w'])(?!xs|ys|zs|[ae]\b|fold|body|stacked|acc|scan|reverse|mul|add|log|exp|N\b)[a-z%]\w*", "%", x)
        for x in operations
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_law_is_needed_and_no_other_will_do(name: str):
    p, _, _ = CASES[name]
    done = optimized(p)
    for what, corrupt in _without_laws(done.proof):
        assert check(corrupt, RULES, p, done.program), what


def _without_laws(proof: Proof) -> Iterator[tuple[str, Proof]]:
    for i, lemma in enumerate(proof.lemmas):
        for k, step in enumerate(lemma.steps):
            if not isinstance(step, FoldStep):
                continue
            wrong = [(), ("fold.no-such-law",), (*step.laws, "fold.no-such-law")]
            wrong += [_unlike(step.laws)] if step.laws != ("fold.unread-stack",) else []  # a fold is read stackless
            for laws in wrong:
                changed = (*lemma.steps[:k], replace(step, laws=laws), *lemma.steps[k + 1 :])
                lemmas = (*proof.lemmas[:i], replace(lemma, steps=changed), *proof.lemmas[i + 1 :])
                yield f"{laws} for {step.laws}", replace(proof, lemmas=lemmas)


def _unlike(laws: tuple[str, ...]) -> tuple[str, ...]:
    """Laws about parts where operands change, and the other way. (An invariant part becomes an operand.)"""
    parts = all(law in ("fold.unread-part", "fold.same-part", "fold.invariant-part") for law in laws)
    return ("fold.unread-operand", "fold.same-operand") if parts else ("fold.unread-part", "fold.same-part")


# ------------------------------------------------------------------------------------------------ the reading

FIRST = program(
    f"(s : ℝ[3], acc : {TRIPLE}, x : ℝ[3])\nu : ℝ[3] = acc.0\nv : ℝ[3] = acc.1\nw : ℝ[3] = acc.2\nk : ℝ[3] = sin x\n"
    f"m : ℝ[3] = mul u, s\ni : ℝ[3] = mul v, s\nn : ℝ[3] = add i, k\no : ℝ[3] = mul w, v\nr : {TRIPLE} = (m, n, o)",
    f"p : {TRIPLE} = (a, e, a)\nq : {TRIPLE} = fold 4 body(stacked xs; acc p; e)\nout : ℝ[3] = q.2",
    state=TRIPLE,
)
DIFFERENT = {
    "another start": ("(a, e, a)", "(a, e, e)"),
    "another start of what it depends on": ("(a, e, a)", "(a, a, a)"),
    "another dependence": ("mul w, v", "mul w, u"),
    "itself for another": ("mul w, v", "mul v, v"),
    "code that changes": ("add i, k", "add i, u"),
    "another extra": ("acc p; e)", "acc p; a)"),
    "another direction": ("acc p; e)", "acc p; e) reverse"),
    "parts exchanged": ("(m, n, o)", "(n, m, o)"),
    "a part for another": ("(m, n, o)", "(m, n, n)"),
    "an invariant": ("(m, n, o)", "(m, v, o)"),
    "another count": ("fold 4 body(stacked xs", "fold 2 body(stacked vs"),
}


def text_of(p: Program) -> str:
    from presk_rel.core.printer import print_program

    return print_program(p)


def value(p: Program, table: Terms) -> object:
    return denote_all(p, "f", table, frozenset(FOLD_LAWS))[p.functions["f"].ret]


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_read_as_different(what: str):
    old, new = DIFFERENT[what]
    text = text_of(FIRST).replace("zs : ℝ[N, 3]", "zs : ℝ[N, 3], vs : ℝ[2, 3]")
    assert old in text
    first, second = read(text), read(text.replace(old, new))
    table = Terms()
    assert value(first, table) != value(second, table)
    assert not same_values(first, second, "f", DIMS)


def test_what_is_the_same_is_read_as_the_same():
    table = Terms()
    first = value(FIRST, table)
    text = text_of(FIRST)
    for old, new in (("mul u, s", "mul u, u"), ("(a, e, a)", "(e, e, a)")):
        assert value(read(text.replace(old, new)), table) == first
    outside = text.replace("  k : ℝ[3] = sin x\n", "").replace("add i, k", "add i, x")
    outside = outside.replace("acc p; e)", "acc p; k)").replace("  p : ", "  k : ℝ[3] = sin e\n  p : ")
    assert value(read(outside), table) == first


def test_folds_in_folds_are_read_up_to_the_laws():
    text = """
    fn inner(s : ℝ[3], acc : (ℝ[3], ℝ[3]), x : ℝ[3]) -> (ℝ[3], ℝ[3]) {
      u : ℝ[3] = acc.0
      v : ℝ[3] = acc.1
      m : ℝ[3] = mul u, s
      n : ℝ[3] = add v, u
      r : (ℝ[3], ℝ[3]) = (m, n)
      return r
    }
    fn outer(acc : ℝ[3], xs : ℝ[2, 3], e : ℝ[3]) -> ℝ[3] {
      p : (ℝ[3], ℝ[3]) = (acc, e)
      q : (ℝ[3], ℝ[3]) = fold 2 inner(stacked xs; acc p; e)
      r : ℝ[3] = q.0
      t : ℝ[3] = tanh e
      o : ℝ[3] = add r, t
      return o
    }
    fn f(xs : ℝ[2, 3], a : ℝ[3], e : ℝ[3]) -> ℝ[3] {
      out : ℝ[3] = fold 3 outer(stacked ; acc a; xs, e)
      return out
    }
    """
    p = read(text)
    done = optimize(p, "f")
    assert check(done.proof, RULES, p, done.program) == []
    assert same_values(p, done.program, "f", {})
    f, outer, inner = reached(done.program, "f")
    assert [x.name for x in (outer, inner)] == ["outer'", "inner'"]
    assert len(inner.params) == 2
    assert [b.op.op for b in f.bindings if not isinstance(b.op, Fold)] == ["tanh"]  # type: ignore[union-attr]
