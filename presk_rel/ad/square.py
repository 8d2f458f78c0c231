"""Bodies of folds whose accumulator and result have one type only where they are folded.

    fn Linear.apply{In Out}(θ, x : ℝ[..., In]) -> ℝ[..., Out]
    %3 = fold 2 Linear.apply{In = D, Out = D}(stacked tower; acc x)

What the derivative of a fold hands from one iteration to the next is a cotangent of either, so such a body gets a
version in the dims of the function that folds it, `Linear.apply.at0{D}(θ, x : ℝ[..., D]) -> ℝ[..., D]`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from presk_rel.ad.instantiate import at
from presk_rel.ad.specialize import Leads, leads_of
from presk_rel.core.ir import DimArgs, Fold, Function, Op, Program, Var, operands
from presk_rel.core.shapes import compatible_types
from presk_rel.elab.ty import Type
from presk_rel.smt.linear import symbol

Key = tuple[str, DimArgs, Leads, tuple[str, ...]]
"""The body, its dim arguments, what its `...` stands for where that matters, and the dims of the function around."""


def square(program: Program) -> Program:
    """The program in which the accumulator of every fold has the type of its body's result, in the body's own dims."""
    work = _Work(program, dict(program.functions))
    for name, f in program.functions.items():
        if any(isinstance(b.op, Fold) for b in f.bindings):
            types = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
            work.functions[name] = replace(
                f, bindings=tuple(replace(b, op=work.op(f, b.op, types)) for b in f.bindings)
            )
    return replace(program, functions=work.functions) if work.versions else program


@dataclass(slots=True)
class _Work:
    program: Program
    functions: dict[str, Function]
    versions: dict[Key, str] = field(default_factory=dict[Key, str])

    def op(self, caller: Function, op: Op, types: dict[Var, Type]) -> Op:
        """An operation of a function; a fold is of the version of its body that it needs."""
        if not isinstance(op, Fold):
            return op
        body, n = self.program.functions[op.body], len(op.stacked)
        if _is_square(body, n):
            return op
        made, leads = at(body, dict(op.dim_args), {}, self.program.modules), Leads()
        if not _is_square(made, n):  # of `ℝ[..., D]` and `ℝ[batch: B, D]`, say
            leads = leads_of(body, op, [types[v] for v in operands(op)])
            made = at(body, dict(op.dim_args), dict(leads), self.program.modules)
        key = (op.body, op.dim_args, leads, caller.dims)
        if key not in self.versions:
            self.versions[key] = name = self._free(op.body)
            self.functions[name] = replace(made, name=name, dims=caller.dims)
        return replace(op, body=self.versions[key], dim_args=tuple((d, symbol(d)) for d in caller.dims))

    def _free(self, body: str) -> str:
        n = 0
        while f"{body}.at{n}" in self.functions:
            n += 1
        return f"{body}.at{n}"


def _is_square(body: Function, stacked: int) -> bool:
    return compatible_types(body.params[stacked].type, body.result)
