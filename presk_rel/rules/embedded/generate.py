"""Rules in normal form → the source of specialised Python functions.

No text of the user enters the source: variables, relations and constants become `v0`, `r0`, `c0`, and the values come
in through tables. A filter that fails says `continue` (or `return` outside loops), so only loops indent; a body with
more loops than Python allows in one function goes on in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import assert_never

from presk_rel.diagnostics import PreskBug
from presk_rel.diagnostics.record import mutable
from presk_rel.rules.ast import Atom, Binary, Call, Comparison, Constant, Negation, Term, Value, Variable, Wildcard
from presk_rel.rules.embedded.plan import Columns, Statistics, assigned, bound_columns, choose, is_ready
from presk_rel.rules.normal import Grouping, NormalLiteral, NormalRule

LOOP_LIMIT = 12
"""Loops nested in one function; CPython allows 20 blocks."""

_COMPARE = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
HELPERS = ("divide", "remainder", "byte_length")


@mutable
class Tables:
    """What generated names stand for: `c3` is `constants[3]`, `r1` relation number 1, `i2` index number 2."""

    constants: dict[tuple[type, Value], int] = field(default_factory=dict[tuple[type, Value], int])
    relations: dict[str, int] = field(default_factory=dict[str, int])
    indexes: dict[tuple[str, Columns], int] = field(default_factory=dict[tuple[str, Columns], int])

    def constant(self, value: Value) -> str:
        return f"c{self.constants.setdefault((type(value), value), len(self.constants))}"

    def relation(self, name: str) -> str:
        return f"r{self.relations.setdefault(name, len(self.relations))}"

    def index(self, relation: str, columns: Columns) -> str:
        return f"i{self.indexes.setdefault((relation, columns), len(self.indexes))}"


@mutable
class _Function:
    """A function being written: `loops` are open, `names` maps variables to Python names."""

    header: str
    lines: list[str] = field(default_factory=list[str])
    loops: int = 0
    witnesses: int = 0
    """How many of the innermost loops only look for a witness: one pass through them is enough."""

    def emit(self, line: str) -> None:
        self.lines.append("    " * (self.loops + 2) + line)

    def filter(self, failed: str) -> None:
        self.emit(f"if {failed}: {'continue' if self.loops else 'return'}")

    def leave_loops(self) -> None:
        """Ends the loops that look for a witness, now that there is one: `break`, and through each outer one
        `else: continue` followed by `break`."""
        for i in range(self.witnesses):
            if i > 0:
                self.loops -= 1
                self.emit("else: continue")
            self.emit("break")

    def source(self) -> str:
        return "\n".join([f"    {self.header}", *self.lines])


@mutable
class Generator:
    """Writes the functions of one stratum (or of the backward rules of a program) into `functions`."""

    statistics: Statistics
    tables: Tables = field(default_factory=Tables)
    functions: list[str] = field(default_factory=list[str])
    exports: int = 0
    _fresh: int = 0

    def forward(self, rule: NormalRule, delta: int | None) -> int:
        """Adds `f(delta, new)`, which puts the rule's derived rows that are not yet known into the dict `new`.

        The literal `rule.body[delta]` ranges over the rows of the argument `delta`. Returns the function's number.
        """
        body = _Body(self, _without_singletons(rule), "new", rule.head)
        body.open(f"def f{self.exports}(delta, new):")
        body.write(delta)
        body.check_head(rule.head)
        body.function.emit("new[t] = None")
        body.function.leave_loops()
        return self.export(body)

    def backward(self, literals: Sequence[NormalLiteral], parameters: Sequence[str], results: Sequence[str]) -> int:
        """Adds `f(delta, out)`, where `delta` is the tuple of the `parameters`' values: it appends to the list `out`,
        for each solution, (the rows of the positive atoms in order, the values of `results`). Returns its number."""
        body = _Body(self, list(literals), "out")
        body.open(f"def f{self.exports}(delta, out):")
        if parameters:
            body.function.emit(body.row([body.bind(p) for p in parameters]) + " = delta")
        body.write(None)
        rows = [body.row([body.value(a) for a in atom.arguments]) for atom in literals if isinstance(atom, Atom)]
        body.function.emit(f"out.append(({body.row(rows)}, {body.row([body.names[r] for r in results])}))")
        return self.export(body)

    def export(self, body: _Body) -> int:
        self.functions.append(body.function.source())
        self.exports += 1
        return self.exports - 1

    def fresh(self, prefix: str) -> str:
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    def source(self) -> str:
        """The module: `build(constants, relations, indexes, helpers)` returns the tuple of exported functions."""
        lines = ["def build(constants, relations, indexes, helpers):", f"    {', '.join(HELPERS)} = helpers"]
        lines += [f"    c{i} = constants[{i}]" for i in self.tables.constants.values()]
        lines += [f"    r{i} = relations[{i}]" for i in self.tables.relations.values()]
        lines += [f"    i{i} = indexes[{i}]" for i in self.tables.indexes.values()]
        lines += self.functions
        lines.append("    return (" + "".join(f"f{i}, " for i in range(self.exports)) + ")")
        return "\n".join(lines) + "\n"


def _without_singletons(rule: NormalRule) -> list[NormalLiteral]:
    """The body with `_` for each variable of an atom that stands nowhere else, so that the atom may become a test."""
    uses: dict[str, int] = {}
    for literal in rule.body:
        for name in _mentions(literal):
            uses[name] = uses.get(name, 0) + 1
    for term in rule.head.arguments:
        for name in _names(term):
            uses[name] = 2
    result: list[NormalLiteral] = []
    for literal in rule.body:
        if not isinstance(literal, Atom):
            result.append(literal)
            continue
        arguments = tuple(Wildcard() if isinstance(a, Variable) and uses[a.name] == 1 else a for a in literal.arguments)
        result.append(Atom(literal.relation, arguments, literal.span))
    return result


def _names(term: Term) -> list[str]:
    todo, found = [term], list[str]()
    while todo:
        match todo.pop():
            case Variable(name=name):
                found.append(name)
            case Binary(left=left, right=right):
                todo += (left, right)
            case Call(arguments=arguments):
                todo += arguments
            case _:
                pass
    return found


def _mentions(literal: NormalLiteral) -> list[str]:
    match literal:
        case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
            return [n for a in arguments for n in _names(a)]
        case Comparison(left=left, right=right):
            return [*_names(left), *_names(right)]
        case Grouping(result=result, shared=shared):
            return [result.name, *shared]


class _Body:
    """Writes one conjunction as nested loops; what happens at each solution is the caller's to emit after `write`.

    With a `head`, only its row matters: loops that open when it is determined end at the first solution, and do not
    begin when the row is known already.
    """

    def __init__(
        self, generator: Generator, literals: list[NormalLiteral], sink: str, head: Atom | None = None
    ) -> None:
        self.generator = generator
        self.todo: list[NormalLiteral] = literals
        self.sink = sink
        self.head = head
        self.checked = False
        self.names: dict[str, str] = {}
        self.exact = sink == "acc"

    def open(self, header: str) -> None:
        self.function = _Function(header)

    def bind(self, name: str) -> str:
        self.names[name] = self.generator.fresh("v")
        return self.names[name]

    def row(self, parts: Sequence[str]) -> str:
        return "(" + "".join(f"{p}, " for p in parts) + ")"

    def write(self, delta: int | None) -> None:
        """Emits all literals, the delta literal first."""
        if delta is not None:
            self.scan(self.todo.pop(delta), "delta", ())
        while self.todo:
            literal = choose(self.todo, set(self.names), self.generator.statistics)
            self.todo = [other for other in self.todo if other is not literal]
            self.literal(literal)

    def literal(self, literal: NormalLiteral) -> None:
        match literal:
            case Atom():
                self.atom(literal)
            case Negation(atom=atom):
                self.ready(literal)
                self.function.filter(self.present(atom))
            case Comparison():
                self.ready(literal)
                self.comparison(literal)
            case Grouping():
                self.ready(literal)
                self.grouping(literal)
            case _:
                assert_never(literal)

    def ready(self, literal: Negation | Comparison | Grouping) -> None:
        if not is_ready(literal, set(self.names)):
            raise PreskBug("rules.embedded", f"a variable of {type(literal).__name__} is never bound")

    def present(self, atom: Atom) -> str:
        """An expression that is true when some row matches the bound columns of `atom`."""
        relation = self.generator.tables.relation(atom.relation)
        columns = bound_columns(atom, set(self.names))
        if len(columns) == len(atom.arguments):
            return f"{self.row([self.value(a) for a in atom.arguments])} in {relation}"
        if not columns:
            return relation
        return f"{self.key(atom, columns)} in {self.generator.tables.index(atom.relation, columns)}"

    def key(self, atom: Atom, columns: Columns) -> str:
        values = [self.value(atom.arguments[i]) for i in columns]
        return values[0] if len(values) == 1 else self.row(values)

    def atom(self, atom: Atom) -> None:
        columns = bound_columns(atom, set(self.names))
        others = [a for i, a in enumerate(atom.arguments) if i not in columns]
        is_test = not others or (not self.exact and all(isinstance(a, Wildcard) for a in others))
        if is_test:
            self.function.filter(f"not ({self.present(atom)})")
        elif not columns:
            self.scan(atom, self.generator.tables.relation(atom.relation), ())
        else:
            index = self.generator.tables.index(atom.relation, columns)
            self.scan(atom, f"{index}.get({self.key(atom, columns)}, ())", columns)

    def scan(self, atom: NormalLiteral, source: str, matched: Columns) -> None:
        """A loop over rows; the columns `matched` are known to agree, the others bind or are compared."""
        if not isinstance(atom, Atom):
            raise PreskBug("rules.embedded", "the delta literal is not an atom")
        if self.function.loops == LOOP_LIMIT:
            self.go_on()
        if self.head is not None and self.head_is_bound(self.head):
            self.check_head(self.head)
            self.function.witnesses += 1
        pattern: list[str] = []
        checks: list[str] = []
        for i, argument in enumerate(atom.arguments):
            if i in matched or isinstance(argument, Wildcard):
                pattern.append("_")
            elif isinstance(argument, Variable) and argument.name not in self.names:
                pattern.append(self.bind(argument.name))
            else:
                pattern.append(self.generator.fresh("x"))
                checks.append(f"{pattern[-1]} != {self.value(argument)}")
        self.function.emit(f"for {self.row(pattern) if pattern else '_'} in {source}:")
        self.function.loops += 1
        for check in checks:
            self.function.filter(check)

    def head_is_bound(self, head: Atom) -> bool:
        """Whether the row of the head is determined, without arithmetic that might be for nothing."""
        return all(
            isinstance(a, Constant) or (isinstance(a, Variable) and a.name in self.names) for a in head.arguments
        )

    def check_head(self, head: Atom) -> None:
        """Leaves `t` holding the row of the head, which is not yet in its relation."""
        if not self.checked:
            self.function.emit(f"t = {self.row([self.value(a) for a in head.arguments])}")
            self.function.filter(f"t in {self.generator.tables.relation(head.relation)}")
        self.checked = True

    def go_on(self) -> None:
        """Continues in a function of its own, since this one has as many loops as it may."""
        name = self.generator.fresh("g")
        parameters = "".join(f", {n}" for n in self.names.values())
        self.function.emit(f"{name}({self.sink}{parameters})")
        self.generator.functions.append(self.function.source())
        self.function = _Function(f"def {name}({self.sink}{parameters}):")
        self.checked = False

    def comparison(self, literal: Comparison) -> None:
        target = assigned(literal, set(self.names))
        if target is not None:
            value = self.value(target[1])
            self.function.emit(f"{self.bind(target[0].name)} = {value}")
            return
        left, right = self.value(literal.left), self.value(literal.right)
        self.function.filter(f"not {left} {_COMPARE[literal.operator]} {right}")

    def grouping(self, literal: Grouping) -> None:
        name, values = self.generator.fresh("g"), self.generator.fresh("a")
        parameters = "".join(f", {self.names[s]}" for s in literal.shared)
        inner = _Body(self.generator, list(literal.body), "acc")
        inner.names = {s: self.names[s] for s in literal.shared}
        inner.open(f"def {name}(acc{parameters}):")
        inner.write(None)
        target = "None" if literal.target is None else inner.value(literal.target)
        inner.function.emit(f"acc.append({target})")
        self.generator.functions.append(inner.function.source())
        self.function.emit(f"{values} = []")
        self.function.emit(f"{name}({values}{parameters})")
        self.finish_group(literal, values)

    def finish_group(self, literal: Grouping, values: str) -> None:
        result = self.generator.fresh("x")
        operator = literal.aggregate.operator
        if operator in ("min", "max"):
            self.function.emit(f"{result} = {operator}({values}, default=None)")
            self.function.filter(f"{result} is None")
        else:
            total = "len" if operator == "count" else "sum"
            self.function.emit(f"{result} = {_wrapped(f'{total}({values})')}")
        if literal.result.name in self.names:
            self.function.filter(f"{result} != {self.names[literal.result.name]}")
        else:
            self.names[literal.result.name] = result

    def value(self, term: Term) -> str:
        """A name that holds the term's value, after emitting what computes it."""
        match term:
            case Variable(name=name):
                return self.names[name]
            case Constant(value=value):
                return self.generator.tables.constant(value)
            case Binary(operator=operator, left=left, right=right):
                a, b = self.value(left), self.value(right)
                computed = _binary(operator, a, b)
            case Call(function=function, arguments=arguments):
                values = [self.value(a) for a in arguments]
                computed = _CALLS[function](values)
            case _:
                raise PreskBug("rules.embedded", f"{type(term).__name__} has no value")
        result = self.generator.fresh("x")
        self.function.emit(f"{result} = {computed}")
        return result


def _binary(operator: str, a: str, b: str) -> str:
    return f"{_DIVISION[operator]}({a}, {b})" if operator in _DIVISION else _wrapped(f"{a} {operator} {b}")


def _wrapped(expression: str) -> str:
    return f"(({expression} + 0x80000000) & 0xffffffff) - 0x80000000"


_DIVISION = {"/": "divide", "%": "remainder"}
_CALLS: Mapping[str, Callable[[list[str]], str]] = {
    "cat": " + ".join,
    "strlen": lambda values: f"byte_length({values[0]})",
    "min": lambda values: f"min({', '.join(values)})",
    "max": lambda values: f"max({', '.join(values)})",
}
