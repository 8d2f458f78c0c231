"""Runs the LALR table over the tokens: builds the tree, limits nesting, goes on after an error at the next declaration.

Lark's own loop is not used, because it neither carries spans and nesting through a reduction nor restarts, and because
skipping chains of `?` rules in one step (`chain`) halves the time of a parse.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from operator import itemgetter
from typing import Any, Final, TypeAlias

from presk_rel.diagnostics import Diagnostic, Diagnostics, Pos, Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.syntax.build import BUILDERS, NESTS, Builder
from presk_rel.syntax.expected import syntax_error
from presk_rel.syntax.lalr import END, Child, Production, Table, table
from presk_rel.syntax.layout import MAX_NESTING, TOO_DEEP, Layout
from presk_rel.syntax.token import ERROR, Token

_LIST: Final = 0
_PASS: Final = 1
_NODE: Final = 2
_BINARY: Final = 3
_LET: Final = 4
"""What a production does: make or grow a list, pass its only child on, make a node (two nest in their own way)."""


Pick: TypeAlias = Callable[[list[Any]], Sequence[Any]]


@record
class _Step:
    """A production ready to run: what to do (`mode`), how its children are picked from the values read, which builder
    makes a node of them, and how much deeper that nests."""

    origin: str
    size: int
    mode: int
    pick: Pick
    build: Builder
    nests: int


def _step(production: Production) -> _Step:
    name = production.build
    modes = {"": _PASS, "group": _PASS, "list": _LIST, "binary": _BINARY, "let": _LET}
    mode = modes.get(name, _NODE)
    build = BUILDERS[name] if name and name != "list" else BUILDERS["same"]
    pick = _growing(production.children) if mode == _LIST else _picker(production)
    return _Step(production.origin, production.size, mode, pick, build, int(name in NESTS))


def _picker(production: Production) -> Pick:
    """The commonest cases do without a loop."""
    children = production.children
    if children == tuple((i, False) for i in range(production.size)):
        return lambda read: read
    if all(child is not None and not child[1] for child in children):
        indices = [child[0] for child in children if child is not None]
        if len(indices) > 1:
            return itemgetter(*indices)
        return (lambda read, i=indices[0]: (read[i],)) if indices else (lambda _read: ())
    return lambda read: _children(children, read)


def _children(children: tuple[Child, ...], read: list[Any]) -> list[Any]:
    result: list[Any] = []
    for child in children:
        if child is None:
            result.append(None)
        elif child[1]:
            result.extend(read[child[0]])
        else:
            result.append(read[child[0]])
    return result


def _growing(children: tuple[Child, ...]) -> Pick:
    """A list on the left goes on growing in place, so that long lists are read in linear time."""
    first, *rest = (child for child in children if child is not None)

    def pick(read: list[Any]) -> list[Any]:
        result: list[Any] = read[first[0]] if first[1] else [read[first[0]]]
        result.extend(read[index] for index, _ in rest)
        return result

    return pick


@mutable
class _Driver:
    """`states` has one entry more than the stacks of what was read: values, where they start and end, their nesting."""

    file: str
    layout: Layout
    start: str
    table: Table
    steps: list[_Step]
    chains: dict[tuple[int, str, str], int]
    restarts: int = 0
    states: list[int] = field(default_factory=list[int])
    values: list[Any] = field(default_factory=list[Any])
    starts: list[Pos] = field(default_factory=list[Pos])
    ends: list[Pos] = field(default_factory=list[Pos])
    nests: list[int] = field(default_factory=list[int])
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    def run(self) -> Any:
        """The tree, or None where not even an empty file could be made of the tokens."""
        tokens = self.layout.tokens
        self.states.append(self.table.starts[self.start])
        at = 0
        while True:
            failed = self.feed(tokens, at)
            if failed < 0:
                return self.values[-1] if self.values else None
            at = self.restart(failed)
            if at < 0:
                return None

    def feed(self, tokens: list[Token], at: int) -> int:
        """Reads tokens from `at` on; gives the index of the token that does not fit, or -1 at the end."""
        actions, states, steps = self.table.actions, self.states, self.steps
        values, starts, ends, nests = self.values, self.starts, self.ends, self.nests
        end_state = self.table.ends[self.start]
        for i in range(at, len(tokens)):
            token = tokens[i]
            kind = token.kind
            while True:
                action = actions[states[-1]].get(kind)
                if action is None:
                    if kind == END and states[-1] == end_state:
                        return -1
                    return self.fail(tokens, i)
                if action >= 0:
                    break
                if not self.reduce(steps[~action], kind, token):
                    return i
            states.append(action)
            values.append(token)
            starts.append(token.start)
            ends.append(token.end)
            nests.append(0)
        return len(tokens) - 1

    def reduce(self, step: _Step, kind: str, token: Token) -> bool:
        """One production; False where it nests too deep (reported)."""
        states, values, nests, size = self.states, self.values, self.nests, step.size
        if not size:
            here = self.ends[-1] if self.ends else token.start
            self.starts.append(here)
            self.ends.append(here)
            nests.append(0)
            values.append(step.build(Span(self.file, here, here), *step.pick([])))
        else:
            read = values[-size:]
            depth = max(nests[-size:]) + step.nests if step.mode <= _NODE else self.nesting(step)
            keep = len(values) - size + 1
            end = self.ends[-1]
            del values[keep:], nests[keep:], self.starts[keep:], self.ends[keep:], states[keep:]
            nests[-1] = depth
            self.ends[-1] = end
            if step.mode >= _NODE:
                values[-1] = step.build(Span(self.file, self.starts[-1], end), *step.pick(read))
            else:
                picked = step.pick(read)
                values[-1] = picked if step.mode == _LIST else picked[0]
        key = (states[-1], step.origin, kind)
        state = self.chains.get(key)
        states.append(self.chain(key) if state is None else state)
        return nests[-1] <= MAX_NESTING or self.too_deep()

    def nesting(self, step: _Step) -> int:
        """The two chains that may have any length do not nest: the left operands, and the bodies of `let`."""
        nests = self.nests
        if step.mode == _BINARY:
            return max(nests[-3], nests[-1] + 1)
        return max(nests[-5] + 1, nests[-3] + 1, nests[-1])

    def chain(self, key: tuple[int, str, str]) -> int:
        """Where the parser stands after `origin` was read on top of `below`, and after all the `?` rules that only pass
        it on before `kind` have been reduced."""
        below, origin, kind = key
        state = self.table.gotos[below][origin]
        while True:
            action = self.table.actions[state].get(kind, 0)
            if action >= 0 or self.steps[~action].size != 1 or self.steps[~action].mode != _PASS:
                break
            state = self.table.gotos[below][self.steps[~action].origin]
        self.chains[key] = state
        return state

    # ------------------------------------------------------------------------------------------------ errors

    def too_deep(self) -> bool:
        span = Span(self.file, self.starts[-1], self.ends[-1])
        self.diagnostics.error("E0005", f"nesting deeper than {MAX_NESTING} levels", span, help=TOO_DEEP)
        return False

    def fail(self, tokens: list[Token], at: int) -> int:
        if tokens[at].kind != ERROR:
            self.diagnostics.add(syntax_error(self.file, self.table, self.states, tokens, at))
        return at

    def restart(self, failed: int) -> int:
        """Unwinds to the list that the next declaration, member or item belongs to; gives its index, or -1."""
        for index, level in self.layout.restarts[self.restarts :]:
            self.restarts += 1
            if index < failed:
                continue
            goals = ("member", "config_item") if level == "close" else (level,)
            if self.unwind(goals):
                return index
        return len(self.layout.tokens) - 1 if self.unwind(("decl",)) else -1

    def unwind(self, goals: tuple[str, ...]) -> bool:
        gotos = self.table.gotos
        for keep in range(len(self.states) - 1, -1, -1):
            if any(goal in gotos[self.states[keep]] for goal in goals):
                del self.states[keep + 1 :], self.values[keep:], self.starts[keep:], self.ends[keep:], self.nests[keep:]
                return True
        return False


@functools.cache
def _machine() -> tuple[Table, list[_Step], dict[tuple[int, str, str], int]]:
    """The table, its productions ready to run, and the chains met so far (they depend on the grammar alone)."""
    grammar = table()
    return grammar, [_step(production) for production in grammar.productions], {}


def drive(file: str, layout: Layout, start: str) -> tuple[Any, list[Diagnostic]]:
    """Reads the tokens from `start` (a start rule of grammar.lark): the tree, or None, and the syntax errors."""
    driver = _Driver(file, layout, start, *_machine())
    return driver.run(), driver.diagnostics.items
