"""Tree → text: canonical Unicode, the fewest parentheses, valid layout. `parse(print_file(t), p).file == t`.

A node is expanded into strings and the nodes inside it, with a stack instead of recursion, so that no depth overflows
and the time is linear. What can be printed is what source text can say: names are identifiers that are no reserved
words (after `.` and in front of a configuration item reserved words are names too), tuples, tuple types and tuple
patterns do not have one item, paths are names and fields, a `training` block is called `run` and an `inference` block
`serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never

from presk_rel.syntax import ast
from presk_rel.syntax.print_expr import expr, expr_parts, module_expr, module_parts, quoted, type_, type_parts
from presk_rel.syntax.print_parts import BLOCK, INDENT, Part, Task, render, separated


def print_expr(node: ast.Expr) -> str:
    """One line but for `let`, whose body stands on the next."""
    return render(Task(expr_parts, node, BLOCK))


def print_type(node: ast.TypeExpr) -> str:
    return render(Task(type_parts, node))


def print_module_expr(node: ast.ModuleExpr) -> str:
    return render(Task(module_parts, node))


def print_file(file: ast.File) -> str:
    """One-line declarations of the same kind stand together; a blank line parts the others."""
    texts: list[str] = []
    before: ast.Decl | None = None
    for decl in file.decls:
        text = render(Task(_decl, decl))
        if before is not None and (type(before) is not type(decl) or "\n" in text or "\n" in texts[-1]):
            texts.append("")
        texts.append(text)
        before = decl
    return "\n".join(texts) + "\n" if texts else ""


def _decl(at: Task) -> Sequence[Part]:
    decl: ast.Decl = at.node
    match decl:
        case ast.Import(path, alias):
            return [f"import {quoted(path)} as {alias.text}"]
        case ast.Const(name, annotation, value):
            typed: list[Part] = [" : ", type_(annotation, at)] if annotation is not None else []
            return [f"const {name.text}", *typed, " = ", expr(value, at)]
        case ast.StaticAssert(condition):
            return ["static assert ", expr(condition, at)]
        case ast.Dim(name, bound):
            return [f"dim {name.text}", *([" <= ", expr(bound, at)] if bound is not None else [])]
        case ast.TypeAlias(name, aliased):
            return [f"type {name.text} = ", type_(aliased, at)]
        case ast.Effect(name):
            return [f"effect {name.text}"]
        case ast.Model(name, module):
            return [f"model {name.text} = ", module_expr(module)]
        case ast.Module():
            return _module(decl)
        case ast.Fn():
            return _fn(decl, at)
        case ast.Config():
            return _config(decl)
        case _:
            assert_never(decl)


def _body(parts: list[Part]) -> list[Part]:
    """` { … }`, one part a line."""
    if not parts:
        return [" {\n}"]
    return [" {\n", INDENT, *separated(parts, "\n" + INDENT), "\n}"]


def _module(decl: ast.Module) -> Sequence[Part]:
    members: list[Part] = [Task(_member, member, margin=INDENT) for member in decl.members]
    return [f"module {decl.name.text}{_type_params(decl.type_params)}", *_body(members)]


def _type_params(params: tuple[ast.TypeParam, ...]) -> str:
    groups = [f"{' '.join(p.name.text for p in group)} : {kind}" for kind, group in groupby(params, lambda p: p.kind)]
    return f"{{{', '.join(groups)}}}" if groups else ""


def _member(at: Task) -> Sequence[Part]:
    member: ast.Member = at.node
    match member:
        case ast.Param(names, declared, init):
            # the parser takes one `param` for the declaration's own
            doubled = "param " if isinstance(declared, ast.ParamType) else ""
            clause: list[Part] = [" init = ", expr(init, at)] if init is not None else []
            return [f"param {_names(names)} : {doubled}", type_(declared, at), *clause]
        case ast.Use(names, module):
            return [f"use {_names(names)} : ", module_expr(module)]
        case ast.Fn():
            return _fn(member, at)
        case _:
            assert_never(member)


def _names(names: tuple[ast.Ident, ...]) -> str:
    return ", ".join(name.text for name in names)


def _fn(fn: ast.Fn, at: Task) -> Sequence[Part]:
    params: list[Part] = [Task(_fn_param, param, margin=at.margin + INDENT) for param in fn.params]
    result: list[Part] = [" -> ", type_(fn.result, at)] if fn.result is not None else []
    uses = f" uses {_names(fn.uses)}" if fn.uses else ""
    name = f"fn {fn.name.text}{_type_params(fn.type_params)}"
    inner = at.margin + INDENT
    return [
        name,
        "(",
        *separated(params),
        ")",
        *result,
        uses,
        " =\n",
        inner,
        Task(expr_parts, fn.body, BLOCK, True, inner),
    ]


def _fn_param(at: Task) -> Sequence[Part]:
    param: ast.FnParam = at.node
    typed: list[Part] = [" : ", type_(param.type, at)] if param.type is not None else []
    default: list[Part] = [" = ", expr(param.default, at, BLOCK)] if param.default is not None else []
    return ["axis " if param.is_axis else "", param.name.text, *typed, *default]


def _config(decl: ast.Config) -> Sequence[Part]:
    items: list[Part] = [Task(_config_item, item, margin=INDENT) for item in decl.items]
    return [f"{decl.kind} {decl.name.text}", *_body(items)]


def _config_item(at: Task) -> Sequence[Part]:
    item: ast.ConfigItem = at.node
    match item:
        case ast.ConfigField(name, annotation, value):
            typed: list[Part] = [" : ", type_(annotation, at)] if annotation is not None else []
            return [name.text, *typed, " = ", expr(value, at)]
        case ast.Checkpoint(steps, path):
            return ["checkpoint every ", expr(steps, at), f" steps to {quoted(path)}"]
        case _:
            assert_never(item)
