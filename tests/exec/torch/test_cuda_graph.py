"""CUDA graphs: recorded once over fixed buffers, here with a stand-in for `torch.cuda`; on a GPU, the same numbers."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import presk_rel
from presk_rel.exec.torch import run
from presk_rel.exec.torch.attention import SWITCH
from presk_rel.exec.torch.bound import bound
from presk_rel.exec.torch.cuda_graph import WARM_UPS, Graph
from presk_rel.exec.torch.dispatch import dispatched
from presk_rel.exec.torch.numerics import sums_in_f32
from presk_rel.exec.torch.run import place_of
from presk_rel.session import Request, Session

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Side:
    """A stream of its own, of the device that is current then."""

    cuda: "Cuda"
    device: str

    def wait_stream(self, _: Any) -> None:
        self.cuda.said.append("wait")


class Cuda:
    """Records what is asked of it; a graph replays what ran while it was recorded."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.capturing = False
        self.current = "cuda:0"

    def Stream(self) -> "Side":
        self.said.append("stream")
        return Side(self, self.current)

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def current_stream(self) -> "Cuda":
        return self

    def wait_stream(self, _: Any) -> None:
        self.said.append("wait")

    @contextmanager
    def stream(self, _: Any) -> Any:
        yield self.said.append("side")

    @contextmanager
    def device(self, index: Any) -> Any:
        self.current = index
        yield self.said.append(f"on {index}")
        self.current = "cuda:0"

    @contextmanager
    def graph(self, _: Any, stream: Side, capture_error_mode: str) -> Any:
        yield self.said.append(f"record on {stream.device} {capture_error_mode}")

    def CUDAGraph(self) -> "Cuda":
        return self

    def replay(self) -> None:
        self.said.append("replay")


def test_a_run_is_recorded_once_after_warming_up_beside():
    runs: list[int] = []
    cuda = Cuda()
    graph = Graph(lambda x, pair: runs.append(1) or (x, *pair), "cuda:1", cuda)
    x, y = torch.zeros(2), torch.ones(1)
    assert [t is u for t, u in zip(graph(x, (y,)), (x, y), strict=True)] == [True, True]
    assert len(runs) == WARM_UPS + 1
    assert cuda.said == [
        "on cuda:1", "stream", "wait", "side", "wait", "record on cuda:1 thread_local", "replay",
    ]  # fmt: skip
    found = graph(torch.full((2,), 3.0), (torch.full((1,), 4.0),))
    assert (x.tolist(), y.tolist()) == ([3.0, 3.0], [4.0])
    assert found[0] is x
    assert len(runs) == WARM_UPS + 1
    assert cuda.said[-1] == "replay"


def test_inside_a_graph_of_somebody_else_the_run_is_recorded_not_replayed():
    runs: list[int] = []
    cuda = Cuda()
    graph = Graph(lambda x: runs.append(int(x)) or x, "cuda:0", cuda)
    x = torch.zeros(1)
    graph(x)
    cuda.capturing = True
    assert graph(torch.ones(1)) is x
    assert runs == [0] * (WARM_UPS + 1) + [1]
    assert cuda.said.count("replay") == 1


def test_a_workspace_is_freed_before_a_graph_is_recorded_and_after(monkeypatch: pytest.MonkeyPatch):
    """So that the graph's is of its own pool, whatever warmed up."""
    cuda = Cuda()
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: cuda.said.append("free"), raising=False)
    Graph(lambda x: x, "cuda:0", cuda)(torch.zeros(1))
    assert [said for said in cuda.said if said == "free" or "record" in said or said == "side"] == [
        "side", "free", "record on cuda:0 thread_local", "free",
    ]  # fmt: skip


def test_kernels_are_counted_where_they_are_launched_not_in_a_replay():
    program = presk_rel.load(EXAMPLES / "mlp.psk")
    handle = program.compile("mse_grad", {"B": 2, "D": 4}, tier="emit")
    inputs = [x for p in handle.function.params for x in handle.leaves(p.name, handle.example(p.name))]
    cuda = Cuda()
    held = bound(handle.compiled.emitted, handle.compiled.parts.namespace, inputs, partial(Graph, cuda=cuda))
    for _ in range(2):
        held.run()
    assert len(dispatched(held.launch)) == handle.kernels
    assert cuda.said.count("replay") == 2


