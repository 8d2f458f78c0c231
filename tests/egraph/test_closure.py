"""The closure against a naive one: what is equal, and proofs that hold."""

from __future__ import annotations

import random

import pytest

from presk_rel.egraph.closure import CONGRUENCE, Closure
from presk_rel.egraph.instances import Instance
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR_REAL

ANY = next(iter(RULES.values()))


def random_terms(rng: random.Random, leaves: int, size: int) -> Terms:
    terms = Terms(TypeTable({}))
    s = terms.table.intern(SCALAR_REAL)
    for i in range(leaves):
        terms.make(terms.intern(Head("input", (f"x{i}",), s)), ())
    for _ in range(size):
        if rng.random() < 0.5:
            terms.make(terms.intern(Head("neg", (), s)), (rng.randrange(len(terms)),))
        else:
            terms.make(terms.intern(Head("add", (), s)), (rng.randrange(len(terms)), rng.randrange(len(terms))))
    return terms


def naive(terms: Terms, pairs: list[tuple[TermId, TermId]]) -> list[int]:
    """The class of every term, by propagating until nothing changes."""
    name = list(range(len(terms)))

    def merge(a: int, b: int) -> bool:
        x, y = name[a], name[b]
        for i, n in enumerate(name):
            name[i] = y if n == x else n
        return x != y

    for a, b in pairs:
        merge(a, b)
    changed = True
    while changed:
        changed = False
        for i in range(len(terms)):
            for j in range(i):
                same = terms.head[i] == terms.head[j] and name[i] != name[j] and terms.args[i]
                if same and [name[a] for a in terms.args[i]] == [name[a] for a in terms.args[j]]:
                    changed |= merge(i, j)
    return name


def closed(terms: Terms, pairs: list[tuple[TermId, TermId]]) -> Closure:
    closure = Closure(terms)
    for a, b in pairs:
        closure.add(Instance(ANY, {}, a, b))
    return closure


def verify(closure: Closure, a: TermId, b: TermId) -> None:
    """Every step of every lemma holds, by instances and earlier lemmas only."""
    proven: set[tuple[TermId, TermId]] = set()
    lemmas = closure.explain(a, b)
    for left, right, edges in lemmas:
        at = left
        for e in edges:
            assert e.before == at
            if e.instance == CONGRUENCE:
                assert closure.terms.head[e.before] == closure.terms.head[e.after]
                for p, q in closure.differing(e):
                    assert (p, q) in proven or (q, p) in proven
            else:
                found = closure.instances[e.instance]
                sides = (found.left, found.right) if e.forward else (found.right, found.left)
                assert (e.before, e.after) == sides
            at = e.after
        assert at == right
        proven.add((left, right))
    assert lemmas[-1][:2] == (a, b)


@pytest.mark.parametrize("seed", range(60))
def test_equal_as_the_naive_closure_and_every_proof_holds(seed: int):
    rng = random.Random(seed)
    terms = random_terms(rng, 5, 30)
    pairs = [(rng.randrange(len(terms)), rng.randrange(len(terms))) for _ in range(rng.randint(1, 12))]
    closure = closed(terms, pairs)
    name = naive(terms, pairs)
    for i in range(len(terms)):
        for j in range(i):
            assert closure.equal(i, j) == (name[i] == name[j]), (i, j)
            if name[i] == name[j]:
                verify(closure, i, j)


def test_terms_made_later_are_taken_in():
    terms = random_terms(random.Random(0), 2, 0)
    closure = closed(terms, [(0, 1)])
    neg = terms.intern(Head("neg", (), terms.type[0]))
    a, b = terms.make(neg, (0,)), terms.make(neg, (1,))
    assert closure.equal(a, b)
    verify(closure, a, b)


def test_what_does_not_follow_is_not_explained():
    terms = random_terms(random.Random(0), 2, 0)
    closure = Closure(terms)
    assert not closure.equal(0, 1)
    with pytest.raises(ValueError, match="not equal"):
        closure.explain(0, 1)


def test_a_proof_is_cut_short_where_terms_are_congruent():
    """f(x) = c and f(y) = c, x = y: f(x) = f(y) takes one step, not two."""
    terms = random_terms(random.Random(0), 3, 0)
    neg = terms.intern(Head("neg", (), terms.type[0]))
    fx, fy = terms.make(neg, (0,)), terms.make(neg, (1,))
    closure = closed(terms, [(0, 1), (fx, 2), (fy, 2)])
    assert len(closure.explain(fx, fy)[-1][2]) == 1


def test_wide_terms_are_congruent_once_all_is_known():
    terms = random_terms(random.Random(0), 60, 0)
    s = terms.type[0]
    wide = terms.intern(Head("call", ("f",), s))
    left, right = terms.make(wide, tuple(range(30))), terms.make(wide, tuple(range(30, 60)))
    closure = closed(terms, [(i, i + 30) for i in range(30)])
    assert closure.equal(left, right)
    verify(closure, left, right)


def test_a_long_chain_does_not_recurse():
    terms = random_terms(random.Random(0), 2, 0)
    neg = terms.intern(Head("neg", (), terms.type[0]))
    a, b = 0, 1
    for _ in range(20_000):
        a, b = terms.make(neg, (a,)), terms.make(neg, (b,))
    closure = closed(terms, [(0, 1)])
    assert len(closure.explain(a, b)) == 20_001
