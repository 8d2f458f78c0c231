"""Functions are asked for by the names that the main file would use; files of any name give Core that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import presk, presk_json

MODULE = "module L {{\n  param w : ℝ[2]  init = ones\n  fn apply(x : ℝ[2]) -> ℝ[2] = {by} * x * w\n}}\n"


@pytest.fixture
def main(tmp_path: Path) -> str:
    (tmp_path / "my-lib.psk").write_text(MODULE.format(by=3) + "fn f(x : ℝ[2]) -> ℝ[2] = x + 1\n", "utf-8")
    deep = 'import "my-lib.psk" as deep\n' + MODULE.format(by=2) + "fn f(x : ℝ[2]) -> ℝ[2] = 2 * deep.f(x)\n"
    (tmp_path / "2x.psk").write_text(deep, "utf-8")
    text = (
        'import "my-lib.psk" as a\nimport "2x.psk" as b\nfn h(x : ℝ[2]) -> ℝ[2] =\n  let g = λ y. a.f(y)\n  g(b.f(x))\n'
    )
    (tmp_path / "main.psk").write_text(text, "utf-8")
    return str(tmp_path / "main.psk")


@pytest.mark.parametrize(
    ("entry", "result"),
    [
        ("h", ["5", "7"]),
        ("a.f", ["2", "3"]),
        ("b.f", ["4", "6"]),
        ("b.deep.f", ["2", "3"]),
        ("a.L.apply", ["3", "6"]),
        ("b.L.apply", ["2", "4"]),
        ("my_lib.f", ["2", "3"]),
    ],
)
def test_a_function_of_an_import_goes_by_its_alias(main: str, entry: str, result: list[str]) -> None:
    ran = presk_json("run", main, "--entry", entry, "--arg", "x=[1, 2]")
    assert ran.document["result"]["data"] == result


@pytest.mark.parametrize("command", ["opt", "prove", "conform"])
def test_every_command_with_an_entry_takes_it(main: str, command: str) -> None:
    assert presk(command, main, "--entry", "b.f").status == 0


def test_dump_and_why_take_it_too(main: str) -> None:
    assert presk("dump", main, "--stage", "core", "--entry", "a.f").out.startswith("fn my_lib.f(")
    assert presk("why", main, "a.f", "--all").out.startswith("`my_lib.f` is C∞ in `x`")


@pytest.mark.parametrize(
    ("entry", "hint"),
    [("b.L.aply", "did you mean `b.L.apply` or `a.L.apply`?"), ("h.lambda", None), ("a.L.apply.bw", "`a.L.apply`")],
)
def test_hints_are_names_that_the_program_has(main: str, entry: str, hint: str | None) -> None:
    ran = presk_json("run", main, "--entry", entry)
    (found,) = ran.document["diagnostics"]
    assert ran.status == 2 and (found["code"], entry in found["message"]) == ("E7001", True)
    assert "lambda" not in (found["help"] or "") and "bwd" not in (found["help"] or "")
    assert hint is None or hint in found["help"]


def test_core_of_files_of_any_name_is_read_again(main: str, tmp_path: Path) -> None:
    core = presk("dump", main, "--stage", "core").out
    assert "_2x.f" in core and "my_lib.f" in core
    (tmp_path / "m.core").write_text(core, "utf-8")
    assert presk("dump", str(tmp_path / "m.core"), "--stage", "core").out == core


def test_a_value_that_hides_a_constant_is_warned_of_and_a_dimension_is_not(tmp_path: Path) -> None:
    path = tmp_path / "hide.psk"
    path.write_text(
        "const D : nat = 4\nmodule M{D : dim} {\n  param w : ℝ[D]\n  fn apply(x : ℝ[]) -> ℝ[] = x * sum(w)\n}\n"
        "fn f(D : ℝ[]) -> ℝ[] = D * D\nfn g(x : ℝ[]) -> ℝ[] =\n  let D = x * x\n  D\n",
        encoding="utf-8",
    )
    ran = presk("check", str(path))
    assert ran.status == 0 and ran.err.count("[W1006] Warning: `D` hides the constant of that name") == 2
    assert f"{path}:6:6" in ran.err and f"{path}:8:7" in ran.err
