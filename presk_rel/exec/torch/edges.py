"""Types at the edges of generated code (`exec.torch.precision`): what comes in is widened, what goes out rounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from presk_rel.elab.ty import Real
from presk_rel.exec.torch.operand import Operand
from presk_rel.exec.torch.precision import Types, rounding


def widened(x: Operand, types: Types, line: Callable[[str], str], known: dict[str, str]) -> Operand:
    """An argument in the type that is computed in, `dtype` of the file. Rounded again it is what it was."""
    if types.kept == types.inner or not isinstance(x.type, Real):
        return x
    wide = line(f"{x.name}.to(dtype)")
    known[rounding(wide, types)] = x.name
    return replace(x, name=wide)


def rounded(x: Operand, types: Types) -> Operand:
    """A result as it is returned; of a stack in slices, each of these."""
    if types.kept == types.inner or not isinstance(x.type, Real):
        return x
    return replace(x, name=re.sub(r"[vc]\d+", lambda name: rounding(name.group(), types), x.name))
