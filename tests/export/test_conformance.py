"""Every exported example, at f64, against the proven value of the program."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from presk_rel.core.ir import Function
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import Instance, Type, map_dims, map_instance
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.literals import Node
from presk_rel.session import Session
from presk_rel.smt.linear import Linear, constant
from tests.acceptance.examples import EXAMPLES as FIELD

from .load import EXAMPLES, argument, exported, furthest

Given = Callable[[Function], tuple[dict[str, int], dict[str, Node]]]
"""The dims and arguments of an entry."""

SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
CONSTS = {"gpt.psk": SMALL, "minigpt.psk": SMALL, "train_minigpt.psk": {f"m.{k}": v for k, v in SMALL.items()}}
PATHS = [p for p in sorted(EXAMPLES.rglob("*.psk")) if p.parent.name != "diag"]
BY_PYTORCH = {"next_token", "act"}
"""Entries that draw by PyTorch's own generator."""


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def conforms(path: Path, folder: Path, entries: Iterable[str], consts: dict[str, int], given: Given) -> None:
    """Every entry's result by the exported file, against the proven one, on the same inputs."""
    session, module, made = exported(path, folder, consts)
    program = session.differentiated
    for entry in entries:
        dims, args = given(program.functions[entry])
        exact = run_exact(program, entry, args, dims, options=Options(bits=96))
        function = program.functions[entry]
        numbers = {k: constant(n) for k, n in exact.dims.items()}
        types = [_closed(p.type, numbers) for p in function.params]
        values = iter([argument(made, t, v) for t, v in zip(types, exact.args, strict=True)])
        arguments = [
            next(values) if net is None else eval(made.constructor(_at(net, numbers)), module.__dict__)
            for net in made.parameters(entry)
        ]
        keywords = {name: exact.dims[dim] for dim, name in made.keywords(entry).items()}
        result = getattr(module, made.context.functions[entry])(*arguments, **keywords)
        expected = argument(made, _closed(function.result, numbers), exact.value)
        assert furthest(result, expected) < 1e-12, entry


def _at(instance: Instance, dims: dict[str, Linear]) -> Instance:
    return map_instance(instance, lambda d: d.substitute(dims))


def _closed(ty: Type, dims: dict[str, Linear]) -> Type:
    return map_dims(ty, lambda d: d.substitute(dims))


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_every_function_of_an_example(path: Path, tmp_path: Path) -> None:
    def given(fn: Function) -> tuple[dict[str, int], dict[str, Node]]:
        known = next((e for e in FIELD if e.file == path.stem and e.entry == fn.name), None)
        values = {k: v for e in FIELD if e.file == path.stem for k, v in e.args.items()}
        args = {p.name: values[p.name] for p in fn.params if p.name in values}
        return known.dims if known else {d: 2 + (not args and i % 2) for i, d in enumerate(sorted(fn.dims))}, args

    consts = CONSTS.get(path.name, {})
    functions = [f for f in Session(str(path), consts).exported().context.functions if f not in BY_PYTORCH]
    conforms(path, tmp_path, functions, consts, given)


