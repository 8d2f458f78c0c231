"""Constant factors put where they cost nothing: `dot(x, w) · 2` as `dot(x, w · 2)` if w is a number, or a product with
one, or has fewer entries than the result.

The e-graph moves factors outwards only (`rules.factors`, `rules.linear`): both ways, every product of a chain would
have every factor in every place. So the way back is taken here, after saturation, from each factor down to the one
place where it costs least: the nodes on the way become choices of extraction, with the instances that prove them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.conditions import SHORT, is_real, read_conditions, variables
from presk_rel.egraph.instances import Instance, Value, instantiate
from presk_rel.egraph.language import Head, HeadId, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import Apply, Name, Pattern, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.snapshot import ClassId, ENode, Graph
from presk_rel.elab.ty import SCALAR_REAL

DEPTH = 6
"""Operations that a factor may be carried through."""

_CHECKED = ("type", "real", "real-type", "scalar-type")
Sizes = Callable[[TypeId], int]


def placed(graph: Graph, terms: Terms, closure: Closure, size: Sizes, budget: Budget) -> Graph:
    """The graph with more nodes, and more classes behind those it had. The closure proves the new nodes equal to their
    classes. `size` is of a value of a type in memory."""
    more = Graph([list(nodes) for nodes in graph.nodes], list(graph.types), graph.of_term)
    placer = _Placer(more, terms, closure, size, budget, representatives(graph, terms))
    closure.settle()
    for class_ in range(len(graph.nodes)):
        for node in graph.nodes[class_]:
            found = placer.factor(node)
            if found is not None:
                placer.scaled.setdefault(found, class_)
    for (inner, c), class_ in list(placer.scaled.items()):
        if budget.places <= 0 or budget.late():
            budget.cut("placement")
            break
        node = placer.place(inner, c, DEPTH)
        if node is not None and node not in more.nodes[class_]:
            more.nodes[class_].append(node)
    return more


def representatives(graph: Graph, terms: Terms) -> dict[ClassId, TermId]:
    """A term of every class that has one: of the program, or made of the first nodes whose operands have one."""
    found: dict[ClassId, TermId] = {}
    for term, class_ in sorted(graph.of_term.items()):
        found.setdefault(class_, term)
    users: dict[ClassId, list[tuple[ClassId, ENode]]] = {}
    for class_, nodes in enumerate(graph.nodes):
        for node in nodes if class_ not in found else ():
            for a in (*{a for a in node.args if a >= 0}, -1):
                users.setdefault(a, []).append((class_, node))
    ready = [-1, *found]  # -1: what needs nothing
    for known in ready:
        for class_, node in users.get(known, ()):
            if class_ not in found and all(a < 0 or a in found for a in node.args):
                args = tuple(found[a] if a >= 0 else terms.template(-1 - a) for a in node.args)
                found[class_] = terms.make(node.head, args)
                ready.append(class_)
    return found


@dataclass(frozen=True, slots=True)
class _Way:
    """A rule `f(… x · c …) = f(… x …) · c`, the place of x, and the variables for the type of both sides."""

    rule: Rule
    left: Apply
    place: int
    own: tuple[str, ...]


@cache
def _ways() -> dict[tuple[str, int], tuple[_Way, ...]]:
    """The rules that carry a factor out of an operation, by its name and number of attributes."""
    found: dict[tuple[str, int], tuple[_Way, ...]] = {}
    for rule in RULES.values():
        sides = read_rule(rule)
        place = _carried(sides.left, sides.right)
        if place is None or any(c.row.name not in _CHECKED for c in read_conditions(rule)):
            continue
        assert isinstance(sides.left, Apply)
        assert isinstance(sides.right, Apply)
        whole = [x.type.name for x in (sides.left, sides.right, sides.right.args[0]) if isinstance(x, Apply)]
        key = (sides.left.op, sum(isinstance(a, Name) for a in sides.left.attrs))
        found[key] = (*found.get(key, ()), _Way(rule, sides.left, place, tuple(whole)))
    return found


def _carried(left: Pattern, right: Pattern) -> int | None:
    """Where x stands, if a rule is `f(… x · c …) = f(… x …) · c`."""
    if not isinstance(left, Apply) or not isinstance(right, Apply) or right.op != "mul":
        return None
    inner = [k for k, a in enumerate(left.args) if isinstance(a, Apply)]
    if len(inner) != 1 or not _is_product(left.args[inner[0]]) or not _is_product(right):
        return None
    product, kept = left.args[inner[0]], right.args[0]
    assert isinstance(product, Apply)
    if not isinstance(kept, Apply) or (kept.op, kept.attrs) != (left.op, left.attrs):
        return None
    expected = tuple(product.args[0] if k == inner[0] else a for k, a in enumerate(left.args))
    return inner[0] if kept.args == expected and product.args[1] == right.args[1] else None


def _is_product(pattern: Pattern) -> bool:
    """`x · c`, c a constant."""
    if not isinstance(pattern, Apply) or pattern.op != "mul":
        return False
    constant = pattern.args[1]
    return isinstance(constant, Apply) and constant.op == "const" and isinstance(constant.attrs[0], Name)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A factor goes into a node by a rule (`way` None: `x - y` is turned round), or (`node` None) stays outside."""

    cost: int
    node: ENode | None = None
    way: _Way | None = None


