"""Random stratified programs with facts, as text in the rule language."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from presk_rel.rules.ast import Row, Value
from presk_rel.rules.dialect import Program, parse_program

INPUTS = {"e": ("number", "number"), "f": ("symbol", "number"), "g": ("symbol",)}
DERIVED = {
    "p": ("number", "number"),
    "q": ("symbol", "number"),
    "r": ("number",),
    "s": ("symbol", "symbol"),
    "t": ("number", "symbol", "number"),
    "u": (),
}
STRATUM = {"p": 0, "q": 0, "r": 1, "s": 1, "t": 2, "u": 2}
"""Relations of one stratum may use each other; negation and aggregates only reach below."""

COLUMNS = INPUTS | DERIVED
VALUES: dict[str, list[Value]] = {"number": [0, 1, 2], "symbol": ["a", "b"]}
NAMES = {"number": ["x", "y", "z"], "symbol": ["k", "l"]}


@dataclass(frozen=True)
class Example:
    text: str
    facts: dict[str, list[Row]]

    @property
    def program(self) -> Program:
        return parse_program(self.text)


def _constant(value: Value) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'


@st.composite
def _row(draw: st.DrawFn, types: tuple[str, ...]) -> Row:
    return tuple(draw(st.sampled_from(VALUES[t])) for t in types)


@st.composite
def _atom(draw: st.DrawFn, relation: str, bound: dict[str, str] | None) -> tuple[str, dict[str, str]]:
    """An atom, and the types of its variables; if `bound` is given, only those variables may be used."""
    arguments: list[str] = []
    used: dict[str, str] = {}
    for wanted in COLUMNS[relation]:
        names = NAMES[wanted] if bound is None else [n for n, t in bound.items() if t == wanted]
        kind = draw(st.sampled_from(["variable"] * 8 * bool(names) + ["wildcard", "wildcard", "constant"]))
        if kind == "variable":
            name = draw(st.sampled_from(names))
            used[name] = wanted
            arguments.append(name)
        else:
            arguments.append("_" if kind == "wildcard" else _constant(draw(st.sampled_from(VALUES[wanted]))))
    return f"{relation}({', '.join(arguments)})", used


@st.composite
def _aggregate(draw: st.DrawFn, below: list[str], bound: dict[str, str]) -> str:
    """`n = …` over one or two atoms whose own variables are `m`, `o` and `w…` (numbers), `h` and `w…` (symbols)."""
    atoms: list[list[str]] = []
    relations = draw(st.lists(st.sampled_from(below), min_size=1, max_size=2))
    local: list[str] = []
    for relation in relations:
        arguments: list[str] = []
        for wanted in COLUMNS[relation]:
            own = ["m", "o"] if wanted == "number" else ["h"]
            single = f"w{len(atoms)}{len(arguments)}"
            name = draw(st.sampled_from([*own, *own, single, *(n for n, t in bound.items() if t == wanted)]))
            local += [name] * (wanted == "number" and name not in bound)
            arguments.append(name)
        atoms.append(arguments)
    operator = draw(st.sampled_from(["count", *(["sum", "min", "max"] if local else [])]))
    target = "" if operator == "count" else " " + draw(st.sampled_from(local)) + draw(st.sampled_from(["", " * 2 - 1"]))
    if len(atoms) == 1 and len(set(atoms[0])) == len(atoms[0]):
        atoms = [["_" if name.startswith("w") and name not in target else name for name in atoms[0]]]
    body = ", ".join(f"{relation}({', '.join(names)})" for relation, names in zip(relations, atoms, strict=True))
    return f"n = {operator}{target} : {{ {body} }}"


@st.composite
def _rule(draw: st.DrawFn, head: str) -> str:
    level = STRATUM[head]
    usable = [*INPUTS, *(n for n, i in STRATUM.items() if i <= level)]
    below = [*INPUTS, *(n for n, i in STRATUM.items() if i < level)]
    body: list[str] = []
    bound: dict[str, str] = {}
    relations = draw(st.lists(st.sampled_from(usable), min_size=1, max_size=3))
    for relation in relations:
        text, used = draw(_atom(relation, None))
        body.append(text)
        bound |= used
    numbers = [n for n, t in bound.items() if t == "number"]
    if draw(st.integers(0, 2)) == 0:
        body.append("!" + draw(_atom(draw(st.sampled_from(below)), bound))[0])
    if numbers and draw(st.integers(0, 2)) == 0:
        operator = draw(st.sampled_from(["<", "<=", "=", "!=", ">", ">="]))
        body.append(f"{draw(st.sampled_from(numbers))} {operator} {draw(st.sampled_from([*numbers, '1', '2']))}")
    outside = dict(bound)
    if draw(st.integers(0, 2)) == 0:
        body.append(draw(_aggregate(below, outside)))
        bound["n"] = "number"
    recursive = any(STRATUM.get(relation, -1) == level for relation in relations)
    arguments = [draw(_head_argument(wanted, bound, recursive)) for wanted in COLUMNS[head]]
    return f"{head}({', '.join(arguments)}) :- {', '.join(draw(st.permutations(body)))}."


@st.composite
def _head_argument(draw: st.DrawFn, wanted: str, bound: dict[str, str], recursive: bool) -> str:
    """Arithmetic only outside recursion, so that the model is finite."""
    names = [n for n, t in bound.items() if t == wanted and not (recursive and n == "n")]
    constant = _constant(draw(st.sampled_from(VALUES[wanted])))
    if not names or draw(st.integers(0, 9)) == 0:
        return constant
    name = draw(st.sampled_from(names))
    if wanted == "number" and not recursive and draw(st.integers(0, 3)) == 0:
        return f"{name} {draw(st.sampled_from('+-*'))} {draw(st.sampled_from([*names, '3']))}"
    return name


@st.composite
def examples(draw: st.DrawFn) -> Example:
    lines = [f".decl {name}({', '.join(f'c{i}:{t}' for i, t in enumerate(types))})" for name, types in COLUMNS.items()]
    lines += [f".input {name}" for name in INPUTS]
    for head in draw(st.lists(st.sampled_from(list(DERIVED)), min_size=4, max_size=10)):
        lines.append(draw(_rule(head)))
    facts = {name: draw(st.lists(_row(types), min_size=2, max_size=8)) for name, types in INPUTS.items()}
    return Example("\n".join(lines), facts)
