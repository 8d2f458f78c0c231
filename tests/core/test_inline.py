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
from presk_rel.elab.ty import Real
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


TREES = """\
module M{D} {
  param w : ℝ[D]  init = zeros
  param b : ℝ[D, D]  init = zeros
}

fn trees{D}(θ : params M{D}, η : params M{D}, x : ℝ[], s : params stack{3}(M{D}))
    -> (params M{D}, params stack{2}(M{D})) {
  a : params M{D} = mul θ, η
  b : params M{D} = pow 2 a
  c : params M{D} = add x, b
  d : params M{D} = sub c, x
  e : params M{D} = div d, c
  f : params M{D} = sub x, e
  g : params M{D} = neg f
  z : params M{D} = zeros_like θ
  h : params M{D} = mul z, g
  i : params M{D} = add h, x
  j : ℝ[] = sum_squares i
  k : params M{D} = mul j, g
  l : params M{D} = slice_params 2 s
  m : params stack{3}(M{D}) = scatter_params 1 l, s
  n : params stack{3}(M{D}) = set_slice 0 m, k
  o : params M{D} = slice_params 0 n
  p : params M{D} = slice_params 1 n
  q : params M{D} = slice_params 2 n
  r : params stack{2}(M{D}) = stack_params o, q
  u : params M{D} = div p, j
  v : params M{D} = sub k, u
  y : (params M{D}, params stack{2}(M{D})) = (v, r)
  return y
}
"""

AXES = """\
fn heads{D}(x : ℝ[..., seq: D, model: 6], m : bool[seq2: D], i : idx[6][seq: D], w : ℝ[6, D])
    -> ℝ[..., seq: D, model: 6] {
  h : ℝ[..., heads: 2, seq: D, hd: 3] = split_heads 2x3 x
  y : ℝ[..., seq: D, model: 6] = merge_heads 2x3 h
  z : ℝ[..., seq: D, a: 2, b: 3] = split axis model a: 2 b: 3 y
  v : ℝ[..., seq: D, model: 6] = merge axis a axis b z
  t : ℝ[..., seq: D, seq2: D] = dot v, w
  s : ℝ[..., seq: D, seq2: D] = softmax axis seq2 t, m
  e : ℝ[seq: D, D] = embed w, i
  c : ℝ[..., seq: D] = sum axis seq2 s
  o : ℝ[seq: D, 6] = one_hot i
  l : ℝ[seq: D] = cross_entropy o, i
  q : ℝ[..., seq: D] = add c, l
  p : ℝ[..., seq: D, model: 6] = broadcast_like axis model q, x
  r : ℝ[..., model: 6] = index seq: -1 p
  k : ℝ[..., seq: D, model: 6] = scatter_index 0: 0 r, x
  n : ℝ[..., seq: 1, model: 6] = slice seq: 0..1 k
  f : ℝ[..., seq: D, model: 6] = slice_vjp seq: 0..1 n, x
  g : ℝ[..., seq: 1 + D, model: 6] = concat seq n, f
  d : ℝ[..., model: 6] = index 0: 1 g
  j : ℝ[..., seq: D, model: 6] = broadcast_like axis seq d, x
  b : ℝ[..., seq: D, model: 6] = max j, y
  return b
}

fn AXES_NAMES{D}(x : ℝ[LEAD, D, 6], m : bool[D], i : idx[6][D], w : ℝ[6, D]) -> ℝ[LEAD, D, 6] {
  y : ℝ[LEAD, D, 6] = call heads{D = D}(x, m, i, w)
  return y
}
"""


class TestTheWholeLanguage:
    def test_trees_and_stacks(self) -> None:
        program = parsed(TREES)
        assert agrees(program, "trees", {"D": 2})
        flat = inline_entry(program, "trees").functions["trees"]
        whole = {b.op.op for b in flat.bindings if isinstance(b.op, Prim) and not isinstance(b.type, Real)}
        assert whole <= {"field", "record", "tuple"}

    @pytest.mark.parametrize(
        "lead", ["seq: 2", "model: 2", "hd: 2, heads: 6", "a: D, seq2: D", "D, D", "b: 3, model: D"]
    )
    def test_axes_of_any_names_in_front(self, lead: str) -> None:
        """The prefix becomes axes of the names that the function itself uses."""
        assert agrees(parsed(AXES.replace("LEAD", lead)), "AXES_NAMES", {"D": 2})

    def test_derivatives_must_be_gone(self) -> None:
        text = """\
fn f(x : ℝ[]) -> ℝ[] {
  g : (ℝ[]) -> ℝ[] = closure h[]
  j : (ℝ[], ℝ[]) -> ℝ[] = jvp g
  y : ℝ[] = apply j(x, x)
  return y
}

fn h(x : ℝ[]) -> ℝ[] {
  y : ℝ[] = exp x
  return y
}
"""
        with pytest.raises(PreskBug, match="differentiate first"):
            inline_entry(parsed(text), "f")


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


def test_a_cotangent_may_be_named_otherwise_than_what_it_is_computed_from() -> None:
    """The last axis of x is `model` where it is called, and w calls it `in`."""
    program = parsed(
        "fn linear{B In Out}(x : ℝ[batch: B, In], w : ℝ[in: In, Out], ct : ℝ[batch: B, Out]) -> ℝ[batch: B, In] {\n"
        "  %4 : ℝ[batch: B, In] = dot_vjp_l ct, w\n"
        "  %5 : ℝ[batch: B, In] = add %4, x\n"
        "  return %4\n"
        "}\n"
        "fn f{B D}(x : ℝ[batch: B, model: D], w : ℝ[in: D, out: D], ct : ℝ[batch: B, D]) -> ℝ[batch: B, model: D] {\n"
        "  %4 : ℝ[batch: B, model: D] = call linear{B = B, In = D, Out = D}(x, w, ct)\n"
        "  %5 : ℝ[batch: B, model: D] = add %4, x\n"
        "  return %5\n"
        "}\n"
    )
    assert agrees(program, "f", {"B": 2, "D": 3})
