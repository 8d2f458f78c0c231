"""`presk export`, `presk bench` and `presk conform --all`."""

from pathlib import Path

import numpy as np
import pytest

from presk_rel.exec.torch import inductor_process

from .harness import EXAMPLES, MLP, presk, presk_json

DIMS = ("--dim", "B=2", "--dim", "D=4")


def test_export_prints_or_writes_a_file(tmp_path: Path):
    ran = presk_json("export", MLP, "--target", "pytorch")
    assert ran.status == 0
    assert "class MLP(nn.Module):" in ran.document["source"]
    out = tmp_path / "mlp.py"
    assert presk("export", MLP, "-o", str(out)).status == 0
    assert out.read_text(encoding="utf-8") == ran.document["source"]


def test_export_of_a_wrong_program_is_its_diagnostics(tmp_path: Path):
    path = tmp_path / "wrong.psk"
    path.write_text("fn f(x : ℝ[2]) -> ℝ[3] = x\n", encoding="utf-8")
    ran = presk_json("export", str(path))
    assert ran.status == 1
    assert "source" not in ran.document


def test_bench_compares_with_eager(tmp_path: Path):
    plot = tmp_path / "out.svg"
    ran = presk_json("bench", MLP, "--entry", "mse_grad", *DIMS, "--runs", "3", "--plot", str(plot), "--tier", "emit")
    assert ran.status == 0
    found = ran.document
    assert set(found["medians"]) == {"presk", "eager"}
    assert len(found["samples"]["presk"]) == 3
    assert found["ratios"]["eager"] == found["medians"]["eager"] / found["medians"]["presk"]
    assert found["kernels"]["presk"] == 10 < found["kernels"]["eager"]
    assert plot.read_text(encoding="utf-8").startswith("<svg")


def test_bench_refuses_what_is_not_there():
    assert presk("bench", MLP, "--entry", "mse_grad", *DIMS, "--against", "theano").status == 3
    assert presk("bench", MLP, "--entry", "nothing", *DIMS).status == 2
    assert presk("bench", MLP, "--entry", "mse_grad", *DIMS, "--device", "cuda:99").status == 3


def test_a_tier_that_cannot_be_had_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "/nothing/here")
    ran = presk_json("conform", MLP, "--entry", "mse", *DIMS, "--tier", "inductor")
    assert (ran.status, ran.document["tier"]) == (0, "emit")
    (warning,) = ran.document["diagnostics"]
    assert (warning["code"], warning["severity"]) == ("W7104", "warning")
    assert "/nothing/here is not there" in warning["message"]
    said = presk("run", MLP, "--entry", "mse", *DIMS, "--tier", "inductor")
    assert said.status == 2
    ran = presk_json("run", MLP, "--entry", "mse", *DIMS, "--executor", "torch")
    assert (ran.status, ran.document["tier"], ran.document["diagnostics"]) == (0, "emit", [])


def test_conform_of_every_entry():
    ran = presk_json("conform", str(EXAMPLES / "tour" / "grad_of_function.psk"), "--all", "--dim", "N=3")
    assert ran.status == 0
    assert {r["entry"] for r in ran.document["all"]} == {"energy", "force", "pair", "pair_grad"}
    assert ran.document["skipped"] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_conform_of_every_entry_compiles_them_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started, start = [], inductor_process.Builder._start
    monkeypatch.setattr(inductor_process.Builder, "_start", lambda *given: started.append(1) or start(*given))
    asked = ("conform", str(EXAMPLES / "tour" / "grad_of_function.psk"), "--all", "--tier", "inductor")
    ran = presk_json(*asked)
    assert ran.status == 0
    assert {(r["entry"], r["tier"]) for r in ran.document["all"]} == {
        (e, "inductor") for e in ("energy", "force", "pair", "pair_grad")
    }
    assert ran.document["diagnostics"] == []
    assert len(started) == 1
    again = presk(*asked)
    assert (again.status, again.err, len(started)) == (0, "", 1)
    assert again.out.count("(tier inductor)") == 4


def test_conform_of_every_entry_says_once_what_cannot_be_had(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "/nothing/here")
    ran = presk_json("conform", str(EXAMPLES / "tour" / "hinge.psk"), "--all", "--tier", "inductor")
    assert ran.status == 0
    assert {r["tier"] for r in ran.document["all"]} == {"emit"}
    assert [d["code"] for d in ran.document["diagnostics"]] == ["W7104"]


def test_conform_in_bf16_has_its_own_bound():
    ran = presk_json("conform", MLP, "--entry", "mse_grad", *DIMS, "--dtype", "bf16")
    assert ran.status == 0
    assert ran.document["bound"] == 0.05
    assert ran.document["relative"] > 1e-6


def test_conform_says_what_torch_gives_where_it_gives_no_number(tmp_path: Path):
    path = tmp_path / "e.psk"
    path.write_text("fn e(x : ℝ[]) -> ℝ[] = exp(exp(x))\n", encoding="utf-8")
    ran = presk("conform", str(path), "--entry", "e", "--arg", "x=20")
    assert ran.status == 1
    assert ran.out.startswith(
        "does NOT conform: e on cpu in f64 (tier emit) at result[]: torch gives inf, the proven result is "
    )
    assert presk_json("conform", str(path), "--entry", "e", "--arg", "x=20").document["first"]["measured"] == "inf"


