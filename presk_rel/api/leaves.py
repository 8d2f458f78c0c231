"""Arguments of compiled functions, leaf by leaf: what is taken for a tensor, a key and a hyperparameter."""

from __future__ import annotations

from fractions import Fraction
from operator import index
from typing import TYPE_CHECKING, Any

from presk_rel.api.trees import tensor_of
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, Real
from presk_rel.exec import keys
from presk_rel.exec.shapes import int_of

if TYPE_CHECKING:
    from presk_rel.exec.torch.operand import Operand
    from presk_rel.exec.torch.run import Compiled

KEY_BYTES = 32


def leaf(torch: Any, compiled: Compiled, path: tuple[str, ...], operand: Operand, value: Any) -> Any:
    """An argument as generated code takes it. TypeError for another kind of value, ValueError for another shape, an
    index outside its bound (looked at on the CPU only, outside of `torch.compile` and `torch.func`), or a number or
    seed that the type does not have."""
    match operand.type:
        case Hyper():
            return Fraction(value) if torch.compiler.is_compiling() else _number(path, operand.type, value)
        case Key():
            return value if torch.compiler.is_compiling() else _key(path, value)  # `api.torch_ops` takes the seed
        case Idx():
            dtype = torch.int64
        case Mask():
            dtype = torch.bool
        case _:
            dtype = compiled.dtype
    tensor = value
    if getattr(value, "dtype", None) is not dtype or value.device != compiled.device:
        tensor = _converted(torch, compiled, path, operand, value, dtype)
    elif tuple(value.shape) == operand.sizes and value.is_contiguous() and not isinstance(operand.type, Idx):
        return value  # nothing to convert or to look at: the common case
    if tuple(tensor.shape) != operand.sizes:
        where = ".".join(path)
        raise ValueError(f"`{where}` : {operand.type} has shape {list(operand.sizes)}, not {list(tensor.shape)}")
    if isinstance(operand.type, Idx):
        _check_bound(torch, compiled, path, operand.type, tensor)
    return tensor.contiguous()


def transformed(torch: Any) -> bool:
    """Whether `torch.func` transforms what runs; True where torch does not say."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return active is None or active()


def _converted(torch: Any, compiled: Compiled, path: tuple[str, ...], operand: Operand, value: Any, dtype: Any) -> Any:
    where = ".".join(path)
    try:
        tensor = tensor_of(torch, value, dtype)
    except (RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"`{where}` : {operand.type} cannot be a {type(value).__name__}: {error}") from error
    if tensor.is_complex():
        raise TypeError(f"`{where}` : {operand.type} cannot be complex")
    if tensor.is_floating_point() and not isinstance(operand.type, Real) and tensor.numel():
        kind = "integers" if isinstance(operand.type, Idx) else "truth values"
        raise TypeError(f"`{where}` : {operand.type} holds {kind}, not {str(tensor.dtype).removeprefix('torch.')}")
    return tensor.to(dtype=dtype, device=compiled.device)


def _check_bound(torch: Any, compiled: Compiled, path: tuple[str, ...], ty: Idx, tensor: Any) -> None:
    """ValueError for an index outside its bound, where looking costs no wait for a device."""
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or not tensor.numel():
        return
    if torch.compiler.is_compiling() or transformed(torch):
        return
    bound = int_of(ty.bound, compiled.emitted.env, "an argument")
    low, high = (int(x) for x in torch.aminmax(tensor))
    if low < 0 or high >= bound:
        found = low if low < 0 else high
        raise ValueError(f"`{'.'.join(path)}` : {ty} holds indices from 0 to {bound - 1}, not {found}")


def _number(path: tuple[str, ...], ty: Hyper, value: Any) -> Fraction:
    """The exact value of a hyperparameter: Python's numbers, decimals as text, scalars of NumPy and torch."""
    where = ".".join(path)
    given = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
    try:
        number = Fraction(given)
    except TypeError as error:
        raise TypeError(f"`{where}` : {ty} is a number, not a {type(value).__name__}") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"`{where}` : {ty} is a number, not {value}") from error
    if (ty.kind in ("nat", "int") and number.denominator != 1) or (ty.kind == "nat" and number < 0):
        raise ValueError(f"`{where}` : {ty} cannot be {value}")
    return number


def _key(path: tuple[str, ...], value: Any) -> bytes:
    """A key: 32 bytes, or those of a seed."""
    where = ".".join(path)
    if isinstance(value, bytes):
        if len(value) != KEY_BYTES:
            raise ValueError(f"`{where}` : a key has {KEY_BYTES} bytes, not {len(value)}")
        return value
    try:
        seed = index(value)
    except TypeError as error:
        text = f"`{where}` : key is a seed, a natural below 2^64, or {KEY_BYTES} bytes, not a {type(value).__name__}"
        raise TypeError(text) from error
    return keys.master(seed)
