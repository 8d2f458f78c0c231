"""The state of checking one function body, and what every part of the checker does with it: infer an expression,
expect a type, report a mismatch, put off what waits for a type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

from presk_rel.diagnostics import Label, Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.elab.context import Elab
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Function, Hyper, Idx, Mask, ModuleValue, Params, Real, TupleOf
from presk_rel.smt.linear import Linear
from presk_rel.smt.solver import Equal, Refuted
from presk_rel.syntax import ast
from presk_rel.types.check.lifted import Lifted
from presk_rel.types.infer import BROKEN, Broken, Hole, IType, Meta, held, in_tree, ity
from presk_rel.types.problems import Mismatch
from presk_rel.types.tree import Binder, TExpr, TFn, TLiteral
from presk_rel.types.unify import Unifier

DEEPEST = 400
"""Expressions nested deeper are refused (E9002). The parser allows 200 levels of brackets; postfix chains may go
deeper."""

Infer = Callable[["Checker", ast.Expr, "IType | None"], TExpr]


@mutable
class Program:
    """What all functions are checked against."""

    elab: Elab
    signatures: dict[str, Signature]
    check_function: Callable[[Program, Signature], TFn | None]
    defaults: dict[str, TExpr] = field(default_factory=dict[str, TExpr])
    """The checked default of each parameter that has one, by declaration id."""
    made: dict[str, list[TFn]] = field(default_factory=dict[str, list[TFn]])
    """Functions made while checking a function, by its declaration id (`check.lifted`, `check.axes`)."""
    specialised: dict[tuple[str, tuple[str, ...]], Signature | None] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], "Signature | None"]
    )
    """Functions with axis parameters, by id and axes (`check.axes`); None after an error."""


@record
class Blame:
    """What a mismatch is about: `what` begins the sentence, `declared` is where the expectation comes from."""

    what: str
    declared: Label | None = None
    help: str | None = None


@mutable
class Stuck:
    """An expression whose type waits for another: `attempt` gives its tree once it can."""

    attempt: Callable[[], TExpr | None]
    hole: Hole
    span: Span


@mutable
class Checker:
    program: Program
    signature: Signature | None
    unifier: Unifier
    dispatch: Infer
    env: dict[str, Binder] = field(default_factory=dict[str, Binder])
    """Local variables by declaration id."""
    stuck: list[Stuck] = field(default_factory=list[Stuck])
    at_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Checks that are run once every type is known."""
    lifted: list[Lifted] = field(default_factory=list[Lifted])
    """Functions made for calls of the body, inner ones first."""
    binders: int = 0
    depth: int = 0
    failed: bool = False

    # ------------------------------------------------------------------------------------------ inferring, expecting

    def infer(self, expr: ast.Expr, hint: IType | None = None) -> TExpr:
        """The typed expression. `hint` is the type its context would take, and decides only where `expr` alone does
        not: literals, parameters of lambdas. Whether it agrees is for `expect` to say."""
        if self.depth >= DEEPEST:
            return self.error("E9002", "this expression is nested too deep for this version", expr.span)
        self.depth += 1
        try:
            return self.dispatch(self, expr, hint)
        finally:
            self.depth -= 1

    def check(self, expr: ast.Expr, expected: IType, blame: Blame) -> TExpr:
        return self.expect(self.infer(expr, expected), expected, expr.span, blame)

    def expect(self, node: TExpr, expected: IType, span: Span, blame: Blame) -> TExpr:
        """`node`, once its type is unified with `expected`; E2003 at `span` otherwise."""
        failed = self.unify(ity(node), expected, span, blame.what)
        if failed is None:
            return node
        found, wanted = self.type_of(node), self.unifier.resolve(expected)
        has = "is" if isinstance(found, Meta) else "has the type"
        message = f"{blame.what} {has} {self.unifier.show(found)}, but {self.unifier.show(wanted)} is expected"
        blame = Blame(blame.what, blame.declared, blame.help or conversion_help(found, wanted))
        return self.mismatch(message, failed, span, blame)

    def unify(self, left: IType, right: IType, span: Span, what: str) -> Mismatch | None:
        self.unifier.where = (span, what)
        return self.unifier.unify(left, right)

    # --------------------------------------------------------------------------------------------------- diagnostics

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        help: str | None = None,
        labels: tuple[Label, ...] = (),
        counterexample: dict[str, int] | None = None,
    ) -> TExpr:
        self.failed = True
        self.program.elab.diagnostics.error(
            code, message, span, labels=labels, help=help, counterexample=counterexample
        )
        return bad(span)

    def broken(self, span: Span) -> TExpr:
        """What stands for an expression whose error is reported already, or reported by the pass over names."""
        self.failed = True
        return bad(span)

    def mismatch(self, message: str, failed: Mismatch, span: Span, blame: Blame) -> TExpr:
        """E2003. A failed length equation is shown with the smallest naturals that refute it."""
        reason, example = self.reason(failed)
        labels = () if blame.declared is None else (blame.declared,)
        return self.error("E2003", f"{message}{reason}", span, labels=labels, help=blame.help, counterexample=example)

    def reason(self, failed: Mismatch) -> tuple[str, dict[str, int] | None]:
        show = self.unifier.show_text
        if failed.lengths is None:
            inner = f": {show(failed.left)}, not {show(failed.right)}"
            return ("" if failed.whole else inner), None
        left, right = failed.lengths
        verdict = self.unifier.solver.prove(Equal(left, right)) if not _unknown(left, right) else None
        where = "" if failed.axis is None else f" on the axis {failed.axis},"
        text = f":{where} `{show(str(left))} = {show(str(right))}`"
        if isinstance(verdict, Refuted):
            example = dict(verdict.counterexample)
            return (f"{text} {verdict}" if example else f"{text} does not hold"), example or None
        return f"{text} does not hold", None

    # ------------------------------------------------------------------------------------------------------- waiting

    def later(self, attempt: Callable[[], TExpr | None], span: Span) -> TExpr:
        """The tree that `attempt` makes, now or once the types it waits for are known (it gives None until then)."""
        now = attempt()
        if now is not None:
            return now
        hole = Hole(held(self.unifier.fresh_type()), span)
        self.stuck.append(Stuck(attempt, hole, span))
        return in_tree(hole)

    def retry(self) -> None:
        """Tries again what waits, as long as something comes of it."""
        seen = -1
        while self.stuck and seen != self.unifier.solved:
            seen = self.unifier.solved
            waiting, self.stuck = self.stuck, []
            for stuck in waiting:
                self._retry(stuck)

    def _retry(self, stuck: Stuck) -> None:
        node = stuck.attempt()
        if node is None:
            self.stuck.append(stuck)
            return
        stuck.hole.node = node
        self.expect(node, stuck.hole.type, stuck.span, Blame("this"))

    # --------------------------------------------------------------------------------------------------------- other

    def binder(self, ident: ast.Ident, ty: IType) -> Binder:
        self.binders += 1
        return Binder(self.binders, ident.text, held(ty), ident.span)

    def type_of(self, node: TExpr) -> IType:
        """The type of a node as far as it is known, throughout."""
        return self.unifier.resolve(ity(node))

    def show(self, node: TExpr) -> str:
        return self.unifier.show(ity(node))


def conversion_help(found: IType, wanted: IType) -> str | None:
    """How to make what is wanted of what was found, where people often forget it."""
    match found, wanted:
        case Function(), Real() | Idx() | Mask() | Hyper() | Params() | TupleOf():
            return "this is a function: apply it to its arguments"
        case Params(), ModuleValue():
            return "a module is expected, not its parameters: pass its name"
        case Hyper(kind), Real(shape) if kind != "bool" and shape.is_scalar:
            return "a hyperparameter is injected into ℝ by real(n) or (n : ℝ)"
        case Idx(), Real():
            return "indices are injected into ℝ by real(t)"
        case Real(), Hyper():
            return "a real never becomes a hyperparameter: the parameter could be declared as ℝ"
        case _:
            return None


def bad(span: Span) -> TExpr:
    return TLiteral(Fraction(0), held(BROKEN), span)


def is_bad(node: TExpr) -> bool:
    return isinstance(ity(node), Broken)


def _unknown(*forms: Linear) -> bool:
    return any(s.startswith("?") for form in forms for s, _ in form.terms)
