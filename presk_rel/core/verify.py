"""The structural check of PSK-Core (spec: "PSK-Core", Verification), run after every pass.

Every name is defined once and before its use; every operation has the operands, attributes and types its row or its
callee says; every call instantiates the dims its callee mentions; every declared type is the inferred one up to
axis names; dims and prefixes in types are the function's own; no function reaches itself.
"""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

from presk_rel.core.acyclic import cycle
from presk_rel.core.ir import (
    Apply,
    Attr,
    Binding,
    Call,
    Closure,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Prim,
    Program,
    Vjp,
    callees,
    operands,
)
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import (
    absorb,
    compatible_types,
    prefixes_in,
    slice_type,
    stack_type,
    substitute,
    symbols_in,
    tangent,
)
from presk_rel.core.typing_rules import infer
from presk_rel.core.verify_kernels import kernel_findings
from presk_rel.core.verify_modules import instance_problem, module_findings
from presk_rel.diagnostics import NOWHERE, PreskBug, Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.elab.ty import SCALAR_REAL, ModuleValue, Shape, TupleOf, Type
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.smt.linear import Linear

EFFECTS = frozenset({"Rand"})
_SHOWN = 3


@record
class Finding:
    """One thing wrong with a Core program: where (`Linear.apply/%3`, `module Linear`) and what."""

    where: str
    text: str
    span: Span = NOWHERE

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def verify(program: Program, pass_name: str) -> None:
    """Raises PreskBug, naming the pass that made the program, if it is not well-formed."""
    found = problems(program)
    if found:
        more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
        raise PreskBug(pass_name, "PSK-Core is not well-formed: " + "; ".join(found[:_SHOWN]) + more)


def problems(program: Program) -> list[str]:
    """Everything wrong with a program, in order, as text; empty for a well-formed one."""
    return [str(f) for f in findings(program)]


def findings(program: Program) -> list[Finding]:
    """`problems` with the span of the binding that each one is at."""
    found = [Finding(where, text) for where, text in module_findings(program)]
    if found:
        return found
    mentioned: dict[str, frozenset[str]] = {}
    for name, function in program.functions.items():
        if name != function.name:
            found.append(Finding(f"fn {function.name}", f"is listed as {name}"))
        check = _Check(program, function, mentioned)
        check.run()
        found.extend(check.found)
    found += [Finding(f"{f.name}/{b.name}", text, b.span) for f, b, text in kernel_findings(program)]
    loop = cycle({name: _called(f, program) for name, f in program.functions.items()})
    if loop:
        found.append(Finding(f"fn {loop[0]}", f"reaches itself: {' → '.join([*loop, loop[0]])}"))
    return found


def _called(function: Function, program: Program) -> list[str]:
    return [c for b in function.bindings for c in callees(b.op) if c in program.functions]


class _Broken(Exception):
    """An operation that has no type; the text says why."""


