"""Liveness and effects by rules, against searches written out by hand on random programs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.analysis import analyse, liveness
from presk_rel.core.ir import Binding, Function, Prim, Program, callees, operands
from presk_rel.elab.ty import Key, TupleOf
from tests.rules_program.core_programs import REAL, random_core
from tests.rules_program.test_regularity import STEP, analysed


def needed(function: Function) -> set[str]:
    """What the result needs, found from the last binding backwards."""
    wanted = {function.ret}
    for binding in reversed(function.bindings):
        if binding.name in wanted:
            wanted.update(operands(binding.op))
    return wanted


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_live_dead_and_last_uses(seed: int) -> None:
    program = random_core(seed, local=False)
    found = liveness(program.functions.values(), "embedded")
    for function in program.functions.values():
        live = needed(function)
        assert found.live[function.name] == live
        assert found.dead.get(function.name, frozenset()) == {b.name for b in function.bindings} - live
        last = {name: i for i, b in enumerate(function.bindings) for name in operands(b.op) if name != function.ret}
        assert found.last_use.get(function.name, {}) == last


def test_liveness_alone_is_part_of_the_whole_analysis() -> None:
    program = random_core(7, local=True)
    assert liveness(program.functions.values(), "embedded") == analyse(program, "embedded").liveness


def test_long_functions() -> None:
    many = 10_000
    chain = [Binding(f"v{i}", REAL, Prim("tanh", (), (f"v{i - 1}",) if i else ("x",))) for i in range(many)]
    function = Function("f", (), (), REAL, tuple(chain), f"v{many - 1}")
    found = liveness([function], "embedded")
    assert found.last_use["f"]["v5"] == 6
    assert len(found.live["f"]) == many + 1


# ---------------------------------------------------------------------------------------------------------- effects


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_effects_spread_to_callers(seed: int) -> None:
    program = random_core(seed, local=False)
    first = next(iter(program.functions.values()))
    made = Binding("%k", Key(), Prim("zeros", (), ()))
    key = Binding("%key", TupleOf((Key(), Key())), Prim("split_key", (2,), ("%k",)))
    drawing = Function(first.name, (), first.params, first.result, (*first.bindings, made, key), first.ret)
    program = Program({}, {**program.functions, first.name: drawing})
    has = {first.name}
    for function in program.functions.values():
        if any(callee in has for b in function.bindings for callee in callees(b.op)):
            has.add(function.name)
    assert set(_effects_of(program)) == has


def _effects_of(program: Program) -> list[str]:
    from presk_rel.core.core_facts import core_facts
    from presk_rel.rules.engine import solve
    from presk_rel.rules.program import rules_for

    part = rules_for(frozenset(("effect",)))
    facts = {name: rows for name, rows in core_facts(program).items() if name in part.inputs}
    return [str(f) for f, _ in solve(part, facts, "embedded").rows("effect")]


def test_an_effect_must_be_declared_where_it_is_inferred() -> None:
    analysis = analysed(
        STEP.replace(" uses Rand", "")
        + "fn f(s : (ℝ[], key), w : ℝ[]) -> (ℝ[], key) uses Rand {\n  r : (ℝ[], key) = call step(s, w)\n  return r\n}\n"
    )
    assert analysis.effects == {"f": ("Rand",), "step": ("Rand",)}
    (site,) = analysis.undeclared_effects()
    assert (site.function, site.effect, site.site) == ("step", "Rand", "step/ks")
    assert site.span is not None and site.span.start.line == 5
