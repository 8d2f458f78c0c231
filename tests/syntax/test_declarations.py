"""Spec "Program structure", "Modules", "Functions", "Configuration blocks": each declaration and its tree."""

from __future__ import annotations

import pytest

from presk_rel.syntax import ast
from presk_rel.syntax.ast import Ident, Name, NamedType, Nat
from presk_rel.syntax.parser import parse
from presk_rel.syntax.printer import print_file


def read(text: str) -> ast.Decl:
    result = parse(text, "t.psk")
    assert result.diagnostics == []
    [decl] = result.file.decls
    return decl


nat = NamedType(Name("nat"), None)
T = NamedType(Name("T"), None)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('import "../mlp.psk" as ff', ast.Import(ast.Str("../mlp.psk"), Ident("ff"))),
        ("const D : nat = 768", ast.Const(Ident("D"), nat, Nat("768"))),
        ("const HD = D / H", ast.Const(Ident("HD"), None, ast.Binary("/", Name("D"), Name("H")))),
        ("static assert D == 0", ast.StaticAssert(ast.Binary("==", Name("D"), Nat("0")))),
        ("dim B", ast.Dim(Ident("B"), None)),
        ("dim T <= 1024", ast.Dim(Ident("T"), Nat("1024"))),
        ("type Acts = T", ast.TypeAlias(Ident("Acts"), T)),
        ("effect Rand", ast.Effect(Ident("Rand"))),
        ("model GPT = A", ast.Model(Ident("GPT"), ast.ModuleRef(Name("A"), (), ()))),
    ],
)
def test_one_line_declarations(text: str, tree: ast.Decl) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{In Out : dim}", [("In", "dim"), ("Out", "dim")]),
        ("{D, hidden : dim}", [("D", "dim"), ("hidden", "dim")]),
        ("{D : dim, hidden : dim}", [("D", "dim"), ("hidden", "dim")]),
        ("{S : Shape}", [("S", "Shape")]),
        (
            "{A B, C : dim, S : Shape, D : dim}",
            [("A", "dim"), ("B", "dim"), ("C", "dim"), ("S", "Shape"), ("D", "dim")],
        ),
        ("", []),
    ],
)
def test_type_parameters(written: str, expected: list[tuple[str, str]]) -> None:
    for text in (f"module M{written} {{\n}}\n", f"fn f{written}(x) = x\n"):
        decl = read(text)
        assert isinstance(decl, ast.Module | ast.Fn)
        assert [(p.name.text, p.kind) for p in decl.type_params] == expected


def test_members_of_a_module() -> None:
    module = read("""
module M {
  param a, b : param ℝ  init = normal(std = 0.02)
  param c : T
  use d, e : stack{2}(N)
  fn f(x) = x
}
""")
    assert isinstance(module, ast.Module)
    first, second, use, fn = module.members
    assert isinstance(first, ast.Param) and isinstance(second, ast.Param)
    assert (first.names, first.type) == ((Ident("a"), Ident("b")), ast.RealType(()))
    assert isinstance(first.init, ast.Call) and second.init is None
    inner = ast.ModuleRef(Name("N"), (), ())
    assert use == ast.Use((Ident("d"), Ident("e")), ast.ModuleRef(Name("stack"), (Nat("2"),), (inner,)))
    assert fn == ast.Fn(Ident("f"), (), (ast.FnParam(False, Ident("x"), None, None),), None, (), Name("x"))


def test_one_param_of_a_parameter_s_type_is_its_own() -> None:
    for text in ("param w : param T", "param w : T"):
        assert read(f"module M {{\n  {text}\n}}\n") == ast.Module(Ident("M"), (), (ast.Param((Ident("w"),), T, None),))


def test_a_function_with_everything() -> None:
    text = "fn f{D : dim}(axis a, x : T, n : nat = 1, y = 2) -> T uses Rand, IO = x"
    assert read(text) == ast.Fn(
        Ident("f"),
        (ast.TypeParam(Ident("D"), "dim"),),
        (
            ast.FnParam(True, Ident("a"), None, None),
            ast.FnParam(False, Ident("x"), T, None),
            ast.FnParam(False, Ident("n"), nat, Nat("1")),
            ast.FnParam(False, Ident("y"), None, Nat("2")),
        ),
        T,
        (Ident("Rand"), Ident("IO")),
        Name("x"),
    )


def test_configuration_blocks() -> None:
    config = read("""
inference serve {
  lr        : f64 = 3e-4
  schedule  : cosine(warmup = 2000)
  optimizer = adamw
  target    = gpu(sm_90)
            | cpu(avx512)
  checkpoint every 10*n steps to "ckpt/"
  checkpoint = every
}
""")
    assert isinstance(config, ast.Config) and (config.kind, config.name) == ("inference", Ident("serve"))
    lr, schedule, optimizer, target, checkpoint, field = config.items
    assert lr == ast.ConfigField(Ident("lr"), NamedType(Name("f64"), None), ast.Decimal("3e-4"))
    assert isinstance(schedule, ast.ConfigField) and schedule.type is None and isinstance(schedule.value, ast.Call)
    assert optimizer == ast.ConfigField(Ident("optimizer"), None, Name("adamw"))
    assert isinstance(target, ast.ConfigField) and isinstance(target.value, ast.Binary) and target.value.op == "|"
    assert checkpoint == ast.Checkpoint(ast.Binary("*", Nat("10"), Name("n")), ast.Str("ckpt/"))
    assert field == ast.ConfigField(Ident("checkpoint"), None, Name("every"))


def test_a_colon_and_an_equals_sign_give_the_same_field() -> None:
    assert read("optimizer a {\n  s : f(w = 1)\n}\n") == read("optimizer a {\n  s = f(w = 1)\n}\n")


def test_a_printed_file() -> None:
    text = """\
import "a.psk" as a

const D : nat = 2
const E = 4*D

module M{In Out : dim, S : Shape} {
  param w, b : ℝ[In, Out] init = zeros
  use l : a.Linear{In, 4*D}
  fn apply(x : ℝ[..., In], axis k) -> ℝ[...] uses Rand =
    let (y, _) = x
    y
}

optimizer adamw {
  lr : f64 = 3e-4
  checkpoint every 10 steps to "ckpt/"
}
"""
    assert print_file(parse(text, "t.psk").file) == text