@mutable
class _Check:
    """The check of one function. `mentioned` are the dims that callees mention, as far as anyone asked. `types` are the
    names in scope with their declared types, `unreliable` those whose type denotes nothing: what reads them is not
    looked at."""

    program: Program
    function: Function
    mentioned: dict[str, frozenset[str]]
    found: list[Finding] = field(default_factory=list[Finding])
    types: dict[str, Type] = field(default_factory=dict[str, Type])
    prefixes: set[str] = field(default_factory=set[str])
    unreliable: set[str] = field(default_factory=set[str])

    def run(self) -> None:
        f = self.function
        self._header()
        for b in f.bindings:
            self._binding(b)
        if f.ret not in self.types:
            self._report(f"returns {f.ret}, which is not defined")
        elif not compatible_types(self.types[f.ret], f.result):
            self._report(f"returns {f.ret} : {self.types[f.ret]}, but declares {f.result}")

    def _report(self, text: str, b: Binding | None = None) -> None:
        where = f"fn {self.function.name}" if b is None else f"{self.function.name}/{b.name}"
        self.found.append(Finding(where, text, self.function.span if b is None else b.span))

    def _header(self) -> None:
        f = self.function
        if len(set(f.dims)) != len(f.dims):
            self._report(f"declares a dim twice: {' '.join(f.dims)}")
        for effect in f.uses:
            if effect not in EFFECTS:
                self._report(f"uses the unknown effect {effect}")
        for p in f.params:
            self.prefixes |= prefixes_in(p.type)
        for p in f.params:
            self._define(p.name, p.type, None)
        self._well_formed(f.result, "the result", None)

    def _define(self, name: str, ty: Type, b: Binding | None) -> None:
        if name in self.types:
            self._report(f"{name} is defined twice", b)
        self._well_formed(ty, name, b)
        self.types[name] = ty

    def _well_formed(self, ty: Type, what: str, b: Binding | None) -> None:
        f = self.function
        problem = type_problem(self.program, ty)
        if problem is not None:
            self.unreliable.add(what)
            self._report(f"{what} has the type {ty}: {problem}", b)
        undeclared = sorted(symbols_in(ty) - set(f.dims))
        if undeclared:
            self._report(f"the type {ty} of {what} mentions {undeclared[0]}, which is no dim of the function", b)
        loose = sorted(prefixes_in(ty) - self.prefixes)
        if loose:
            self._report(f"the type {ty} of {what} has the prefix {loose[0]}, which no parameter has", b)
        if prefixes_in(ty) & set(f.dims):
            self._report(f"the type {ty} of {what} has a dim as prefix", b)

    def _binding(self, b: Binding) -> None:
        before = len(self.found)
        undefined = [v for v in operands(b.op) if v not in self.types]
        for v in undefined:
            self._report(f"reads {v}, which is not defined before", b)
        for form in forms_of(b.op):
            for s in sorted(form.symbols - set(self.function.dims)):
                self._report(f"mentions {s}, which is no dim of the function", b)
        self._define(b.name, b.type, b)
        if len(self.found) > before or any(v in self.unreliable for v in operands(b.op)):
            return
        try:
            ty = self._infer(b.op, b.type)
        except _Broken as error:
            self._report(str(error), b)
            return
        if not compatible_types(ty, b.type):
            self._report(f"is declared {b.type}, but {_describe(b.op)} gives {ty}", b)

    # ------------------------------------------------------------------------------------------------- operations

    def _infer(self, op: Op, declared: Type) -> Type:
        args = tuple(self.types[v] for v in operands(op))
        match op:
            case Prim(name, attrs, _):
                return self._prim(name, attrs, args, declared)
            case Call(fn, dim_args, _):
                params, result = self._signature(fn, dim_args)
                if len(params) != len(args):
                    raise _Broken(f"{fn} takes {len(params)} arguments, not {len(args)}")
                return _instantiate(fn, params, args, result, {})
            case Closure(fn, dim_args, _):
                return self._closure(fn, dim_args, args, declared)
            case Grad():
                return _gradient(args[0], declared)
            case Vjp() | Jvp():
                return _derivative(op, args[0], declared)
            case Apply():
                return _application(args)
            case Fold():
                return self._fold(op)
            case _:
                assert_never(op)

    def _prim(self, name: str, attrs: tuple[Attr, ...], args: tuple[Type, ...], declared: Type) -> Type:
        row = PRIMS.get(name)
        if row is None:
            raise _Broken(f"{name} is no primitive")
        ty = infer(row, attrs, args, declared, self.program.modules)
        if isinstance(ty, str):
            raise _Broken(ty)
        return ty

    def _signature(self, fn: str, dim_args: tuple[tuple[str, Linear], ...]) -> tuple[list[Type], Type]:
        """A callee's parameter types and result, its dims replaced by the caller's forms."""
        callee = self.program.functions.get(fn)
        if callee is None:
            raise _Broken(f"{fn} is no function")
        given = dict(dim_args)
        if len(given) != len(dim_args):
            raise _Broken(f"a dim of {fn} is given twice")
        unknown = sorted(set(given) - set(callee.dims))
        if unknown:
            raise _Broken(f"{fn} has no dim {unknown[0]}")
        if fn not in self.mentioned:
            self.mentioned[fn] = dims_in(callee)
        missing = sorted(self.mentioned[fn] - set(given))
        if missing:
            raise _Broken(f"the dim {missing[0]} of {fn} is not given")
        return [substitute(p.type, given, {}) for p in callee.params], substitute(callee.result, given, {})

    def _closure(
        self, fn: str, dim_args: tuple[tuple[str, Linear], ...], captured: tuple[Type, ...], declared: Type
    ) -> Type:
        params, result = self._signature(fn, dim_args)
        n = len(captured)
        if n > len(params):
            raise _Broken(f"{fn} takes {len(params)} arguments, the closure has {n}")
        prefixes: dict[str, Shape] = {}
        _matched(fn, params[:n], captured, prefixes)
        if isinstance(declared, FunctionType) and len(declared.params) == len(params) - n:
            _matched(fn, params[n:], declared.params, prefixes)
        return FunctionType(tuple(substitute(p, {}, prefixes) for p in params[n:]), substitute(result, {}, prefixes))

    def _fold(self, op: Fold) -> Type:
        params, result = self._signature(op.body, op.dim_args)
        n = len(op.stacked)
        if op.count.is_constant and (op.count.const < 0 or op.count.const.denominator != 1):
            raise _Broken(f"the count of a fold is a natural number, not {op.count}")
        if len(params) != n + 1 + len(op.extras):
            raise _Broken(f"{op.body} takes {len(params)} arguments, the fold passes {n + 1 + len(op.extras)}")
        args: list[Type] = []
        for v in op.stacked:
            piece = slice_type(op.count, self.types[v])
            if piece is None:
                raise _Broken(f"{v} : {self.types[v]} is no stack of {op.count}")
            args.append(piece)
        acc = self.types[op.acc]
        args.extend((acc, *(self.types[v] for v in op.extras)))
        after = _instantiate(op.body, params, tuple(args), result, {})
        if not compatible_types(after, acc):
            raise _Broken(f"{op.body} gives {after}, the accumulator is {acc}")
        if not op.scan:
            return acc
        stack = stack_type(op.count, acc)
        if stack is None:
            raise _Broken(f"accumulators of type {acc} do not stack")
        return TupleOf((acc, stack))


