"""The table of rewrite rules: one file per family, collected here in the order in which they run and are listed."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import (
    arithmetic,
    composites,
    factors,
    functions,
    linear,
    piecewise,
    reductions,
    shapes,
    trees,
)

FAMILIES: dict[str, tuple[Rule, ...]] = {
    "arithmetic": arithmetic.RULES,
    "factors": factors.RULES,
    "shapes": shapes.RULES,
    "reductions": reductions.RULES,
    "linear": linear.RULES,
    "functions": functions.RULES,
    "piecewise": piecewise.RULES,
    "trees": trees.RULES,
    "composites": composites.RULES,
}

RULES: dict[str, Rule] = {rule.name: rule for family in FAMILIES.values() for rule in family}
"""Every rule by name."""
