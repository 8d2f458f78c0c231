"""PSK-Core text: printing and reading back is the identity, and what cannot be read says where."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.ir import Program
from presk_rel.core.lower import lower
from presk_rel.core.numbers import decimal, number_text
from presk_rel.core.printer import print_op, print_program
from presk_rel.core.reader import load, read_program
from presk_rel.diagnostics import Diagnostics
from tests.core.build import programs, rationals, types
from tests.core.typed import mlp


def read(text: str) -> Program | None:
    diagnostics = Diagnostics()
    program = read_program(text, "t.core", diagnostics)
    assert (program is None) == diagnostics.has_errors
    return program


def errors(text: str) -> list[tuple[str, str, str]]:
    """The diagnostics of a text: code, place, message."""
    diagnostics = Diagnostics()
    assert load(text, "t.core", diagnostics) is None
    return [(d.code, str(d.span), d.message) for d in diagnostics.items]


class TestRoundTrip:
    def test_of_the_perceptron(self) -> None:
        program = lower(mlp())
        assert read(print_program(program)) == program

    @given(programs)
    @settings(max_examples=60, deadline=None)
    def test_of_any_program(self, program: Program) -> None:
        text = print_program(program)
        again = read(text)
        assert again == program
        assert print_program(again) == text
        for f in program.functions.values():  # notes are no part of equality
            assert [b.note for b in again.functions[f.name].bindings] == [b.note for b in f.bindings]

    @pytest.mark.slow
    @given(programs)
    @settings(max_examples=2000, deadline=None)
    def test_of_very_many_programs(self, program: Program) -> None:
        assert read(print_program(program)) == program

    @given(types)
    @settings(max_examples=80, deadline=None)
    def test_of_any_type_of_a_parameter(self, ty: object) -> None:
        text = f"fn f{{B D In hidden stack T_1}}(x : {ty}) -> {ty} {{\n  return x\n}}\n"
        program = read(text)
        assert program is not None
        assert program.functions["f"].params[0].type == ty

    @pytest.mark.parametrize("ty", ["ℝ[D, ..., a: In]", "ℝ[D, 3, ...]", "idx[D][D, S..., In]", "bool[2, ...]"])
    def test_of_stacks_of_any_number_of_leading_axes(self, ty: str) -> None:
        text = f"fn f{{D In}}(x : {ty}) -> {ty} {{\n  return x\n}}\n"
        program = read(text)
        assert program is not None
        assert print_program(program) == text

    @given(
        rationals | st.fractions() | st.builds(lambda m, e: m * Fraction(10) ** e, st.integers(), st.integers(-99, 99))
    )
    def test_of_any_number(self, value: Fraction) -> None:
        sign, text = (-1, number_text(-value)) if value < 0 else (1, number_text(value))
        whole = [decimal(part) for part in text.split("/")]
        assert sign * whole[0] / (whole[1] if len(whole) > 1 else 1) == value

    def test_names_are_compared_after_nfc(self) -> None:
        composed, decomposed = "\u0177", "y\u0302"
        text = f"fn f({decomposed} : ℝ[]) -> ℝ[] {{\n  return {composed}\n}}\n"
        program = read(text)
        assert program is not None and program.functions["f"].ret == program.functions["f"].params[0].name

    def test_numbers_of_any_size(self) -> None:
        value = Fraction(7**9000, 3)
        head, tail = number_text(value).split("/")
        assert decimal(head) / decimal(tail) == value


class TestText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Fraction(2), "2"),
            (Fraction(-1, 2), "-0.5"),
            (Fraction(1, 100_000), "0.00001"),
            (Fraction(1, 3), "1/3"),
            (Fraction(10) ** 30, "1e30"),
            (Fraction(1, 10**30), "1e-30"),
        ],
    )
    def test_numbers(self, value: Fraction, text: str) -> None:
        assert number_text(value) == text

    @pytest.mark.parametrize(
        "line",
        [
            "ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, k",
            "ein [, a b ->] x, y",
            "softmax axis seq2 %2, m",
            "index seq: -1 %1",
            "index 0: T - 1 %1",
            "slice pair: 0..1 %1",
            "slice_vjp 2: 1..T + 1 %1, x",
            "concat pair %1, %2",
            "split axis model heads: 12 hd: D / 2 - 1 %1",
            "merge axis a axis b %1",
            "split_heads 12x64 %1",
            "dropout_mask 0.1 k, x",
            "slice_params 2 θ",
            "vjp %3",
            "jvp %3",
        ],
    )
    def test_attributes(self, line: str) -> None:
        program = read(f"fn f{{D T}}(x : ℝ[]) -> ℝ[] {{\n  y : ℝ[] = {line}\n  return y\n}}\n")
        assert program is not None
        assert print_op(program.functions["f"].bindings[0].op) == line

    def test_long_headers_break_before_the_arrow(self) -> None:
        text = print_program(lower(mlp()))
        assert "\n    -> params MLP{D, 4*D} {\n" in text

    def test_a_closure_over_all_dims_leaves_them_out(self) -> None:
        program = lower(mlp())
        assert "closure mse_grad.lambda0[x, y]" in print_program(program)
        f = program.functions["mse_grad"]
        b = f.bindings[0]
        other = replace(f, bindings=(replace(b, op=replace(b.op, dim_args=())), *f.bindings[1:]))
        text = print_program(replace(program, functions={**program.functions, "mse_grad": other}))
        assert "closure mse_grad.lambda0{}[x, y]" in text


def body(line: str) -> str:
    return f"fn f{{D}}(x : ℝ[..., D]) -> ℝ[..., D] {{\n  {line}\n  return %1\n}}\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "code", "place", "says"),
        [
            ("fun f", "E0100", "1:1", "expected `fn`, `kernel`, `module` or `dim`, found `fun`"),
            ("fn f(x : ℝ[D) -> ℝ[] {\n}", "E0100", "1:13", "expected `,` or `]`, found `)`"),
            (body("%1 : ℝ[..., D] = soft x"), "E0101", "2:20", "soft is no operation of PSK-Core"),
            (body("%1 : ℝ[..., D] = add x"), "E0101", "2:25", "2 operands of add (there are 1)"),
            (body("%1 : ℝ[..., D] = pow 0.5 x"), "E0100", "2:24", "expected a natural number, found `0.5`"),
            (body("%1 : ℝ[] = ein [a a -> a] x"), "E0101", "2:18", "[a a -> a] is no contraction"),
            (body("%1 : ℝ[] = ein [a -> b] x"), "E0101", "2:18", "[a -> b] is no contraction"),
            (body("%1 : ℝ[] = split_heads 12 x"), "E0100", "2:26", "a number of heads and their length"),
            (body("%1 : ℝ[] = slice a: 1 x"), "E0100", "2:25", "expected `..`, found `x`"),
            (body("%1 : ℝ[..., 1/0] = neg x"), "E0102", "2:17", "divided by 0"),
            (body("%1 : ℝ[] = const 1e99999999"), "E0102", "2:20", "exponent"),
            (body("%1 : " + "(" * 300), "E0103", "2:208", "types nest deeper than 200 levels"),
            (body("%1 : ℝ[..., D] = neg x") * 2, "E0104", "5:4", "the function f is defined twice"),
            (body("%1 : ℝ[..., D] = neg y"), "E0105", "2:3", "f/%1: reads y, which is not defined before"),
            (body("%1 : ℝ[D] = neg x"), "E0105", "2:3", "is declared ℝ[D], but neg gives ℝ[..., D]"),
            ("fn f(x : ℝ[2, ..., 3, ...]) -> ℝ[] {\n}", "E0100", "1:27", "a shape has one `...` at most"),
            (body('%1 : ℝ[..., D] = neg x\n  "hi"'), "E0100", "3:3", "found"),
        ],
    )
    def test_say_what_and_where(self, text: str, code: str, place: str, says: str) -> None:
        found = errors(text)[0]
        assert found[0] == code
        assert found[1] == f"t.core:{place}"
        assert says in found[2]

    def test_go_on_with_the_next_declaration(self) -> None:
        broken = body("%1 : ℝ[..., D] = soft x")
        found = errors("".join(broken.replace("fn f", f"fn {name}") for name in ("a", "b")))
        assert [(c, p) for c, p, _ in found] == [("E0101", "t.core:2:20"), ("E0101", "t.core:6:20")]

    @given(st.text(max_size=80))
    @settings(max_examples=100, deadline=None)
    def test_no_text_makes_the_reader_fail(self, text: str) -> None:
        load(text, "t.core", Diagnostics())

    @given(programs, st.data())
    @settings(max_examples=40, deadline=None)
    def test_no_mutation_makes_the_reader_fail(self, program: Program, data: st.DataObject) -> None:
        text = print_program(program)
        i = data.draw(st.integers(0, len(text)))
        j = data.draw(st.integers(i, min(len(text), i + 12)))
        insert = data.draw(st.sampled_from(["", "(", "{", "]", " ", "\n", "ℝ", "fold", "...", "-", "1", "%", "∘", ":"]))
        load(text[:i] + insert + text[j:], "t.core", Diagnostics())

    @pytest.mark.parametrize("nested", ["(" * 20_000, "params " + "stack{D}(" * 20_000, "params A" + " ∘ A" * 20_000])
    def test_deep_nesting_is_refused(self, nested: str) -> None:
        assert errors(f"fn f(x : {nested}")[0][0] == "E0103"

    def test_huge_dimensions_are_read_or_refused(self) -> None:
        huge, many = "9" * 4900, " + ".join(f"1/{10**900 + i}" for i in range(40))
        assert errors(f"fn f(x : ℝ[{huge}]) -> ℝ[3] {{\n  return x\n}}\n")[0][0] == "E0105"
        assert errors(body("%1 : nat = const 1e-6000"))[0][0] == "E0105"
        assert errors(f"fn f(x : ℝ[{many}]) -> ℝ[3] {{\n  return x\n}}\n")[0][0] == "E0102"

    def test_long_programs_are_read_without_recursion(self) -> None:
        lines = "".join(f"  %{i + 1} : ℝ[] = neg {'x' if i == 0 else f'%{i}'}\n" for i in range(3000))
        program = read(f"fn f(x : ℝ[]) -> ℝ[] {{\n{lines}  return %3000\n}}\n")
        assert program is not None and len(program.functions["f"].bindings) == 3000
