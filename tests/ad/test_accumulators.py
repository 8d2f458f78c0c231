"""Backward folds keep the accumulators someone reads, and residual stacks hold indices and masks: no digit changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from presk_rel.ad.body import zeros_exist
from presk_rel.core.ir import Fold, Function, Program
from presk_rel.elab.ty import SCALAR, SCALAR_REAL, Hyper, Idx, Key, Mask, TupleOf, Type
from presk_rel.exec.exact.run import Options
from presk_rel.exec.values import Tensor, leaves
from presk_rel.session import Request, Session
from presk_rel.smt.linear import constant
from tests.exec.oracle import texts

GRAPH = """\
dim N

type Nodes = ℝ[node: N, f: 4]
type Edges = ℝ[node: N, node2: N]
type Kinds = ℝ[node: N, k: 3]

module Layer {
  param w : ℝ[4, 4]         init = xavier_uniform
  param e : ℝ[kinds: 3, 4]  init = normal(std = 0.5)
  fn apply(x : Nodes, a : Edges, kind : Kinds) -> Nodes =
    let h = (tanh(x · w) : Nodes)
    let s = softmax(axis node2, ein[node, node2](h * h) * a, where = ein[node, node2](kind * kind) > 0)
    x + ein[node, f](s * h) + embed(e, argmax(kind))
}

module Net {
  use rows : stack{2}(Layer)
  fn apply(x : Nodes, a : Edges, kind : Kinds) -> Nodes = rows.apply(x, a, kind)
}

module Deep {
  use nets : stack{2}(Net)
  fn apply(x : Nodes, a : Edges, kind : Kinds) -> Nodes = nets.apply(x, a, kind)
}

fn loss(θ : params Deep, x : Nodes, a : Edges, kind : Kinds) -> ℝ[] = mean(Deep.apply(θ, x, a^2 + 0.1, kind)^2)

fn by_parameters(θ : params Deep, x : Nodes, a : Edges, kind : Kinds) -> params Deep =
  grad(λ θ. loss(θ, x, a, kind))(θ)

fn by_edges(θ : params Deep, x : Nodes, a : Edges, kind : Kinds) -> Edges = grad(λ a. loss(θ, x, a, kind))(a)

fn by_nodes(θ : params Deep, x : Nodes, a : Edges, kind : Kinds) -> Nodes = grad(λ x. loss(θ, x, a, kind))(x)
"""
ENTRIES = ("by_parameters", "by_edges", "by_nodes")
REQUEST = Request(dims={"N": 3}, optimize=False)


def session(folder: Path, *, of: str = "", remat: Any = "store") -> Session:
    """All of the entries, or one alone: what the others read would stay."""
    head, *entries = GRAPH.split("\nfn by_")
    kept = [e for e in entries if not of or f"by_{e}".startswith(of)]
    path = folder / "graph.psk"
    path.write_text("\nfn by_".join([head, *kept]), encoding="utf-8")
    return Session(str(path), remat=remat)


def backward_folds(program: Program) -> list[tuple[Function, Fold]]:
    found = [(f, b.op) for f in program.functions.values() for b in f.bindings if isinstance(b.op, Fold)]
    return [(f, op) for f, op in found if "fold_bwd" in op.body]


def carried(program: Program, body: str) -> list[str]:
    """What the backward fold over `body` carries."""
    ((_, op),) = [(f, op) for f, op in backward_folds(program) if op.body.startswith(f"{body}.fold_bwd")]
    ty = program.functions[op.body].params[len(op.stacked)].type
    assert isinstance(ty, TupleOf)
    return [str(t) for t in ty.items]


NODES, EDGES = "ℝ[node: N, f: 4]", "ℝ[node: N, node2: N]"


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_what_nothing_reads_is_not_carried(remat: Any, tmp_path: Path) -> None:
    """In nested folds too. By the parameters neither cotangent of the extras is carried; by the edges theirs is, and
    so is that of the nodes, from which the layer below computes its own."""
    for of, layer in (("by_parameters", [NODES, "params Layer"]), ("by_edges", [NODES, EDGES]), ("by_nodes", [NODES])):
        program = session(tmp_path, of=of, remat=remat).differentiated
        assert carried(program, "Layer.apply") == layer
        assert carried(program, "Net.apply") == [t.replace("Layer", "Net") for t in layer]


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_digit_changes(entry: str, tmp_path: Path) -> None:
    """Alone and beside the others, kept or computed again, and bit for bit on torch."""
    alone, beside = session(tmp_path, of=entry), session(tmp_path)
    computed = session(tmp_path, of=entry, remat="recompute")
    exact = [texts(s.run_exact(entry, REQUEST, Options(bits=96)).value) for s in (alone, beside, computed)]
    assert exact[0] == exact[1] == exact[2]
    for dtype in ("f64", "f32"):
        runs = [s.run_torch(entry, REQUEST, dtype, "cpu").value for s in (alone, beside, computed)]
        bits = [[leaf.data.tobytes() for _, leaf in leaves(v) if isinstance(leaf, Tensor)] for v in runs]
        assert bits[0] == bits[1] == bits[2]


def test_a_layer_that_reads_an_index_keeps_its_residuals(tmp_path: Path) -> None:
    program = session(tmp_path, of="by_parameters").differentiated
    assert "idx[3][node: N]" in str(program.functions["Layer.apply.bwd"].params[-2].type)
    assert all("_kept" in op.body for _, op in backward_folds(program))


@pytest.mark.parametrize(
    ("ty", "exist"),
    [
        (SCALAR_REAL, True),
        (Mask(SCALAR), True),
        (Idx(constant(3), SCALAR), True),
        (TupleOf((SCALAR_REAL, Mask(SCALAR))), True),
        (Key(), False),
        (TupleOf((SCALAR_REAL, Key())), False),
        (Hyper("nat"), False),
    ],
    ids=str,
)
def test_what_has_zeros_to_start_a_stack_with(ty: Type, exist: bool) -> None:
    assert zeros_exist(ty) is exist
