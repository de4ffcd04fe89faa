"""Ops of PyTorch's core that have no public function: what graphs that it exported call, as `torch.ops.aten.NAME`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.dtypes import uint8
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.functions.interpolation import axis_taps
from tallow.functions.top_level import constant_pad_nd, native_batch_norm
from tallow.nn import functional
from tallow.ops.dims import normalize_dim
from tallow.ops.interpolation import resample
from tallow.ops.joining import cat


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of softmax from its output, in the dtype of its input."""
    total = (grad_output * output).sum(dim, keepdim=True)
    return (output * (grad_output - total)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of log_softmax from its output, in the dtype of its input."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def _safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return softmax; zeros where all elements along `dim` are -∞."""
    hidden = self.isneginf().all(dim, keepdim=True)
    return functional.softmax(self.masked_fill(hidden, 0), dim, dtype=dtype).masked_fill(hidden, 0)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return the gradient of `native_dropout` from its mask."""
    return grad_output * mask * scale


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Return the gradient of `max_pool2d`: the gradient of each maximum at its index."""
    zeros = self.new_zeros(self.shape).flatten(-2)
    return zeros.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(self.shape)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *arguments: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `native_batch_norm` does; the two running moments may be left out of the arguments."""
    moments = arguments if len(arguments) > 3 else (None, None, *arguments)
    return native_batch_norm(input, weight, bias, *moments)


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Return what `native_batch_norm` does in training, and the empty memory that cuDNN alone needs."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, input.new_empty(0, dtype=uint8)


def _batch_norm_no_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Return what `native_batch_norm` does in evaluation, and the empty memory that cuDNN alone needs."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return *results, input.new_empty(0, dtype=uint8)


def _antialiased(mode: str) -> Any:
    def upsample(
        input: Tensor,
        output_size: Sequence[int] | None,
        align_corners: bool,
        scale_factors: Any = None,
        scales_w: float | None = None,
        *,
        scales_h: float | None = None,
    ) -> Tensor:
        """Resize images as `nn.functional.interpolate` does with antialias=True: by sizes, or by scales."""
        scales_h = scale_factors if scales_h is None else scales_h
        if output_size is None:
            return functional.interpolate(input, None, scale_factors, mode, align_corners, antialias=True)
        sizes = zip(input.shape[2:], output_size, (scales_h, scales_w), strict=True)
        taps = [axis_taps(mode, n, m, factor, align_corners, True) for n, m, factor in sizes]
        result: Tensor = apply(resample, input, taps)
        return result

    return upsample


_upsample_bilinear2d_aa = _antialiased("bilinear")
_upsample_bicubic2d_aa = _antialiased("bicubic")


def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any) -> Tensor:
    """Return self[indices], and `fill` where the mask is false, whatever the indices are there."""
    return self[_inside(mask, indices)].masked_fill(~mask, fill)


def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """Return a copy with values added at the indices, where the mask is true."""
    places = [index if isinstance(index, Tensor) else None for index in _inside(mask, indices)]
    return self.index_put(places, values.masked_fill(~mask, 0), accumulate=True)


def _inside(mask: Tensor, indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    return tuple([slice(None) if index is None else index.where(mask, 0) for index in indices])


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Return the tensors side by side, each cut into as many chunks along `dim`, padded with zeros and flattened.

    Shapes:  (*outer, size, *inner) each -> (*outer, num_chunks, total)
    Raises:  ArgumentError, ShapeError, DtypeError
    """
    if not tensors:
        raise ArgumentError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise ArgumentError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    first = tensors[0]
    dim = normalize_dim(dim, first.ndim, "_chunk_cat")
    rows = []
    for tensor in tensors:
        if not tensor.numel():
            raise ShapeError("_chunk_cat expects non-empty tensor")
        if tensor.dtype is not first.dtype:
            raise DtypeError("_chunk_cat expects all input tensors with the same dtype")
        if tensor.ndim <= dim or tensor.shape[:dim] != first.shape[:dim]:
            raise ShapeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        missing = -tensor.shape[dim] % num_chunks
        padded = constant_pad_nd(tensor, (*[0, 0] * (tensor.ndim - dim - 1), 0, missing))
        rows.append(padded.reshape(*first.shape[:dim], num_chunks, math.prod(padded.shape[dim:]) // num_chunks))
    result: Tensor = apply(cat, rows, dim + 1)
    return result
