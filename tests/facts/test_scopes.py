"""Scopes by rules against a resolver of the usual kind, and case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.facts.jumps import SHORTEST, jumps
from presk_rel.syntax.parser import parse
from tests.facts.naive_resolver import resolve
from tests.facts.programs import bodies, programs
from tests.facts.read import Marked, names


def agrees(text: str) -> None:
    found = names(text)
    wanted = resolve(parse(text, "main.psk").file)
    assert {use: found.uses.get(use) for use in wanted} == wanted
    assert {u.use for u in found.unresolved} == {use for use, decl in wanted.items() if decl is None}


@given(programs)
@settings(max_examples=40, deadline=None)
def test_rules_resolve_as_environments_do(text: str) -> None:
    agrees(text)


@given(bodies(longest=4 * SHORTEST))
@settings(max_examples=15, deadline=None)
def test_long_chains_of_lets_resolve_as_environments_do(body: str) -> None:
    agrees(f"fn f(x : ℝ[3]) -> ℝ[3] =\n{body}")


@given(st.integers(SHORTEST + 1, 400), st.data())
def test_jumps_reach_every_scope_in_few_steps(length: int, data: st.DataObject) -> None:
    far = {scope: outer for scope, outer, _ in jumps(length)}
    target = data.draw(st.integers(0, length - 1))
    scope, steps = length - 1, 0
    while scope > target:
        scope = far[scope] if far.get(scope, -1) >= target else scope - 1
        steps += 1
    assert steps <= 3 * length.bit_length()


def test_a_jump_passes_the_scopes_between() -> None:
    for scope, outer, passed in jumps(100):
        assert list(passed) == list(range(scope, outer, -1))


# ---------------------------------------------------------------------------------------------------- case by case


def test_a_let_rebinds_and_its_value_means_the_old_name() -> None:
    program = Marked("fn f(«x» : ℝ[3]) -> ℝ[3] =\n  let «x» = «x» + «x»\n  «x»\n")
    assert [program.means(i) for i in (2, 3, 4)] == [0, 0, 1]
    assert program.names.shadowed(program.ids[1]) == program.ids[0]


def test_a_type_is_no_argument() -> None:
    program = Marked("fn f(«key» : «key», k : «key») -> ℝ[] uses Rand =\n  g((«key» : «key»))\nfn g(k : key) = k\n")
    assert program.means(1) == program.means(2) == program.means(4) == "builtin:key"
    assert program.means(3) == 0


def test_params_of_a_module_typed_argument() -> None:
    program = Marked("module M { param w : ℝ[3] }\nfn f(«net» : M, θ : params «net») -> params «net» = θ\n")
    assert program.means(1) == program.means(2) == 0


def test_members_see_each_other_and_the_type_parameters() -> None:
    program = Marked(
        "module M{«D» : dim} {\n  param «w» : ℝ[«D»]\n  fn «apply»(x : ℝ[«D»]) = «w»\n  fn g(x) = «apply»(x)\n}\n"
    )
    assert [program.means(i) for i in (2, 4, 5, 6)] == [0, 0, 1, 3]


def test_an_undeclared_name_in_a_signature_is_an_implicit_dimension() -> None:
    program = Marked("fn f(x : ℝ[«B», D], y : ℝ[«B»]) -> ℝ[2*«B»] = positions(seq: «B»)\ndim D\nfn g(x : ℝ[«B»]) = x\n")
    assert [program.means(i) for i in range(5)] == [0, 0, 0, 0, 4]
    assert [(i.name, i.decl) for i in program.names.implicit] == [("B", program.ids[0]), ("B", program.ids[4])]
    assert program.names.unresolved == ()


def test_the_head_of_a_path_is_no_implicit_dimension() -> None:
    found = names("fn f(x : ℝ[m.V]) -> ℝ[] = sum(x)\n")
    assert [u.name for u in found.unresolved] == ["m"]


def test_no_implicit_dimension_in_a_body_or_a_module() -> None:
    found = names("module M { param w : ℝ[K] }\nfn f(x : ℝ[3]) -> ℝ[] = sum((x : ℝ[K]))\n")
    assert [u.name for u in found.unresolved] == ["K", "K"]


def test_imports_give_declarations_and_functions_of_modules() -> None:
    program = Marked(
        'import "lib.psk" as «m»\nfn f(x : ℝ[«m».«V»]) -> ℝ[] = m.Net.«apply»(x)\n',
        lib="const V = 3\nmodule Net { fn apply(x : ℝ[V]) -> ℝ[] = sum(x) }\n",
    )
    assert program.means(1) == 0
    assert program.means(2) == "lib.psk@6"
    assert program.means(3) == "lib.psk@28"


def test_names_of_an_import_are_reached_by_its_alias_only() -> None:
    found = names(
        'import "lib.psk" as m\nconst A = V\nconst B = m.n\nconst C = m.W\n',
        lib='import "main.psk" as n\nconst V = 3\n',
    )
    assert [(u.name, u.space) for u in found.unresolved] == [("V", "name"), ("n", "member"), ("W", "member")]


def test_an_import_that_could_not_be_read_does_not_cascade() -> None:
    assert names('import "missing.psk" as m\nconst A = m.V\n').unresolved == ()


def test_instances_select_functions_of_their_module() -> None:
    program = Marked(
        "module A { fn «apply»(x) = x }\n"
        "module B {\n  use a : stack{3}(A)\n  fn «apply»(x) = a.«apply»(x)\n}\n"
        "type Net = B\n"
        "fn f(n : Net, θ : params n, x : ℝ[3]) = n.«apply»(θ, x)\n"
    )
    spans = program.names.facts.spans
    assert program.names.selected(spans[program.ids[2]]) == program.ids[0]
    assert program.names.selected(spans[program.ids[3]]) == program.ids[1]


def test_words_of_configuration_blocks_are_no_references() -> None:
    program = Marked(
        "const «N» = 3\nfn «loss»(θ) = θ\noptimizer «adamw» { schedule : cosine(warmup = «N») }\n"
        "training run {\n  model = Nett\n  objective = «loss»\n  optimizer = «adamw»\n"
        "  parallel = data_parallel(replicas = auto)\n}\n"
    )
    assert [program.means(i) for i in (3, 4, 5)] == [0, 1, 2]
    assert [u.name for u in program.names.unresolved] == ["Nett"]


def test_initializers_and_axes_are_no_references() -> None:
    found = names("module M { param w : ℝ[3, k: 3] init = xavier_uniform }\nfn f(x : ℝ[k: 3]) = sum(axis k, x)\n")
    assert found.unresolved == ()


@pytest.mark.parametrize(
    ("unknown", "known", "near"),
    [
        ("totel", "total", ("total",)),
        ("toatl", "total", ("total",)),
        ("totall", "total", ("total",)),
        ("Total", "total", ("total",)),
        ("sum2", "total", ("sum",)),
        ("quite", "total", ()),
        ("q", "z", ()),
    ],
)
def test_near_misses(unknown: str, known: str, near: tuple[str, ...]) -> None:
    (found,) = names(f"fn f(x : ℝ[3]) -> ℝ[3] =\n  let {known} = x\n  {unknown}\n").unresolved
    assert found.near == near


def test_a_near_miss_is_a_name_that_can_be_seen_there() -> None:
    found = names("fn f(x : ℝ[3]) -> ℝ[3] =\n  let total = x\n  x\nfn g(x : ℝ[3]) -> ℝ[3] = totel\n")
    assert [u.near for u in found.unresolved] == [()]


def test_duplicates_are_of_one_scope() -> None:
    found = names("const D = 3\nfn f(x, x) =\n  let (a, a) = x\n  let a = x\n  a\nfn D(y) = y\n")
    assert [(d.name, d.later.start.line, d.earlier.start.line) for d in found.duplicates] == [
        ("x", 2, 2),
        ("a", 3, 3),
        ("D", 6, 1),
    ]


def test_effects_and_optimizers_have_names_of_their_own() -> None:
    found = names("effect Disk\nfn f(x : ℝ[3]) -> ℝ[3] uses Rand, Disk, Randm = Disk\ntraining run { optimizer = f }\n")
    assert [(u.name, u.space) for u in found.unresolved] == [
        ("Randm", "effect"),
        ("Disk", "name"),
        ("f", "optimizer"),
    ]
