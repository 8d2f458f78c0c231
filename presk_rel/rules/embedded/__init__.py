"""The embedded engine: semi-naive evaluation by specialised Python loops, one function per rule and delta literal."""

from presk_rel.rules.embedded.solve import Solution, solve_embedded

__all__ = ["Solution", "solve_embedded"]
