"""Flat Core programs for the tests of the optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.core.ir import Attr, Binding, Function, Param, Prim, Program
from presk_rel.core.reader import load
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostics
from presk_rel.elab.ty import SCALAR_REAL, Applied, Axis, Init, ModuleDef, ParamField, Params, Real, Shape, Type
from presk_rel.smt.linear import Linear, constant, symbol


def real(*axes: int | str | tuple[str, int | str]) -> Real:
    """`real("B", ("model", 4))` is ℝ[B, model: 4]."""
    return Real(Shape(None, tuple(_axis(a) for a in axes)))


def _axis(axis: int | str | tuple[str, int | str]) -> Axis:
    name, length = axis if isinstance(axis, tuple) else (None, axis)
    return Axis(name, _length(length))


def _length(length: int | str) -> Linear:
    return constant(length) if isinstance(length, int) else symbol(length)


def read(text: str) -> Program:
    """Core text as a verified program."""
    said = Diagnostics()
    program = load(text, "test.core", said)
    assert program is not None, said.items
    verify(program, "test")
    return program


@dataclass(slots=True)
class Builder:
    """A flat function `f`, binding by binding."""

    params: list[Param] = field(default_factory=list[Param])
    bindings: list[Binding] = field(default_factory=list[Binding])
    types: dict[str, Type] = field(default_factory=dict[str, Type])
    modules: dict[str, ModuleDef] = field(default_factory=dict[str, ModuleDef])

    def param(self, name: str, ty: Type) -> str:
        self.params.append(Param(name, ty))
        self.types[name] = ty
        return name

    def prim(self, op: str, ty: Type, *args: str, attrs: tuple[Attr, ...] = ()) -> str:
        name = f"%{len(self.params) + len(self.bindings)}"
        self.bindings.append(Binding(name, ty, Prim(op, attrs, args)))
        self.types[name] = ty
        return name

    def program(self, ret: str, dims: tuple[str, ...] = ()) -> Program:
        f = Function("f", dims, tuple(self.params), self.types[ret], tuple(self.bindings), ret)
        program = Program(self.modules, {"f": f})
        verify(program, "test")
        return program


def residual_gradient(layers: int) -> Program:
    """What differentiation makes of `layers` residual blocks `x + tanh(x·W + b)·V` under a mean: the forward pass, its
    copy, and the reverse sweep with its zeros, sums to equal types and products with ones. 30 bindings per layer."""
    b = Builder()
    wide, narrow, x_type = real("H"), real("D"), real(("batch", "B"), "D")
    h_type = real(("batch", "B"), "H")
    fields: list[ParamField] = []
    for i in range(layers):
        types = (("W", real("D", "H")), ("V", real("H", "D")), ("b", wide))
        fields += [ParamField(f"{name}{i}", ty, Init("zeros")) for name, ty in types]
    b.modules["Net"] = ModuleDef("Net", ("D", "H"), 2, tuple(fields))
    theta = b.param("θ", Params(Applied("Net", (symbol("D"), symbol("H")))))
    x = b.param("x", x_type)
    saved: list[tuple[str, str, str, str]] = []
    for i in range(layers):
        w = b.prim("field", real("D", "H"), theta, attrs=(f"W{i}",))
        v = b.prim("field", real("H", "D"), theta, attrs=(f"V{i}",))
        c = b.prim("field", wide, theta, attrs=(f"b{i}",))
        saved.append((w, v, c, x))
        x = _block(b, w, v, c, x, h_type, x_type)
    one = b.prim("ones", SCALAR_REAL)
    dx = b.prim("mean_vjp", x_type, one, x)
    grads: list[str] = []
    for w, v, c, before in reversed(saved):
        dx, found = _sweep(b, w, v, c, before, dx, h_type, x_type, narrow)
        grads = [*found, *grads]
    return b.program(b.prim("record", b.types[theta], *grads), ("D", "H", "B"))


def _block(b: Builder, w: str, v: str, c: str, x: str, h_type: Real, x_type: Real) -> str:
    h = b.prim("add", h_type, b.prim("dot", h_type, x, w), c)
    y = b.prim("dot", x_type, b.prim("tanh", h_type, h), v)
    return b.prim("add", x_type, x, y)


def _sweep(
    b: Builder, w: str, v: str, c: str, x: str, dx: str, h_type: Real, x_type: Real, narrow: Real
) -> tuple[str, list[str]]:
    zero = b.prim("zeros_like", x_type, x)
    out = b.prim("add", x_type, zero, dx)
    straight = b.prim("sum_to", x_type, out, x)
    dy = b.prim("sum_to", x_type, out, x)
    h = b.prim("dot", h_type, x, w)
    t = b.prim("tanh", h_type, b.prim("add", h_type, h, c))
    dv = b.prim("dot_vjp_r", b.types[v], t, dy)
    dt = b.prim("add", h_type, b.prim("dot_vjp_l", h_type, dy, v), b.prim("zeros_like", h_type, t))
    slope = b.prim("sub", h_type, b.prim("ones_like", h_type, t), b.prim("pow", h_type, t, attrs=(2,)))
    g = b.prim("mul", h_type, dt, slope)
    dh = b.prim("sum_to", h_type, g, h)
    dc = b.prim("sum_to", b.types[c], g, c)
    dw = b.prim("dot_vjp_r", b.types[w], x, dh)
    back = b.prim("dot_vjp_l", x_type, dh, w)
    return b.prim("add", x_type, straight, back), [dw, dv, dc]
