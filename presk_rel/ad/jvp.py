"""Forward mode for one function: `f.jvp(params…, tangents…) = (f(params…), the tangent of it)`.

The body is copied; after each binding comes the tangent of its value, from the tangents of its operands. A `.jvp` is
written for the parameters that have a tangent where it is called (`active`), so what does not depend on them has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from presk_rel.ad.builder import Builder
from presk_rel.ad.derivatives import DERIVATIVES
from presk_rel.ad.forward import zeros
from presk_rel.ad.known import KnownFunctions
from presk_rel.ad.names import rename
from presk_rel.ad.row import Flat, Point
from presk_rel.ad.sweep import Writer
from presk_rel.ad.tangent import has_tangent
from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Jvp, Op, Prim, Var, Vjp
from presk_rel.core.shapes import stack_type, tangent
from presk_rel.diagnostics import Diagnostic, PreskBug
from presk_rel.elab.ty import ModuleDef, TupleOf
from presk_rel.smt.linear import symbol

Active = tuple[int, ...]
"""The parameters of a function that have a tangent, in order."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A `.jvp` before pruning, and what it refuses (E6002)."""

    function: Function
    refusals: tuple[Diagnostic, ...]


@dataclass(slots=True)
class _Push:
    """One forward pass: `tangents` of the names that have one, `renamed` from the primal to the copy."""

    b: Builder
    writer: Writer
    refusals: list[Diagnostic] = field(default_factory=list[Diagnostic])
    tangents: dict[Var, Var] = field(default_factory=dict[Var, Var])
    renamed: dict[Var, Var] = field(default_factory=dict[Var, Var])
    known: KnownFunctions = field(default_factory=KnownFunctions)


def push(f: Function, name: str, active: Active, modules: dict[str, ModuleDef], writer: Writer) -> Pushed:
    """`f.jvp` for the parameters `active`, called `name`."""
    p = _Push(Builder(modules), writer)
    b = p.b
    b.span = f.span
    for param in f.params:
        p.renamed[param.name] = b.param(param.name, param.type)
    for i in active:
        p.tangents[b.params[i].name] = b.param(f"d{f.params[i].name}", tangent(f.params[i].type))
    for binding in f.bindings:
        _binding(p, binding)
    b.span, b.note = f.span, None
    value = p.renamed[f.ret]
    change = p.tangents.get(value)
    if change is None:
        b.note = "nothing reaches the result"
        change = zeros(b, value)
    result = TupleOf((f.result, tangent(f.result)))
    ret = b.prim("tuple", result, value, change)
    written = Function(name, f.dims, tuple(b.params), result, tuple(b.bindings), ret, f.uses, f.span)
    return Pushed(written, tuple(p.refusals))


def _binding(p: _Push, binding: Binding) -> None:
    b = p.b
    b.span, b.note = binding.span, f"primal {binding.name}"
    user = binding.name if binding.name.partition("%")[0] else ""
    op = rename(binding.op, p.renamed)
    if isinstance(op, Apply) and op.fn in p.known.values:
        op = p.known.values[op.fn].applied(op.args)
    pair = _with_tangent(p, op, binding, user) if has_tangent(binding.type) else None
    value, change = pair if pair is not None else (b.emit(op, binding.type, user), None)
    p.renamed[binding.name] = value
    p.known.see(replace(binding, name=value, op=op))
    if change is not None:
        p.tangents[value] = change


def _with_tangent(p: _Push, op: Op, binding: Binding, user: Var) -> tuple[Var, Var] | None:
    """The value of a binding that has a tangent, and that; None where it has none."""
    match op:
        case Prim():
            return _primitive(p, op, binding, user)
        case Call():
            return _call(p, op, binding, user)
        case Fold():
            return _fold(p, op, binding, user)
        case Apply(fn):
            why = f"cannot differentiate the application of `{fn}`: it is not a function known at compile time"
            p.refusals.append(Diagnostic("E6002", why, binding.span))
            return None
        case Closure() | Grad() | Vjp() | Jvp():
            return None


def _primitive(p: _Push, op: Prim, binding: Binding, user: Var) -> tuple[Var, Var] | None:
    row = DERIVATIVES.get(op.op)
    if row is None:
        raise PreskBug("ad", f"primitive {op.op} has no derivative row")
    given = tuple(None if isinstance(row.operand(i), Flat) else p.tangents.get(v) for i, v in enumerate(op.args))
    if not any(v is not None for v in given):
        return None
    value = p.b.emit(op, binding.type, user)
    p.b.note = f"tangent of {binding.name} ({op.op})"
    return value, row.forward(p.b, Point(op.op, op.attrs, op.args, value, given))


