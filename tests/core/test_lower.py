"""Lowering: what a typed program becomes (spec: "What lowering does")."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.core.lower import Mode, lower
from presk_rel.core.printer import print_function, print_program
from presk_rel.core.reader import read_program
from presk_rel.core.verify import problems
from presk_rel.diagnostics import NOWHERE, Diagnostics
from presk_rel.elab.ty import Function, Hyper, Key, ModuleDef, Params, Stacked, TupleOf, UseField
from presk_rel.smt.linear import Linear, constant, symbol
from presk_rel.types.tree import (
    PTuple,
    PVar,
    TApply,
    TCall,
    TDim,
    TExpr,
    TField,
    TFn,
    TJvp,
    TLambda,
    TLet,
    TStackCall,
    TTheta,
    TTuple,
    TVjp,
    TypedProgram,
)
from tests.core.typed import LINEAR, D, binder, fn, let, literal, mlp, params, prim, program, real, var

VEC = real(D)
SPEC_APPLY = """\
fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In]) -> ℝ[..., Out] {
  w : ℝ[In, Out] = θ.w
  %3 : ℝ[..., Out] = dot x, w
  b : ℝ[Out] = θ.b
  %5 : ℝ[..., Out] = add %3, b
  return %5
}"""
SPEC_GRAD = """\
  %3 : (params MLP{D, 4*D}) -> ℝ[] = closure mse_grad.lambda0[x, y]
  %4 : (params MLP{D, 4*D}) -> params MLP{D, 4*D} = grad %3
  %5 : params MLP{D, 4*D} = apply %4(θ)
  return %5
}"""


def lowered(typed: TypedProgram) -> Program:
    """Lowered, verified, and the same when printed and read."""
    out = lower(typed)
    assert problems(out) == []
    diagnostics = Diagnostics()
    assert read_program(print_program(out), "t.core", diagnostics) == out
    return out


def body_of(out: Program, name: str) -> list[str]:
    """The lines between the braces of a function."""
    return [line.strip() for line in print_function(out.functions[name], out).splitlines()[1:-1]]


def lines(body: TExpr, *binders: object, dims: tuple[str, ...] = ("D",)) -> list[str]:
    """The body of `fn f{D}(binders) = body`."""
    return body_of(lowered(program(fn("f", dims, binders, body))), "f")  # type: ignore[arg-type]


def lambda_(param: object, body: TExpr, pattern: object = None) -> TLambda:
    ty = Function((param.type,), body.type)  # type: ignore[attr-defined]
    return TLambda(param, pattern or PVar(param), body, ty, NOWHERE)  # type: ignore[arg-type]


class TestThePerceptron:
    def test_is_what_the_specification_prints(self) -> None:
        out = lowered(mlp())
        assert print_function(out.functions["Linear.apply"], out) == SPEC_APPLY
        header, *rest = print_function(out.functions["mse"], out).splitlines()
        assert header == (
            "fn mse{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D]) -> ℝ[] {"
        )
        assert rest[0] == "  ŷ : ℝ[batch: B, D] = call MLP.apply{D = D, hidden = 4*D}(θ, x)"
        assert print_function(out.functions["mse_grad"], out).endswith(SPEC_GRAD)

    def test_reads_a_parameter_tree_just_before_its_call(self) -> None:
        assert body_of(lowered(mlp()), "MLP.apply") == [
            "l1 : params Linear{D, hidden} = θ.l1",
            "%3 : ℝ[..., hidden] = call Linear.apply{In = D, Out = hidden}(l1, x)",
            "%4 : ℝ[..., hidden] = gelu %3",
            "l2 : params Linear{hidden, D} = θ.l2",
            "%6 : ℝ[..., D] = call Linear.apply{In = hidden, Out = D}(l2, %4)",
            "return %6",
        ]

    def test_lists_functions_with_their_lambdas_then_initializers(self) -> None:
        assert list(lowered(mlp()).functions) == [
            "Linear.apply", "MLP.apply", "mse", "mse_grad", "mse_grad.lambda0", "Linear.init", "MLP.init",
        ]  # fmt: skip


class TestNames:
    def test_a_name_bound_again_gets_its_number(self) -> None:
        x, again, third = binder(0, "x", VEC), binder(1, "x", VEC), binder(2, "x", VEC)
        body = let(again, prim("neg", VEC, var(x)), let(third, prim("exp", VEC, var(again)), var(third)))
        assert lines(body, x) == ["x%1 : ℝ[D] = neg x", "x%2 : ℝ[D] = exp x%1", "return x%2"]

    def test_an_alias_binds_nothing(self) -> None:
        x, y = binder(0, "x", VEC), binder(1, "y", VEC)
        assert lines(let(y, var(x), prim("neg", VEC, var(y))), x) == ["%1 : ℝ[D] = neg x", "return %1"]

    def test_equal_subexpressions_are_not_merged(self) -> None:
        x = binder(0, "x", VEC)
        one = prim("exp", VEC, var(x))
        assert lines(prim("add", VEC, one, one), x) == [
            "%1 : ℝ[D] = exp x",
            "%2 : ℝ[D] = exp x",
            "%3 : ℝ[D] = add %1, %2",
            "return %3",
        ]

    def test_tuple_patterns_project(self) -> None:
        key = binder(0, "k", Key())
        k1, k2 = binder(1, "k1", Key()), binder(2, "k", Key())
        pair = TupleOf((Key(), Key()))
        split = prim("split_key", pair, var(key), attrs=(2,))
        body = TLet(PTuple((PVar(k1), None)), split, var(k1), Key(), NOWHERE)
        assert lines(body, key) == ["%1 : (key, key) = split_key 2 k", "k1 : key = %1.0", "return k1"]
        nested = TupleOf((pair, VEC))
        whole = binder(3, "p", nested)
        pattern = PTuple((PTuple((None, PVar(k2))), None))
        assert lines(TLet(pattern, var(whole), var(k2), Key(), NOWHERE), whole) == [
            "%1 : (key, key) = p.0",
            "k : key = %1.1",
            "return k",
        ]

    def test_literals_are_constants_of_their_type(self) -> None:
        n = binder(0, "n", Hyper("nat"))
        body = prim(
            "add",
            Hyper("nat"),
            var(n),
            prim("mul", Hyper("nat"), literal(3, Hyper("nat")), TDim(D, Hyper("nat"), NOWHERE)),
        )
        assert lines(body, n) == [
            "%1 : nat = const 3",
            "%2 : nat = dim D",
            "%3 : nat = mul %1, %2",
            "%4 : nat = add n, %3",
            "return %4",
        ]


class TestLambdas:
    def test_capture_free_variables_in_order_of_first_use(self) -> None:
        x, y, a = binder(0, "x", VEC), binder(1, "y", VEC), binder(2, "a", VEC)
        inner = prim("add", VEC, prim("mul", VEC, var(y), var(a)), prim("sub", VEC, var(x), var(y)))
        out = lowered(program(fn("f", ("D",), (x, y), TApply(lambda_(a, inner), (var(x),), VEC, NOWHERE))))
        assert body_of(out, "f")[0] == "%2 : (ℝ[D]) -> ℝ[D] = closure f.lambda0[y, x]"
        assert [p.name for p in out.functions["f.lambda0"].params] == ["y", "x", "a"]

    def test_capture_what_a_name_stands_for_where_they_stand(self) -> None:
        x, again, a = binder(0, "x", VEC), binder(1, "x", VEC), binder(2, "x", VEC)
        function = lambda_(a, prim("add", VEC, var(a), var(again)))
        body = let(again, prim("neg", VEC, var(x)), TApply(function, (var(x),), VEC, NOWHERE))
        out = lowered(program(fn("f", ("D",), (x,), body)))
        assert body_of(out, "f")[1] == "%2 : (ℝ[D]) -> ℝ[D] = closure f.lambda0[x%1]"
        assert [p.name for p in out.functions["f.lambda0"].params] == ["x", "x%1"]

    def test_nest(self) -> None:
        x, a, b = binder(0, "x", VEC), binder(1, "a", VEC), binder(2, "b", VEC)
        inner = lambda_(b, prim("add", VEC, prim("mul", VEC, var(a), var(b)), var(x)))
        outer = lambda_(a, TApply(inner, (var(a),), VEC, NOWHERE))
        out = lowered(program(fn("f", ("D",), (x,), TApply(outer, (var(x),), VEC, NOWHERE))))
        assert list(out.functions) == ["f", "f.lambda0", "f.lambda0.lambda0"]
        assert body_of(out, "f.lambda0")[0] == "%2 : (ℝ[D]) -> ℝ[D] = closure f.lambda0.lambda0[a, x]"

    def test_take_a_tuple_apart(self) -> None:
        pair = TupleOf((VEC, VEC))
        p, a, b = binder(0, "(a, b)", pair), binder(1, "a", VEC), binder(2, "b", VEC)
        x = binder(3, "x", VEC)
        function = lambda_(p, prim("add", VEC, var(a), var(b)), PTuple((PVar(a), PVar(b))))
        argument = TTuple((var(x), var(x)), pair, NOWHERE)
        out = lowered(program(fn("f", ("D",), (x,), TApply(function, (argument,), VEC, NOWHERE))))
        assert body_of(out, "f.lambda0") == ["a : ℝ[D] = %0.0", "b : ℝ[D] = %0.1", "%3 : ℝ[D] = add a, b", "return %3"]

    def test_capture_the_parameter_tree(self) -> None:
        theta = params("Linear", D, D)
        x, a = binder(0, "x", VEC), binder(1, "a", VEC)
        w = TField(TTheta(theta, NOWHERE), "w", real(D, D), NOWHERE)
        body = TApply(lambda_(a, prim("dot", VEC, var(a), w)), (var(x),), VEC, NOWHERE)
        member = TFn("Linear.twice", ("D",), theta, (x,), VEC, (), body, NOWHERE, NOWHERE)
        out = lowered(program(member, modules={"Linear": LINEAR}))
        assert body_of(out, "Linear.twice")[0] == "%2 : (ℝ[D]) -> ℝ[D] = closure Linear.twice.lambda0[θ]"
        assert [p.name for p in out.functions["Linear.twice.lambda0"].params] == ["θ", "a"]


class TestStacks:
    def test_a_stacked_call_is_a_fold(self) -> None:
        length = symbol("L")
        square = ModuleDef("Sq", ("D",), 1, LINEAR.fields[:0])
        tower = ModuleDef("Tower", ("D", "L"), 2, (UseField("layers", Stacked(length, params("Sq", D).instance)),))
        x, h = binder(0, "x", VEC), binder(0, "h", VEC)
        layer = fn("Sq.apply", ("D",), (x, binder(1, "s", VEC)), prim("neg", VEC, var(x)), params("Sq", D))
        theta = params("Tower", D, length)
        stack = TField(TTheta(theta, NOWHERE), "layers", Params(Stacked(length, params("Sq", D).instance)), NOWHERE)
        call = TStackCall(length, "Sq.apply", (("D", D),), stack, prim("exp", VEC, var(h)), (var(h),), VEC, NOWHERE)
        whole = fn("Tower.apply", ("D", "L"), (h,), call, theta)
        out = lowered(program(layer, whole, modules={"Sq": square, "Tower": tower}))
        assert body_of(out, "Tower.apply") == [
            "%2 : ℝ[D] = exp h",
            "layers : params stack{L}(Sq{D}) = θ.layers",
            "%4 : ℝ[D] = fold L Sq.apply(stacked layers; acc %2; h)",
            "return %4",
        ]

    def test_unrolled_it_is_one_call_per_layer(self) -> None:
        for count, unrolls in ((constant(2), True), (constant(0), True), (symbol("L"), False)):
            out = lower(tower(count), unroll_stack=True)
            assert problems(out) == []
            layers = f"layers : params stack{{{count}}}(Sq{{D}}) = θ.layers"
            body = body_of(out, "Tower.apply")
            if not unrolls:
                assert "fold L Sq.apply(stacked layers; acc h)" in body[1]
            elif count == constant(0):
                assert body == [layers, "return h"]
            else:
                assert body == [
                    layers,
                    "%3 : params Sq{D} = slice_params 0 layers",
                    "%4 : ℝ[D] = call Sq.apply{D = D}(%3, h)",
                    "%5 : params Sq{D} = slice_params 1 layers",
                    "%6 : ℝ[D] = call Sq.apply{D = D}(%5, %4)",
                    "return %6",
                ]


def tower(count: Linear) -> TypedProgram:
    """A module with a stack of `count` layers, each of which squares."""
    square = ModuleDef("Sq", ("D",), 1, LINEAR.fields[:0])
    stacked = Stacked(count, params("Sq", D).instance)
    whole = ModuleDef("Tower", ("D", "L"), 2, (UseField("layers", stacked),))
    x, h = binder(0, "x", VEC), binder(0, "h", VEC)
    layer = fn("Sq.apply", ("D",), (x,), prim("mul", VEC, var(x), var(x)), params("Sq", D))
    theta = params("Tower", D, symbol("L"))
    tree = TField(TTheta(theta, NOWHERE), "layers", Params(stacked), NOWHERE)
    call = TStackCall(count, "Sq.apply", (("D", D),), tree, var(h), (), VEC, NOWHERE)
    return program(layer, fn("Tower.apply", ("D", "L"), (h,), call, theta), modules={"Sq": square, "Tower": whole})


class TestReadings:
    """`dropout(rate, key, x)` outside a training run, and in one."""

    def dropped(self, mode: Mode) -> list[str]:
        x, k = binder(0, "x", VEC), binder(1, "k", Key())
        pair = prim("split_key", TupleOf((Key(), Key())), var(k), attrs=(2,))
        second = prim("proj", Key(), pair, attrs=(1,))
        rate = Fraction(1, 10)
        h = binder(2, "h", VEC)
        body = let(h, prim("dropout", VEC, second, prim("gelu", VEC, var(x)), attrs=(rate,)), var(h))
        out = lower(program(fn("f", ("D",), (x, k), body)), mode)
        assert problems(out) == []
        return body_of(out, "f")

    def test_in_training_is_a_product_with_its_mask(self) -> None:
        assert self.dropped("training") == [
            "%2 : (key, key) = split_key 2 k",
            "%3 : key = %2.1",
            "%4 : ℝ[D] = gelu x",
            "%5 : ℝ[D] = dropout_mask 0.1 %3, %4",
            "h : ℝ[D] = mul %4, %5",
            "return h",
        ]

    def test_in_inference_is_what_it_drops_from(self) -> None:
        assert self.dropped("inference") == ["h : ℝ[D] = gelu x", "return h"]


class TestDerivatives:
    def test_are_operations_on_function_values(self) -> None:
        x, a = binder(0, "x", VEC), binder(1, "a", VEC)
        function = lambda_(a, prim("exp", VEC, var(a)))
        for node, word in ((TVjp, "vjp"), (TJvp, "jvp")):
            derivative = node(function, Function((VEC, VEC), VEC), NOWHERE)
            assert lines(TApply(derivative, (var(x), var(x)), VEC, NOWHERE), x) == [
                "%1 : (ℝ[D]) -> ℝ[D] = closure f.lambda0[]",
                f"%2 : (ℝ[D], ℝ[D]) -> ℝ[D] = {word} %1",
                "%3 : ℝ[D] = apply %2(x, x)",
                "return %3",
            ]


class TestSize:
    def test_long_chains_lower_without_recursion(self) -> None:
        n = 10_000
        x = binder(0, "x", VEC)
        names = [binder(i + 1, "x", VEC) for i in range(n)]
        body: TExpr = var(names[-1])
        for i in reversed(range(n)):
            body = let(names[i], prim("neg", VEC, var(names[i - 1] if i else x)), body)
        out = lower(program(fn("f", ("D",), (x,), body)))
        assert len(out.functions["f"].bindings) == n
        assert problems(out) == []
        assert len(inline_entry(out, "f").functions["f"].bindings) == n

    def test_deep_expressions_lower_without_recursion(self) -> None:
        x = binder(0, "x", VEC)
        left: TExpr = var(x)
        calls: TExpr = var(x)
        for _ in range(10_000):
            left = prim("add", VEC, left, var(x))
            calls = TCall("g", (("D", D),), (calls,), VEC, NOWHERE)
        g = fn("g", ("D",), (binder(1, "y", VEC),), prim("neg", VEC, var(binder(1, "y", VEC))))
        out = lower(program(g, fn("f", ("D",), (x,), left), fn("h", ("D",), (x,), calls)))
        assert len(out.functions["f"].bindings) == len(out.functions["h"].bindings) == 10_000
        assert len(inline_entry(out, "h").functions["h"].bindings) == 10_000
