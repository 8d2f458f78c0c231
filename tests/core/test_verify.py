"""The verifier: a well-formed program passes, and each way of breaking one is caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from presk_rel.core.align import with_operands
from presk_rel.core.analysis import reached
from presk_rel.core.ir import Binding, Function, Op, Prim, Program, operands
from presk_rel.core.prims import PRIMS
from presk_rel.core.reader import read_program
from presk_rel.core.typing_rules import RULES
from presk_rel.core.verify import problems, verify
from presk_rel.diagnostics import Diagnostics, PreskBug
from presk_rel.elab.ty import SCALAR_REAL, Axis, Hyper, Key, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import constant, symbol

ZOO = Path(__file__).with_name("zoo.core").read_text(encoding="utf-8")


def parsed(text: str) -> Program:
    diagnostics = Diagnostics()
    program = read_program(text, "zoo.core", diagnostics)
    assert program is not None, diagnostics.items
    return program


def broken(old: str, new: str) -> list[str]:
    """The problems of the zoo with one text replaced: of the modules, that function, and those it names."""
    assert ZOO.count(old) == 1, f"{old!r} stands {ZOO.count(old)} times in the zoo"
    blocks = ZOO.split("\n\n")
    kept = [b.replace(old, new) for b in blocks if not b.startswith("fn ") or old in b]
    for function in kept:
        named = set(re.findall(r" ([\w.]+)[{\[(]", function))
        kept += [b for b in blocks if b not in kept and old not in b and _name(b) in named]
    return problems(parsed("\n\n".join(kept)))


def _name(block: str) -> str:
    """Of a function."""
    return block.removeprefix("fn ").partition("{")[0] if block.startswith("fn ") else ""


@pytest.mark.parametrize("operands", ["p, q", "q, p"])
def test_inside_tuples_nothing_broadcasts(operands: str) -> None:
    """A scalar meets every leaf of a tree, but a component that is a scalar meets no component that is a tree."""
    whole = "((ℝ[], ℝ[]), ℝ[])"
    text = f"fn f(p : {whole}, q : (ℝ[], ℝ[])) -> {whole} {{\n  %2 : {whole} = sub {operands}\n  return %2\n}}\n"
    assert any("do not match leaf by leaf" in problem for problem in problems(parsed(text)))


class TestTables:
    def test_every_primitive_has_a_typing_rule(self) -> None:
        assert set(RULES) == set(PRIMS)

    def test_the_zoo_has_every_primitive(self) -> None:
        used = {b.op.op for f in parsed(ZOO).functions.values() for b in f.bindings if isinstance(b.op, Prim)}
        assert used == set(PRIMS)

    def test_the_zoo_is_well_formed(self) -> None:
        assert problems(parsed(ZOO)) == []
        verify(parsed(ZOO), "test")

    def test_a_broken_program_is_a_bug_of_the_pass_that_made_it(self) -> None:
        with pytest.raises(PreskBug, match=r"optimize: PSK-Core is not well-formed: loss/%3: reads %9"):
            verify(parsed(ZOO.replace("%3 : ℝ[] = mean %2", "%3 : ℝ[] = mean %9")), "optimize")


NAMES = [
    ("%3 : ℝ[] = mean %2\n  return %3", "%3 : ℝ[] = mean %2\n  return %4", "returns %4, which is not defined"),
    ("%8 : ℝ[..., model: D] = div %7, s", "%8 : ℝ[..., model: D] = div %9, s", "reads %9, which is not defined before"),
    ("%6 : ℝ[..., model: D] = sub x, s", "%5 : ℝ[..., model: D] = sub x, s", "%5 is defined twice"),
    ("fn elementwise{D}(x : ℝ[..., D])", "fn elementwise{D}(x : ℝ[..., D], x : ℝ[])", "x is defined twice"),
    ("fn elementwise{D}", "fn elementwise{D D}", "declares a dim twice"),
    ("fn elementwise{D}", "fn elementwise", "mentions D, which is no dim of the function"),
    ("dim 4*D", "dim 4*E", "mentions E, which is no dim of the function"),
    ("fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In])",
     "fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[In])", "has the prefix ..., which no parameter has"),
    ("(ℝ[D], ℝ[])) uses Rand", "(ℝ[D], ℝ[])) uses Time", "uses the unknown effect Time"),
    ("{D}(x : ℝ[..., D]) -> ℝ[..., D] {\n  %1", "{D}(x : ℝ[..., D]) -> ℝ[..., 2*D] {\n  %1", "but declares ℝ[..., 2*"),
]  # fmt: skip

MODULES = [
    ("param b : ℝ[Out]", "param w : ℝ[Out]", "two fields of one name"),
    ("param b : ℝ[Out]", "param b : ℝ[E, Out]", "has an open shape"),
    ("param b : ℝ[Out]", "param b : ℝ[Out, E]", "mentions E, which is no dim of the module"),
    ("module Tower{D; T}", "module Tower{D; T T}", "declares a dim twice"),
    ("use layers : stack{3}(Linear{D, D})", "use layers : stack{3}(Linear{D})", "Linear has 2 dims, not 1"),
    ("use layers : stack{3}(Linear{D, D})", "use layers : stack{3}(Line{D, D})", "Line is no module"),
    ("use layers : stack{3}(Linear{D, D})", "use layers : stack{3}(Tower{D, T})", "includes itself: Tower → Tower"),
    ("θ : params Tower{D, T}", "θ : params Tower{D}", "Tower has 2 dims, not 1"),
]

STACKS = [
    ("open : ℝ[3, ..., D] = %4.0", "open : ℝ[..., D] = %4.0", "is declared ℝ[..., D], but proj gives ℝ[3, ..., D]"),
    ("open : ℝ[3, ..., D] = %4.0", "open : ℝ[..., 3, D] = %4.0", "but proj gives ℝ[3, ..., D]"),
    ("open : ℝ[3, ..., D] = %4.0", "open : ℝ[3, S..., D] = %4.0", "has the prefix S, which no parameter has"),
    ("%7 : ℝ[3, ..., D] = add open, %6", "%7 : ℝ[3, ..., D] = mul open, %8", "reads %8"),
    ("h : (ℝ[3, ..., D], ℝ[3, ...])", "h : (ℝ[2, ..., D], ℝ[3, ...])", "is declared ℝ[3, ..., D], but proj gives ℝ[2"),
    ("h : (ℝ[3, ..., D], ℝ[3, ...])", "h : (ℝ[..., 3, D], ℝ[3, ...])", "but proj gives ℝ[..., 3, D]"),
    ("%9 : ℝ[3, ..., D] = set_slice 1 %7, %8", "%9 : ℝ[3, ..., D] = set_slice 1 %7, %7", "a slice has type ℝ[..., D]"),
    ("%9 : ℝ[3, ..., D] = set_slice 1 %7, %8", "%9 : ℝ[3, ..., D] = add %7, %8", "do not broadcast"),
]

OPERATIONS = [
    ("%5 : ℝ[..., model: D] = add x, y", "%5 : ℝ[..., model: D] = add x, n", "add does not apply"),
    ("%6 : ℝ[..., model: D] = sub x, s", "%6 : ℝ[..., model: D] = sub x, i", "sub does not apply"),
    ("%13 : nat = add n, n", "%13 : int = add n, n", "is declared int, but add gives nat"),
    ("%14 : int = sub %13, n", "%14 : nat = sub %13, n", "is declared nat, but sub gives int"),
    ("%15 : nat = const 3", "%15 : nat = const 0.5", "const 0.5 is not of type nat"),
    ("%15 : nat = const 3", "%15 : nat = const -3", "const -3 is not of type nat"),
    ("%17 : nat = dim 4*D", "%17 : f64 = dim 4*D", "dim gives a nat or an int"),
    ("%11 : ℝ[] = real n", "%11 : ℝ[] = real s", "real takes a hyperparameter"),
    ("%4 : ℝ[..., Out] = dot x, w", "%4 : ℝ[..., Out] = dot x, b", "is not the first of"),
    ("%4 : ℝ[..., Out] = dot x, w", "%4 : ℝ[..., Out] = dot w, x", "has no first axis"),
    ("dot_vjp_l ct, w", "dot_vjp_l x, w", "the last axes of"),
    ("dot_vjp_r x, ct", "dot_vjp_r w, ct", "the first axes of"),
    ("mean axis model x", "mean axis seq x", "no axis is named seq"),
    ("mean_vjp axis model %8, x", "mean_vjp axis model x, x", "the cotangent is"),
    ("mean_vjp %7, %6", "mean_vjp b, %6", "the cotangent is"),
    ("broadcast_like b, ct", "broadcast_like w, ct", "does not broadcast"),
    ("broadcast_like axis model %10, x", "broadcast_like axis model x, x", "does not broadcast"),
    ("sum_to %13, b", "sum_to b, %13", "does not broadcast"),
    ("%19 : ℝ[In, Out] = zeros", "%19 : nat = zeros", "zeros gives a real tensor"),
    ("w : ℝ[D, D] = θ.w", "w : ℝ[D, D] = θ.v", "has no field v"),
    ("w : ℝ[D, D] = θ.w", "w : ℝ[D, D] = p.w", "is a parameter tree, not"),
    ("set_field w %4, w", "set_field b %4, w", "field b has type ℝ[D], the new value ℝ[D, D]"),
    ("%7 : params Linear{D, D} = record w, %6", "%7 : params Linear{D, D} = record w", "has 2 fields, the record 1"),
    ("%7 : params Linear{D, D} = record w, %6", "%7 : params Linear{D, D} = record %6, w", "field w of params"),
    ("%6 : ℝ[D] = p.0", "%6 : ℝ[D] = p.2", "has no component 2"),
    ("%6 : ℝ[D] = p.0", "%6 : ℝ[D] = θ.0", "is a tuple, not"),
    ("set_elem 0 p, %6", "set_elem 1 p, %6", "component 1 has type ℝ[], the new value ℝ[D]"),
    ("%12 : (ℝ[D], ℝ[]) = add p, %11", "%12 : (ℝ[D], ℝ[]) = add p, θ", "add does not apply"),
    (
        "%10 : params Linear{D, D} = mul %9, %8",
        "%10 : params Linear{D, D} = max %9, %8",
        "is a real tensor, not params",
    ),
    ("%10 : params Linear{D, D} = mul %9, %8", "%10 : params Linear{D, D} = mul %6, %8", "mul does not apply"),
    ("split_key 2 k", "split_key 3 k", "is declared (key, key), but split_key gives (key, key, key)"),
    ("split_key 2 k", "split_key 2 p", "is a key, not"),
    ("xavier_uniform %14", "xavier_uniform p", "is a key, not"),
    ("normal 0.02 %14", "normal -1 %14", "standard deviation"),
    ("stack_params %17, %10", "stack_params %17", "1 values do not stack"),
    ("= (%17, %12)", "= (%12, %17)", "but tuple gives"),
]

LANGUAGE = [
    ("= max x, y", "= max x, n", "is a real tensor, not nat"),
    ("= max x, y", "= max x, i", "is a real tensor, not idx[D]"),
    ("lt x, y", "lt x, n", "lt does not apply to"),
    ("gt i, i", "gt i, n", "gt does not apply to"),
    ("%9 : bool = ge n, n", "%9 : bool[] = ge n, n", "is declared bool[], but ge gives bool"),
    ("softmax axis model %5\n", "softmax axis seq %5\n", "no axis is named seq"),
    ("softmax axis model %11, %8", "softmax axis model %11, x", "is no mask that broadcasts into"),
    ("softmax axis model %11, %8", "softmax axis model %11, %8, %8", "takes 1 or 2 operands"),
    ("softmax axis model %11, %8", "softmax axis model y, %7", "is no mask that broadcasts into"),
    ("ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, k",
     "ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q", "takes 2 operands, not 1"),
    ("ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, k",
     "ein [batch heads seq hd, batch heads hd seq2 -> batch heads seq seq2] q, k", "has the lengths 4 and T"),
    ("ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, k",
     "ein [batch heads seq hd, batch heads seq2 -> batch heads seq seq2] q, k", "does not have the axes"),
    ("ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, k",
     "ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq2 seq] q, k", "but ein gives"),
    ("%3 : bool[seq: T, seq2: T] = causal_mask", "%3 : bool[seq: T, seq2: 4] = causal_mask", "gives bool[T, T]"),
    ("merge_heads 3x4 %5", "merge_heads 4x3 %5", "are not heads: 4, seq, hd: 3"),
    ("split_heads 3x4 %6", "split_heads 3x5 %6", "are not seq, model: 15"),
    ("embed w, t", "embed w, w", "is an index tensor, not"),
    ("embed_vjp %3, t, w", "embed_vjp %3, t, %3", "is no table of V rows"),
    ("embed_vjp %3, t, w", "embed_vjp w, t, w", "the cotangent is"),
    ("one_hot t", "one_hot w", "is an index tensor, not"),
    ("= cross_entropy %5, t", "= cross_entropy %3, t", "are no choices of"),
    ("cross_entropy_vjp %6, %5, t", "cross_entropy_vjp %5, %5, t", "the cotangent is"),
    ("argmax %7", "argmax %13", "is not defined before"),
    ("sample k, %7", "sample %7, %7", "is a key, not"),
    ("%11 : idx[T][seq: T] = positions", "%11 : idx[V][seq: T] = positions", "positions gives idx[T][T]"),
    ("dropout_mask 0.1 k, %3", "dropout_mask 1 k, %3", "a rate of at least 0 and below 1"),
    ("dropout_mask 0.1 k, %3", "dropout_mask -0.1 k, %3", "a rate of at least 0 and below 1"),
    ("dropout_mask 0.1 k, %3", "dropout_mask 0.1 w, %3", "is a key, not"),
    ("sum_squares %4", "sum_squares t", "does not apply to idx"),
    ("split axis pair left: 2 right: 3 x", "split axis pair left: 2 right: 4 x", "2 times 4 is not 6"),
    ("split axis pair left: 2 right: 3 x", "split axis pair left: D right: T x", "D times T is not 6"),
    ("merge axis left axis right %2", "merge axis right axis left %2", "left does not follow right"),
    ("reshape_like %2, x", "reshape_like t, x", "may differ in their number of entries"),
    ("= index pair: -1 %4", "= index seq: -1 %4", "no axis is named seq"),
    ("= index 0: 2 %9", "= index 2: 2 %9", "has no axis 2"),
    ("scatter_index pair: -1 %5, x", "scatter_index pair: -1 %4, x", "the cotangent is"),
    ("= slice pair: 0..1 %6", "= slice pair: 1..0 %6", "ends before it begins"),
    ("= slice pair: 0..1 %6", "= slice pair: 0..2 %6", "but slice gives"),
    ("slice_vjp pair: 0..1 %7, x", "slice_vjp pair: 0..2 %7, x", "the cotangent is"),
    ("concat pair %7, %8", "concat pair %7, %5", "no axis is named pair"),
    ("concat pair %7, %8", "concat seq %7, %8", "no axis is named seq"),
    ("= slice_params 2 θ", "= slice_params 2 k", "is a stack, not key"),
    ("= slice_params 2 θ", "= slice_params 3 θ", "slice_params: a stack of 3 has no slice 3"),
    ("= slice_params 2 θ", "= slice_params -1 θ", "slice_params: a stack of 3 has no slice -1"),
    ("= slice_params 2 θ", "= slice_params 3+D θ", "slice_params: a stack of 3 has no slice D + 3"),
    ("scatter_params 0 %3, θ", "scatter_params 3 %3, θ", "scatter_params: a stack of 3 has no slice 3"),
    ("set_slice 1 %4, %3", "set_slice 4 %4, %3", "set_slice: a stack of 3 has no slice 4"),
    ("scatter_params 0 %3, θ", "scatter_params 0 θ, θ", "scatter_params: the cotangent has type"),
    ("set_slice 1 %4, %3", "set_slice 1 %4, θ", "set_slice: a slice has type"),
    ("stack_params x, x", "stack_params x, k", "2 values do not stack"),
    ("%12 : key[3] = %9.1", "%12 : key[2] = %9.1", "is declared key[2], but proj gives key[3]"),
    ("set_elem 1 s, %4", "set_elem 1 s, %3", "component 1 has type key"),
    ("split_key 2 %2\n  %4 : key = %3.1\n  %5", "split_key 2 θ\n  %4 : key = %3.1\n  %5", "is a key, not"),
    ("vjp %1", "vjp x", "vjp takes a function of one argument"),
    ("jvp %1", "jvp %2", "jvp takes a function of one argument"),
    ("%2 : (ℝ[D], ℝ[D]) -> ℝ[D] = vjp", "%2 : (ℝ[D], ℝ[D]) -> ℝ[] = vjp", "but vjp gives"),
    ("%3 : (ℝ[D], ℝ[D]) -> ℝ[D] = jvp", "%3 : (ℝ[D], ℝ[]) -> ℝ[D] = jvp", "but jvp gives"),
    ("%3 : (ℝ[D], ℝ[D]) -> ℝ[D] = jvp", "%3 : (ℝ[D]) -> ℝ[D] = jvp", "jvp gives a function of two arguments"),
    ("apply %2(x, x)", "apply %2(x)", "does not take 1 arguments"),
]  # fmt: skip

CALLS = [
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear.apply{In = D}(θ, x)", "the dim Out of Linear.apply is"),
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear.apply{In = D, Out = D, E = D}(θ, x)", "has no dim E"),
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear.apply{In = D, Out = D, In = D}(θ, x)", "is given twice"),
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear.apply{In = D, Out = 2*D}(θ, x)", "the argument has type"),
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear.apply{In = D, Out = D}(θ)", "takes 2 arguments, not 1"),
    ("call Linear.apply{In = D, Out = D}(θ, x)", "call Linear{In = D, Out = D}(θ, x)", "Linear is no function"),
    ("closure loss.lambda0[x]", "closure loss.lambda0[θ]", "the argument has type params"),
    ("closure loss.lambda0[x]", "closure loss.lambda0[]", "but closure loss.lambda0 gives"),
    ("closure loss.lambda0[x]", "closure loss.lambda0[x, θ, θ]", "the closure has 3"),
    ("= grad %2", "= grad θ", "grad takes a function of one argument"),
    ("apply %3(θ)", "apply %3(x)", "the function takes params"),
    ("apply %3(θ)", "apply %3(θ, x)", "does not take 2 arguments"),
    ("apply %3(θ)", "apply θ(θ)", "does not take 1 arguments"),
    ("fold 3 Linear.apply{In = D, Out = D}(stacked layers; acc x)",
     "fold 4 Linear.apply{In = D, Out = D}(stacked layers; acc x)", "is no stack of 4"),
    ("fold 3 Linear.apply{In = D, Out = D}(stacked layers; acc x)",
     "fold 3 Linear.apply{In = D, Out = D}(stacked layers; acc x; x)", "takes 2 arguments, the fold passes 3"),
    ("fold 3 Linear.apply{In = D, Out = D}(stacked layers; acc x)",
     "fold 3 loss{D = D, T = T}(stacked layers; acc x)", "gives ℝ[], the accumulator is"),
    ("fold 3 Linear.apply{In = D, Out = D}(stacked layers; acc x)",
     "fold -3 Linear.apply{In = D, Out = D}(stacked layers; acc x)", "the count of a fold is a natural number, not -3"),
    ("reverse scan", "reverse", "but fold with_extra gives ℝ[seq: T, D]"),
    ("call Linear.apply{In = D, Out = D}(extra, x)", "call with_extra{D = D}(extra, x, extra)", "reaches itself"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), [*NAMES, *MODULES, *STACKS, *OPERATIONS, *LANGUAGE, *CALLS])
def test_catches(old: str, new: str, says: str) -> None:
    found = broken(old, new)
    assert any(says in text for text in found), found


# ------------------------------------------------------------------------------- every binding, broken in every way

Mutation = Callable[[Binding, Program], Iterator[Binding]]


def _with_op(b: Binding, op: Op) -> Binding:
    return replace(b, op=op)


def other_operands(b: Binding, program: Program) -> Iterator[Binding]:
    """Too few or too many operands, where their number is fixed."""
    if isinstance(b.op, Prim) and PRIMS[b.op.op].arity is not None:
        if b.op.args:
            yield _with_op(b, replace(b.op, args=b.op.args[:-1]))
        yield _with_op(b, replace(b.op, args=(*b.op.args, "x")))


def undefined_operands(b: Binding, program: Program) -> Iterator[Binding]:
    for i in range(len(operands(b.op))):
        yield _with_op(b, with_operands(b.op, tuple("nowhere" if j == i else v for j, v in enumerate(operands(b.op)))))


def other_attributes(b: Binding, program: Program) -> Iterator[Binding]:
    """Attributes of another kind, one too many, one too few where none may be missing."""
    if not isinstance(b.op, Prim):
        return
    kinds = PRIMS[b.op.op].attrs
    yield _with_op(b, replace(b.op, attrs=(*b.op.attrs, "a", "b")))
    if b.op.attrs and kinds[-1] != "axis?":
        yield _with_op(b, replace(b.op, attrs=b.op.attrs[:-1]))
    if b.op.attrs:
        for wrong in ("", -1, Fraction(1, 2), symbol("elsewhere"), True):
            if not (isinstance(wrong, Fraction) and "rational" in kinds):
                yield _with_op(b, replace(b.op, attrs=(*b.op.attrs[:-1], wrong)))


def other_types(b: Binding, program: Program) -> Iterator[Binding]:
    """A declared type that the operation does not have, where the type does not decide it."""
    decides = {"zeros", "ones", "const", "dim", "normal", "xavier_uniform"}
    wrong: list[Type] = [Key(), Hyper("bool"), TupleOf((b.type,))]
    if not (isinstance(b.op, Prim) and b.op.op in decides):
        wrong.append(_longer(b.type))
    for ty in wrong:
        if ty != b.type:
            yield replace(b, type=ty)


def _longer(ty: Type) -> Type:
    match ty:
        case Real(shape):
            return Real(Shape(shape.prefix, (*shape.axes, Axis(None, constant(7)))))
        case _:
            return SCALAR_REAL


def other_names(b: Binding, program: Program) -> Iterator[Binding]:
    if isinstance(b.op, Prim) and b.op.args:
        yield replace(b, name=b.op.args[0])


def other_primitives(b: Binding, program: Program) -> Iterator[Binding]:
    if isinstance(b.op, Prim):
        yield _with_op(b, replace(b.op, op="nothing"))


def _every_breakage(program: Program, mutation: Mutation) -> Iterator[tuple[str, Program]]:
    for f in program.functions.values():
        needed = {g.name: g for g in reached(program, f.name)}
        for i, b in enumerate(f.bindings):
            for worse in mutation(b, program):
                changed: Function = replace(f, bindings=(*f.bindings[:i], worse, *f.bindings[i + 1 :]))
                yield f"{f.name}: {worse}", replace(program, functions={**needed, f.name: changed})


@pytest.mark.parametrize(
    "mutation",
    [other_operands, undefined_operands, other_attributes, other_types, other_names, other_primitives],
)
def test_catches_every_mutation(mutation: Mutation) -> None:
    tried = 0
    for what, program in _every_breakage(parsed(ZOO), mutation):
        tried += 1
        assert problems(program), what
    assert tried > 30


def test_keys_of_the_tables_are_the_names() -> None:
    program = parsed(ZOO)
    functions = {("renamed" if n == "loss" else n): f for n, f in program.functions.items()}
    assert any("is listed as renamed" in p for p in problems(replace(program, functions=functions)))
    modules = {("Other" if n == "Tower" else n): m for n, m in program.modules.items()}
    assert any("is listed as Other" in p for p in problems(replace(program, modules=modules)))


def test_axis_names_may_be_absent_but_not_differ() -> None:
    assert problems(parsed(ZOO.replace("%3 : ℝ[..., D] = exp %2", "%3 : ℝ[..., any: D] = exp %2"))) == []
    found = broken("%9 : ℝ[..., model: D] = neg %8", "%9 : ℝ[..., seq: D] = neg %8")
    assert any("is declared ℝ[..., seq: D], but neg gives ℝ[..., model: D]" in p for p in found)
