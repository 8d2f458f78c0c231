"""Which composite primitives torch runs as one call, and the program in which only those are left.

A composite whose operands do not line up as the call needs them (a norm along an axis that is not the last, a bias of
another rank) is written out (`core.expand`). Composites that are computed by one call stand where their operands are
there, before what else reads these: a sum that the call computes too is then its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ein import SCORES, TURNED, TURNED_BACK, VALUES, ein_spec, matrix_form
from presk_rel.core.expand import Scope, expanded
from presk_rel.core.ir import Attr, Binding, Fold, Function, Prim, Program, Var
from presk_rel.core.shapes import compatible_shapes, same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Real, Shape, Type
from presk_rel.exec.shapes import Env, int_of, length
from presk_rel.exec.torch.attention import fits
from presk_rel.exec.torch.precision import Types
from presk_rel.exec.torch.separate import separated

EARLY = frozenset({"layer_norm_vjp", "layer_norm_vjp_scale"})
"""Their call also sums the cotangent."""

FEW_KEYS = 256
"""Keys up to which attention written out is the faster machine code, and what is written for CUDA; beyond, memory for
all scores costs more."""

_FORMS = {
    "attention": (SCORES, VALUES),
    "attention_vjp_q": (SCORES, SCORES, VALUES),
    "attention_vjp_k": (SCORES, SCORES, TURNED),
    "attention_vjp_v": (SCORES, TURNED_BACK),
}


@dataclass(frozen=True, slots=True)
class _Target:
    """What is written for: torch's calls, or, where it is `machine` code, a compiler."""

    types: Types
    machine: bool
    env: Env | None


def prepared(program: Program, types: Types, entry: str, env: Env, *, machine: bool = False) -> Program:
    """The program with the composites that torch has a call for, those written out that it has not, and stacked
    contractions slice by slice. `env` has the dims of `entry`.

    Where the code is for a compiler, written out is also what that makes better code of, attention over few keys, where
    what happens between its products is one pass over the scores, and sums, which join what is done next."""
    program = separated(program)
    envs = _environments(program, entry, env)
    functions = {n: _prepared(program, f, _Target(types, machine, envs.get(n))) for n, f in program.functions.items()}
    return replace(program, functions=functions)


def _prepared(program: Program, function: Function, target: _Target) -> Function:
    alone = replace(program, functions={function.name: function})
    written = expanded(alone, lambda b, scope: _has_call(b, scope, target)).functions[function.name]
    return _early(_one_call(written))


def _environments(program: Program, entry: str, env: Env) -> dict[str, Env]:
    """The dims of a function and of the bodies of its folds, at any depth."""
    found, waiting = {entry: env}, [entry]
    while waiting:
        outer = waiting.pop()
        for b in program.functions[outer].bindings:
            if isinstance(b.op, Fold) and b.op.body not in found:
                dims = {d: int_of(form, found[outer], b.op.body) for d, form in b.op.dim_args}
                found[b.op.body] = Env(dims, env.prefixes)
                waiting.append(b.op.body)
    return found


def _has_call(b: Binding, scope: Scope, target: _Target) -> bool:
    assert isinstance(b.op, Prim)
    shapes = [_shape(scope.types[v]) for v in b.op.args]
    match b.op.op:
        case "standardize" | "standardize_vjp" | "layer_norm" | "layer_norm_vjp" | "layer_norm_vjp_scale":
            x = shapes[COMPOSITES[b.op.op].operands.index("x")]
            return (
                _is_last(b.op.attrs[0], x)
                and _alike(b.op.op, shapes)
                and all(_along_last(s, x) for s in _weights(b.op.op, shapes))
            )
        case "log_softmax" | "logsumexp":
            return True
        case "gelu_vjp" | "relu_vjp" | "tanh_vjp" | "sigmoid_vjp" | "softmax_vjp" | "log_softmax_vjp" | "mse":
            return compatible_shapes(shapes[0], shapes[1])
        case "mse_vjp":
            return shapes[0].is_scalar and all(compatible_shapes(shapes[1], s) for s in shapes[2:])
        case "linear":
            return not target.machine and _linear(shapes, _shape(b.type))
        case "deviation":
            return False
        case _:
            return _attention(b.op, shapes, scope) and _fits(b.op, shapes, target)


def _shape(ty: Type) -> Shape:
    return ty.shape if isinstance(ty, Real) else Shape(None, ())


def _is_last(axis: Attr, x: Shape) -> bool:
    return bool(x.axes) and x.axes[-1].name == axis


def _alike(op: str, shapes: list[Shape]) -> bool:
    """The cotangent has the shape of x."""
    return not op.split("_scale")[0].endswith("_vjp") or compatible_shapes(shapes[0], shapes[1])


def _weights(op: str, shapes: list[Shape]) -> list[Shape]:
    return shapes[1:] if op == "layer_norm" else shapes[2:]


def _along_last(small: Shape, x: Shape) -> bool:
    return small.prefix is None and align(small, x, same) == (len(x.axes) - 1,)


