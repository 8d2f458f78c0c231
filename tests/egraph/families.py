"""Families of programs of any size, each of which made some phase of the optimizer slow, wrong or endless."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from presk_rel.core.ir import Program
from presk_rel.elab.ty import TupleOf
from tests.egraph.programs import Builder, read, real

V = real(3)
M = real(4, 4)


def constant(b: Builder, value: int) -> str:
    return b.prim("const", real(), attrs=(Fraction(value),))


def scaled_sine(b: Builder, x: str, k: int) -> str:
    return b.prim("sin", V, b.prim("mul", V, x, constant(b, k + 2)))


def alternating(n: int) -> Program:
    """Products and negated differences by turns: signs go everywhere, and each has two ways at every step."""
    b = Builder()
    x, w = b.param("x", V), b.param("w", V)
    for i in range(n):
        x = b.prim("mul", V, x, w) if i % 2 else b.prim("neg", V, b.prim("sub", V, x, w))
    return b.program(x)


def powers(n: int) -> Program:
    """Squares of squares: eight ways to each."""
    b = Builder()
    x = b.param("x", V)
    for _ in range(n):
        x = b.prim("pow", V, x, attrs=(2,))
    return b.program(x)


def quotients(n: int) -> Program:
    """Quotients by two factors: their powers are shared."""
    b = Builder()
    x, w, v = (b.param(name, V) for name in "xwv")
    for i in range(n):
        x = b.prim("div", V, x, w if i % 2 else v)
    return b.program(x)


def denominators(n: int) -> Program:
    """`w / (w / (w / x))`: all operations have one numerator, and none is in the numerator of another one."""
    b = Builder()
    x, w = b.param("x", V), b.param("w", V)
    for _ in range(n):
        x = b.prim("div", V, w, x)
    return b.program(x)


def differences(n: int) -> Program:
    """`w - (w - (w - x))`"""
    b = Builder()
    x, w = b.param("x", V), b.param("w", V)
    for _ in range(n):
        x = b.prim("sub", V, w, x)
    return b.program(x)


def cancelling(n: int) -> Program:
    """Twenty terms, each added and subtracted many times."""
    b = Builder()
    ys = [b.param(f"y{i}", V) for i in range(20)]
    s = b.param("x", V)
    for op, step in (("add", 1), ("sub", 7)):
        for i in range(n):
            s = b.prim(op, V, s, ys[step * i % 20])
    return b.program(s)


def lattice(n: int) -> Program:
    """Two values, each a sum of both before."""
    b = Builder()
    x, y, w = (b.param(name, V) for name in "xyw")
    for _ in range(n):
        x, y = b.prim("add", V, b.prim("mul", V, y, w), x), b.prim("sub", V, x, y)
    return b.program(b.prim("mul", V, x, y))


def wide(op: str) -> Callable[[int], Program]:
    """As many different terms."""

    def of(n: int) -> Program:
        b = Builder()
        x = s = b.param("x", V)
        for i in range(n):
            s = b.prim(op, V, s, scaled_sine(b, x, i))
        return b.program(s)

    return of


def balanced(op: str) -> Callable[[int], Program]:
    """As many different terms, in a balanced tree."""

    def of(n: int) -> Program:
        b = Builder()
        x = b.param("x", V)
        level = [scaled_sine(b, x, i) for i in range(n)]
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [b.prim(op, V, *p) if len(p) == 2 else p[0] for p in pairs]
        return b.program(level[0])

    return of


def matrices(n: int) -> Program:
    """A sum of products with one operand."""
    b = Builder()
    x = b.param("x", M)
    s = b.param("s", M)
    for i in range(n):
        s = b.prim("add", M, s, b.prim("dot", M, x, b.param(f"w{i}", M)))
    return b.program(s)


def contractions(n: int) -> Program:
    """Contractions of twelve operands, and of five, one inside the other."""
    b = Builder()
    x = b.param("x", M)
    ms = [b.param(f"m{i}", M) for i in range(11)]
    names = "abcdefghijklm"
    for i in range(n):
        k = 11 if i % 4 == 0 else 4
        spec = ", ".join(f"{names[j]} {names[j + 1]}" for j in range(k + 1)) + f" -> a {names[k + 1]}"
        x = b.prim("ein", M, x, *ms[:k], attrs=(spec,))
    return b.program(x)


def dimensions(n: int) -> Program:
    """As many symbolic dimensions."""
    b = Builder()
    s = constant(b, 0)
    for i in range(n):
        x = b.param(f"x{i}", real(f"D{i}"))
        square = b.prim("mul", real(f"D{i}"), b.prim("sin", real(f"D{i}"), x), x)
        s = b.prim("add", real(), s, b.prim("sum", real(), square))
    return b.program(s, tuple(f"D{i}" for i in range(n)))


def leaves(n: int) -> Program:
    """A tuple of as many values."""
    b = Builder()
    x = b.param("x", V)
    parts = [scaled_sine(b, x, i) for i in range(n)]
    return b.program(b.prim("tuple", TupleOf((V,) * n), *parts))


# ------------------------------------------------------------------------------------------------ folds


def folds(n: int) -> Program:
    """As many folds, one after the other, each with a body of its own."""
    bodies = "\n".join(
        f"fn b{i}(a : ℝ[3], e : ℝ[3]) -> ℝ[3] {{\n  %2 : ℝ[] = const {i + 2}\n  %3 : ℝ[3] = mul a, %2\n"
        f"  %4 : ℝ[3] = sin %3\n  %5 : ℝ[3] = add %4, e\n  return %5\n}}"
        for i in range(n)
    )
    main = "".join(f"  y{i + 1} : ℝ[3] = fold 4 b{i}(stacked; acc y{i}; e)\n" for i in range(n))
    return read(f"{bodies}\nfn f(y0 : ℝ[3], e : ℝ[3]) -> ℝ[3] {{\n{main}  return y{n}\n}}\n")


def nested(n: int) -> Program:
    """Two folds of one body in each body."""
    bodies = "fn b0(a : ℝ[3], e : ℝ[3]) -> ℝ[3] {\n  %2 : ℝ[3] = add a, e\n  return %2\n}\n" + "".join(
        f"fn b{i}(a : ℝ[3], e : ℝ[3]) -> ℝ[3] {{\n  %2 : ℝ[3] = sin a\n"
        f"  %3 : ℝ[3] = fold 2 b{i - 1}(stacked; acc %2; e)\n  %4 : ℝ[3] = exp e\n  %5 : ℝ[3] = add %3, %4\n"
        f"  %6 : ℝ[3] = fold 2 b{i - 1}(stacked; acc %5; e)\n  return %6\n}}\n"
        for i in range(1, n + 1)
    )
    return read(
        f"{bodies}fn f(x : ℝ[3], e : ℝ[3]) -> ℝ[3] {{\n  y : ℝ[3] = fold 2 b{n}(stacked; acc x; e)\n  return y\n}}\n"
    )


def carried(n: int) -> Program:
    """An accumulator of as many parts, each computed from the next one, of which the first is read."""
    ty = "(" + ", ".join(["ℝ[3]"] * n) + ")"
    tuple_ = ", ".join(f"s{i}" for i in range(n))
    body = "".join(f"  a{i} : ℝ[3] = p.{i}\n" for i in range(n))
    body += "".join(f"  s{i} : ℝ[3] = sin a{min(i + 1, n - 1)}\n" for i in range(n))
    main = "".join(f"  c{i} : ℝ[] = const {i}\n  s{i} : ℝ[3] = mul x, c{i}\n" for i in range(n))
    return read(
        f"fn b(p : {ty}) -> {ty} {{\n{body}  r : {ty} = ({tuple_})\n  return r\n}}\n"
        f"fn f(x : ℝ[3]) -> ℝ[3] {{\n{main}  t : {ty} = ({tuple_})\n  q : {ty} = fold 4 b(stacked; acc t)\n"
        "  z : ℝ[3] = q.0\n  return z\n}\n"
    )


FAMILIES: dict[str, Callable[[int], Program]] = {
    "alternating": alternating,
    "powers": powers,
    "quotients": quotients,
    "denominators": denominators,
    "differences": differences,
    "cancelling": cancelling,
    "lattice": lattice,
    "sum": wide("add"),
    "product": wide("mul"),
    "balanced quotients": balanced("div"),
    "balanced differences": balanced("sub"),
    "matrices": matrices,
    "contractions": contractions,
    "dimensions": dimensions,
    "leaves": leaves,
    "folds": folds,
    "carried": carried,
}
