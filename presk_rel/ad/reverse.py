"""Differentiation of a program, source to source: every `grad` goes (spec: "Automatic differentiation").

    %4 = grad %3      where %3 = closure f[captured…]      becomes      %4 = closure f.grad[captured…]

with `f.grad(captured…, θ) = f.vjp(captured…, θ, 1).θ`. A `grad` whose function itself contains one waits for a later
round, in which the inner one is ordinary PSK-Core already: so second and higher order need no rule of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from presk_rel.ad.builder import Builder
from presk_rel.ad.graph import callees_first, named
from presk_rel.ad.known import Known, known_functions
from presk_rel.ad.prune import Generated, prune
from presk_rel.ad.share import share
from presk_rel.ad.store import store
from presk_rel.ad.tangent import has_tangent, without_tangent
from presk_rel.ad.vjp import reverse, wrt
from presk_rel.core.ir import Binding, Call, Closure, Function, Grad, Param, Program, Var, operands
from presk_rel.core.shapes import tangent
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import TupleOf, Type
from presk_rel.smt.linear import symbol

Remat = Literal["store", "recompute"]


def differentiate(program: Program, remat: Remat = "store") -> Program:
    """The program without `grad`. PreskError (exit status 1) with E6001 or E6002 for each `grad` that is refused."""
    done, made = eliminate(program)
    return store(done, made) if remat == "store" else done


def eliminate(program: Program) -> tuple[Program, tuple[Generated, ...]]:
    """The program without `grad`, pruned, gradients recomputing their forward pass, and the functions generated."""
    made: list[Generated] = []
    while sites := _ready(program):
        program, new = _round(program, sites, made)
        program, new = share(program, new, made)
        made.extend(new)
    return program, tuple(made)


def _ready(program: Program) -> list[str]:
    """The functions with a `grad` whose every `grad` is of something that reaches no other: innermost first."""
    pending: dict[str, bool] = {}
    ready: list[str] = []
    for name in callees_first(program.functions):
        function = program.functions[name]
        below = any(pending[c] for c in named(function))
        own = any(isinstance(b.op, Grad) for b in function.bindings)
        pending[name] = below or own
        if own and not below:
            ready.append(name)
    return ready


@dataclass(slots=True)
class _Round:
    """One round's new functions: `queue` are the primals whose `.vjp` is named but not yet written."""

    program: Program
    functions: dict[str, Function]
    made: list[Generated] = field(default_factory=list[Generated])
    vjps: dict[str, str] = field(default_factory=dict[str, str])
    grads: dict[str, str] = field(default_factory=dict[str, str])
    queue: list[str] = field(default_factory=list[str])
    refusals: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def fresh(self, name: str) -> str:
        """`name`, or `name2`, `name3`… when an earlier round took it."""
        candidate, n = name, 1
        while candidate in self.functions:
            n += 1
            candidate = f"{name}{n}"
        return candidate

    def want(self, primal: str) -> str:
        if primal not in self.vjps:
            name = self.fresh(f"{primal}.vjp")
            self.vjps[primal] = name
            self.functions[name] = self.functions[primal]  # holds the name until the function is written
            self.queue.append(primal)
        return self.vjps[primal]


def _round(program: Program, sites: Iterable[str], earlier: Iterable[Generated]) -> tuple[Program, list[Generated]]:
    grads = {g.primal: g.name for g in earlier if g.kind == "grad"}
    r = _Round(program, dict(program.functions), grads=grads)
    for name in sites:
        r.functions[name] = _without_grad(r, program.functions[name])
    done = 0
    while done < len(r.queue):
        primal = r.queue[done]
        done += 1
        vjp = reverse(r.functions[primal], r.vjps[primal], program.modules, r.functions, r.want)
        r.refusals.extend(vjp.refusals)
        r.functions[vjp.function.name] = vjp.function
        r.made.append(Generated(vjp.function.name, primal, "vjp", vjp.copies, vjp.origin))
    if r.refusals:
        raise PreskError(list(dict.fromkeys(r.refusals)), exit_status=1)
    return prune(replace(program, functions=r.functions), r.made, "vjp")


def _without_grad(r: _Round, function: Function) -> Function:
    """`function` with every `grad` the closure of a `.grad`, and without the closures only a `grad` read."""
    bindings: list[Binding] = []
    known = known_functions(function.bindings)
    for binding in function.bindings:
        if isinstance(binding.op, Grad):
            value = _gradient(r, binding, binding.op.fn, known)
            if value is None:
                continue
            known[binding.name] = value
            binding = replace(binding, op=Closure(value.fn, value.dim_args, value.captured))
        bindings.append(binding)
    return replace(function, bindings=_without_dead_closures(bindings, function.ret))


def _without_dead_closures(bindings: list[Binding], ret: Var) -> tuple[Binding, ...]:
    read = {ret}
    kept: list[Binding] = []
    for binding in reversed(bindings):
        if isinstance(binding.op, Closure) and binding.name not in read:
            continue
        read.update(operands(binding.op))
        kept.append(binding)
    return tuple(reversed(kept))


def _gradient(r: _Round, site: Binding, fn: Var, known: dict[Var, Known]) -> Known | None:
    value = known.get(fn)
    if value is None:
        why = f"cannot take the gradient of `{fn}`: it is not a function known at compile time"
        r.refusals.append(Diagnostic("E6001", why, site.span))
        return None
    primal = r.functions[value.fn]
    argument = primal.params[-1]
    why_not = without_tangent(argument.type)
    if why_not is not None and not _declares_tangent(site, argument.type):
        why = f"no gradient with respect to `{argument.name}`: its type {argument.type} holds {why_not}"
        r.refusals.append(Diagnostic("E6002", why, site.span))
        return None
    if value.fn not in r.grads:
        r.grads[value.fn] = _grad_function(r, primal)
    return Known(r.grads[value.fn], value.dim_args, value.captured)


def _declares_tangent(site: Binding, argument: Type) -> bool:
    """Whether the binding already says that parts of the gradient are unit (and some part is not)."""
    return has_tangent(argument) and isinstance(site.type, FunctionType) and site.type.result == tangent(argument)


def _grad_function(r: _Round, primal: Function) -> str:
    """`f.grad(captured…, θ) = f.vjp(captured…, θ, 1).θ`."""
    name = r.fresh(f"{primal.name}.grad")
    b = Builder(r.program.modules)
    b.span = primal.span
    params = tuple(Param(b.param(p.name, p.type), p.type) for p in primal.params)
    b.note = "the cotangent of the result"
    one = b.const(1)
    which = wrt(primal)
    types = tuple(tangent(primal.params[i].type) for i in which)
    b.note = None
    dims = tuple((d, symbol(d)) for d in primal.dims)
    whole = b.emit(Call(r.want(primal.name), dims, (*(p.name for p in params), one)), TupleOf(types))
    ret = b.prim("proj", types[-1], whole, attrs=(len(which) - 1,))
    r.functions[name] = Function(name, primal.dims, params, types[-1], tuple(b.bindings), ret, primal.uses, primal.span)
    r.made.append(Generated(name, primal.name, "grad"))
    return name
