"""The table of rewrite rules: one file per family, collected here in the order in which they run and are listed."""

from __future__ import annotations

import re
from dataclasses import replace

from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import (
    arithmetic,
    composites,
    contractions,
    dimensions,
    factors,
    fills,
    functions,
    linear,
    merging,
    piecewise,
    reductions,
    shapes,
    trees,
)

_DIRECTED = re.compile(
    r"neg\.neg|(mul|div)\.(neg|one)-?\w*|neg\.mul-const|mul\.const-(left|twice)|div\.const(-out)?|add\.self"
    r"|(add|sub)\.like-\w+|real\.const"
)
"""Signs and factors: their rules lead to normal forms (see `Rule.directed`). A sum of products of products with factors
in all places would have quadratically many."""

_FAMILIES: dict[str, tuple[Rule, ...]] = {
    "arithmetic": arithmetic.RULES,
    "factors": factors.RULES,
    "shapes": shapes.RULES,
    "reductions": reductions.RULES,
    "linear": linear.RULES,
    "fills": fills.RULES,
    "functions": functions.RULES,
    "piecewise": piecewise.RULES,
    "trees": trees.RULES,
    "composites": composites.RULES,
    "dimensions": dimensions.RULES,
    "contractions": contractions.RULES,
    "merging": merging.RULES,
}

FAMILIES: dict[str, tuple[Rule, ...]] = {
    name: tuple(replace(r, directed=_DIRECTED.fullmatch(r.name) is not None) for r in rules)
    for name, rules in _FAMILIES.items()
}

RULES: dict[str, Rule] = {rule.name: rule for family in FAMILIES.values() for rule in family}
"""Every rule by name."""
