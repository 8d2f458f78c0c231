"""The syntax trees of a program → facts of the relations that `schema` lists with origin "ast".

Nothing is resolved here: facts say which scope lies in which, what each declares and where names are used. Trees are
walked with a work list, since chains of `let` and of operators may be ten thousand long.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.facts.ast_ids import decl_id, use_id
from presk_rel.facts.ast_parts import Node, children, components, path_use
from presk_rel.facts.builtins import BUILTIN_SCOPE, EFFECT_SCOPE, EFFECTS, FUNCTIONS, MODULES, TYPES, builtin_id
from presk_rel.facts.jumps import jumps
from presk_rel.syntax import ast

Row = tuple[str | int, ...]

__all__ = ["AstFacts", "Row", "Sources", "ast_facts", "decl_id", "file_scope", "use_id"]

REFERENCES = {"training": ("model", "objective", "optimizer"), "inference": ("model", "generate"), "optimizer": ()}
"""The fields of configuration blocks that name a declaration. Names elsewhere in a block are words of its own, which
may happen to be declared."""


@record
class Sources:
    """The parsed files of a program, the main one first. `imports` maps the id of an import's alias (`decl_id`) to
    the `path` of the file that it names; an import whose file could not be read is absent."""

    files: tuple[ast.File, ...]
    imports: Mapping[str, str]


@record
class AstFacts:
    """Input rows by relation, and where each use and declaration stands. `dimensions` are the uses that stand for a
    dimension."""

    rows: Mapping[str, list[Row]]
    spans: Mapping[str, Span]
    dimensions: frozenset[str] = frozenset()

    def with_positions(self) -> dict[str, list[Row]]:
        """The rows with those of `position`, which no rule reads: they are for queries, and as many as all uses."""
        places = [(n, s.file, s.start.line, s.start.column) for n, s in self.spans.items()]
        return {**self.rows, "position": list[Row](places)}


def file_scope(path: str) -> str:
    return f"file {path}"


def ast_facts(sources: Sources) -> AstFacts:
    """Facts of every file of a program. No garbage collection meanwhile, which would take more than half the time:
    rows are many, and nothing is thrown away."""
    collector = _Collector()
    was_on = gc.isenabled()
    gc.disable()
    try:
        collector.builtins()
        for file in sources.files:
            collector.file(file, sources.imports)
    finally:
        if was_on:
            gc.enable()
    return AstFacts(dict(collector.rows), collector.spans, frozenset(collector.dimensions))


@record
class _Place:
    """Where a node stands. Names are looked up in `scope`, those of types in `types` (no argument or local is a type:
    `key : key` means the type). `owner` is the function, module, model or type alias that mentions what stands here;
    `signature` the function whose signature it is part of; `in_dim` says that a name here stands for a dimension."""

    scope: str
    types: str
    owner: str | None = None
    signature: str | None = None
    in_dim: bool = False
    optional: bool = False
    function: str | None = None

    def moved(self, scope: str) -> _Place:
        """The same in another scope. (`replace` would take a tenth of the time of all facts.)"""
        return _Place(scope, self.types, self.owner, self.signature, self.in_dim, self.optional, self.function)

    def sized(self, in_dim: bool) -> _Place:
        """The same in or outside a dimension."""
        return _Place(self.scope, self.types, self.owner, self.signature, in_dim, self.optional, self.function)


@mutable
class _Collector:
    rows: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict[str, list[Row]](list))
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    dimensions: list[str] = field(default_factory=list[str])
    _ordinals: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _mentions: dict[str, int] = field(default_factory=dict[str, int])
    _todo: list[tuple[Node, _Place]] = field(default_factory=list[tuple[Node, _Place]])

    def add(self, relation: str, *row: str | int) -> None:
        self.rows[relation].append(row)

    # ------------------------------------------------------------------------------------------------ declarations

    def builtins(self) -> None:
        for name in (*FUNCTIONS, *TYPES, *MODULES):
            self._declare_id(BUILTIN_SCOPE, name, builtin_id(name), "builtin")
        for name in EFFECTS:
            self._declare_id(EFFECT_SCOPE, name, builtin_id(name), "effect")

    def file(self, file: ast.File, imports: Mapping[str, str]) -> None:
        scope = file_scope(file.path)
        self.add("parent", scope, BUILTIN_SCOPE)
        self.add("parent", _effects(file.path), EFFECT_SCOPE)
        for decl in file.decls:
            self._decl(decl, file.path, _Place(scope, scope), imports)

    def _decl(self, decl: ast.Decl, path: str, place: _Place, imports: Mapping[str, str]) -> None:
        match decl:
            case ast.Import(alias=alias):
                alias_id = self.declare(place.scope, alias, "import")
                self._watch(alias, "import")
                if alias_id in imports:
                    self.add("alias", alias_id, file_scope(imports[alias_id]))
            case ast.Const(name=name, type=annotation, value=value):
                self.declare(place.scope, name, "const")
                self.walk([annotation, value], place)
            case ast.StaticAssert(condition=condition):
                self.walk([condition], place)
            case ast.Dim(name=name, bound=bound):
                self.declare(place.scope, name, "dim")
                self.walk([bound], place)
            case ast.TypeAlias(name=name, type=meaning):
                alias_id = self.declare(place.scope, name, "type")
                self._holder(alias_id, meaning)
                self._owned([meaning], replace(place, owner=alias_id))
            case ast.Effect(name=name):
                self.declare(_effects(path), name, "effect")
            case ast.Model(name=name, module=module):
                model_id = self.declare(place.scope, name, "model")
                self._holder(model_id, module, is_model=True)
                self._owned([module], replace(place, owner=model_id))
            case ast.Module():
                self._module(decl, path, place)
            case ast.Fn():
                self._function(decl, path, place)
            case ast.Config():
                self._config(decl, path, place)

    def _module(self, module: ast.Module, path: str, outer: _Place) -> None:
        scope = self.declare(outer.scope, module.name, "module")
        self.add("parent", scope, outer.scope)
        place = _Place(scope, scope)
        for parameter in module.type_params:
            self.declare(scope, parameter.name, "typeparam")
        for member in module.members:
            self._member(member, path, place)
        self.add("extent", scope, self._mentions.pop(scope, 0))

    def _member(self, member: ast.Member, path: str, place: _Place) -> None:
        match member:
            case ast.Param(names=names, type=annotation):
                for name in names:
                    self.declare(place.scope, name, "parameter")
                    self._watch(name, "param")
                self.walk([annotation], place)
            case ast.Use(names=names, module=module):
                for name in names:
                    self._holder(self.declare(place.scope, name, "use"), module)
                    self._watch(name, "use")
                self.walk([module], replace(place, owner=place.scope))
            case ast.Fn():
                self._function(member, path, place)

    def _function(self, function: ast.Fn, path: str, outer: _Place) -> None:
        """Two scopes: the type parameters, in which the signature's types stand, and inside it the arguments."""
        scope = self.declare(outer.scope, function.name, "function")
        self.add("parent", scope, outer.scope)
        self.add("within", scope, scope)
        arguments = self._binder_scope(f"{scope}()", _Place(scope, scope, function=scope))
        for type_param in function.type_params:
            self.declare(scope, type_param.name, "typeparam")
        for param in function.params:
            decl = self.declare(arguments.scope, param.name, "axis" if param.is_axis else "argument")
            if not param.is_axis:
                self._watch(param.name, "argument")
            self._holder(decl, param.type)
        signature = replace(arguments, scope=scope, signature=scope)
        self.walk([*(param.type for param in function.params), function.result], signature)
        for effect in function.uses:
            self._use(effect.text, effect.span, _Place(_effects(path), scope))
            self.add("effect_clause", scope, use_id(effect.span))
        defaults = [param.default for param in function.params]
        self._owned([*defaults, function.body], replace(arguments, owner=scope))

    def _config(self, config: ast.Config, path: str, place: _Place) -> None:
        if config.kind == "optimizer":
            self.declare(_optimizers(path), config.name, "optimizer")
        words = replace(place, optional=True)
        for item in config.items:
            match item:
                case ast.Checkpoint(steps=steps):
                    self.walk([steps], words)
                case ast.ConfigField(name=name, type=annotation, value=value):
                    self.walk([annotation], words)
                    if name.text not in REFERENCES[config.kind]:
                        self.walk([value], words)
                    elif name.text == "optimizer" and isinstance(value, ast.Name):
                        self._use(value.text, value.span, _Place(_optimizers(path), place.types))
                    else:
                        self.walk([value], place)

    def declare(self, scope: str, ident: ast.Ident, kind: str) -> str:
        decl = decl_id(ident)
        self.spans[decl] = ident.span
        if ident.text != "_":
            self._declare_id(scope, ident.text, decl, kind)
        return decl

    def _watch(self, ident: ast.Ident, what: str) -> None:
        """`ident` declares something that should be used, unless its name says that it need not be."""
        if not ident.text.startswith("_"):
            self.add("watched", decl_id(ident), what)

    def _declare_id(self, scope: str, name: str, decl: str, kind: str) -> None:
        ordinal = self._ordinals[scope, name] = self._ordinals.get((scope, name), 0) + 1
        self.add("declares", scope, name, decl, ordinal)
        self.add("kind", decl, kind)

    def _holder(self, decl: str, module: ast.ModuleExpr | ast.TypeExpr | None, *, is_model: bool = False) -> None:
        """`decl` stands for a module instance: one `component` per module of `outer ∘ … ∘ inner`."""
        paths = components(module)
        for index, path in enumerate(paths, 1):
            self.add("component", decl, index, path)
        if len(paths) > 1 or is_model:
            self.add("joint", decl, f"apply of {decl}")

    # -------------------------------------------------------------------------------------------------------- uses

    def _owned(self, roots: Iterable[Node | None], place: _Place) -> None:
        """Walks what `place.owner` mentions, and says how many mentions that were."""
        self.walk(roots, place)
        assert place.owner is not None
        self.add("extent", place.owner, self._mentions.pop(place.owner, 0))

    def walk(self, roots: Iterable[Node | None], place: _Place) -> None:
        """Visits trees in source order."""
        for root in roots:
            if root is not None:
                self._todo.append((root, place))
            while self._todo:
                self._visit(*self._todo.pop())

    def _push(self, nodes: Iterable[Node | None], place: _Place) -> None:
        self._todo.extend((node, place) for node in reversed([*nodes]) if node is not None)

    def _visit(self, node: Node, place: _Place) -> None:
        match node:
            case ast.Name(text=text, span=span):
                self._use(text, span, place)
            case ast.Let():
                self._lets(node, place)
            case ast.Lambda(pattern=pattern, type=annotation, body=body):
                inner = self._binder_scope(use_id(node.span), place)
                self._bind(inner.scope, pattern, "argument")
                self._push([body], inner)
                self._push([annotation], place)
            case ast.Field(base=base):
                self._field(node, place)
                self._push([base], place.sized(False) if place.in_dim else place)
            case _ if isinstance(node, ast.TypeExpr):
                self._type(node, place)
            case _:
                self._push(children(node), place)

    def _use(self, name: str, span: Span, place: _Place) -> None:
        use = use_id(span)
        self.add("ref", use, place.scope, name)
        self._note_use(use, span, place)
        if place.in_dim:
            self.dimensions.append(use)
            if place.signature is not None:
                self.add("dim_position", use, place.signature, span.start.offset)

    def _field(self, node: ast.Field, place: _Place) -> None:
        self.add("picked", node.name.text)
        head = path_use(node.base)
        if head is not None:
            use = use_id(node.name.span)
            self.add("qualified", use, head, node.name.text)
            self._note_use(use, node.name.span, place)

    def _note_use(self, use: str, span: Span, place: _Place) -> None:
        self.spans[use] = span
        if place.optional:
            self.add("optional", use)
        if place.owner is not None:
            index = self._mentions[place.owner] = self._mentions.get(place.owner, 0) + 1
            self.add("mention", place.owner, index, use)

    def _lets(self, first: ast.Let, place: _Place) -> None:
        """A chain of `let`s, each a scope in the one before."""
        values: list[tuple[Node, _Place]] = []
        scopes: list[str] = [place.scope]
        body: ast.Expr = first
        while isinstance(body, ast.Let):
            values.append((body.value, place))
            place = self._binder_scope(use_id(body.span), place)
            self._bind(place.scope, body.pattern, "let")
            scopes.append(place.scope)
            body = body.body
        for scope, outer, region in jumps(len(scopes)):
            self.add("jump", scopes[scope], scopes[outer], scopes[scope])
            for inside in region:
                self.add("in_region", scopes[inside], scopes[scope])
        self._push([body], place)
        self._todo.extend(reversed(values))

    def _binder_scope(self, scope: str, outer: _Place) -> _Place:
        self.add("parent", scope, outer.scope)
        if outer.function is not None:
            self.add("within", scope, outer.function)
        return outer.moved(scope)

    def _bind(self, scope: str, pattern: ast.Pattern, what: str) -> None:
        todo = [pattern]
        while todo:
            match todo.pop():
                case ast.NamePattern(name=name):
                    self.declare(scope, name, "local")
                    self._watch(name, what)
                case ast.TuplePattern(items=items):
                    todo.extend(reversed(items))

    def _type(self, node: ast.TypeExpr, place: _Place) -> None:
        dim = place.sized(True)
        match node:
            case ast.RealType(axes=axes) | ast.MaskType(axes=axes):
                self._push([axis.dim for axis in axes], dim)
            case ast.IdxType(bound=bound, axes=axes):
                self._push([bound, *(axis.dim for axis in axes)], dim)
            case ast.ParamType(inner=inner):
                self._push([inner], place)
            case ast.ParamsType(module=module):
                arguments = place.scope if place.signature is None else f"{place.signature}()"
                self._push([module], place.moved(arguments))
            case ast.NamedType(path=path, dims=dims):
                self._push(dims or (), dim)
                self._push([path], place.moved(place.types))
            case ast.TupleType(items=items):
                self._push(items, place)


def _effects(path: str) -> str:
    return f"effects {path}"


def _optimizers(path: str) -> str:
    return f"optimizers {path}"
