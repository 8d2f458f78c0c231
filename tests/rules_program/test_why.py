"""`presk why`: proofs are proofs, texts are readable, JSON drops nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.analysis import CoreAnalysis, analyse
from presk_rel.diagnostics import PreskBug, PreskError
from presk_rel.rules.json_text import json_text
from presk_rel.rules.proof_check import check_proof
from presk_rel.rules.proofs import Prover
from presk_rel.rules.why import Proven, Question, Refuted, explain
from presk_rel.rules.why_json import explanations_json
from presk_rel.rules.why_text import explanations_text
from tests.rules_program.core_programs import random_core
from tests.rules_program.test_regularity import analysed

HINGE = """
fn margin(w : ℝ[], x : ℝ[]) -> ℝ[] {
  m : ℝ[] = mul w, x
  return m
}
fn hinge(w : ℝ[], x : ℝ[], key : key) -> ℝ[] uses Rand {
  m : ℝ[] = call margin(w, x)
  h : ℝ[] = relu m
  n : ℝ[] = call noise(key)
  r : ℝ[] = add h, n
  return r
}
fn noise(key : key) -> ℝ[] uses Rand {
  n : ℝ[] = normal 1 key
  return n
}
"""


def text(analysis: CoreAnalysis, question: Question) -> list[str]:
    """The lines with runs of spaces made one."""
    lines = explanations_text(explain(analysis, question), analysis, question).splitlines()
    return [" ".join(line.split()) for line in lines]


def document(analysis: CoreAnalysis, question: Question) -> dict[str, Any]:
    return json.loads(json_text(explanations_json(explain(analysis, question), analysis.spans)))


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_every_class_has_a_proof_that_the_checker_accepts(seed: int) -> None:
    analysis = analyse(random_core(seed, local=False), "embedded")
    for function in {f for f, _ in analysis.classes}:
        question = Question(function, everything=True)
        explanations = explain(analysis, question)
        explanations_text(explanations, analysis, question)
        explanations_json(explanations, analysis.spans)
        for explanation in explanations:
            assert isinstance(explanation, Proven)
            assert check_proof(analysis.relations, explanation.proof) == []


def test_a_proof_is_printed_only_when_the_checker_accepts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analysed(HINGE)
    question = Question("margin", everything=True)
    (proven, *_) = explain(analysis, question)
    assert isinstance(proven, Proven)
    wrong = replace(proven.proof, because=())
    monkeypatch.setattr(Prover, "prove", lambda *_: wrong)
    with pytest.raises(PreskBug, match="a proof was refused"):
        explain(analysis, question)


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_every_absent_class_is_explained(seed: int) -> None:
    analysis = analyse(random_core(seed, local=True), "embedded")
    for function, param in analysis.classes:
        question = Question(function, param, absent=True)
        explanations = explain(analysis, question)
        explanations_text(explanations, analysis, question)
        explanations_json(explanations, analysis.spans)
        assert len(explanations) == 2
        assert all(isinstance(e, Refuted) and e.absences for e in explanations)


def test_the_text_goes_from_the_parameter_to_the_result() -> None:
    assert text(analysed(HINGE), Question("hinge", "w")) == [
        "`hinge` is C⁰⁺ in `w` [regularity.worst-path] a.core:6:4",
        "because of `relu` at a.core:8:3",
        "├─ w → m: `margin` is C∞ [regularity.via-call] a.core:7:3",
        "│ └─ w → m: `mul` is C∞ [regularity.via-primitive] a.core:3:3",
        "├─ m → h: `relu` is C⁰⁺ [regularity.via-primitive] a.core:8:3",
        "└─ h → r: `add` is C∞ [regularity.via-primitive] a.core:10:3",
    ]


def test_an_effect_is_followed_to_the_primitive() -> None:
    assert text(analysed(HINGE), Question("hinge", effect="Rand")) == [
        "`hinge` has the effect `Rand` [effects.via-call] a.core:6:4",
        "└─ `hinge` calls `noise` [effects.via-call] a.core:9:3",
        "└─ `noise` draws: `normal` [effects.primitive] a.core:14:3",
    ]


def test_smooth_parameters_need_no_excuse_unless_asked() -> None:
    analysis = analysed(HINGE)
    assert explain(analysis, Question("margin")) == []
    assert text(analysis, Question("margin")) == ["`margin` is C∞ in `w`, `x`"]
    assert len(explain(analysis, Question("margin", everything=True))) == 2
    assert len(explain(analysis, Question("margin", "w"))) == 1
    assert [e.goal[0] for e in explain(analysis, Question("hinge", everything=True))] == ["regularity"] * 3 + ["effect"]


def test_what_a_function_is_not() -> None:
    lines = text(analysed(HINGE), Question("margin", effect="Rand", absent=True))
    assert lines[0] == "`margin` does not have the effect `Rand`"
    assert any("[effects.via-call]" in line for line in lines)
    lines = text(analysed(HINGE), Question("hinge", "w", absent=True))
    assert [line for line in lines if line.startswith("`")] == [
        "`hinge` is not C∞ in `w`",
        "`hinge` is not Disc in `w`",
    ]


@pytest.mark.parametrize(
    ("question", "code", "status"),
    [
        (Question("hinje"), "E9140", 2),
        (Question("hinge", "v"), "E9140", 2),
        (Question("margin", effect="Rand"), "E9141", 1),
        (Question("hinge", effect="Rand", absent=True), "E9141", 1),
    ],
)
def test_questions_without_an_answer(question: Question, code: str, status: int) -> None:
    with pytest.raises(PreskError) as caught:
        explain(analysed(HINGE), question)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert caught.value.exit_status == status


def test_the_document_is_a_tree_down_to_input_facts() -> None:
    analysis = analysed(HINGE)
    body = document(analysis, Question("hinge", "w"))
    assert body["goal"] == {"relation": "regularity", "tuple": ["hinge", "w", "C0plus"]}
    inputs = set(analysis.relations.program.inputs)

    def height(node: dict[str, Any]) -> int:
        assert set(node) == {"fact", "rule", "span", "because"}
        if node["rule"] is None:
            fact = node["fact"]
            assert node["because"] == []
            assert fact.get("absent") or "comparison" in fact or fact["relation"] in inputs | {"join", "above"}
            return 0
        return 1 + max(height(child) for child in node["because"])

    assert height(body["tree"]) == body["height"]
    assert body["tree"]["span"]["start"] == {"line": 6, "column": 4, "offset": body["tree"]["span"]["start"]["offset"]}


def test_a_proof_that_would_be_exponential_as_a_tree_names_its_steps_once() -> None:
    many = 40
    lines = ["fn f0(x : ℝ[]) -> ℝ[] {\n  r : ℝ[] = relu x\n  return r\n}\n"]
    for i in range(1, many):
        body = f"  a : ℝ[] = call f{i - 1}(x)\n  r : ℝ[] = call f{i - 1}(a)\n  return r\n"
        lines.append(f"fn f{i}(x : ℝ[]) -> ℝ[] {{\n{body}}}\n")
    analysis = analysed("".join(lines))
    question = Question(f"f{many - 1}", "x")
    tree = json_text(explanations_json(explain(analysis, question), analysis.spans))
    assert '"repeated": true' in tree
    assert tree.count('"fact"') < 40 * many
    assert len(text(analysis, question)) < 4 * many


def test_proofs_as_deep_as_programs_are_printed() -> None:
    many = 1500
    body = "".join(f"  v{i} : ℝ[] = tanh {f'v{i - 1}' if i else 'x'}\n" for i in range(many))
    analysis = analysed(f"fn f(x : ℝ[]) -> ℝ[] {{\n{body}  r : ℝ[] = abs v{many - 1}\n  return r\n}}\n")
    question = Question("f")
    explanations = explain(analysis, question)
    assert len(text(analysis, question)) == many + 3
    printed = json_text(explanations_json(explanations, analysis.spans))
    assert printed.count('"regularity.step"') == many + 1


@settings(max_examples=50, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_json_text_says_what_the_standard_library_says(value: object) -> None:
    assert json_text(value) == json.dumps(value, ensure_ascii=False, indent=2)
