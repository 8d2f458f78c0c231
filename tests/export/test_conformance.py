"""Every exported example, at f64, against the proven value of the program."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from presk_rel.elab.ty import map_dims
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.smt.linear import constant

from .load import EXAMPLES, argument, exported, furthest

SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
IMPORTED = {f"m.{k}": v for k, v in SMALL.items()}
Case = tuple[str, str, dict[str, int], dict[str, int], dict[str, str]]
CASES: list[Case] = [
    ("mlp.psk", "mse", {"B": 2, "D": 3}, {}, {"net": "MLP(3, 12)"}),
    ("mlp.psk", "mse_grad", {"B": 2, "D": 3}, {}, {"net": "MLP(3, 12)"}),
    ("tour/deep.psk", "loss_grad", {"B": 2, "D": 3}, {}, {"net": "Deep(3, 6)"}),
    ("tour/grad_of_function.psk", "force", {"N": 4}, {}, {}),
    ("tour/grad_of_function.psk", "pair_grad", {"N": 4}, {}, {}),
    ("tour/hinge.psk", "hinge_grad", {"N": 5, "D": 3}, {}, {}),
    ("tour/hinge.psk", "smooth", {"N": 5, "D": 3}, {}, {}),
    ("tour/linear_regression.psk", "loss_grad", {"N": 5, "D": 3}, {}, {}),
    ("train_minigpt.psk", "loss", {"B": 2, "T": 3}, IMPORTED, {}),
    ("train_minigpt.psk", "loss_grad", {"B": 1, "T": 3}, IMPORTED, {}),
    ("gpt.psk", "loss_grad", {"B": 1, "T": 3}, SMALL, {}),
]


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def conforms(
    path: Path,
    folder: Path,
    entry: str,
    dims: dict[str, int],
    consts: dict[str, int],
    nets: dict[str, str],
    given: dict[str, Any] | None = None,
) -> None:
    session, module = exported(path, folder, consts)
    program = session.differentiated
    exact = run_exact(program, entry, given or {}, dims, options=Options(bits=96))
    function = program.functions[entry]
    numbers = dict(exact.dims)
    types = [_closed(p.type, numbers) for p in function.params]
    values = [argument(program.modules, t, v) for t, v in zip(types, exact.args, strict=True)]
    modules = [eval(text, module.__dict__) for text in nets.values()]  # our own text; modules come first
    result = getattr(module, PYTHON.get(entry, entry))(*modules, *values)
    assert furthest(result, argument(program.modules, _closed(function.result, numbers), exact.value)) < 1e-12


PYTHON = {"lambda": "lambda_"}


def _closed(ty: Any, dims: dict[str, int]) -> Any:
    return map_dims(ty, lambda d: d.substitute({k: constant(n) for k, n in dims.items()}))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}:{c[1]}")
def test_example(case: Case, tmp_path: Path):
    path, entry, dims, consts, nets = case
    conforms(EXAMPLES / path, tmp_path, entry, dims, consts, nets)


PROGRAMS: dict[str, tuple[str, str, dict[str, int]]] = {
    "broadcasting by name": (
        "fn f(x : ℝ[a: A, b: B, c: C], y : ℝ[a: A, c: C], z : ℝ[c: C, a: A]) -> ℝ[a: A, b: B, c: C] = x * y + z",
        "f",
        {"A": 2, "B": 2, "C": 2},
    ),
    "functions of numbers": (
        "fn f(x : ℝ[a: A], n : nat) -> ℝ[a: A] = x * (sqrt(2.5) + exp(real(n + 1)) / 3) - 1 / 7",
        "f",
        {"A": 2},
    ),
    "choices": (
        "fn f(x : ℝ[a: A, b: B], y : ℝ[b: B]) -> (ℝ[a: A, b: B], idx[B][a: A], ℝ[b: B]) = "
        "(clamp(max(x, y), 0.1, 0.7), argmax(x), min(y, 0.2))",
        "f",
        {"A": 2, "B": 3},
    ),
    "places": (
        "fn f(x : ℝ[a: A, b: 6, c: 2]) -> (ℝ[c: 2], ℝ[a: A, c: 2], ℝ[a: A, b: 4, c: 2], ℝ[a: A, 12]) = "
        "(x[a: 0, b: -1], x[b: 2], x[b: 1 .. 5], merge(axis b, axis c, x))",
        "f",
        {"A": 2},
    ),
    "joins": (
        "fn f(x : ℝ[a: A, b: 6], y : ℝ[a: A, b: 6]) -> (ℝ[a: A, b: 12], ℝ[a: A, m: 2, n: 3]) = "
        "(concat(axis b, x, y), split(axis b, m: 2, n: 3, x))",
        "f",
        {"A": 2},
    ),
    "derivatives along": (
        "fn g(x : ℝ[a: A]) -> ℝ[a: A] = sin(x) * sum(x)\n\n"
        "fn f(x : ℝ[a: A], v : ℝ[a: A]) -> (ℝ[a: A], ℝ[a: A]) = (vjp(g)(x, v), jvp(g)(x, v))",
        "f",
        {"A": 3},
    ),
    "lambdas with lets": (
        "fn f(x : ℝ[a: A]) -> ℝ[a: A] =\n  grad(λ x.\n    let y = x * x\n    let x = sum(y)\n    x * x)(x)",
        "f",
        {"A": 3},
    ),
    "names hidden": (
        "fn f(x : ℝ[a: A]) -> ℝ[a: A] =\n  let y = x\n  let x = exp(x)\n  let x = x * y\n  x - y",
        "f",
        {"A": 3},
    ),
    "hostile names": (
        "fn lambda(class : ℝ[None: __import__], torch : ℝ[None: __import__], __class__ : ℝ[]) -> ℝ[__import__] =\n"
        "  let F = class * torch\n  let nn = F + __class__\n  let ﬁ = nn * nn\n  let fi = ﬁ + F\n"
        "  let l = fi - ﬁ\n  l + fi",
        "lambda",
        {"__import__": 3},
    ),
    "a composition": (
        "module P{I O : dim} {\n  param w : ℝ[I, O]  init = xavier_uniform\n"
        "  fn apply(x : ℝ[..., I]) -> ℝ[..., O] = x · w\n}\n\n"
        "module Q{N : dim} {\n  use pair : P{3, N} ∘ P{N, 3}\n  use many : stack{2}(P{N, N})\n"
        "  fn apply(x : ℝ[..., N]) -> ℝ[..., N] = many.apply(pair.apply(x))\n"
        "  fn energy(x : ℝ[..., N]) -> ℝ[] = sum(apply(x)^2)\n}\n\n"
        "fn f{N : dim}(net : Q{N}, θ : params net, x : ℝ[a: A, N]) -> ℝ[] = net.energy(θ, x) + sum(net.apply(θ, x))",
        "f",
        {"A": 2, "N": 4},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path):
    text, entry, dims = PROGRAMS[name]
    path = tmp_path / "page.psk"
    symbols = sorted(d for d in dims if f"{d} : dim" not in text)
    path.write_text("".join(f"dim {d}\n" for d in symbols) + "\n" + textwrap.dedent(text) + "\n", encoding="utf-8")
    given = {"n": np.array(2)} if "n : nat" in text else {}
    nets = {"net": "Q(4)"} if "net :" in text else {}
    conforms(path, tmp_path, entry, dims, {}, nets, given)
