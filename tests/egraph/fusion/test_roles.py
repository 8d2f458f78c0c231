"""Every primitive has a role in fusion, and reads its operands at axes of their lengths."""

from __future__ import annotations

from pathlib import Path

from presk_rel.core.ir import Prim
from presk_rel.core.prims import PRIMS
from presk_rel.core.reader import read_program
from presk_rel.diagnostics import Diagnostics
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.fusion.graph import graph_of
from presk_rel.egraph.fusion.roles import ROLES, rank_of, shape_of

ZOO = Path(__file__).parents[2] / "core" / "zoo.core"


def test_every_primitive_has_a_role():
    assert set(ROLES) == set(PRIMS)


def test_a_view_moves_nothing_and_nothing_else_is_one():
    views = {op for op, role in ROLES.items() if role == "view"}
    assert {op for op in views if not PRIMS[op].view} == {"split_key"}  # which the host does
    assert {op for op, row in PRIMS.items() if row.view} - views == {"const", "dim", "real"}  # known without a launch


def test_the_axes_at_which_operands_are_read_have_their_lengths():
    program = read_program(ZOO.read_text(encoding="utf-8"), "zoo.core", Diagnostics())
    assert program is not None
    model = CostModel(program.modules, {}, program.functions)
    seen: set[str] = set()
    for function in program.functions.values():
        graph = graph_of(function, model)
        for node in graph.nodes:
            x, shape = node.indexing, shape_of(node.binding.type)
            if x is None or shape is None:
                continue
            assert isinstance(node.binding.op, Prim)
            seen.add(node.binding.op.op)
            lengths: dict[int, set[str]] = {}
            for place, axis in zip(range(rank_of(shape) - len(shape.axes), rank_of(shape)), shape.axes):
                lengths.setdefault(place, set()).add(str(axis.length))
            for v, places in node.reads:
                of = shape_of(graph.types[v])
                if places is None or of is None:
                    continue
                assert len(places) == rank_of(of) and len(set(places)) == len(places)
                for place, axis in zip(places[rank_of(of) - len(of.axes) :], of.axes, strict=True):
                    lengths.setdefault(place, set()).add(str(axis.length))
            assert x.rank == rank_of(shape)
            assert set(lengths) <= set(range(x.rank + x.summed))
            assert all(len(found) == 1 for found in lengths.values()), (node.binding, lengths)
    rows = {op for op, role in ROLES.items() if role in ("reduction", "row", "contraction", "scatter", "expand")}
    assert seen >= rows
