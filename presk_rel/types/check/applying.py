"""A call of a function whose signature is known: its dims and leading axes instantiated, its arguments checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from presk_rel.diagnostics import Label, Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.signatures import ParamSig, Signature
from presk_rel.elab.ty import ModuleValue
from presk_rel.smt.linear import Linear, symbol
from presk_rel.smt.solver import AtMost
from presk_rel.types.check.arguments import Arg, Given, Value, check_value, infer_all, infer_value, match
from presk_rel.types.check.axes import axis_parameters, specialised
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.check.places import place_of
from presk_rel.types.infer import BROKEN, IType, held
from presk_rel.types.instantiate import Instantiation, instantiate
from presk_rel.types.problems import Obligation
from presk_rel.types.tree import DimArgs, TCall, TExpr
from presk_rel.types.zonk import Rewrite


@record
class Applied:
    """A checked call of `core`: the arguments that are values, the first of them of type `first`."""

    core: str
    dim_args: DimArgs
    args: tuple[TExpr, ...]
    first: IType
    result: IType


def call_signature(
    c: Checker,
    signature: Signature,
    given: Mapping[str, Linear],
    front: tuple[TExpr, ...],
    args: Sequence[Arg],
    span: Span,
) -> TExpr:
    """A call as `TCall`; `front` are the arguments before those of the source (the parameter tree)."""
    applied = apply_signature(c, signature, given, args, span)
    if applied is None:
        return c.broken(span)
    return TCall(applied.core, applied.dim_args, (*front, *applied.args), held(applied.result), span)


def apply_signature(
    c: Checker, signature: Signature, given: Mapping[str, Linear], args: Sequence[Arg], span: Span
) -> Applied | None:
    """None after an error."""
    if axis_parameters(signature):
        special = specialised(c, signature, args, span)
        if special is None:
            infer_all(c, args)
            return None
        signature, args = special
    values = match(c, signature.core, signature.params, args, span)
    if values is None:
        infer_all(c, args)
        return None
    inst = instantiate(c.unifier, signature, given, span)
    nodes: list[TExpr] = []
    types: list[IType] = []
    fine = True
    for param, value in zip(signature.params, values, strict=True):
        if param.instance is not None:
            fine &= _module_argument(c, signature, inst, param, value, span)
            continue
        expected = BROKEN if param.type is None or not fine else inst.type(param.type)
        node = _argument(c, signature, inst, param, value, expected, span)
        fine &= not is_bad(node)
        nodes.append(node)
        types.append(expected)
    if not fine or signature.result is None:
        c.failed = True
        return None
    _owe_bounds(c, signature, inst, span)
    dims = tuple((d, inst.lengths[d]) for d in signature.dims)
    return Applied(signature.core, dims, tuple(nodes), types[0] if types else BROKEN, inst.type(signature.result))


def _argument(
    c: Checker,
    signature: Signature,
    inst: Instantiation,
    param: ParamSig,
    value: Value | None,
    expected: IType,
    span: Span,
) -> TExpr:
    if value is not None:
        return check_value(c, value, expected, blame_of(signature, param))
    default = c.program.defaults.get(param.id)
    if default is None:
        return c.broken(span)
    return Rewrite(inst.type, inst.length).expr(default)


def blame_of(signature: Signature, param: ParamSig) -> Blame:
    declared = None if param.node.type is None else Label(param.node.span, f"`{param.name}` is declared here")
    return Blame(f"the argument `{param.name}` of `{signature.core}`", declared)


def _module_argument(
    c: Checker, signature: Signature, inst: Instantiation, param: ParamSig, value: Value | None, span: Span
) -> bool:
    """`mse(net, θ, …)`: the argument of a module-typed parameter, which is compile-time only."""
    assert param.type is not None
    expected = inst.type(param.type)
    place = None if value is None or isinstance(value, Given) else place_of(c, value)
    where = span if value is None else value.span
    if place is None:
        if value is not None and is_bad(infer_value(c, value)):
            return False
        c.error(
            "E2023",
            f"the argument `{param.name}` of `{signature.core}` is a module, and this is a value",
            where,
            help=f"pass a module of type {param.type}",
        )
        return False
    if place.instance is None:
        c.failed = True
        return False
    before = c.unifier.show(expected)
    failed = c.unify(ModuleValue(place.instance), expected, where, f"`{param.name}`")
    if failed is None:
        return True
    found = c.unifier.show(ModuleValue(place.instance))
    blame = blame_of(signature, param)
    c.mismatch(f"{blame.what} is the module {found}, but {before} is expected", failed, where, blame)
    return False


def _owe_bounds(c: Checker, signature: Signature, inst: Instantiation, span: Span) -> None:
    """A callee's `dim T <= N` binds the caller: its form for T is at most N."""
    for name, bound in c.program.elab.bounds:
        value = inst.lengths.get(name)
        if value is None or value == symbol(name):
            continue
        what = f"`{signature.core}` needs {name} ≤ {bound}"
        c.unifier.obligations.append(Obligation(AtMost(value, inst.length(bound)), span, what, "E2018"))
