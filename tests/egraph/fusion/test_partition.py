"""Which kernels: named shapes of programs, and on small graphs the cheapest partition there is."""

from __future__ import annotations

import heapq

import pytest

from presk_rel.core.ir import Program
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.fusion.candidates import EVERY_SET, ORDERS, candidates
from presk_rel.egraph.fusion.check import check_fused
from presk_rel.egraph.fusion.fuse import fuse
from presk_rel.egraph.fusion.graph import Graph, graph_of
from presk_rel.egraph.fusion.partition import partition, task_of
from presk_rel.egraph.fusion.space import Space
from presk_rel.egraph.parts import live
from tests.egraph.programs import Builder, read, real, residual_gradient
from tests.egraph.random_programs import random_program

DIMS = {"B": 2, "D": 3}

HEAD = "x : ℝ[batch: B, model: D], w : ℝ[D, D], v : ℝ[D, D], b : ℝ[D], c : ℝ[batch: B, model: D], s : ℝ[D, D]"
T = "ℝ[batch: B, model: D]"
NORMALIZED = [
    "ℝ[batch: B] = mean axis model x",
    f"{T} = sub x, {{0}}",
    f"{T} = pow 2 {{1}}",
    "ℝ[batch: B] = mean axis model {2}",
    "ℝ[batch: B] = sqrt {3}",
    f"{T} = div {{1}}, {{4}}",
]
SHAPES: dict[str, tuple[int, str, list[str]]] = {
    "a chain": (1, T, [f"{T} = exp x", f"{T} = mul {{0}}, c", f"{T} = add {{1}}, b"]),
    "a product with bias and activation": (1, T, [f"{T} = dot x, w", f"{T} = add {{0}}, b", f"{T} = gelu {{1}}"]),
    "an operand worked on before the product": (1, T, [f"{T} = gelu x", f"{T} = dot {{0}}, w"]),
    "two products in a row": (2, T, [f"{T} = dot x, w", f"{T} = dot {{0}}, v"]),
    "two products of one operand": (
        1,
        f"({T}, {T})",
        [f"{T} = dot x, w", f"{T} = dot x, v", f"({T}, {T}) = ({{0}}, {{1}})"],
    ),
    "two products of different form of one operand": (
        2,
        f"({T}, {T})",
        [f"{T} = dot x, w", f"{T} = dot_vjp_l x, v", f"({T}, {T}) = ({{0}}, {{1}})"],
    ),
    "a normalization that is scaled and shifted": (1, T, [*NORMALIZED, f"{T} = mul {{5}}, b", f"{T} = add {{6}}, b"]),
    "a normalization before a product": (2, T, [*NORMALIZED, f"{T} = dot {{5}}, w"]),
    "softmax and its gradient": (
        1,
        T,
        [
            f"{T} = softmax axis model x",
            f"{T} = mul c, {{0}}",
            "ℝ[batch: B] = sum axis model {1}",
            f"{T} = broadcast_like axis model {{2}}, x",
            f"{T} = sub c, {{3}}",
            f"{T} = mul {{0}}, {{4}}",
        ],
    ),
    "the gradient of a bias with that of its matrix": (
        1,
        "(ℝ[D], ℝ[D, D])",
        ["ℝ[D] = sum_to c, b", "ℝ[D, D] = dot_vjp_r x, c", "(ℝ[D], ℝ[D, D]) = ({0}, {1})"],
    ),
    "the gradient of a bias with that of a row of weights": (
        2,
        "(ℝ[], ℝ[D])",
        ["ℝ[batch: B] = dot c, b", "ℝ[] = sum {0}", "ℝ[D] = dot_vjp_r x, {0}", "(ℝ[], ℝ[D]) = ({1}, {2})"],
    ),
    "what a load depends on is computed anew": (
        2,
        T,
        [f"{T} = exp x", f"{T} = dot {{0}}, w", f"{T} = dot {{1}}, v", f"{T} = mul {{2}}, {{0}}"],
    ),
    "a sum over rows and one over columns": (
        2,
        "(ℝ[batch: B], ℝ[D])",
        ["ℝ[batch: B] = sum axis model x", "ℝ[D] = sum_to x, b", "(ℝ[batch: B], ℝ[D]) = ({0}, {1})"],
    ),
    "a sum of a product's result": (2, "ℝ[batch: B]", [f"{T} = dot x, w", "ℝ[batch: B] = sum axis model {0}"]),
    "what is shared is computed once or anew, not launched": (
        1,
        f"({T}, {T})",
        [f"{T} = exp x", f"{T} = add {{0}}, b", f"{T} = mul {{0}}, c", f"({T}, {T}) = ({{1}}, {{2}})"],
    ),
    "a product of what is made of ones": (
        1,
        "ℝ[D, D]",
        ["ℝ[D, D] = ones", "ℝ[D, D] = mul s, {0}", "ℝ[D, D] = dot {1}, w"],
    ),
    "ones times ones": (2, "ℝ[D, D]", ["ℝ[D, D] = ones", "ℝ[D, D] = dot {0}, {0}"]),
    "views and constants alone": (0, "ℝ[]", ["ℝ[] = const 2"]),
    "zeros that are the result": (1, "ℝ[D]", ["ℝ[D] = zeros"]),
}  # fmt: skip


