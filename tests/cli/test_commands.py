"""Each command on real programs: what it prints, in text and JSON, and how it exits (docs/cli.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from presk_rel.cli.app import COMMANDS, RESERVED
from tests.cli.harness import EXAMPLES, HINGE, MLP, presk, presk_json

DIMS = ("--dim", "B=2", "--dim", "D=4")
GOOD = sorted(str(p) for p in [EXAMPLES / "mlp.psk", *(EXAMPLES / "tour").glob("*.psk")])


def test_help_names_every_command_and_imports_no_heavy_package() -> None:
    import subprocess
    import sys

    heavy = "torch z3 egglog flint numpy ortools lark"
    code = (
        "import sys; from presk_rel.cli.app import group\n"
        "try: group(['--help'], prog_name='presk')\n"
        f"except SystemExit: print([m for m in '{heavy}'.split() if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("[]\n")
    assert all(name in run.stdout for name in COMMANDS)


def test_check_does_not_import_torch_or_egglog() -> None:
    import subprocess
    import sys

    code = (
        f"import sys; from presk_rel.cli.app import group\n"
        f"try: group(['check', {MLP!r}], prog_name='presk')\n"
        f"except SystemExit as e: print(e.code, [m for m in ('torch', 'egglog', 'flint') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("0 []\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    ran = presk(command, "--help")
    assert ran.status == 0
    assert f"presk {command}" in ran.out


@pytest.mark.parametrize("command", RESERVED)
def test_reserved_names_are_wrong_usage(command: str) -> None:
    assert presk(command, MLP).status == 2


@pytest.mark.parametrize("path", GOOD)
def test_check_is_silent_when_all_is_well(path: str) -> None:
    ran = presk("check", path)
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_check_summary() -> None:
    ran = presk_json("check", MLP, "--summary")
    functions = {f["name"]: f for f in ran.document["functions"]}
    assert functions["mse"]["regularity"] == {"θ": "Cinf", "x": "Cinf", "y": "Cinf"}
    assert functions["Linear.init"]["effects"] == ["Rand"]
    params = {p["path"]: p["type"] for m in ran.document["modules"] if m["name"].startswith("MLP") for p in m["params"]}
    assert params["l1.w"] == "ℝ[D, hidden]"
    assert "-- functions --" in presk("check", MLP, "--summary").out


def test_a_wrong_axis_is_shown_with_both_types() -> None:
    path = str(EXAMPLES / "diag" / "wrong_axis.psk")
    ran = presk("check", path)
    assert ran.status == 1
    assert "E2003" in ran.err
    assert "ℝ[batch: B, seq: D]" in ran.err
    assert "ℝ[batch: B, model: D]" in ran.err
    assert f"{path}:6:" in ran.err


def test_a_wrong_length_has_the_smallest_counterexample() -> None:
    ran = presk_json("check", str(EXAMPLES / "diag" / "wrong_length.psk"))
    assert ran.status == 1
    (found,) = ran.document["diagnostics"]
    assert found["code"] == "E2003"
    assert found["counterexample"] == {"D": 1}
    assert found["span"]["start"]["line"] == 11


def test_explain_prints_the_page() -> None:
    ran = presk_json("explain", "E2003")
    assert ran.status == 0
    assert ran.document["failing"] != ran.document["fixed"]
    assert presk("explain", "E9998").status == 2


@pytest.mark.parametrize("stage", ["tokens", "ast", "facts", "elab", "core", "core-after-ad"])
def test_dump_each_stage(stage: str) -> None:
    assert presk("dump", MLP, "--stage", stage).out
    assert presk_json("dump", MLP, "--stage", stage).status == 0


def test_dumped_core_runs_as_a_program(tmp_path: Path) -> None:
    core = tmp_path / "mlp.core"
    core.write_text(presk("dump", MLP, "--stage", "core").out, encoding="utf-8")
    again = presk("dump", str(core), "--stage", "core")
    assert again.out == core.read_text(encoding="utf-8")
    a, b = (presk_json("run", p, "--entry", "mse_grad", *DIMS) for p in (MLP, str(core)))
    assert a.document["result"] == b.document["result"]


def test_run_gives_77_proven_digits() -> None:
    ran = presk_json("run", MLP, "--entry", "mse_grad", *DIMS)
    assert ran.status == 0
    w = ran.document["result"]["l1"]["w"]
    assert (w["type"], w["shape"], w["axes"]) == ("ℝ[4, 16]", [4, 16], [None, None])
    assert {len(re.sub(r"^-?0\.0*|\D", "", x)) for row in w["data"] for x in row} <= {75, 76, 77}
    assert ran.document["proven"] and ran.document["bits"] == 256
    assert float(w["error_bound"]) < 1e-76


def test_run_text_and_json_agree_and_the_seed_matters() -> None:
    args = ("run", HINGE, "--entry", "hinge", "--dim", "N=3", "--dim", "D=2")
    value = presk_json(*args).document["result"]["data"]
    assert value in presk(*args).out
    assert presk_json(*args, "--seed", "1").document["result"]["data"] != value


def test_arguments_are_exact() -> None:
    ran = presk_json(
        "run", HINGE, "--entry", "margin", "--arg", "w=[0.1, 0.2]", "--arg", "x=[[1, 2], [3, 4]]", "--arg", "y=[1, -1]"
    )
    assert ran.document["result"]["data"] == ["0.5", "-1.1"]
    assert ran.document["dims"] == {"D": 2, "N": 2}


def test_torch_and_exact_agree() -> None:
    ran = presk_json("conform", MLP, "--entry", "mse_grad", *DIMS)
    assert ran.status == 0
    assert ran.document["relative"] <= 1e-12
    single = presk_json("conform", MLP, "--entry", "mse_grad", *DIMS, "--dtype", "f32")
    assert single.status == 0
    assert 1e-12 < single.document["relative"] <= 1e-5
    assert presk_json("conform", MLP, "--entry", "mse_grad", *DIMS, "--dtype", "f32", "--bound", "1e-12").status == 1


def test_a_missing_device_is_status_3() -> None:
    ran = presk_json("run", MLP, "--entry", "mse", *DIMS, "--executor", "torch", "--device", "cuda:99")
    assert ran.status == 3


@pytest.mark.parametrize("entry", ["mse", "MLP.init"])
def test_torch_runs_other_entries(entry: str) -> None:
    dims = DIMS if entry == "mse" else ("--dim", "D=2", "--dim", "hidden=3")
    assert presk_json("run", MLP, "--entry", entry, *dims, "--executor", "torch").status == 0


def test_opt_reports_fewer_bindings_and_kernels() -> None:
    ran = presk_json("opt", MLP, "--entry", "mse_grad", *DIMS, "--report")
    before, after = ran.document["report"]["before"], ran.document["report"]["after"]
    assert after["bindings"] < before["bindings"]
    assert after["kernels"] < before["kernels"]
    assert after["planned"] < before["planned"]
    assert after["bytes"] < before["bytes"]  # flops may be more: `gelu` is computed in two kernels, and not in memory
    assert ran.document["report"]["gap"] == 0
    assert "kernels" in presk("opt", MLP, "--entry", "mse_grad", "--report").out


def test_opt_announces_the_kernels_that_torch_launches() -> None:
    announced = presk_json("opt", MLP, "--entry", "mse_grad", *DIMS, "--report").document["report"]["after"]["kernels"]
    ran = presk_json("run", MLP, "--entry", "mse_grad", *DIMS, "--executor", "torch", "--dtype", "f32")
    assert announced == ran.document["kernels"]
    open_dims = presk_json("opt", MLP, "--entry", "mse_grad", "--report").document["report"]
    assert open_dims["after"]["kernels"] is None


def test_prove_verifies() -> None:
    ran = presk_json("prove", MLP, "--entry", "mse_grad", "--verify")
    assert ran.status == 0
    assert ran.document["verified"] is True
    assert ran.document["steps"]
    assert "verified" in presk("prove", MLP, "--entry", "mse_grad", *DIMS, "--verify").out


def test_why_shows_the_primitive() -> None:
    ran = presk("why", HINGE, "hinge", "--param", "w")
    assert ran.status == 0
    assert "`relu` is C⁰⁺" in ran.out
    assert presk_json("why", HINGE, "hinge", "--param", "w").document["height"] > 0
    assert presk_json("why", HINGE, "smooth", "--not").status == 0
    assert presk("why", HINGE, "nothing").status == 2


def test_query_prints_a_table() -> None:
    ran = presk_json("query", HINGE, 'regularity("hinge", p, k)')
    assert ran.document["columns"] == ["p", "k"]
    assert ran.document["rows"] == [["w", "C0plus"], ["x", "C0plus"], ["y", "C0plus"]]
    assert presk_json("query", "--relations").document["relations"]
    assert presk("query", HINGE, "nonsense(").status == 1


def test_facts_are_written_for_souffle(tmp_path: Path) -> None:
    ran = presk_json("facts", MLP, "-o", str(tmp_path / "facts"))
    assert ran.status == 0
    assert (tmp_path / "facts" / "rules.dl").read_text(encoding="utf-8").count(".include") >= 5
    assert (tmp_path / "facts" / "presk_rel" / "rules" / "scopes.dl").exists()
    assert {f"{name}.facts" for name in ran.document["relations"]} <= {p.name for p in (tmp_path / "facts").iterdir()}


@pytest.mark.parametrize(
    "args",
    [
        ("check", "no/such/file.psk"),
        ("check", str(EXAMPLES)),
        ("check", MLP, "--nonsense"),
        ("run", MLP),
        ("run", MLP, "--entry", "nothing"),
        ("run", MLP, "--entry", "mse", "--dim", "B"),
        ("run", MLP, "--entry", "mse", "--dim", "B=-1"),
        ("dump", MLP, "--stage", "nowhere"),
        ("prove", MLP, "--entry", "mse_grad", "--step", "100000"),
    ],
)
def test_wrong_usage_is_status_2(args: tuple[str, ...]) -> None:
    assert presk(*args).status == 2


def test_check_summary_of_configuration_blocks() -> None:
    train = str(EXAMPLES / "train_minigpt.psk")
    document = presk_json("check", train, "--summary").document
    (run,), (serve,) = document["training"], document["inference"]
    assert (run["model"], run["objective"], run["epochs"], run["dims"]) == ("MiniGPT{T}", "loss", 10, {"B": 32})
    assert run["sample"] == "(idx[50257][seq: T], idx[50257][seq: T])"
    assert run["data"] == {"path": "data/tokens.psk.d", "seed": 1234, "batch": 32, "take": None, "samples": None}
    assert (run["optimizer"]["lr"], run["optimizer"]["schedule"]) == ("0.0003", "cosine")
    assert run["checkpoint"] == {"steps": 1000, "path": "ckpt/"}
    assert (serve["generate"], serve["settings"]["cache"]) == ("next_token", "kv_cache(axis seq)")
    text = presk("check", train, "--summary").out
    assert "-- training --\nrun: loss over params MiniGPT{T}\n" in text
    assert "-- inference --\nserve: params MiniGPT{T}, generates by next_token\n" in text


def test_an_undefined_mean_is_refused_on_every_executor(tmp_path: Path) -> None:
    path = tmp_path / "m.psk"
    path.write_text("dim B\nfn m(x : ℝ[b: B]) -> ℝ[] = mean(x)\n", encoding="utf-8")
    for executor in ("exact", "torch"):
        ran = presk("run", str(path), "--entry", "m", "--dim", "B=0", "--executor", executor)
        assert (ran.status, "E7003" in ran.err) == (1, True)


def test_more_axes_than_an_executor_holds_is_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "axes.psk"
    axes = ", ".join(f"a{i}: 1" for i in range(100))
    path.write_text(f"fn f(x : ℝ[{axes}]) -> ℝ[] = sum(x)\n", encoding="utf-8")
    for executor in ("exact", "torch"):
        ran = presk("run", str(path), "--entry", "f", "--executor", executor)
        assert (ran.status, "E7006" in ran.err) == (3, True)


def test_options_that_do_nothing_are_wrong_usage() -> None:
    assert presk("check", MLP, "-W", "W9999=error").status == 2
    assert presk("run", MLP, "--entry", "mse", "--device", "cuda").status == 2
