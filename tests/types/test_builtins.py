"""Spec, "Builtins", "ein" and "Indexing": one row per form, and what each refuses."""

from __future__ import annotations

from fractions import Fraction

import pytest

from presk_rel.facts.builtins import FUNCTIONS
from presk_rel.types.builtins.table import BUILTINS
from presk_rel.types.tree import TApply, TJvp, TPrim, TVjp
from tests.types.programs import Checked, check

DECLS = "const H = 2\nconst HD = 3\ndim A\ndim B\ndim T\ndim V\n"


def body(expr: str, **params: str) -> Checked:
    signature = ", ".join(f"{n} : {t}" for n, t in params.items())
    return check(f"{DECLS}fn f({signature}) =\n  {expr}\n")


def result(expr: str, **params: str) -> str:
    checked = body(expr, **params)
    assert not checked.diagnostics, checked.said()
    return checked.result("f")


def prim(expr: str, **params: str) -> TPrim:
    tree = body(expr, **params).fn("f").body
    assert isinstance(tree, TPrim)
    return tree


def code(expr: str, **params: str) -> str:
    checked = body(expr, **params)
    assert len(checked.codes) == 1, checked.said()
    return checked.codes[0]


# ----------------------------------------------------------------------------------------------------------- softmax


def test_softmax() -> None:
    assert result("softmax(axis seq, x)", x="ℝ[..., seq: T]") == "ℝ[..., seq: T]"
    x, m = "ℝ[heads: A, seq: T, seq2: T]", "bool[seq: T, seq2: T]"
    assert result("softmax(axis seq2, x, where = m)", x=x, m=m) == x
    assert len(prim("softmax(axis seq2, x, where = m)", x=x, m=m).args) == 2
    assert code("softmax(x)", x=x) == "E2021"
    assert code("softmax(axis model, x)", x=x) == "E2008"
    assert code("softmax(axis seq, x, where = x)", x=x) == "E2005"


def test_a_mask_does_not_widen() -> None:
    assert code("softmax(axis seq, x, where = m)", x="ℝ[seq: T]", m="bool[batch: B, seq: T]") == "E2003"
    assert result("softmax(axis seq, x, where = m)", x="ℝ[batch: B, seq: T]", m="bool[seq: T]") == "ℝ[batch: B, seq: T]"


# -------------------------------------------------------------------------------------------------- tables, classes


def test_embed() -> None:
    assert result("embed(w, t)", w="ℝ[V, 5]", t="idx[V][batch: B, seq: T]") == "ℝ[batch: B, seq: T, 5]"
    assert result("embed(w, t)", w="ℝ[vocab: V, emb: 5]", t="idx[V][...]") == "ℝ[..., emb: 5]"
    assert code("embed(w, t)", w="ℝ[V, 5]", t="idx[A][B]") == "E2003"
    assert code("embed(w, t)", w="ℝ[V]", t="idx[V][B]") == "E2005"
    assert code("embed(w, t)", w="ℝ[V, 5]", t="ℝ[B]") == "E2005"
    assert code("embed(w, t)", w="ℝ[V, batch: 5]", t="idx[V][batch: B]") == "E2009"


def test_one_hot() -> None:
    assert result("one_hot(t)", t="idx[V][batch: B]") == "ℝ[batch: B, V]"
    assert code("one_hot(x)", x="ℝ[B]") == "E2005"


def test_cross_entropy() -> None:
    assert result("cross_entropy(l, y)", l="ℝ[batch: B, T, vocab: V]", y="idx[V][B, seq: T]") == "ℝ[batch: B, seq: T]"
    assert code("cross_entropy(l, y)", l="ℝ[batch: B, V]", y="idx[A][batch: B]") == "E2003"
    assert code("cross_entropy(l, y)", l="ℝ[batch: B, V]", y="idx[V][seq: B]") == "E2003"
    assert code("cross_entropy(l, y)", l="ℝ[]", y="idx[V]") == "E2005"


def test_argmax_and_sample() -> None:
    assert result("argmax(x)", x="ℝ[batch: B, vocab: V]") == "idx[V][batch: B]"
    assert result("sample(k, x)", k="key", x="ℝ[batch: B, vocab: V]") == "idx[V][batch: B]"
    assert code("sample(x, x)", x="ℝ[batch: B, vocab: V]") == "E2003"
    assert code("argmax(x)", x="ℝ[]") == "E2005"


