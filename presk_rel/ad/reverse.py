"""Differentiation of a program, source to source: every `grad` goes (spec: "Automatic differentiation").

    %4 = grad %3      where %3 = closure f[captured…]      becomes      %4 = closure f.grad[captured…]

with `f.grad(captured…, θ) = f.vjp(captured…, θ, 1).θ`. A `grad` whose function itself contains one waits for a later
round, in which the inner one is ordinary PSK-Core already: so second and higher order need no rule of their own. It
also waits when its function captured a gradient: in the next round that is a known function value (`ad.specialize`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from presk_rel.ad.builder import Builder
from presk_rel.ad.graph import callees_first, named
from presk_rel.ad.known import Known, known_functions
from presk_rel.ad.leading import with_known_axes
from presk_rel.ad.prune import Generated, prune
from presk_rel.ad.share import share
from presk_rel.ad.specialize import specialize
from presk_rel.ad.store import store
from presk_rel.ad.sweep import wrt
from presk_rel.ad.tangent import has_tangent, without_tangent
from presk_rel.ad.vjp import reverse
from presk_rel.core.ir import Binding, Call, Closure, Function, Grad, Op, Param, Program, Var, operands
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
    while True:
        program = specialize(program)
        sites = [(f, b) for f in program.functions.values() for b in f.bindings if isinstance(b.op, Grad)]
        if not sites:
            return program, tuple(made)
        program, new = _round(with_known_axes(program, _targets(program)), made)
        program, new = share(program, new, made)
        made.extend(new)


def _targets(program: Program) -> list[str]:
    """The functions that the next round differentiates: those of a `grad` that reach none."""
    pending = _with_grad(program)
    found: dict[str, None] = {}
    for name in sorted(pending):
        known = known_functions(program.functions[name].bindings)
        for b in program.functions[name].bindings:
            value = known.get(b.op.fn) if isinstance(b.op, Grad) else None
            if value is not None and value.fn not in pending:
                found[value.fn] = None
    return list(found)


def _with_grad(program: Program) -> set[str]:
    """The functions that reach a `grad`."""
    pending: set[str] = set()
    for name in callees_first(program.functions):
        function = program.functions[name]
        if any(isinstance(b.op, Grad) for b in function.bindings) or any(c in pending for c in named(function)):
            pending.add(name)
    return pending


@dataclass(slots=True)
class _Round:
    """One round: `pending` are the functions that reach a `grad`, `queue` the primals whose `.vjp` is named but not yet
    written, `waiting` what a later round may know more of."""

    program: Program
    functions: dict[str, Function]
    pending: set[str]
    made: list[Generated] = field(default_factory=list[Generated])
    vjps: dict[str, str] = field(default_factory=dict[str, str])
    grads: dict[str, str] = field(default_factory=dict[str, str])
    helpers: dict[str, str] = field(default_factory=dict[str, str])
    queue: list[str] = field(default_factory=list[str])
    refusals: list[Diagnostic] = field(default_factory=list[Diagnostic])
    waiting: list[Diagnostic] = field(default_factory=list[Diagnostic])
    rewritten: int = 0

    def fresh(self, name: str) -> str:
        """`name`, or `name2`, `name3`… when an earlier round took it."""
        candidate, n = name, 1
        while candidate in self.functions:
            n += 1
            candidate = f"{name}{n}"
        return candidate

    def function(self, name: str) -> Function:
        return self.functions[name]

    def vjp(self, primal: str) -> str:
        if primal not in self.vjps:
            name = self.fresh(f"{primal}.vjp")
            self.vjps[primal] = name
            self.functions[name] = self.functions[primal]  # holds the name until the function is written
            self.queue.append(primal)
        return self.vjps[primal]

    def helper(self, name: str, primal: str, write: Callable[[str], Function]) -> str:
        if name not in self.helpers:
            written = write(self.fresh(primal))
            self.functions[written.name] = written
            self.made.append(Generated(written.name, primal, "helper"))
            self.helpers[name] = written.name
        return self.helpers[name]


def _round(program: Program, earlier: Iterable[Generated]) -> tuple[Program, list[Generated]]:
    """One round: every `grad` of a known function that reaches no `grad` itself. PreskError when there is none."""
    grads = {g.primal: g.name for g in earlier if g.kind == "grad"}
    r = _Round(program, dict(program.functions), _with_grad(program), grads=grads)
    for name, function in program.functions.items():
        if name in r.pending:
            r.functions[name] = _without_grad(r, function)
    done = 0
    while done < len(r.queue):
        primal = r.queue[done]
        done += 1
        vjp = reverse(r.functions[primal], r.vjps[primal], program.modules, r)
        r.refusals.extend(vjp.refusals)
        r.functions[vjp.function.name] = vjp.function
        r.made.append(Generated(vjp.function.name, primal, "vjp", vjp.copies, vjp.origin))
    if not r.rewritten:
        r.refusals.extend(r.waiting)
    if r.refusals:
        raise PreskError(list(dict.fromkeys(r.refusals)), exit_status=1)
    return prune(replace(program, functions=r.functions), r.made, "vjp")


def _without_grad(r: _Round, function: Function) -> Function:
    """`function` with every `grad` that is ready the closure of a `.grad`, without the closures only those read."""
    bindings: list[Binding] = []
    known = known_functions(function.bindings)
    types = {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}
    before = r.rewritten
    for binding in function.bindings:
        if isinstance(binding.op, Grad):
            value = known.get(binding.op.fn)
            if value is None or any(isinstance(types[v], FunctionType) for v in value.captured):
                r.waiting.append(_unknown(binding, binding.op.fn))
            elif value.fn not in r.pending:
                binding = replace(binding, op=_gradient(r, binding, value))
                r.rewritten += 1
        bindings.append(binding)
    if r.rewritten == before:
        return function
    return replace(function, bindings=_without_dead_closures(bindings, function.ret))


def _unknown(site: Binding, fn: Var) -> Diagnostic:
    why = f"cannot take the gradient of `{fn}`: it is not a function known at compile time"
    where = "a lambda or a named function, also through `let`, captures, arguments and results"
    hint = f"a function is known where it is {where}; not as the argument of a function generic in leading axes (`...`)"
    return Diagnostic("E6001", why, site.span, help=hint)


def _without_dead_closures(bindings: list[Binding], ret: Var) -> tuple[Binding, ...]:
    read = {ret}
    kept: list[Binding] = []
    for binding in reversed(bindings):
        if isinstance(binding.op, Closure) and binding.name not in read:
            continue
        read.update(operands(binding.op))
        kept.append(binding)
    return tuple(reversed(kept))


def _gradient(r: _Round, site: Binding, value: Known) -> Op:
    """The closure that `grad` of a known function is. With a refusal (E6002) it is left as it was."""
    primal = r.functions[value.fn]
    argument = primal.params[-1]
    why_not = without_tangent(argument.type)
    if why_not is not None and not _declares_tangent(site, argument.type):
        why = f"no gradient with respect to `{argument.name}`: its type {argument.type} holds {why_not}"
        r.refusals.append(Diagnostic("E6002", why, site.span))
        return site.op
    if value.fn not in r.grads:
        r.grads[value.fn] = _grad_function(r, primal)
    return Closure(r.grads[value.fn], value.dim_args, value.captured)


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
    whole = b.emit(Call(r.vjp(primal.name), dims, (*(p.name for p in params), one)), TupleOf(types))
    ret = b.prim("proj", types[-1], whole, attrs=(len(which) - 1,))
    r.functions[name] = Function(name, primal.dims, params, types[-1], tuple(b.bindings), ret, primal.uses, primal.span)
    r.made.append(Generated(name, primal.name, "grad"))
    return name
