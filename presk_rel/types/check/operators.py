"""Operators (spec: "Broadcasting", "Operators"): one typing function per operator, run once its operands are known."""

from __future__ import annotations

from presk_rel.elab.ty import SCALAR_REAL, Function, Hyper, Idx, Mask, Params, Real, Shape, TupleOf, Type
from presk_rel.syntax import ast
from presk_rel.types.check.calls import pipe
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.check.contraction import contract
from presk_rel.types.check.exponents import exponent_of
from presk_rel.types.check.literals import number, only_literals
from presk_rel.types.check.shapes import broadcast_shapes, no_broadcast
from presk_rel.types.infer import Broken, IType, Meta, NumberKind, held, items_of, ity
from presk_rel.types.numbers import DEFAULT, WIDTH, admits
from presk_rel.types.tree import TExpr, TLiteral, TPrim

ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
COMPARISONS = {"==": "eq", "<=": "le", ">=": "ge", "<": "lt", ">": "gt"}
LARGEST_EXPONENT = 1_000_000
LARGEST_HYPER_EXPONENT = 1_000


def infer_binary(c: Checker, expr: ast.Binary, hint: IType | None) -> TExpr:
    """A left-deep chain of operators, walked by a loop. Literals in front of it wait for what follows them:
    `2 * 3 * x` is real where x is."""
    spine: list[ast.Binary] = []
    first: ast.Expr = expr
    while isinstance(first, ast.Binary):
        spine.append(first)
        first = first.left
    spine.reverse()
    head = _literal_head(first, spine)
    start: ast.Expr = first if head == 0 else spine[head - 1]
    wanted = _number_hint(c, hint)
    right: TExpr | None = None
    if only_literals(start) and head < len(spine) and spine[head].op in ARITHMETIC:
        right = c.infer(spine[head].right, wanted)
        wanted = _number_hint(c, ity(right)) or wanted
    left = _chain(c, first, spine[:head], wanted) if head else c.infer(first, wanted)
    for node in spine[head:]:
        left = _step(c, node, left, right, hint)
        right = None
    return left


def _literal_head(first: ast.Expr, spine: list[ast.Binary]) -> int:
    """How many operators at the start of the chain join literals only."""
    if not only_literals(first):
        return 0
    n = 0
    while n < len(spine) and (spine[n].op in ARITHMETIC or spine[n].op == "^") and only_literals(spine[n].right):
        n += 1
    return n


def _chain(c: Checker, first: ast.Expr, spine: list[ast.Binary], hint: IType | None) -> TExpr:
    left = c.infer(first, hint)
    for node in spine:
        left = _step(c, node, left, None, hint)
    return left


def _number_hint(c: Checker, hint: IType | None) -> IType | None:
    """What a literal operand of an expression of type `hint` should be."""
    match None if hint is None else c.unifier.shallow(hint):
        case Real() | Params():
            return SCALAR_REAL
        case Hyper() as ty:
            return ty
        case _:
            return None


def _step(c: Checker, node: ast.Binary, left: TExpr, right: TExpr | None, hint: IType | None) -> TExpr:
    if node.op == "|>":
        return pipe(c, node, left, hint)
    if node.op == "^":
        return _power(c, node, left)
    other = right if right is not None else c.infer(node.right, _number_hint(c, ity(left)) or _number_hint(c, hint))
    if node.op in ARITHMETIC:
        return c.later(lambda: _arithmetic(c, node, left, other, hint), node.span)
    if node.op == "·":
        return c.later(lambda: contract(c, left, other, node.op_span, node.span), node.span)
    if is_bad(left) or is_bad(other):
        return c.broken(node.span)
    if node.op in COMPARISONS:
        return c.later(lambda: _comparison(c, node, left, other, hint), node.span)
    where = "it belongs to module expressions and configuration blocks"
    if node.op == "%":
        where = "a remainder stands in `static assert a % k == 0` only; that of two int is a - (a / k) * k"
    return c.error("E2020", f"`{node.op}` is no operator of values", node.op_span, help=where)


# ----------------------------------------------------------------------------------------------------- arithmetic