def _linear(shapes: list[Shape], result: Shape) -> bool:
    x, w, b = shapes
    trailing = tuple(range(len(result.axes) - len(b.axes), len(result.axes)))
    if len(w.axes) != 2 or len(x.axes) + (x.prefix is not None) < 2 or b.prefix is not None:
        return False
    return len(b.axes) == 1 and align(b, result, same) == trailing


def _fits(op: Prim, shapes: list[Shape], target: _Target) -> bool:
    """Whether there is a call that attention of this form is faster by, and takes operands of these lengths."""
    calls, env = target.types.attention, target.env
    if env is None or not calls or (calls == "cpu" and not target.machine):
        return calls == "cpu"
    keys, width = _keys(op, shapes, env)
    return keys > FEW_KEYS and (calls == "cpu" or fits(width))


def _keys(op: Prim, shapes: list[Shape], env: Env) -> tuple[int, int]:
    """How many there are, and how wide they are."""
    axes = shapes[COMPOSITES[op.op].operands.index("k")].axes[-2:]
    return length(axes[0].length, env, op.op), length(axes[1].length, env, op.op)


def _attention(op: Prim, shapes: list[Shape], scope: Scope) -> bool:
    """Attention of four axes with one width of heads, scaled by a constant, over all positions or the causal ones.
    Adjoints reuse what the forward call in the same function keeps."""
    name = op.op.removesuffix("_masked")
    *specs, axis = op.attrs
    operands = dict(zip(COMPOSITES[op.op].operands, op.args, strict=True))
    scores = ein_spec(str(specs[0]))
    if tuple(map(matrix_form, map(str, specs))) != _FORMS[name] or scores is None or scores.result[-1] != axis:
        return False
    if not _is_constant(operands["c"], scope) or ("m" in operands and not _is_causal(operands["m"], scope)):
        return False
    if name != "attention":
        return forward_of(op, scope) is not None
    q, k, v = shapes[:3]
    return all(s.prefix is None and len(s.axes) == 4 for s in (q, k, v)) and same(q.axes[-1].length, v.axes[-1].length)


def forward_of(op: Prim, scope: Scope) -> Prim | None:
    """The attention whose adjoint this is, among what is kept of the function so far."""
    names = COMPOSITES[op.op].operands
    shared = {n: v for n, v in zip(names, op.args, strict=True) if n != "ct"}
    suffix = "_masked" if op.op.endswith("_masked") else ""
    for made in scope.ops.values():
        if isinstance(made, Prim) and made.op == f"attention{suffix}" and made.attrs[0] == op.attrs[0]:
            given = dict(zip(COMPOSITES[made.op].operands, made.args, strict=True))
            if all(given[n] == v for n, v in shared.items()):
                return made
    return None


def _is_constant(v: Var, scope: Scope) -> bool:
    """A number that the generator knows."""
    while isinstance(op := scope.ops.get(v), Prim) and op.op in ("real", "sqrt"):
        (v,) = op.args
    return isinstance(op, Prim) and op.op == "const"


def _is_causal(v: Var, scope: Scope) -> bool:
    op = scope.ops.get(v)
    return isinstance(op, Prim) and op.op == "causal_mask"


def _one_call(function: Function) -> Function:
    """The adjoints of a norm in its scale read that scale whose adjoint in x is wanted too: of the scale they take the
    shape only (the optimizer may name any of that shape, another layer's), and both are then results of one call."""
    known: dict[tuple[object, ...], Var] = {}
    types = {**{p.name: p.type for p in function.params}, **{b.name: b.type for b in function.bindings}}
    place: dict[Var, int] = {b.name: i for i, b in enumerate(function.bindings)}
    for b in function.bindings:
        if isinstance(b.op, Prim) and b.op.op == "layer_norm_vjp":
            known.setdefault((b.op.attrs, b.op.args[:2], types[b.op.args[2]]), b.op.args[2])

    def shared(b: Binding) -> Binding:
        if not isinstance(b.op, Prim) or b.op.op != "layer_norm_vjp_scale":
            return b
        ct, x, scale = b.op.args
        found = known.get((b.op.attrs, (ct, x), types[scale]))
        there = found is not None and place.get(found, -1) < place[b.name]
        return replace(b, op=replace(b.op, args=(ct, x, found))) if found is not None and there else b

    return replace(function, bindings=tuple(map(shared, function.bindings))) if known else function


def _early(function: Function) -> Function:
    """The function with `EARLY` bindings right after the last of their operands."""
    if not any(isinstance(b.op, Prim) and b.op.op in EARLY for b in function.bindings):
        return function
    place: dict[Var, int] = {b.name: i for i, b in enumerate(function.bindings)}

    def key(i: int, b: Binding) -> tuple[int, int, int]:
        if not isinstance(b.op, Prim) or b.op.op not in EARLY:
            return (i, 0, i)
        return (max((place.get(v, -1) for v in b.op.args), default=-1), 1, i)

    ordered = sorted(enumerate(function.bindings), key=lambda pair: key(*pair))
    return replace(function, bindings=tuple(b for _, b in ordered))
