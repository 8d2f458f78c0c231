"""Random keys and draws, the same on every machine. This page is normative for every executor.

A *key* is 32 bytes, used as a ChaCha20 key. `block(key, counter, nonce)` is RFC 8439's block function (64 bytes); its
keystream is read as little-endian 64-bit words, eight to a block, from counter 0.

    master(seed)     the first 32 bytes of block(seed as 32 little-endian bytes, 0, b"presk seed\\0\\0"); seed < 2^64
    split(key, n)    child i is the first 32 bytes of block(key, i, b"presk split\\0"); it does not depend on n
    words(key, n)    the first n words of the keystream of (key, b"presk draws\\0")

Draws. `RN` is rounding to the nearest double, ties to even (IEEE 754); every operation below is written
once, is rounded once, and happens in the order written. Entry i of a tensor is the entry of rank i in row-major order.

    uniform          u_i = (w_i >> 11) · 2^-53, exact, in [0, 1)
    standard normal  from the words w_2i, w_2i+1, as u and v (Box-Muller, the cosine only):
                     l = RN(log(1 - u))      1 - u is exact, in (0, 1]
                     r = RN(sqrt(-2·l))      -2·l is exact
                     t = RN(RN(2π)·v)
                     z_i = RN(r·RN(cos t))
    normal(std = s)  RN(RN(s)·z_i)           s is a decimal, rounded once to a double
    xavier_uniform   a = RN(sqrt(RN(6 / (fan_in + fan_out))));  the entry is RN(a·(2·u_i - 1)), where 2·u_i - 1 is exact
    index below N    (w_i·N) >> 64
    dropout_mask r   0 where u_i < r, else 1/(1 - r), compared and computed exactly; r is a decimal, 0 <= r < 1
    sample           at the position of rank i of scores ℝ[S, V], the least v with p_0 + … + p_v > u_i, where p is the
                     softmax of the scores there: over exact reals, so a tie of a sum with u_i takes the next index

Where an argument of an entry is not given (`exec.inputs`), its reals are standard normals, its indices draws below
their bound, its masks all true, from the key of the parameter.

`log`, `sqrt` and `cos` are correctly rounded (MPFR at 53 bits); a platform's libm is not, and differs in a draw in 600.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Key = bytes
Words = NDArray[np.uint64]
Doubles = NDArray[np.float64]

SEED_LIMIT = 2**64
MAX_WORDS = 2**35
"""The block counter has 32 bits: a key gives 2^32 blocks of 8 words."""

_SEED, _SPLIT, _DRAWS = b"presk seed\0\0", b"presk split\0", b"presk draws\0"
_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")
_TURNED = {k: np.array([(i + k) % 4 for i in range(4)]) for k in range(-3, 4)}
_CHUNK = 1 << 16


def keystream(key: Key, count: int, nonce: bytes, first: int = 0) -> bytes:
    """The `count` blocks from number `first` on, by OpenSSL where `cryptography` is installed (a split: 5 µs instead
    of 390). The bytes are the same."""
    cipher = _openssl()
    if cipher is None:
        return blocks(key, np.arange(first, first + count, dtype=np.uint32), nonce).astype("<u4").tobytes()
    return cipher(key, first.to_bytes(4, "little") + nonce).update(bytes(64 * count))


@cache
def _openssl() -> Callable[[Key, bytes], Any] | None:
    """An encryptor of a key and counter with nonce; None where there is no package for it."""
    try:
        ciphers: Any = importlib.import_module("cryptography.hazmat.primitives.ciphers")
    except ImportError:
        return None
    return lambda key, nonce: ciphers.Cipher(ciphers.algorithms.ChaCha20(key, nonce), mode=None).encryptor()


def blocks(key: Key, counters: NDArray[np.uint32], nonce: bytes) -> NDArray[np.uint32]:
    """RFC 8439's block function at each counter: shape (n, 16), words of the little-endian keystream."""
    state = np.empty((16, len(counters)), dtype=np.uint32)
    state[0:4] = _CONSTANTS[:, None]
    state[4:12] = np.frombuffer(key, dtype="<u4")[:, None]
    state[12] = counters
    state[13:16] = np.frombuffer(nonce, dtype="<u4")[:, None]
    rows = [np.array(state[i : i + 4]) for i in range(0, 16, 4)]
    spare = np.empty_like(rows[0])
    for _ in range(10):
        _round(rows, spare)
        rows[1:] = (x[_TURNED[k]] for k, x in enumerate(rows[1:], 1))
        _round(rows, spare)
        rows[1:] = (x[_TURNED[-k]] for k, x in enumerate(rows[1:], 1))
    return np.ascontiguousarray((np.concatenate(rows) + state).T)


