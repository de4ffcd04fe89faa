"""The argument `out` of functions."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.dtypes import can_cast
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, warn
from tallow.tape.modes import mode

# Ops that do not convert their operands, but whose result may be written to another dtype all the same, as in PyTorch.
CONVERTED = {
    *("addr", "cholesky_solve", "cumprod", "cumsum", "geqrf", "ldexp", "lerp", "linalg_pinv", "mean", "nanmean"),
    *("nansum", "prod", "square", "std", "sum", "var"),
}


def write_out(out: Any, value: Any, name: str, is_exact: bool = False) -> Any:
    """Write a result to `out`: a tensor, which is resized to the shape of the result, or a tuple of them for several.

    A tensor with elements is resized with a warning, as in PyTorch.

    Args:
        is_exact: the tensor has the dtype of the result. Otherwise the result is converted to its dtype, if no kind of
            number is lost. Ops that convert their operands convert their results too.

    Raises:  ArgumentTypeError, GraphError, DtypeError
    """
    if isinstance(value, tuple):
        if not isinstance(out, tuple | list) or len(out) != len(value):
            raise ArgumentTypeError(f"{name}: out must be a tuple of {len(value)} tensors")
        outputs = [write_out(o, v, name, is_exact) for o, v in zip(out, value, strict=True)]
        return type(value)(*outputs) if hasattr(value, "_fields") else tuple(outputs)
    if not isinstance(value, Tensor) or not isinstance(out, Tensor):
        what = "has no argument out" if isinstance(out, Tensor) else f"out must be a Tensor, not {type(out).__name__}"
        raise ArgumentTypeError(f"{name}: {what}")
    if mode.recording and (value.requires_grad or out.requires_grad):
        raise GraphError(
            f"{name}: functions with out=... don't support automatic differentiation, and an argument requires grad",
            hint="call it inside `with tl.no_grad():`, or without out",
        )
    if is_exact and out.dtype is not value.dtype and name not in CONVERTED:
        ours, theirs = (str(x.dtype).removeprefix("tallow.") for x in (value, out))
        raise DtypeError(
            f"{name}: Expected out tensor to have dtype {ours}, but got {theirs} instead", hint="pass out of that dtype"
        )
    if not can_cast(value.dtype, out.dtype):
        raise DtypeError(f"{name}: result type {value.dtype} can't be cast to the type {out.dtype} of out")
    if out.shape != value.shape:
        if out.numel():
            warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does "
                f"not match the required output shape {list(value.shape)}. This behavior is deprecated: pass an empty "
                "tensor as out."
            )
        resize_out(out, value.shape)
    return out.copy_(value)


def resize_out(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give `out` new memory for another shape."""
    if out.shape != shape:
        out.data = out.new_empty(shape)
