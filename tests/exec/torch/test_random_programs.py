"""Random well-typed programs, their values and gradients, on torch against the mpmath kernel."""

from random import Random

import pytest

from presk_rel.ad.reverse import differentiate
from presk_rel.core.ir import Apply, Binding, Closure, Function, Grad, Program
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import TupleOf
from tests.ad.random_programs import DIMS, SAME, random_program

from .against import against_exact

CHUNKS = 12
EACH = 26


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int):
    ran = 0
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        found = with_gradient(random_program(Random(seed)))
        for entry in ("loss", "loss.gradient"):
            if entry not in found.functions:
                continue
            try:
                far = against_exact(found, entry, DIMS, kernel="mpmath", unroll=bool(seed % 2))
            except PreskError as error:
                assert error.diagnostics[0].code in ("E7004", "E7003"), error.diagnostics[0]
                continue
            bound = 1e-11 / min(far.scale, 1) if far.scale else 1e-11  # a gradient may be 0 but for the kernel's noise
            assert far.relative < bound, (seed, entry, float(far.relative), far.where)
            ran += 1
    assert ran > EACH


def with_gradient(program: Program) -> Program:
    """The program with the gradient of `loss` by its last parameter, where it has one."""
    loss = program.functions["loss"]
    ty = loss.params[-1].type
    if isinstance(ty, TupleOf):
        return program
    names = [p.name for p in loss.params]
    value = FunctionType((ty,), loss.result)
    slope = FunctionType((ty,), ty)
    bindings = (
        Binding("f", value, Closure("loss", SAME, tuple(names[:-1]))),
        Binding("g", slope, Grad("f")),
        Binding("out", ty, Apply("g", (names[-1],))),
    )
    gradient = Function("loss.gradient", tuple(DIMS), loss.params, ty, bindings, "out")
    return differentiate(Program(program.modules, {**program.functions, gradient.name: gradient}), "store")