def _arithmetic(c: Checker, node: ast.Binary, left: TExpr, right: TExpr, hint: IType | None) -> TExpr | None:
    op = ARITHMETIC[node.op]
    a, b = _numbers(c, left, right, hint)
    if isinstance(a, Broken) or isinstance(b, Broken):
        return c.broken(node.span)
    if isinstance(a, Meta) or isinstance(b, Meta):
        return None
    match a, b:
        case Real(s), Real(t):
            return _on_reals(c, node, left, right, s, t)
        case Hyper(k), Hyper(m) if k == m and k != "bool":
            result = Hyper("int") if k == "nat" and op in ("sub", "div") else a
            return TPrim(op, (), (left, right), result, node.span)
        case (Params() | TupleOf(), Params() | TupleOf()) if op in ("add", "sub") and _is_tree(c, a):
            return _on_trees(c, node, left, right)
        case (Params() | TupleOf(), Real(Shape(None, ()))) if op in ("mul", "div") and _is_tree(c, a):
            return TPrim(op, (), (left, right), held(a), node.span)
        case (Real(Shape(None, ())), Params() | TupleOf()) if op == "mul" and _is_tree(c, b):
            return TPrim(op, (), (left, right), held(b), node.span)
        case _:
            return _refuse(c, node, a, b)


def _numbers(c: Checker, left: TExpr, right: TExpr, hint: IType | None) -> tuple[IType, IType]:
    """The operands' types, literals adapted to the other operand, or to the context if both are literals."""
    a, b = c.type_of(left), c.type_of(right)
    match a, b:
        case Meta(number=m), Meta(number=n) if m is not None and n is not None:
            ty = _number_hint(c, hint)
            wider: NumberKind = m if WIDTH[m] >= WIDTH[n] else n
            ty = ty if ty is not None and admits(ty, wider) else DEFAULT[wider]
            c.unifier.unify(a, ty)
            c.unifier.unify(b, ty)
        case Meta(number=m), _ if m is not None:
            _adapt(c, a, b, m)
        case _, Meta(number=n) if n is not None:
            _adapt(c, b, a, n)
        case _:
            return a, b
    return c.type_of(left), c.type_of(right)


def _adapt(c: Checker, literal: IType, other: IType, kind: NumberKind) -> None:
    """A literal beside a tensor or a tree is a real scalar; beside a hyperparameter that type, or its own default when
    that type has no such number (and then they do not mix)."""
    match other:
        case Real() | Params() | TupleOf():
            c.unifier.unify(literal, SCALAR_REAL)
        case Hyper():
            c.unifier.unify(literal, other if admits(other, kind) else DEFAULT[kind])
        case Idx() | Mask():
            c.unifier.unify(literal, DEFAULT[kind])
        case _:
            return


def _is_tree(c: Checker, ty: IType) -> bool:
    """Are all leaves real tensors? Literals among them become real."""
    match ty:
        case Real() | Params():
            return True
        case TupleOf():
            return all(_is_tree(c, t) for t in items_of(ty))
        case Meta(number=number) if number is not None:
            return c.unifier.unify(ty, SCALAR_REAL) is None
        case _:
            return False


def _on_reals(c: Checker, node: ast.Binary, left: TExpr, right: TExpr, s: Shape, t: Shape) -> TExpr | None:
    if (c.unifier.is_open(s) and not t.is_scalar) or (c.unifier.is_open(t) and not s.is_scalar):
        return None
    shape = broadcast_shapes(c, s, t, node.op_span, f"`{node.op}`")
    if shape is None:
        return no_broadcast(c, f"`{node.op}`", node.op_span, left, right)
    return TPrim(ARITHMETIC[node.op], (), (left, right), Real(shape), node.span)


def _comparison(c: Checker, node: ast.Binary, left: TExpr, right: TExpr, hint: IType | None) -> TExpr | None:
    """Of two hyperparameters a bool, of two real or two index tensors a mask."""
    a, b = _numbers(c, left, right, None)
    if isinstance(a, Broken) or isinstance(b, Broken):
        return c.broken(node.span)
    if isinstance(a, Meta) or isinstance(b, Meta):
        return None
    match a, b:
        case Hyper(), Hyper() if a == b:
            return TPrim(COMPARISONS[node.op], (), (left, right), Hyper("bool"), node.span)
        case (Real(s), Real(t)) | (Idx(_, s), Idx(_, t)):
            if c.unifier.is_open(s) or c.unifier.is_open(t):
                return None
            shape = broadcast_shapes(c, s, t, node.op_span, f"`{node.op}`")
            if shape is None:
                return no_broadcast(c, f"`{node.op}`", node.op_span, left, right)
            return TPrim(COMPARISONS[node.op], (), (left, right), Mask(shape), node.span)
        case _:
            return _refuse(c, node, a, b)