def _call(p: _Push, op: Call, binding: Binding, user: Var) -> tuple[Var, Var] | None:
    active = tuple(i for i, v in enumerate(op.args) if v in p.tangents)
    if not active:
        return None
    b = p.b
    types = TupleOf((binding.type, tangent(binding.type)))
    given = tuple(p.tangents[op.args[i]] for i in active)
    both = b.emit(Call(p.writer.jvp(op.fn, active), op.dim_args, (*op.args, *given)), types)
    value = b.emit(Prim("proj", (0,), (both,)), binding.type, user)
    b.note = f"tangent of {binding.name} (call {op.fn})"
    return value, b.prim("proj", types.items[1], both, attrs=(1,))


# --------------------------------------------------------------------------------------------------------------- folds


def _fold(p: _Push, op: Fold, binding: Binding, user: Var) -> tuple[Var, Var] | None:
    """The fold of the pairs (acc, ∂acc): tangents of stacked operands are stacked, those of extras are extras."""
    b, n = p.b, len(op.stacked)
    stacked = tuple(i for i, v in enumerate(op.stacked) if v in p.tangents)
    extras = tuple(i for i, v in enumerate(op.extras) if v in p.tangents)
    if not stacked and not extras and op.acc not in p.tangents:
        return None
    acc = b.types[op.acc]
    pair = TupleOf((acc, tangent(acc)))
    first = b.prim("tuple", pair, op.acc, p.tangents.get(op.acc) or zeros(b, op.acc))
    active = (*stacked, n, *(n + 1 + i for i in extras))
    fold = replace(
        op,
        body=_pushed_body(p.writer, p.writer.function(op.body), n, active),
        stacked=(*op.stacked, *(p.tangents[op.stacked[i]] for i in stacked)),
        acc=first,
        extras=(*op.extras, *(p.tangents[op.extras[i]] for i in extras)),
    )
    if not op.scan:
        both = b.emit(fold, pair)
        value = b.emit(Prim("proj", (0,), (both,)), binding.type, user)
        b.note = f"tangent of {binding.name} (fold {op.body})"
        return value, b.prim("proj", pair.items[1], both, attrs=(1,))
    return _scanned(p, fold, pair, binding, user)


def _scanned(p: _Push, fold: Fold, pair: TupleOf, binding: Binding, user: Var) -> tuple[Var, Var]:
    """A scan gives ((acc, ∂acc), (stack, ∂stack)): the parts of one kind belong together."""
    b = p.b
    stack = stack_type(fold.count, pair)
    if not isinstance(stack, TupleOf):
        raise PreskBug("ad", f"{pair.items[0]} is scanned, but does not stack")
    both = b.emit(fold, TupleOf((pair, stack)))
    last, history = b.prim("proj", pair, both, attrs=(0,)), b.prim("proj", stack, both, attrs=(1,))

    def of_kind(i: int, name: Var) -> Var:
        parts = [b.prim("proj", ty.items[i], v, attrs=(i,)) for ty, v in ((pair, last), (stack, history))]
        return b.emit(Prim("tuple", (), tuple(parts)), TupleOf((pair.items[i], stack.items[i])), name)

    value = of_kind(0, user)
    b.note = f"tangent of {binding.name} (fold {fold.body})"
    return value, of_kind(1, "")


def _pushed_body(writer: Writer, body: Function, n: int, active: Active) -> str:
    """`body.fold_jvp(slices…, ∂slices…, (acc, ∂acc), extras…, ∂extras…)`: the next (acc, ∂acc)."""
    kind = f"{body.name}.fold_jvp"
    return writer.helper(f"{kind} {n} {active}", kind, lambda name: _write_body(writer, body, n, active, name))


def _write_body(writer: Writer, body: Function, n: int, active: Active, name: str) -> Function:
    b = Builder({})
    b.span = body.span
    names: dict[int, Var] = {}
    changes: dict[int, Var] = {}

    def declare(where: range) -> None:
        for i in where:
            names[i] = b.param(body.params[i].name, body.params[i].type)
        for i in where:
            if i in active:
                changes[i] = b.param(f"d{body.params[i].name}", tangent(body.params[i].type))

    acc = body.params[n]
    pair = TupleOf((acc.type, tangent(acc.type)))
    declare(range(n))
    both = b.param(acc.name, pair)
    declare(range(n + 1, len(body.params)))
    names[n] = b.prim("proj", pair.items[0], both, attrs=(0,))
    changes[n] = b.prim("proj", pair.items[1], both, attrs=(1,))
    args = (*(names[i] for i in range(len(body.params))), *(changes[i] for i in active))
    given = tuple((d, symbol(d)) for d in body.dims)
    ret = b.emit(Call(writer.jvp(body.name, active), given, args), TupleOf((body.result, tangent(body.result))))
    return Function(name, body.dims, tuple(b.params), b.types[ret], tuple(b.bindings), ret, body.uses, body.span)
