"""Generated code read call by call, without torch: which kernels it launches and which tensors are views of which.

Of a file of `exec.torch.emit` only what it can write is read: assignments, loops over a `range`, calls of its own
functions, calls that `exec.torch.calls` has a row for. Tensors are sizes and strides (`layouts`).

`buffers=True` reads it as the code that `exec.torch.plan` writes from it: a kernel that can write into a buffer gives
a row-major tensor that has its place in every run. `buffers=False` reads it as it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from presk_rel.diagnostics import PreskBug
from presk_rel.exec.torch.calls import CALLS, COPIES, DRAWS, FREE, VIEWS, Call
from presk_rel.exec.torch.layouts import Array, fresh

COPY = "copy"
"""The step that fills a buffer with the entries of a tensor, in its order."""


class Dtype(str):
    """A type of entries, by torch's name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Verbatim:
    """What is handed on as it is written: a device, a memory format."""

    text: str


@dataclass(frozen=True, slots=True)
class Host:
    """A key, a hyperparameter, or what is made of them: nothing of it is on the device."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call. `method` where its first argument is what it is called on."""

    function: str
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    results: tuple[Array | None, ...]
    launches: int
    call: Call | None = None
    method: bool = False

    @property
    def view(self) -> bool:
        return self.launches == 0


def _constant(value: Any, name: str) -> Any:
    """A constant of a file by its name there; parts of one (`torch.unbind`) are views of another."""
    match value:
        case Array():
            return replace(value, name=name, root=name, fixed=True)
        case tuple() | list():
            parts = enumerate(cast("Sequence[Any]", value))
            return tuple(replace(x, name=f"{name}[{i}]") if isinstance(x, Array) else x for i, x in parts)
        case _:
            return value


class TooLong(Exception):
    """More steps than the tracer was allowed."""