PROGRAMS: dict[str, tuple[str, str, dict[str, int]]] = {
    "broadcasting by name": (
        "fn f(x : ℝ[a: A, b: B, c: C], y : ℝ[a: A, c: C], z : ℝ[c: C, a: A]) -> ℝ[a: A, b: B, c: C] = x * y + z",
        "f",
        {"A": 2, "B": 2, "C": 2},
    ),
    "functions of numbers": (
        "fn f(n : nat, x : ℝ[a: A]) -> ℝ[a: A] = x * (sqrt(2.5) + exp(real(n + 1)) / 3) - 1 / 7",
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
    "member functions as values": (
        """
module Lin{D : dim} {
  param w : ℝ[D, D]  init = xavier_uniform
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = x · w
}
module Add{D : dim} {
  param w : ℝ[D, D]  init = xavier_uniform
  fn h(x : ℝ[..., D], y : ℝ[..., D]) -> ℝ[..., D] = x · w - y
  fn apply(x : ℝ[..., D], y : ℝ[..., D]) -> ℝ[..., D] =
    let f = h
    f(x, f(y, x))
}
module Net{D : dim} {
  use both : Lin{D} ∘ Lin{D}
  use more : stack{2}(Add{D})
  use one : Add{D}
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] =
    let f = both.apply
    let g = more.apply
    let k = one.apply
    g(k(f(x), x), x)
}
model N = Net{3}
model C = Lin{3} ∘ Add{3}
fn composed(θ : params C, x : ℝ[b: B, 3]) -> ℝ[b: B, 3] =
  let f = C.apply
  f(θ, x, x)
fn loss(θ : params N, τ : params C, x : ℝ[b: B, 3]) -> ℝ[] =
  let f = N.apply
  mean(f(θ, composed(τ, x))^2)
fn f(θ : params N, τ : params C, x : ℝ[b: B, 3]) -> (params N, params C) =
  (grad(λ t. loss(t, τ, x))(θ), grad(λ t. loss(θ, t, x))(τ))
""",
        "f",
        {"B": 2},
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
    "parts of stacked trees": (
        "module P{N : dim} {\n  param w : ℝ[N, N]  init = xavier_uniform\n"
        "  fn apply(x : ℝ[..., N]) -> ℝ[..., N] = tanh(x · w)\n"
        "  fn twice(x : ℝ[..., N]) -> ℝ[..., N] = apply(apply(x))\n}\n\n"
        "module Pair{N : dim} {\n  use xs : stack{2}(P{N})\n  use y : P{N}\n  param g : ℝ[N]  init = ones\n"
        "  fn apply(x : ℝ[..., N]) -> ℝ[..., N] = xs.apply(y.apply(x)) * g\n}\n\n"
        "module Net{N : dim} {\n  use pairs : stack{3}(Pair{N})\n  use deep : stack{2}(stack{3}(P{N} ∘ P{N}))\n"
        "  use none : stack{0}(P{N})\n"
        "  fn apply(x : ℝ[..., N]) -> ℝ[..., N] = none.apply(deep.apply(pairs.apply(x)))\n"
        "  fn inner(x : ℝ[..., N]) -> ℝ[..., N] = pairs.xs.apply(pairs.y.apply(pairs.y.twice(x)))\n"
        "  fn size(x : ℝ[..., N]) -> ℝ[..., N] =\n    x * sum(pairs.xs.w) + sum(pairs.g) +"
        " sum(pairs.xs.w[0]) + sum(none.w)\n"
        "}\n\n"
        "fn f{N : dim}(net : Net{N}, θ : params net, x : ℝ[a: A, N]) -> (ℝ[a: A, N], ℝ[a: A, N], ℝ[a: A, N], ℝ[]) =\n"
        "  let i = θ.pairs\n  let xs = θ.pairs.xs\n"
        "  let y = net.pairs.xs.apply(xs, net.pairs.apply(i, net.pairs.y.twice(i.y, x)))\n"
        "  let z = net.deep.apply(θ.deep, net.inner(θ, net.size(θ, x)))\n"
        "  let s = sum(i.g) + sum(xs.w) + sum(θ.deep.outer.w) + sum(θ.none.w)\n"
        "  let d = grad(λ p. sum(net.apply(p, x)))(θ).pairs.xs.w\n"
        "  (y, z, net.apply(θ, x), s + sum(d^2))",
        "f",
        {"A": 2, "N": 4},
    ),
    "axes as parameters": (
        "fn centred(axis i, axis j, x : ℝ[i: A, j: B]) -> ℝ[i: A, j: B] = (x - mean(axis j, x)) * sum(axis i, x)\n\n"
        "fn f(x : ℝ[a: A, b: B], y : ℝ[c: A, b: B]) -> (ℝ[a: A, b: B], ℝ[c: A, b: B]) =\n"
        "  (centred(axis a, axis b, x), centred(axis c, axis b, y))",
        "f",
        {"A": 2, "B": 3},
    ),
    "functions of modules as values": (
        "module P{N : dim} {\n  param w : ℝ[N, N]  init = xavier_uniform\n"
        "  fn apply(x : ℝ[..., N]) -> ℝ[..., N] = tanh(x · w)\n"
        "  fn energy(x : ℝ[..., N]) -> ℝ[] = sum(apply(x)^2)\n"
        "  fn force(x : ℝ[N]) -> ℝ[N] =\n    let e = energy\n    grad(e)(x)\n}\n\n"
        "fn f{N : dim}(net : P{N}, θ : params net, x : ℝ[N]) -> (ℝ[N], ℝ[N], ℝ[]) =\n"
        "  let g = net.apply\n  let h = net.energy\n  (g(θ, x), net.force(θ, x), h(θ, x))",
        "f",
        {"N": 3},
    ),
    "derivatives at ties": (
        "fn f(x : ℝ[a: A]) -> (ℝ[a: A], ℝ[a: A], ℝ[a: A], ℝ[a: A], ℝ[a: A]) =\n"
        "  let a = grad(λ y. sum(max(y, x) * 3))(x)\n"
        "  let b = grad(λ y. sum(max(x, y) + 2 * min(y, x) + 5 * min(x, y)))(x)\n"
        "  let c = grad(λ y. sum(clamp(y - x, (0 : ℝ), (1 : ℝ)) + clamp(1 + y - x, (0 : ℝ), (1 : ℝ))))(x)\n"
        "  (a, b, c, grad(λ y. sum(relu(y - x) + 2 * abs(x - y)))(x), max(0.3, min(x, 0.7)))",
        "f",
        {"A": 3},
    ),
    "numbers of any size": (
        "fn f(n : nat, x : ℝ[a: A]) -> (ℝ[a: A], ℝ[a: A], ℝ[], ℝ[]) =\n"
        "  let y = x * 1e300 / 1e300 + 10^20 * x - 1000000000 * 1000000000 * 10000000000 * x\n"
        "  (y, x * real(n)^70, 12345678901234567890, -3)",
        "f",
        {"A": 3},
    ),
    "quotients of integers": (
        "fn f(n : int, x : ℝ[a: A]) -> ℝ[a: A] = x + real(n / 2) * 10 + real(n / (n + 4)) * 100 + real(9 / 2)",
        "f",
        {"A": 2},
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
    args: dict[str, Node] = {"n": np.array(2 if "n : nat" in text else -7)} if "(n : " in text else {}
    conforms(path, tmp_path, [entry], {}, lambda _: (dims, args))


@pytest.mark.parametrize("number", ["1e400", "1e-400", "-1e500"])
def test_a_number_beyond_what_floats_hold_is_refused(number: str, tmp_path: Path):
    path = tmp_path / "page.psk"
    path.write_text(f"fn f(x : ℝ[]) -> ℝ[] = x * ({number})\n", encoding="utf-8")
    with pytest.raises(PreskError) as refused:
        Session(str(path)).exported()
    (said,) = refused.value.diagnostics
    assert (said.code, refused.value.exit_status) == ("E9001", 3)
    assert number.lstrip("-").replace("e", "e+").replace("e+-", "e-") in said.message
