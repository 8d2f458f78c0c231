"""A typed program as one readable PyTorch file that runs alone (spec: "PyTorch export")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, cast

from presk_rel.core.trampoline import run
from presk_rel.diagnostics import Span
from presk_rel.elab.declared import Declared, core_names, declarations
from presk_rel.elab.ty import (
    Applied,
    Hyper,
    Init,
    Instance,
    ModuleDef,
    ParamField,
    Params,
    Real,
    Stacked,
    field_names,
    field_type,
)
from presk_rel.export.context import Context
from presk_rel.export.expressions import body, count_uses, module_parameters, parameters
from presk_rel.export.head import head
from presk_rel.export.helpers import HELPERS
from presk_rel.export.names import Names
from presk_rel.export.scope import Scope
from presk_rel.export.text import Py, comment, tensor
from presk_rel.export.trees import constructor
from presk_rel.export.written import written
from presk_rel.smt.linear import symbol
from presk_rel.syntax import ast
from presk_rel.syntax.printer import print_type
from presk_rel.types.tree import TFn, TypedProgram


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported file, and what calls into it need to know: Python's names (`context`)."""

    source: str
    context: Context

    def parameters(self, function: str) -> list[Instance | None]:
        """The Python parameters of a function: the instance of a module-typed one, None for a value."""
        return parameters(Scope(self.context, Names(), {}), self.context.by_name[function])

    def keywords(self, function: str) -> dict[str, str]:
        """The keyword parameters of a function for dims that no argument shows: dim to name."""
        return self.context.hidden.get(function, {})

    def constructor(self, instance: Instance) -> str:
        """The Python that makes a module; all dims of the instance are numbers."""
        return constructor(Scope(self.context, Names(), {}), instance)

    def state(self, instance: Instance, tree: Any, front: str = "") -> dict[str, Any]:
        """A parameter tree (nested dicts of arrays) as a state dict; all dims of the instance are numbers."""
        match instance:
            case Stacked(count, inner):
                layers = [self.state(inner, _layer(tree, i), f"{front}{i}.") for i in range(int(count.const))]
                return {k: v for layer in layers for k, v in layer.items()}
            case _:
                pass
        found: dict[str, Any] = {}
        modules = self.context.program.modules
        for name in field_names(modules, instance):
            key = f"{front}{self.context.field_path(instance, name)}"
            below = field_type(modules, instance, name)
            if isinstance(below, Params):
                found.update(self.state(below.instance, tree[name], f"{key}."))
            else:
                found[key] = tree[name]
        return found


def _layer(tree: Any, i: int) -> Any:
    if not isinstance(tree, dict):
        return tree[i]
    return {k: _layer(v, i) for k, v in cast("dict[str, Any]", tree).items()}


def export_pytorch(
    program: TypedProgram, files: Sequence[ast.File], texts: Mapping[str, str], uses: Mapping[str, str]
) -> Exported:
    """The exported file. `files` and `texts` are the parsed files and their sources, the main file last; `uses` says
    what every name means (`rules.analysis.Names.uses`). PreskError (E9001, exit status 3) for what has no PyTorch."""
    declared, core = declarations(files), core_names(files, program.main)
    spelled = {d.node.name.span: d.node for d in declared.values() if isinstance(d.node, ast.Fn)}
    nodes = {fn.name: spelled[fn.name_span] for fn in program.functions if fn.name_span in spelled}
    modules = {core[i]: d for i, d in declared.items() if isinstance(d.node, ast.Module)}
    constants = {i: d for i, d in declared.items() if isinstance(d.node, ast.Const)}
    known: dict[str, dict[str, str]] = {}
    while True:  # a function passes on the dims that the functions it calls ask for
        named = written(constants, program.values, uses)
        context = Context(program, nodes, hidden={name: dict(dims) for name, dims in known.items()}, written=named)
        found = _file(context, files, texts.get(files[-1].path, ""), modules)
        if context.hidden == known:
            return found
        known = context.hidden


