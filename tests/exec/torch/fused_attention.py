"""Torch's attention of CUDA on a CPU: the mathematics in doubles, with what the calls ask of their operands and what
they give besides the value. Sums of `efficient` are those of a multiple of 32 queries; nothing may read the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

SEED, OFFSET = 7, 11
"""What stands for the generator's numbers: the backward call has to get them back."""


@dataclass
class Calls:
    """The names of what was called, in order."""

    names: list[str] = field(default_factory=list[str])


def taken(dtypes: tuple[Any, ...], *tensors: Any) -> tuple[Any, ...]:
    """The operands as doubles, if the kernels would take them: entries at multiples of 16 bytes, a dense last axis."""
    for x in tensors:
        assert x.dtype in dtypes
        assert x.stride(-1) == 1
        assert x.shape[-1] % 8 == 0 and x.shape[-1] <= 128
        assert x.data_ptr() % 16 == 0
        assert all(s * x.element_size() % 16 == 0 for n, s in zip(x.shape[:-1], x.stride()[:-1], strict=True) if n > 1)
    return tuple(x.double() for x in tensors)


def scores(q: Any, k: Any, scale: float, *, causal: bool) -> Any:
    found = q @ k.mT * scale
    allowed = torch.ones(found.shape[-2:], dtype=torch.bool).tril()
    return found.masked_fill(~allowed, float("-inf")) if causal else found


def between_heads(x: Any, like: Any) -> Any:
    """A result as CUDA lays it out: the heads' axis after the positions'."""
    return x.to(like.dtype).transpose(1, 2).contiguous().transpose(1, 2)


def forward(q: Any, k: Any, v: Any, scale: float, *, causal: bool) -> tuple[Any, Any]:
    s = scores(q, k, scale, causal=causal)
    return s.softmax(-1) @ v, s.logsumexp(-1).float()


def backward(
    ct: Any, q: Any, k: Any, v: Any, out: Any, sums: Any, scale: float, *, causal: bool
) -> tuple[Any, Any, Any]:
    p = (scores(q, k, scale, causal=causal) - sums.double().unsqueeze(-1)).exp()
    ds = p * (ct @ v.mT - (ct * out).sum(-1, keepdim=True)) * scale
    return ds @ k, ds.mT @ q, p.mT @ ct


@contextmanager
def fused() -> Iterator[Calls]:
    """The calls, while the block runs."""
    calls = Calls()

    def efficient(
        q: Any,
        k: Any,
        v: Any,
        bias: Any,
        sums: bool,
        dropout: float = 0.0,
        is_causal: bool = False,
        *,
        scale: Any = None,
    ) -> Any:
        calls.names.append("efficient")
        assert (bias, sums, dropout) == (None, True, 0.0)
        out, logs = forward(*taken((torch.float32,), q, k, v), scale, causal=is_causal)
        padded = torch.full((*logs.shape[:-1], -(-logs.shape[-1] // 32) * 32), float("nan"))
        padded[..., : logs.shape[-1]] = logs
        return between_heads(out, q), padded, torch.tensor(SEED), torch.tensor(OFFSET)

    def efficient_back(
        ct: Any, q: Any, k: Any, v: Any, bias: Any, out: Any, logs: Any, seed: Any, offset: Any, dropout: float,
        mask: Any, is_causal: bool = False, *, scale: Any,
    ) -> Any:  # fmt: skip
        calls.names.append("efficient_back")
        assert bias is None or not bias.numel()
        assert (int(seed), int(offset), dropout, list(mask)) == (SEED, OFFSET, 0.0, [True, True, True, False])
        given = taken((torch.float32,), ct, q, k, v, out)
        assert logs.shape[-1] % 32 == 0
        found = backward(*given, logs[..., : q.shape[-2]], scale, causal=is_causal)
        return (*(between_heads(x, like) for x, like in zip(found, (q, k, v), strict=True)), torch.empty(0))

    def flash(
        q: Any, k: Any, v: Any, dropout: float = 0.0, is_causal: bool = False, debug: bool = False, *, scale: Any
    ) -> Any:
        calls.names.append("flash")
        assert (dropout, debug) == (0.0, False)
        assert not is_causal or q.shape[-2] == k.shape[-2]
        out, logs = forward(*taken((torch.bfloat16,), q, k, v), scale, causal=is_causal)
        state = torch.tensor([SEED, SEED], dtype=torch.uint64), torch.tensor(OFFSET, dtype=torch.uint64)
        made = between_heads(out, q)
        return made, logs, None, None, q.shape[-2], k.shape[-2], *state, torch.empty(0, dtype=q.dtype)

    def flash_back(
        ct: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, cq: Any, ck: Any, mq: int, mk: int, dropout: float,
        is_causal: bool, seed: Any, offset: Any, *, scale: Any,
    ) -> Any:  # fmt: skip
        calls.names.append("flash_back")
        assert (mq, mk, dropout) == (q.shape[-2], k.shape[-2], 0.0)
        assert (seed.tolist(), int(offset)) == ([SEED, SEED], OFFSET)
        given = taken((torch.bfloat16,), ct, q, k, v, out)
        found = backward(*given, logs, scale, causal=is_causal)
        return tuple(between_heads(x, like) for x, like in zip(found, (q, k, v), strict=True))

    library = torch.library.Library("aten", "IMPL", "CPU")
    for name, function in (
        ("efficient_attention", efficient),
        ("efficient_attention_backward", efficient_back),
        ("flash_attention", flash),
        ("flash_attention_backward", flash_back),
    ):
        library.impl(f"_scaled_dot_product_{name}", function)
    try:
        yield calls
    finally:
        library._destroy()
