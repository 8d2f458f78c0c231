"""Reads the operations of PSK-Core text: what stands after `=`, for `core.reader`."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.cursor import Cursor, ReadError
from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.core.ir import Apply, Attr, Call, Closure, DimArgs, Fold, Grad, Jvp, Op, Prim, Vjp
from presk_rel.core.numbers import decimal, natural
from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.smt.linear import Linear, symbol

PASSED_ON = (("", symbol("")),)
"""Stands for the dim arguments that a closure or a fold leaves out, until every callee is known."""


class Operations:
    """Reads one operation at a time from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self.c = cursor

    def names(self) -> tuple[str, ...]:
        names = [self.c.name()]
        while self.c.accept(","):
            names.append(self.c.name())
        return tuple(names)

    def read(self) -> Op:
        c = self.c
        if c.accept("("):
            items, _ = c.comma_list(")", c.name)
            return Prim("tuple", (), items)
        if c.ahead().kind == "mark" and c.ahead().text == ".":
            return self._selection()
        at = c.here()
        match word := c.name("an operation"):
            case "call":
                fn = c.path("a function")
                dim_args = self._dim_args() if c.at("{") else ()
                return Call(fn, dim_args, self._operands("(", ")"))
            case "closure":
                fn = c.path("a function")
                dim_args = self._dim_args() if c.at("{") else PASSED_ON
                return Closure(fn, dim_args, self._operands("[", "]"))
            case "grad":
                return Grad(c.name())
            case "vjp":
                return Vjp(c.name())
            case "jvp":
                return Jvp(c.name())
            case "apply":
                return Apply(c.name(), self._operands("(", ")"))
            case "fold":
                return self._fold()
            case _ if word in PRIMS:
                return self._prim(word)
            case _:
                raise ReadError("E0101", f"{word} is no operation of PSK-Core", at)

    def _selection(self) -> Prim:
        base = self.c.name()
        self.c.expect(".")
        if self.c.now.kind == "number":
            return Prim("proj", (self.c.nat(),), (base,))
        return Prim("field", (self.c.name("a field or a component"),), (base,))

    def _operands(self, open_: str, close: str) -> tuple[str, ...]:
        self.c.expect(open_)
        return self.c.comma_list(close, self.c.name)[0]

    def _dim_args(self) -> DimArgs:
        self.c.expect("{")
        return self.c.comma_list("}", self._dim_arg)[0]

    def _dim_arg(self) -> tuple[str, Linear]:
        name = self.c.name("a dim")
        self.c.expect("=")
        return name, self.c.form()

    def _fold(self) -> Fold:
        c = self.c
        count = c.form()
        body = c.path("a function")
        dim_args = self._dim_args() if c.at("{") else PASSED_ON
        c.expect("(")
        c.word("stacked")
        stacked = () if c.at(";") else self.names()
        c.expect(";")
        c.word("acc")
        acc = c.name()
        extras = self.names() if c.accept(";") else ()
        c.expect(")")
        reverse = c.at_word("reverse")
        if reverse:
            c.step()
        scan = c.at_word("scan")
        if scan:
            c.step()
        return Fold(count, body, dim_args, stacked, acc, extras, reverse, scan)

    def _prim(self, op: str) -> Prim:
        row = PRIMS[op]
        attrs = self._attrs(op, row.attrs)
        args = self.names() if self.c.now.kind != "newline" else ()
        if row.arity is not None and len(args) != row.arity:
            raise self.c.fail(f"{row.arity} operands of {op} (there are {len(args)})", "E0101")
        return Prim(op, attrs, args)

    # ---------------------------------------------------------------------------------------------------- attributes

    def _attrs(self, op: str, kinds: tuple[AttrKind, ...]) -> tuple[Attr, ...]:
        """The attributes of a primitive, as `printer` writes them."""
        c = self.c
        match kinds:
            case ("int", "int"):
                return self._by()
            case ("place", "dim"):
                return (self._place(), c.form())
            case ("place", "dim", "dim"):
                return (self._place(), *self._range())
            case ("axis", "name", "dim", "name", "dim"):
                return (self._attr("axis"), *self._length(), *self._length())
            case ("axis",) if op == "concat":
                return (c.name("an axis"),)
            case _:
                at_axis = c.at_word("axis") and c.ahead().kind == "name"
                return tuple(self._attr(kind) for kind in kinds if kind != "axis?" or at_axis)

    def _attr(self, kind: AttrKind) -> Attr:
        match kind:
            case "axis" | "axis?":
                self.c.word("axis")
                return self.c.name("an axis")
            case "name":
                return self.c.name("a field")
            case "int":
                return self.c.nat()
            case "rational":
                return self._rational()
            case "dim":
                return self.c.form()
            case "spec":
                return self._spec()
            case "place":
                return self._place()

    def _by(self) -> tuple[int, int]:
        """`12x64`."""
        c = self.c
        parts = c.now.text.split("x")
        if c.now.kind != "bad" or len(parts) != 2 or not all(p.isascii() and p.isdigit() for p in parts):
            raise c.fail("a number of heads and their length (`12x64`)")
        try:
            h, e = (natural(p) for p in parts)
        except ValueError as error:
            raise ReadError("E0102", f"{error} is beyond what Core text may hold", c.here()) from None
        c.step()
        return h, e

    def _place(self) -> str | int:
        """`seq:` or `0:`."""
        place = self.c.nat() if self.c.now.kind == "number" else self.c.name("an axis")
        self.c.expect(":")
        return place

    def _range(self) -> tuple[Linear, Linear]:
        low = self.c.form()
        self.c.expect("..")
        return low, self.c.form()

    def _length(self) -> tuple[str, Linear]:
        """`heads: 12`."""
        name = self.c.name("an axis")
        self.c.expect(":")
        return name, self.c.form()

    def _spec(self) -> str:
        """`[a b, b -> a]`."""
        c = self.c
        first = c.now
        c.expect("[")
        operands = [self._axes()]
        while c.accept(","):
            operands.append(self._axes())
        c.expect("->")
        result = self._axes()
        c.expect("]")
        spec = str(EinSpec(tuple(operands), result))
        if ein_spec(spec) is None:
            text = f"[{spec}] is no contraction: an axis stands twice in one list, or in the result only"
            raise ReadError("E0101", text, c.since(first))
        return spec

    def _axes(self) -> tuple[str, ...]:
        names: list[str] = []
        while self.c.now.kind == "name":
            names.append(self.c.name("an axis"))
        return tuple(names)

    def _rational(self) -> Fraction:
        sign = -1 if self.c.accept("-") else 1
        value = self.decimal()
        if not self.c.accept("/"):
            return sign * value
        at = self.c.here()
        divisor = self.decimal()
        if divisor == 0:
            raise ReadError("E0102", "a number divided by 0", at)
        return sign * value / divisor

    def decimal(self) -> Fraction:
        if self.c.now.kind != "number":
            raise self.c.fail("a number")
        try:
            value = decimal(self.c.now.text)
        except ValueError as error:
            raise ReadError("E0102", f"{error} is beyond what Core text may hold", self.c.here()) from None
        self.c.step()
        return value
