"""Options of the test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written (`tests/golden.py`)."""
    return bool(request.config.getoption("--update-golden"))


def _gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _souffle() -> bool:
    from presk_rel.rules.souffle import available

    return available()


NEEDS = {"gpu": (_gpu, "a CUDA device"), "souffle": (_souffle, "Soufflé")}
"""Markers of what not every machine has: whether it is here, and its name."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What was asked for by a marker, and cannot run on this machine, is skipped by name."""
    for marker, (is_here, thing) in NEEDS.items():
        needing = [item for item in items if item.get_closest_marker(marker) is not None]
        if needing and not is_here():
            for item in needing:
                item.add_marker(pytest.mark.skip(reason=f"{item.name} needs {thing}"))
