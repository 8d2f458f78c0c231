"""How each operation is written, one row each: as a sign of mathematics where it has one, else by its name, its
attributes and its operands (`softmax axis seq2 s, m`). An operation without a row is an error a test finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.prims import AttrKind
from presk_rel.notation.formula import PRODUCT, RELATION, SUM, SignName

Form = Literal["named", "typed", "made", "infix", "product", "quotient", "minus", "root", "bars", "power", "operand",
               "attribute", "field", "tuple", "ein"]  # fmt: skip
"""`typed`: by name, then the type of its value, which its operands do not tell. `made`: by name and the first axis of
its value (`causal_mask seq: T`). `operand`: written as its operand (an injection). `attribute`: as its attribute."""


@dataclass(frozen=True, slots=True)
class Written:
    """`sign` is a key of INFIX. `entrywise`: entry i of the value is the operation on
    entries i of the operands, so that indices pass through it."""

    op: str
    form: Form
    sign: str = ""
    entrywise: bool = False


def _all(form: Form, ops: str, *, entrywise: bool = False) -> list[Written]:
    return [Written(op, form, "", entrywise) for op in ops.split()]


_ROWS = (
    Written("add", "infix", "+", True),
    Written("sub", "infix", "−", True),
    Written("mul", "product", "⊙", True),
    Written("div", "quotient", "/", True),
    Written("neg", "minus", entrywise=True),
    Written("pow", "power", entrywise=True),
    Written("sqrt", "root", entrywise=True),
    Written("abs", "bars", entrywise=True),
    Written("lt", "infix", "<", True),
    Written("le", "infix", "≤", True),
    Written("gt", "infix", ">", True),
    Written("ge", "infix", "≥", True),
    Written("eq", "infix", "==", True),
    Written("real", "operand", entrywise=True),
    Written("const", "attribute"),
    Written("dim", "attribute"),
    Written("pi", "named"),
    Written("field", "field"),
    Written("proj", "field"),
    Written("tuple", "tuple"),
    Written("ein", "ein"),
    *_all("made", "positions causal_mask"),
    *_all("typed", "zeros ones normal xavier_uniform record"),
    *_all("named", "gelu relu exp tanh log sigmoid sin cos gelu' normal_pdf heaviside sign max min", entrywise=True),
    *_all("named", "dot dot_vjp_l dot_vjp_r mean sum mean_vjp broadcast_like sum_to zeros_like ones_like"),
    *_all("named", "set_field set_elem split_key stack_params slice_params scatter_params set_slice sum_squares"),
    *_all(
        "named", "softmax embed embed_vjp one_hot cross_entropy cross_entropy_vjp argmax sample dropout dropout_mask"
    ),
    *_all("named", " ".join(COMPOSITES)),
    *_all("named", "merge split reshape_like split_heads merge_heads index scatter_index slice slice_vjp concat"),
)

WRITTEN: dict[str, Written] = {r.op: r for r in _ROWS}

SOURCE_ONLY: dict[str, tuple[AttrKind, ...]] = {"dropout": ("rational",)}
"""Operations of the typed program that lowering replaces, with their attributes; PSK-Core has none of them."""

INFIX: dict[str, tuple[int, str, str]] = {
    "+": (SUM, " + ", " + "),
    "−": (SUM, " − ", " - "),
    "⊙": (PRODUCT, " ⊙ ", r" \odot "),
    "·": (PRODUCT, " · ", r" \cdot "),
    "/": (PRODUCT, " / ", " / "),
    "juxtaposed": (PRODUCT, " ", r"\,"),
    "<": (RELATION, " < ", " < "),
    "≤": (RELATION, " ≤ ", r" \le "),
    ">": (RELATION, " > ", " > "),
    "≥": (RELATION, " ≥ ", r" \ge "),
    "==": (RELATION, " == ", " = "),
}
"""Level, Unicode, LaTeX."""

SIGNS: dict[SignName, tuple[str, str]] = {
    "space": (" ", r"\ "),
    "comma": (", ", r",\allowbreak\ "),
    "one": (",", ","),
    "wide comma": (",  ", r",\allowbreak\quad "),
    "colon": (": ", r"{:}\ "),
    "of": (" : ", r" : "),
    "=": (" = ", " = "),
    "(": ("(", "("),
    ")": (")", ")"),
    "[": ("[", "["),
    "]": ("]", "]"),
    "{": ("{", r"\{"),
    "}": ("}", r"\}"),
    ".": (".", "."),
    "dot-dot": ("..", r"{.}{.}"),
    "dots": ("…", r"\ldots "),
    "·": ("·", r"{\cdot}"),
    "times": ("x", r"{\times}"),
    "real": ("ℝ", r"\mathbb{R}"),
    "params": ("params ", r"\pskop{params}\ "),
    "stack": ("stack", r"\pskop{stack}"),
    "idx": ("idx", r"\pskop{idx}"),
    "bool": ("bool", r"\pskop{bool}"),
    "key": ("key", r"\pskop{key}"),
    "axis": ("axis ", r"\pskop{axis}\ "),
    "->": (" -> ", r" \to "),
    "∘": (" ∘ ", r" \circ "),
    "λ": ("λ ", r"\lambda\, "),
    "↦": (" ↦ ", r" \mapsto "),
    "where": (" where ", r"\allowbreak\ \pskop{where}\ "),
    "for": (" for ", r"\allowbreak\ \pskop{for}\ "),
    "≤": (" ≤ ", r" \le "),
    "<": (" < ", " < "),
}
"""Unicode, LaTeX."""

CONSTANTS: dict[str, tuple[str, str]] = {"pi": ("π", r"\pi ")}
"""Operations whose name is a sign."""
