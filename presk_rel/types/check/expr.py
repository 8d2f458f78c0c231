"""One row per form of expression: which function infers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from presk_rel.syntax import ast
from presk_rel.types.check.ascription import infer_ascription
from presk_rel.types.check.calls import infer_call
from presk_rel.types.check.checker import Checker
from presk_rel.types.check.einsum import infer_ein
from presk_rel.types.check.indexing import infer_index
from presk_rel.types.check.lets import infer_lambda, infer_let, infer_tuple
from presk_rel.types.check.literals import infer_no_value, infer_number
from presk_rel.types.check.operators import infer_binary, infer_negate
from presk_rel.types.check.paths import infer_path
from presk_rel.types.infer import IType
from presk_rel.types.tree import TExpr

FORMS: dict[type, Callable[[Checker, Any, IType | None], TExpr]] = {
    ast.Name: infer_path,
    ast.Field: infer_path,
    ast.DimApply: infer_path,
    ast.Nat: infer_number,
    ast.Decimal: infer_number,
    ast.Quantity: infer_no_value,
    ast.Str: infer_no_value,
    ast.Negate: infer_negate,
    ast.Binary: infer_binary,
    ast.Call: infer_call,
    ast.Index: infer_index,
    ast.Let: infer_let,
    ast.Lambda: infer_lambda,
    ast.Ein: infer_ein,
    ast.Ascribe: infer_ascription,
    ast.Tuple: infer_tuple,
}


def infer(c: Checker, expr: ast.Expr, hint: IType | None) -> TExpr:
    return FORMS[type(expr)](c, expr, hint)
