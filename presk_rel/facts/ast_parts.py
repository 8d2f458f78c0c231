"""The parts of trees that the extraction of facts walks through."""

from __future__ import annotations

from presk_rel.facts.ast_ids import use_id
from presk_rel.syntax import ast

Node = ast.Expr | ast.TypeExpr | ast.ModuleExpr


def path_use(path: ast.Expr) -> str | None:
    """The use that a path ends in: `m.MiniGPT{…}` → that of `MiniGPT`. None for what is no path. (A path that starts
    at no name, `f(x).a.b`, gives a use that no rule resolves.)"""
    while isinstance(path, ast.DimApply):
        path = path.base
    match path:
        case ast.Name(span=span) | ast.Field(name=ast.Ident(span=span)):
            return use_id(span)
        case _:
            return None


def components(module: ast.ModuleExpr | ast.TypeExpr | None) -> list[str]:
    """The uses that name the modules whose functions an instance runs: `stack{L}(Block)` runs those of `Block`."""
    found: list[str] = []
    todo = [module]
    while todo:
        match todo.pop():
            case ast.ModuleRef(path=path, modules=()) | ast.NamedType(path=path):
                use = path_use(path)
                found.extend([] if use is None else [use])
            case ast.ModuleRef(modules=modules):
                todo.extend(reversed(modules))
            case ast.Compose(outer=outer, inner=inner):
                todo.extend((inner, outer))
            case _:
                pass
    return found


def children(node: Node) -> list[Node | None]:
    """The parts of a node that stand in the same scope, in source order."""
    match node:
        case ast.Negate(operand=operand):
            return [operand]
        case ast.Binary(left=left, right=right):
            return [left, right]
        case ast.Call(callee=callee, args=args):
            return [callee, *(_argument(arg) for arg in args)]
        case ast.DimApply(base=base, dims=dims):
            return [base, *dims]
        case ast.Index(base=base, selectors=selectors):
            return [base, *(part for selector in selectors for part in _selector(selector))]
        case ast.Ein(body=body):
            return [body]
        case ast.Ascribe(value=value, type=annotation):
            return [value, annotation]
        case ast.Tuple(items=items):
            return [*items]
        case ast.ModuleRef(path=path, dims=dims, modules=modules):
            return [path, *dims, *modules]
        case ast.Compose(outer=outer, inner=inner):
            return [outer, inner]
        case _:
            return []


def _argument(arg: ast.Arg) -> ast.Expr | None:
    match arg:
        case ast.Positional(value=value) | ast.Named(value=value):
            return value
        case ast.NamedAxis(dim=dim):
            return dim
        case ast.AxisArg():
            return None


def _selector(selector: ast.Selector) -> tuple[ast.Expr, ...]:
    match selector:
        case ast.At(index=index):
            return (index,)
        case ast.Slice(low=low, high=high):
            return (low, high)