def test_a_handle_s_device_has_its_number(monkeypatch: pytest.MonkeyPatch):
    """What is compiled from it later (the gradient of a module) is for the same one."""
    monkeypatch.setattr(run, "place_of", lambda torch, device: torch.device("cpu", 0) if device == "cuda" else None)
    handle = presk_rel.load(EXAMPLES / "mlp.psk").compile("mse", {"B": 2, "D": 4}, tier="emit", device="cuda")
    assert handle.device == "cpu:0"


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("dtype", "far"), [("f32", 2e-6), ("bf16", 0.05)])
@pytest.mark.parametrize("way", ["", "calls"], ids=["written out", "calls"])
def test_attention_and_large_products_on_a_gpu_are_within_the_bounds(
    monkeypatch: pytest.MonkeyPatch, way: str, dtype: Any, far: float
):
    monkeypatch.setenv(SWITCH, way)
    consts = {"m.V": 256, "m.D": 256, "m.H": 4, "m.L": 2}
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", consts)
    cpu = program.compile("loss_grad", {"B": 2, "T": 512}, dtype="f64", tier="emit", unroll=True)
    gpu = program.compile("loss_grad", {"B": 2, "T": 512}, dtype=dtype, tier="emit", device="cuda", unroll=True)
    assert ("_attention(" in gpu.source, "out_dtype" in gpu.source) == (way == "calls", dtype == "bf16")
    for handle in (cpu, gpu):
        handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
        handle()
    (expected,), (found,) = cpu.flats, gpu.flats
    assert float((found.cpu().double() - expected).abs().max()) <= far * float(expected.abs().max())


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tier", ["emit", "inductor"])
def test_bound_calls_on_a_gpu_have_the_numbers_of_the_cpu(tier: Any):
    small = {"m.V": 7, "m.D": 4, "m.H": 2, "m.L": 2}
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", small)
    cpu = program.compile("loss_grad", {"B": 2, "T": 3}, dtype="f64", tier="emit")
    gpu = program.compile("loss_grad", {"B": 2, "T": 3}, dtype="f64", tier=tier, device="cuda")
    for handle in (cpu, gpu):
        handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    for _ in range(3):
        cpu(), gpu()
    (expected,), (found,) = cpu.flats, gpu.flats
    assert float((found.cpu() - expected).abs().max()) < 1e-12


def test_a_graph_is_recorded_with_products_summed_in_f32_and_without_autocast():
    said: list[tuple[bool, bool]] = []
    matmul = torch.backends.cuda.matmul

    def run(x: Any) -> Any:
        said.append((matmul.allow_bf16_reduced_precision_reduction, torch.is_autocast_enabled("cuda")))
        return x

    before = matmul.allow_bf16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction_split_k
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch: there is no CUDA here
        with torch.autocast("cuda", dtype=torch.bfloat16):
            Graph(run, cuda=Cuda())(torch.zeros(2))
    assert said == [(False, False)] * (WARM_UPS + 1)
    assert before == (
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_bf16_reduced_precision_reduction_split_k,
    )


def test_commands_compute_f32_in_f32_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    compiled = run.compile_entry

    def compile_entry(*args: Any, **options: Any) -> Any:
        said.append(torch.get_float32_matmul_precision())
        return compiled(*args, **options)

    monkeypatch.setattr(run, "compile_entry", compile_entry)
    try:
        torch.set_float32_matmul_precision("high")
        Session(str(EXAMPLES / "mlp.psk")).run_torch("mse", Request(dims={"B": 2, "D": 4}), "f32", "cpu")
        assert (said, torch.get_float32_matmul_precision()) == (["highest"], "high")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_user_who_forbids_split_sums_finds_them_forbidden_after():
    matmul = torch.backends.cuda.matmul
    try:
        matmul.allow_bf16_reduced_precision_reduction = (False, False)
        with sums_in_f32(torch):
            assert not matmul.allow_bf16_reduced_precision_reduction
        assert not matmul.allow_bf16_reduced_precision_reduction_split_k
    finally:
        matmul.allow_bf16_reduced_precision_reduction = True


def test_a_device_without_a_number_is_the_current_one():
    """Tensors that lie there say its number; the handle is the same whichever is current later."""

    class Torch:
        device = staticmethod(torch.device)

        class cuda:
            @staticmethod
            def is_available() -> bool:
                return True

            @staticmethod
            def device_count() -> int:
                return 2

            @staticmethod
            def current_device() -> int:
                return 1

    assert [str(place_of(Torch, d)) for d in ("cpu", "cuda", "cuda:0")] == ["cpu", "cuda:1", "cuda:0"]
