"""What `presk check` says by the rules: illegal gradients, undeclared effects, keys, unused names."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.core.findings import SUBSTITUTES
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.diagnostics.render import render
from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"


def said(folder: Path, text: str, **others: str) -> list[Diagnostic]:
    for name, other in {"main": text, **others}.items():
        (folder / f"{name}.psk").write_text(other, encoding="utf-8")
    return Session(str(folder / "main.psk"), engine="embedded").check()


def codes(folder: Path, text: str, **others: str) -> list[str]:
    return [d.code for d in said(folder, text, **others)]


def under(text: str, diagnostic: Diagnostic) -> str:
    assert diagnostic.span is not None
    return text[diagnostic.span.start.offset : diagnostic.span.end.offset]


# ------------------------------------------------------------------------------------------------------- gradients


def test_the_picture_of_the_spec() -> None:
    session = Session(str(EXAMPLES / "diag/reg_argmax.psk"), engine="embedded")
    picture = render(session.check(), session.sources).splitlines()
    assert picture[0] == (
        "[E3001] Error: cannot differentiate through `argmax`: the function is discontinuous (Disc) in `l`"
    )
    assert picture[1].endswith("reg_argmax.psk:6:3 ]")
    assert picture[2:] == [
        " 4 |   mean(real(argmax(logits)))",
        "   |             `------------- `argmax` makes the result discontinuous in `l`",
        " 6 |   grad(λ l. pick(l))(logits)",
        "   |   `------------------------- `grad` here, with respect to `l`",
        "   | Help: use `softmax` for a smooth surrogate, or an explicit straight-through relaxation",
    ]


def test_an_illegal_gradient_is_never_run() -> None:
    session = Session(str(EXAMPLES / "diag/reg_argmax.psk"), engine="embedded")
    with pytest.raises(PreskError) as caught:
        session.entry("bad")
    assert [d.code for d in caught.value.diagnostics] == ["E3001"]


@pytest.mark.parametrize("operator", ["vjp", "jvp"])
def test_vjp_and_jvp_are_gradients(tmp_path: Path, operator: str) -> None:
    text = f"fn h(x : ℝ[3]) -> ℝ[] = {operator}(λ a. sum(real(argmax(a))))(x, C)\n".replace(
        "C)", "1.0)" if operator == "vjp" else "x)"
    )
    text = text.replace("-> ℝ[]", "-> ℝ[3]") if operator == "vjp" else text
    (found,) = said(tmp_path, text)
    assert found.code == "E3001" and found.labels[-1].message == f"`{operator}` here, with respect to `a`"


@pytest.mark.parametrize(("of_y", "kind"), [("y", "Cinf"), ("relu(y)", "C0plus"), ("real(argmax(y))", "Disc")])
def test_a_vjp_is_linear_in_the_cotangent(tmp_path: Path, of_y: str, kind: str) -> None:
    text = f"fn h(x : ℝ[3], y : ℝ[3]) -> ℝ[3] = vjp(λ a. sum(exp(a)))(x, sum({of_y}))\n"
    (tmp_path / "main.psk").write_text(text, encoding="utf-8")
    analysis = Session(str(tmp_path / "main.psk"), engine="embedded").analysis
    assert analysis.regularity("h", "x") == "Cinf" and analysis.regularity("h", "y") == kind


def test_kinks_are_illegal_only_under_two_gradients(tmp_path: Path) -> None:
    once = "fn h(x : ℝ[3]) -> ℝ[3] = grad(λ a. sum(relu(a)))(x)\n"
    twice = "fn h(x : ℝ[3]) -> ℝ[3] = grad(λ a. sum(grad(λ b. sum(relu(b)))(a)))(x)\n"
    assert codes(tmp_path, once) == []
    (found,) = said(tmp_path, twice)
    assert found.code == "E3001" and "twice through `relu`" in found.message and "in `a`" in found.message
    assert found.help is not None and "gelu" in found.help


def test_every_primitive_that_can_be_to_blame_has_a_substitute() -> None:
    never_in_source = {"gelu'", "heaviside", "sign"}
    rough = {n for n, row in PRIMS.items() if set(row.regularity) - {"Cinf"} and not n.endswith("_vjp")}
    assert rough - never_in_source <= set(SUBSTITUTES)


# --------------------------------------------------------------------------------------------------------- effects


def test_the_first_use_is_shown(tmp_path: Path) -> None:
    text = (
        "fn f(x : ℝ[3], key : key) -> ℝ[3] =\n"
        "  let (a, b) = split_key(key)\n"
        "  dropout(0.1, a, x) + dropout(0.1, b, x)\n"
    )
    (found,) = said(tmp_path, text)
    assert found.code == "E4001" and under(text, found) == "split_key(key)"
    assert found.message == "`f` uses Rand and does not say so"


def test_a_use_in_a_lambda_counts_for_its_function_and_is_shown_itself(tmp_path: Path) -> None:
    text = "fn f(x : ℝ[3], key : key) -> ℝ[3] = grad(λ a. sum(dropout(0.1, key, a)))(x)\n"
    (found,) = said(tmp_path, text)
    assert found.code == "E4001" and under(text, found) == "dropout(0.1, key, a)"


def test_a_call_is_a_use(tmp_path: Path) -> None:
    text = (
        "fn g(x : ℝ[3], key : key) -> ℝ[3] uses Rand = dropout(0.1, key, x)\n"
        "fn f(x : ℝ[3], key : key) -> ℝ[3] = g(x, key)\n"
    )
    (found,) = said(tmp_path, text)
    assert under(text, found) == "g(x, key)" and found.labels[0].message == "`g` uses Rand"


# ------------------------------------------------------------------------------------------------------------ keys

DROP = "fn drop(x : ℝ[3], k : key) -> ℝ[3] uses Rand = dropout(0.1, k, x)\n"
PASS = "fn pass(x : ℝ[3], k : key) -> (ℝ[3], key) = (x, k)\n"


def keys(folder: Path, *lines: str) -> list[str]:
    """The codes of a function of `x` and `key` with these lines."""
    body = "\n".join(f"  {line}" for line in lines)
    return codes(folder, f"{DROP}{PASS}fn f(x : ℝ[3], key : key) -> ℝ[3] uses Rand =\n{body}\n")


@pytest.mark.parametrize(
    "lines",
    [
        ("dropout(0.1, key, x) + dropout(0.2, key, x)",),
        ("dropout(0.1, key, drop(x, key))",),
        ("drop(drop(x, key), key)",),
        ("let (a, _) = split_key(key)", "drop(dropout(0.1, key, x), a)"),
        ("let k = key", "let (_, k2) = (x, k)", "drop(dropout(0.1, key, x), k2)"),
        ("let (y, k) = pass(x, key)", "drop(dropout(0.1, key, y), k)"),
    ],
)
def test_a_key_drawn_from_twice(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert keys(tmp_path, *lines) == ["W4001"]


@pytest.mark.parametrize(
    "lines",
    [
        ("let (a, b) = split_key(key)", "dropout(0.1, a, x) + drop(x, b)"),
        ("let (a, k) = split_key(key)", "let (b, k) = split_key(k)", "drop(drop(drop(x, a), b), k)"),
        ("let (y, k) = pass(x, key)", "drop(y, k)"),
        ("let loss = λ a. sum(drop(a, key))", "loss(x) * grad(loss)(x)"),
    ],
)
def test_keys_used_as_they_should_be(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert keys(tmp_path, *lines) == []


def test_draws_of_one_key_are_all_shown(tmp_path: Path) -> None:
    text = "fn f(x : ℝ[3], key : key) -> ℝ[3] uses Rand =\n  " + " + ".join(["dropout(0.1, key, x)"] * 3) + "\n"
    (found,) = said(tmp_path, text)
    assert "`key` is drawn from 3 times" in found.message and len(found.labels) == 3


def stack(apply: str, call: str) -> str:
    """A stack of a block; `call` gives the result of the net."""
    return (
        f"module Block {{\n  param w : ℝ[3]\n  fn apply{apply}\n}}\n"
        "module Net {\n  use blocks : stack{4}(Block)\n"
        f"  fn apply(x : ℝ[3], key : key) -> ℝ[3] uses Rand =\n    {call}\n}}\n"
    )


EXTRA = "(x : ℝ[3], key : key) -> ℝ[3] uses Rand = dropout(0.1, key, x * w)"
KEPT = "(s : (ℝ[3], key)) -> (ℝ[3], key) uses Rand =\n    let (x, k) = s\n    (dropout(0.1, k, x * w), k)"
CARRIED = (
    "(s : (ℝ[3], key)) -> (ℝ[3], key) uses Rand =\n    let (x, k) = s\n    let (a, b) = split_key(k)\n"
    "    (dropout(0.1, a, x * w), b)"
)
TAKE = "let (y, _) = blocks.apply((x, key))\n    y"


def test_a_key_as_an_extra_argument_of_a_stack(tmp_path: Path) -> None:
    text = stack(EXTRA, "blocks.apply(x, key)")
    (found,) = said(tmp_path, text)
    assert found.code == "W4002" and under(text, found) == "blocks.apply(x, key)"


def test_a_key_carried_and_never_split(tmp_path: Path) -> None:
    assert codes(tmp_path, stack(KEPT, TAKE)) == ["W4002"]


def test_the_idiom_of_the_spec(tmp_path: Path) -> None:
    assert codes(tmp_path, stack(CARRIED, TAKE)) == []


def test_the_key_that_comes_out_of_a_stack_is_a_new_one(tmp_path: Path) -> None:
    rest = "let (y, k) = blocks.apply((x, key))\n    dropout(0.1, k, y)"
    assert codes(tmp_path, stack(CARRIED, rest)) == []


# ---------------------------------------------------------------------------------------------------- unused names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fn f(x : ℝ[3]) -> ℝ[3] =\n  let «y» = x\n  x\n", "W1001"),
        ("fn f(x : ℝ[3]) -> ℝ[3] =\n  let y = x\n  let «y» = y\n  x\n", "W1001"),
        ("fn f(x : ℝ[3]) -> ℝ[3] =\n  let (y, «z») = (x, x)\n  y\n", "W1001"),
        ("fn f(x : ℝ[3], «y» : ℝ[3]) -> ℝ[3] = x\n", "W1002"),
        ("fn f(x : ℝ[3]) -> ℝ[3] = grad(λ «a». sum(x))(x)\n", "W1002"),
        ('import "other.psk" as «o»\nfn f(x : ℝ[3]) -> ℝ[3] = x\n', "W1003"),
    ],
)
def test_what_is_not_used(tmp_path: Path, text: str, expected: str) -> None:
    plain = text.replace("«", "").replace("»", "")
    (found,) = said(tmp_path, plain, other="const N = 3\n")
    assert found.code == expected
    assert found.span is not None and found.span.start.offset == text.index("«")


@pytest.mark.parametrize(
    "text",
    [
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  let _y = x\n  let (z, _) = (x, x)\n  z\n",
        "fn f(x : ℝ[3], _y : ℝ[3]) -> ℝ[3] = x\n",
        'import "other.psk" as o\nfn f(x : ℝ[o.N]) -> ℝ[o.N] = x\n',
        'import "other.psk" as o\nstatic assert o.N == 3\n',
        "module M {\n  param w : ℝ[3]\n}\nfn f(net : M, θ : params net) -> ℝ[] = sum(θ.w)\n",
        "module M {\n  param w : ℝ[3]\n}\nmodule N {\n  use m : M\n}\nfn f(θ : params N) -> ℝ[] = sum(θ.m.w)\n",
    ],
)
def test_what_is_used(tmp_path: Path, text: str) -> None:
    assert codes(tmp_path, text, other="const N = 3\n") == []


def test_mistakes_in_names_hide_what_is_unused(tmp_path: Path) -> None:
    assert codes(tmp_path, "fn f(x : ℝ[3]) -> ℝ[3] =\n  let total = x\n  totel\n") == ["E1001"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.psk")), ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_examples_have_no_warnings_of_these(path: Path) -> None:
    found = [d for d in Session(str(path), engine="embedded").check() if d.severity == "warning"]
    assert [d.message for d in found if d.code[:2] in ("W1", "W4")] == []


# ---------------------------------------------------------------------------------------------------- initializers


def test_an_initializer_over_a_symbolic_stack_cannot_be_run(tmp_path: Path) -> None:
    text = (
        "dim L\nmodule Lin {\n  param w : ℝ[3]\n  fn apply(x : ℝ[3]) -> ℝ[3] = x * w\n}\n"
        "module Deep {\n  use blocks : stack{L}(Lin)\n  fn apply(x : ℝ[3]) -> ℝ[3] = blocks.apply(x)\n}\n"
    )
    (tmp_path / "deep.psk").write_text(text, encoding="utf-8")
    session = Session(str(tmp_path / "deep.psk"))
    session.entry("Deep.apply")
    with pytest.raises(PreskError) as caught:
        session.entry("Deep.init")
    assert [d.code for d in caught.value.diagnostics] == ["E5002"] and caught.value.exit_status == 3