def _on_trees(c: Checker, node: ast.Binary, left: TExpr, right: TExpr) -> TExpr:
    node_ = TPrim(ARITHMETIC[node.op], (), (left, right), left.type, node.span)
    failed = c.unify(ity(left), ity(right), node.op_span, f"`{node.op}`")
    if failed is None:
        return node_
    return c.mismatch(
        f"`{node.op}` cannot combine {c.show(left)} with {c.show(right)}", failed, node.op_span, Blame("")
    )


def _refuse(c: Checker, node: ast.Binary, a: Type, b: Type) -> TExpr:
    message = f"`{node.op}` cannot combine {c.unifier.show(a)} with {c.unifier.show(b)}"
    return c.error("E2005", message, node.op_span, help=_mixing_help(a, b))


def _mixing_help(a: Type, b: Type) -> str | None:
    kinds = (type(a), type(b))
    if Mask in kinds:
        return "a mask enters no arithmetic; give it to softmax(axis a, x, where = m)"
    if Idx in kinds:
        return "indices are no reals: inject them by real(t)"
    if Function in kinds:
        return "a function enters no arithmetic: apply it to its arguments"
    if kinds == (Hyper, Hyper):
        return "numbers of two types do not mix; the - and / of two nat are int"
    if Hyper in kinds and Real in kinds:
        return "a hyperparameter is injected into ℝ by real(n) or (n : ℝ)"
    return None


# ------------------------------------------------------------------------------------------------- · and ^ and unary -


def _power(c: Checker, node: ast.Binary, left: TExpr) -> TExpr:
    exponent = exponent_of(c, node.right)
    if exponent is None or is_bad(left):
        return c.broken(node.span)
    return c.later(lambda: _raised(c, node, left, exponent), node.span)


def _raised(c: Checker, node: ast.Binary, left: TExpr, exponent: int) -> TExpr | None:
    ty = c.type_of(left)
    match ty:
        case Broken():
            return c.broken(node.span)
        case Meta(number=None):
            return None
        case Meta(number=kind) if kind is not None:
            ty = DEFAULT[kind]
            c.unifier.unify(ity(left), ty)
        case _:
            pass
    if not isinstance(ty, Real) and not (isinstance(ty, Hyper) and ty.kind != "bool"):
        return c.error("E2005", f"`^` raises reals and numbers, not {c.show(left)}", node.op_span)
    limit = LARGEST_EXPONENT if isinstance(ty, Real) else LARGEST_HYPER_EXPONENT
    if exponent > limit:
        return c.error("E2017", f"the exponent {exponent} is beyond {limit}", node.right.span)
    return TPrim("pow", (exponent,), (left,), ty, node.span)


def infer_negate(c: Checker, expr: ast.Negate, hint: IType | None) -> TExpr:
    operand = c.infer(expr.operand, hint)
    if isinstance(operand, TLiteral) and not is_bad(operand) and isinstance(expr.operand, ast.Nat | ast.Decimal):
        kind: NumberKind = "decimal" if isinstance(expr.operand, ast.Decimal) else "integer"
        return number(c, -operand.value, kind, hint, expr.span)
    return c.later(lambda: _negated(c, expr, operand), expr.span)


def _negated(c: Checker, expr: ast.Negate, operand: TExpr) -> TExpr | None:
    ty = c.type_of(operand)
    match ty:
        case Broken():
            return c.broken(expr.span)
        case Meta(number=None):
            return None
        case Meta(number=kind) if kind is not None:
            c.unifier.unify(ity(operand), DEFAULT[kind])
            return _negated(c, expr, operand)
        case Real():
            return TPrim("neg", (), (operand,), ty, expr.span)
        case Hyper(kind) if kind != "bool":
            return TPrim("neg", (), (operand,), Hyper("int") if kind == "nat" else ty, expr.span)
        case _:
            return c.error("E2005", f"`-` negates reals and numbers, not {c.show(operand)}", expr.span)
