"""Random Core programs of scalars, pairs and function values, typed as the verifier wants them. Functions call only
earlier ones, so there is no recursion."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Op, Param, Prim, Program
from presk_rel.elab.ty import SCALAR_REAL, Axis, Real, Shape, TupleOf, Type
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.smt.linear import constant

REAL: Type = SCALAR_REAL
PAIR: Type = TupleOf((REAL, REAL))
ROW: Type = Real(Shape(None, (Axis(None, constant(3)),)))
STACK: Type = TupleOf((ROW, ROW))
VALUE: Type = FunctionType((REAL,), REAL)

UNARY = ("relu", "abs", "tanh", "neg", "heaviside", "sin")
BINARY = ("add", "mul")
HELD: Type = TupleOf((VALUE, REAL))

STEPS = ("unary", "unary", "binary", "binary", "tuple", "proj", "set_elem", "call", "call", "fold")
STEPS_WITH_VALUES = (*STEPS, "closure", "grad", "grad", "apply", "apply", "apply")
STEPS_WITH_TRAVEL = (*STEPS_WITH_VALUES, "hold", "unhold", "call", "call")


@dataclass(slots=True)
class _Body:
    """A function in the making. `local`: function values stay in the function that makes them."""

    rng: Random
    name: str
    earlier: list[Function]
    local: bool
    bindings: list[Binding] = field(default_factory=list[Binding])
    types: dict[str, Type] = field(default_factory=dict[str, Type])

    def emit(self, op: Op, ty: Type) -> str:
        name = f"%{len(self.types)}"
        self.bindings.append(Binding(name, ty, op))
        self.types[name] = ty
        return name

    def some(self, ty: Type) -> str | None:
        found = [name for name, t in self.types.items() if t == ty]
        return self.rng.choice(found) if found else None

    def given(self, ty: Type) -> str:
        """A variable of the type, made on the spot if there is none."""
        name = self.some(ty)
        if name is not None:
            return name
        if ty == PAIR:
            return self.emit(Prim("tuple", (), (self.given(REAL), self.given(REAL))), PAIR)
        if ty == HELD:
            return self.emit(Prim("tuple", (), (self.given(VALUE), self.given(REAL))), HELD)
        if ty == VALUE:
            return self.closure()
        return self.emit(Prim("ones", (), ()), REAL)

    def closure(self) -> str:
        """A function value; the first function of every program can be made one."""
        takes = [(), (REAL,), (PAIR,), (REAL, REAL)] + ([] if self.local else [(VALUE,), (HELD,)])
        found = [f for f in self.earlier if f.result == REAL and f.params[-1:] and f.params[-1].type == REAL]
        f = self.rng.choice([f for f in found if tuple(p.type for p in f.params[:-1]) in takes])
        return self.emit(Closure(f.name, (), tuple(self.given(p.type) for p in f.params[:-1])), VALUE)

    def callee(self, wanted: list[tuple[Type, ...]] | None = None, result: Type | None = None) -> Function | None:
        found = [
            f
            for f in self.earlier
            if (wanted is None or tuple(p.type for p in f.params) in wanted) and result in (None, f.result)
        ]
        return self.rng.choice(found) if found else None

    def step(self, kind: str) -> None:
        match kind:
            case "unary":
                self.emit(Prim(self.rng.choice(UNARY), (), (self.given(REAL),)), REAL)
            case "binary":
                ty = self.rng.choice((REAL, PAIR))
                self.emit(
                    Prim("add" if ty == PAIR else self.rng.choice(BINARY), (), (self.given(ty), self.given(ty))), ty
                )
            case "tuple":
                self.emit(Prim("tuple", (), (self.given(REAL), self.given(REAL))), PAIR)
            case "proj":
                self.emit(Prim("proj", (self.rng.randrange(2),), (self.given(PAIR),)), REAL)
            case "set_elem":
                self.emit(Prim("set_elem", (self.rng.randrange(2),), (self.given(PAIR), self.given(REAL))), PAIR)
            case _:
                self.function_step(kind)

    def fold(self, body: str, extras: tuple[str, ...], *, scan: bool) -> None:
        """A fold; of a scan, a sum over its stack."""
        op = Fold(constant(3), body, (), (), self.given(PAIR), extras, scan=scan)
        if not scan:
            self.emit(op, PAIR)
            return
        whole = self.emit(op, TupleOf((PAIR, STACK)))
        self.emit(Prim("proj", (0,), (whole,)), PAIR)
        stack = self.emit(Prim("proj", (1,), (whole,)), STACK)
        self.emit(Prim("sum", (), (self.emit(Prim("proj", (0,), (stack,)), ROW),)), REAL)

    def function_step(self, kind: str) -> None:
        match kind:
            case "call" if (f := self.callee()) is not None:
                self.emit(Call(f.name, (), tuple(self.given(p.type) for p in f.params)), f.result)
            case "fold" if (f := self.callee([(PAIR,), (PAIR, REAL), (PAIR, VALUE)], PAIR)) is not None:
                self.fold(f.name, tuple(self.given(p.type) for p in f.params[1:]), scan=self.rng.random() < 0.4)
            case "closure":
                self.closure()
            case "grad":
                self.emit(Grad(self.given(VALUE)), VALUE)
            case "apply":
                self.emit(Apply(self.given(VALUE), (self.given(REAL),)), REAL)
            case "hold":
                self.emit(Prim("tuple", (), (self.given(VALUE), self.given(REAL))), HELD)
            case "unhold":
                self.emit(Prim("proj", (0,), (self.given(HELD),)), VALUE)
            case _:
                pass


def random_core(seed: int, *, local: bool, functions: int = 5, size: int = 8) -> Program:
    """With `local`, function values stay in the function that makes them, so that classes are exact; else they go
    anywhere."""
    rng = Random(seed)
    first = Prim(rng.choice(("relu", "tanh")), (), ("x0",))
    made = [Function("f0", (), (Param("x0", REAL),), REAL, (Binding("r", REAL, first),), "r")]
    plain: list[tuple[Type, ...]] = [(PAIR,), (PAIR, REAL), (REAL, REAL), (REAL, REAL, REAL)]
    higher: list[tuple[Type, ...]] = [(VALUE, REAL), (HELD, REAL), (HELD,), (PAIR, VALUE), (VALUE,)]
    for i in range(1, functions):
        shapes = plain if local or i > functions - 3 or rng.random() < 0.3 else higher
        made.append(_function(rng, f"f{i}", rng.choice(shapes), made, local, size))
    return Program({}, {f.name: f for f in made})


def _function(
    rng: Random, name: str, params: tuple[Type, ...], earlier: list[Function], local: bool, size: int
) -> Function:
    body = _Body(rng, name, earlier, local)
    named = tuple(Param(f"x{i}", ty) for i, ty in enumerate(params))
    body.types = {p.name: p.type for p in named}
    steps = STEPS_WITH_VALUES if local else STEPS_WITH_TRAVEL
    for _ in range(rng.randint(1, size)):
        body.step(rng.choice(steps))
    wanted = params[0] if params[0] in (PAIR, VALUE, HELD) and rng.random() < 0.6 else REAL
    ret = list(body.types)[-1] if body.types[list(body.types)[-1]] == wanted else body.given(wanted)
    return Function(name, (), named, body.types[ret], tuple(body.bindings), ret)