def test_positions_and_causal_mask() -> None:
    assert result("positions(seq: T)") == "idx[T][seq: T]"
    assert result("causal_mask(seq: T + 1)") == "bool[seq: T + 1, seq2: T + 1]"
    assert code("positions(T)") == "E2021"
    assert code("positions(seq: T * T)") == "E1007"


def test_a_file_dim_that_nothing_determines_is_the_callers_own() -> None:
    text = "dim T\nfn p() -> idx[T][seq: T] = positions(seq: T)\nfn f() -> ℝ[seq: T] = real(p())\n"
    checked = check(text)
    assert not checked.diagnostics, checked.said()
    assert checked.fn("f").dims == ("T",)


# --------------------------------------------------------------------------------------------------- axes regrouped


def test_merge() -> None:
    assert result("merge(axis a, axis b, x)", x="ℝ[..., a: A, b: 3, c: B]") == "ℝ[..., 3*A, c: B]"
    assert result("merge(axis a, axis b, t)", t="idx[5][a: 2, b: 3]") == "idx[5][6]"
    assert code("merge(axis b, axis a, x)", x="ℝ[a: 2, b: 3]") == "E2006"
    assert code("merge(axis a, axis c, x)", x="ℝ[a: 2, b: 3, c: 4]") == "E2006"
    assert code("merge(axis a, axis b, x)", x="ℝ[a: A, b: B]") == "E1007"
    assert code("merge(axis a, axis d, x)", x="ℝ[a: A, b: 3]") == "E2008"


def test_split() -> None:
    assert result("split(axis a, m: A, n: 4, x)", x="ℝ[..., a: 4*A, c: B]") == "ℝ[..., m: A, n: 4, c: B]"
    assert prim("split(axis a, m: A, n: 4, x)", x="ℝ[a: 4*A]").attrs[1] == "m"
    assert code("split(axis a, m: A, n: 4, x)", x="ℝ[a: A]") == "E2006"
    assert code("split(axis a, m: A, n: B, x)", x="ℝ[a: A]") == "E1007"
    assert code("split(axis a, m: 2, n: 3, x)", x="ℝ[a: 6, m: 2]") == "E2009"
    checked = body("split(axis a, m: A, n: 4, x)", x="ℝ[a: A]")
    assert checked.only.counterexample == (("A", 1),)


def test_heads() -> None:
    assert result("split_heads(x)", x="ℝ[batch: B, seq: T, model: 6]") == "ℝ[batch: B, heads: 2, seq: T, hd: 3]"
    assert result("merge_heads(x)", x="ℝ[..., heads: 2, seq: T, hd: 3]") == "ℝ[..., seq: T, 6]"
    assert result("merge_heads(split_heads(x))", x="ℝ[T, 6]") == "ℝ[T, 6]"
    assert prim("split_heads(x)", x="ℝ[T, 6]").attrs == (2, 3)
    assert code("split_heads(x)", x="ℝ[T, 7]") == "E2003"
    assert code("merge_heads(x)", x="ℝ[T, 2, 3]") == "E2003"
    assert check("fn f(x : ℝ[2, 6]) = split_heads(x)\n").codes == ["E2033"]


def test_heads_read_the_constants_of_their_own_file() -> None:
    files = {"m.psk": "const H = 3\nconst HD = 2\nfn heads(x : ℝ[4, 6]) = split_heads(x)\n"}
    checked = check('import "m.psk" as m\nconst H = 2\nfn f(x : ℝ[4, 6]) = m.heads(x)\n', files)
    assert not checked.diagnostics, checked.said()
    assert checked.result("f") == "ℝ[heads: 3, 4, hd: 2]"


def test_concat() -> None:
    assert result("concat(axis seq, x, y)", x="ℝ[batch: B, seq: T]", y="ℝ[B, seq: 1]") == "ℝ[batch: B, seq: T + 1]"
    assert code("concat(axis seq, x, y)", x="ℝ[batch: B, seq: T]", y="ℝ[A, seq: 1]") == "E2003"
    assert code("concat(axis seq, x, y)", x="ℝ[batch: B, seq: T]", y="ℝ[batch: B]") == "E2008"
    assert code("concat(axis seq, x, y)", x="ℝ[batch: B, seq: T]", y="ℝ[seq: T, batch: B]") == "E2003"


