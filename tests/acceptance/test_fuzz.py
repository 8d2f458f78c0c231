"""No input gives a traceback, a bug report (exit status 4), or takes longer than ten seconds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.harness import EXAMPLES, presk

TEN_SECONDS = 10_000
SOURCES = [p.read_text(encoding="utf-8") for p in sorted(EXAMPLES.rglob("*.psk"))]
TOKENS = sorted(
    {t for text in SOURCES for t in re.findall(r"\w+|[^\w\s]", text)}
    | {"\n", " ", "--", '"', "1e999", "..", "...", "\\"}
)


def fuzz(examples: int) -> settings:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(deadline=TEN_SECONDS, max_examples=examples, suppress_health_check=checks)


def checked(tmp_path: Path, content: bytes) -> int:
    path = tmp_path / "input.psk"
    path.write_bytes(content)
    ran = presk("check", str(path))
    assert ran.status in (0, 1), ran.err
    assert ran.status == 0 or ran.err
    return ran.status


@fuzz(60)
@given(content=st.binary(max_size=400))
def test_random_bytes(tmp_path: Path, content: bytes) -> None:
    checked(tmp_path, content)


@fuzz(60)
@given(content=st.text(max_size=200))
def test_random_text(tmp_path: Path, content: str) -> None:
    checked(tmp_path, content.encode("utf-8", "surrogatepass"))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An example with a few tokens deleted, repeated, exchanged or replaced."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", draw(st.sampled_from(SOURCES)))
    for _ in range(draw(st.integers(1, 4))):
        i, j = draw(st.integers(0, len(parts) - 1)), draw(st.integers(0, len(parts) - 1))
        match draw(st.sampled_from(["delete", "repeat", "exchange", "replace"])):
            case "delete":
                parts[i] = ""
            case "repeat":
                parts[i] *= 2
            case "exchange":
                parts[i], parts[j] = parts[j], parts[i]
            case _:
                parts[i] = draw(st.sampled_from(TOKENS))
    return "".join(parts)


@fuzz(150)
@given(source=mutated())
def test_mutated_programs(tmp_path: Path, source: str) -> None:
    checked(tmp_path, source.encode())


@fuzz(60)
@given(source=st.lists(st.sampled_from(TOKENS), max_size=60).map(" ".join))
def test_random_tokens(tmp_path: Path, source: str) -> None:
    checked(tmp_path, f"fn f(x : ℝ[n: 3]) -> ℝ[] =\n  {source}\n".encode())


N = 10_000
DEEP = {
    "parentheses": f"const A = {'(' * N}1{')' * N}",
    "brackets": f"fn f(x : ℝ[3]) = x{'[' * N}",
    "minus signs": f"fn f(x : ℝ[3]) = {'-' * N}x",
    "powers": f"fn f(x : ℝ[3]) = x{'^2' * N}",
    "tuples": f"fn f(x : ℝ[3]) = {'(x, ' * N}x{')' * N}",
    "calls": f"fn f(x : ℝ[3]) -> ℝ[3] = {'exp(' * N}x{')' * N}",
    "tuple types": f"fn f(x : {'(' * N}ℝ{', ℝ)' * N}) = x",
    "lambdas": f"fn f(x : ℝ[3]) = {'λ a. ' * N}x",
    "braces": f"module M{'{' * N}",
    "modules": f"module M {{ use a : {'stack{2}(' * N}M{')' * N} }}",
    "strings": '"' * N,
    "a long sum": f"fn f(x : ℝ[3]) -> ℝ[3] = {' + '.join(['x'] * N)}",
    "a long pipeline": f"fn f(x : ℝ[3]) -> ℝ[3] = x {'|> exp ' * N}",
    "many lets": "fn f(x : ℝ[3]) -> ℝ[3] =\n" + "".join("  let x = x + x\n" for _ in range(2000)) + "  x",
    "many functions": "\n".join(f"fn f{i}(x : ℝ[3]) -> ℝ[3] = {f'f{i - 1}(x)' if i else 'x'}" for i in range(500)),
    "a constant of a million digits": f"const A = {'9' * 1_000_000}",
    "an exponent of a million digits": f"fn f(x : ℝ[3]) = x^{'9' * 1_000_000}",
    "a decimal of a million digits": f"fn f(x : ℝ[3]) = x + 0.{'1' * 1_000_000}",
    "a huge exponent": "fn f(x : ℝ[3]) = x * 1e999999999",
    "a huge power": "fn f(x : ℝ[3]) -> ℝ[3] = x^999999999",
    "a huge dimension": "fn f(x : ℝ[99999999999999999999]) -> ℝ[] = sum(x)",
    "an alias of itself": "type A = (A, A)",
    "doubling aliases": "\n".join(["type A0 = ℝ[2]", *(f"type A{i} = (A{i - 1}, A{i - 1})" for i in range(1, 60))]),
    "doubling modules": "\n".join(
        ["module M0 {\n param w : ℝ[2]\n}", *(f"module M{i} {{\n use a, b : M{i - 1}\n}}" for i in range(1, 40))]
    ),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", DEEP)
def test_deep_and_huge_programs(tmp_path: Path, name: str) -> None:
    checked(tmp_path, DEEP[name].encode())


@pytest.mark.timeout(20)
def test_an_import_cycle_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.psk").write_text('import "b.psk" as b\n', encoding="utf-8")
    (tmp_path / "b.psk").write_text('import "a.psk" as a\n', encoding="utf-8")
    ran = presk("check", str(tmp_path / "a.psk"))
    assert ran.status == 1
    assert "b.psk" in ran.err


HOSTILE = [
    "__import__",
    "print",
    "torch",
    "v0",
    "inputs",
    "entry",
    "import_",
    "lambda_",
    "def_",
    "ℝx",
    "_",
    "os",
    "x̂",
    "e\u0301",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_break_generated_code(tmp_path: Path, name: str) -> None:
    path = tmp_path / "names.psk"
    binder = "x" if name == "_" else name
    path.write_text(
        f"fn {binder}f({binder} : ℝ[n: 2]) -> ℝ[] =\n  let y = exp({binder})\n  sum({binder} * y)\n", encoding="utf-8"
    )
    runs = [
        presk("run", str(path), "--entry", f"{binder}f", "--arg", f"{binder}=[1, 2]", "--executor", executor)
        for executor in ("exact", "torch")
    ]
    assert [r.status for r in runs] == [0, 0], [r.err for r in runs]
    assert all("17.4963940263" in r.out for r in runs)
