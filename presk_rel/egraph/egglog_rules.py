"""Rules as egglog text. With `egglog_dialect` the only place that knows egglog's syntax (13.2.0).

Sorts: `E` classes of equal terms; `T` the same terms, never unioned, so that `(rp e) : T` is a concrete member of a
class at the moment a rule matches. Every rule unions its sides *and* logs its substitution, by `rp`, in a relation
`L<k>`. `(ty e)` is the interned type of a class, which every node carries too; `(of_<op> …)` is the typing table,
`(need_<op> …)` what it is asked for by the condition `typed`. `(constant e)` is 1 where a class holds a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

from presk_rel.core.prims import PRIMS
from presk_rel.egraph.codes import Attributes, Code, Key, keys_of, primitive_code
from presk_rel.egraph.conditions import ROOT, SHORT, Condition, read_conditions, read_guards, variables
from presk_rel.egraph.egglog_stages import staged
from presk_rel.egraph.patterns import Apply, Attribute, Compute, Kind, Literal_, Name, Pattern, read_rule
from presk_rel.egraph.rule import Rule

CONSTANTS = ("const", "zeros", "ones")
"""What makes a class a constant. Rules no longer see the other nodes of such a class: nothing better can come of them,
and all zeros of a program are in one class."""

_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "/": "/"}


def sort_of(kind: Kind) -> str:
    """The egglog sort of a column in `E` terms."""
    return {"term": "E", "rational": "BigRat"}.get(kind, "i64")


def mirror_sort(kind: Kind) -> str:
    """The egglog sort of a column in `T` terms and in logs."""
    return "T" if kind == "term" else sort_of(kind)


def rational(value: Fraction) -> str:
    return f'(bigrat (from-string "{value.numerator}") (from-string "{value.denominator}"))'


def mirror(code: Code) -> str:
    """The constructor of `T` for a constructor of `E`."""
    return "t_" + code.name


def usable(rules: tuple[Rule, ...], ops: set[Key]) -> tuple[tuple[Rule, ...], set[Key]]:
    """The rules that can ever match a program with these primitives, and every primitive that can then arise."""
    reached = set(ops)
    chosen: dict[str, Rule] = {}
    grew = True
    while grew:
        fresh = [r for r in rules if r.name not in chosen and keys_of(read_rule(r).left) <= reached]
        chosen.update((r.name, r) for r in fresh)
        for rule in fresh:
            reached |= keys_of(read_rule(rule).right) | _asked(rule)
        grew = bool(fresh)
    return tuple(r for r in rules if r.name in chosen), reached


def asked(rules: tuple[Rule, ...]) -> set[Key]:
    """The primitives whose typing table these rules look into."""
    return set[Key]().union(*map(_asked, rules))


def _asked(rule: Rule) -> set[Key]:
    return {(arg.op, len(arg.args)) for c in read_conditions(rule) for arg in c.args if isinstance(arg, Apply)}


@dataclass(slots=True)
class _Writer:
    """The text of one rule while it is written."""

    rule: Rule
    attributes: Attributes
    variable: dict[str, str] = field(default_factory=dict[str, str])
    branches: list[list[str]] = field(default_factory=lambda: [list[str]()])
    facts: list[str] = field(default_factory=list[str])
    actions: list[str] = field(default_factory=list[str])
    demands: list[str] = field(default_factory=list[str])
    fresh: int = 0
    whole: str = ""
    """The left side's node, which is queried first."""

    def new(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # ---------------------------------------------------------------- left sides

    def match(self, pattern: Apply, class_: str) -> None:
        """Query a pattern of a class: its operation and the first operand that is one in the current branch, every
        other one in a branch of its own."""
        code = primitive_code(pattern.op, len(pattern.args))
        parts = self._columns(pattern)
        inner: list[tuple[Apply, str]] = []
        for kind, arg in zip(code.operands, pattern.args, strict=True):
            if kind == "shape":
                parts.append(self._shape(arg))
            elif isinstance(arg, Name):
                parts.append(self.variable[arg.name])
            else:
                inner.append((arg, self.new("c")))
                parts.append(inner[-1][1])
        node = f"({code.name} {' '.join(parts)})"
        self.whole = self.whole or node
        self.branches[-1].append(f"(= {class_} {node})")
        for i, (arg, below) in enumerate(inner):
            if i:
                self.branches.append([])
            self.match(arg, below)

    def _columns(self, pattern: Apply) -> list[str]:
        """Attributes, then the type."""
        return [*self._attributes(pattern), self.variable[pattern.type.name]]

    def _attributes(self, pattern: Apply) -> list[str]:
        parts: list[str] = []
        for attr, kind in zip(pattern.attrs, pattern.attr_kinds, strict=True):
            parts.append(self._attribute(attr, kind))
            if kind == "axis" and isinstance(attr, Name) and PRIMS[pattern.op].attrs == ("axis?",):
                self.facts.append(f"(!= {parts[-1]} 0)")
        return parts

    def _shape(self, arg: Pattern) -> str:
        """The type column of a shape-only operand: a variable of that kind, or the type of a term."""
        if not isinstance(arg, Name):
            raise ValueError(f"{self.rule.name}: a shape-only operand is a variable")
        return self._type_variable(arg.name)

    def _type_variable(self, operand: str) -> str:
        """A variable for the type of an operand."""
        v = self.variable[operand]
        if variables(self.rule)[operand] == "shape":
            return v
        fact = f"(= s{v} (ty {v}))"
        if fact not in self.facts:
            self.facts.append(fact)
        return f"s{v}"

    def _attribute(self, attr: Attribute, kind: Kind) -> str:
        match attr:
            case Name(name):
                return self.variable[name]
            case Literal_(value):
                if kind == "rational" and isinstance(value, int | Fraction):
                    return rational(Fraction(value))
                return str(value) if isinstance(value, int) else str(self.attributes.intern(str(value)))
            case Compute(operator, args):
                return self._compute(operator, args, kind)
            case _:
                assert_never(attr)

    def _compute(self, operator: str, args: tuple[Attribute, ...], kind: Kind) -> str:
        if operator == "pow":
            base, exponent = args
            n = self._attribute(exponent, "int")
            return f"(pow {self._attribute(base, kind)} (bigrat (bigint {n}) (bigint 1)))"
        if operator == "rational":
            return f"(bigrat (bigint {self._attribute(args[0], 'int')}) (bigint 1))"
        parts = [self._attribute(a, kind) for a in args]
        if operator == "-" and len(parts) == 1:
            return f"(neg {parts[0]})"
        return f"({_ARITHMETIC[operator]} {' '.join(parts)})"

    def other(self, right: Pattern) -> str:
        """Query a right side too, where it is another class; that class."""
        assert isinstance(right, Apply)
        self.match(right, "e1")
        self.facts.append("(!= e0 e1)")
        return "e1"

    # ---------------------------------------------------------------- conditions

    def _type_of(self, operand: str) -> str:
        if operand == ROOT:
            return self.root_type()
        shape = variables(self.rule)[operand] == "shape"
        return self.variable[operand] if shape else f"(ty {self.variable[operand]})"

    def root_type(self) -> str:
        left = read_rule(self.rule).left
        assert isinstance(left, Apply)
        return self.variable[left.type.name]

    def same_sides(self, right: Pattern) -> None:
        """Both sides have one type."""
        of_right = f"(ty {self.variable[right.name]})" if isinstance(right, Name) else self.variable[right.type.name]
        if of_right != self.root_type():
            self.facts.append(f"(= {self.root_type()} {of_right})")

    def condition(self, condition: Condition) -> None:
        """Add the facts of a condition; `typed` also asks the typing table."""
        args = condition.args
        match condition.row.name, args:
            case "type", (str(x), str(t)):
                self.facts.append(f"(= {self.variable[t]} {self._type_of(x)})")
            case "same-type", (str(x), str(y)):
                self.facts.append(f"(= {self._type_of(x)} {self._type_of(y)})")
            case "typed", (Apply() as application, str(t)):
                self._typed(application, t)
            case ("scalar" | "real" | "tensors" | "tensor" | "matrix") as fact, (str(x),):
                self.facts.append(f"(is_{fact} {self._type_of(x)})")
            case ("scalar-type" | "real-type") as fact, (str(t),):
                self.facts.append(f"(is_{fact.removesuffix('-type')} {self.variable[t]})")
            case "varying", (str(x),):
                self.facts.append(f"(= 0 (constant {self.variable[x]}))")
            case "entries", (str(t), str(n)):
                self.facts.append(f"(= {self.variable[n]} (entries {self.variable[t]}))")
            case name, _:
                self.facts.append(self._attribute_fact(name, [self.variable[str(a)] for a in args]))

    def _attribute_fact(self, name: str, v: list[str]) -> str:
        zero, one = rational(Fraction(0)), rational(Fraction(1))
        return {
            "distinct": f"(!= {v[0]} {v[-1]})",
            "nonzero": f"(!= {v[0]} {zero})",
            "positive": f"(> {v[0]} {zero})",
            "negative": f"(< {v[0]} {zero})",
            "even": f"(= 0 (% {v[0]} 2))",
            "odd": f"(= 1 (% {v[0]} 2))",
            "at-least-1": f"(>= {v[0]} 1)",
            "small": f"(<= {v[0]} 64)",
            "factor": f"(!= {v[0]} {zero}) (!= {v[0]} {one})",
            "short": f'(< (abs {v[0]}) {rational(Fraction(SHORT))}) (< (denom {v[0]}) (from-string "{SHORT}"))',
        }[name]

    def _typed(self, application: Apply, t: str) -> None:
        code = primitive_code(application.op, len(application.args))
        parts = self._attributes(application)
        parts += [self._type_variable(a.name) for a in application.args if isinstance(a, Name)]
        self.demands.append(f"(need_{code.name} {' '.join(parts)})")
        self.facts.append(f"(= {self.variable[t]} (of_{code.name} {' '.join(parts)}))")

    # ---------------------------------------------------------------- right sides

    def build(self, pattern: Pattern) -> tuple[str, str]:
        """Actions that make a right side; its name in `E` and in `T`."""
        match pattern:
            case Name(name):
                v = self.variable[name]
                return v, "r" + v
            case Apply(op=op, args=args):
                code = primitive_code(op, len(args))
                columns = self._columns(pattern)
                left, right = list(columns), list(columns)
                for kind, arg in zip(code.operands, args, strict=True):
                    e, t = self.build(arg) if kind == "term" else (self._shape(arg), self._shape(arg))
                    left.append(e)
                    right.append(t)
                n, m = self.new("n"), self.new("m")
                self.actions.append(f"(let {n} ({code.name} {' '.join(left)}))")
                self.actions.append(f"(let {m} ({mirror(code)} {' '.join(right)}))")
                self.actions += [f"(set (rp {n}) {m})", f"(set (ty {n}) {columns[-1]})", f"(set (constant {n}) 0)"]
                return n, m
            case _:
                assert_never(pattern)


def rule_text(rule: Rule, number: int, ruleset: str, attributes: Attributes) -> list[str]:
    """The forms of a rule: its log, the rule, and, if it asks the typing table, the rule that puts the question."""
    kinds = variables(rule)
    side = read_rule(rule)
    w = _Writer(rule, attributes, {name: f"v{i}" for i, name in enumerate(kinds)})
    assert isinstance(side.left, Apply)
    w.match(side.left, "e0")
    for condition in (*read_conditions(rule), *read_guards(rule)):
        if not (rule.known and condition.row.name == "typed"):  # what is there has its type
            w.condition(condition)
    w.same_sides(side.right)
    root = w.other(side.right) if rule.known else w.build(side.right)[0]
    logged = ["r" + w.variable[n] if k == "term" else w.variable[n] for n, k in kinds.items()]
    w.actions += [f"(union e0 {root})", f"(L{number} {' '.join(logged)})"]
    w.actions += [f"(subsume {w.whole})"] if rule.directed else []
    sorts = {w.variable[n]: sort_of(k) for n, k in kinds.items()}
    later = " ".join([*w.actions, *w.demands, *w.variable.values()])
    growing = ruleset == "expand" and not w.demands  # a stage would wait for what only a whole match asks
    query = staged(_nested(w.branches) if growing else w.branches, w.facts, later, sorts, str(number))
    represented = [f"(= r{w.variable[n]} (rp {w.variable[n]}))" for n, k in kinds.items() if k == "term"]
    forms = [f"(relation L{number} ({' '.join(mirror_sort(k) for k in kinds.values())}))", *query.forms]
    forms.append(_rule([*query.facts, *represented], w.actions, ruleset, f"R{number}"))
    if w.demands:
        forms.append(_rule([f for f in query.facts if "(of_" not in f], w.demands, "types", f"Q{number}"))
    return forms


def _nested(branches: list[list[str]]) -> list[list[str]]:
    """A pattern of one operation in another one, the inner one first and both again at the end: where all operations
    have one operand in common, the planner would start with all pairs of them."""
    if len(branches) > 1 or len(branches[0]) != 2:
        return branches
    outer, inner = branches[0]
    return [[inner], [outer], [outer, inner]]


def _rule(facts: list[str], actions: list[str], ruleset: str, name: str) -> str:
    return f'(rule ({" ".join(facts)}) ({" ".join(actions)}) :ruleset {ruleset} :name "{name}")'
