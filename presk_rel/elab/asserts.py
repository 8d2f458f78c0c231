"""Static assertions, decided last for all naturals (spec: "Facts and assertions")."""

from __future__ import annotations

from presk_rel.diagnostics import Diagnostic
from presk_rel.elab.context import Elab
from presk_rel.elab.dims import dimension
from presk_rel.smt.linear import Linear
from presk_rel.smt.solver import AtMost, Condition, Divides, Equal, Less, Proven, Refuted, Undecided
from presk_rel.syntax import ast

_FORMS = "an assertion is a == b, a <= b, a < b, a >= b, a > b or a % k == 0 over dimensions"


def check_assertions(elab: Elab) -> None:
    """E1004 for one that fails, with the smallest counterexample; E1039 for one that cannot be decided; E1040 for one
    of another form."""
    for file in elab.files:
        for decl in file.decls:
            if isinstance(decl, ast.StaticAssert):
                _check(elab, decl)


def _check(elab: Elab, decl: ast.StaticAssert) -> None:
    found = _condition(elab, decl)
    if found is None:
        return
    condition, text = found
    verdict = elab.solver.prove(condition)
    match verdict:
        case Proven():
            return
        case Refuted(example):
            fails = str(verdict) if example else "fails"
            elab.diagnostics.add(
                Diagnostic(
                    "E1004",
                    f"the static assertion {text} {fails}",
                    decl.condition.span,
                    counterexample=example or None,
                )
            )
        case Undecided(reason):
            elab.error("E1039", f"the static assertion {text} could not be decided ({reason})", decl.condition.span)


def _condition(elab: Elab, decl: ast.StaticAssert) -> tuple[Condition, str] | None:
    node = decl.condition
    if not isinstance(node, ast.Binary) or node.op not in ("==", "<=", "<", ">=", ">"):
        elab.error("E1040", "this is no assertion about dimensions", node.span, help=_FORMS)
        return None
    if isinstance(node.left, ast.Binary) and node.left.op == "%":
        return _divisibility(elab, node, node.left)
    left, right = dimension(elab, node.left), dimension(elab, node.right)
    if left is None or right is None:
        return None
    text = f"{left} {node.op} {right}"
    match node.op:
        case "==":
            return Equal(left, right), text
        case "<=":
            return AtMost(left, right), text
        case "<":
            return Less(left, right), text
        case ">=":
            return AtMost(right, left), text
        case _:
            return Less(right, left), text


def _divisibility(elab: Elab, node: ast.Binary, modulo: ast.Binary) -> tuple[Condition, str] | None:
    dividend, divisor, rest = (dimension(elab, e) for e in (modulo.left, modulo.right, node.right))
    if dividend is None or divisor is None or rest is None:
        return None
    if not divisor.is_constant or divisor.const.denominator != 1 or divisor.const < 1:
        elab.error("E1040", f"`% {divisor}`: the divisor must be a positive number", modulo.right.span, help=_FORMS)
        return None
    if node.op != "==" or rest != Linear((), rest.const) or rest.const != 0:
        elab.error("E1040", "divisibility is asserted as a % k == 0", node.span, help=_FORMS)
        return None
    shown = f"({dividend})" if len(dividend.terms) + (dividend.const != 0) > 1 else str(dividend)
    return Divides(int(divisor.const), dividend), f"{shown} % {divisor} == 0"