@dataclass(slots=True)
class Tracer:
    """Reads a file. Names of new tensors are `t0`, `t1`, … in the order of the steps."""

    dtype: str
    buffers: bool
    limit: int | None = None
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict[str, ast.FunctionDef])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: list[Step] = field(default_factory=list[Step])
    launches: int = 0
    count: int = 0
    arenas: dict[str, Array] = field(default_factory=dict[str, Array])
    """The flat tensors that inputs are parts of, by root."""
    memo: dict[object, tuple[Any, int]] = field(default_factory=dict[object, tuple[Any, int]])

    # ------------------------------------------------------------------------------------------------- statements

    def load(self, source: str) -> None:
        """The functions of a file, and its constants."""
        known: dict[str, Any] = {"dtype": Dtype(self.dtype), "device": Verbatim("device")}
        self.constants = known
        for node in ast.parse(source).body:
            match node:
                case ast.FunctionDef(name):
                    self.functions[name] = node
                case ast.Assign([ast.Name(name)], value) if name not in known:
                    known[name] = _constant(self.value(value, known), name)
                case _:
                    pass
        self.steps, self.launches = [], 0

    def run(self, function: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """The values that a function of the file returns."""
        node = self.functions[function]
        known = dict(self.constants)
        known.update(zip((a.arg for a in node.args.args), args, strict=True))
        for statement in node.body:
            if isinstance(statement, ast.Return):
                assert statement.value is not None
                return self.value(statement.value, known)
            self.statement(statement, known)
        raise PreskBug("torch", f"{function} returns nothing")

    def statement(self, node: ast.stmt, known: dict[str, Any]) -> None:
        match node:
            case ast.Assign([target], value):
                self.assign(target, self.value(value, known), known)
            case ast.For(ast.Name(index), ast.Call() as order, body):
                for i in range(*(self.value(a, known) for a in order.args)):
                    known[index] = i
                    for inner in body:
                        self.statement(inner, known)
            case ast.Expr(value):
                self.value(value, known)
            case _:
                raise PreskBug("torch", f"generated code has a {type(node).__name__}")

    def assign(self, target: ast.expr, value: Any, known: dict[str, Any]) -> None:
        match target:
            case ast.Name(name):
                known[name] = value
            case ast.Subscript(ast.Name(name), index):
                known[name][self.value(index, known)] = value
            case ast.Tuple(parts):
                for part, each in zip(parts, value, strict=True):
                    self.assign(part, each, known)
            case _:
                raise PreskBug("torch", f"generated code assigns to a {type(target).__name__}")

    # ------------------------------------------------------------------------------------------------ expressions

    def value(self, node: ast.expr, known: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return known[name]
            case ast.Tuple(parts) | ast.List(parts):
                found = [v for part in parts for v in self.spread(part, known)]
                return tuple(found) if isinstance(node, ast.Tuple) else found
            case ast.UnaryOp(ast.USub(), operand):
                inner = self.value(operand, known)
                return inner if isinstance(inner, Host) else -inner
            case ast.BinOp(ast.List() as part, ast.Mult(), times):
                return self.value(part, known) * self.value(times, known)
            case ast.BinOp() | ast.Compare():
                return Host()
            case ast.Subscript(base, index):
                return self.item(self.value(base, known), index, known)
            case ast.Attribute(base, name):
                return self.attribute(base, name, known)
            case ast.Call(function, args, keywords):
                given = [v for a in args for v in self.spread(a, known)]
                named = {k.arg or "": self.value(k.value, known) for k in keywords}
                return self.call(function, given, named, known)
            case _:
                raise PreskBug("torch", f"generated code has a {type(node).__name__}")

    def spread(self, node: ast.expr, known: dict[str, Any]) -> Sequence[Any]:
        if not isinstance(node, ast.Starred):
            return [self.value(node, known)]
        found = self.value(node.value, known)
        return [] if isinstance(found, Host) else found

    def item(self, base: Any, index: ast.expr, known: dict[str, Any]) -> Any:
        if isinstance(base, Host):
            return base
        if isinstance(index, ast.Slice):
            ends = [None if e is None else self.value(e, known) for e in (index.lower, index.upper)]
            return base[ends[0] : ends[1]]
        at = self.value(index, known)
        return self.view("select", (base, 0, at)) if isinstance(base, Array) else base[at]

    def attribute(self, base: ast.expr, name: str, known: dict[str, Any]) -> Any:
        if isinstance(base, ast.Name) and base.id == "torch":
            return Dtype(name) if name in _DTYPES else Verbatim(f"torch.{name}")
        of = self.value(base, known)
        if isinstance(of, Array) and name == "dtype":
            return Dtype(of.dtype)
        if not isinstance(of, Array) or name not in VIEWS:
            raise PreskBug("torch", f"generated code reads the attribute `{name}`")
        return self.view(name, (of,))

    def call(self, function: ast.expr, args: list[Any], named: dict[str, Any], known: dict[str, Any]) -> Any:
        name = _dotted(function)
        if name in self.functions:
            return self.inner(name, args)
        if name.startswith(("torch.", "support.")):
            return self.library(name, args, named)
        if isinstance(function, ast.Attribute):
            of = self.value(function.value, known)
            if isinstance(of, Array):
                return self.method(function.attr, (of, *args), named)
        if name == "float" and isinstance(args[0], str):
            return float(args[0])
        return tuple(args[0]) if name == "tuple" and not isinstance(args[0], Host) else Host()

    def inner(self, name: str, args: list[Any]) -> Any:
        """A function of the file. Where only launches are counted, a body is read once for each layout."""
        if self.limit is not None:
            return self.run(name, args)
        key = (name, tuple(map(_layout, args)))
        if key not in self.memo:
            before = self.launches
            self.memo[key] = (self.run(name, args), self.launches - before)
        else:
            self.launches += self.memo[key][1]
        return self.memo[key][0]

    def library(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        short = name.removeprefix("torch.")
        if short in VIEWS:
            return self.view(short, tuple(args), method=False)
        if name in DRAWS:
            return self.draw(name, args)
        row = CALLS.get(name)
        if row is None:
            return self.host(name)
        if name == "torch.clone":
            return self.copied(args[0], args[0].sizes)
        if name == "torch.cat" and (joined := self.joined(args)) is not None:
            return joined
        launches = 0 if name in FREE else row.launches
        if name == "support.sample" and args[1].dtype != "float64":
            launches += 1
        return self.added(name, tuple(args), named, row.result(*args, **named), launches, row)

    def joined(self, args: list[Any]) -> Any:
        """Parts that lie next to each other in one flat tensor already."""
        parts = cast("tuple[Array, ...]", args[0])
        whole, start = self.arenas.get(parts[0].root), parts[0].offset
        for part in parts:
            if part.root != parts[0].root or part.offset != start or not part.contiguous or len(part.sizes) != 1:
                return None
            start += part.entries
        if whole is None or not self.buffers:
            return None
        return self.view("narrow", (whole, 0, parts[0].offset, start - parts[0].offset))

    def host(self, name: str) -> Host:
        if name.startswith("torch.") and name != "torch.device":
            raise PreskBug("torch", f"`exec.torch.calls` has no row for {name}")
        return Host()

    def draw(self, name: str, args: list[Any]) -> Array:
        place, made = DRAWS[name]
        wanted = next((a for a in args if isinstance(a, Dtype)), "float64")
        return self.added(name, (), {}, fresh(args[place], wanted), int(wanted not in made), None)

    def method(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name in VIEWS:
            return self.view(name, args)
        of = args[0]
        if name == "clone":
            return self.copied(of, of.sizes)
        if name not in COPIES:
            raise PreskBug("torch", f"`exec.torch.calls` has no row for the method `{name}`")
        found = COPIES[name](*args, **named)
        if name == "to":
            return of if found is of else self.copied(of, of.sizes, found.dtype)
        return self.view(name, args, found) if found.root == of.root else self.copied(of, found.sizes)

    # ------------------------------------------------------------------------------------------------------ steps

    def view(self, name: str, args: tuple[Any, ...], found: Any = None, *, method: bool = True) -> Any:
        found = VIEWS[name](*args) if found is None else found
        return self.added(name if method else f"torch.{name}", args, {}, found, 0, None, method=method)

    def copied(self, x: Array, sizes: tuple[int, ...], dtype: str = "") -> Any:
        return self.added(COPY, (x,), {}, fresh(sizes, dtype or x.dtype), 1, COPIED)

    def added(
        self,
        function: str,
        args: tuple[Any, ...],
        named: Mapping[str, Any],
        found: Any,
        launches: int,
        row: Call | None,
        *,
        method: bool = False,
    ) -> Any:
        """Record a step and name its results."""
        several = isinstance(found, tuple)
        parts = cast("tuple[Array | None, ...]", found if several else (found,))
        into = self.buffers and row is not None and bool(row.into) and None not in parts  # torch writes all or none
        source = args[0] if args and isinstance(args[0], Array) and launches == 0 else None
        named_parts = tuple(None if p is None else self.named(p, source, into) for p in parts)
        self.launches += launches
        if self.limit is not None:
            self.steps.append(Step(function, args, named, named_parts, launches, row, method))
            if len(self.steps) > self.limit:
                raise TooLong
        return named_parts if several else named_parts[0]

    def named(self, part: Array, source: Array | None, into: bool) -> Array:
        name = f"t{self.count}"
        self.count += 1
        if source is not None:
            return replace(part, name=name, root=source.root, fixed=source.fixed)
        made = fresh(part.sizes, part.dtype) if into else part
        return replace(made, name=name, root=name, fixed=into)


def _dotted(node: ast.expr) -> str:
    """`torch.ops.aten.gelu_backward`; nothing for what is no such name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _same(x: Array) -> Array:
    return x


_DTYPES = frozenset({"bool", "int64", "float32", "float64", "bfloat16"})
COPIED = Call(_same, into=(COPY, "out"))


def _layout(value: Any) -> object:
    if isinstance(value, Array):
        return (value.sizes, value.strides, value.dtype)
    if isinstance(value, tuple | list):
        return tuple(map(_layout, cast("tuple[Any, ...]", value)))
    return Host if isinstance(value, Host) else value


def counted(source: str, dtype: str, inputs: Sequence[Any]) -> int:
    """The kernels that one call of a file's `entry` launches as it stands; `inputs` are `Array`s and `Host`s."""
    tracer = Tracer(dtype, buffers=False)
    tracer.load(source)
    entered(tracer, inputs)
    return tracer.launches


def entered(tracer: Tracer, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Reads `prelude` and `compute`; what `compute` returns."""
    given, _ = tracer.run("prelude", [tuple(inputs)])
    return tracer.run("compute", given)
