"""Entries run without the arguments that have a default (spec: "a default value makes the parameter optional")."""

from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.cli.harness import EXAMPLES, Ran, presk, presk_json

SOURCE = """
dim N
dim M
const C : nat = 5
fn f(x : ℝ[i: N], s : f64 = 0.1, n : nat = N, k : int = 2 - N, r : rat = 1/3, z : ℝ = 2 * 0.25, c : nat = C) -> ℝ[] =
  sum(x) * real(s) * real(n) * real(k) * real(r) * z * real(c)
fn caller(x : ℝ[i: N]) -> ℝ[] = f(x)
fn noisy(x : ℝ[i: N], s : f64 = 2, key : key) -> ℝ[i: N] uses Rand =
  dropout(0.5, key, x) * real(s)
fn root(x : ℝ[i: N], z : ℝ = sqrt(4.0)) -> ℝ[i: N] = x * z
fn irrational(x : ℝ[i: N], z : ℝ = sqrt(2.0)) -> ℝ[i: N] = x * z
fn foreign(x : ℝ[i: 3], n : nat = M) -> ℝ[i: 3] = x * real(n)
fn divided(x : ℝ[i: 3], n : rat = 1/0) -> ℝ[i: 3] = x * real(n)
fn adder(x : ℝ[i: N]) = λ (y : ℝ[i: N]). x + y
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("defaults") / "defaults.psk"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def run(source: str, entry: str, *options: str) -> Ran:
    return presk_json("run", source, "--entry", entry, *options)


def data(ran: Ran) -> object:
    assert ran.status == 0, ran.document["diagnostics"]
    return ran.document["result"]["data"]


@pytest.mark.parametrize("options", [(), ("--no-opt",)])
def test_a_default_is_the_value_that_a_caller_in_the_program_would_pass(source: str, options: tuple[str, ...]):
    """Exactly: 6 · 1/10 · 3 · (−1) · 1/3 · 1/2 · 5."""
    given = ("--arg", "x=[1, 2, 3]", *options)
    assert data(run(source, "f", *given)) == data(run(source, "caller", *given)) == "-1.5"


def test_a_default_counts_with_dims_from_the_command_line_too(source: str):
    explicit = ("--arg", "s=0.1", "--arg", "n=2", "--arg", "k=0", "--arg", "r=1", "--arg", "z=1", "--arg", "c=1")
    assert data(run(source, "f", "--dim", "N=2")) == data(run(source, "f", "--dim", "N=2", *explicit)) == "0"


def test_an_argument_given_replaces_its_default_alone(source: str):
    assert data(run(source, "f", "--arg", "x=[1, 2, 3]", "--arg", "s=1")) == "-15"


def test_a_default_is_exact_and_follows_const(source: str):
    assert data(run(source, "f", "--arg", "x=[1, 2, 3]", "--const", "C=1")) == "-0.3"
    assert data(run(source, "root", "--arg", "x=[3]")) == ["6"]


def test_torch_takes_the_same_defaults(source: str):
    assert data(run(source, "f", "--arg", "x=[1, 2, 3]", "--executor", "torch")) == "-1.5000000000000002"
    assert presk("conform", source, "--entry", "f", "--dim", "N=3").status == 0


def test_the_other_parameters_draw_from_the_same_keys_with_and_without_the_default(source: str):
    mode = ("--mode", "training", "--dim", "N=4")
    assert data(run(source, "noisy", *mode)) == data(run(source, "noisy", *mode, "--arg", "s=2"))


REFUSED = [
    ("irrational", "E7014", "its default is not a rational number"),
    ("foreign", "E7014", "its default counts with `M`, no dimension of `foreign`"),
    ("divided", "E7004", "division by zero, in `default`"),
]


@pytest.mark.parametrize(("entry", "code", "text"), REFUSED)
def test_a_default_without_an_exact_value_is_refused(source: str, entry: str, code: str, text: str):
    ran = run(source, entry, *(("--dim", "N=2") if entry == "irrational" else ()))
    assert ran.status == 1
    assert [d["code"] for d in ran.document["diagnostics"] if d["severity"] == "error"] == [code]
    assert text in ran.document["diagnostics"][-1]["message"]


def test_minigpt_samples_at_its_declared_temperature():
    sizes = ("--const", "m.V=8", "--const", "m.D=4", "--const", "m.H=2", "--const", "m.L=1")
    train = str(EXAMPLES / "train_minigpt.psk")
    command = (train, "--entry", "next_token", *sizes, "--dim", "B=2", "--dim", "T=3")
    plain, given = (presk_json("run", *command, *more) for more in ((), ("--arg", "temperature=0.8")))
    assert data(plain) == data(given)


def test_a_function_with_a_function_for_its_result_is_said_not_to_run(source: str):
    ran = presk_json("run", source, "--entry", "adder", "--dim", "N=2")
    assert (ran.status, ran.document["diagnostics"][-1]["code"]) == (3, "E7019")
    assert "the result : (ℝ[i: N]) -> ℝ[i: N] is a function value" in ran.document["diagnostics"][-1]["message"]


def test_what_cannot_be_run_is_refused_before_anything_is_optimized(source: str, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> None:
        raise AssertionError("optimized")

    monkeypatch.setattr(Session, "optimized", never)
    train = str(EXAMPLES / "train_minigpt.psk")
    for command in ((train, "--entry", "adamw.step", "--dim", "T=3"), (source, "--entry", "f", "--arg", "s=true")):
        for executor in ("exact", "torch"):
            ran = presk_json("run", *command, "--executor", executor)
            assert (ran.status, ran.document["diagnostics"][-1]["code"][:3]) == (1, "E70")


def test_a_training_file_without_an_entry_is_outside_what_can_be_run():
    ran = presk_json("run", str(EXAMPLES / "train_minigpt.psk"))
    assert (ran.status, ran.document["diagnostics"][-1]["code"]) == (3, "E7002")
