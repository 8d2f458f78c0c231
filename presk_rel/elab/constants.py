"""Constants: exact, in order of declaration, naturals only (spec: "Constants")."""

from __future__ import annotations

from collections.abc import Mapping

from presk_rel.elab.context import Elab, id_of
from presk_rel.elab.dims import LARGEST, dimension
from presk_rel.syntax import ast


def evaluate_constants(elab: Elab, overrides: Mapping[tuple[str, str], int]) -> None:
    """Fills `elab.constants`. `overrides` (`--const`) replace the value of (file, name) before anything reads it."""
    for file in elab.files:
        for decl in file.decls:
            if isinstance(decl, ast.Const):
                elab.constants[id_of(decl.name)] = _value(elab, decl, overrides.get((file.path, decl.name.text)))


def _value(elab: Elab, decl: ast.Const, override: int | None) -> int | None:
    if not _is_nat(decl.type):
        elab.error(
            "E1021",
            f"the constant `{decl.name.text}` must have the type nat",
            decl.name.span,
            help="a constant is a natural number; give other numbers as parameters",
        )
        return None
    if override is not None:
        return override
    if isinstance(decl.value, ast.Decimal):
        return _not_natural(elab, decl, decl.value.text)
    form = dimension(elab, decl.value)
    if form is None:
        return None
    if not form.is_constant:
        return _not_natural(elab, decl, f"`{form}`, which depends on a dimension")
    if form.const.denominator != 1 or form.const < 0:
        return _not_natural(elab, decl, str(form))
    if form.const > LARGEST:
        elab.error("E1029", f"the constant `{decl.name.text}` is beyond 10^18", decl.value.span)
        return None
    return int(form.const)


def _is_nat(annotation: ast.TypeExpr | None) -> bool:
    match annotation:
        case None:
            return True
        case ast.NamedType(ast.Name("nat"), None):
            return True
        case _:
            return False


def _not_natural(elab: Elab, decl: ast.Const, what: str) -> None:
    elab.error("E1020", f"the constant `{decl.name.text}` is {what}: not a natural number", decl.value.span)
