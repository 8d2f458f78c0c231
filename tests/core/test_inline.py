"""Inlining: the flat form of an entry means what the entry means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Fold, Prim, Program
from presk_rel.core.lower import lower
from presk_rel.core.printer import print_function
from presk_rel.core.reader import load
from presk_rel.core.values import Store, Zero
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics, PreskBug, PreskError
from tests.core.build import well_typed
from tests.core.evaluate import evaluate, sample
from tests.core.typed import mlp
from tests.golden import check, sections

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.core"))


def parsed(text: str) -> Program:
    diagnostics = Diagnostics()
    program = load(text, "t.core", diagnostics)
    assert program is not None, diagnostics.items
    return program


def leaves(value: Any) -> list[Any]:
    match value:
        case dict():
            return [leaf for k in value for leaf in leaves(value[k])]
        case tuple():
            return [leaf for v in value for leaf in leaves(v)]
        case _:
            return [value]


def same(a: Any, b: Any) -> bool:
    pairs = list(zip(leaves(a), leaves(b), strict=True))
    return all(np.shape(x) == np.shape(y) and np.allclose(x, y, equal_nan=True) for x, y in pairs)


def agrees(program: Program, entry: str, dims: dict[str, int], seed: int = 0) -> bool:
    """The flat form, symbolic and at the dims, gives what the entry gives, and is well-formed and flat."""
    rng = np.random.default_rng(seed)
    args = tuple(sample(program, p.type, dims, rng) for p in program.functions[entry].params)
    expected = evaluate(program, entry, args, dims)
    for fixed in (None, dims):
        flat = inline_entry(program, entry, fixed)
        assert problems(flat) == []
        assert all(isinstance(b.op, Prim | Fold) for f in flat.functions.values() for b in f.bindings)
        if not same(expected, evaluate(flat, entry, args, dims)):
            return False
    return True


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_golden(path: Path, update_golden: bool) -> None:
    program = parsed(sections(path)["core"])
    produced: dict[str, str] = {}
    for name, f in program.functions.items():
        if any("..." in str(p.type) for p in f.params) and name != "generic":
            continue
        flat = inline_entry(program, name)
        assert problems(flat) == []
        assert "..." in str(f.params[0].type) or agrees(program, name, dict.fromkeys(f.dims, 2))
        produced[f"flat {name}"] = "\n".join(print_function(g, flat) for g in flat.functions.values())
    check(path, produced, update_golden)


@pytest.mark.parametrize("block", range(10))
def test_random_programs_keep_their_meaning(block: int) -> None:
    """Every length is one dim, and names are absent, equal or different at random: alignment has only the static types
    of each function to go by."""
    for seed in range(block * 15, block * 15 + 15):
        assert agrees(well_typed(seed), "main", {"D": 2}, seed), seed


@pytest.mark.slow
def test_many_random_programs_keep_their_meaning() -> None:
    for seed in range(1000, 6000):
        assert agrees(well_typed(seed), "main", {"D": 2}, seed), seed


class TestThePerceptron:
    def test_reads_each_parameter_once(self) -> None:
        flat = inline_entry(lower(mlp()), "mse")
        reads = [b.op for b in flat.functions["mse"].bindings if isinstance(b.op, Prim) and b.op.op == "field"]
        assert len(reads) == len(set(reads)) == 6

    def test_dims_may_be_fixed(self) -> None:
        flat = inline_entry(lower(mlp()), "mse", {"B": 3, "D": 2})
        f = flat.functions["mse"]
        assert f.dims == ()
        assert [str(p.type) for p in f.params] == ["params MLP{2, 8}", "ℝ[batch: 3, model: 2]", "ℝ[batch: 3, model: 2]"]

    def test_an_entry_keeps_its_prefix(self) -> None:
        flat = inline_entry(lower(mlp()), "MLP.apply")
        assert str(flat.functions["MLP.apply"].result) == "ℝ[..., D]"

    def test_an_initializer_is_flat_too(self) -> None:
        flat = inline_entry(lower(mlp()), "MLP.init")
        assert list(flat.functions) == ["MLP.init"]
        assert problems(flat) == []

    def test_an_entry_takes_no_function(self) -> None:
        text = "fn f(g : (ℝ[]) -> ℝ[], x : ℝ[]) -> ℝ[] {\n  %2 : ℝ[] = apply g(x)\n  return %2\n}\n"
        with pytest.raises(PreskError) as raised:
            inline_entry(parsed(text), "f")
        assert raised.value.exit_status == 3
        assert raised.value.diagnostics[0].code == "E7019"

    def test_grad_must_be_gone(self) -> None:
        with pytest.raises(PreskBug, match="differentiate first"):
            inline_entry(lower(mlp()), "mse_grad")


def chain(n: int) -> Program:
    """`f` calls `g` n times and adds cotangents of one tree n times."""
    lines = [
        "module M{D} {\n  param w : ℝ[D]  init = zeros\n  param b : ℝ[D]  init = zeros\n}\n",
        "fn g{D}(x : ℝ[..., D], θ : params M{D}) -> ℝ[..., D] {",
        "  w : ℝ[D] = θ.w\n  %3 : ℝ[..., D] = mul x, w\n  return %3\n}\n",
        "fn f{D}(x : ℝ[D], θ : params M{D}) -> (ℝ[D], params M{D}) {",
        "  t0 : params M{D} = zeros_like θ",
    ]
    previous = "x"
    for i in range(n):
        lines.append(f"  x{i} : ℝ[D] = call g{{D = D}}({previous}, θ)")
        lines.append(f"  z{i} : params M{{D}} = zeros_like θ")
        lines.append(f"  s{i} : params M{{D}} = set_field {'w' if i % 2 else 'b'} z{i}, x{i}")
        lines.append(f"  t{i + 1} : params M{{D}} = add t{i}, s{i}")
        previous = f"x{i}"
    lines.append(f"  r : (ℝ[D], params M{{D}}) = ({previous}, t{n})\n  return r\n}}")
    return parsed("\n".join(lines) + "\n")


class TestSize:
    @pytest.mark.parametrize("n", [10, 100, 1000])
    def test_the_flat_form_is_linear_in_the_bindings(self, n: int) -> None:
        flat = inline_entry(chain(n), "f")
        assert problems(flat) == []
        assert len(flat.functions["f"].bindings) == 2 * n + 1

    def test_deep_chains_of_calls(self) -> None:
        lines = ["fn f0(x : ℝ[]) -> ℝ[] {\n  y : ℝ[] = neg x\n  return y\n}\n"]
        lines.extend(
            f"fn f{i}(x : ℝ[]) -> ℝ[] {{\n  y : ℝ[] = call f{i - 1}(x)\n  return y\n}}\n" for i in range(1, 1500)
        )
        flat = inline_entry(parsed("".join(lines)), "f1499")
        assert [str(b.op) for b in flat.functions["f1499"].bindings] == ["Prim(op='neg', attrs=(), args=('x',))"]

    def test_what_nothing_reads_is_gone(self) -> None:
        program = parsed("fn f(x : ℝ[]) -> ℝ[] {\n  y : ℝ[] = exp x\n  z : ℝ[] = neg x\n  return z\n}\n")
        assert len(inline_entry(program, "f").functions["f"].bindings) == 1


def test_zero_trees_are_not_written_out() -> None:
    store = Store(lower(mlp()).modules)
    ty = lower(mlp()).functions["mse"].params[0].type
    assert isinstance(store.get(Zero(ty), "l1"), Zero)
    assert store.drafts == []
