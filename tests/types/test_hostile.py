"""No program, however long, deep or doubling, overflows a stack or takes more than linear time: it is typed, or refused
with a diagnostic."""

from __future__ import annotations

import pytest

from tests.types.programs import check

N = 1500

REALS = "dim B\nfn f(x : ℝ[batch: B]) -> ℝ[batch: B] =\n"


def lets(line: str, n: int = N) -> str:
    return REALS + "".join(f"  let {line.format(i=i, j=i + 1)}\n" for i in range(n)) + "  x\n"


@pytest.mark.parametrize(
    "text",
    [
        lets("x = x * 0.5 + gelu(x)"),
        lets("g{i} = λ (a : ℝ[batch: B]). a * x", 300),
        REALS + "  " + " + ".join(["x"] * N) + "\n",
        REALS + "  " + " * ".join(["2"] * N) + " * x\n",
        REALS + "  x" + " |> gelu" * N + "\n",
        REALS + "  let g = λ a. " + " + ".join(["a"] * N) + "\n  g(x)\n",
        "dim B\nfn f(x : ℝ[" + " + ".join(["B"] * N) + "]) -> ℝ[] = sum(x)\n",
        "const A = " + " - ".join([str(N)] + ["1"] * N) + "\n",
        "fn f(" + ", ".join(f"x{i} : ℝ[3]" for i in range(N)) + ") -> ℝ[] = sum(x0)\n",
        "".join(f"fn f{i}(x : ℝ[3]) = f{i + 1}(x) + 1\n" for i in range(300)) + "fn f300(x : ℝ[3]) = x\n",
    ],
    ids=lambda text: text[-60:],
)
def test_long_programs_are_typed(text: str) -> None:
    assert not check(text).diagnostics


@pytest.mark.parametrize(
    "text",
    [
        "fn f(x : ℝ[3]) =\n" + "  let x = (x, x)\n" * 60 + "  x\n",
        "".join(f"type T{i} = (T{i + 1}, T{i + 1})\n" for i in range(60)) + "type T60 = key\nfn f(x : T0) -> T0 = x\n",
        "".join(f"type T{i} = (T{i + 1}, key)\n" for i in range(150)) + "type T150 = key\nfn f(x : T0) -> T0 = x\n",
        "".join(f"model N{i} = N{i + 1} ∘ N{i + 1}\n" for i in range(60))
        + "model N60 = M\nmodule M {\n  param w : ℝ[3]\n}\n",
        "module M {\n  param w : ℝ[3]\n}\nmodule K {\n  use n : " + " ∘ ".join(["M"] * 150) + "\n}\n",
        "fn f(x : ℝ[3]) =\n  λ a.\n".replace("λ a.\n", "λ a0. ")
        + "".join(f"let a{i + 1} = λ b{i}. a{i}\n  " for i in range(150))
        + "a150\n",
        "fn f(x : ℝ[3]) =\n  let g = λ a0. "
        + "".join(f"let a{i + 1} = a{i}(x)\n  " for i in range(3000))
        + "a3000\n  g\n",
    ],
    ids=lambda text: text[:60],
)
def test_types_too_large_to_walk_are_refused(text: str) -> None:
    checked = check(text)
    assert checked.program is None
    assert set(checked.codes) <= {"E9002", "E2024", "E0005", "E0002"}, checked.said()


@pytest.mark.parametrize("shape", ["gelu({})", "({})", "({} : ℝ[3])", "(λ a. {})(x)", "({} + x)", "id({})", "-({})"])
def test_nesting_as_deep_as_the_parser_allows(shape: str) -> None:
    expr = "x"
    for _ in range(95):
        expr = shape.format(expr)
    checked = check(f"fn id(x : ℝ[3]) -> ℝ[3] = x\nfn f(x : ℝ[3]) -> ℝ[3] = {expr}\n")
    assert set(checked.codes) <= {"E0005"}, checked.said()
