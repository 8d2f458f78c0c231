"""Recursion, of functions, modules and types (spec: "No recursion")."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.facts.ast_facts import AstFacts
from tests.facts.read import names

Graph = dict[int, list[int]]
graphs = st.integers(1, 7).flatmap(
    lambda n: st.fixed_dictionaries({i: st.lists(st.integers(0, n - 1), max_size=3) for i in range(n)})
)


def cycles(text: str) -> list[tuple[str, list[str]]]:
    found = names(text)
    return [(c.kind, [_text(found.facts, text, d) for d in c.decls]) for c in found.cycles]


def _text(facts: AstFacts, text: str, decl: str) -> str:
    span = facts.spans[decl]
    return text[span.start.offset : span.end.offset]


def _recursive(graph: Graph) -> set[int]:
    """The nodes that reach themselves."""
    reach = {i: set(graph[i]) for i in graph}
    for _ in graph:
        reach = {i: reach[i].union(*(reach[j] for j in reach[i])) for i in graph}
    return {i for i in graph if i in reach[i]}


@given(graphs)
@settings(max_examples=40, deadline=None)
def test_cycles_are_found_exactly_where_there_are_some(graph: Graph) -> None:
    lines = [f"fn f{i}(x) = x{''.join(f' + f{j}(x)' for j in graph[i])}\n" for i in sorted(graph)]
    found = cycles("".join(lines))
    recursive = _recursive(graph)
    assert bool(found) == bool(recursive)
    for kind, ring in found:
        numbers = [int(name[1:]) for name in ring]
        assert kind == "function"
        assert all(b in graph[a] for a, b in zip(numbers, [*numbers[1:], numbers[0]], strict=True))
        assert numbers[0] == min(numbers)


def test_a_cycle_says_where_each_mentions_the_next() -> None:
    (cycle,) = names("fn f(x) = g(x)\nfn g(x) = relu(f(x))\n").cycles
    assert [(span.start.line, span.start.column) for span in cycle.uses] == [(1, 11), (2, 16)]


def test_functions_recur_through_instances_and_compositions() -> None:
    assert cycles(
        "module A { use b : B\n  fn apply(x) = b.apply(x) }\nmodule B { fn apply(n : A, x) = n.apply(x) }\n"
    ) == [("function", ["apply", "apply"])]
    assert cycles("module A { fn apply(n : B, x) = n.apply(x) }\nmodel B = A ∘ A\n") == [("function", ["apply"])]


def test_modules_that_include_themselves() -> None:
    assert cycles("module A { use b : stack{2}(B) }\nmodule B { use c : C }\nmodule C { use a : A ∘ C }\n") == [
        ("module", ["A", "B", "C"])
    ]
    assert cycles("module A { use m : M }\nmodel M = A ∘ A\n") == [("module", ["A", "M"])]


def test_types_that_contain_themselves() -> None:
    assert cycles("type T = (ℝ[3], U)\ntype U = T\n") == [("type", ["T", "U"])]


def test_a_parameter_of_the_same_name_is_no_recursion() -> None:
    assert cycles("fn f(f) = f\nfn g(x) =\n  let g = x\n  g\n") == []


def test_long_chains_and_rings() -> None:
    many = 2000
    chain = "".join(f"fn f{i}(x) = f{i + 1}(x)\n" for i in range(many))
    assert cycles(chain + f"fn f{many}(x) = x\n") == []
    (ring,) = cycles(chain + f"fn f{many}(x) = f0(x)\n")
    assert len(ring[1]) == many + 1


def test_chains_of_names_cost_what_they_are_long() -> None:
    """Twice the names, twice the facts derived: of types, of models, and of what is called through them."""

    def derived(n: int) -> int:
        types = "".join(f"type T{i} = T{i + 1}\n" for i in range(n)) + f"type T{n} = ℝ[]\n"
        models = "".join(f"model M{i} = M{i + 1}\n" for i in range(n)) + f"model M{n} = A ∘ A\n"
        aliases = "".join(f"type N{i} = N{i + 1}\n" for i in range(n)) + f"type N{n} = M0\n"
        text = f"module A {{ fn apply(x) = x }}\n{types}{models}{aliases}fn f(n : N0, x : T0) = n.apply(x)\n"
        relations = names(text).relations
        return sum(len(relations.table(name)) for name in relations.tables)

    small, large = derived(40), derived(80)
    assert large < 2.1 * small
