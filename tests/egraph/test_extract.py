"""Extraction is optimal on small graphs, acyclic, and falls back to the best it has."""

from __future__ import annotations

import random
from itertools import product

import pytest

from presk_rel.egraph import extract_elimination, extract_parts, extract_rivals
from presk_rel.egraph.budget import Budget, Limits
from presk_rel.egraph.extract import Choice, Choices, ClassId, components, extract, selection, total, tree_cost


def choices(*rows: tuple[ClassId, int, set[ClassId]]) -> Choices:
    """(class, cost, needs), the keys counted per class."""
    found: Choices = {}
    for c, cost, needs in rows:
        found.setdefault(c, []).append(Choice(cost, frozenset(needs), len(found[c]) if c in found else 0))
        for n in needs:
            found.setdefault(n, [])
    return found


def acyclic(chosen: dict[ClassId, Choice]) -> bool:
    done: set[ClassId] = set()
    ready = True
    while ready:
        fresh = {c for c, way in chosen.items() if c not in done and way.needs <= done}
        done |= fresh
        ready = bool(fresh)
    return len(done) == len(chosen)


def brute_force(graph: Choices, root: ClassId) -> int | None:
    """The least cost of a selection, trying all."""
    classes = [c for c, ways in graph.items() if ways]
    best: int | None = None
    for pick in product(*(graph[c] for c in classes)):
        whole = dict(zip(classes, pick, strict=True))
        try:
            chosen = selection(whole, root)
        except KeyError:
            continue
        if acyclic(chosen) and (best is None or total(chosen) < best):
            best = total(chosen)
    return best


def random_graph(rng: random.Random, classes: int) -> Choices:
    rows = [
        (c, rng.randint(0, 9), set(rng.sample(range(classes), min(classes, rng.choice((0, 1, 1, 2, 2, 3))))))
        for c in range(classes)
        for _ in range(rng.randint(1, 3))
    ]
    return choices(*rows)


def test_a_shared_class_is_paid_once():
    graph = choices((0, 1, {1, 2}), (1, 1, {3}), (1, 8, set()), (2, 1, {3}), (2, 8, set()), (3, 10, set()))
    found = extract(graph, 0, 1.0)
    assert found is not None
    assert (found.cost, found.gap) == (13, 0.0)
    assert total(selection(tree_cost(graph), 0)) == 17


def test_a_cycle_is_no_program():
    graph = choices((0, 0, {1}), (1, 0, {2}), (2, 0, {1}), (2, 5, set()))
    found = extract(graph, 0, 1.0)
    assert found is not None
    assert found.cost == 5
    assert extract(choices((0, 0, {1}), (1, 0, {0})), 0, 1.0) is None


@pytest.mark.parametrize("seed", range(120))
def test_as_cheap_as_trying_all(seed: int):
    rng = random.Random(seed)
    graph = random_graph(rng, rng.randint(2, 8))
    expected, found = brute_force(graph, 0), extract(graph, 0, 5.0)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert acyclic(found.chosen)
    assert (found.cost, found.gap) == (expected, 0.0)
    assert total(found.chosen) == expected


def layered_graph(rng: random.Random, classes: int) -> Choices:
    """Classes that need what is near, many with one choice only."""
    rows: list[tuple[ClassId, int, set[ClassId]]] = []
    for c in range(classes):
        near = range(max(0, c - 3), min(classes, c + 7))
        for _ in range(rng.choice((1, 1, 2, 3))):
            rows.append((c, rng.randint(0, 9), set(rng.sample(near, min(len(near), rng.choice((0, 1, 1, 2, 2, 3)))))))
    return choices(*rows)


@pytest.mark.parametrize("seed", range(60))
def test_choices_that_lose_are_of_no_use(seed: int, monkeypatch: pytest.MonkeyPatch):
    graph = layered_graph(random.Random(seed), 40)
    found = extract(graph, 0, 5.0)
    monkeypatch.setattr(extract_rivals, "undominated", lambda choices, free, budget: choices)
    expected = extract(graph, 0, 5.0)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert (found.cost, found.gap) == (expected.cost, expected.gap) == (total(found.chosen), 0.0)


def test_what_stands_behind_a_choice_counts():
    """The second choice of 1 needs 2 and 3, which nothing else does: 2 + 3 + 3; the first one needs 3 too: 9."""
    graph = choices((0, 0, {1, 4}), (1, 6, {3}), (1, 2, {2}), (2, 3, {3}), (3, 3, {4}), (4, 1, set()), (4, 2, set()))
    free = frozenset({0, 1, 4})
    kept = extract_rivals.undominated(graph, free, Budget.of(Limits()))
    assert [way.cost for way in kept[1]] == [2]


def test_costs_near_the_largest_do_not_overflow():
    big = 10**14
    rows = [(i, big + i % 7, {i + 1, i + 2}) for i in range(300)] + [(i, 2 * big, {i + 2}) for i in range(300)]
    found = extract(choices(*rows, (300, 1, set()), (301, 1, set())), 0, 1.0)
    assert found is not None
    assert found.cost == 150 * 2 * big + 1
    assert 0 <= found.gap < 1e-6


