"""Contractions: their rules hold, the checker judges them by itself, and programs take the form that costs least."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import mpmath as mp
import pytest

from presk_rel.core.ir import Prim, Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.checker_products import same_products
from presk_rel.egraph.checker_rules import read as read_pattern
from presk_rel.egraph.contract.order import cheapest
from presk_rel.egraph.contract.price import Price, paired, summed
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.proof import Proof, RuleStep, Term
from presk_rel.egraph.rules import FAMILIES, RULES
from tests.egraph.contractions import Contraction
from tests.egraph.interpreter import entries, evaluate, random_value
from tests.egraph.programs import read
from tests.egraph.test_rules_hold import NoInstance, compare

CONTRACTIONS = [r.name for r in FAMILIES["contractions"]]
JUDGED = [r.name for r in FAMILIES["contractions"] if "(contraction r)" in r.conditions]
SHAPES = 100


def instances(name: str, count: int) -> Iterator[tuple[Contraction, Program]]:
    """Instances of a rule on different shapes, as far as there are so many."""
    rng = random.Random(name)
    seen: set[str] = set()
    for _ in range(100 * count):
        found = Contraction(RULES[name], rng)
        try:
            program = found.instance()
        except NoInstance:
            continue
        key = str(sorted((k, str(v)) for k, v in found.values.items()))
        if key not in seen:
            seen.add(key)
            yield found, program
        if len(seen) == count:
            return


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_a_rule_holds_on_a_hundred_shapes(name: str):
    rng = random.Random(name)
    with mp.workdps(40):
        done = sum(compare(program, rng) for _, program in instances(name, SHAPES))
    assert done == SHAPES


# --------------------------------------------------------------------------------------------------------- the checker


def terms_of(program: Program, name: str) -> tuple[Term, ...]:
    """A side as terms of a proof; parameters are numbered alike in both."""
    f = program.functions[name]
    number = {p.name: i for i, p in enumerate(f.params)}
    terms = [Term("input", (p.name,), (), p.type) for p in f.params]
    for b in f.bindings:
        assert isinstance(b.op, Prim)
        number[b.name] = len(terms)
        terms.append(Term(b.op.op, b.op.attrs, tuple(number[a] for a in b.op.args), b.type))
    return tuple(terms)


def judged(name: str, program: Program) -> bool:
    """What the checker says of two sides."""
    rule = RULES[name]
    left, right = terms_of(program, "left"), terms_of(program, "right")
    shared = len(program.functions["left"].params)
    moved = tuple(replace(t, children=tuple(c if c < shared else c + len(left) - shared for c in t.children))
                  for t in right[shared:])  # fmt: skip
    terms = (*left, *moved)
    sides = ((read_pattern(rule.left), len(left) - 1), (read_pattern(rule.right), len(terms) - 1))
    return same_products(terms, *sides)


def misspelled(program: Program, rng: random.Random) -> Program | None:
    """The right side with the axes of a factor, or of the result, in another order, where that is a contraction of the
    same type."""
    right = program.functions["right"]
    binding = right.bindings[-1]
    assert isinstance(binding.op, Prim)
    operands, _, result = str(binding.op.attrs[0]).partition("->")
    lists = [*(part.split() for part in operands.split(",")), result.split()]
    lengths = {p.name: p.type for p in right.params}
    at = rng.randrange(len(lists))
    other = list(rng.choice(list(permutations(lists[at]))))
    if other == lists[at]:
        return None
    lists[at] = other
    text = (", ".join(" ".join(x) for x in lists[:-1]) + " -> " + " ".join(lists[-1])).strip()
    op = replace(binding.op, attrs=(text,))
    changed = replace(right, bindings=(*right.bindings[:-1], replace(binding, op=op)))
    if not consistent(lists[:-1], [lengths[a] for a in op.args], lists[-1], binding.type):
        return None
    return replace(program, functions={**program.functions, "right": changed})


def consistent(lists: list[list[str]], types: list, result: list[str], own) -> bool:
    found: dict[str, object] = {}
    pairs = zip((*lists, result), (*types, own), strict=True)
    return all(
        found.setdefault(n, a.length) == a.length
        for names, ty in pairs
        for n, a in zip(names, ty.shape.axes, strict=True)
    )


@pytest.mark.parametrize("name", JUDGED)
def test_the_checker_accepts_what_is_true_and_refuses_what_is_not(name: str):
    """A misspelled contraction is accepted only where it computes the same."""
    rng = random.Random(name)
    refused = 0
    for _, program in instances(name, 60):
        assert judged(name, program)
        for other in filter(None, (misspelled(program, rng) for _ in range(4))):
            accepted = judged(name, other)
            assert not accepted or agree(other, rng)
            refused += not accepted
    assert refused


def agree(program: Program, rng: random.Random) -> bool:
    args = [
        random_value(program, p.type, {}, lambda: mp.mpf(rng.randint(-9, 9))) for p in program.functions["left"].params
    ]
    left, right = (entries(evaluate(program, side, {}, args)) for side in ("left", "right"))
    return left == right


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a b, b c -> a c", "b a, b c -> a c"),
        ("a b, b c -> a c", "a b, b c -> c a"),
        ("a b, b c -> a c", "a b, c b -> a c"),
        ("a b, a c -> a", "a b, a b -> a"),
        ("a b, a b -> a", "a b, b a -> a"),
    ],
)
def test_the_checker_tells_contractions_of_squares_apart(left: str, right: str):
    """All axes have one length: only the names say which is which."""
    from tests.egraph.programs import real

    square = real(3, 3)
    result = real(3) if left.endswith("-> a") else square
    terms = (
        Term("input", ("x",), (), square),
        Term("input", ("y",), (), square),
        Term("ein", (left,), (0, 1), result),
        Term("ein", (right,), (0, 1), result),
    )
    pattern = read_pattern("(ein :spec p x y)")
    assert not same_products(terms, (pattern, 2), (pattern, 3))
    assert same_products(terms, (pattern, 2), (pattern, 2))


def test_a_corrupted_contraction_is_refused():
    program = read(
        "fn f(x : ℝ[i: 3, j: 3], y : ℝ[j: 3, k: 3], v : ℝ[k: 3]) -> ℝ[i: 3] {\n"
        "a : ℝ[i: 3, k: 3] = ein [i j, j k -> i k] x, y\nb : ℝ[i: 3] = ein [i k, k -> i] a, v\nreturn b\n}\n"
    )
    done = optimize(program, "f")
    assert check(done.proof, RULES, program, done.program) == []
    refused = 0
    for proof in corrupted(done.proof):
        found = check(proof, RULES, program, done.program)
        assert found
        refused += any("(contraction r) does not hold" in str(r) for r in found)
    assert refused


def corrupted(proof: Proof) -> Iterator[Proof]:
    """With the axes of one factor exchanged in one term that is an `ein`."""
    for i, term in enumerate(proof.terms):
        if term.op != "ein":
            continue
        first, *rest = str(term.attrs[0]).split(",")
        if len(first.split()) < 2:
            continue
        text = ",".join([" ".join(first.split()[::-1]), *rest])
        terms = (*proof.terms[:i], replace(term, attrs=(text,)), *proof.terms[i + 1 :])
        lemmas = tuple(
            replace(lemma, steps=tuple(
                replace(s, substitution=tuple((k, text if v == term.attrs[0] else v) for k, v in s.substitution))
                if isinstance(s, RuleStep) else s for s in lemma.steps))
            for lemma in proof.lemmas
        )  # fmt: skip
        yield replace(proof, terms=terms, lemmas=lemmas)


# --------------------------------------------------------------------------------------------------------- the order


def every_order(parts: list[tuple[str, ...]], result: set[str], length) -> Iterator[int]:
    """The arithmetic of all orders, two factors at a time."""
    if len(parts) == 1:
        yield summed(parts[0], result, length)[0].flops
        return
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            rest = [p for k, p in enumerate(parts) if k not in (i, j)]
            read_later = result.union(*rest)
            one, x = summed(parts[i], read_later.union(parts[j]), length)
            two, y = summed(parts[j], read_later.union(x), length)
            both, made = paired(x, y, read_later, length)
            done = one.flops + two.flops + both.flops
            yield from (done + more for more in every_order([*rest, made], result, length))


@pytest.mark.parametrize("seed", range(60))
def test_no_order_takes_less(seed: int):
    """Against all orders; what is repeated is summed one way or the other."""
    rng = random.Random(seed)
    names = "abcdef"
    length = {n: rng.choice((1, 2, 3, 5, 8, 50)) for n in names}.__getitem__
    factors = [tuple(rng.sample(names, rng.randint(0, 3))) for _ in range(rng.randint(1, 4))]
    known = sorted({n for f in factors for n in f})
    result = tuple(rng.sample(known, rng.randint(0, min(3, len(known)))))
    number = {n: i for i, n in enumerate(names)}
    plan = cheapest(
        tuple(tuple(number[n] for n in f) for f in factors),
        tuple(number[n] for n in result),
        lambda a: length(names[a]),
        lambda p: p.flops,
    )
    least = min(every_order(factors, set(result), length))
    assert plan.price.flops == least


def test_prices_add_up():
    assert Price(1, 2, 3, 4) + Price(10, 20, 30, 40) == Price(11, 22, 33, 44)


# --------------------------------------------------------------------------------------------------------- programs

HEAD = "dim N\ndim M\n"
FORMS = [
    (
        "a sum of squares",
        "sum(x * x)",
        "x : ℝ[a: N, b: M]",
        "",
        ["ein"],
    ),
    (
        "a dot product",
        "sum(x * y)",
        "x : ℝ[a: N], y : ℝ[a: N]",
        "",
        ["dot"],
    ),
    (
        "a weighted sum of rows",
        "sum(axis a, x * w)",
        "x : ℝ[a: N, b: M], w : ℝ[a: N]",
        "b: M",
        ["dot"],
    ),
    (
        "a product with a vector",
        "sum(axis b, x * w)",
        "x : ℝ[a: N, b: M], w : ℝ[b: M]",
        "a: N",
        ["dot"],
    ),
    (
        "an ein that is a product with a matrix",
        "ein[a, c](x * w) + y",
        "x : ℝ[a: N, b: M], w : ℝ[b: M, c: 3], y : ℝ[c: 3]",
        "a: N, c: 3",
        ["linear"],
    ),
    (
        "eins with transposed matrices",
        "ein[a, c](x * w) + ein[a, c](x * v)",
        "x : ℝ[a: N, b: M], w : ℝ[c: 3, b: M], v : ℝ[c: 3, b: M]",
        "a: N, c: 3",
        ["add", "dot_vjp_l"],
    ),
    (
        "one sum of matrices in two orders",
        "(ein[a, c](x * w) + ein[a, c](x * v)) * exp(ein[a, c](y * v) + ein[a, c](y * w))",
        "x : ℝ[a: N, b: M], y : ℝ[a: N, b: M], w : ℝ[c: 3, b: M], v : ℝ[c: 3, b: M]",
        "a: N, c: 3",
        ["add", "dot_vjp_l", "dot_vjp_l", "exp", "mul"],
    ),
    (
        "a difference of contractions with a common factor",
        "ein[n, a, c](x * y) - ein[n, a, c](z * x)",
        "x : ℝ[n: N, a: M, b: M], y : ℝ[n: N, b: M, c: 9], z : ℝ[n: N, b: M, c: 9]",
        "n: N, a: M, c: 9",
        ["sub", "ein"],
    ),
    (
        "a common factor of terms far apart",
        "a * x + y + b * x",
        "a : ℝ[n: N], b : ℝ[n: N], x : ℝ[n: N], y : ℝ[n: N]",
        "n: N",
        ["add", "mul", "add"],
    ),
    (
        "a common denominator of terms far apart",
        "a / x - y + b / x",
        "a : ℝ[n: N], b : ℝ[n: N], x : ℝ[n: N], y : ℝ[n: N]",
        "n: N",
        ["add", "div", "sub"],
    ),
    (
        "a common operand of contractions far apart",
        "x · w - y + x · v",
        "x : ℝ[a: N, b: M], w : ℝ[b: M, c: 3], v : ℝ[b: M, c: 3], y : ℝ[a: N, c: 3]",
        "a: N, c: 3",
        ["add", "dot", "sub"],
    ),
    (
        "an ein that is a product entry by entry",
        "ein[a, b](x * w) / w",
        "x : ℝ[a: N, b: M], w : ℝ[a: N]",
        "a: N, b: M",
        [],
    ),
    (
        "three factors, the last two first",
        "ein[a, d](x * y * z)",
        "x : ℝ[a: 100, b: 2], y : ℝ[b: 2, c: 100], z : ℝ[c: 100, d: 2]",
        "a: 100, d: 2",
        ["dot", "dot"],
    ),
    (
        "an ein of an ein",
        "ein[a](ein[a, c](x * y) * z)",
        "x : ℝ[a: 100, b: 2], y : ℝ[b: 2, c: 100], z : ℝ[c: 100]",
        "a: 100",
        ["dot", "dot"],
    ),
    (
        "a scalar goes to the smaller side",
        "(x · y) * s",
        "x : ℝ[a: 100, b: 2], y : ℝ[b: 2, c: 100], s : ℝ[]",
        "a: 100, c: 100",
        ["mul", "dot"],
    ),
    (
        "a scalar stays where it is smaller",
        "(x · y) * s",
        "x : ℝ[a: 2, b: 100], y : ℝ[b: 100, c: 2], s : ℝ[]",
        "a: 2, c: 2",
        ["dot", "mul"],
    ),
    (
        "a transposition is absorbed",
        "ein[b, a](x) · y",
        "x : ℝ[a: N, b: M], y : ℝ[a: N, c: 3]",
        "b: M, c: 3",
        ["dot_vjp_r"],
    ),
    (
        "a sum of rows of a product",
        "sum(axis a, x · w)",
        "x : ℝ[a: N, b: M], w : ℝ[b: M, c: 3]",
        "c: 3",
        ["sum", "dot"],
    ),
    (
        "rows against rows stay a product and its sum",
        "sum(axis b, x * y)",
        "x : ℝ[a: N, b: M], y : ℝ[a: N, b: M]",
        "a: N",
        ["mul", "sum"],
    ),
]


@pytest.mark.parametrize(("body", "params", "result", "expected"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_forms(body: str, params: str, result: str, expected: list[str], tmp_path):
    from presk_rel.session import Session

    path = tmp_path / "form.psk"
    path.write_text(f"{HEAD}fn f({params}) -> ℝ[{result}] = {body}\n", encoding="utf-8")
    session = Session(str(path))
    dims = {"N": 24, "M": 16}
    found = session.optimized("f", {d: dims[d] for d in session.core.functions["f"].dims})
    made = [b.op.op for b in found.program.functions["f"].bindings if isinstance(b.op, Prim)]
    assert made == expected
    before, after = found.report.before, found.report.after
    assert (after.kernels, after.flops, after.bytes) <= (before.kernels, before.flops, before.bytes)
    assert session.verified("f", {}).reasons == ()


def test_what_is_repeated_along_no_other_factor_is_left_alone():
    """Inside the product with a number nothing else has the axes, only further out."""
    program = read(
        "fn f(c : ℝ[], s : ℝ[], y : ℝ[i: 9, k: 4]) -> ℝ[k: 4] {\n"
        "z : ℝ[i: 9] = zeros\nb : ℝ[i: 9] = broadcast_like c, z\nm : ℝ[i: 9] = mul b, s\n"
        "r : ℝ[k: 4] = dot m, y\nreturn r\n}\n"
    )
    done = optimize(program, "f")
    assert check(done.proof, RULES, program, done.program) == []


def test_what_is_repeated_along_no_axis():
    program = read(
        "fn f(x : ℝ[3, j: 4], t : ℝ[i: 3, j: 4]) -> ℝ[i: 3] {\n"
        "b : ℝ[i: 3, j: 4] = broadcast_like x, t\nm : ℝ[i: 3, j: 4] = mul b, b\nr : ℝ[i: 3] = sum axis j m\n"
        "return r\n}\n"
    )
    done = optimize(program, "f")
    assert check(done.proof, RULES, program, done.program) == []
