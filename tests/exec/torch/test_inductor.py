"""Tier `inductor`: the proven numbers, the cache of machine code, and what happens without a compiler."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import presk_rel
from presk_rel.api.handle import Handle
from presk_rel.exec.conform import BOUNDS, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch import inductor, inductor_process, library
from presk_rel.exec.torch.emit import emit
from presk_rel.exec.torch.inductor import AUTO_LAUNCHES, Code, Runner, Status, auto_after, just_in_time
from presk_rel.exec.torch.inductor_build import examples, flat, nested, spec
from presk_rel.exec.torch.loaded import Loaded, loaded
from presk_rel.exec.torch.run import DTYPES
from presk_rel.session import Request

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
IMPORTED = {f"m.{k}": v for k, v in SMALL.items()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "presk" / "inductor"


def mlp(**options: Any) -> Handle:
    handle = presk_rel.load(EXAMPLES / "mlp.psk").compile("mse_grad", {"B": 2, "D": 4}, dtype="f64", **options)
    return handle.bind(θ=handle.params["θ"], x=handle.example("x"), y=handle.example("y"))


def difference(a: Any, b: Any) -> float:
    """The largest difference of two trees of gradients."""
    return max(float((a[i][j] - b[i][j]).abs().max()) for i in a for j in a[i])


# ----------------------------------------------------------------------------------------------------- machine code


@pytest.mark.timeout(600)
def test_machine_code_is_built_once_and_again_when_damaged(cache: Path, monkeypatch: pytest.MonkeyPatch):
    built: list[bytes] = []
    build = inductor_process.build

    def building(job: dict[str, Any], cxx: str) -> None:
        out = Path(job["out"])
        if built:
            out.write_bytes(built[0])  # the compiler would take as long again
        else:
            build(job, cxx)
        built.append(out.read_bytes())

    monkeypatch.setattr(inductor_process, "build", building)
    plain, first = mlp(tier="emit"), mlp(tier="inductor")
    expected = plain()
    assert first.status == plain.status
    assert difference(first(), expected) < 1e-15
    assert first.status.tier == "inductor"
    assert 0 < (first.status.kernels or 0) <= plain.kernels
    assert difference(mlp(tier="inductor")(), expected) < 1e-15
    assert len(built) == 1

    (entry,) = cache.glob("*.pt2")
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    again = mlp(tier="inductor")
    assert difference(again(), expected) < 1e-15
    assert again.status.tier == "inductor"
    assert len(built) == 2

    strided = {**again.example("θ")}
    strided["l1"] = {**strided["l1"], "w": strided["l1"]["w"].t().contiguous().t()}
    assert difference(again(θ=strided), expected) < 1e-15


CASES = [
    ("mlp.psk", "mse_grad", {"B": 2, "D": 3}, {}, "inference"),
    ("tour/deep.psk", "loss_grad", {"B": 2, "D": 3}, {}, "inference"),
    ("tour/grad_of_function.psk", "pair_grad", {"N": 4}, {}, "inference"),
    ("tour/hinge.psk", "hinge_grad", {"N": 5, "D": 3}, {}, "inference"),
    ("tour/linear_regression.psk", "loss_grad", {"N": 5, "D": 3}, {}, "inference"),
    ("train_minigpt.psk", "loss_grad", {"B": 2, "T": 3}, IMPORTED, "inference"),
    ("gpt.psk", "loss_grad", {"B": 1, "T": 3}, SMALL, "training"),
    ("field/linear_attention.psk", "loss_grad", {"B": 1, "T": 2, "D": 2}, {}, "inference"),
    ("field/gaussian_process.psk", "loss_grad", {"N": 2, "M": 2, "D": 2}, {}, "inference"),
    ("field/lora.psk", "loss_grad", {"B": 1, "In": 2, "Out": 2}, {}, "inference"),
]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_training_draws_the_masks_of_the_exact_executor(cache: Path):
    session = presk_rel.load(EXAMPLES / "gpt.psk", SMALL, mode="training").session
    request = Request(dims={"B": 1, "T": 3})
    proven = session.run_exact("loss_grad", request, Options(bits=96))
    with inductor_process.shared():
        for dtype in DTYPES:
            ran = session.run_torch("loss_grad", request, dtype, "cpu", "inductor")
            far = distance(proven.value, ran.value)
            assert (ran.status.tier, far.differing) == ("inductor", 0)
            assert far.relative <= BOUNDS[dtype]


@pytest.mark.parametrize(("file", "entry", "dims", "consts", "mode"), CASES, ids=lambda x: str(x)[:24])
def test_the_file_for_a_compiler_computes_the_same(
    file: str, entry: str, dims: dict[str, int], consts: dict[str, int], mode: Any
):
    program = presk_rel.load(EXAMPLES / file, consts, mode=mode)
    handle = program.compile(entry, dims, dtype="f64", tier="inductor", unroll=True)
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    inputs, runner = handle._inputs({}), handle.compiled.runner
    assert runner is not None
    code = runner.code
    given, _ = code.file.prelude(inputs)
    expected, found = handle.compiled.generated(inputs), code.compute(*given)
    scale = max(float(x.abs().max()) for x in expected)
    assert [tuple(r.sizes) for r in code.results] == [tuple(x.shape) for x in found]
    assert max(float((a - b).abs().max()) for a, b in zip(expected, found, strict=True)) < 1e-14 * max(scale, 1)
    slices = [x for x in code.file.compute(*given) if isinstance(x, tuple)]
    assert [len(x) for x in slices] == [r.slices for r in code.results if r.slices]
    if file == "train_minigpt.psk":  # a stack is moved slice by slice; sums, and what is between products, are joined
        assert slices
        assert "addmm" not in code.file.source
        assert "attention" not in code.file.source


@pytest.mark.parametrize("length", [256, 257])
def test_attention_over_many_keys_stays_a_call(length: int):
    """All scores would have to be in memory."""
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", {f"m.{k}": v for k, v in SMALL.items()})
    handle = program.compile("loss_grad", {"B": 1, "T": length}, tier="inductor", unroll=True)
    assert handle.compiled.runner is not None
    assert ("flash_attention" in handle.compiled.runner.code.file.source) == (length > library.FEW_KEYS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_samples_are_those_of_the_exact_executor(cache: Path, tmp_path: Path):
    path = tmp_path / "draw.psk"
    path.write_text("fn draw(key : key, s : ℝ[batch: 5, 7]) -> idx[7][batch: 5] uses Rand = sample(key, s)\n")
    session = presk_rel.load(path).session
    exact = session.run_exact("draw", Request(), Options(bits=96)).value
    ran = session.run_torch("draw", Request(), "f32", "cpu", "inductor")
    assert (ran.status.tier, distance(exact, ran.value).differing) == ("inductor", 0)


# ------------------------------------------------------------------------------------------------ without a compiler


def test_without_a_compiler_the_code_runs_as_it_is(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "/nothing/here")
    handle = mlp(tier="inductor")
    assert difference(handle(), mlp(tier="emit")()) == 0
    assert handle.status == Status("emit", "the compiler CXX=/nothing/here is not there", handle.kernels)
    monkeypatch.setenv("CXX", "g++ -O3")
    assert inductor.no_compiler() == "the compiler CXX=g++ -O3 is not there (a path, without arguments)"
    monkeypatch.setenv("CXX", "  ")
    assert inductor.no_compiler() is None
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    assert inductor.no_compiler() == "there is no C++ compiler here (g++, clang++ or $CXX)"


def test_a_compiler_that_fails_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch):
    said = "import sys; sys.exit('Traceback\\n  somewhere\\nerror: no space\\x1b left\\n\\n')"

    def refusing(*_: Any, **__: Any) -> Callable[..., Any]:
        def run(*_: Any) -> Any:
            raise RuntimeError("no code\nat all")

        return run

    monkeypatch.setattr(inductor_process, "COMMAND", ("-c", said))
    monkeypatch.setattr(torch, "compile", refusing)
    session = presk_rel.load(EXAMPLES / "mlp.psk").session
    ran = session.run_torch("mse", Request(dims={"B": 2, "D": 4}), "f64", "cpu", "inductor")
    reason = "the compiler failed: error: no space left; torch.compile failed: no code"
    assert ran.status == Status("emit", reason, ran.kernels)
    (warned,) = session.diagnostics.items
    assert (warned.code, warned.severity) == ("W7104", "warning")
    assert reason in warned.message


def test_torch_compile_is_next_where_ahead_of_time_fails(cache: Path, monkeypatch: pytest.MonkeyPatch):
    def failing(*_: Any) -> None:
        raise inductor.BuildError("no")

    monkeypatch.setattr(inductor_process, "build", failing)
    read_by_dynamo(monkeypatch)
    handle = mlp(tier="inductor")
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        found = handle()
    assert difference(found, mlp(tier="emit")()) < 1e-15
    assert handle.status == Status("compile", "no")


def read_by_dynamo(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.compile` without what makes code of the graph: Dynamo must have read all of it."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


@pytest.mark.parametrize(("file", "entry", "dims", "consts", "mode"), CASES, ids=lambda x: str(x)[:24])
def test_torch_compile_takes_what_cuda_gets(
    file: str, entry: str, dims: dict[str, int], consts: dict[str, int], mode: Any, monkeypatch: pytest.MonkeyPatch
):
    """The code is written for no device but that of the first line; here it is the CPU's."""
    read_by_dynamo(monkeypatch)
    program = presk_rel.load(EXAMPLES / file, consts, mode=mode)
    handle = program.compile(entry, dims, dtype="f32", unroll=True)
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    inputs, compiled, core = handle._inputs({}), handle.compiled, program.session.optimized(entry, dims).program
    written = emit(core, entry, compiled.emitted.env, "float32", "cpu", unroll=True, reader="compiler")
    code = Code(loaded(written.source))
    given, _ = code.file.prelude(inputs)
    run, status = just_in_time(code, [spec(x) for x in given], "cpu", 1)
    assert status == Status("compile")
    expected, found = compiled.generated(inputs), run(*given)
    assert len(expected) == len(found)
    assert max(float((a - b).abs().max()) for a, b in zip(expected, found, strict=True)) < 1e-5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_torch_compile_gives_the_same_numbers(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inductor_process, "COMMAND", ("-c", "raise SystemExit('no')"))
    handle = mlp(tier="inductor")
    assert difference(handle(), mlp(tier="emit")()) < 1e-15
    assert handle.status == Status("compile", "the compiler failed: no")


