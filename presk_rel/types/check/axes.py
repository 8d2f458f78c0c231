"""Functions with axis parameters (spec: "Functions"). PSK-Core has none: each call's axes give a function of their own.

    fn centred(axis a, x : ℝ[..., a: D]) -> ℝ[..., a: D] = x - mean(axis a, x)

is checked once with `a` as an axis like any other, which finds its mistakes, and once more, renamed, for the axes of
each call: `centred(axis model, x)` calls `centred.axis.model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from presk_rel.diagnostics import Diagnostics, Span
from presk_rel.elab.signatures import ParamSig, Signature, signature_of
from presk_rel.syntax import ast
from presk_rel.types.check.arguments import Arg
from presk_rel.types.check.checker import Checker


def axis_parameters(signature: Signature) -> tuple[ParamSig, ...]:
    return tuple(p for p in signature.params if p.node.is_axis)


def specialised(
    c: Checker, signature: Signature, args: Sequence[Arg], span: Span
) -> tuple[Signature, list[Arg]] | None:
    """The function for the axes of a call, and the arguments that are left; None after an error."""
    wanted = axis_parameters(signature)
    given = [a.name for a in args if a.form == "axis" and a.name is not None]
    if len(given) != len(wanted):
        forms = ", ".join(f"axis {p.name}" for p in wanted)
        c.error("E2021", f"`{signature.core}` takes {forms}; {len(given)} axes are given", span)
        return None
    names = tuple(n.text for n in given)
    if signature.broken:
        c.failed = True
        return None
    key = (signature.id, names)
    if key not in c.program.specialised:
        c.program.specialised[key] = None  # should it lead back here
        c.program.specialised[key] = _checked(c, signature, names, span)
    found = c.program.specialised[key]
    c.failed |= found is None
    return None if found is None else (found, [a for a in args if a.form != "axis"])


def _checked(c: Checker, signature: Signature, names: tuple[str, ...], span: Span) -> Signature | None:
    program, elab = c.program, c.program.elab
    renaming = {p.name: n for p, n in zip(axis_parameters(signature), names, strict=True)}
    node = cast("ast.Fn", renamed(signature.node, renaming))
    node = replace(node, params=tuple(p for p in node.params if not p.is_axis))
    outer, elab.diagnostics = elab.diagnostics, Diagnostics()
    try:
        own = signature_of(elab, elab.declared[signature.id], node, f"{signature.core}.axis.{'.'.join(names)}")
        fn = program.check_function(program, own)
        said = elab.diagnostics
    finally:
        elab.diagnostics = outer
    if fn is not None:
        program.made.setdefault(signature.id, []).append(fn)
        return own
    why = next((d.message for d in said.items if d.severity == "error"), "it has an error")
    axes = ", ".join(f"{a} = {n}" for a, n in renaming.items())
    c.error("E2035", f"`{signature.core}` has no meaning for the axes {axes}: {why}", span)
    return None


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A syntax tree in which the axes are called otherwise. Spans stay, so names resolve as before."""
    if isinstance(node, tuple):
        return tuple(renamed(n, names) for n in cast("tuple[Any, ...]", node))
    if not is_dataclass(node) or isinstance(node, type | Span):
        return node
    changed = {f.name: renamed(getattr(node, f.name), names) for f in fields(node)}
    match node:
        case ast.AxisArg() | ast.NamedAxis() | ast.At() | ast.Slice():
            changed["axis"] = _axis(node.axis, names)
        case ast.Axis():
            changed["name"] = _axis(node.name, names)
        case ast.Ein():
            changed["axes"] = tuple(_axis(a, names) for a in node.axes)
        case _:
            pass
    return type(node)(**changed)


def _axis(ident: ast.Ident | None, names: Mapping[str, str]) -> ast.Ident | None:
    return None if ident is None else replace(ident, text=names.get(ident.text, ident.text))