def test_conform_of_discrete_results_says_how_many_were_compared(tmp_path: Path):
    path = tmp_path / "i.psk"
    path.write_text("fn i(x : ℝ[a: 4, b: 3]) -> idx[3][a: 4] = argmax(x)\n", encoding="utf-8")
    ran = presk("conform", str(path), "--entry", "i")
    head = "conforms: i on cpu in f64 (tier emit) gives the proven result (4 discrete values)"
    assert ran.out == f"{head}; so does the exported file\n"


MANY = """
dim N
module Half {
  fn apply(x : ℝ[n: 2]) -> ℝ[n: 2] = 0.5 * x
}
module Many{N : dim} {
  use steps : stack{N}(Half)
  fn apply(x : ℝ[n: 2]) -> ℝ[n: 2] = steps.apply(x)
}
fn f(x : ℝ[n: 2]) -> ℝ[] = mean(x)
"""


def test_the_launches_of_more_iterations_than_torch_runs_are_not_counted(tmp_path: Path):
    path = tmp_path / "many.psk"
    path.write_text(MANY, encoding="utf-8")
    ran = presk_json("opt", str(path), "--entry", "Many.apply", "--dim", "N=10000000000")
    assert ran.status == 0 and ran.document["report"]["after"]["kernels"] is None


def test_what_is_undefined_at_its_dims_is_not_timed(tmp_path: Path):
    path = tmp_path / "empty.psk"
    path.write_text("dim B\nfn f(x : ℝ[batch: B]) -> ℝ[] = mean(x)\n", encoding="utf-8")
    ran = presk_json("bench", str(path), "--entry", "f", "--dim", "B=0", "--against", "eager", "--tier", "emit")
    assert ran.status == 1 and [d["code"] for d in ran.document["diagnostics"]] == ["E7003"]


@pytest.mark.parametrize("dims", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_a_layer_of_no_entries_conforms(tmp_path: Path, dims: tuple[int, int, int]):
    path = tmp_path / "layer.psk"
    path.write_text(
        "module Layer{I O : dim} {\n  param w : ℝ[I, O]\n  param b : ℝ[O]  init = ones\n"
        "  fn apply(x : ℝ[..., I]) -> ℝ[..., O] = x · w + b\n}\ndim B\ndim I\ndim O\nmodel M = Layer{I, O}\n"
        "fn f(θ : params M, x : ℝ[batch: B, seq: 2, I]) -> ℝ[batch: B, seq: 2, O] = M.apply(θ, x)\n",
        encoding="utf-8",
    )
    given = [part for name, n in zip("BIO", dims, strict=True) for part in ("--dim", f"{name}={n}")]
    assert presk_json("conform", str(path), "--entry", "f", *given).status == 0


def test_a_baseline_that_torch_refuses_is_no_bug_of_presk(tmp_path: Path):
    """torch's xavier_uniform_ divides by the sum of the lengths."""
    options = ("--entry", "Linear.apply", "--dim", "In=0", "--dim", "Out=0", "--tier", "emit", "--runs", "3")
    ran = presk_json("bench", MLP, *options)
    assert ran.status == 3
    assert [d["code"] for d in ran.document["diagnostics"]] == ["E7106"]
    assert "`eager` fails on these inputs: ZeroDivisionError" in ran.document["diagnostics"][0]["message"]


def test_conform_judges_what_is_beyond_the_bound_at_the_rounded_inputs():
    example = str(EXAMPLES / "field" / "linear_attention.psk")
    options = ("--entry", "loss_grad", "--dim", "B=2", "--dim", "T=2", "--dim", "D=2", "--dtype", "f32")
    ran = presk_json("conform", example, *options)
    assert ran.document["relative"] > ran.document["bound"] == 2e-6
    judged = ran.document["judged"]
    assert (ran.status, ran.document["conforms"]) == (0, judged["relative"] <= judged["bound"])
    assert 10 < judged["condition"] < 50
    assert presk("conform", example, *options, "--bound", "2e-6").status == 1


def test_what_there_is_no_memory_for_is_a_limit_not_a_bug(tmp_path: Path):
    """torch asks for the memory of a result when it computes it: here 400 TB."""
    path = tmp_path / "outer.psk"
    path.write_text("fn outer{N : dim}(x : ℝ[N, 1], y : ℝ[1, N]) -> ℝ[N, N] = x · y\n", encoding="utf-8")
    for name, shape in (("x", (10**7, 1)), ("y", (1, 10**7))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape))
    given = [f"--arg={name}=@{tmp_path / name}.npy" for name in ("x", "y")]
    ran = presk("run", str(path), "--entry", "outer", *given, "--executor", "torch", "--dtype", "f32")
    assert ran.status == 3
    assert "[E7006] Error: there is not enough memory to run this" in ran.err
