"""Max pooling over windows that start at random distances.

Source:  Graham 2014, "Fractional Max-Pooling", arXiv:1412.6071
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.creation import arange
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.functions.sampling import rand
from tallow.ops.joining import cat
from tallow.ops.windows import IntOrInts, expect_spatial, sizes

Ratio = float | Sequence[float] | None
OutputSize = int | Sequence[int] | None


def _starts(samples: Tensor, size: int, out: int, window: int) -> Tensor:
    """Return where the windows along one dim start: the last ends with the input, the others by the sample.

    Shapes:  samples (N, C) -> (N, C, out)
    """
    last = samples.new_full((*samples.shape, 1), size - window).long()
    if out == 1:
        return last
    alpha = (size - window) / (out - 1)
    u = samples.unsqueeze(-1)
    inner = ((arange(out - 1, device=samples.device) + u) * alpha).long() - (u * alpha).long()
    return cat.call([inner, last], -1)


def _fractional_max_pool(
    dims: int,
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: OutputSize,
    output_ratio: Ratio,
    samples: Tensor | None,
    return_indices: bool,
) -> Any:
    name = f"fractional_max_pool{dims}d"
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name} requires specifying either an output_size or an output_ratio, not both")
    expect_spatial(name, input.shape, dims)
    x = input if input.ndim == dims + 2 else input.unsqueeze(0)
    spatial, kernel = x.shape[2:], sizes(name, "kernel_size", kernel_size, dims, 1)
    if output_size is None:
        ratios = [output_ratio] * dims if isinstance(output_ratio, int | float) else list(output_ratio or ())
        if any(not 0 < r < 1 for r in ratios):
            raise ArgumentError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")
        out = [int(n * r) for n, r in zip(spatial, ratios, strict=True)]
    else:
        out = list(sizes(name, "output_size", output_size, dims, 1))
    slack = dims - 2  # PyTorch asks for one element more in three dims
    if any(o < 1 or o + k - 1 + slack > n for o, k, n in zip(out, kernel, spatial, strict=True)):
        raise ShapeError(f"{name}: windows {kernel} with {out} results do not fit an input of {list(spatial)}")
    if samples is None:
        samples = rand(*x.shape[:2], dims, dtype=x.dtype, device=x.device)
    if samples.shape != (*x.shape[:2], dims):
        raise ShapeError(
            f"{name}: expected _random_samples of shape {(*x.shape[:2], dims)}, so that size(2) equals to {dims}; got "
            f"{tuple(samples.shape)}"
        )
    # PyTorch takes the samples of two dims from the last to the first, those of three dims in order.
    columns = [samples[..., dims - 1 - i if dims == 2 else i] for i in range(dims)]
    flat: Any = 0
    for i, (column, n, o, k) in enumerate(zip(columns, spatial, out, kernel, strict=True)):
        places = _starts(column, n, o, k).unsqueeze(-1) + arange(k, device=x.device)  # (N, C, o, k)
        ones = [1] * dims
        at = [*ones[:i], o, *ones[i + 1 :], *ones[:i], k, *ones[i + 1 :]]
        flat = flat * n + places.reshape(*x.shape[:2], *at)
    flat = flat.reshape(*x.shape[:2], *out, math.prod(kernel))  # (N, C, *out, elements of a window)
    windows = x.flatten(2).gather(2, flat.flatten(2)).reshape(flat.shape)
    values, choice = windows.max(-1)
    indices = flat.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
    if input.ndim == dims + 1:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


@public("F")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: OutputSize = None,
    output_ratio: Ratio = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maximum of windows that start at random distances; they may overlap.

    Args:
        output_size: of the result; or `output_ratio`, its share of the input's size, between 0 and 1.
        return_indices: return the maxima, and the index of each in the flattened spatial dims of the input.
        _random_samples: numbers between 0 and 1 that shift the windows, (N, C, 2).

    Shapes:  input (N, C, H, W) or (C, H, W) -> (N, C, *out) or (C, *out)
    Raises:  ArgumentError unless one of output_size and output_ratio is given; ShapeError
    """
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples, return_indices)


@public("F")
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: OutputSize = None,
    output_ratio: Ratio = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima and their indices; see `fractional_max_pool2d`. `return_indices` has no effect."""
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples, True)


@public("F")
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: OutputSize = None,
    output_ratio: Ratio = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima and their indices; see `fractional_max_pool3d`. `return_indices` has no effect."""
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples, True)


@public("F")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: OutputSize = None,
    output_ratio: Ratio = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maximum of windows of three dims; see `fractional_max_pool2d`.

    Shapes:  input (N, C, D, H, W) or (C, D, H, W) -> (N, C, *out) or (C, *out)
    """
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples, return_indices)
