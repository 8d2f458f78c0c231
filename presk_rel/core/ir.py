"""PSK-Core: a first-order functional IR in A-normal form (spec: "PSK-Core: the intermediate representation").

A function body is a list of bindings `name : type = operation`, then the name that is returned. Every operand is a name
bound earlier in the same function. Functions are generic in their dims and, through a `...` prefix, in their leading
axes. Names are the user's where there is one, else `%n` with n the number of parameters and bindings before it; a name
bound twice in a source body is `x%n` from the second time on. `note` is the provenance comment (`-- adjoint of %3`).
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import ModuleDef, Type
from presk_rel.smt.linear import Linear

Var = str
Attr = str | int | Fraction | Linear
DimArgs = tuple[tuple[str, Linear], ...]


@record
class Prim:
    """A primitive: a row of `core.prims.PRIMS`, which says how many operands and which attributes it has, how it is
    written (`mean axis model %3`, `set_field b %9, %8`) and how it is typed."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Var, ...]


@record
class Call:
    """`call f{D = 4*D}(a, b)`."""

    fn: str
    dim_args: DimArgs
    args: tuple[Var, ...]


@record
class Closure:
    """`closure f{…}[a, b]`: the function value of `f` with its first parameters given."""

    fn: str
    dim_args: DimArgs
    captured: tuple[Var, ...]


@record
class Grad:
    """`grad f`: the gradient of a function value; AD rewrites it away."""

    fn: Var


@record
class Vjp:
    """`vjp f`: of a function value x ↦ y, the function value (x, cotangent of y) ↦ cotangent of x; AD rewrites it
    away."""

    fn: Var


@record
class Jvp:
    """`jvp f`: of a function value x ↦ y, the function value (x, tangent of x) ↦ tangent of y; AD rewrites it away."""

    fn: Var


@record
class Apply:
    """`apply f(a, b)`: a function value applied."""

    fn: Var
    args: tuple[Var, ...]


@record
class Fold:
    """`fold L body{…}(stacked s, …; acc a; extras…)`: for i in 0 … count-1, `acc = body(slice i of each stacked, acc,
    extras…)`; the value is the last acc. `reverse` runs i downwards. `scan` also returns the stack of the accumulators
    before each iteration: `(acc, stack)`; slot i is the one before iteration i, also under `reverse`."""

    count: Linear
    body: str
    dim_args: DimArgs
    stacked: tuple[Var, ...]
    acc: Var
    extras: tuple[Var, ...]
    reverse: bool = False
    scan: bool = False


Op = Prim | Call | Closure | Grad | Vjp | Jvp | Apply | Fold


@record
class Binding:
    name: Var
    type: Type
    op: Op
    span: Span = field(default=NOWHERE, compare=False)
    note: str | None = field(default=None, compare=False)


@record
class Param:
    name: Var
    type: Type


@record
class Function:
    """`fn name{dims}(params) -> result { bindings; return ret }`. `uses` are the effects it declares. A `kernel` is a
    function of primitives that one launch computes (`egraph.fusion`): it is called, and never closed over or folded."""

    name: str
    dims: tuple[str, ...]
    params: tuple[Param, ...]
    result: Type
    bindings: tuple[Binding, ...]
    ret: Var
    uses: tuple[str, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    kernel: bool = False


@record
class Program:
    """Modules (parameter trees) and functions by name, in order. `bounds` are the facts `dim T <= N`. `declared` are
    the functions of the source with their places: wherever a binding is moved to, its span says whose it is."""

    modules: dict[str, ModuleDef]
    functions: dict[str, Function]
    bounds: tuple[tuple[str, Linear], ...] = ()
    declared: tuple[tuple[str, Span], ...] = field(default=(), compare=False)


def operands(op: Op) -> tuple[Var, ...]:
    """The names an operation reads, in order."""
    match op:
        case Prim(_, _, args) | Call(_, _, args):
            return args
        case Closure(_, _, captured):
            return captured
        case Grad(fn) | Vjp(fn) | Jvp(fn):
            return (fn,)
        case Apply(fn, args):
            return (fn, *args)
        case Fold():
            return (*op.stacked, op.acc, *op.extras)


def callees(op: Op) -> tuple[str, ...]:
    """The functions an operation names."""
    match op:
        case Call(fn) | Closure(fn):
            return (fn,)
        case Fold():
            return (op.body,)
        case Prim() | Grad() | Vjp() | Jvp() | Apply():
            return ()
