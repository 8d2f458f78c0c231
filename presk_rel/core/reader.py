"""Reads PSK-Core text: the inverse of `core.printer`. Errors are diagnostics with spans, one per declaration.

dim T <= 1024
module M{In; T} { param w : ℝ[In]  init = zeros … }
fn f{In T}(θ : params M{In, T}) -> ℝ[] uses Rand { x : ℝ[In] = θ.w … return x }
"""

from __future__ import annotations

from dataclasses import replace

from presk_rel.core.cursor import Cursor, ReadError
from presk_rel.core.ir import Binding, Closure, Fold, Function, Op, Param, Program
from presk_rel.core.read_ops import PASSED_ON, Operations
from presk_rel.core.verify import findings
from presk_rel.diagnostics import Diagnostics
from presk_rel.elab.ty import Field, Init, InitKind, ModuleDef, ParamField, Real, UseField
from presk_rel.smt.linear import Linear, symbol

_INITS: dict[str, InitKind] = {
    "zeros": "zeros",
    "ones": "ones",
    "normal": "normal",
    "xavier_uniform": "xavier_uniform",
}
_MAX_ERRORS = 50
_STARTS = ("fn", "kernel", "module", "dim")


def load(text: str, file: str, diagnostics: Diagnostics) -> Program | None:
    """Read and check a `.core` file of the user's: None, and diagnostics, where it is no well-formed program."""
    program = read_program(text, file, diagnostics)
    if program is None:
        return None
    found = findings(program)
    for finding in found[:_MAX_ERRORS]:
        diagnostics.error("E0105", str(finding), finding.span)
    return None if found else program


def read_program(text: str, file: str, diagnostics: Diagnostics) -> Program | None:
    """The program a text denotes, unchecked; None, and diagnostics (E0100 … E0104), where it denotes none."""
    return _Reader(Cursor(text, file), diagnostics).program()


