"""presk from Python: `load` a program, `check` it, `compile` a function (`presk_rel.api.program`)."""

from presk_rel.api.program import Program, load

__all__ = ["Program", "load"]
