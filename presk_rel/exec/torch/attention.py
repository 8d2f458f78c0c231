"""Attention as one call of torch each way: which call there is for which types, and how it is written.

    cpu         `_scaled_dot_product_flash_attention_for_cpu`
    efficient   `_scaled_dot_product_efficient_attention`, CUDA, f32
    flash       `_scaled_dot_product_flash_attention`, CUDA, operands and results in bf16

What a forward call gives besides its value (sums, numbers of draws that are not made) goes into the backward call as it
is. The calls of CUDA check little of what they need: the last axis of each operand without gaps, entries at multiples
of 16 bytes. So heads are multiples of `WIDTH` wide, and an operand that is not known to lie as a product has it is
copied. (Causal masks are square; of others the calls disagree about which keys a query may see.)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

SWITCH = "PRESK_CUDA_ATTENTION"
"""The environment variable that says, set to `calls`, that attention over many keys is a call on CUDA; else it is
written out. The calls have run on no card yet."""

WIDTH, WIDEST = 8, 128
"""Of heads, on CUDA."""

_ATEN = "torch.ops.aten._scaled_dot_product"


@dataclass(frozen=True, slots=True)
class Fused:
    """`forward(q, k, v, options)` and `backward(ct, q, k, v, made, lengths, options)` are expressions; `made` is what
    forward gave, `lengths` how many queries and keys there are, `options` whether the mask is causal, and the scale.
    `narrow` says that operands and results are in the type that a program is kept in."""

    forward: Callable[[str, tuple[bool, str]], str]
    backward: Callable[[str, str, tuple[int, int], tuple[bool, str]], str]
    narrow: bool = False


def _cpu(given: str, options: tuple[bool, str]) -> str:
    return f"{_ATEN}_flash_attention_for_cpu({given}, 0.0, {options[0]}, scale={options[1]})"


def _cpu_back(given: str, made: str, _: tuple[int, int], options: tuple[bool, str]) -> str:
    kept = f"{made}[0], {made}[1]"
    return f"{_ATEN}_flash_attention_for_cpu_backward({given}, {kept}, 0.0, {options[0]}, scale={options[1]})"


def _efficient(given: str, options: tuple[bool, str]) -> str:
    return f"{_ATEN}_efficient_attention({given}, None, True, 0.0, {options[0]}, scale={options[1]})"


def _efficient_back(given: str, made: str, _: tuple[int, int], options: tuple[bool, str]) -> str:
    kept = f"None, {made}[0], {made}[1], {made}[2], {made}[3], 0.0, (True, True, True, False)"
    return f"{_ATEN}_efficient_attention_backward({given}, {kept}, {options[0]}, scale={options[1]})"


def _flash(given: str, options: tuple[bool, str]) -> str:
    return f"{_ATEN}_flash_attention({given}, 0.0, {options[0]}, False, scale={options[1]})"


def _flash_back(given: str, made: str, lengths: tuple[int, int], options: tuple[bool, str]) -> str:
    kept = f"{made}[0], {made}[1], None, None, {lengths[0]}, {lengths[1]}, 0.0, {options[0]}, {made}[6], {made}[7]"
    return f"{_ATEN}_flash_attention_backward({given}, {kept}, scale={options[1]})"


FUSED = {
    "cpu": Fused(_cpu, _cpu_back),
    "efficient": Fused(_efficient, _efficient_back),
    "flash": Fused(_flash, _flash_back, narrow=True),
}


def calls_of(dtype: str, device: str) -> str:
    """The calls for a program kept in this type; empty for none."""
    if device.split(":")[0] == "cpu":
        return "cpu"
    if os.environ.get(SWITCH) != "calls":
        return ""
    return {"float32": "efficient", "bfloat16": "flash"}.get(dtype, "")


def fits(width: int) -> bool:
    """Whether a call on CUDA takes heads of this width."""
    return width % WIDTH == 0 and 0 < width <= WIDEST