@dataclass(slots=True)
class _Placer:
    """`scaled` finds the class of `x · c`."""

    graph: Graph
    terms: Terms
    closure: Closure
    size: Sizes
    budget: Budget
    representative: dict[ClassId, TermId]
    scaled: dict[tuple[ClassId, Fraction], ClassId] = field(default_factory=dict[tuple[ClassId, Fraction], ClassId])
    _plans: dict[tuple[ClassId, bool], _Plan] = field(default_factory=dict[tuple[ClassId, bool], "_Plan"])
    _numbers: dict[Fraction, ClassId] = field(default_factory=dict[Fraction, ClassId])
    _values: dict[ClassId, Fraction] = field(default_factory=dict[ClassId, Fraction])

    def __post_init__(self) -> None:
        for class_, nodes in enumerate(self.graph.nodes):
            for node in nodes:
                head = self.terms.heads[node.head]
                if head.op == "const" and head.type == self.scalar and isinstance(head.attrs[0], Fraction):
                    self._numbers[head.attrs[0]] = class_
                    self._values[class_] = head.attrs[0]

    @property
    def scalar(self) -> TypeId:
        return self.terms.table.intern(SCALAR_REAL)

    def factor(self, node: ENode) -> tuple[ClassId, Fraction] | None:
        """`x` and `c` of a node `x · c`; `-x` is one too."""
        head = self.terms.heads[node.head]
        if head.op not in ("mul", "neg") or node.args[0] in self._values or self.graph.types[node.args[0]] != head.type:
            return None
        c = Fraction(-1) if head.op == "neg" else self._values.get(node.args[1])
        return None if c in (None, 0, 1) or not self.known(node) else (node.args[0], c)

    def known(self, node: ENode) -> bool:
        return all(a < 0 or a in self.representative for a in node.args)

    # ------------------------------------------------------------------------------------------------ placing

    def planned(self, class_: ClassId, c: Fraction, depth: int) -> _Plan:
        """Where a factor of a class costs least: the bytes that a product there writes, and the way to it. A class that
        is being planned is a place of its own: no way leads around a cycle."""
        key = (class_, c == -1)
        known = self._plans.get(key)
        if known is not None:
            return known
        if class_ in self._values or self.merged(class_, c) is not None:
            best = self._plans[key] = _Plan(0)
            return best
        best = self._plans[key] = _Plan(self.size(self.graph.types[class_]))
        for node in self.graph.nodes[class_] if depth else ():
            if c == -1 and self.exchanged(node) is not None:
                best = _Plan(0, node)
            for way in self.ways(node):
                inner = self.planned(node.args[way.place], c, depth - 1)
                if inner.cost < best.cost:
                    best = _Plan(inner.cost, node, way)
        self._plans[key] = best
        return best

    def ways(self, node: ENode) -> list[_Way]:
        """The rules that carry a factor into an operation; their conditions ask for tensors of reals."""
        head = self.terms.heads[node.head]
        found = _ways().get((head.op, len(head.attrs)), ())
        if not found or not self.known(node):
            return []
        types = [self.graph.types[a] for a in node.args if a >= 0]
        real = all(is_real(self.terms.table.types[t]) for t in types)
        return [way for way in found if real and node.args[way.place] >= 0]

    def place(self, class_: ClassId, c: Fraction, depth: int) -> ENode | None:
        """The node of `class_ · c` that has the factor further in; None where it is best outside."""
        plan = self.planned(class_, c, depth)
        if plan.node is None:
            return None
        if plan.way is None:
            return self.exchanged(plan.node, say=True)
        inner = self.factored(plan.node.args[plan.way.place], c, depth - 1)
        self.say_carried(plan.way, plan.node, c)
        self.say_sign(class_, c)
        return ENode(plan.node.head, _put(plan.node.args, plan.way.place, inner))

    def factored(self, class_: ClassId, c: Fraction, depth: int) -> ClassId:
        """The class of `class_ · c`, with the factor where it is best."""
        d = self._values.get(class_)
        if d is not None:
            self.say("mul.const", c=d, d=c, s=self.scalar)
            return self.number(c * d)
        if (class_, c) in self.scaled:
            self.say_sign(class_, c)  # the graph may know it as `-x` only
            return self.scaled[class_, c]
        merged = self.merged(class_, c)
        if merged is not None and self.say_merged(*merged, c):
            return merged[0]
        own, x = self.graph.types[class_], self.representative[class_]
        made = self.scaled[class_, c] = self.new_class(own, self.terms.make(self.product(own), (x, self.constant(c))))
        self.say_sign(class_, c)
        inside = self.place(class_, c, depth)
        minus = ENode(self.terms.intern(Head("neg", (), own)), (class_,))
        nodes = [minus if c == -1 else ENode(self.product(own), (class_, self.number(c)))]
        if merged is not None:
            nodes.append(ENode(self.product(own), (merged[0], self.number(merged[1] * c))))
        self.graph.nodes[made] += [*nodes, *([inside] if inside is not None else [])]
        return made

    # ------------------------------------------------------------------------------------------------ taking in

    def merged(self, class_: ClassId, c: Fraction) -> tuple[ClassId, Fraction] | None:
        """The x and d of a class `x · d`, if the product of d and c is short."""
        for node in self.graph.nodes[class_]:
            found = self.factor(node) if self.terms.heads[node.head].op == "mul" else None
            if found is not None and abs(found[1] * c) < SHORT and (found[1] * c).denominator < SHORT:
                return found
        return None

    def say_merged(self, x: ClassId, d: Fraction, c: Fraction) -> bool:
        """`(x · d) · c = x · cd`; whether that is x."""
        values: dict[str, Value] = {"x": self.representative[x], "s": self.scalar, "t": self.graph.types[x]}
        self.say("mul.const-twice", c=d, d=c, **values)
        if c * d == 1:
            self.say("const.one", **values)
            self.say("mul.one-right", u=self.scalar, **values)
        return c * d == 1

    def exchanged(self, node: ENode, *, say: bool = False) -> ENode | None:
        """`y - x` for a node `x - y`, where that has the same type."""
        head = self.terms.heads[node.head]
        if head.op != "sub" or not is_real(self.terms.table.types[head.type]) or not self.known(node):
            return None
        x, y = node.args
        if self.terms.table.infer("sub", (), (self.graph.types[y], self.graph.types[x])) != head.type:
            return None
        if say:
            self.say("neg.sub", x=self.representative[x], y=self.representative[y], t=head.type)
        return ENode(node.head, (y, x))

    # ------------------------------------------------------------------------------------------------ terms

    def new_class(self, own: TypeId, term: TermId) -> ClassId:
        self.graph.nodes.append([])
        self.graph.types.append(own)
        self.representative[len(self.graph.nodes) - 1] = term
        return len(self.graph.nodes) - 1

    def constant(self, c: Fraction) -> TermId:
        return self.terms.make(self.terms.intern(Head("const", (c,), self.scalar)), ())

    def number(self, c: Fraction) -> ClassId:
        """The class of a constant."""
        if c not in self._numbers:
            term = self.constant(c)
            self._numbers[c] = self.new_class(self.scalar, term)
            self._values[self._numbers[c]] = c
            self.graph.nodes[-1].append(ENode(self.terms.head[term], ()))
        return self._numbers[c]

    def product(self, own: TypeId) -> HeadId:
        return self.terms.intern(Head("mul", (), own))

    def say_sign(self, class_: ClassId, c: Fraction) -> None:
        """`x · (-1) = -x`"""
        if c == -1:
            self.say("mul.minus-one", x=self.representative[class_], s=self.scalar, t=self.graph.types[class_])

    def say_carried(self, way: _Way, node: ENode, c: Fraction) -> None:
        """The instance of a rule for a node."""
        head = self.terms.heads[node.head]
        names = [a.name for a in way.left.attrs if isinstance(a, Name)]
        values: dict[str, Value] = dict.fromkeys(way.own, head.type) | dict(zip(names, head.attrs, strict=True))
        for pattern, a in zip(way.left.args, node.args, strict=True):
            term = self.representative[a] if a >= 0 else self.terms.template(-1 - a)
            if isinstance(pattern, Name):
                values[pattern.name] = term
                continue
            x, constant = pattern.args
            assert isinstance(x, Name)
            assert isinstance(constant, Apply)
            assert isinstance(constant.attrs[0], Name)
            values |= {x.name: term, pattern.type.name: self.terms.type[term]}
            values |= {constant.attrs[0].name: c, constant.type.name: self.scalar}
        self.say(way.rule.name, **values)

    def say(self, rule: str, **values: Value) -> None:
        self.budget.places -= 1
        sides = read_rule(RULES[rule])
        assert isinstance(sides.left, Apply)
        own = values.get("t", self.scalar)  # of whatever has no type of its own
        needed = {k: values.get(k, own) for k in variables(RULES[rule])}
        left, right = (instantiate(self.terms, side, needed) for side in (sides.left, sides.right))
        self.closure.add(Instance(RULES[rule], needed, left, right))


def _put(args: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*args[:place], value, *args[place + 1 :])
