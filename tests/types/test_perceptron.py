"""The typed tree of mlp.psk (spec: "PSK-Core", the excerpt)."""

from __future__ import annotations

from pathlib import Path

from presk_rel.elab.ty import Real
from presk_rel.types.tree import PVar, TApply, TCall, TField, TGrad, TLambda, TLet, TPrim, TTheta, TVar
from tests.types.programs import Checked, accepted

MLP = (Path(__file__).parents[2] / "examples" / "mlp.psk").read_text(encoding="utf-8")


def mlp() -> Checked:
    return accepted(MLP)


def test_functions_come_in_source_order_with_unique_names() -> None:
    program = mlp().program
    assert program is not None
    assert [f.name for f in program.functions] == ["Linear.apply", "MLP.apply", "mse", "mse_grad"]
    assert list(program.modules) == ["Linear", "MLP"]


def test_dims_are_type_parameters_then_file_dims() -> None:
    checked = mlp()
    assert checked.fn("Linear.apply").dims == ("In", "Out")
    assert checked.fn("mse").dims == ("D", "B")


def test_a_member_function_has_its_parameter_tree_and_a_file_function_none() -> None:
    checked = mlp()
    assert str(checked.fn("MLP.apply").theta) == "params MLP{D, hidden}"
    assert checked.fn("mse").theta is None


def test_module_typed_parameters_are_gone() -> None:
    assert [(b.name, str(b.type)) for b in mlp().fn("mse").params] == [
        ("θ", "params MLP{D, 4*D}"),
        ("x", "ℝ[batch: B, model: D]"),
        ("y", "ℝ[batch: B, model: D]"),
    ]


def test_a_body_of_operators() -> None:
    body = mlp().fn("Linear.apply").body
    assert isinstance(body, TPrim) and body.op == "add" and str(body.type) == "ℝ[..., Out]"
    dot, b = body.args
    assert isinstance(dot, TPrim) and dot.op == "dot"
    assert isinstance(b, TField) and b.name == "b" and isinstance(b.base, TTheta)


def test_a_pipeline_is_calls_and_dims_are_instantiated() -> None:
    outer = mlp().fn("MLP.apply").body
    assert isinstance(outer, TCall) and outer.fn == "Linear.apply"
    assert [(n, str(d)) for n, d in outer.dim_args] == [("In", "hidden"), ("Out", "D")]
    theta, gelu = outer.args
    assert isinstance(theta, TField) and (theta.name, str(theta.type)) == ("l2", "params Linear{hidden, D}")
    assert isinstance(gelu, TPrim) and gelu.op == "gelu" and str(gelu.type) == "ℝ[..., hidden]"


def test_the_callees_prefix_takes_the_axes_of_the_argument() -> None:
    body = mlp().fn("mse").body
    assert isinstance(body, TLet) and isinstance(body.value, TCall)
    assert str(body.value.type) == "ℝ[batch: B, D]"
    assert [(n, str(d)) for n, d in body.value.dim_args] == [("D", "D"), ("hidden", "4*D")]
    assert isinstance(body.pattern, PVar) and body.pattern.binder.name == "ŷ"
    mean = body.body
    assert isinstance(mean, TPrim) and isinstance(mean.type, Real) and mean.type.shape.is_scalar


def test_grad_of_a_lambda_applied() -> None:
    body = mlp().fn("mse_grad").body
    assert isinstance(body, TApply) and isinstance(body.fn, TGrad) and isinstance(body.fn.fn, TLambda)
    assert str(body.fn.type) == "(params MLP{D, 4*D}) -> params MLP{D, 4*D}"
    call = body.fn.fn.body
    assert isinstance(call, TCall) and call.fn == "mse"
    assert [type(a) for a in call.args] == [TVar, TVar, TVar]
    assert call.args[0].binder is body.fn.fn.param or call.args[0].binder == body.fn.fn.param  # type: ignore[union-attr]
