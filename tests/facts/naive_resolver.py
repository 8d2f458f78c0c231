"""Names resolved the usual way, by environments handed down the tree: what the rules are compared with.

Covers what `tests/facts/programs.py` generates: files of functions and modules; let, λ, calls, operators.
"""

from __future__ import annotations

from presk_rel.facts.ast_facts import decl_id, use_id
from presk_rel.facts.builtins import FUNCTIONS, MODULES, TYPES
from presk_rel.syntax import ast

Env = dict[str, str]


def resolve(file: ast.File) -> dict[str, str | None]:
    """Use → declaration, None for a name that means nothing."""
    resolver = _Resolver()
    env: Env = {name: f"builtin:{name}" for name in (*FUNCTIONS, *MODULES, *TYPES)}
    names = [decl.name for decl in file.decls if isinstance(decl, ast.Const | ast.Fn | ast.Module | ast.Dim)]
    env = _declare(env, names)
    for decl in file.decls:
        match decl:
            case ast.Const(value=value):
                resolver.expr(value, env)
            case ast.Fn():
                resolver.function(decl, env)
            case ast.Module():
                resolver.module(decl, env)
            case _:
                pass
    return resolver.found


def _declare(env: Env, names: list[ast.Ident]) -> Env:
    """The first of two equal names counts."""
    return {**env, **{n.text: decl_id(n) for n in reversed(names) if n.text != "_"}}


def _pattern(pattern: ast.Pattern) -> list[ast.Ident]:
    if isinstance(pattern, ast.NamePattern):
        return [pattern.name]
    return [name for item in pattern.items for name in _pattern(item)]


class _Resolver:
    def __init__(self) -> None:
        self.found: dict[str, str | None] = {}

    def module(self, module: ast.Module, env: Env) -> None:
        names = [p.name for p in module.type_params]
        names += [n for m in module.members for n in ([m.name] if isinstance(m, ast.Fn) else m.names)]
        env = _declare(env, names)
        for member in module.members:
            if isinstance(member, ast.Fn):
                self.function(member, env)
            elif isinstance(member, ast.Param):
                self.type(member.type, env, None)

    def function(self, function: ast.Fn, env: Env) -> None:
        outer = _declare(env, [p.name for p in function.type_params])
        implicit: Env = {}
        for param in function.params:
            self.type(param.type, outer, implicit)
        self.type(function.result, outer, implicit)
        self.expr(function.body, {**implicit, **_declare(outer, [p.name for p in function.params])})

    def type(self, ty: ast.TypeExpr | None, env: Env, implicit: Env | None) -> None:
        """Dimension names that mean nothing are declared by their first use, where that is allowed."""
        if not isinstance(ty, ast.RealType):
            return
        for axis in ty.axes:
            if isinstance(axis.dim, ast.Name):
                name, use = axis.dim.text, use_id(axis.dim.span)
                self.found[use] = env.get(name) or (None if implicit is None else implicit.setdefault(name, use))

    def expr(self, e: ast.Expr, env: Env) -> None:
        match e:
            case ast.Name(text=text):
                self.found[use_id(e.span)] = env.get(text)
            case ast.Binary(left=left, right=right):
                self.expr(left, env)
                self.expr(right, env)
            case ast.Negate(operand=operand):
                self.expr(operand, env)
            case ast.Call(callee=callee, args=args):
                self.expr(callee, env)
                for arg in args:
                    assert isinstance(arg, ast.Positional)
                    self.expr(arg.value, env)
            case ast.Tuple(items=items):
                for item in items:
                    self.expr(item, env)
            case ast.Let(pattern=pattern, value=value, body=body):
                self.expr(value, env)
                self.expr(body, _declare(env, _pattern(pattern)))
            case ast.Lambda(pattern=pattern, body=body):
                self.expr(body, _declare(env, _pattern(pattern)))
            case _:
                pass
