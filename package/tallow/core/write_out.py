"""The argument `out` of functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.core.apply import check_writable
from tallow.core.tensor import Tensor
from tallow.dtypes import can_cast
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError, warn
from tallow.ops.table import OPS
from tallow.tape.modes import mode

# Ops that do not convert their operands, but whose result may be written to another dtype all the same, as in PyTorch.
CONVERTED = {
    *("addr", "cholesky_solve", "cumprod", "cumsum", "geqrf", "ldexp", "lerp", "linalg_pinv", "logical_not"),
    *("mean", "nanmean", "nansum", "prod", "square", "std", "sum", "var"),
}
# Functions other than ops whose result is written to a tensor of its dtype alone.
EXACT = {"complex", "multinomial", "polar"}
# Functions that write elements to `out` while they read others, in PyTorch: `out` must not share memory with them.
ELEMENT_BY_ELEMENT = {
    *("cat", "concat", "concatenate", "gather", "index_add", "index_copy", "index_select", "kthvalue"),
    *("masked_select", "mode", "nonzero", "scatter", "scatter_add", "stack", "take"),
}
# Those of them that begin with a copy of their first operand, which may be `out`.
COPIED_FIRST = {"index_add", "index_copy", "scatter", "scatter_add"}


def write_out(out: Any, value: Any, name: str, is_exact: bool = False, operands: Iterable[Any] = ()) -> Any:
    """Write a result to `out`: a tensor, which is resized to the shape of the result, or a tuple of them for several.

    A tensor with elements is resized with a warning, as in PyTorch.

    Args:
        is_exact: the tensor has the dtype of the result. Otherwise the result is converted to its dtype, if no kind of
            number is lost. Ops that convert their operands convert their results too.
        operands: what the result was computed from; tensors among them must not share memory with `out` where PyTorch
            refuses it.

    Raises:  ArgumentTypeError, GraphError, DtypeError, ShapeError
    """
    if isinstance(value, tuple):
        if not isinstance(out, tuple | list) or len(out) != len(value):
            raise ArgumentTypeError(f"{name}: out must be a tuple of {len(value)} tensors")
        outputs = [write_out(o, v, name, is_exact, operands) for o, v in zip(out, value, strict=True)]
        return type(value)(*outputs) if hasattr(value, "_fields") else tuple(outputs)
    if not isinstance(value, Tensor) or not isinstance(out, Tensor):
        what = "has no argument out" if isinstance(out, Tensor) else f"out must be a Tensor, not {type(out).__name__}"
        raise ArgumentTypeError(f"{name}: {what}")
    if mode.recording and (value.requires_grad or out.requires_grad):
        raise GraphError(
            f"{name}: functions with out=... don't support automatic differentiation, and an argument requires grad",
            hint="call it inside `with tl.no_grad():`, or without out",
        )
    _check_memory(out, operands, name)
    if (is_exact or name in EXACT) and out.dtype is not value.dtype and name not in CONVERTED:
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


def _check_memory(out: Tensor, operands: Iterable[Any], name: str) -> None:
    """Raise ShapeError for `out` with memory of an operand: all of it is an in-place call, which ops may have."""
    is_elementwise = name in OPS and OPS[name].batched == "elementwise"
    if not is_elementwise and name not in ELEMENT_BY_ELEMENT:
        return
    if not is_elementwise:
        check_writable(out, name)
    for i, operand in enumerate(operands):
        if i == 0 and name in COPIED_FIRST:
            continue
        for x in operand if isinstance(operand, tuple | list) else (operand,):
            if isinstance(x, Tensor) and (_is_part(out, x) if is_elementwise else out is x or _shares(out, x)):
                raise ShapeError(
                    f"{name}: unsupported operation: some elements of the input tensor and the written-to tensor refer "
                    "to a single memory location",
                    hint="clone() the input, or pass a new tensor as out",
                )


def _shares(out: Tensor, x: Tensor) -> bool:
    """Return whether the memory of two tensors overlaps. PyTorch knows that of tensors without gaps alone."""
    if x.device != out.device or out.is_meta or not (_has_no_gaps(out) and _has_no_gaps(x)):
        return False
    start, other = out.data_ptr(), x.data_ptr()
    return start < other + x.numel() * x.element_size() and other < start + out.numel() * out.element_size()


def _has_no_gaps(x: Tensor) -> bool:
    """Return whether the elements, of which there are some, fill their memory, each in a place of its own."""
    expected = 1
    for stride, size in sorted(pair for pair in zip(x.stride(), x.shape, strict=True) if pair[1] != 1):
        if stride != expected:
            return False
        expected *= size
    return expected > 0


def _is_part(out: Tensor, x: Tensor) -> bool:
    """Return whether two tensors share some memory and are not the same elements."""
    is_same = out is x or (out.shape == x.shape and out.stride() == x.stride() and out.data_ptr() == x.data_ptr())
    return not is_same and _shares(out, x)