def function(result: str, lines: list[str]) -> Program:
    names = [f"%{6 + i}" for i in range(len(lines))]
    text = "".join(f"  {n} : {line.format(*names)}\n" for n, line in zip(names, lines, strict=True))
    return read(f"fn f{{B D}}({HEAD}) -> {result} {{\n{text}  return {names[-1]}\n}}")


@pytest.mark.parametrize("name", SHAPES)
def test_kernels(name: str):
    count, result, lines = SHAPES[name]
    fused = fuse(function(result, lines), "f", DIMS)
    assert (fused.work.kernels, fused.gap) == (count, 0.0)
    assert sum(f.kernel for f in fused.program.functions.values()) == count


def cheapest(graph: Graph) -> int:
    """By Dijkstra's algorithm over what is in memory, every kernel there is being a step."""
    space = Space(graph)
    task = task_of(graph, space, candidates(graph, space, len(ORDERS)))
    best, heap = {0: 0}, [(0, 0)]
    while heap:
        cost, memory = heapq.heappop(heap)
        if cost > best[memory]:
            continue
        if not task.result & ~memory:
            return cost
        for kernel, needs in zip(task.kernels, task.needs, strict=True):
            after = memory | sum(1 << v for v in kernel.outputs)
            if not needs & ~memory and cost + kernel.units < best.get(after, 1 << 62):
                best[after] = cost + kernel.units
                heapq.heappush(heap, (best[after], after))
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_a_small_graph_is_partitioned_as_cheaply_as_it_can_be(seed: int):
    program = random_program(seed, 8 + seed % 5)
    graph = graph_of(live(program.functions["f"]), CostModel({}, DIMS))
    if sum(n.work for n in graph.nodes) > EVERY_SET:
        graph = graph_of(live(random_program(seed, 6).functions["f"]), CostModel({}, DIMS))
    found = partition(graph, 5.0)
    assert (found.units, found.gap) == (cheapest(graph), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_grown_is_no_dearer_than_what_was_and_the_same_each_time(seed: int):
    program = random_program(seed, 60)
    graph = graph_of(live(program.functions["f"]), CostModel({}, DIMS))
    space = Space(graph)
    each = (space.kernels(1 << n.index) for n in graph.nodes if n.work)
    alone = sum(found[0].units for found in each if found)  # none for what only lends its type
    found = partition(graph, 1.0)
    assert found.units < alone
    assert found == partition(graph, 1.0)


def test_a_large_graph_is_partitioned_in_parts(monkeypatch: pytest.MonkeyPatch):
    program = residual_gradient(3)
    graph = graph_of(live(program.functions["f"]), CostModel(program.modules, {"B": 8, "D": 4, "H": 8}))
    whole = partition(graph, 2.0)
    monkeypatch.setattr("presk_rel.egraph.fusion.partition.WHOLE", 20)
    monkeypatch.setattr("presk_rel.egraph.fusion.partition.PART", 15)
    parts = partition(graph, 2.0)
    assert len(whole.kernels) <= len(parts.kernels) < 2 * len(whole.kernels)
    made = fuse(program, "f", {"B": 8, "D": 4, "H": 8}, 2.0)
    assert made.work.kernels == len(parts.kernels)
    assert check_fused("f", program, made.program) == []


def alternating(lines: int) -> Program:
    """Entry by entry work of one index space: one kernel, however much there is."""
    b = Builder()
    x, w = b.param("x", real(8)), b.param("w", real(8))
    for i in range(lines):
        x, w = b.prim("mul" if i % 2 else "add", real(8), x, w), x
    return b.program(x)


def looks(program: Program) -> tuple[int, int]:
    """The operations of all sets that were looked at, and the kernels that were chosen."""
    graph = graph_of(program.functions["f"], CostModel({}, {}))
    space = Space(graph)
    found = candidates(graph, space, len(ORDERS))
    assert not found.cut
    return space.looked, min(map(len, found.partitions))


def test_looks_grow_with_the_graph_also_where_all_of_it_is_one_kernel():
    (some, one), (more, also_one) = looks(alternating(160)), looks(alternating(640))
    assert (one, also_one) == (1, 1)
    assert more <= 6 * some


def test_growing_ends_at_its_limit_and_says_so(monkeypatch: pytest.MonkeyPatch):
    program = alternating(100)
    monkeypatch.setattr("presk_rel.egraph.fusion.candidates.LOOKS", 3)
    made = fuse(program, "f", {}, 2.0)
    assert made.cut
    assert check_fused("f", program, made.program) == []


def test_growing_ends_with_the_seconds_of_the_user():
    program = alternating(100)
    made = fuse(program, "f", {}, 2.0, seconds=0.0)
    assert made.cut
    assert made.work.kernels == 100
    assert check_fused("f", program, made.program) == []


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("part", [1, 3, 7])
def test_parts_hand_on_all_that_later_ones_read(seed: int, part: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("presk_rel.egraph.fusion.partition.WHOLE", part)
    monkeypatch.setattr("presk_rel.egraph.fusion.partition.PART", part)
    program = random_program(seed, 40)
    made = fuse(program, "f", DIMS, 0.1)
    assert check_fused("f", program, made.program) == []