def _round(rows: list[NDArray[np.uint32]], spare: NDArray[np.uint32]) -> None:
    """The quarter rounds of all four columns of the state; of its diagonals, where rows have been turned."""
    a, b, c, d = rows
    for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        np.add(x, y, out=x)
        np.bitwise_xor(z, x, out=z)
        np.left_shift(z, np.uint32(n), out=spare)
        np.right_shift(z, np.uint32(32 - n), out=z)
        np.bitwise_or(z, spare, out=z)


def master(seed: int) -> Key:
    """The key of a run."""
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"a seed is a natural below 2^64, not {seed}")
    return _children(seed.to_bytes(32, "little"), 1, _SEED)[0]


def split(key: Key, n: int) -> tuple[Key, ...]:
    """`n` independent keys."""
    return _children(key, n, _SPLIT)


def _children(key: Key, n: int, nonce: bytes) -> tuple[Key, ...]:
    stream = keystream(key, n, nonce)
    return tuple(stream[64 * i : 64 * i + 32] for i in range(n))


def words(key: Key, n: int) -> Words:
    """The first `n` words of the key's draws."""
    if n > MAX_WORDS:
        raise ValueError(f"a key gives at most 2^35 words, not {n}")
    out = np.empty(-(-n // 8) * 8, dtype=np.uint64)
    for start in range(0, len(out) // 8, _CHUNK):
        count = min(_CHUNK, len(out) // 8 - start)
        out[start * 8 : (start + count) * 8] = np.frombuffer(keystream(key, count, _DRAWS, start), dtype="<u8")
    return out[:n]


def uniform(key: Key, n: int) -> Doubles:
    """`n` uniform draws."""
    return _unit(words(key, n))


def _unit(w: Words) -> Doubles:
    return (w >> np.uint64(11)).astype(np.float64) * 2.0**-53


def standard_normal(key: Key, n: int) -> Doubles:
    """`n` standard normal draws; 8 µs each."""
    pairs = _unit(words(key, 2 * n))
    return _box_muller(pairs[0::2], pairs[1::2])


def _box_muller(u: Doubles, v: Doubles) -> Doubles:
    gmpy2: Any = importlib.import_module("gmpy2")
    out = np.empty(len(u), dtype=np.float64)
    with gmpy2.context(gmpy2.ieee(64)):
        two_pi = gmpy2.const_pi() * 2
        for start in range(0, len(u), _CHUNK):  # as Python numbers they take eight times the memory
            part = slice(start, start + _CHUNK)
            out[part] = [
                float(gmpy2.sqrt(gmpy2.log(gmpy2.mpfr(1.0 - a)) * -2) * gmpy2.cos(two_pi * b))
                for a, b in zip(u[part].tolist(), v[part].tolist(), strict=True)
            ]
    return out


def normal(key: Key, n: int, std: Fraction) -> Doubles:
    """`n` draws of mean 0 and standard deviation `std`."""
    return np.multiply(standard_normal(key, n), float(std))


def xavier_uniform(key: Key, shape: tuple[int, ...]) -> Doubles:
    """The draws of a tensor of `shape`, in row-major order, flat. The fans of a scalar are 1 and 1."""
    n = int(np.prod(shape, dtype=object)) if shape else 1
    if n == 0:
        return np.empty(0, dtype=np.float64)
    fan_in, fan_out = (shape[0], shape[-1]) if shape else (1, 1)
    bound = np.sqrt(np.float64(6.0) / np.float64(fan_in + fan_out))
    return (2.0 * uniform(key, n) - 1.0) * bound


def dropped(key: Key, n: int, rate: Fraction) -> NDArray[np.bool_]:
    """Which of `n` entries a dropout of `rate` drops: u < rate, decided on integers."""
    limit = math.ceil(rate * 2**53)
    return (words(key, n) >> np.uint64(11)) < np.uint64(limit)


def below(key: Key, n: int, bound: int) -> NDArray[np.int64]:
    """`n` indices `0 <= i < bound`."""
    drawn, out = words(key, n), np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = [(w * bound) >> 64 for w in drawn[part].tolist()]
    return out
