"""What a tensor is kept in, what is computed in, and which products are rounded.

bf16 is a type of memory: arguments are widened to f32 when they come in, results are rounded when they go out, and
everything between is f32, which loses none of a value's digits at every step. On a CPU that costs no time (a product of
256×256 takes 0.39 ms in bf16 and 0.22 ms in f32 without AMX). On CUDA bf16 is what tensor cores are for: there *large*
products of matrices take their operands rounded to bf16, and sum in f32, as `torch.autocast` has it; their results
are f32. All other products are f32's, so that a program none of whose products is large has the errors it has on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.exec.torch.attention import calls_of


@dataclass(frozen=True, slots=True)
class Large:
    """From where on a product is large: `multiplications`, and multiplications for each entry of its operands and its
    result."""

    multiplications: int = 1 << 24
    """256³. Below, an f32 product takes no longer than the two launches that round its operands."""
    intensity: int = 40
    """What an H100 does in f32 while it moves an entry (67 TFLOP/s and 3.35 TB/s, by its data sheet). Below, f32
    products wait for memory too, and rounding operands would move more of it."""

    def holds(self, batch: int, rows: int, inner: int, columns: int) -> bool:
        """Whether so many products of [rows, inner] · [inner, columns] are large."""
        entries = rows * inner + inner * columns + rows * columns
        return (
            batch * rows * inner * columns >= self.multiplications
            and rows * inner * columns >= self.intensity * entries
        )


@dataclass(frozen=True, slots=True)
class Types:
    """`kept` is torch's name of the type of arguments and results, `inner` of what is computed in; operands of products
    that are `large` are rounded to `kept`. `attention` names the calls of `exec.torch.attention` that there are."""

    kept: str
    inner: str
    large: Large | None = None
    attention: str = ""


def types_of(dtype: str, device: str) -> Types:
    """The types of a program that is kept in `dtype` (torch's name)."""
    calls = calls_of(dtype, device)
    if dtype != "bfloat16":
        return Types(dtype, dtype, attention=calls)
    return Types(dtype, "float32", None if device.split(":")[0] == "cpu" else Large(), calls)


def rounds_to(dtype: str, device: str) -> str:
    """The type (f64, f32, bf16) that operations round to: bf16 is where large products do."""
    return "f32" if dtype == "bf16" and types_of("bfloat16", device).large is None else dtype


def rounding(name: str, types: Types) -> str:
    """The expression that rounds a tensor."""
    return f"{name}.to(torch.{types.kept})"
