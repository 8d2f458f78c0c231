"""Options of the test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written (`tests/golden.py`)."""
    return bool(request.config.getoption("--update-golden"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`pytest -m gpu` where there is no GPU skips by name what needs one."""
    needing = [item for item in items if item.get_closest_marker("gpu") is not None]
    if needing:
        import torch

        if not torch.cuda.is_available():
            for item in needing:
                item.add_marker(pytest.mark.skip(reason=f"{item.name} needs a CUDA device"))
