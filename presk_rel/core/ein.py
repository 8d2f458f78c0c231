"""The attribute of `ein`: the axes of each operand, in its own order, and those of the result, by name.

    batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2

Names belong to the contraction: an operand's type may name an axis otherwise (the relabelled `seq2` of the spec).
"""

from __future__ import annotations

from presk_rel.core.names import is_name
from presk_rel.diagnostics.record import record


@record
class EinSpec:
    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]

    def __str__(self) -> str:
        """The attribute, in the one way it is written."""
        return (", ".join(" ".join(axes) for axes in self.operands) + " -> " + " ".join(self.result)).strip()


def ein_spec(text: str) -> EinSpec | None:
    """The contraction that an attribute denotes; None where it is none: not as `EinSpec` writes it, a name twice in one
    list, a result's name that no operand has."""
    left, arrow, right = text.partition("->")
    spec = EinSpec(tuple(tuple(part.split()) for part in left.split(",")), tuple(right.split()))
    lists = (*spec.operands, spec.result)
    known = {name for axes in spec.operands for name in axes}
    fine = bool(arrow) and str(spec) == text and set(spec.result) <= known and all(map(is_name, known))
    return spec if fine and all(len(set(axes)) == len(axes) for axes in lists) else None


def matrix_form(text: str) -> str | None:
    """A contraction of two operands with the same leading axes everywhere, as one of matrices: its last two axes in
    letters by first appearance (`ab,bc->ac`); None for any other."""
    spec = ein_spec(text)
    if spec is None or len(spec.operands) != 2:
        return None
    lists = (*spec.operands, spec.result)
    lead = lists[0][:-2]
    if not all(len(axes) >= 2 and axes[:-2] == lead for axes in lists):
        return None
    letter: dict[str, str] = {}
    left, right, out = ("".join(letter.setdefault(n, "abcd"[len(letter)]) for n in axes[-2:]) for axes in lists)
    return f"{left},{right}->{out}"


SCORES, VALUES, TURNED, TURNED_BACK = "ab,cb->ac", "ab,bc->ac", "ab,ac->bc", "ab,ac->cb"
"""Of matrices: A·Bᵀ, A·B, Aᵀ·B, and Bᵀ·A."""
