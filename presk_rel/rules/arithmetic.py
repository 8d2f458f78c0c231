"""Numbers and symbols as Soufflé has them: 32 bits with sign, wrapping; division towards zero; bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.rules.ast import Aggregate, Binary, Call, Constant, Term, Value, Variable


def wrap(number: int) -> int:
    """The number of 32 bits with sign that equals `number` modulo 2^32."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def divide(a: int, b: int) -> int:
    """The quotient truncated towards zero; E9130 when `b` is 0."""
    if b == 0:
        raise PreskError([Diagnostic("E9130", f"a rule divides {a} by zero", None)])
    quotient = abs(a) // abs(b)
    return wrap(quotient if (a < 0) == (b < 0) else -quotient)


def remainder(a: int, b: int) -> int:
    """What truncated division leaves: it has the sign of `a`."""
    return wrap(a - b * divide(a, b)) if b != -1 else 0


def byte_length(symbol: str) -> int:
    return len(symbol.encode("utf-8", "surrogatepass"))


def evaluate(term: Term, values: Mapping[str, Value]) -> Value:
    """The value of a term without `_` and aggregates, where `values` gives its variables."""
    match term:
        case Constant(value=value):
            return value
        case Variable(name=name):
            return values[name]
        case Binary(operator=operator, left=left, right=right):
            return _ARITHMETIC[operator](_number(evaluate(left, values)), _number(evaluate(right, values)))
        case Call(function=function, arguments=arguments):
            return _call(function, [evaluate(a, values) for a in arguments])
        case _:
            raise TypeError(f"{type(term).__name__} has no value of its own")


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _call(function: str, arguments: list[Value]) -> Value:
    if function in ("min", "max"):
        pick = min if function == "min" else max
        return pick(arguments)  # pyright: ignore[reportArgumentType, reportCallIssue] # one type, by validation
    symbols = [str(a) for a in arguments]
    return byte_length(symbols[0]) if function == "strlen" else "".join(symbols)


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: wrap(a + b),
    "-": lambda a, b: wrap(a - b),
    "*": lambda a, b: wrap(a * b),
    "/": divide,
    "%": remainder,
}


def compare(operator: str, left: Value, right: Value) -> bool:
    """Symbols compare by code points, which is the order of their bytes in UTF-8."""
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case _:
            return _ordered(operator, left, right)


def _ordered(operator: str, left: Value, right: Value) -> bool:
    a, b = _order_key(left), _order_key(right)
    match operator:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def _order_key(value: Value) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, value)


def aggregate_value(aggregate: Aggregate, values: list[Value]) -> int | None:
    """The value of an aggregate over the target's `values`, one per solution; None where `min` or `max` fail."""
    numbers = [_number(v) for v in values]
    match aggregate.operator:
        case "count":
            return wrap(len(values))
        case "sum":
            return wrap(sum(numbers))
        case "min":
            return min(numbers, default=None)
        case "max":
            return max(numbers, default=None)
