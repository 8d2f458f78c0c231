"""The part of the check of a Core program that is about kernels: functions of primitives that are called, no more."""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.core.ir import Binding, Call, Function, Prim, Program, callees


def kernel_findings(program: Program) -> Iterator[tuple[Function, Binding, str]]:
    """Where and what is wrong with the kernels of a program."""
    for function in program.functions.values():
        for b in function.bindings:
            if function.kernel and not isinstance(b.op, Prim):
                yield function, b, "is in a kernel, which holds primitives only"
            for name in () if isinstance(b.op, Call) else callees(b.op):
                callee = program.functions.get(name)
                if callee is not None and callee.kernel:
                    yield function, b, f"names the kernel {name}, which may only be called"
