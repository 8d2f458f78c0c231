"""E7003: what is undefined at the dimensions given, whatever the values (spec: "Undefined at the dimensions given").

The estimate before a run (`exec.exact.sizes`) walks every function, closure and fold that the run will, on shapes
alone, and asks here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from presk_rel.exec.exact.rows_arithmetic import averaged
from presk_rel.exec.exact.rows_views import number
from presk_rel.exec.exact.step import Step
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import HyperValue, KeyValue, StackValue, Tensor, TreeValue, TupleValue, Value

Check = Callable[[Step], None]


def _undefined(step: Step, what: str) -> NoReturn:
    fail("E7003", f"{what} in {step.site}", step.site.span)


def _mean(operand: int) -> Check:
    def check(step: Step) -> None:
        averaged(step, operand)

    return check


def _classes(operand: int, axis: int, what: str) -> Check:
    """There is an index below the length of an axis of an operand."""

    def check(step: Step) -> None:
        if step.run_shape(operand)[axis] == 0:
            _undefined(step, f"{what} with no index below 0")

    return check


def _index(operand: int) -> Check:
    def check(step: Step) -> None:
        n = step.run_shape(operand)[step.axis(operand, step.attrs[0])]
        i = number(step, 1)
        if not -n <= i < n:
            _undefined(step, f"the selection of {i} on an axis of length {n}")

    return check


def _slice(operand: int) -> Check:
    def check(step: Step) -> None:
        n = step.run_shape(operand)[step.axis(operand, step.attrs[0])]
        low, high = number(step, 1), number(step, 2)
        if not 0 <= low <= high <= n:
            _undefined(step, f"the selection of {low}..{high} on an axis of length {n}")

    return check


def _layer(operand: int) -> Check:
    def check(step: Step) -> None:
        n, i = _layers(step.args[operand]), number(step, 0)
        if n is not None and not 0 <= i < n:
            _undefined(step, f"the selection of layer {i} of {n}")

    return check


def _layers(value: Value) -> int | None:
    match value:
        case TupleValue(items):
            return next((n for v in items if (n := _layers(v)) is not None), None)
        case TreeValue(fields):
            return next((n for v in fields.values() if (n := _layers(v)) is not None), None)
        case Tensor(run):
            return run[0][1]
        case StackValue() | HyperValue() | KeyValue():
            return None
        case _:
            return None


CHECKS: dict[str, Check] = {
    "mean": _mean(0),
    "mean_vjp": _mean(1),
    "embed": _classes(0, 0, "embed"),
    "embed_vjp": _classes(2, 0, "the derivative of embed"),
    "cross_entropy": _classes(0, -1, "cross_entropy"),
    "cross_entropy_vjp": _classes(1, -1, "the derivative of cross_entropy"),
    "argmax": _classes(0, -1, "argmax"),
    "sample": _classes(1, -1, "sample"),
    "index": _index(0),
    "scatter_index": _index(1),
    "slice": _slice(0),
    "slice_vjp": _slice(1),
    "slice_params": _layer(0),
    "set_slice": _layer(0),
    "scatter_params": _layer(1),
}


def check_defined(step: Step) -> None:
    """E7003 when the step is undefined at its dimensions."""
    check = CHECKS.get(step.op)
    if check is not None:
        check(step)
