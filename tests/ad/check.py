"""Gradients against central differences, in 320-bit arithmetic."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Apply, Binding, Call, Closure, Function, Grad, Jvp, Param, Prim, Program, Vjp
from presk_rel.core.shapes import tangent
from presk_rel.core.verify import verify
from presk_rel.elab.ty import SCALAR_REAL, Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.smt.linear import symbol
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import Value, asarray, flat, is_real, random_value, tree

BITS, STEP, CLOSE = 320, mp.mpf(2) ** -90, mp.mpf(2) ** -120
EXACT = mp.mpf(2) ** (40 - BITS)
"""Both sides of a duality are computed, not approximated: they agree up to rounding."""


def with_gradient(program: Program, of: str, suffix: str = "∇") -> Program:
    """The program with `of∇(captured…, θ) = grad(λ θ. of(captured…, θ))(θ)`, θ the last parameter of `of`."""
    f = program.functions[of]
    *captured, theta = f.params
    dims = tuple((d, symbol(d)) for d in f.dims)
    value = FunctionType((theta.type,), SCALAR_REAL)
    gradient = FunctionType((theta.type,), tangent(theta.type))
    body = (
        Binding("f%", value, Closure(of, dims, tuple(p.name for p in captured))),
        Binding("g%", gradient, Grad("f%")),
        Binding("r%", tangent(theta.type), Apply("g%", (theta.name,))),
    )
    made = Function(f"{of}{suffix}", f.dims, f.params, tangent(theta.type), body, "r%", f.uses)
    return Program(program.modules, program.functions | {made.name: made}, program.bounds)


def with_directional(program: Program, of: str) -> Program:
    """With `of∂(v, captured…, θ) = ⟨of∇(captured…, θ), v⟩` for `of` of real tensors and trees: the second derivative is
    the gradient of this."""
    program = with_gradient(program, of)
    gradient = program.functions[f"{of}∇"]
    v = Param(f"v%{len(gradient.params)}", gradient.result)
    dims = tuple((d, symbol(d)) for d in gradient.dims)
    body = [Binding("g%", gradient.result, Call(gradient.name, dims, tuple(p.name for p in gradient.params)))]
    ret = weighted(program, body, "g%", v.name, gradient.result)
    made = Function(f"{of}∂", gradient.dims, (v, *gradient.params), SCALAR_REAL, tuple(body), ret, gradient.uses)
    return Program(program.modules, program.functions | {made.name: made}, program.bounds)


def with_operators(program: Program, of: str) -> Program:
    """With `of←(captured…, θ, ct) = vjp(λ θ. of(captured…, θ))(θ, ct)`, and `of→(captured…, θ, v)` of `jvp`."""
    f = program.functions[of]
    *captured, theta = f.params
    dims = tuple((d, symbol(d)) for d in f.dims)
    functions = dict(program.functions)
    for suffix, op, given, result in (
        ("←", Vjp("f%"), tangent(f.result), tangent(theta.type)),
        ("→", Jvp("f%"), tangent(theta.type), tangent(f.result)),
    ):
        body = (
            Binding("f%", FunctionType((theta.type,), f.result), Closure(of, dims, tuple(p.name for p in captured))),
            Binding("g%", FunctionType((theta.type, given), result), op),
            Binding("r%", result, Apply("g%", (theta.name, "v%"))),
        )
        name = f"{of}{suffix}"
        functions[name] = Function(name, f.dims, (*f.params, Param("v%", given)), result, body, "r%", f.uses)
    return Program(program.modules, functions, program.bounds)


def check_duality(
    program: Program,
    of: str,
    dims: dict[str, int],
    *,
    seed: int = 0,
    lead: tuple[int, ...] = (),
    remat: Remat = "store",
) -> Program:
    """⟨ct, jvp(of)(x, v)⟩ = ⟨vjp(of)(x, ct), v⟩ in random directions; the differentiated program."""
    original = with_operators(program, of)
    verify(original, "test")
    done = differentiate(original, remat)
    verify(done, "ad")
    rng = random.Random(seed)
    with mp.workprec(BITS):
        params = original.functions[f"{of}←"].params
        args = [random_value(program, p.type, dims, lead, lambda: mp.mpf(rng.uniform(0.3, 1.4))) for p in params]
        ct, v = args[-1], tree(lambda a: _direction(a, rng), args[-2])
        pulled = evaluate(done, f"{of}←", dims, args)
        pushed = evaluate(done, f"{of}→", dims, [*args[:-1], v])
        terms = [[a * b for a, b in zip(flat(x), flat(y), strict=True)] for x, y in ((pushed, ct), (pulled, v))]
        scale = 1 + mp.fsum(abs(t) for t in (*terms[0], *terms[1]))
        assert abs(mp.fsum(terms[0]) - mp.fsum(terms[1])) <= scale * EXACT
    return done


def weighted(program: Program, body: list[Binding], x: str, y: str, ty: Type) -> str:
    """Appends Σ x·y over the real leaves of two values of one type; the name of the sum."""

    def emit(ty: Type, op: str, args: tuple[str, ...], attrs: tuple[Any, ...] = ()) -> str:
        body.append(Binding(f"t%{len(body)}", ty, Prim(op, attrs, args)))
        return body[-1].name

    match ty:
        case Real():
            return emit(SCALAR_REAL, "sum", (emit(ty, "mul", (x, y)),))
        case TupleOf(items):
            parts = [("proj", i, t) for i, t in enumerate(items) if t != TupleOf(())]
        case Params(instance):
            names = field_names(program.modules, instance)
            parts = [("field", n, field_type(program.modules, instance, n)) for n in names]
        case _:
            raise AssertionError(ty)
    terms = [weighted(program, body, emit(t, op, (x,), (k,)), emit(t, op, (y,), (k,)), t) for op, k, t in parts]
    total = terms[0]
    for term in terms[1:]:
        total = emit(SCALAR_REAL, "add", (total, term))
    return total


def check_gradient(
    program: Program,
    of: str,
    dims: dict[str, int],
    *,
    seed: int = 0,
    lead: tuple[int, ...] = (),
    low: float = 0.3,
    high: float = 1.4,
    remat: Remat = "recompute",
) -> tuple[Program, Value]:
    """`of∇` after differentiation agrees with a central difference of `of` in a random direction; the differentiated
    program and the gradient."""
    original = with_gradient(program, of)
    verify(original, "test")
    done = differentiate(original, remat)
    verify(done, "ad")
    plain = differentiate(program, remat)  # `of` itself may contain inner gradients
    rng = random.Random(seed)
    with mp.workprec(BITS):
        f = program.functions[of]
        args = [random_value(program, p.type, dims, lead, lambda: mp.mpf(rng.uniform(low, high))) for p in f.params]
        gradient = evaluate(done, f"{of}∇", dims, args)
        direction = tree(lambda a: _direction(a, rng), args[-1])
        ends = [
            evaluate(plain, of, dims, [*args[:-1], tree(partial(_moved, s), args[-1], direction)])[()]
            for s in (STEP, -STEP)
        ]
        expected = (ends[0] - ends[1]) / (2 * STEP)
        found = mp.fsum(a * b for a, b in zip(flat(gradient), flat(direction), strict=True))
        scale = 1 + mp.fsum(abs(a * b) for a, b in zip(flat(gradient), flat(direction), strict=True))
        assert abs(found - expected) <= CLOSE * scale, (mp.nstr(found, 20), mp.nstr(expected, 20))
    return done, gradient


def _direction(a: Value, rng: random.Random) -> Value:
    if not is_real(a):
        return ()
    out = np.empty(a.shape, dtype=object)
    for i in np.ndindex(a.shape):
        out[i] = mp.mpf(rng.uniform(-1, 1))
    return out


def _moved(s: Any, a: Value, d: Value) -> Value:
    return asarray(a + s * d) if is_real(a) else a
