"""The primitives on trees, tuples and hyperparameters: resolved while generating; on trees, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from presk_rel.core.ir import Attr, Prim
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import SCALAR_REAL, Hyper, ModuleDef, Params, Real, TupleOf, Type, field_names
from presk_rel.exec.torch.nodes import Branch, Node, Single, built, parts_of
from presk_rel.exec.torch.operand import Operand, Step, run_axes
from presk_rel.exec.torch.rows_axes import row_scatter_params
from presk_rel.smt.linear import Linear

Call = Callable[[str, tuple[Attr, ...], tuple[Operand, ...], Type], Single]
"""Generates one primitive on leaves."""

LEAFWISE = frozenset({"add", "sub", "mul", "div", "neg", "pow", "sqrt", "max", "min"})
STACKS = frozenset({"slice_params", "scatter_params", "set_slice", "stack_params"})
STRUCTURE = frozenset({"field", "proj", "set_field", "set_elem", "tuple", "record", "split_key"})
"""Primitives that no row of `ops` computes."""


def structural(modules: dict[str, ModuleDef], op: Prim, args: list[Node], ty: Type, call: Call) -> Node | None:
    """A primitive that is resolved here; None for one that a row of `ops` computes."""
    attr = str(op.attrs[0]) if op.attrs else ""
    match op.op, args:
        case "field" | "proj", [Branch() as whole]:
            return whole.part(attr)
        case "set_field" | "set_elem", [Branch() as whole, part]:
            return whole.replaced(attr, part)
        case "tuple", _:
            return Branch(ty, tuple((str(i), a) for i, a in enumerate(args)))
        case "record", _ if isinstance(ty, Params):
            return Branch(ty, tuple(zip(field_names(modules, ty.instance), args)))
        case (("zeros_like" | "ones_like" | "zeros" | "ones"), _) if not isinstance(ty, Real):
            return built(modules, tangent(ty), lambda t, _: call(op.op.removesuffix("_like"), (), (), t))
        case "sum_squares", [Branch() as tree]:
            return _sum_squares(tree, call)
        case name, _ if name in STACKS:
            return _stacked(modules, op, args, ty, call)
        case name, _ if name in LEAFWISE and any(isinstance(a, Branch) for a in args):
            return _leafwise(op, args, call)
        case _:
            return None


def _leafwise(op: Prim, args: list[Node], call: Call) -> Node:
    """On two trees, or on a tree and a scalar at every leaf."""
    tree = next((a for a in args if isinstance(a, Branch)), None)
    if tree is None:
        operands = tuple(a.operand for a in args if isinstance(a, Single))
        return call(op.op, op.attrs, operands, max((o.type for o in operands), key=_rank))
    parts: list[tuple[str, Node]] = []
    for name, _ in tree.parts:
        below = [a.part(name) if isinstance(a, Branch) else a for a in args]
        parts.append((name, _leafwise(op, below, call)))
    return Branch(tree.type, tuple(parts))


def _rank(ty: Type) -> int:
    return len(ty.shape.axes) if isinstance(ty, Real) else 0


def _stacked(modules: dict[str, ModuleDef], op: Prim, args: list[Node], ty: Type, call: Call) -> Node:
    """Slices of stacks, and stacks of slices, leaf by leaf."""
    if not isinstance(ty, Params | TupleOf):
        return call(op.op, op.attrs, tuple(a.operand for a in args if isinstance(a, Single)), ty)
    parts: list[tuple[str, Node]] = []
    for name, below in parts_of(modules, ty):
        inner = [a.part(name) for a in args if isinstance(a, Branch)]
        parts.append((name, _stacked(modules, op, inner, below, call)))
    return Branch(ty, tuple(parts))


def sliced(step: Step) -> Operand | None:
    """The gradient of one slice of a stack, remembered as such; and the sum of the gradients of all slices, which is
    their stack."""
    match step.op, step.args:
        case "scatter_params", (ct, _):
            name = step.line(row_scatter_params(step))
            return Operand(name, step.type, run_axes(step.type, step.env), slices=((step.int(0), ct.name),))
        case "add", (a, b) if a.slices and b.slices and a.sizes == b.sizes == step.sizes:
            slices = tuple(sorted((*a.slices, *b.slices)))
            if len(dict(slices)) < len(slices):
                return None
            names = "".join(f"{name}, " for _, name in slices)
            text = f"torch.stack(({names}))" if len(slices) == step.sizes[0] else f"torch.add({a.name}, {b.name})"
            return Operand(step.line(text), step.type, run_axes(step.type, step.env), slices=slices)
        case _:
            return None


def _sum_squares(tree: Branch, call: Call) -> Node:
    terms: list[Operand] = []
    pending: list[Node] = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, Branch):
            pending += [v for _, v in reversed(part.parts)]
        elif isinstance(part.operand.type, Real):
            terms.append(call("sum_squares", (), (part.operand,), SCALAR_REAL).operand)
    total = terms[0] if terms else call("zeros", (), (), SCALAR_REAL).operand
    for term in terms[1:]:
        total = call("add", (), (total, term), SCALAR_REAL).operand
    return Single(total)


# -------------------------------------------------------------------------------------------------- hyperparameters

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}


def hyper(op: Prim, args: tuple[Operand, ...], ty: Hyper, dim: Callable[[Linear], int]) -> Fraction | str:
    """A primitive on hyperparameters, which are exact rationals: its value where the operands are known, else an
    expression of them."""
    match op.op, op.attrs:
        case "const", (int() | Fraction() as value,):
            return Fraction(value)
        case "dim", (Linear() as form,):
            return Fraction(dim(form))
        case _:
            pass
    known = [a.scalar for a in args]
    values = [k for k in known if k is not None]
    exponent = op.attrs[0] if op.attrs else None
    if len(values) == len(known) and not (op.op == "div" and values[1] == 0):
        return _hyper_value(op.op, values, exponent, ty)
    return _hyper_text(op.op, [a.name for a in args], exponent, ty)


def _hyper_value(op: str, values: list[Fraction], exponent: Attr | None, ty: Hyper) -> Fraction:
    match op, values:
        case "neg", [a]:
            return -a
        case "pow", [a] if isinstance(exponent, int):
            return a**exponent
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a - b
        case "mul", [a, b]:
            return a * b
        case "div", [a, b]:
            return Fraction(int(a / b)) if ty.kind in ("nat", "int") else a / b
        case _, [a, b]:
            holds = {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b}
            return Fraction(int(holds[op]))
        case _:
            raise KeyError(op)


def _hyper_text(op: str, names: list[str], exponent: Attr | None, ty: Hyper) -> str:
    if op == "neg":
        return f"-{names[0]}"
    if op == "pow":
        return f"{names[0]} ** {exponent}"
    if op in _COMPARED:
        return f"Fraction(int({names[0]} {_COMPARED[op]} {names[1]}))"
    if op == "div" and ty.kind in ("nat", "int"):
        return f"support.whole_quotient({names[0]}, {names[1]})"
    return f"{names[0]} {_ARITHMETIC[op]} {names[1]}"
