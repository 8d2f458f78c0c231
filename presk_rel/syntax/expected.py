"""What a syntax error says: what was expected, in the reader's words, and what was found instead."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics import Diagnostic, Span
from presk_rel.syntax.foreign import DOUBLED, NAMES, WORDS
from presk_rel.syntax.lalr import Table
from presk_rel.syntax.token import (
    DECIMAL,
    END,
    NAME,
    NAME_KINDS,
    NAT,
    NEWLINE,
    QUANTITY,
    RESERVED,
    STRING,
    TYPED,
    Token,
    words,
)

_EXPRESSION: Final = NAME_KINDS | {NAT, DECIMAL, QUANTITY, STRING, "-", "(", "λ", "ein", "let"}
_OPERATORS: Final = words("|> | ⊗ ∘ == <= >= < > + - * / % · ^")
_POSTFIX: Final = words("( [ { .")

_DECLARATION: Final = words("import const static dim type effect model module fn optimizer training inference")

_WORDS: Final[tuple[tuple[str, str, frozenset[str]], ...]] = (
    ("a declaration", "const", _DECLARATION),
    ("a member (`param`, `use` or `fn`)", "use", words("param use fn")),
    ("an expression", NAT, _EXPRESSION),
    ("a type", "ℝ", NAME_KINDS | {"ℝ", "idx", "param", "params", "("}),
    ("a name", NAME, NAME_KINDS | RESERVED),
    ("a string", STRING, frozenset({STRING})),
    ("the end of the line", NEWLINE, frozenset({NEWLINE})),
    ("the end of the file", END, frozenset({END})),
)
"""What to call a set of tokens: the words, a token that tells it is meant, and the tokens it stands for."""

_MOST: Final = 4


def expected(kinds: list[str]) -> list[str]:
    """The words for the kinds of token that could stand next, most telling first."""
    phrases: list[str] = []
    rest = set(kinds)
    if rest >= RESERVED - {"ℝ", "λ"}:
        rest -= RESERVED  # a place where any word is a name
    is_body = "use" in rest
    for phrase, mark, covered in _WORDS:
        if mark in rest and not (mark == NAME and is_body):
            phrases.append(phrase)
            rest -= covered
    if is_body:
        rest -= NAME_KINDS  # after `module M {` a name would start type parameters, and the brace would be another one
    after_value = len(rest & _OPERATORS) > 5
    if after_value:
        rest -= _OPERATORS | _POSTFIX
    if TYPED in rest:
        rest = rest - {TYPED} | {":"}
    literals = [f"`{kind}`" for kind in sorted(rest, key=_rank)]
    return [*literals, *phrases, "an operator"] if after_value else [*phrases, *literals]


def _rank(kind: str) -> tuple[int, str]:
    order = [")", "]", "}", ",", ":", "=", "->", "uses", "dim"]
    return (order.index(kind) if kind in order else len(order), kind)


def acceptable(table: Table, states: list[int]) -> list[str]:
    """The kinds that can really be shifted next (a LALR row alone also lists reductions that lead nowhere)."""
    return [kind for kind in sorted(table.actions[states[-1]]) if _can_shift(table, states, kind)]


def _can_shift(table: Table, states: list[int], kind: str) -> bool:
    base, top = len(states), list[int]()
    while True:
        state = top[-1] if top else states[base - 1]
        action = table.actions[state].get(kind)
        if action is None:
            return kind == END
        if action >= 0:
            return True
        production = table.productions[~action]
        keep = len(top) - production.size
        base += min(keep, 0)
        top = top[: max(keep, 0)]
        below = top[-1] if top else states[base - 1]
        top.append(table.gotos[below][production.origin])


def found(token: Token) -> str:
    if token.kind == NEWLINE:
        return "the end of the line"
    if token.kind == END:
        return "the end of the file"
    if token.kind == STRING:
        return "a string"
    if token.kind == QUANTITY:
        return f"`{token.text.replace(' ', '')[:40]}`"
    if token.kind in RESERVED:
        return f"the reserved word `{token.text}`" if token.kind not in "ℝλ" else f"`{token.text}`"
    if token.kind == TYPED:
        return "`:`"
    return f"`{token.text[:40]}`"


def syntax_error(file: str, table: Table, states: list[int], tokens: list[Token], at: int) -> Diagnostic:
    """E0002 at `tokens[at]`, which the parser in `states` cannot read."""
    token = tokens[at]
    kinds = acceptable(table, states)
    shown = expected(kinds)[:_MOST]
    choice = shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]
    help = _help(kinds, tokens, at)
    if help == _LET and token.kind in _DECLARATION | {END, "}"}:
        token = tokens[at - 1]  # nothing is wrong with the next declaration: the line before it lacks something
    message = f"expected {choice}, found {found(token)}"
    return Diagnostic("E0002", message, Span(file, token.start, token.end), help=help)


_LET: Final = "a `let` is followed by an expression on the next line"


def _help(kinds: list[str], tokens: list[Token], at: int) -> str | None:
    """Advice on the commonest slips, by what was expected, what was found and what stands before it."""
    token, before = tokens[at], tokens[at - 1] if at else None
    if before is None:
        return WORDS.get(token.text)
    wants_value = NAT in kinds
    if before.kind == NEWLINE and token.kind in ("-", "^"):
        return f"a line that starts with `{token.kind}` does not go on with the one above: put it all in parentheses"
    if (before.kind == NEWLINE and wants_value) or (NEWLINE in kinds and token.kind in (")", "]", "}", ",")):
        return _LET
    if before.end.line < token.start.line:
        return WORDS.get(token.text)
    if token.kind == "dim" and wants_value and tokens[at + 1].kind == "=":
        return "an axis is selected by its name: mean(axis a, x)"
    if token.kind in RESERVED and NAME in kinds and token.kind not in "ℝλ":
        return f"`{token.text}` is a reserved word and cannot be a name"
    if token.kind == NEWLINE and wants_value and before.kind in _OPERATORS:
        return f"an expression ends with its line: move `{before.text}` to the start of the next one"
    if before.kind == "," and token.kind in (")", "]", "}"):
        return "a list does not end with a comma"
    if token.text == "in" and NEWLINE in kinds:
        return "there is no `in`: what a `let` is for starts on the next line"
    if (token.kind == "." and wants_value) or (before.kind == "." and tokens[at - 2].kind == NAT):
        return "a decimal has digits on both sides of its point: `1.0`, `0.5`"
    return _foreign(kinds, tokens, at)


def _foreign(kinds: list[str], tokens: list[Token], at: int) -> str | None:
    """Advice on what other languages write (`foreign`), by the token found and the one before it on its line."""
    token, before = tokens[at], tokens[at - 1]
    if token.kind == before.kind and before.end == token.start and token.kind in DOUBLED:
        return DOUBLED[token.kind]
    if token.kind == "=" and before.kind in NAME_KINDS and NEWLINE in kinds:
        return f"a name is bound by `let {before.text[:40]} = …`"
    if token.kind == "[" and before.text in NAMES:
        return NAMES[before.text]
    if token.kind == "{" and _heads(tokens, at) == "params":
        return "`params` takes the name of a module, of a model or of a parameter: model N = M{…}, then params N"
    if before.kind == "(" and tokens[at - 2].text == "stack":
        return "a stack is written stack{L}(M)"
    return WORDS.get(token.text) or WORDS.get(before.text)


def _heads(tokens: list[Token], at: int) -> str:
    """What stands before the path that ends before `at`."""
    at -= 1
    while at > 1 and tokens[at - 1].kind == ".":
        at -= 2
    return tokens[at - 1].kind if at > 0 and tokens[at].kind in NAME_KINDS else ""
