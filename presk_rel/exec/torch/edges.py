"""Types at the edges of generated code: what a tensor is kept in, and what is computed in.

bf16 on a CPU is a type of memory only: arguments are widened to f32 when they come in, results are rounded when they go
out, and everything between is f32, which costs no time there (a product of 256×256 takes 0.39 ms in bf16 and 0.22 ms in
f32 without AMX) and loses none of a value's digits at every step. On CUDA, where products in bf16 are what bf16 is for,
each kernel reads and writes bf16 and sums in f32.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from presk_rel.elab.ty import Real
from presk_rel.exec.torch.operand import Operand


def computed_in(dtype: str, device: str) -> str:
    """Torch's name of the type that a program kept in `dtype` is computed in."""
    return "float32" if dtype == "bfloat16" and device.split(":")[0] == "cpu" else dtype


def widened(x: Operand, line: Callable[[str], str]) -> Operand:
    """An argument in the type that is computed in, `dtype` of the file."""
    return replace(x, name=line(f"{x.name}.to(dtype)")) if isinstance(x.type, Real) else x


def rounded(x: Operand, dtype: str) -> Operand:
    """A result as it is returned; of a stack in slices, each of these."""
    if not isinstance(x.type, Real):
        return x
    return replace(x, name=re.sub(r"[vc]\d+", lambda name: f"{name.group()}.to(torch.{dtype})", x.name))
