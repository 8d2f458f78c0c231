"""What people write who come from Python and PyTorch: every mistake is answered with how Presk says it."""

from __future__ import annotations

import pytest

from presk_rel.facts.builtins import FUNCTIONS, MODULES, TYPES
from presk_rel.syntax.foreign import NAMES, WORDS
from tests.types.programs import LINEAR, check

HEAD = LINEAR + "dim B\n"
BODY = "fn f(x : ℝ[batch: B, model: 4], y : idx[4][batch: B], i : nat, key : key) -> ℝ[] =\n  "


@pytest.mark.parametrize(
    ("expr", "code", "help"),
    [
        ("sum(x ** 2)", "E0002", "a power is written x^n"),
        ("i // 2", "E0002", "a comment is written --"),
        ("x == = y", "E0002", None),
        ("return sum(x)", "E0002", "there is no `return`"),
        ("if i > 0 then x else 0", "E0002", "there is no `if`"),
        ("lambda a: a", "E0002", "a function value is written λ x. e"),
        ("z = sum(x)\n  z", "E0002", "a name is bound by `let z = …`"),
        ("sum(mean(x, dim = 1))", "E0002", "an axis is selected by its name: mean(axis a, x)"),
        ("sum(transpose(x))", "E1001", "ein[b, a](x) puts them in this order"),
        ("sum(x.reshape(2))", "E2029", "write split(axis a, m: M, n: N, x)"),
        ("x.sum()", "E2029", "a function is called as sum(x) or x |> sum"),
        ("sum(reshape(x))", "E1001", "write split(axis a, m: M, n: N, x)"),
        ("nn.functional.relu(x)", "E1001", 'a file is imported under a name: import "path.psk" as nn'),
        ("sum(mean(axis modle, x))", "E2008", "did you mean model?"),
        ("sum(mean(axis time, x))", "E2008", "it has the axes batch, model"),
        ("sum(cross_entropy(y, x))", "E2005", "the reals come first: cross_entropy(logits, y)"),
        ("grad(sum(x))", "E2012", "give it the function, not its value"),
        ("grad(λ a. sum(a))", "E2003", "this is a function: apply it to its arguments"),
        ("sum(x · x)", "E2003", "to contract axes by their names, name those of the result: ein[…](a * b)"),
        ("sum(dropout(0.1, x))", "E2021", "write dropout(rate, key, x)"),
        ("sum(softmax(x))", "E2021", "write softmax(axis a, x)"),
        ("sum(x * i)", "E2005", "real(n)"),
    ],
)
def test_a_habit_is_answered(expr: str, code: str, help: str | None) -> None:
    found = check(HEAD + BODY + expr + "\n").diagnostics
    assert found[0].code == code
    assert help is None or help in str(found[0].help)


@pytest.mark.parametrize(
    ("text", "code", "help"),
    [
        ("def f(x):\n  return x\n", "E0002", "a function is written fn f("),
        ("const N = 2\nclass M:\n", "E0002", "a module is written module M{"),
        ("from m import f\n", "E0002", "a file is imported by import"),
        ("fn f(x : Tensor[3]) -> ℝ[3] = x\n", "E0002", "a real tensor is ℝ[a: A]"),
        (HEAD + "fn f(θ : params Linear{4, 4}) -> ℝ[] = 0.0\n", "E0002", "model N = M{…}, then params N"),
        (HEAD + "module M {\n  use l : stack(4, Linear{3, 3})\n}\n", "E0002", "a stack is written stack{L}(M)"),
        (
            HEAD + "module M {\n  use l : Linear{3, 3}\n  fn apply(x : ℝ[3]) -> ℝ[3] = l(x)\n}\n",
            "E2022",
            "call one of its functions: l1.apply(x)",
        ),
        (
            HEAD + "module M {\n  use l : Linear{3, 3}\n  fn apply(x : ℝ[3]) -> ℝ[3] = self.l.apply(x)\n}\n",
            "E1001",
            "are in scope in its functions",
        ),
        ("module M {\n  param w : ℝ[D, 3]\n}\n", "E1001", "declare it: dim D, const D = …, or in the braces"),
        (
            HEAD
            + "module M {\n  use l : Linear{3, 3}\n"
            + "  fn apply(x : ℝ[b: B, n: 3]) -> ℝ[b: B] = mean(axis n, l.apply(x))\n}\n",
            "E2008",
            "name it by an ascription: (x : ℝ[b: B, n: 3])",
        ),
        (
            HEAD + "fn f(net : Linear{3, 3}, x : ℝ[3]) -> ℝ[3] = net.apply(x)\n",
            "E2003",
            "the parameters come first: apply(θ, …) with θ : params Linear{3, 3}",
        ),
        (
            HEAD + "fn f(q : ℝ[seq: 3, d: 2]) -> ℝ[seq: 3, seq2: 3] = ein[seq, seq](q * q)\n",
            "E2031",
            "call it seq2: that of the right factor is meant then",
        ),
        ("optimizer adamw {\n  lr = 1e-3\n  learning_rate = 1e-3\n}\n", "E2010", "write lr; it takes lr, betas"),
    ],
)
def test_so_is_a_habit_of_declarations(text: str, code: str, help: str) -> None:
    found = check(text).diagnostics
    assert found[0].code == code and help in str(found[0].help)


def test_a_failing_assertion_says_so_once() -> None:
    assert check("dim D\nstatic assert D % 4 == 0\n").only.message == "the static assertion D % 4 == 0 fails for D = 1"
    assert check("static assert 3 % 2 == 0\n").only.message == "the static assertion 3 % 2 == 0 fails"


def test_no_name_of_the_language_is_foreign() -> None:
    assert not NAMES.keys() & {*FUNCTIONS, *TYPES, *MODULES} and not WORDS.keys() & {*FUNCTIONS, *TYPES, *MODULES}


def test_one_letter_is_near_to_no_name_of_two() -> None:
    assert check("fn f(x : ℝ[2]) -> ℝ[2] = ff\n").only.help is None
    assert check("fn f(x : ℝ[2]) -> ℝ[2] = X\n").only.help == "did you mean `x`?"
