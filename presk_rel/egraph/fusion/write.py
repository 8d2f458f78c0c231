"""A partition written as Core: each kernel a function that is marked as one, the flat function calling them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Binding, Call, Function, Op, Param, Prim
from presk_rel.core.names import Fresh
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import prefixes_in, symbols_in
from presk_rel.core.verify import forms_of
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.fusion.graph import Graph, value_operands
from presk_rel.egraph.fusion.space import Kernel
from presk_rel.elab.ty import Real, TupleOf, Type
from presk_rel.smt.linear import symbol

Item = int
"""A kernel k (k ≥ 0), or the binding of node i (-1 - i)."""


@dataclass(frozen=True, slots=True)
class Written:
    """The function that calls its kernels, these, and the number of the last of them."""

    function: Function
    kernels: tuple[Function, ...]
    count: int


def write(graph: Graph, kernels: tuple[Kernel, ...], names: Fresh, count: int) -> Written:
    """`kernels` are in an order in which they run; `names` are those of the program's functions; kernels are numbered
    from `count` + 1."""
    return _Writer(graph, kernels, names, count).run()


@dataclass(slots=True)
class _Writer:
    graph: Graph
    kernels: tuple[Kernel, ...]
    names: Fresh
    count: int
    bindings: list[Binding] = field(default_factory=list[Binding])
    functions: list[Function] = field(default_factory=list[Function])
    of_type: dict[Type, str] = field(default_factory=dict[Type, str])
    provider: dict[int, int] = field(default_factory=dict[int, int])
    values: Fresh = field(default_factory=Fresh)
    bound: set[str] = field(default_factory=set[str])

    def run(self) -> Written:
        graph = self.graph
        self.values = Fresh(graph.types)
        for k, kernel in enumerate(self.kernels):
            for v in kernel.outputs:
                self.provider.setdefault(v, k)
        for p in graph.function.params:
            self.of_type.setdefault(p.type, p.name)
            self.bound.add(p.name)
        for item in self.order():
            if item < 0:
                self.plain(graph.nodes[-1 - item].binding)
            else:
                self.call(self.kernels[item], [v for v in self.kernels[item].outputs if self.provider[v] == item])
        done = replace(graph.function, bindings=tuple(self.bindings))
        return Written(done, tuple(self.functions), self.count)

    # ------------------------------------------------------------------------------------------------ the order

    def source(self, name: str) -> Item | None:
        """What puts a value in memory; None for a parameter."""
        node = self.graph.node(name)
        if node is None:
            return None
        if not (node.work or node.inline):
            return -1 - node.index
        if node.index not in self.provider:
            raise PreskBug("fusion", f"no kernel writes `{name}`")
        return self.provider[node.index]

    def needs(self, item: Item) -> list[Item]:
        loads = self.kernels[item].loads if item >= 0 else value_operands(self.graph.nodes[-1 - item].binding.op)
        return sorted({s for v in loads if (s := self.source(v)) is not None})

    def order(self) -> list[Item]:
        """Everything that the result needs, each after what it reads, otherwise as the bindings were."""
        result = self.source(self.graph.function.ret)
        needed: dict[Item, list[Item]] = {}
        stack = [] if result is None else [result]
        while stack:
            item = stack.pop()
            if item not in needed:
                needed[item] = self.needs(item)
                stack += needed[item]
        users: dict[Item, list[Item]] = {}
        for item, sources in needed.items():
            for s in sources:
                users.setdefault(s, []).append(item)
        missing = {item: len(sources) for item, sources in needed.items()}
        ready = [(self.rank(item), item) for item, n in missing.items() if not n]
        heapq.heapify(ready)
        found: list[Item] = []
        while ready:
            _, item = heapq.heappop(ready)
            found.append(item)
            for user in users.get(item, []):
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (self.rank(user), user))
        return found

    def rank(self, item: Item) -> int:
        return -1 - item if item < 0 else min(self.kernels[item].outputs)

    # ------------------------------------------------------------------------------------------- the flat function

    def bind(self, b: Binding) -> None:
        self.bindings.append(b)
        self.bound.add(b.name)
        self.of_type.setdefault(b.type, b.name)

    def plain(self, b: Binding) -> None:
        """A binding that no kernel holds, its operands that only lend their type replaced by what is there."""
        self.bind(replace(b, op=_with(b.op, self.stand_in)))

    def stand_in(self, name: str) -> str:
        """A value of the type of `name` that is in memory."""
        ty = self.graph.types[name]
        if name in self.bound:
            return name
        if ty not in self.of_type:
            self.bind(Binding(self.values.like("%t"), ty, _filler(ty, name)))
        return self.of_type[ty]

    def call(self, kernel: Kernel, outputs: list[int]) -> None:
        made = [self.graph.nodes[i].binding for i in outputs]
        if all(self.host(i) for i in kernel.ops):
            for b in (self.graph.nodes[i].binding for i in kernel.ops):
                if b.name not in self.bound:
                    self.bind(b)
            return
        function = self.kernel(kernel, made)
        self.functions.append(function)
        dims = tuple((d, symbol(d)) for d in function.dims)
        op = Call(function.name, dims, tuple(p.name for p in function.params))
        if len(made) == 1:
            self.bind(replace(made[0], op=op))
            return
        whole = self.values.like("%k")
        self.bind(Binding(whole, function.result, op))
        for k, b in enumerate(made):
            self.bind(replace(b, op=Prim("proj", (k,), (whole,))))

    def host(self, index: int) -> bool:
        """A number that is known without a launch."""
        op = self.graph.nodes[index].binding.op
        return isinstance(op, Prim) and PRIMS[op.op].view

    # ------------------------------------------------------------------------------------------------- a kernel

    def kernel(self, kernel: Kernel, made: list[Binding]) -> Function:
        params = [Param(v, self.graph.types[v]) for v in kernel.loads]
        body = self.body(params, kernel)
        ret, result = made[0].name, made[0].type
        if len(made) > 1:
            ret = Fresh((*(p.name for p in params), *(b.name for b in body))).like("%k")
            result = TupleOf(tuple(b.type for b in made))
            body.append(Binding(ret, result, Prim("tuple", (), tuple(b.name for b in made))))
        self.open_prefixes(params, body)
        effects = {PRIMS[b.op.op].effect for b in body if isinstance(b.op, Prim)}
        uses = tuple(sorted(e for e in effects if e is not None))
        dims = self.dims(params, body)
        return Function(self.numbered(), dims, tuple(params), result, tuple(body), ret, uses, kernel=True)

    def body(self, params: list[Param], kernel: Kernel) -> list[Binding]:
        """The operations of a kernel; one that only lends its type is another of that type, or zeros."""
        body: list[Binding] = []
        scope = {p.name: p.type for p in reversed(params)}
        of_type = {ty: name for name, ty in scope.items()}
        fresh = Fresh((*scope, *(self.graph.nodes[i].binding.name for i in kernel.ops)))

        def lent(name: str) -> str:
            ty = self.graph.types[name]
            if name not in scope and ty not in of_type:
                body.append(Binding(fresh.like("%t"), ty, _filler(ty, name)))
                of_type[ty] = body[-1].name
            return name if name in scope else of_type[ty]

        for b in (self.graph.nodes[i].binding for i in kernel.ops):
            op = _with(b.op, lent)
            body.append(replace(b, op=op))
            scope[b.name] = b.type
            of_type.setdefault(b.type, b.name)
        return body

    def numbered(self) -> str:
        """The name of the next kernel."""
        n = 1
        while f"k{n + self.count}" in self.names:
            n += 1
        self.count += n
        return self.names.add(f"k{self.count}")

    def dims(self, params: list[Param], body: list[Binding]) -> tuple[str, ...]:
        mentioned: set[str] = set()
        for ty in (*(p.type for p in params), *(b.type for b in body)):
            mentioned |= symbols_in(ty)
        for b in body:
            mentioned |= {s for form in forms_of(b.op) for s in form.symbols}
        return tuple(d for d in self.graph.function.dims if d in mentioned)

    def open_prefixes(self, params: list[Param], body: list[Binding]) -> None:
        """A prefix that a kernel mentions is that of a parameter: one that has it comes along for its type."""
        open_ = set[str]().union(*(prefixes_in(b.type) for b in body)) if body else set[str]()
        for p in self.graph.function.params:
            known = set[str]().union(*(prefixes_in(q.type) for q in params)) if params else set[str]()
            if prefixes_in(p.type) & (open_ - known) and all(q.name != p.name for q in params):
                params.append(Param(p.name, p.type))


def _with(op: Op, lent: Callable[[str], str]) -> Op:
    """The operation with the operands replaced that only lend their type."""
    if not isinstance(op, Prim) or not PRIMS[op.op].shape_only:
        return op
    unread = PRIMS[op.op].shape_only
    return replace(op, args=tuple(lent(v) if i in unread else v for i, v in enumerate(op.args)))


def _filler(ty: Type, name: str) -> Prim:
    if not isinstance(ty, Real):
        raise PreskBug("fusion", f"nothing lends the type {ty} of `{name}`")
    return Prim("zeros", (), ())
