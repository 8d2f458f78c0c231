"""A rewrite rule as named data. The table itself is `egraph/rules/` (one file per family).

Patterns are S-expressions over Core primitives: `(add x (zeros :type t))`, `(mean :axis a x)`, `(field :name f θ)`.
A bare word is a term variable; after a keyword stands an attribute or type variable, or a literal. One text generates
the egglog rule (which unions and logs its instance), the checker's rule, the sampling test and the rule's page in the
docs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OUTSIDE = ("encode", "recognise", "contract", "merge")
"""The sets of rules that never run in the e-graph."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`left = right` over the reals whenever every condition holds and both sides are defined.

    Conditions are S-expressions over the rule's variables: `(type x t)` (x has type t), `(same-type x y)`, `(distinct
    f g)` (attributes differ), … each a row of `egraph.conditions`, which names how it is decided (type fact, Z3,
    constant). `law` is the reason in one line of mathematics. `ruleset` is when it runs; `encode` rules relate terms
    to their form in the e-graph and never run there; `recognise` rules run in `egraph.recognise`, `contract` rules in
    `egraph.contract`, `merge` rules in `egraph.merging`. Rules only rewrite left to right in the e-graph (a proof may
    still use them backwards). `guards` are conditions that keep the e-graph small; they are no part of the law. After a
    `directed` rule no other one looks at the left side: the right side is its normal form, and what could be done with
    the left side would be done twice. (Extraction still has it.) A `known` rule makes nothing: it says that both sides
    are equal where both are there."""

    name: str
    left: str
    right: str
    conditions: tuple[str, ...]
    law: str
    ruleset: Literal["simplify", "collect", "expand", "fuse", "encode", "recognise", "contract", "merge"] = "simplify"
    guards: tuple[str, ...] = ()
    directed: bool = False
    known: bool = False