# --------------------------------------------------------------------------------------------------------- extrema


def test_max_min_clamp() -> None:
    assert result("max(x, y)", x="ℝ[batch: B, A]", y="ℝ[A]") == "ℝ[batch: B, A]"
    assert result("min(x, 0)", x="ℝ[B]") == "ℝ[B]"
    tree = prim("clamp(x, (0 : ℝ), 1)", x="ℝ[B]")
    assert tree.op == "min" and isinstance(tree.args[0], TPrim) and tree.args[0].op == "max"
    assert code("max(x, n)", x="ℝ[B]", n="nat") == "E2005"
    assert code("max(x, y)", x="ℝ[A]", y="ℝ[B]") == "E2003"


def test_comparisons() -> None:
    assert result("n <= 3", n="nat") == "bool"
    assert result("x > 0", x="ℝ[batch: B]") == "bool[batch: B]"
    assert result("t == t", t="idx[5][B]") == "bool[B]"
    assert code("x < t", x="ℝ[B]", t="idx[5][B]") == "E2005"
    assert code("n < x", n="nat", x="f64") == "E2005"


# ----------------------------------------------------------------------------------------------------- keys, dropout


def test_keys() -> None:
    assert result("split_key(k)", k="key") == "(key, key)"
    assert code("split_key(x)", x="ℝ[]") == "E2003"


def test_dropout_is_left_to_lowering() -> None:
    tree = prim("dropout(0.1, k, x)", k="key", x="ℝ[..., B]")
    assert tree.op == "dropout" and tree.attrs == (Fraction(1, 10),) and len(tree.args) == 2
    for rate in ("1", "1.5", "-0.1", "n"):
        assert code(f"dropout({rate}, k, x)", k="key", x="ℝ[B]", n="f64") == "E2034"


# ------------------------------------------------------------------------------------------------------- derivatives


def test_vjp_and_jvp() -> None:
    tree = body("vjp(λ a. gelu(a) * x)(x, x)", x="ℝ[B]").fn("f").body
    assert isinstance(tree, TApply) and isinstance(tree.fn, TVjp)
    assert str(tree.fn.type) == "(ℝ[B], ℝ[B]) -> ℝ[B]"
    tree = body("jvp(λ a. sum(a * x))(x, x)", x="ℝ[B]").fn("f").body
    assert isinstance(tree, TApply) and isinstance(tree.fn, TJvp) and str(tree.type) == "ℝ[]"
    assert code("vjp(x)(x, x)", x="ℝ[B]") == "E2012"
    assert code("vjp(λ a. sum(a))(x, x)", x="ℝ[B]") == "E2003"


# --------------------------------------------------------------------------------------------------------------- ein


@pytest.mark.parametrize(
    ("out", "a", "b", "spec"),
    [
        ("i, k", "i: 2, j: 3", "j: 3, k: 4", "i j, j k -> i k"),
        ("", "i: 2", "i: 2", "i, i ->"),
        (
            "heads, seq, seq2",
            "heads: A, seq: T, hd: 3",
            "heads: A, seq: T, hd: 3",
            "heads seq hd, heads seq2 hd -> heads seq seq2",
        ),
        (
            "heads, seq, hd",
            "heads: A, seq: T, seq2: T",
            "heads: A, seq: T, hd: 3",
            "heads seq seq2, heads seq2 hd -> heads seq hd",
        ),
        ("b, i", "b: B, i: 2", "b: B, i: 2", "b i, b i -> b i"),
    ],
)
def test_ein_and_its_relabelling(out: str, a: str, b: str, spec: str) -> None:
    assert prim(f"ein[{out}](a * b)", a=f"ℝ[{a}]", b=f"ℝ[{b}]").attrs == (spec,)


def test_ein_of_one_and_of_three_factors() -> None:
    assert result("ein[j, i](a)", a="ℝ[i: 2, j: 3]") == "ℝ[j: 3, i: 2]"
    assert result("ein[i](2 * a * b)", a="ℝ[i: 2, j: 3]", b="ℝ[j: 3]") == "ℝ[i: 2]"


