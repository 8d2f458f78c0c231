"""Differentiation of a program, source to source: every `grad`, `vjp` and `jvp` goes (spec: "Automatic
differentiation").

    %4 = grad %3      where %3 = closure f[captured…]      becomes      %4 = closure f.grad[captured…]

with `f.grad(captured…, θ) = f.vjp(captured…, θ, 1).θ` (`ad.operators` has the others). A `grad` whose function itself
contains one waits for a later round, in which the inner one is ordinary PSK-Core already: so second and higher order
need no rule of their own. It also waits when its function captured a gradient: in the next round that is a known
function value (`ad.specialize`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from presk_rel.ad.accumulators import narrowed
from presk_rel.ad.garbage import collection_paused
from presk_rel.ad.graph import callees_first, named
from presk_rel.ad.jvp import Active, push
from presk_rel.ad.known import Known, known_functions
from presk_rel.ad.operators import KINDS, operator, refusal, word, write
from presk_rel.ad.prune import Generated, Kind, prune
from presk_rel.ad.share import share
from presk_rel.ad.specialize import specialize
from presk_rel.ad.square import square
from presk_rel.ad.store import store
from presk_rel.ad.vjp import reverse
from presk_rel.core.ir import Binding, Closure, Function, Grad, Jvp, Op, Program, Var, Vjp, operands
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import Type

Remat = Literal["store", "recompute"]
Derivative = Grad | Vjp | Jvp
Asked = tuple[Kind, str, Type]
"""An operator, the function it is of, and the type of the last parameter of what it gives."""


def differentiate(program: Program, remat: Remat = "store") -> Program:
    """The program without `grad`. PreskError (exit status 1) with E6001 or E6002 for each `grad` that is refused."""
    with collection_paused():
        done, made = eliminate(program)
        return store(done, made) if remat == "store" else done


def eliminate(program: Program) -> tuple[Program, tuple[Generated, ...]]:
    """The program without `grad`, pruned, gradients recomputing their forward pass, and the functions generated."""
    made: list[Generated] = []
    while True:
        program = specialize(program)
        sites = [(f, b) for f in program.functions.values() for b in f.bindings if isinstance(b.op, Derivative)]
        if not sites:
            return program, tuple(made)
        program, new = _round(square(program), made)
        program, new = share(program, new, made)
        made.extend(new)


def _with_derivative(program: Program) -> set[str]:
    """The functions that reach a `grad`."""
    pending: set[str] = set()
    for name in callees_first(program.functions):
        function = program.functions[name]
        if any(isinstance(b.op, Derivative) for b in function.bindings) or any(c in pending for c in named(function)):
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
    operators: dict[Asked, str] = field(default_factory=dict[Asked, str])
    jvps: dict[tuple[str, Active], str] = field(default_factory=dict[tuple[str, Active], str])
    helpers: dict[str, str] = field(default_factory=dict[str, str])
    queue: list[tuple[str, Active | None]] = field(default_factory=list[tuple[str, "Active | None"]])
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
            self.queue.append((primal, None))
        return self.vjps[primal]

    def jvp(self, primal: str, active: Active) -> str:
        if (primal, active) not in self.jvps:
            name = self.fresh(f"{primal}.jvp")
            self.jvps[primal, active] = name
            self.functions[name] = self.functions[primal]
            self.queue.append((primal, active))
        return self.jvps[primal, active]

    def helper(self, name: str, primal: str, write: Callable[[str], Function]) -> str:
        if name not in self.helpers:
            written = write(self.fresh(primal))
            self.functions[written.name] = written
            self.made.append(Generated(written.name, primal, "helper"))
            self.helpers[name] = written.name
        return self.helpers[name]


def _round(program: Program, earlier: Iterable[Generated]) -> tuple[Program, list[Generated]]:
    """One round: every `grad` of a known function that reaches no `grad` itself. PreskError when there is none."""
    r = _Round(program, dict(program.functions), _with_derivative(program))
    for g in earlier:
        if g.kind in KINDS:
            r.operators[g.kind, g.primal, program.functions[g.name].params[-1].type] = g.name
    for name, function in program.functions.items():
        if name in r.pending:
            r.functions[name] = _without_derivatives(r, function)
    done = 0
    while done < len(r.queue):
        _write(r, *r.queue[done])
        done += 1
    if not r.rewritten:
        r.refusals.extend(r.waiting)
    if r.refusals:
        raise PreskError(list(dict.fromkeys(r.refusals)), exit_status=1)
    return _pruned(replace(program, functions=r.functions), r.made)


def _pruned(program: Program, made: list[Generated]) -> tuple[Program, list[Generated]]:
    """Without dead code. Accumulators that nothing reads go once those who would read them have: where folds nest, the
    outer ones first."""
    while True:
        program, made = prune(program, made, frozenset({"vjp", "jvp"}))
        bodies = [g.name for g in made if g.kind == "helper"]
        changed = narrowed(program.functions, bodies, {g.name for g in made})
        if not changed:
            return program, made
        program = replace(program, functions={**program.functions, **changed})


def _write(r: _Round, primal: str, active: Active | None) -> None:
    """The `.vjp` of a function, or its `.jvp` for the parameters `active`."""
    f, modules = r.functions[primal], r.program.modules
    if active is not None:
        jvp = push(f, r.jvps[primal, active], active, modules, r)
        r.refusals.extend(jvp.refusals)
        r.functions[jvp.function.name] = jvp.function
        r.made.append(Generated(jvp.function.name, primal, "jvp"))
        return
    vjp = reverse(f, r.vjps[primal], modules, r)
    r.refusals.extend(vjp.refusals)
    r.functions[vjp.function.name] = vjp.function
    r.made.append(Generated(vjp.function.name, primal, "vjp", vjp.copies, vjp.origin))


def _without_derivatives(r: _Round, function: Function) -> Function:
    """`function` with every `grad` that is ready the closure of a `.grad`, without the closures only those read."""
    bindings: list[Binding] = []
    known = known_functions(function.bindings)
    types = {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}
    before = r.rewritten
    for binding in function.bindings:
        if isinstance(binding.op, Derivative):
            value = known.get(binding.op.fn)
            if value is None or any(isinstance(types[v], FunctionType) for v in value.captured):
                r.waiting.append(_unknown(binding, binding.op))
            elif value.fn not in r.pending:
                binding = replace(binding, op=_operator(r, binding, binding.op, value, types[binding.op.fn]))
                r.rewritten += 1
        bindings.append(binding)
    if r.rewritten == before:
        return function
    return replace(function, bindings=_without_dead_closures(bindings, function.ret))


def _unknown(site: Binding, op: Derivative) -> Diagnostic:
    why = f"cannot take the {word(op)} of `{op.fn}`: it is not a function known at compile time"
    where = "a lambda or a named function, also through `let`, captures, tuples, arguments and results"
    hint = f"a function is known where it is {where}; not where a fold hands it on"
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


def _operator(r: _Round, site: Binding, op: Derivative, value: Known, of: Type) -> Op:
    """The closure that `grad`, `vjp` or `jvp` of a known function is. With a refusal (E6002) it is left as it was."""
    primal = r.functions[value.fn]
    said = refusal(site, op, primal)
    if said is not None or not isinstance(of, FunctionType):
        r.refusals.extend([said] if said is not None else [])
        return site.op
    asked = operator(site, op, of, primal)
    key = (asked.kind, value.fn, asked.last)
    if key not in r.operators:
        name = r.fresh(f"{value.fn}.{asked.kind}")
        r.functions[name] = write(primal, name, asked, r.program.modules, r)
        r.made.append(Generated(name, value.fn, asked.kind))
        r.operators[key] = name
    return Closure(r.operators[key], value.dim_args, value.captured)
