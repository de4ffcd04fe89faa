"""Reductions of consecutive segments."""

from __future__ import annotations

import math

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.overrides import overridable
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.checks import expect_float
from tallow.ops.dims import normalize_dim
from tallow.ops.padding import pad
from tallow.ops.searching import searchsorted


@overridable
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive segments of `data` along `axis`.

    Args:
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: the length of each segment.
        indices: refused, as in PyTorch.
        offsets: in the place of lengths, which are then not read: where each segment begins, and where the last one
            ends.
        unsafe: do not check the lengths.
        initial: what each segment starts with; a mean is divided by the length all the same.

    Shapes:  data (*outer, N, *inner), lengths (*outer, S) or offsets (*outer, S + 1) -> (*outer, S, *inner)
    Raises:  ArgumentError, ShapeError, DtypeError
    """
    modes = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}
    if reduce not in modes:
        raise ArgumentError(f"segment_reduce: reduce must be either sum, prod, mean, max or min, got {reduce!r}")
    if indices is not None:
        raise ArgumentError("segment_reduce(): indices based reduction is not supported yet", hint="use scatter_reduce")
    expect_float("segment_reduce", data.array)
    begins = lengths if offsets is None else offsets
    if begins is None:
        raise ArgumentError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = normalize_dim(axis, data.ndim, "segment_reduce")
    if begins.ndim != axis + 1 or begins.shape[:axis] != data.shape[:axis]:
        raise ShapeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}: "
            f"lengths or offsets of shape {tuple(begins.shape)} for data {tuple(data.shape)}"
        )
    size = data.shape[axis]
    if offsets is None:
        if not unsafe and bool((begins < 0).any()):
            raise ArgumentError("segment_reduce: lengths contains negative value!")
        if not unsafe and bool((begins.sum(-1) != size).any()):
            raise ArgumentError(f"segment_reduce: expected all rows of lengths along axis to sum to {size}")
        begins = apply(pad, begins.cumsum(-1), (1, 0), "constant", 0)
    count = begins.shape[-1] - 1
    places = arange(size, device=data.device).expand(data.shape[: axis + 1]).contiguous()
    segments = apply(searchsorted, begins.long().contiguous(), places, right=True) - 1
    segments = segments.where(segments >= 0, count)  # one more segment for elements outside of all
    index = segments.reshape(*segments.shape, *[1] * (data.ndim - axis - 1)).expand(data.shape)
    starts = {"sum": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}
    start = starts[modes[reduce]] if initial is None else initial
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    result = data.new_full(shape, start).scatter_reduce(axis, index, data, modes[reduce]).narrow(axis, 0, count)
    if reduce != "mean":
        return result
    number = begins.diff().reshape(*begins.shape[:axis], count, *[1] * (data.ndim - axis - 1))
    return result / (number.where(number > 0, 1 if initial is not None else 0))
