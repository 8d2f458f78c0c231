"""PSK-Core as text (spec: "PSK-Core"); `core.reader` reads it back as the same program.

Where a callee's dims are all passed on under their own names, `closure` and `fold` leave the braces out, as the spec
prints them; `call` always writes them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never
from unicodedata import combining

from presk_rel.core.ir import (
    Apply,
    Attr,
    Binding,
    Call,
    Closure,
    DimArgs,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Prim,
    Program,
    Vjp,
)
from presk_rel.core.numbers import number_text
from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.elab.ty import ModuleDef, ParamField, UseField
from presk_rel.smt.linear import symbol

HEADER_WIDTH = 100
"""A function's header beyond this many columns breaks before `->`."""

NOTE_COLUMN = 43
"""Where provenance comments start, unless the binding is longer."""


def print_program(program: Program) -> str:
    """The whole program: bounds, modules, functions."""
    parts: list[str] = []
    if program.bounds:
        parts.append("\n".join(f"dim {name} <= {bound}" for name, bound in program.bounds))
    parts.extend(print_module(m) for m in program.modules.values())
    parts.extend(print_function(f, program) for f in program.functions.values())
    return "\n\n".join(parts) + "\n"


def print_module(module: ModuleDef) -> str:
    """`module M{In Out; T} { … }`: after `;` the file's dims that the fields mention."""
    explicit, implicit = module.dims[: module.explicit], module.dims[module.explicit :]
    dims = " ".join(explicit) + ("; " + " ".join(implicit) if implicit else "")
    lines = [f"module {module.name}" + (f"{{{dims}}}" if dims else "") + " {"]
    for field in module.fields:
        match field:
            case ParamField(name, ty, init):
                lines.append(f"  param {name} : {ty}  init = {init}")
            case UseField(name, instance):
                lines.append(f"  use {name} : {instance}")
            case _:
                assert_never(field)
    return "\n".join([*lines, "}"])


def print_function(function: Function, program: Program | None = None) -> str:
    """One function. `program` says what its callees' dims are (see the head of this module)."""
    lines = [_header(function)]
    rows = [("  " + print_binding(b, program), _one_line(b.note)) for b in function.bindings]
    column = max([NOTE_COLUMN, *(_width(text) + 2 for text, note in rows if note)])
    lines.extend(f"{text}{' ' * (column - _width(text))}-- {note}" if note else text for text, note in rows)
    return "\n".join([*lines, f"  return {function.ret}", "}"])


def _header(f: Function) -> str:
    dims = f"{{{' '.join(f.dims)}}}" if f.dims else ""
    word = "kernel" if f.kernel else "fn"
    left = f"{word} {f.name}{dims}({', '.join(f'{p.name} : {p.type}' for p in f.params)})"
    right = f"-> {f.result}" + (f" uses {', '.join(f.uses)}" if f.uses else "") + " {"
    whole = f"{left} {right}"
    return whole if len(whole) <= HEADER_WIDTH else f"{left}\n    {right}"


def _width(text: str) -> int:
    """Columns on a screen: a combining mark (the hat of x̂) takes none."""
    return len(text) if text.isascii() else sum(not combining(c) for c in text)


def _one_line(note: str | None) -> str:
    return " ".join(note.split()) if note else ""


def print_binding(b: Binding, program: Program | None = None) -> str:
    """`%3 : ℝ[..., Out] = dot x, w`, without its note."""
    return f"{b.name} : {b.type} = {print_op(b.op, program)}"


def print_op(op: Op, program: Program | None = None) -> str:
    match op:
        case Prim(name, attrs, args):
            return _prim(name, attrs, args)
        case Call(fn, dim_args, args):
            return f"call {fn}{_braces(dim_args) if dim_args else ''}({', '.join(args)})"
        case Closure(fn, dim_args, captured):
            return f"closure {fn}{_given(fn, dim_args, program)}[{', '.join(captured)}]"
        case Grad(fn):
            return f"grad {fn}"
        case Vjp(fn):
            return f"vjp {fn}"
        case Jvp(fn):
            return f"jvp {fn}"
        case Apply(fn, args):
            return f"apply {fn}({', '.join(args)})"
        case Fold():
            return _fold(op, program)
        case _:
            assert_never(op)


def _fold(op: Fold, program: Program | None) -> str:
    inner = f"stacked {', '.join(op.stacked)}".rstrip() + f"; acc {op.acc}"
    if op.extras:
        inner += f"; {', '.join(op.extras)}"
    flags = (" reverse" if op.reverse else "") + (" scan" if op.scan else "")
    return f"fold {op.count} {op.body}{_given(op.body, op.dim_args, program)}({inner}){flags}"


def _given(fn: str, dim_args: DimArgs, program: Program | None) -> str:
    """Dim arguments of a closure or fold, left out where every dim of the callee is passed on as it is."""
    callee = program.functions.get(fn) if program is not None else None
    if dim_args == (() if callee is None else tuple((d, symbol(d)) for d in callee.dims)):
        return ""
    return _braces(dim_args)


def _braces(dim_args: DimArgs) -> str:
    return "{" + ", ".join(f"{d} = {form}" for d, form in dim_args) + "}"


def _prim(op: str, attrs: tuple[Attr, ...], args: tuple[str, ...]) -> str:
    match op, attrs, args:
        case "field" | "proj", (which,), (base,):
            return f"{base}.{which}"
        case "tuple", (), _:
            return f"({', '.join(args)}{',' if len(args) == 1 else ''})"
        case _:
            pass
    words = [op, *_attrs(op, attrs)]
    if args:
        words.append(", ".join(args))
    return " ".join(words)


def _attrs(op: str, attrs: tuple[Attr, ...]) -> list[str]:
    """The attributes as words: `axis model`, `[a b, b -> a]`, `seq: -1`, `pair: 0..1`, `12x64`, `heads: 12 hd: 64`."""
    row = PRIMS.get(op)
    kinds = row.attrs if row is not None else ()
    shown = [_attr(a) for a in attrs]
    match kinds:
        case ("int", "int"):
            return ["x".join(shown)]
        case ("place", "dim"):
            return [": ".join(shown)]
        case ("place", "dim", "dim"):
            return [f"{shown[0]}: {'..'.join(shown[1:])}"]
        case ("axis", "name", "dim", "name", "dim"):
            return [f"axis {shown[0]} {shown[1]}: {shown[2]} {shown[3]}: {shown[4]}"]
        case _:
            return [_word(op, k, a) for k, a in zip(kinds, shown)]


def _word(op: str, kind: AttrKind, shown: str) -> str:
    match kind:
        case "axis" | "axis?" if op != "concat":
            return f"axis {shown}"
        case "spec":
            return f"[{shown}]"
        case _:
            return shown


def _attr(attr: Attr) -> str:
    return number_text(attr) if isinstance(attr, Fraction) else str(attr)