# ----------------------------------------------------------------------------------------------------------- `auto`


def test_auto_compiles_when_launches_have_cost_as_much(monkeypatch: pytest.MonkeyPatch):
    assert auto_after(10) == AUTO_LAUNCHES // 10
    assert auto_after(3) * 3 >= AUTO_LAUNCHES > (auto_after(3) - 1) * 3
    monkeypatch.setattr(inductor, "compiled", lambda *_: (lambda x: x + 1, Status("inductor")))
    code = Code(Loaded("", tuple, lambda x: (x, ()), lambda x: (x,), {}))
    runner = Runner(lambda: code, "cpu", 1, after=2)
    assert [runner.due() and runner(0) for _ in range(5)] == [False, False, 1, 1, 1]
    assert mlp().status == mlp(tier="emit").status


def test_a_handle_that_changes_to_machine_code_writes_on_where_it_wrote(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inductor, "compiled", lambda code, *_: (code.compute, Status("inductor", None, 1)))
    handle = mlp()
    assert handle.compiled.runner is not None
    handle.compiled.runner.after = 2
    found = handle()
    first, flats = found["l1"]["w"], [x.data_ptr() for x in handle.flats]
    tiers: list[str] = []
    for scale in (2.0, 3.0, 4.0):
        handle.bind(x=scale * handle.example("x"))
        again = handle()
        assert again is found
        assert difference(again, mlp(tier="emit").bind(x=scale * handle.example("x"))()) < 1e-15
        tiers.append(handle.status.tier)
    assert tiers == ["emit", "inductor", "inductor"]
    assert again["l1"]["w"] is first
    assert [x.data_ptr() for x in handle.flats] == flats


def test_nothing_is_compiled_where_no_kernel_runs():
    code = Code(Loaded("", tuple, lambda x: (x, ()), lambda x: (x,), {}))
    assert inductor.compiled(code, (torch.zeros(2),), "cpu", 0) == (code.compute, Status("emit", None, 0))


def test_stacks_of_tensors_have_flat_forms():
    given = (torch.zeros(2), [torch.ones(1, dtype=torch.int64), (torch.zeros(()),)])
    specs = [spec(x) for x in given]
    assert specs == [[[2], "float32"], {"each": [[[1], "int64"], {"each": [[[], "float32"]]}]}]
    assert [x.dtype for x in examples(specs, "cpu")] == [torch.float32, torch.int64, torch.float32]
    assert nested(specs, iter([1, 2, 3])) == [1, [2, [3]]]
    assert [tuple(x.shape) for x in flat(given)] == [(2,), (1,), ()]
