"""bf16 on CUDA: as on a CPU where no product is large; where one is, its operands are rounded, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import presk_rel
from presk_rel.exec.conform import BOUNDS, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch.conversions import rounded_together
from presk_rel.exec.torch.graph import Graph
from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.precision import Large, types_of
from presk_rel.exec.torch.trace import COPIED, COPY, Step
from presk_rel.session import Request, Session
from tests.acceptance.examples import EXAMPLES, Example

from .as_on_cuda import all_large, on_cuda

__all__ = ["on_cuda"]

FOLDER = Path(__file__).parents[3] / "examples"
QUICK = ("hessian_vector", "linear_attention", "gaussian_process", "polynomial_fit", "softmax_regression")
SMALL = {"m.V": 7, "m.D": 4, "m.H": 2, "m.L": 2}


def _marked(example: Example) -> Any:
    return pytest.param(example, id=str(example), marks=() if example.file in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("large", [False, True], ids=["as it is", "all rounded"])
@pytest.mark.parametrize("example", [_marked(e) for e in EXAMPLES])
def test_examples_are_as_near_as_on_a_cpu(on_cuda: pytest.MonkeyPatch, example: Example, large: bool):
    """At their own sizes no product is large. Where all products are taken for large, the bound holds too, or what the
    function's condition allows."""
    if large:
        all_large(on_cuda)
    session, request = Session(str(FOLDER / "field" / f"{example.file}.psk")), Request(example.args, example.dims)
    exact = session.run_exact(example.entry, request, Options(bits=96))
    ran = session.run_torch(example.entry, request, "bf16", "cpu", planned=True)
    assert large or "out_dtype" not in ran.source
    far = distance(exact.value, ran.value)
    assert far.differing == 0
    if far.relative > BOUNDS["bf16"]:
        found = session.judged(example.entry, request, exact.args, ran.value, "bf16", "cuda" if large else "cpu")
        assert found.holds, (float(far.relative), float(found.relative), float(found.bound))


def test_a_product_is_large_by_its_multiplications_and_by_its_entries():
    large = types_of("bfloat16", "cuda:0").large
    assert large == Large(1 << 24, 40)
    assert large.holds(1, 256, 256, 256)
    assert not large.holds(1, 256, 255, 256)
    assert large.holds(96, 512, 64, 512)
    assert not large.holds(96, 512, 8, 512)
    assert not large.holds(1, 1 << 14, 1, 1 << 14)
    assert not large.holds(1 << 20, 32, 32, 32)
    assert types_of("bfloat16", "cpu").large is None
    assert types_of("float32", "cuda").large is None


def test_results_of_which_one_is_made_of_another_are_not_rounded_together():
    """x₂ = r₁ · r₁, where r₁ is x₁ rounded: the one conversion would wait for itself."""

    def tensor(name: str, dtype: str) -> Array:
        return replace(fresh((4, 4), dtype), name=name, root=name)

    a, b, c, d = (tensor(n, t) for n, t in (("a", "float32"), ("b", "bfloat16"), ("c", "float32"), ("d", "bfloat16")))
    product = Step("torch.mm", (b, b), {"out_dtype": "float32"}, (c,), 1)
    for steps, together in ((product, False), (replace(product, args=(a, a), keywords={}), True)):
        first, last = (Step(COPY, (x,), {}, (y,), 1, COPIED) for x, y in ((a, b), (c, d)))
        graph = Graph([Step("torch.neg", (tensor("i", "float32"),), {}, (a,), 1), first, steps, last])
        graph.sizes = {x.name: (16, x.dtype) for x in (a, b, c, d)}
        graph.returned = [b, d]
        rounded_together(graph, (0, 1))
        assert sum(s.function == COPY for s in graph.steps) == (1 if together else 2)
        assert bool(graph.inside) == together


class Conversions(TorchDispatchMode):
    """Conversions between types by what they read, unless that has been written since."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[object, tuple[int, int]] = {}
        self.wide: list[tuple[int, int]] = []
        self.wrong: list[object] = []
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func._schema.name in ("aten::copy_", "aten::_to_copy"):
            into, x = (args[0], args[1]) if func._schema.name == "aten::copy_" else (found, args[0])
            self.written(into)
            if x.dtype != into.dtype:
                self.converted(x, into)
        elif func.is_view is False:
            for x in tree_leaves((found, {k: v for k, v in (kwargs or {}).items() if "out" in k or "grad" in k})):
                if isinstance(x, torch.Tensor):
                    self.written(x)
        return found

    def written(self, x: Any) -> None:
        low, high = extent(x)
        self.read = {k: v for k, v in self.read.items() if v[1] <= low or high <= v[0]}
        self.wide = [v for v in self.wide if v[1] <= low or high <= v[0]]

    def converted(self, x: Any, into: Any) -> None:
        key = (x.data_ptr(), tuple(x.shape), x.stride(), into.dtype)
        place = extent(x)
        if key in self.read:
            self.wrong.append(("twice", key))
        if into.dtype == torch.bfloat16 and any(low <= place[0] and place[1] <= high for low, high in self.wide):
            self.wrong.append(("back", key))
        self.read[key] = place
        if x.dtype == torch.bfloat16:
            self.wide.append(extent(into))
        self.count += 1


def extent(x: Any) -> tuple[int, int]:
    """The memory that a tensor spans."""
    if not x.numel():
        return x.data_ptr(), x.data_ptr()
    last = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()


@pytest.mark.parametrize("unroll", [False, True], ids=["folded", "unrolled"])
@pytest.mark.parametrize(
    ("file", "entry", "dims", "consts"),
    [
        ("train_minigpt.psk", "loss_grad", {"B": 2, "T": 3}, SMALL),
        ("mlp.psk", "mse_grad", {"B": 2, "D": 4}, {}),
        ("field/gru.psk", "loss_grad", {"B": 2, "D": 2, "H": 3}, {}),
    ],
)
def test_nothing_is_converted_twice_or_back(
    on_cuda: pytest.MonkeyPatch, file: str, entry: str, dims: dict[str, int], consts: dict[str, int], unroll: bool
):
    all_large(on_cuda)
    program = presk_rel.load(FOLDER / file, consts)
    handle = program.compile(entry, dims, dtype="bf16", tier="emit", unroll=unroll)
    assert "out_dtype" in handle.source
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    handle()
    with Conversions() as seen:
        handle.launch()
    assert seen.count > 0
    assert not seen.wrong


def test_a_conversion_back_is_seen():
    """The check can fail."""
    x = torch.ones(3, dtype=torch.bfloat16)
    with Conversions() as seen:
        wide = x.to(torch.float32)
        wide.to(torch.bfloat16)
        x.to(torch.float32)
        x.fill_(2.0)
        x.to(torch.float32)
    assert [kind for kind, _ in seen.wrong] == ["back", "twice"]
