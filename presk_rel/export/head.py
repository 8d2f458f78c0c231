"""The head of an exported file: constants, assertions, and dims and types as comments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from presk_rel.export.context import Context
from presk_rel.export.text import comment
from presk_rel.syntax import ast
from presk_rel.syntax.printer import print_expr, print_type


def head(context: Context, files: Sequence[ast.File]) -> str:
    """What the files declare besides modules and functions, in source order, imports first. Constants get their Python
    names here, those of the main file theirs as they are."""
    for file in reversed(files):
        _name(context, file)
    blocks = [(file, _lines(context, file)) for file in files]
    blocks = [(file, lines) for file, lines in blocks if lines]
    if len(blocks) < 2 and (not blocks or blocks[0][0] is files[-1]):
        return "\n".join(line for _, lines in blocks for line in lines)
    titled = [[f"# {comment(PurePath(file.path).name)}", *lines] for file, lines in blocks]
    return "\n\n".join("\n".join(lines) for lines in titled)


def _name(context: Context, file: ast.File) -> None:
    written = context.written
    for decl in file.decls:
        if not isinstance(decl, ast.Const):
            continue
        declaration = written.declared.get((file.path, decl.name.text), "")
        if declaration in written.values:
            written.names[declaration] = context.names.new(decl.name.text)


def _lines(context: Context, file: ast.File) -> list[str]:
    written, lines = context.written, list[str]()
    for decl in file.decls:
        match decl:
            case ast.Const(name) if (python := written.of_file(file.path, name.text)) is not None:
                lines.append(f"{python} = {written.values[written.declared[file.path, name.text]]}")
            case ast.StaticAssert(condition):
                text = _python(condition, context, file.path)
                lines.append(f"assert {text}" if text else f"# static assert {comment(print_expr(condition))}")
            case ast.Dim(name, bound):
                lines.append(comment(f"# dim {name.text}" + (f" <= {print_expr(bound)}" if bound is not None else "")))
            case ast.TypeAlias(name, ty):
                lines.append(comment(f"# type {name.text} = {print_type(ty)}"))
            case _:
                continue
    return lines


_OPERATORS = {"+", "-", "*", "/", "%", "==", "<", "<=", ">", ">=", "!="}


def _python(e: ast.Expr, context: Context, file: str) -> str | None:
    """A condition on constants of the file; None for one on anything else."""
    match e:
        case ast.Nat(text):
            return text
        case ast.Name(text):
            return context.written.of_file(file, text)
        case ast.Binary(op, left, right) if op in _OPERATORS:
            a, b = _python(left, context, file), _python(right, context, file)
            if a is None or b is None:
                return None
            text = f"{a} {'//' if op == '/' else op} {b}"
            return text if op in ("==", "<", "<=", ">", ">=", "!=") else f"({text})"
        case _:
            return None
