"""What the relations say, typed for the passes that read them. Each result keeps its relations, so that `why` can ask
them for proofs. This layer knows neither elaboration nor Core: it takes facts as `facts.ast_facts` and
`core.core_facts` make them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from presk_rel.diagnostics import Span
from presk_rel.facts.ast_facts import AstFacts
from presk_rel.rules.engine import Engine, Relations

CycleKind = Literal["function", "module", "type"]


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A use that resolves to nothing. `near` are visible names one slip away, in alphabetical order."""

    use: str
    name: str
    span: Span
    near: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """`later` declares a name that its scope already has from `earlier`."""

    later: Span
    earlier: Span
    name: str


@dataclass(frozen=True, slots=True)
class ImplicitDim:
    """An undeclared name in a dimension position of the signature of `function`. `decl` is the id of its first use,
    to which this and every later use of the name in that function resolves."""

    function: str
    name: str
    decl: str
    span: Span


@dataclass(frozen=True, slots=True)
class Cycle:
    """Declarations each of which mentions the next, and the last the first; `decls` begins with the one that stands
    first in the source. `uses` are the places of the mentions."""

    kind: CycleKind
    decls: tuple[str, ...]
    uses: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """Which declaration each use of a name means (spec: "Elaboration"). Ids: `facts.ast_facts.use_id`, `decl_id`.

    `resolve` answers for `Name`s (their span), for the member of a path that starts at an import or a module
    (`m.V`, `m.MiniGPT`, `Linear.apply`: the span of the `Field`'s `Ident`), and for `model`, `objective`, `optimizer`,
    `generate` of configuration blocks. Builtins are `builtin:mean`; `l1.apply` through a sub-module or a module-typed
    parameter is `selected`, since which instance it is, is elaboration's matter.
    """

    relations: Relations
    facts: AstFacts
    uses: Mapping[str, str]
    unresolved: tuple[Unresolved, ...]
    duplicates: tuple[Duplicate, ...]
    implicit: tuple[ImplicitDim, ...]
    cycles: tuple[Cycle, ...]

    def resolve(self, span: Span) -> str | None:
        """The id of the declaration that the use at `span` means, None if it has none (or is no use)."""
        raise NotImplementedError

    def selected(self, span: Span) -> str | None:
        """The function that `l1.apply` (`span` of its `Ident`) selects through a sub-module or module-typed parameter."""
        raise NotImplementedError

    def implicit_dims(self, function: str) -> tuple[ImplicitDim, ...]:
        """The implicit dimensions of a function (id of its declaration), in order of first use."""
        raise NotImplementedError

    def shadowed(self, decl: str) -> str | None:
        """The declaration of an outer scope that `decl` hides, if any."""
        raise NotImplementedError


def resolve_names(facts: AstFacts, engine: Engine = "auto") -> Names:
    """Runs the rules of scopes and of cycles over the facts of a program."""
    raise NotImplementedError
