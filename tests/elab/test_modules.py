"""Spec, "Modules", "Modules and instances", "Initializers"."""

from __future__ import annotations

import pytest

from presk_rel.elab.ty import Applied, leaves
from presk_rel.smt.linear import constant
from tests.types.programs import LINEAR, accepted, check


def tree(text: str, name: str, *args: int) -> list[str]:
    program = accepted(text).program
    assert program is not None
    instance = Applied(name, tuple(constant(a) for a in args))
    return [f"{path} : {ty}" for path, ty in leaves(program.modules, instance)]


MLP = LINEAR + "module MLP{D, hidden : dim} {\n  use l1 : Linear{D, hidden}\n  use l2 : Linear{hidden, D}\n}\n"


def test_a_parameter_tree_substitutes_through_its_uses() -> None:
    assert tree(MLP, "MLP", 3, 5) == ["l1.w : ℝ[3, 5]", "l1.b : ℝ[5]", "l2.w : ℝ[5, 3]", "l2.b : ℝ[3]"]


def test_several_names_share_a_declaration() -> None:
    assert tree("module M{D : dim} {\n  param a, b : ℝ[D]\n}\n", "M", 2) == ["a : ℝ[2]", "b : ℝ[2]"]


def test_param_t_is_t() -> None:
    assert tree("module M {\n  param w : param ℝ[2]\n}\n", "M") == ["w : ℝ[2]"]


def test_a_stack_puts_its_axis_before_every_parameter() -> None:
    text = MLP + "module Deep{D : dim} {\n  use blocks : stack{6}(MLP{D, 4*D})\n}\n"
    assert tree(text, "Deep", 2)[0] == "blocks.l1.w : ℝ[6, 2, 8]"


def test_a_composition_has_the_fields_outer_and_inner() -> None:
    text = LINEAR + "module M{D : dim} {\n  use net : Linear{D, 1} ∘ Linear{2, D}\n}\n"
    assert tree(text, "M", 5) == [
        "net.outer.w : ℝ[5, 1]", "net.outer.b : ℝ[1]", "net.inner.w : ℝ[2, 5]", "net.inner.b : ℝ[5]"
    ]  # fmt: skip


def test_a_file_dim_that_a_tree_mentions_becomes_a_trailing_dim_of_the_module() -> None:
    text = (
        "dim T\nmodule Pos{D : dim} {\n  param pos : ℝ[T, D]\n}\nmodule M {\n  use p : Pos{8}\n}\n"
        "fn f(θ : params M) -> ℝ[T, 8] = θ.p.pos\n"
    )
    checked = accepted(text)
    assert checked.program is not None
    modules = checked.program.modules
    assert (modules["Pos"].dims, modules["Pos"].explicit) == (("D", "T"), 1)
    assert (modules["M"].dims, modules["M"].explicit) == (("T",), 0)
    assert str(checked.fn("f").params[0].type) == "params M{T}"


@pytest.mark.parametrize(
    "use", ["Linear{2}", "Linear", "Linear{1, 2, 3}", "stack(Linear{1, 1})", "Linear{1, 1}(Linear{1, 1})"]
)
def test_arity_is_checked(use: str) -> None:
    assert check(LINEAR + f"module M {{\n  use l : {use}\n}}\n").codes == ["E1031"]


def test_a_use_names_a_module() -> None:
    assert check("const D = 1\nmodule M {\n  use l : D\n}\n").codes == ["E1035"]


def test_modules_may_be_declared_in_any_order() -> None:
    accepted("module A {\n  use b : B\n}\nmodule B {\n  param w : ℝ[1]\n}\n")


def test_a_module_that_includes_itself_is_refused_with_the_path() -> None:
    checked = check(
        "module A {\n  use b : B\n}\nmodule B {\n  use a : stack{2}(A)\n}\nfn f(θ : params A) -> ℝ[] = 1.0\n"
    )
    assert checked.codes == ["E2016"]
    assert "`A` → `B` → `A`" in checked.only.message


def test_an_alias_that_mentions_itself_is_refused() -> None:
    assert check("type A = (B, key)\ntype B = (A, key)\nfn f(x : A) -> ℝ[] = 1.0\n").codes == ["E2016"]


def test_a_long_chain_of_modules_in_any_order_is_no_trouble() -> None:
    links = [f"module M{i} {{\n  use m : M{i + 1}\n}}\n" for i in range(90)]
    accepted("".join(links) + "module M90 {\n  param w : ℝ[1]\n}\n")


def test_a_parameter_tree_too_large_to_walk_is_refused() -> None:
    links = [f"module M{i} {{\n  use a, b : M{i + 1}\n}}\n" for i in range(60)]
    checked = check("".join(links) + "module M60 {\n  param w : ℝ[1]\n}\n")
    assert set(checked.codes) == {"E9002"}


@pytest.mark.parametrize("ty", ["nat", "idx[3][2]", "(ℝ[1], ℝ[1])", "key"])
def test_parameters_are_real_tensors(ty: str) -> None:
    assert check(f"module M {{\n  param w : {ty}\n}}\n").codes == ["E1036"]


def test_parameters_have_known_axes() -> None:
    assert check("module M {\n  param w : ℝ[..., 3]\n}\n").codes == ["E1032"]


def test_a_name_may_be_an_axis_only_once() -> None:
    checked = check("fn f(x : ℝ[seq: 2, seq: 2]) -> ℝ[] = sum(x)\n")
    assert checked.codes == ["E1033"]


def test_a_prefix_stands_first() -> None:
    assert check("fn f(x : ℝ[2, ...]) -> ℝ[] = sum(x)\n").codes == ["E1032"]


@pytest.mark.parametrize("init", ["zeros", "ones", "xavier_uniform", "normal(std = 0.02)", "normal(std = 1)"])
def test_the_four_initializers(init: str) -> None:
    program = accepted(f"module M {{\n  param w : ℝ[2]  init = {init}\n}}\n").program
    assert program is not None
    field = program.modules["M"].fields[0]
    assert str(field.init) == init  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "init", ["orthogonal", "normal", "normal(0.02)", "normal(std = D)", "normal(mean = 0.1)", "0.5", "zeros(3)"]
)
def test_anything_else_is_no_initializer(init: str) -> None:
    checked = check(f"const D = 1\nmodule M {{\n  param w : ℝ[2]  init = {init}\n}}\n")
    assert "E2013" in checked.codes, checked.said()


def test_a_model_declaration_is_a_name_for_an_instance() -> None:
    text = LINEAR + (
        "model Net = Linear{4, 2} ∘ Linear{3, 4}\n"
        "fn f(θ : params Net, x : ℝ[batch: 5, 3]) -> ℝ[batch: 5, 2] = Net.apply(θ, x)\n"
    )
    assert accepted(text).result("f") == "ℝ[batch: 5, 2]"


def test_types_name_types() -> None:
    assert check("const D = 1\nfn f(x : D) -> ℝ[] = 1.0\n").codes == ["E1034"]
    assert check("type A = ℝ[2]\nfn f(x : A{3}) -> ℝ[] = 1.0\n").codes == ["E1031"]


def test_a_module_in_a_dimension_position_is_no_inclusion() -> None:
    assert check(
        "module M{D : dim} {\n  param w : ℝ[M]\n}\nfn f(θ : params N) -> ℝ[] = sum(θ.w)\nmodel N = M{3}\n"
    ).codes == ["E1026"]
