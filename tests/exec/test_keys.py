"""Keys and draws: RFC 8439's vectors, an independent ChaCha20, and answers fixed once for all machines."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from presk_rel.exec import keys
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.values import IndexTensor

from .oracle import texts
from .programs import single

ANSWERS = Path(__file__).parent / "draws.json"


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    return keys.blocks(key, np.array([counter], dtype=np.uint32), nonce).astype("<u4").tobytes()


def test_block_function_of_rfc_8439_section_2_3_2():
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert block(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000")).hex() == expected


def test_block_function_of_rfc_8439_appendix_a_1():
    expected = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert block(bytes(32), 0, bytes(12)).hex() == expected


@pytest.fixture(params=["OpenSSL", "numpy"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the package `cryptography`."""
    assert keys._openssl() is not None
    if request.param == "numpy":
        monkeypatch.setattr(keys, "_openssl", lambda: None)


@pytest.mark.usefixtures("implementation")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.binary(min_size=32, max_size=32), n=st.integers(0, 300))
def test_words_are_the_keystream_of_another_implementation(key: bytes, n: int):
    stream = Cipher(algorithms.ChaCha20(key, bytes(4) + b"presk draws\0"), mode=None).encryptor().update(bytes(8 * n))
    assert keys.words(key, n).astype("<u8").tobytes() == stream


@pytest.mark.usefixtures("implementation")
def test_words_cross_the_internal_chunks():
    key = keys.master(3)
    n = 8 * (1 << 16) + 13
    stream = Cipher(algorithms.ChaCha20(key, bytes(4) + b"presk draws\0"), mode=None).encryptor().update(bytes(8 * n))
    assert keys.words(key, n).astype("<u8").tobytes() == stream


@pytest.mark.usefixtures("implementation")
def test_a_child_key_depends_on_its_index_and_not_on_how_many_there_are():
    key = keys.master(0)
    assert keys.split(key, 3) == keys.split(key, 7)[:3]
    assert len(set(keys.split(key, 100)) | {key}) == 101
    assert keys.split(key, 0) == ()


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_is_a_natural_below_2_to_the_64(seed: int):
    with pytest.raises(ValueError, match="seed"):
        keys.master(seed)


def answers() -> dict[str, list[str]]:
    """The first 50 draws of each kind from `master(2024)`, doubles in hexadecimal."""
    key = keys.master(2024)
    drawn = {
        "uniform": keys.uniform(key, 50),
        "standard_normal": keys.standard_normal(key, 50),
        "normal(std = 0.02)": keys.normal(key, 50, Fraction(2, 100)),
        "xavier_uniform[5, 10]": keys.xavier_uniform(key, (5, 10)),
        "xavier_uniform[50]": keys.xavier_uniform(key, (50,)),
    }
    doubles = {kind: [float(x).hex() for x in draws] for kind, draws in drawn.items()}
    below = {f"below {n}": [str(int(i)) for i in keys.below(key, 50, n)] for n in (2, 50257)}
    dropped = {f"dropped {r}": [str(bool(d)) for d in keys.dropped(key, 50, Fraction(r))] for r in ("0.1", "0.5")}
    split = {"split": [k.hex() for k in keys.split(key, 50)]}
    sampled = {"sample of the scores 0, 1/2, …, 7/2": [str(i) for i in sample(key, np.arange(8) / 2)]}
    masks = {f"dropout_mask {r}": dropout_mask(key, r) for r in ("0.1", "0.5")}
    return {"master": [key.hex()], **doubles, **below, **dropped, **masks, **sampled, **split}


def sample(key: bytes, scores: NDArray[np.float64]) -> list[int]:
    """50 draws of the exact executor, each from the same scores."""
    found = single("k : key, l : ℝ[50, V]", "idx[V][50]", "sample k, l", "V")
    value = run_exact(found, "f", {"k": key.hex(), "l": np.tile(scores, (50, 1))}, {}).value
    assert isinstance(value, IndexTensor)
    return value.data.tolist()


def dropout_mask(key: bytes, rate: str) -> list[str]:
    found = single("k : key, x : ℝ[50]", "ℝ[50]", f"dropout_mask {rate} k, x")
    return texts(run_exact(found, "f", {"k": key.hex()}, {}, options=Options(bits=53)).value)


def test_known_answers():
    assert answers() == json.loads(ANSWERS.read_text())


def test_every_operation_of_a_normal_draw_is_correctly_rounded():
    """The page of `exec.keys`, followed word by word in mpmath at 200 bits, each operation rounded to 53."""
    key = keys.master(11)
    unit = [int(w >> np.uint64(11)) for w in keys.words(key, 200)]
    with mpmath.workprec(200):

        def rn(x: mpmath.mpf) -> mpmath.mpf:
            with mpmath.workprec(53):
                return +x

        for i, z in enumerate(keys.standard_normal(key, 100)):
            u, v = (mpmath.mpf(unit[2 * i + j]) / 2**53 for j in (0, 1))
            radius = rn(mpmath.sqrt(-2 * rn(mpmath.log(1 - u))))
            turn = rn(rn(2 * mpmath.pi) * v)
            assert rn(radius * rn(mpmath.cos(turn))) == mpmath.mpf(float(z))


def test_xavier_bounds_and_empty_tensors():
    key = keys.master(1)
    draws = keys.xavier_uniform(key, (4, 16))
    assert abs(draws).max() <= np.sqrt(6 / 20)
    assert keys.xavier_uniform(key, ()).shape == (1,)
    assert keys.xavier_uniform(key, (0, 3)).shape == (0,)
    assert keys.normal(key, 0, Fraction(1)).shape == (0,)


@given(bound=st.integers(1, 2**62))
def test_indices_are_below_their_bound(bound: int):
    drawn = keys.below(keys.master(5), 20, bound)
    assert drawn.min() >= 0
    assert drawn.max() < bound


@pytest.mark.parametrize("rate", ["0", "0.1", "0.5", "0.999", "1e-300"])
def test_an_entry_is_dropped_where_its_uniform_draw_is_below_the_rate(rate: str):
    key = keys.master(6)
    expected = [Fraction(u) < Fraction(rate) for u in keys.uniform(key, 500).tolist()]
    assert keys.dropped(key, 500, Fraction(rate)).tolist() == expected