@pytest.mark.parametrize(
    ("out", "a", "b", "error"),
    [
        ("i", "ℝ[i: 2, 3]", "ℝ[i: 2]", "E2031"),
        ("m", "ℝ[i: 2]", "ℝ[i: 2]", "E2031"),
        ("i, i", "ℝ[i: 2]", "ℝ[i: 2]", "E2031"),
        ("i", "ℝ[..., i: 2]", "ℝ[i: 2]", "E2031"),
        ("i", "ℝ[i: A]", "ℝ[i: B]", "E2003"),
        ("i", "idx[3][i: A]", "ℝ[i: A]", "E2005"),
        ("seq, seq2, seq3", "ℝ[seq: T]", "ℝ[seq: T]", "E2032"),
    ],
)
def test_ein_refuses(out: str, a: str, b: str, error: str) -> None:
    assert code(f"ein[{out}](a * b)", a=a, b=b) == error


# ---------------------------------------------------------------------------------------------------------- indexing


@pytest.mark.parametrize(
    ("selector", "x", "ty"),
    [
        ("0", "ℝ[3, B]", "ℝ[B]"),
        ("seq: -1", "ℝ[batch: B, seq: T, vocab: V]", "ℝ[batch: B, vocab: V]"),
        ("seq: T", "ℝ[batch: B, seq: T]", "ℝ[batch: B]"),
        ("0..2", "ℝ[3, B]", "ℝ[2, B]"),
        ("seq: 1..T + 1", "idx[5][seq: T + 1]", "idx[5][seq: T]"),
        ("pair: 0..1, batch: 0", "ℝ[..., batch: B, pair: 2]", "ℝ[..., pair: 1]"),
        ("0, 1", "ℝ[3, 4, B]", "ℝ[B]"),
        ("0..2, 1", "ℝ[3, 4, B]", "ℝ[2, B]"),
        ("seq: -2", "ℝ[seq: T + 2]", "ℝ[]"),
        ("seq: T..T", "ℝ[seq: T]", "ℝ[seq: 0]"),
    ],
)
def test_selection(selector: str, x: str, ty: str) -> None:
    if selector == "seq: T":
        assert code(f"x[{selector}]", x=x) == "E2014"
    else:
        assert result(f"x[{selector}]", x=x) == ty


def test_the_attributes_of_a_selection() -> None:
    assert [str(a) for a in prim("x[seq: -1]", x="ℝ[seq: T]").attrs] == ["seq", "-1"]
    assert [str(a) for a in prim("x[0..2]", x="ℝ[3]").attrs] == ["0", "0", "2"]


@pytest.mark.parametrize(
    ("selector", "x", "error"),
    [
        ("seq: 1..T", "ℝ[seq: T]", "E2014"),
        ("seq: 0..T + 1", "ℝ[seq: T]", "E2014"),
        ("seq: 0..-1", "ℝ[seq: T]", "E2014"),
        ("5", "ℝ[3]", "E2014"),
        ("-4", "ℝ[3]", "E2014"),
        ("seq: n..T", "ℝ[seq: T]", "E1007"),
        ("seq: x", "ℝ[seq: T]", "E1007"),
        ("model: 0", "ℝ[seq: T]", "E2008"),
        ("0, 0", "ℝ[3]", "E2008"),
        ("0", "ℝ[..., 3]", "E2008"),
        ("0", "nat", "E2005"),
    ],
)
def test_selection_refuses(selector: str, x: str, error: str) -> None:
    assert code(f"x[{selector}]", x=x, n="nat") == error


def test_the_counterexample_of_a_slice() -> None:
    assert body("x[seq: 1..T]", x="ℝ[seq: T]").only.counterexample == (("T", 0),)


# ---------------------------------------------------------------------------------------------------- through lambdas


@pytest.mark.parametrize(
    "expr",
    [
        "softmax(axis seq, a)",
        "embed(w, argmax(a))",
        "a[seq: 0]",
        "ein[seq](a * a)",
        "max(a, 0)",
        "concat(axis seq, a, a)",
        "split(axis seq, m: 2, n: 3, a)",
        "dropout(0.1, k, a)",
        "cross_entropy(a, argmax(a))",
        "a > 0",
    ],
)
def test_builtins_wait_for_the_types_of_lambdas(expr: str) -> None:
    assert not body(f"let g = λ a. {expr}\n  g(x)", x="ℝ[seq: 6]", w="ℝ[6, 6]", k="key").diagnostics


def test_every_builtin_of_the_language_has_a_row() -> None:
    assert set(BUILTINS) == set(FUNCTIONS)