def _instantiate(fn: str, params: list[Type], args: tuple[Type, ...], result: Type, prefixes: dict[str, Shape]) -> Type:
    _matched(fn, params, args, prefixes)
    return substitute(result, {}, prefixes)


def _matched(fn: str, params: list[Type], args: tuple[Type, ...], prefixes: dict[str, Shape]) -> None:
    problem = absorb(params, args, prefixes)
    if problem is not None:
        raise _Broken(f"{fn}: {problem}")


def _gradient(ty: Type, declared: Type) -> Type:
    match ty:
        case FunctionType((param,), result) if result == SCALAR_REAL:
            same_type = FunctionType((param,), param)
            return same_type if compatible_types(same_type, declared) else FunctionType((param,), tangent(param))
        case _:
            raise _Broken(f"grad takes a function of one argument with result ℝ[], not {ty}")


def _derivative(op: Vjp | Jvp, ty: Type, declared: Type) -> Type:
    """Of x ↦ y: (x, ∂y) ↦ ∂x, or (x, ∂x) ↦ ∂y; a (co)tangent has the type of the value or `tangent` of it."""
    match ty, declared:
        case FunctionType((x,), y), FunctionType((_, given), result):
            source, target = (y, x) if isinstance(op, Vjp) else (x, y)
            return FunctionType((x, _variation(source, given)), _variation(target, result))
        case FunctionType((_,), _), _:
            raise _Broken(f"{_describe(op)} gives a function of two arguments, not {declared}")
        case _:
            raise _Broken(f"{_describe(op)} takes a function of one argument, not {ty}")


def _variation(ty: Type, declared: Type) -> Type:
    return ty if compatible_types(ty, declared) else tangent(ty)


def _application(args: tuple[Type, ...]) -> Type:
    match args[0]:
        case FunctionType(params, result) if len(params) == len(args) - 1:
            for p, a in zip(params, args[1:], strict=True):
                if not compatible_types(p, a):
                    raise _Broken(f"the function takes {p}, not {a}")
            return result
        case ty:
            raise _Broken(f"{ty} does not take {len(args) - 1} arguments")


def type_problem(program: Program, ty: Type) -> str | None:
    """What is wrong with a type by itself: an unknown module, a wrong number of dimension arguments, a module value."""
    match ty:
        case ModuleValue():
            return "a module is no value of PSK-Core"
        case TupleOf(items):
            return next((p for t in items if (p := type_problem(program, t)) is not None), None)
        case FunctionType(params, result):
            return next((p for t in (*params, result) if (p := type_problem(program, t)) is not None), None)
        case _:
            return instance_problem(program.modules, ty)


def dims_in(f: Function) -> frozenset[str]:
    """The dims that a function mentions: in its signature, and in what it computes."""
    types = (*(p.type for p in f.params), f.result, *(b.type for b in f.bindings))
    forms = (form for b in f.bindings for form in forms_of(b.op))
    return frozenset[str]().union(*map(symbols_in, types), *(form.symbols for form in forms))


def forms_of(op: Op) -> list[Linear]:
    """The dimension forms an operation mentions: attributes, dim arguments, a fold's count."""
    match op:
        case Prim(_, attrs, _):
            return [a for a in attrs if isinstance(a, Linear)]
        case Call(_, dim_args, _) | Closure(_, dim_args, _):
            return [d for _, d in dim_args]
        case Fold(count, _, dim_args):
            return [count, *(d for _, d in dim_args)]
        case Grad() | Vjp() | Jvp() | Apply():
            return []
        case _:
            assert_never(op)


def _describe(op: Op) -> str:
    match op:
        case Prim(name):
            return name
        case Call(fn):
            return f"call {fn}"
        case Closure(fn):
            return f"closure {fn}"
        case Grad():
            return "grad"
        case Vjp():
            return "vjp"
        case Jvp():
            return "jvp"
        case Apply():
            return "apply"
        case Fold(_, body):
            return f"fold {body}"
        case _:
            assert_never(op)
