"""Every example in every type on torch, in both tiers, against its proven result: within the bounds of its type, if not
of the given inputs then of these rounded to it; and where the function magnifies rounding, within a small multiple of
what that does. Run are all entries that differentiate, and of a file without one that which shows it. No example is an
exception."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from presk_rel.exec.conform import BOUNDS, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch import inductor_process
from presk_rel.exec.torch.inductor import Tier
from presk_rel.exec.torch.run import DTYPES
from presk_rel.session import Request, Session
from tests.acceptance.examples import CONSTS, PATHS, Example, gradients

FIELD = Path(__file__).parents[2] / "examples" / "field"
QUICK = ("hessian_vector", "linear_attention", "gaussian_process", "polynomial_fit", "softmax_regression", "mlp")


def _checked(path: Path, tier: Tier) -> None:
    session = Session(str(path), CONSTS.get(path.name, {}))
    missed = [said for example in gradients(path, session) for said in _missed(session, example, tier)]
    assert missed == []


def _missed(session: Session, example: Example, tier: Tier) -> Iterator[str]:
    """What is to be said against an entry in one type after another."""
    request = Request(example.args, example.dims)
    exact = session.run_exact(example.entry, request, Options(bits=96))
    for dtype in DTYPES:
        ran = session.run_torch(example.entry, request, dtype, "cpu", tier, planned=True)
        far, which = distance(exact.value, ran.value), f"{example.entry} in {dtype}"
        if ran.status.kernels and ran.status.tier != tier:
            yield f"{which} ran in tier {ran.status.tier}: {ran.status.reason}"
        if far.differing:
            yield f"{which}: {far.differing} values differ"
        if far.relative > BOUNDS[dtype]:
            found = session.judged(example.entry, request, exact.args, ran.value, dtype)
            if not found.holds:
                yield f"{which}: {float(far.relative)}, {float(found.relative)} > {float(found.bound)}"


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=() if p.stem in QUICK else pytest.mark.slow) for p in PATHS]
)
def test_examples_are_as_near_as_their_condition_allows(path: Path):
    _checked(path, "emit")


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One process that compiles, and a cache of its own."""
    with pytest.MonkeyPatch.context() as patch, inductor_process.shared():
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_so_is_their_machine_code(path: Path, compiler: None):
    _checked(path, "inductor")


def test_bf16_is_rounded_where_tensors_come_in_and_go_out_only():
    """Differences of nearly equal terms: 0.42 where every operation rounds to bf16."""
    session = Session(str(FIELD / "linear_attention.psk"))
    request = Request(dims={"B": 2, "T": 2, "D": 2})
    exact = session.run_exact("loss_grad", request, Options(bits=96)).value
    assert distance(exact, session.run_torch("loss_grad", request, "bf16", "cpu").value).relative < 0.03
