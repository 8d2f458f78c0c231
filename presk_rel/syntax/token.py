"""Tokens and the words of the language (spec: "Lexical structure")."""

from __future__ import annotations

from typing import Final, NamedTuple

from presk_rel.diagnostics import Pos

NAME: Final = "NAME"
NAT: Final = "NAT"
DECIMAL: Final = "DECIMAL"
QUANTITY: Final = "QUANTITY"
STRING: Final = "STRING"
NEWLINE: Final = "_NEWLINE"
TYPED: Final = "_TYPED"
END: Final = "$END"
ERROR: Final = "ERROR"
"""A place already reported: the parser takes up again at the next declaration and says nothing."""


class Token(NamedTuple):
    """`kind` is a terminal of grammar.lark: a word or symbol by its canonical text, or one of the names above.

    `text` is what the tree keeps: NFC for names, the resolved value for strings, the digits as written for numbers.
    """

    kind: str
    text: str
    start: Pos
    end: Pos


def words(text: str) -> frozenset[str]:
    """A set of words, written as they are read."""
    return frozenset(text.split())


RESERVED: Final = words(
    "module param params use fn const dim type import as static assert optimizer training inference effect let uses "
    "init axis idx ein ℝ λ"
)
CONTEXTUAL: Final = words("model run serve stream checkpoint every steps to bool Shape")
"""Ordinary identifiers that the grammar recognizes by position (`Shape` only as the kind of a type parameter)."""

WORD_KINDS: Final = {word: word for word in RESERVED | CONTEXTUAL} | {"Real": "ℝ"}

NAME_KINDS: Final = CONTEXTUAL | {NAME}
"""The kinds that the grammar's `name` accepts."""

SYNONYMS: Final = {"@": "·", "\u0387": "·", "><": "⊗", "<<": "∘", "\\lambda": "λ", "\\": "λ"}
"""ASCII spelling → canonical symbol. U+0387 is canonically equivalent to `·`."""

SCALARS: Final = frozenset({"nat", "int", "rat", "f64", "key", "bool"})
"""The hyperparameter types, ordinary named types; after `name :` in a call they are types and no dimension."""

CONTINUES: Final = words("|> | ⊗ ∘ · * / % + == <= >= < > -> uses =")
"""What goes on with the line before: operators that begin no expression, and the parts of a signature."""
