"""A place in the tokens of a Core text, and the reading of dims and types. Nesting is bounded, so recursion is too."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from presk_rel.core.numbers import natural
from presk_rel.core.tokens import Token, tokenize
from presk_rel.diagnostics import Span
from presk_rel.elab.ty import (
    Applied,
    Axis,
    Composed,
    Function,
    Hyper,
    Idx,
    Instance,
    Key,
    Mask,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
)
from presk_rel.smt.linear import Linear, constant, linear, symbol

T = TypeVar("T")

MAX_DEPTH = 200
MAX_FORM = 5_000
"""Characters of one dimension: exact fractions of a longer one could grow without bound."""

_HYPER = {"nat": Hyper("nat"), "int": Hyper("int"), "rat": Hyper("rat"), "f64": Hyper("f64"), "bool": Hyper("bool")}


class ReadError(Exception):
    """A text that is no Core: the diagnostic's code, message and place. Never leaves the reader."""

    def __init__(self, code: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span


class Cursor:
    """Reads tokens one by one. `dims` are the declared dims around: another name in front of a shape is a prefix."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.tokens = tokenize(text)
        self.i = 0
        self.dims: frozenset[str] = frozenset()
        self._depth = 0

    # -------------------------------------------------------------------------------------------------------- tokens

    @property
    def now(self) -> Token:
        return self.tokens[self.i]

    def ahead(self, n: int = 1) -> Token:
        return self.tokens[min(self.i + n, len(self.tokens) - 1)]

    def here(self) -> Span:
        return Span(self.file, self.now.start, self.now.end)

    def since(self, first: Token) -> Span:
        """From `first` to the last token read."""
        return Span(self.file, first.start, self.tokens[max(self.i - 1, 0)].end)

    def fail(self, expected: str, code: str = "E0100") -> ReadError:
        found = {"end": "the end of the file", "newline": "the end of the line"}.get(
            self.now.kind, f"`{self.now.text}`"
        )
        return ReadError(code, f"expected {expected}, found {found}", self.here())

    def step(self) -> Token:
        token = self.now
        self.i = min(self.i + 1, len(self.tokens) - 1)
        return token

    def at(self, *marks: str) -> bool:
        return self.now.kind == "mark" and self.now.text in marks

    def at_word(self, word: str) -> bool:
        return self.now.kind == "name" and self.now.text == word

    def accept(self, mark: str) -> bool:
        if self.at(mark):
            self.step()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.fail(f"`{mark}`")

    def word(self, word: str) -> None:
        if not self.at_word(word):
            raise self.fail(f"`{word}`")
        self.step()

    def name(self, what: str = "a name") -> str:
        if self.now.kind != "name" or self.now.text == "ℝ":
            raise self.fail(what)
        return self.step().text

    def path(self, what: str) -> str:
        """A name of a function or module: `Linear.apply`."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return ".".join(parts)

    def newline(self) -> str:
        """The end of a line; its comment."""
        if self.now.kind != "newline":
            raise self.fail("the end of the line")
        return self.step().text

    def skip_newlines(self) -> None:
        while self.now.kind == "newline":
            self.step()

    def nat(self) -> int:
        if self.now.kind != "number" or not self.now.text.isdecimal():
            raise self.fail("a natural number")
        try:
            value = natural(self.now.text)
        except ValueError as error:
            raise ReadError("E0102", f"{error} is beyond what Core text may hold", self.here()) from None
        self.step()
        return value

    def comma_list(self, close: str, item: Callable[[], T]) -> tuple[tuple[T, ...], bool]:
        """Items up to `close`, which is read too; whether a comma stands before it."""
        items: list[T] = []
        comma = False
        while not self.accept(close):
            if items and not comma:
                raise self.fail(f"`,` or `{close}`")
            items.append(item())
            comma = self.accept(",")
        return tuple(items), comma

    # ---------------------------------------------------------------------------------------------------------- dims

    def form(self) -> Linear:
        """A dimension: `4*D`, `D / 12`, `2*D - 1`."""
        if self.now.kind == "name" and not (self.ahead().kind == "mark" and self.ahead().text in "+-/"):
            return symbol(self.name("a dimension"))
        first = self.now
        negative = self.accept("-")
        parts = [self._term().scale(-1 if negative else 1)]
        while self.at("+", "-"):
            sign = -1 if self.step().text == "-" else 1
            parts.append(self._term().scale(sign))
            self._bounded(first)
        self._bounded(first)
        return linear((t for p in parts for t in p.terms), sum((p.const for p in parts), Fraction(0)))

    def _bounded(self, first: Token) -> None:
        if self.now.start.offset - first.start.offset > MAX_FORM:
            text = f"a dimension of more than {MAX_FORM} characters is beyond what Core text may hold"
            raise ReadError("E0102", text, self.since(first))

    def _term(self) -> Linear:
        if self.now.kind == "name":
            value = symbol(self.name("a dimension"))
        elif self.now.kind == "number":
            value = constant(self.nat())
            if self.accept("*"):
                value = symbol(self.name("a dim")).scale(value.const)
        else:
            raise self.fail("a dimension")
        if not self.at("/"):
            return value
        self.step()
        at = self.here()
        divisor = self.nat()
        if divisor == 0:
            raise ReadError("E0102", "a dimension divided by 0", at)
        return value.scale(Fraction(1, divisor))

    # --------------------------------------------------------------------------------------------------------- types

    def type(self) -> Type:
        """A type as `str` prints it."""
        self._enter()
        token = self.now
        if self.at("("):
            ty = self._tuple_or_function()
        elif token.kind != "name":
            raise self.fail("a type")
        else:
            ty = self._named(self.step())
        self._depth -= 1
        return ty

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ReadError("E0103", f"types nest deeper than {MAX_DEPTH} levels", self.here())

    def restart(self) -> None:
        """Forget how deep the reading was: after an error."""
        self._depth = 0

    def _named(self, token: Token) -> Type:
        match token.text:
            case "ℝ":
                return Real(self._shape())
            case "idx":
                self.expect("[")
                bound = self.form()
                self.expect("]")
                return Idx(bound, self._shape() if self.at("[") else Shape(None, ()))
            case "bool" if self.at("["):
                return Mask(self._shape())
            case "key":
                return Key(self._shape()) if self.at("[") else Key()
            case "params":
                return Params(self.instance())
            case text if text in _HYPER:
                return _HYPER[text]
            case _:
                self.i -= 1
                raise self.fail("a type")

    def _tuple_or_function(self) -> Type:
        self.expect("(")
        items, comma = self.comma_list(")", self.type)
        if self.accept("->"):
            return Function(items, self.type())
        if len(items) == 1 and not comma:
            raise self.fail("`->`")
        return TupleOf(items)

    def _shape(self) -> Shape:
        self.expect("[")
        first = self.name() if self._at_prefix_name() else None
        if first is not None and not self.accept(","):
            self.expect("]")
            return Shape(first, ())
        items, _ = self.comma_list("]", self._axis_or_prefix)
        if first is not None:
            items = (first, *items)
        where = next((i for i, item in enumerate(items) if isinstance(item, str)), None)
        axes = tuple(item for item in items if isinstance(item, Axis))
        if where is None:
            return Shape(None, axes)
        if len(axes) + 1 < len(items):
            raise ReadError("E0100", "a shape has one `...` at most", self.here())
        return Shape(str(items[where]), axes[where:], axes[:where])

    def _axis_or_prefix(self) -> Axis | str:
        if self.accept("..."):
            return "..."
        after = self.ahead()
        if after.kind == "mark" and after.text == "...":
            name = self.name()
            self.step()
            return name
        return self._axis()

    def _at_prefix_name(self) -> bool:
        after = self.ahead()
        alone = after.kind == "mark" and after.text in (",", "]")
        return self.now.kind == "name" and alone and self.now.text not in self.dims

    def _axis(self) -> Axis:
        after = self.ahead()
        name: str | None = None
        if after.kind == "mark" and after.text == ":":
            name = self.name("an axis name")
            self.step()
        return Axis(name, self.form())

    def instance(self) -> Instance:
        """A module instance: `Linear{D, 4*D}`, `stack{L}(Block)`, `A ∘ B`."""
        self._enter()
        whole = self._one_instance()
        while self.accept("∘"):
            whole = Composed(whole, self._one_instance())
            self._enter()
        self._depth = max(self._depth - 1, 0)
        return whole

    def _one_instance(self) -> Instance:
        if self.accept("("):
            inner = self.instance()
            self.expect(")")
            return inner
        module = self.path("a module")
        args: tuple[Linear, ...] = ()
        if self.at("{") and self.ahead().kind != "newline":
            self.step()
            args, _ = self.comma_list("}", self.form)
        if module == "stack" and len(args) == 1 and self.accept("("):
            inner = self.instance()
            self.expect(")")
            return Stacked(args[0], inner)
        return Applied(module, args)