def _file(context: Context, files: Sequence[ast.File], text: str, modules: Mapping[str, Declared]) -> Exported:
    program = context.program
    constants = head(context, files)
    notes = _notes(files[-1], text)
    parts = [_module(context, m, modules.get(m.name)) for m in program.modules.values()]
    parts += [_function(context, fn) for fn in program.functions if fn.name in context.functions]
    helpers = [text.rstrip("\n") for name, text in HELPERS.items() if name in context.used]
    code = "\n\n\n".join([*helpers, *parts])
    imports = _imports(f"{constants}\n{code}")
    title = f'"""Generated by presk from {_quoted(PurePath(program.main).name)}. Do not edit by hand."""'
    blocks = [b for b in (title, imports, constants) if b]
    source = "\n\n".join(blocks) + "\n\n\n" + code + "\n" + (f"\n\n{notes}\n" if notes else "")
    return Exported(source, context)


def _imports(code: str) -> str:
    code = re.sub(r'"""[^"]*"""|#.*', "", code)  # what is said of the source names nothing of Python's
    lines = ["import torch"] if re.search(r"\btorch\.", code) else []
    lines += ["import torch.nn.functional as F"] if re.search(r"\bF\.", code) else []
    lines += ["from torch import nn"] if re.search(r"\bnn\.", code) else []
    blocks = [*(["import math"] if re.search(r"\bmath\.", code) else []), *(["\n".join(lines)] if lines else [])]
    return "\n\n".join(blocks)


# ------------------------------------------------------------------------------------------------------------- notes


def _notes(main: ast.File, source: str) -> str:
    """The blocks that are not exported, as comments."""
    lines = source.split("\n")
    blocks: list[str] = []
    for decl in main.decls:
        if isinstance(decl, ast.Config):
            first, last = decl.span.start.line - 1, decl.span.end.line
            kept = [f"# {comment(row)}".rstrip() for row in lines[first:last]]
            blocks.append("\n".join([f"# Not exported ({decl.kind}):", *kept]))
    return "\n\n".join(blocks)


def _where(span: Span) -> str:
    return f"{PurePath(span.file).name}:{span.start.line}"


def _quoted(text: str) -> str:
    """Text for the inside of a docstring."""
    return comment(text).replace("\\", "\\\\").replace('"', "'")


# ------------------------------------------------------------------------------------------------------------ modules


def _module(context: Context, module: ModuleDef, declared: Declared | None) -> str:
    names = context.classes[module.name]
    where = "" if declared is None else f" ({_quoted(_where(declared.ident.span))})"
    lines = [f"class {names.name}(nn.Module):"]
    lines.append(f'    """Generated from `module {_quoted(module.name)}`{where}. Do not edit by hand."""\n')
    s = Scope(context, context.names.inner(), {}, {d: Py(f"self.{a}", number=True) for d, a in names.dims.items()})
    arguments = "".join(f", {a}" for a in names.dims.values())
    lines += [f"    def __init__(self{arguments}):", "        super().__init__()"]
    lines += [f"        self.{a} = {a}" for a in names.dims.values()]
    node = declared.node if declared is not None and isinstance(declared.node, ast.Module) else None
    sources = {n.text: m for m in (node.members if node else ()) if not isinstance(m, ast.Fn) for n in m.names}
    for f in module.fields:
        source = sources.get(f.name)
        if isinstance(f, ParamField):
            value = _parameter(s, f, source.type if isinstance(source, ast.Param) else None)
            note = f"  # {comment(print_type(source.type) if isinstance(source, ast.Param) else str(f.type))}"
        else:
            value, note = constructor(s, f.instance, source.module if isinstance(source, ast.Use) else None), ""
        lines.append(f"        self.{names.fields[f.name]} = {value}{note}")
    methods = [fn for fn in context.program.functions if context.owner(fn) == module.name and fn.name in context.nodes]
    texts = [_method(context, fn, names.dims) for fn in methods]
    return "\n".join(lines) + "".join(f"\n\n{t}" for t in texts)


