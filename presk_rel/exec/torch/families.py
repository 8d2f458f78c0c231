"""Contractions that share an operand and a form become one, as one product of stacked operands: those of Q, K and V.

Where a tensor is multiplied by several of the same shape, and these lie at equal distances in one buffer (weights in
their tree; what is computed is put so), the products are one `bmm`. What then happens to each of its results alike is
one step as well, and so is what made the operands: from the products on, forwards and backwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

from presk_rel.exec.torch.calls import CALLS, POINTWISE
from presk_rel.exec.torch.graph import FAMILY, Graph, parts
from presk_rel.exec.torch.layouts import Array, dense
from presk_rel.exec.torch.memory import Place
from presk_rel.exec.torch.trace import COPY, Step

PRODUCTS = {"torch.mm": "torch.bmm", "torch.addmm": "torch.baddbmm"}
LIMIT = 6000
"""Steps beyond which nothing is merged: every merger orders all of them again."""


@dataclass(frozen=True, slots=True)
class Together:
    """Arguments at equal distances in one buffer, and what has to be given a place for that."""

    members: tuple[Array, ...]
    placed: dict[str, Place]
    distance: int


@dataclass(slots=True)
class Families:
    graph: Graph
    inputs: frozenset[str]
    """The buffers of inputs."""

    def run(self) -> None:
        if len(self.graph.steps) > LIMIT:
            return
        pending = self.seeds()
        while pending:
            made = self.merged(pending.pop(0))
            if made is not None:
                pending += self.around(made)
        self.chained()
        self.summed()

    # ------------------------------------------------------------------------------------------------------ finding

    def seeds(self) -> list[list[str]]:
        """The results of products that share an operand and have the form of the others alike."""
        found: dict[object, list[str]] = {}
        for step in self.graph.steps:
            if step.function in PRODUCTS:
                for k, x in enumerate(step.args[-2:]):
                    key = (_form(step), k, self.where(cast("Array", x)))
                    found.setdefault(key, []).append(_name(step))
        return [members for members in found.values() if len(members) > 1]

    def where(self, x: Array) -> object:
        return (*self.graph.lies(x), x.sizes, x.strides)

    def around(self, family: tuple[tuple[Array, ...], ...]) -> list[list[str]]:
        """Steps that do the same with each member of a family, or make each of them alike."""
        found: list[list[str]] = []
        readers = self.graph.readers()
        makers = {p.name: s for s in self.graph.steps for p in s.results if p is not None}
        for members in family:
            found += self.onwards([self.views(x, readers) for x in members])
            if len({x.root for x in members} - self.inputs) == len(members):
                found += self.onwards([self.views(replace(x, name=x.root), readers) for x in members])
            back = [self.source(x, makers) for x in members]
            if all(s is not None and not s.view for s in back):
                found.append([_name(s) for s in back if s is not None])
        return found

    def views(self, x: Array, readers: dict[str, list[tuple[Step, int]]]) -> list[tuple[object, Step]]:
        """What reads a tensor or a view of it, with how."""
        found: list[tuple[object, Step]] = []
        pending: list[tuple[object, str]] = [((), x.name)]
        while pending:
            path, name = pending.pop(0)
            for step, k in readers.get(name, ()):
                way = (path, _form(step), k)
                if step.view and step.function and step.function != FAMILY:
                    pending += [(way, p.name) for p in step.results if p is not None]
                elif not step.view:
                    found.append((way, step))
        return found

    def onwards(self, readers: list[list[tuple[object, Step]]]) -> list[list[str]]:
        """One reader of every member, each in the same way."""
        tables: list[dict[object, Step]] = []
        for each in readers:
            ways: dict[object, Step] = {}
            for way, step in each:
                ways.setdefault(way, step)
            tables.append(ways)
        shared = [way for way in tables[0] if all(way in t for t in tables)]
        return [[_name(t[way]) for t in tables] for way in shared]

    def source(self, x: Array, makers: dict[str, Step]) -> Step | None:
        """What computes a tensor, seen through views of all of it."""
        step = makers.get(x.name)
        while step is not None and step.view and step.function and step.function != FAMILY and step.args:
            step = makers.get(cast("Array", step.args[0]).name)
        return step

    # ------------------------------------------------------------------------------------------------------ merging

    def merged(self, names: list[str]) -> tuple[tuple[Array, ...], ...] | None:
        """Make one step of those that compute these; the families that it reads and makes."""
        makers = {_name(s): s for s in self.graph.steps if not s.view and s.results[0] is not None}
        steps = [makers[n] for n in dict.fromkeys(names) if n in makers]
        if (
            len(steps) != len(names)
            or len(steps) < 2
            or len({_form(s) for s in steps}) != 1
            or not _mergeable(steps[0])
        ):
            return None
        steps = self.sorted(steps)
        results = self.together([cast("Array", s.results[0]) for s in steps])
        args = [self.argument([s.args[k] for s in steps], results) for k in range(len(steps[0].args))]
        if results is None or any(a is None for a in args) or all(not isinstance(a, Together) for a in args):
            return None
        return self.joined(steps, results, args)

    def sorted(self, steps: list[Step]) -> list[Step]:
        """In the order in which their operands or results lie in memory."""
        columns = [[cast("Array", s.results[0]) for s in steps]]
        columns += [[s.args[k] for s in steps] for k, a in enumerate(steps[0].args) if isinstance(a, Array)]
        for column in columns:
            at = [self.graph.lies(x) for x in column]
            if len({base for base, _ in at}) == 1 and len(set(at)) == len(at):
                return [s for _, s in sorted(zip(at, steps, strict=True), key=lambda pair: pair[0])]
        readers = self.graph.readers()
        met = [self.met(s, readers) for s in steps]
        if all(met) and len(set(map(tuple, met))) == len(met):
            return [s for _, s in sorted(zip(met, steps, strict=True), key=lambda pair: pair[0])]
        return steps

    def met(self, step: Step, readers: dict[str, list[tuple[Step, int]]]) -> list[tuple[str, int]]:
        """Where the inputs lie that the operands of a step are multiplied with elsewhere."""
        found: list[tuple[str, int]] = []
        for x in step.args:
            if isinstance(x, Array) and self.graph.free(x):
                whole = replace(x, name=x.root)
                others = (a for _, s in self.views(whole, readers) if s.function in PRODUCTS for a in s.args)
                found += [self.graph.lies(a) for a in others if isinstance(a, Array)]
        return sorted(p for p in found if p[0] in self.inputs)

    def argument(self, column: list[Any], results: Together | None) -> Any:
        """What an argument of the one step is: that of all where it is the same; None where it cannot be one."""
        if not isinstance(column[0], Array):
            return column[0] if all(repr(a) == repr(column[0]) for a in column) else None
        if len({self.where(a) for a in column}) == 1:
            return column[0]
        taken = results.placed if results is not None else {}
        return self.together(column, taken)

    def together(self, column: list[Array], taken: dict[str, Place] | None = None) -> Together | None:
        """Tensors of one form at equal distances; None where they are not and cannot be put so."""
        if len({(x.sizes, x.strides, x.dtype) for x in column}) != 1 or not all(x.fixed for x in column):
            return None
        at = [self.graph.lies(x) for x in column]
        if len({base for base, _ in at}) == 1 and (at[0][0] in self.graph.sizes or at[0][0] in self.inputs):
            gaps = {b[1] - a[1] for a, b in pairwise(at)}
            distance = gaps.pop()
            return Together(tuple(column), {}, distance) if not gaps and distance > 0 else None
        entries = {self.graph.sizes[x.root][0] for x in column if x.root in self.graph.sizes}
        free = all(self.graph.free(x) and x.root not in (taken or {}) for x in column)
        if not free or len(entries) != 1 or len({x.root for x in column}) != len(column):
            return None
        if len({x.offset for x in column}) != 1:
            return None
        size = entries.pop()
        return Together(tuple(column), {x.root: Place("", k * size) for k, x in enumerate(column)}, size)

    def joined(self, steps: list[Step], results: Together, args: list[Any]) -> tuple[tuple[Array, ...], ...] | None:
        """Put one step in the graph, if that makes no circle."""
        graph, count = self.graph, len(steps)
        undo = (dict(graph.inside), dict(graph.sizes), graph.steps)
        made = cast("Array", steps[0].results[0])
        new: list[Step] = []
        if results.placed:
            whole = graph.new((count, *made.sizes), made.dtype)
            names = parts(whole, results.members, graph, [k * made.entries for k in range(count)])
        else:
            whole, names = self.viewed(results, made.sizes, new, None), None
        lifted = [self.lifted(steps[0], k, a, count, new) for k, a in enumerate(args)]
        function = PRODUCTS.get(steps[0].function, steps[0].function)
        call = CALLS[function] if function in CALLS else steps[0].call
        new.append(replace(steps[0], function=function, args=tuple(lifted), results=(whole,), call=call))
        new += [names] if names is not None else [Step("", (whole,), {}, results.members, 0)]
        if graph.replaced(steps, new):
            return (results.members, *(a.members for a in args if isinstance(a, Together)))
        graph.inside, graph.sizes, graph.steps = undo
        return None

    def viewed(self, family: Together, sizes: tuple[int, ...], new: list[Step], pad: int | None) -> Array:
        """The members as one tensor, `pad` axes of length one after the first; None: to be written to."""
        graph, first = self.graph, family.members[0]
        if family.placed:
            size = family.distance
            buffer = graph.new((size * len(family.members),), first.dtype)
            new.append(Step("", (), {}, (buffer,), 0))
            for root, place in family.placed.items():
                graph.inside[root] = Place(buffer.name, place.offset)
        shape = (len(family.members), *(1,) * (pad or 0), *sizes)
        strides = (family.distance, *(0,) * (pad or 0), *first.strides)
        graph.count += 1
        x = replace(first, name=f"m{graph.count - 1}", sizes=shape, strides=strides)
        read = family.members if pad is not None else ()
        new.append(Step(FAMILY, (first.root, first.offset, shape, strides, read), {}, (x,), 0))
        return x

    def lifted(self, step: Step, k: int, arg: Any, count: int, new: list[Step]) -> Any:
        """An argument of the one step."""
        rank = len(cast("Array", step.results[0]).sizes)
        if isinstance(arg, Together):
            own = arg.members[0].sizes
            level = step.function in POINTWISE or (step.function == "torch.addmm" and k == 0)
            return self.viewed(arg, own, new, rank - len(own) if level else 0)
        if isinstance(arg, Array) and step.function in PRODUCTS and not (step.function == "torch.addmm" and k == 0):
            self.graph.count += 1
            name = f"m{self.graph.count - 1}"
            x = replace(arg, name=name, sizes=(count, *arg.sizes), strides=(0, *arg.strides))
            new.append(Step("expand", (arg, x.sizes), {}, (x,), 0, method=True))
            return x
        if step.function == "torch.sum" and k == 1:
            dims = cast("tuple[int, ...]", arg if isinstance(arg, tuple) else (arg,))
            return tuple(d + 1 if d >= 0 else d for d in dims)
        return arg

    # ------------------------------------------------------------------------------------------------------- sums

    def chained(self) -> None:
        """Products added to one another, of operands at equal distances, are one product that sums."""
        done: set[str] = set()
        for step in self.graph.steps[::-1]:
            if step.function == "torch.addmm" and not step.keywords and _name(step) not in done:
                chain, start = self.chain(step)
                done |= {_name(s) for s in chain}
                if len(chain) > 1:
                    self.added(chain, start)

    def chain(self, top: Step) -> tuple[list[Step], Array | None]:
        """The products that a sum adds up, the last one first, and what they are added to."""
        uses = self.graph.uses()
        makers = {p.name: s for s in self.graph.steps for p in s.results if p is not None}
        chain = [top]
        while chain[-1].function == "torch.addmm":
            x = cast("Array", chain[-1].args[0])
            step, name = makers.get(x.name), x.name
            while step is not None and step.view and step.method and uses[name] == 1:
                name = cast("Array", step.args[0]).name
                step = makers.get(name)
            if step is None or step.function not in PRODUCTS or step.keywords or uses[name] != 1:
                return chain, x
            if cast("Array", step.results[0]).sizes != cast("Array", top.results[0]).sizes:
                return chain, x
            chain.append(step)
        return chain, None

    def added(self, chain: list[Step], start: Array | None) -> None:
        graph, undo = self.graph, (dict(self.graph.inside), dict(self.graph.sizes), self.graph.steps)
        pairs = [cast("tuple[Array, Array]", s.args[-2:]) for s in chain]
        pairs.sort(key=lambda pair: graph.lies(pair[1]))
        left = self.together([a for a, _ in pairs])
        right = self.together([b for _, b in pairs], left.placed if left is not None else {})
        if left is None or right is None:
            return
        new: list[Step] = []
        args = tuple(self.viewed(side, side.members[0].sizes, new, 0) for side in (left, right))
        words = {"beta": 0} if start is None else {}
        given = 0.0 if start is None else start
        new.append(Step("torch.addbmm", (given, *args), words, chain[0].results, 1, CALLS["torch.addbmm"]))
        if not graph.replaced(chain, new):
            graph.inside, graph.sizes, graph.steps = undo

    def summed(self) -> None:
        """The sum of all members of a family is a reduction of it."""
        for step in [s for s in self.graph.steps if s.function == "" and len(s.results) > 2]:
            members = [x for x in step.results if x is not None]
            terms = {x.name: x for x in members}
            self.reduced(step, terms)

    def reduced(self, family: Step, terms: dict[str, Array]) -> None:
        graph = self.graph
        uses = graph.uses()
        views = {n: n for n in terms}
        for step in graph.steps:
            x, of = step.results[0], step.args[0] if step.args else None
            if step.view and x is not None and isinstance(of, Array) and of.name in terms and x.contiguous:
                views[x.name] = of.name
        done: dict[str, tuple[list[Step], list[str]]] = {}
        for step in graph.steps:
            if step.function != "torch.add" or step.keywords or not all(isinstance(a, Array) for a in step.args):
                continue
            inside = [done.get(a.name) if uses[a.name] == 1 else None for a in step.args]
            leaves = [
                n for a, d in zip(step.args, inside, strict=True) for n in (d[1] if d else [views.get(a.name, "")])
            ]
            steps = [s for d in inside if d for s in d[0]] + [step]
            made = step.results[0]
            if made is None or not set(leaves) <= set(terms) or len(set(leaves)) != len(leaves):
                continue
            done[made.name] = (steps, leaves)
            if len(leaves) == len(terms):
                whole = cast("Array", family.args[0])
                lead = whole.viewed((len(terms), *made.sizes), (whole.strides[0], *dense(made.sizes)))
                graph.count += 1
                x = replace(lead, name=f"m{graph.count - 1}")
                view = Step("reshape", (whole, x.sizes), {}, (x,), 0, method=True)
                total = Step("torch.sum", (x, (0,)), {}, step.results, 1, CALLS["torch.sum"])
                graph.replaced(steps, [view, total])
                return


def _name(step: Step) -> str:
    x = step.results[0]
    return x.name if x is not None else ""


def _form(step: Step) -> object:
    """What steps have in common that may be one."""
    shapes = tuple((a.sizes, a.strides, a.dtype) if isinstance(a, Array) else repr(a) for a in step.args)
    words = tuple(sorted((k, v.sizes if isinstance(v, Array) else repr(v)) for k, v in step.keywords.items()))
    return (step.function, shapes, words)


def _mergeable(step: Step) -> bool:
    """Whether a step on stacked operands is one step."""
    if len(step.results) != 1 or step.call is None or not step.call.into or step.results[0] is None:
        return False
    if step.function in POINTWISE:
        return len(step.results[0].sizes) > 0 and not any(isinstance(v, Array) for v in step.keywords.values())
    return step.function in (*PRODUCTS, COPY) or (step.function == "torch.sum" and len(step.args) == 2)