class _Reader:
    def __init__(self, cursor: Cursor, diagnostics: Diagnostics) -> None:
        self.c = cursor
        self.ops = Operations(cursor)
        self.diagnostics = diagnostics
        self.modules: dict[str, ModuleDef] = {}
        self.functions: dict[str, Function] = {}
        self.bounds: list[tuple[str, Linear]] = []

    def program(self) -> Program | None:
        errors = 0
        self.c.skip_newlines()
        while self.c.now.kind != "end" and errors < _MAX_ERRORS:
            try:
                self._declaration()
            except ReadError as error:
                errors += 1
                self.diagnostics.error(error.code, error.message, error.span)
                self._recover()
            self.c.skip_newlines()
        if errors:
            return None
        functions = {name: _resolved(f, self.functions) for name, f in self.functions.items()}
        return Program(self.modules, functions, tuple(self.bounds))

    def _recover(self) -> None:
        """On to the next declaration: the next word that starts one in the first column."""
        c = self.c
        c.restart()
        c.dims = frozenset()
        while c.now.kind != "end":
            if c.now.kind == "newline" and c.ahead().start.column == 1 and c.ahead().text in _STARTS:
                return
            c.step()

    def _declaration(self) -> None:
        c = self.c
        if c.at_word("fn") or c.at_word("kernel"):
            self._function()
        elif c.at_word("module"):
            self._module()
        elif c.at_word("dim"):
            c.step()
            name = c.name("a dim")
            c.expect("<=")
            self.bounds.append((name, c.form()))
            c.newline()
        else:
            raise c.fail("`fn`, `kernel`, `module` or `dim`")

    # ------------------------------------------------------------------------------------------------------- modules

    def _module(self) -> None:
        c = self.c
        c.word("module")
        at = c.here()
        name = c.path("a module's name")
        explicit, implicit = self._module_dims()
        c.dims = frozenset((*explicit, *implicit))
        c.expect("{")
        c.newline()
        fields: list[Field] = []
        c.skip_newlines()
        while not c.accept("}"):
            fields.append(self._field())
            c.skip_newlines()
        c.newline()
        if name in self.modules:
            raise ReadError("E0104", f"the module {name} is defined twice", at)
        self.modules[name] = ModuleDef(name, (*explicit, *implicit), len(explicit), tuple(fields))

    def _module_dims(self) -> tuple[list[str], list[str]]:
        c = self.c
        explicit: list[str] = []
        implicit: list[str] = []
        if not c.at("{") or c.ahead().kind == "newline":
            return explicit, implicit
        c.step()
        into = explicit
        while not c.accept("}"):
            if into is explicit and c.accept(";"):
                into = implicit
            else:
                into.append(c.name("a dim"))
        return explicit, implicit

    def _field(self) -> Field:
        c = self.c
        if c.at_word("use"):
            c.step()
            name = c.name("a field's name")
            c.expect(":")
            used = UseField(name, c.instance())
            c.newline()
            return used
        c.word("param")
        name = c.name("a field's name")
        c.expect(":")
        at = c.here()
        ty = c.type()
        if not isinstance(ty, Real):
            raise ReadError("E0100", f"a parameter is a real tensor, not {ty}", at)
        c.word("init")
        c.expect("=")
        init = self._init()
        c.newline()
        return ParamField(name, ty, init)

    def _init(self) -> Init:
        c = self.c
        kind = _INITS.get(c.now.text)
        if kind is None:
            raise c.fail("an initializer")
        c.step()
        if kind != "normal":
            return Init(kind)
        c.expect("(")
        c.word("std")
        c.expect("=")
        if c.now.kind != "number":
            raise c.fail("a decimal")
        self.ops.decimal()
        std = c.tokens[c.i - 1].text
        c.expect(")")
        return Init(kind, std)

    # ----------------------------------------------------------------------------------------------------- functions

    def _function(self) -> None:
        c = self.c
        kernel = c.at_word("kernel")
        c.step()
        first = c.now
        name = c.path("a function's name")
        dims = self._dims()
        c.dims = frozenset(dims)
        c.expect("(")
        params, _ = c.comma_list(")", self._param)
        header = c.since(first)
        self._skip_before("->")
        c.expect("->")
        result = c.type()
        uses: tuple[str, ...] = ()
        if c.at_word("uses"):
            c.step()
            uses = self.ops.names()
        c.expect("{")
        c.newline()
        bindings, ret = self._body()
        if name in self.functions:
            raise ReadError("E0104", f"the function {name} is defined twice", header)
        self.functions[name] = Function(name, dims, params, result, bindings, ret, uses, header, kernel)

    def _skip_before(self, mark: str) -> None:
        if self.c.now.kind == "newline" and self.c.ahead().text == mark:
            self.c.step()

    def _dims(self) -> tuple[str, ...]:
        c = self.c
        dims: list[str] = []
        if c.accept("{"):
            while not c.accept("}"):
                dims.append(c.name("a dim"))
        return tuple(dims)

    def _param(self) -> Param:
        self.c.skip_newlines()
        name = self.c.name("a parameter")
        self.c.expect(":")
        return Param(name, self.c.type())

    def _body(self) -> tuple[tuple[Binding, ...], str]:
        c = self.c
        bindings: list[Binding] = []
        c.skip_newlines()
        while not (c.at_word("return") and c.ahead().kind == "name"):
            bindings.append(self._binding())
            c.skip_newlines()
        c.step()
        ret = c.name("the name of the result")
        c.newline()
        c.skip_newlines()
        c.expect("}")
        c.newline()
        return tuple(bindings), ret

    def _binding(self) -> Binding:
        c = self.c
        first = c.now
        name = c.name("a binding or `return`")
        c.expect(":")
        ty = c.type()
        c.expect("=")
        op = self.ops.read()
        span = c.since(first)
        return Binding(name, ty, op, span, c.newline() or None)


def _resolved(function: Function, functions: dict[str, Function]) -> Function:
    """Left-out dim arguments are the callee's dims as they are."""
    bindings = tuple(replace(b, op=_with_dims(b.op, functions)) for b in function.bindings)
    return replace(function, bindings=bindings)


def _with_dims(op: Op, functions: dict[str, Function]) -> Op:
    match op:
        case Closure(fn, dim_args) | Fold(_, fn, dim_args) if dim_args is PASSED_ON:
            callee = functions.get(fn)
            return replace(op, dim_args=() if callee is None else tuple((d, symbol(d)) for d in callee.dims))
        case _:
            return op
