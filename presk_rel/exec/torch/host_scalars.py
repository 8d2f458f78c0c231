"""Scalars made of hyperparameters alone are the host's, computed in doubles before a run: the schedule of a learning
rate is thirty operations on single numbers, each of which would be a kernel."""

from __future__ import annotations

from presk_rel.core.ir import Prim
from presk_rel.elab.ty import Hyper, Real, Type
from presk_rel.exec.torch.operand import Operand, number

SCALARS = frozenset(
    ("add", "sub", "mul", "div", "neg", "pow", "max", "min", "relu", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh")
)
"""The primitives that `support.scalar` computes."""


def tensor_of(name: str) -> str:
    """The scalar tensor of a number of the host's."""
    return f"torch.scalar_tensor({name}, dtype=dtype, device=device)"


def host_scalar(op: Prim, args: tuple[Operand, ...], ty: Type, numbers: dict[str, str]) -> str | None:
    """The double that a primitive gives, as an expression; None where it is a matter of tensors. `numbers` has the
    host's number of a tensor's name."""
    if not isinstance(ty, Real) or not ty.shape.is_scalar:
        return None
    if op.op == "real":
        (n,) = args
        return f"support.double({n.name})" if isinstance(n.type, Hyper) and n.scalar is None else None
    if op.op not in SCALARS or not any(x.name in numbers for x in args):
        return None
    given = [numbers.get(x.name, None if x.scalar is None else number(x.scalar)) for x in args]
    given += [str(a) for a in op.attrs]
    return None if None in given else f"support.scalar({', '.join([repr(op.op), *map(str, given)])})"
