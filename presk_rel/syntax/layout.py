"""The layout filter between lexer and grammar (spec: "Lexical structure", Layout).

It decides which line breaks are tokens, which `:` is followed by a type, pairs the brackets, and notes where a
declaration, member or configuration item begins, so that the parser can go on there after an error.

Line breaks, in order of decision:

1. gone before a token that goes on with the line (`CONTINUES`), after `=`, and at either end of a `{ … }` body;
2. inside brackets gone, except that each `let` there keeps one: the first that follows a complete value at the same
   bracket level ends its binding. So `f(λ x. let y = g(x)⏎ y)` works as it does outside brackets;
3. kept otherwise.

A bracket is never closed by guessing: one that is still open where a line starts a declaration is reported there
(E0004), its opening token becomes ERROR, and the declarations after it are read as if it had been closed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Final, Literal

from presk_rel.diagnostics import Diagnostic, Diagnostics, Label, Pos, Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.syntax.token import (
    CONTINUES,
    DECIMAL,
    END,
    ERROR,
    NAME,
    NAME_KINDS,
    NAT,
    NEWLINE,
    QUANTITY,
    RESERVED,
    SCALARS,
    STRING,
    TYPED,
    Token,
    words,
)

MAX_NESTING: Final = 200
"""Levels of brackets, prefix operators, powers, lambdas and postfix chains that a program may nest (E0005)."""

Level = Literal["decl", "member", "config_item", "close"]

_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_ENDS_VALUE: Final = NAME_KINDS | {NAT, DECIMAL, QUANTITY, STRING, ")", "]", "}", ERROR}
_DECL_STARTS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(words("const dim type effect model module optimizer training inference fn use param"), NAME_KINDS),
    "import": frozenset({STRING}),
    "static": frozenset({"assert"}),
}
"""A line that starts with the key, followed by one of the kinds, starts a declaration or member whatever is open."""

_DECLS: Final = frozenset(_DECL_STARTS) - {"use", "param"}
_BODIES: Final = frozenset({"module", "config"})
_HEADS: Final = frozenset({"optimizer", "training", "inference"})


@mutable
class _Open:
    """An open bracket, at `index` of the output. `kind` is `(`, `[`, `{`, or `module`/`config` for the brace of a body.

    `lets` bindings in it still wait for their line break. Of a body: the column of the keyword that heads it, and
    whether its first line is indented further.
    """

    kind: str
    index: int
    lets: int = 0
    column: int = 0
    indented: bool | None = None


@record
class Layout:
    """`restarts` are (index into `tokens`, what begins there), in order."""

    tokens: list[Token]
    restarts: list[tuple[int, Level]]
    diagnostics: list[Diagnostic]


@mutable
class _Filter:
    raw: list[Token]
    file: str
    out: list[Token] = field(default_factory=list[Token])
    stack: list[_Open] = field(default_factory=list[_Open])
    restarts: list[tuple[int, Level]] = field(default_factory=list[tuple[int, Level]])
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    opened: Counter[str] = field(default_factory=Counter[str])
    closes: dict[int, int] = field(default_factory=dict[int, int])
    commas: set[int] = field(default_factory=set[int])
    colons: list[tuple[int, str, int]] = field(default_factory=list[tuple[int, str, int]])
    line_starts: bool = True
    reported: bool = False
    type_params: int = -1
    head: int = 0

    def run(self) -> None:
        for i, token in enumerate(self.raw):
            kind = token.kind
            if kind == NEWLINE:
                self.newline(token, i)
                self.line_starts = True
                continue
            if self.line_starts:
                self.line_starts = False
                self.start_of_line(i)
            if kind in _CLOSING:
                self.open(i, token)
            elif kind in (")", "]", "}"):
                self.close(token)
            elif kind == END:
                self.finish(token)
            else:
                self.plain(kind)
                self.out.append(token)
        self.mark_types()

    def plain(self, kind: str) -> None:
        if kind == "let" and self.stack:
            self.stack[-1].lets += 1
        elif kind == "," and self.stack:
            self.commas.add(self.stack[-1].index)
        elif kind == ERROR:
            self.reported = True
        elif kind == ":" and self.stack:
            self.colons.append((len(self.out), self.stack[-1].kind, self.stack[-1].index))

    # -------------------------------------------------------------------------------------------- line breaks

    def newline(self, token: Token, i: int) -> None:
        if not self.out or self.out[-1].kind == NEWLINE or self.goes_on(self.raw[i + 1].kind):
            return
        if self.out[-1].kind == "=" and self.level(i + 1) is None:
            return
        if self.stack:
            top = self.stack[-1]
            if top.kind in _BODIES:
                if top.index == len(self.out) - 1:
                    return
            elif top.lets and self.is_value_end():
                top.lets -= 1
            else:
                return
        self.end_line(token.end)

    def is_value_end(self) -> bool:
        """Whether an expression can end here; after `.` reserved words are names."""
        kind = self.out[-1].kind
        return kind in _ENDS_VALUE or (kind in RESERVED and kind != "λ" and self.out[-2].kind == ".")

    def goes_on(self, following: str) -> bool:
        """A configuration item may be called `uses`."""
        in_config = len(self.stack) == 1 and self.stack[0].kind == "config"
        return following in CONTINUES and not (following == "uses" and in_config)

    def end_line(self, end: Pos) -> None:
        """The token stands directly after what it ends, where a caret can show it."""
        start = self.out[-1].end
        self.out.append(Token(NEWLINE, "\n", start, start if end.line == start.line else end))

    def start_of_line(self, i: int) -> None:
        level = self.level(i)
        if level is None:
            return
        keep = 0 if level == "decl" else 1
        if len(self.stack) > keep:
            self.unclosed(keep, self.raw[i])
        self.reported = False
        self.type_params = -1
        self.restarts.append((len(self.out), level))

    def level(self, i: int) -> Level | None:
        """What begins at raw token `i`, the first of its line; None for a line that goes on with something."""
        kind = self.raw[i].kind
        certain = kind in _DECL_STARTS and self.raw[i + 1].kind in _DECL_STARTS[kind]
        body = self.body()
        free = len(self.stack) == (body is not None)
        if kind == "model":
            certain = certain and self.raw[i + 2].kind == "="
            if not certain and (body is None or body.kind != "config"):
                return None
        if body is None:
            return "decl" if kind in _DECLS and (certain or free) else None
        if body.indented is None:
            body.indented = self.raw[i].start.column > body.column
        if certain and kind in _DECLS and self.raw[i].start.column <= body.column and (body.indented or kind != "fn"):
            return "decl"
        if body.kind == "config":
            return "config_item" if (free and kind != "}") or (certain and kind in _DECLS) else None
        return "member" if kind in _DECL_STARTS and (certain or free) else None

    def body(self) -> _Open | None:
        return self.stack[0] if self.stack and self.stack[0].kind in _BODIES else None

    # ----------------------------------------------------------------------------------------------- brackets

    def open(self, i: int, token: Token) -> None:
        kind = self.body_kind(i) if token.kind == "{" and not self.stack else token.kind
        column = self.raw[self.head].start.column if kind in _BODIES else 0
        self.stack.append(_Open(kind, len(self.out), column=column))
        self.opened[_CLOSING[token.kind]] += 1
        self.out.append(token)
        brackets = len(self.stack) - (self.body() is not None)
        if brackets > MAX_NESTING and not self.reported:
            self.report("E0005", f"nesting deeper than {MAX_NESTING} levels", len(self.out) - 1, help=TOO_DEEP)

    def body_kind(self, i: int) -> str:
        """The body of a module opens after its type parameters, or after its name where no name follows the brace."""
        out = self.out
        if len(out) >= 2 and out[-1].kind in NAME_KINDS:
            if out[-2].kind in _HEADS:
                self.head = i - 2
                return "config"
            if out[-2].kind == "module":
                self.head = i - 2
                following = next((t.kind for t in self.raw[i + 1 : i + 3] if t.kind != NEWLINE), END)
                if following not in NAME_KINDS:
                    return "module"
                self.type_params = len(out)
        if out and out[-1].kind == "}" and self.type_params >= 0:
            return "module"
        return "{"

    def close(self, token: Token) -> None:
        depth = self.matching(token.kind)
        if depth < 0:
            self.stray(token)
            return
        if depth < len(self.stack) - 1:
            self.unclosed(depth + 1, token)
        opened = self.pop()
        self.closes[opened.index] = len(self.out)
        if opened.kind in _BODIES:
            if self.out[-1].kind != NEWLINE and opened.index != len(self.out) - 1:
                self.end_line(token.start)
            self.restarts.append((len(self.out), "close"))
        if opened.index != self.type_params:
            self.type_params = -1
        self.out.append(token)

    def pop(self) -> _Open:
        opened = self.stack.pop()
        self.opened[_CLOSING.get(opened.kind, "}")] -= 1
        return opened

    def stray(self, token: Token) -> None:
        """A closing bracket with no partner; where another bracket is open, that one is closed by the wrong sign."""
        span = Span(self.file, token.start, token.end)
        if not self.reported and self.stack and self.stack[-1].kind not in _BODIES:
            index = self.stack[-1].index
            message = f"this `{self.out[index].kind}` is closed by `{token.kind}`"
            self.report("E0004", message, index, labels=(Label(span, "closed here"),))
        elif not self.reported:
            self.diagnostics.error("E0004", f"this `{token.kind}` closes nothing", span)
            self.reported = True
        self.out.append(token._replace(kind=ERROR))

    def matching(self, closer: str) -> int:
        """The innermost open bracket that `closer` closes, or -1. What is open above it is dropped by the caller, so
        the searches that succeed cost no more than the brackets themselves; the others are told by the count."""
        if not self.opened[closer]:
            return -1
        depth = len(self.stack) - 1
        while _CLOSING.get(self.stack[depth].kind, "}") != closer:
            depth -= 1
        return depth

    def unclosed(self, keep: int, at: Token) -> None:
        """Everything above `keep` is still open at `at`: the innermost is reported, all become ERROR."""
        where = Span(self.file, at.start, at.end)
        index = self.stack[-1].index
        opener = self.out[index].kind
        if not self.reported:
            labels = () if at.kind == END else (Label(where, f"still open at this `{at.text or at.kind}`"),)
            self.report("E0004", f"this `{opener}` is never closed", index, labels=labels)
        while len(self.stack) > keep:
            opened = self.pop()
            if opened.kind in _BODIES:
                self.synthesize_close(at)
            else:
                self.out[opened.index] = self.out[opened.index]._replace(kind=ERROR)
        if self.out and self.out[-1].kind != NEWLINE:
            self.end_line(at.start)

    def synthesize_close(self, at: Token) -> None:
        """The body's members are good: only its brace is missing."""
        if self.out[-1].kind not in (NEWLINE, "{"):
            self.end_line(at.start)
        self.out.append(Token("}", "}", at.start, at.start))

    def report(
        self, code: str, message: str, index: int, labels: tuple[Label, ...] = (), help: str | None = None
    ) -> None:
        token = self.out[index]
        self.diagnostics.error(code, message, Span(self.file, token.start, token.end), labels=labels, help=help)
        body = self.body()
        if body is None or index != body.index:
            self.out[index] = token._replace(kind=ERROR)
        self.reported = True

    def finish(self, token: Token) -> None:
        if self.stack:
            self.unclosed(0, token)
        if self.out and self.out[-1].kind != NEWLINE:
            self.end_line(token.end)
        self.out.append(token)

    # ------------------------------------------------------------------------------- which colon is before a type

    def mark_types(self) -> None:
        for index, kind, opened in self.colons:
            if self.is_typed_item(index) if kind == "config" else self.is_ascription(kind, opened, index):
                self.out[index] = self.out[index]._replace(kind=TYPED)

    def is_ascription(self, kind: str, opened: int, index: int) -> bool:
        return kind == "(" and (not self.labels(index, opened) or self.is_type(index + 1))

    def is_typed_item(self, index: int) -> bool:
        """`name : type = value`: a `=` on the item's line, outside brackets."""
        if self.out[index - 2].kind not in (NEWLINE, "{"):
            return False
        index += 1
        while self.out[index].kind not in (NEWLINE, END, "="):
            index = self.closes.get(index, index) + 1
        return self.out[index].kind == "="

    def labels(self, index: int, opened: int) -> bool:
        """Whether what stands before the `:` is one name, so that it could be an axis."""
        before = self.out[index - 2]
        return self.out[index - 1].kind in NAME_KINDS and (index - 2 == opened or before.kind == ",")

    def is_type(self, index: int) -> bool:
        """Whether a type starts at `index` that is no dimension expression."""
        token = self.out[index]
        if token.text in SCALARS and token.kind in (NAME, "bool"):
            return self.out[index + 1].kind in ((")", ",", "[") if token.kind == "bool" else (")", ","))
        if self.is_tuple(index):
            return True
        while self.out[index].kind == "(":
            index += 1
        return self.out[index].kind in ("ℝ", "idx", "param", "params")

    def is_tuple(self, index: int) -> bool:
        """Whether `(…)` at `index` holds a comma or nothing, and is all there is."""
        close = self.closes.get(index)
        if close is None or self.out[index].kind != "(":
            return False
        return (index in self.commas or close == index + 1) and self.out[close + 1].kind in (")", ",")


TOO_DEEP: Final = "give parts of it names with `let`"


def layout(raw: list[Token], file: str) -> Layout:
    """The tokens the grammar reads, ending in END. Linear in the number of tokens."""
    filter = _Filter(raw, file)
    filter.run()
    return Layout(filter.out, filter.restarts, filter.diagnostics.items)
