"""The argument `out` of functions."""

from __future__ import annotations

from typing import Any

from tallow.autograd.modes import mode
from tallow.dtypes import can_cast
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError


def write_out(out: Any, value: Any, name: str) -> Any:
    """Write a result to `out`: a tensor of the same shape or an empty one, or a tuple of them for several outputs."""
    if isinstance(value, tuple):
        if not isinstance(out, tuple | list) or len(out) != len(value):
            raise ArgumentTypeError(f"{name}: out must be a tuple of {len(value)} tensors")
        outputs = [write_out(o, v, name) for o, v in zip(out, value, strict=True)]
        return type(value)(*outputs) if hasattr(value, "_fields") else tuple(outputs)
    if mode.recording and (value.requires_grad or out.requires_grad):
        raise GraphError(
            f"{name}: functions with out=... don't support automatic differentiation, and an argument requires grad",
            hint="call it inside `with tl.no_grad():`, or without out",
        )
    if not can_cast(value.dtype, out.dtype):
        raise DtypeError(f"{name}: result type {value.dtype} can't be cast to the type {out.dtype} of out")
    if out.numel() == 0:
        out.data = value.to(out.dtype)
        return out
    if out.shape != value.shape:
        raise ShapeError(f"{name}: out has shape {tuple(out.shape)}, the result {tuple(value.shape)}")
    return out.copy_(value)