def test_out_of_time_the_first_answer_stands_with_its_gap():
    rng = random.Random(5)
    rows = [(c, rng.randint(5, 9), set(rng.sample(range(c + 1, c + 40), 4))) for c in range(200) for _ in range(6)]
    graph = choices(*rows, *((c, 3, set()) for c in range(200, 240)))
    found = extract(graph, 0, 1e-6)
    assert found is not None
    assert acyclic(found.chosen)
    assert 0 <= found.gap <= 1
    assert found.cost == total(found.chosen) <= total(selection(tree_cost(graph), 0))


def test_components():
    graph = choices((0, 1, {1}), (1, 1, {2}), (2, 1, {1}), (2, 1, {3}), (3, 1, set()))
    found = components(graph)
    assert found[1] == found[2]
    assert found[1][1] == 2
    assert {found[c][1] for c in (0, 3)} == {1}


def test_what_all_programs_need_splits_the_problem():
    """A thousand choices between two equal sub-programs, each on its own: optimal at once."""
    rows: list[tuple[ClassId, int, set[ClassId]]] = []
    for i in range(0, 4_000, 4):
        rows += [
            (i, 1, {i + 1, i + 4}),
            (i, 2, {i + 2, i + 4}),
            (i + 1, 5, {i + 3}),
            (i + 2, 4, {i + 3}),
            (i + 3, 1, set()),
        ]
    found = extract(choices(*rows, (4_000, 0, set())), 0, 1.0)
    assert found is not None
    assert (found.cost, found.gap) == (7 * 1_000, 0.0)


def test_a_very_large_undivided_problem_keeps_the_first_answer():
    n = 30_000
    graph = choices(*((i, 1, {i + 1}) for i in range(n)), *((i, 3, {i + 2}) for i in range(n - 1)), (n, 1, set()))
    found = extract(graph, 0, 1.0)
    assert found is not None
    assert found.cost == n + 1


# ------------------------------------------------------------------------------------------------ elimination


@pytest.mark.parametrize(("width", "wide"), [(16, 9), (16, 2), (3, 2)])
def test_elimination_as_trying_all(width: int, wide: int, monkeypatch: pytest.MonkeyPatch):
    """Exact with wide tables, also where a class is split into its choices; with narrow ones the gap holds."""
    monkeypatch.setattr(extract_parts, "FEW", 0)
    monkeypatch.setattr(extract_elimination, "WIDTH", width)
    monkeypatch.setattr(extract_elimination, "NARROW", width)
    monkeypatch.setattr(extract_elimination, "WIDE", wide)
    monkeypatch.setattr(extract_elimination, "JOINT", 100_000)
    for seed in range(200):
        rng = random.Random(seed)
        graph = random_graph(rng, rng.randint(2, 8))
        expected, found = brute_force(graph, 0), extract(graph, 0, 0.0)
        if expected is None or found is None:
            assert expected is found is None
            continue
        assert acyclic(found.chosen)
        assert total(found.chosen) == found.cost >= expected >= found.cost * (1 - found.gap) - 1e-6
        assert found.gap == 0 or width == 3


def test_elimination_of_what_is_wide_still_bounds(monkeypatch: pytest.MonkeyPatch):
    """In tables of ten a bound above 0, without the solver."""
    monkeypatch.setattr(extract_elimination, "WIDTH", 10)
    rng = random.Random(7)
    rows = [(c, rng.randint(5, 9), set(rng.sample(range(c + 1, c + 12), 3))) for c in range(100) for _ in range(4)]
    graph = choices(*rows, *((c, 3, set()) for c in range(100, 112)))
    found = extract(graph, 0, 0.0)
    assert found is not None
    assert found.cost == total(found.chosen) <= total(selection(tree_cost(graph), 0))
    assert found.gap < 1


def ladder(length: int) -> Choices:
    """Two ways to compute each of a long chain, one from the step before and what it shares with others."""
    rows: list[tuple[ClassId, int, set[ClassId]]] = []
    for i in range(length):
        rows += [(2 * i, 4, {2 * i + 2}), (2 * i, 2, {2 * i + 3, 2 * i + 2}), (2 * i + 1, 3, {2 * i + 3})]
        rows += [(2 * i + 1, 4, {2 * i + 4})]
    end = 2 * length
    return choices(*rows, (end, 1, set()), (end + 1, 1, set()), (end + 2, 1, set()))


def test_a_long_chain_is_solved_exactly_in_linear_work():
    spent: list[int] = []
    for length in (200, 400):
        budget = Budget.of(Limits(solver=0.0))
        found = extract(ladder(length), 0, 0.0, budget)
        assert found is not None
        assert found.gap == 0
        assert budget.cuts == []
        spent.append(budget.limits.entries - budget.entries)
    assert 0 < spent[1] <= 2.2 * spent[0]
