"""What the relations say, typed for the passes that read them. Each result keeps its relations, so that `why` can ask
them for proofs. This layer knows neither elaboration nor Core: it takes facts as `facts.ast_facts` and
`core.core_facts` make them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.facts.ast_facts import AstFacts, Row
from presk_rel.facts.similar import similar
from presk_rel.rules.engine import Engine, Relations, solve
from presk_rel.rules.program import rules_for

Class = Literal["Cinf", "C0plus", "Disc"]
Space = Literal["name", "member", "optimizer", "effect"]

CycleKind = Literal["function", "module", "type"]
_CYCLE_KINDS: dict[str, CycleKind] = {"function": "function", "module": "module", "model": "module", "type": "type"}

NAME_RELATIONS = frozenset(
    (
        "resolves",
        "selects",
        "unresolved",
        "near_miss",
        "implicit_dim",
        "duplicate",
        "shadows",
        "endless",
        "recursive",
        "unused",
    )
)
LIVENESS_RELATIONS = frozenset(("live", "dead", "last_use"))
CORE_RELATIONS = LIVENESS_RELATIONS | {
    *("calls", "effect", "effect_site", "undeclared_effect", "regularity", "grad_illegal", "place"),
    *("reused", "drawn", "one_key"),
}


@record
class Unresolved:
    """A use that resolves to nothing: a name, a `member` of an import, an optimizer block, or an effect.
    `near` are names one slip away that would resolve, in alphabetical order."""

    use: str
    name: str
    space: Space
    span: Span
    near: tuple[str, ...]


@record
class Duplicate:
    """`later` declares a name that its scope already has from `earlier`."""

    name: str
    later: Span
    earlier: Span


@record
class ImplicitDim:
    """An undeclared name in a dimension position of the signature of `function`. `decl` is the id of its first use,
    to which this and every later use of the name in that function resolves."""

    function: str
    name: str
    decl: str
    span: Span


@record
class Cycle:
    """Declarations of one kind (a model counts as a module) each of which mentions the next, and the last the
    first. `decls` begins with the one that stands first in the source; `uses[i]` is where `decls[i]` mentions."""

    kind: CycleKind
    decls: tuple[str, ...]
    uses: tuple[Span, ...]


@record
class Names:
    """Which declaration each use of a name means (spec: "Elaboration"). Ids: `facts.ast_facts.use_id`, `decl_id`.

    `resolve` answers for `Name`s (their span), for the member of a path that starts at an import or a module
    (`m.V`, `m.MiniGPT`, `Linear.apply`: the span of the `Field`'s `Ident`), for `model`, `objective`, `optimizer`,
    `generate` of configuration blocks, and for the effects of a `uses` clause. Builtins are `builtin:mean`. `l1.apply`
    through a sub-module or a module-typed parameter is `selected`, since which instance it is, is elaboration's matter.
    """

    relations: Relations
    facts: AstFacts
    uses: Mapping[str, str]
    selections: Mapping[str, str]
    hidden: Mapping[str, str]
    unresolved: tuple[Unresolved, ...]
    duplicates: tuple[Duplicate, ...]
    implicit: tuple[ImplicitDim, ...]
    cycles: tuple[Cycle, ...]

    def resolve(self, span: Span) -> str | None:
        """The id of the declaration that the use at `span` means, None if it has none (or is no use)."""
        return self.uses.get(f"{span.file}@{span.start.offset}")

    def selected(self, span: Span) -> str | None:
        """The function that `l1.apply` (`span` of its `Ident`) selects through a sub-module or module-typed parameter;
        None through a composition, whose `apply` is no one function."""
        return self.selections.get(f"{span.file}@{span.start.offset}")

    def shadowed(self, decl: str) -> str | None:
        """The declaration of an outer scope that `decl` hides, if any."""
        return self.hidden.get(decl)


def resolve_names(facts: AstFacts, engine: Engine = "auto") -> Names:
    """Runs the rules of scopes and of cycles over the facts of a program; a second time, with names that are close to
    the unknown ones, if there are any."""
    program = rules_for(NAME_RELATIONS)
    rows = {name: facts.rows.get(name, []) for name in program.inputs}
    relations = solve(program, rows, engine)
    unknown = {str(name) for _, name in relations.table("unresolved")}
    if unknown:
        rows["similar"] = cast(list[Row], similar(unknown, [str(name) for _, name, _, _ in rows["declares"]]))
        relations = solve(program, rows, engine)
    return Names(
        relations,
        facts,
        _pairs(relations, "resolves"),
        _pairs(relations, "selects"),
        _pairs(relations, "shadows"),
        _unresolved(relations, facts),
        _duplicates(relations, facts),
        _implicit(relations, facts),
        _cycles(relations, facts),
    )


def _pairs(relations: Relations, name: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in relations.table(name)}


def _place(span: Span) -> tuple[str, int]:
    return span.file, span.start.offset


def _unresolved(relations: Relations, facts: AstFacts) -> tuple[Unresolved, ...]:
    unknown = _pairs(relations, "unresolved")
    near: dict[str, list[str]] = {}
    for use, _, candidate in relations.rows("near_miss"):
        near.setdefault(str(use), []).append(str(candidate))
    if not unknown:
        return ()
    spaces: dict[str, Space] = {str(row[0]): _space(str(row[1])) for row in facts.rows.get("ref", [])}
    found = [
        Unresolved(use, name, spaces.get(use, "member"), facts.spans[use], tuple(near.get(use, ())))
        for use, name in unknown.items()
    ]
    return tuple(sorted(found, key=lambda u: _place(u.span)))


def _space(scope: str) -> Space:
    if scope.startswith("optimizers "):
        return "optimizer"
    return "effect" if scope.startswith("effects ") else "name"


def _duplicates(relations: Relations, facts: AstFacts) -> tuple[Duplicate, ...]:
    later = _pairs(relations, "duplicate")
    if not later:
        return ()
    names = {str(decl): str(name) for _, name, decl, _ in facts.rows.get("declares", [])}
    found = [
        Duplicate(names[decl], facts.spans[decl], facts.spans[earlier])
        for decl, earlier in later.items()
        if earlier in facts.spans
    ]
    return tuple(sorted(found, key=lambda d: _place(d.later)))


def _implicit(relations: Relations, facts: AstFacts) -> tuple[ImplicitDim, ...]:
    dims = [
        ImplicitDim(str(function), str(name), str(use), facts.spans[str(use)])
        for function, name, use in relations.table("implicit_dim")
    ]
    return tuple(sorted(dims, key=lambda d: _place(d.span)))


def _cycles(relations: Relations, facts: AstFacts) -> tuple[Cycle, ...]:
    """The cycles of `endless`, by which each declaration that never ends has exactly one successor. Compositions on the
    way are passed over: they have no name of their own."""
    left = {str(decl) for (decl,) in relations.table("recursive")}
    if not left:
        return ()
    endless = {str(decl): (int(index), str(target)) for decl, index, target in relations.rows("endless")}
    uses = {(str(d), int(i)): str(use) for name in ("component", "mention") for d, i, use in facts.rows.get(name, [])}
    kinds = {str(decl): str(kind) for decl, kind in facts.rows.get("kind", [])}
    cycles: list[Cycle] = []
    for start in sorted(left & kinds.keys(), key=lambda d: _place(facts.spans[d])):
        ring: list[str] = []
        while start in left:
            left.remove(start)
            ring.append(start)
            start = endless[start][1]
        decls = [decl for decl in ring if kinds.get(decl) in _CYCLE_KINDS]
        if decls:
            places = tuple(facts.spans[uses[d, endless[d][0]]] for d in decls)
            cycles.append(Cycle(_CYCLE_KINDS[kinds[decls[0]]], tuple(decls), places))
    return tuple(cycles)


@record
class EffectSite:
    """`function` has `effect` because of what it does at `site`."""

    function: str
    effect: str
    site: str
    span: Span | None


@record
class IllegalGradient:
    """The gradient at `site`, by `parameter` of `callee`, is of something discontinuous in it (E3001): because of
    `primitive` at `cause`. `primitive` is None where an unknown function value is to blame."""

    site: str
    span: Span | None
    callee: str
    parameter: str
    primitive: str | None
    cause: str
    cause_span: Span | None


@record
class Liveness:
    """What the results of functions need, and the index of the binding that is the last to read a variable (parameters
    too, but not what is returned)."""

    live: Mapping[str, frozenset[str]]
    dead: Mapping[str, frozenset[str]]
    last_use: Mapping[str, Mapping[str, int]]


@record
class CoreAnalysis:
    """What the rules say of a Core program (spec: "Regularity", "Effects"). `facts` are the input rows, `relations`
    hold everything derived, `spans` says where functions and variables (`f/x`) come from. All names are Core's."""

    facts: Mapping[str, list[Row]]
    relations: Relations
    classes: Mapping[tuple[str, str], Class]
    effects: Mapping[str, tuple[str, ...]]
    spans: Mapping[str, Span]
    liveness: Liveness

    def regularity(self, function: str, parameter: str) -> Class:
        """The class of a function's result in a parameter."""
        return self.classes[function, parameter]

    def undeclared_effects(self) -> tuple[EffectSite, ...]:
        """E4001: every place where a function has an effect that it does not declare, by function and place."""
        undeclared = self.relations.table("undeclared_effect")
        sites = [
            EffectSite(str(f), str(e), str(site), self.spans.get(str(site)))
            for f, e, site in self.relations.rows("effect_site")
            if (f, e) in undeclared
        ]
        return tuple(sorted(sites, key=lambda s: (s.function, s.effect, _order(s.span), s.site)))

    def illegal_gradients(self) -> tuple[IllegalGradient, ...]:
        """E3001: every gradient of something discontinuous, with what makes it so, read off its proof."""
        rows = self.relations.rows("grad_illegal")
        if not rows:
            return ()
        from presk_rel.rules.culprit import culprit
        from presk_rel.rules.proofs import Prover

        prover = Prover(self.relations)
        found: list[IllegalGradient] = []
        for row in rows:
            site, callee, formal = map(str, row)
            primitive, cause = culprit(prover.prove("grad_illegal", row))
            parameter = formal.partition("/")[2]
            where = self.spans.get(site), self.spans.get(cause)
            found.append(IllegalGradient(site, where[0], callee, parameter, primitive, cause, where[1]))
        return tuple(sorted(found, key=lambda g: (_order(g.span), g.site, g.callee, g.parameter)))


def _order(span: Span | None) -> tuple[str, int]:
    return ("", 0) if span is None else _place(span)


def analyse_core(facts: Mapping[str, list[Row]], spans: Mapping[str, Span], engine: Engine = "auto") -> CoreAnalysis:
    """Runs the rules of effects, regularity and liveness over the facts of a Core program (`core.core_facts`)."""
    program = rules_for(CORE_RELATIONS)
    relations = solve(program, {name: facts.get(name, []) for name in program.inputs}, engine)
    effects: dict[str, tuple[str, ...]] = {}
    for function, effect in relations.rows("effect"):
        effects[str(function)] = (*effects.get(str(function), ()), str(effect))
    found: dict[tuple[object, object], Class] = {(f, p): cast(Class, k) for f, p, k in relations.table("regularity")}
    classes: dict[tuple[str, str], Class] = {(str(f), str(p)): found[f, p] for f, _, p in facts.get("parameter", [])}
    return CoreAnalysis(facts, relations, classes, effects, spans, _liveness(relations))


def analyse_liveness(facts: Mapping[str, list[Row]], engine: Engine = "auto") -> Liveness:
    """Only the liveness of functions (`core.core_facts.liveness_facts`)."""
    program = rules_for(LIVENESS_RELATIONS)
    return _liveness(solve(program, {name: facts.get(name, []) for name in program.inputs}, engine))


def _liveness(relations: Relations) -> Liveness:
    last: dict[str, dict[str, int]] = {}
    for function, name, index in relations.table("last_use"):
        last.setdefault(str(function), {})[str(name)] = int(index)
    return Liveness(_by_function(relations, "live"), _by_function(relations, "dead"), last)


def _by_function(relations: Relations, relation: str) -> dict[str, frozenset[str]]:
    grouped: dict[str, set[str]] = {}
    for function, name in relations.table(relation):
        grouped.setdefault(str(function), set()).add(str(name))
    return {function: frozenset(names) for function, names in grouped.items()}