def _parameter(s: Scope, f: ParamField, source: ast.TypeExpr | None) -> str:
    """The tensor of a parameter; its lengths as its type in the source writes them."""
    axes = source.axes if isinstance(source, ast.RealType) else ()
    sizes = [s.dim(a.length, e.dim if e else None).text for a, e in zip_longest(f.type.shape.axes, axes)]
    shape = ", ".join(sizes) or "()"
    match f.init:
        case Init("zeros" | "ones" as kind):
            return f"nn.Parameter(torch.{kind}({shape}))"
        case Init("normal", std):
            return f"nn.init.normal_(nn.Parameter(torch.empty({shape})), std={float(std or '1')!r})"
        case _ if len(sizes) == 2:
            return f"nn.init.xavier_uniform_(nn.Parameter(torch.empty({shape})))"
        case _:
            fans = f"{sizes[0]} + {sizes[-1]}" if sizes else "2"
            bound = f"math.sqrt(6 / ({fans}))"
            return f"nn.init.uniform_(nn.Parameter(torch.empty({shape})), -{bound}, {bound})"


def _method(context: Context, fn: TFn, dims: dict[str, str]) -> str:
    own = {d: Py(f"self.{a}", number=True) for d, a in dims.items()}
    s = Scope(context, context.names.inner(), {}, own)
    lines = _definition(s, fn, context.method(fn), ["self"])
    return "\n".join(f"    {row}" if row else row for row in lines)


# ---------------------------------------------------------------------------------------------------------- functions


def _function(context: Context, fn: TFn) -> str:
    s = Scope(context, context.names.inner(), {})
    return "\n".join(_definition(s, fn, context.functions[fn.name], []))


def _definition(s: Scope, fn: TFn, name: str, first: list[str]) -> list[str]:
    node = s.context.nodes[fn.name]
    s.uses, lambdas = count_uses(fn.body)
    binders = {b.name: b for b in fn.params}
    nets = module_parameters(s, fn)
    taken, notes = list(first), list[str]()
    axes = any(p.is_axis for p in node.params)
    for p in node.params:
        if p.name.text in nets:
            net = s.names.new(p.name.text)
            s.nets[nets[p.name.text]] = net
            _dims_of_net(s, net, nets[p.name.text])
            taken.append(net)
            notes.append(f"# {net} : {comment(str(nets[p.name.text]))}  (a module, passed as an nn.Module)")
        elif p.name.text in binders:
            binder = binders[p.name.text]
            text = s.bind(binder, number=isinstance(binder.type, Hyper), top=True)
            s.source(text, binder.type)
            taken.append(f"{text}{_default(node, p)}")
            notes.append(
                f"# {text} : {comment(print_type(p.type) if p.type is not None and not axes else str(binder.type))}"
            )
    s.hidden.update({d: s.names.new(d) for d in s.context.hidden.get(fn.name, {})})
    taken += ["*", *s.hidden.values()] if s.hidden else []
    if s.context.trains(fn):
        s.names.taken.add("training")
        taken.append("training=False")
    s.shadow = not lambdas
    value = run(body(s, fn.body))
    if s.hidden:
        s.context.hidden[fn.name] = s.hidden
    result = tensor(value) if isinstance(fn.result, Real) else value
    doc = f'"""Generated from `fn {_quoted(node.name.text)}` ({_quoted(_where(fn.name_span))})."""'
    rows = [doc, *notes, *s.bound_dims(), *s.lines, f"return {result.text}"]
    return [f"def {name}({', '.join(taken)}):", *(f"    {row}" for row in rows)]


def _default(node: ast.Fn, param: ast.FnParam) -> str:
    """A default that is a number, where those after it have one too."""
    after = node.params[node.params.index(param) :]
    if not all(isinstance(p.default, ast.Nat | ast.Decimal) for p in after):
        return ""
    assert isinstance(param.default, ast.Nat | ast.Decimal)
    return f"={param.default.text}"


def _dims_of_net(s: Scope, net: str, instance: Instance) -> None:
    if not isinstance(instance, Applied):
        return
    names = s.context.classes[instance.module].dims
    for dim, arg in zip(s.context.program.modules[instance.module].dims, instance.args, strict=True):
        if len(arg.terms) == 1 and arg == symbol(arg.terms[0][0]):
            s.sources.setdefault(arg.terms[0][0], Py(f"{net}.{names[dim]}", number=True))
