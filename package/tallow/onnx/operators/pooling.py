"""ONNX pooling.

Shapes:  x (B, C, *spatial) -> (B, C, *result)
Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.registry import operator
from tallow.onnx.operators.windows import explicit_pads, last_dim_first, same_pads

_MAX: dict[int, Callable[..., Any]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE: dict[int, Callable[..., Tensor]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}

LARGE = 1 << 12  # elements of a window
MOST_COMPARED = 1 << 36


@dataclass(frozen=True)
class Windows:
    """The windows of a pooling.

    Attributes:
        before, after: the pads of each dim.
        beyond: what the last windows reach past the pads, with `ceil_mode`.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    beyond: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Return whether tallow's pooling functions take the pads: equal ones, up to half a window."""
        halves = all(2 * pad <= k for pad, k in zip(self.before, self.kernel, strict=True))
        return self.before == self.after and not any(self.beyond) and halves

    def amounts(self, *, beyond: bool = True) -> list[int]:
        """Return the pads as F.pad takes them: the last dim first."""
        after = [a + b for a, b in zip(self.after, self.beyond, strict=True)] if beyond else self.after
        return last_dim_first(self.before, after)

    @property
    def is_large(self) -> bool:
        """Return whether the time of a function that reads each element of each window would surprise."""
        return math.prod(self.kernel) > LARGE

    def elements_in(self, shape: tuple[int, ...]) -> int:
        """Return how many elements all windows of an x have together."""
        places = [
            (n + b + a + e - d * (k - 1) - 1) // s + 1
            for n, k, s, d, b, a, e in zip(
                shape[2:], self.kernel, self.stride, self.dilation, self.before, self.after, self.beyond, strict=True
            )
        ]
        return math.prod((*shape[:2], *places, *self.kernel))

    def reduced(self, x: Tensor, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Return what `join`, a sum or a maximum, makes of each window of a padded x.

        The time is that of x times the logarithm of the window: halves of windows are joined first.

        Shapes:  (B, C, *padded) -> (B, C, *result)
        """
        for axis, (k, s, d) in enumerate(zip(self.kernel, self.stride, self.dilation, strict=True), 2):
            count = x.shape[axis] - d * (k - 1)
            if count < 1:
                raise ShapeError(f"pooling: a window of {d * (k - 1) + 1} elements in a dim of {x.shape[axis]}")
            x = joined(x, axis, k, d, join).narrow(axis, 0, count)
            x = x[(slice(None),) * axis + (slice(None, None, s),)]
        return x


def joined(x: Tensor, axis: int, k: int, step: int, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Join k elements `step` apart, from each element on that has as many after it."""
    whole, size, done = None, 1, 0
    while True:
        if k & size:  # x has joins of `size` elements
            whole = x if whole is None else _pairs(whole, x, axis, done * step, join)
            done += size
        if done == k:
            assert whole is not None
            return whole
        x, size = _pairs(x, x, axis, size * step, join), 2 * size


def _pairs(a: Tensor, b: Tensor, axis: int, step: int, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Join each element of a with that of b `step` after it."""
    count = min(a.shape[axis], b.shape[axis] - step)
    return join(a.narrow(axis, 0, count), b.narrow(axis, step, count))


def _windows(
    x: Tensor,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int,
) -> Windows:
    kernel = tuple(kernel_shape)
    rank, sizes = len(kernel), tuple(x.shape[2:])
    if len(sizes) != rank:
        raise ShapeError(f"pooling: kernel_shape {kernel} for x of shape {tuple(x.shape)}", hint="one for each dim")
    stride, dilation = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    if min((*kernel, *stride, *dilation)) < 1:
        raise ArgumentError(f"pooling: kernel {kernel}, strides {stride} and dilations {dilation} must be positive")
    if auto_pad.startswith("SAME"):
        before, after = same_pads(sizes, kernel, stride, dilation, auto_pad)
    else:
        before, after = explicit_pads(pads, rank, auto_pad)
    beyond = []
    for size, k, s, d, first, last in zip(sizes, kernel, stride, dilation, before, after, strict=True):
        free = size + first + last - d * (k - 1) - 1
        steps = -(-free // s) if ceil_mode else free // s
        if ceil_mode and steps * s >= size + first:  # a window that starts after the data is none
            steps -= 1
        beyond.append(max(steps * s - free, 0))
    windows = Windows(kernel, stride, dilation, before, after, tuple(beyond))
    padded = [n + b + a + e for n, b, a, e in zip(sizes, before, after, beyond, strict=True)]
    check_made("pooling", (*x.shape[:2], *padded), x)
    return windows


@operator("MaxPool", since=1, whole=True)
def max_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    outputs: int = 1,
) -> Any:
    """Return the maximum of each window, and as a second output its index in the flat x.

    With `storage_order=1` the index of the last two dims counts column by column.
    """
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    padding, padded = windows.before, x
    if not windows.is_plain:
        padding = (0,) * len(windows.kernel)
        padded = F.pad(x, windows.amounts(), value=_lowest(x))
    if outputs == 1 and windows.is_large:
        return windows.reduced(F.pad(x, windows.amounts(), value=_lowest(x)), tl.maximum)
    if outputs > 1 and windows.is_large and windows.elements_in(tuple(x.shape)) > MOST_COMPARED:
        raise ShapeError(f"MaxPool: indices for windows of {windows.kernel} take too long", hint="use one output")
    pool = _MAX[len(windows.kernel)]
    if outputs == 1:
        return pool(padded, windows.kernel, windows.stride, padding, windows.dilation)
    y, places = pool(padded, windows.kernel, windows.stride, padding, windows.dilation, return_indices=True)
    shift = windows.before if padded is not x else (0,) * len(windows.kernel)
    return y, _flat_indices(places, tuple(padded.shape[2:]), shift, tuple(x.shape), storage_order)


def _lowest(x: Tensor) -> float:
    return -math.inf if x.dtype.is_floating_point else tl.iinfo(x.dtype).min


def _flat_indices(
    places: Tensor, padded: tuple[int, ...], shift: tuple[int, ...], shape: tuple[int, ...], storage_order: int
) -> Tensor:
    """Turn indices in padded planes into indices in the whole of x."""
    coordinates = []
    for size, first in zip(reversed(padded), reversed(shift), strict=True):
        coordinates.append(places % size - first)
        places = places // size
    spatial = list(zip(reversed(coordinates), shape[2:], strict=True))
    if storage_order:
        spatial = spatial[::-1]
    flat = tl.zeros_like(places)
    for coordinate, size in spatial:
        flat = flat * size + coordinate
    planes = tl.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *(1,) * (len(shape) - 2))
    return flat + planes * math.prod(shape[2:])


@operator("AveragePool", since=1, whole=True)
def average_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the mean of each window, over the pads too with `count_include_pad`."""
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if windows.is_plain and all(d == 1 for d in windows.dilation) and not windows.is_large:
        pool = _AVERAGE[len(windows.kernel)]
        return pool(x, windows.kernel, windows.stride, windows.before, False, bool(count_include_pad))
    wide = _wide(x)
    ones = tl.ones((1, 1, *x.shape[2:]), dtype=wide.dtype)
    ones = F.pad(ones, windows.amounts(beyond=False), value=count_include_pad)
    past = [each for more in reversed(windows.beyond) for each in (0, more)]
    sums = windows.reduced(F.pad(wide, windows.amounts()), add)
    return (sums / windows.reduced(F.pad(ones, past), add)).to(x.dtype)


def _wide(x: Tensor) -> Tensor:
    """Return x in a dtype that holds sums of its elements: halves in float32."""
    return x.float() if x.dtype.is_floating_point and x.dtype.itemsize < 4 else x


@operator("LpPool", since=1, whole=True)
def lp_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    p: float = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the p-norm of each window."""
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return (windows.reduced(F.pad(_wide(x), windows.amounts()).abs() ** p, add) ** (1 / p)).to(x.dtype)


def _over_space(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.dim()))


@operator("GlobalAveragePool", since=1)
def global_average_pool(x: Tensor) -> Tensor:
    """Return the mean of each channel."""
    return tl.mean(x, _over_space(x), keepdim=True)


@operator("GlobalMaxPool", since=1)
def global_max_pool(x: Tensor) -> Tensor:
    """Return the maximum of each channel."""
    return tl.amax(x, _over_space(x), keepdim=True)


@operator("GlobalLpPool", since=2)
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    """Return the p-norm of each channel."""
    return tl.linalg.vector_norm(x, p, _over_space(x), keepdim=True)


@operator("MaxUnpool", since=9, whole=True, folds=False)
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Tensor | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Write each element where its index in the flat result of the usual size says; the rest is zero."""
    rank = len(kernel_shape)
    stride = tuple(strides or (1,) * rank)
    before, after = explicit_pads(pads, rank, "NOTSET")
    usual = [
        (size - 1) * s + k - first - last
        for size, s, k, first, last in zip(x.shape[2:], stride, kernel_shape, before, after, strict=True)
    ]
    shape = (*x.shape[:2], *usual)
    wanted = shape if output_shape is None else tuple(int(n) for n in output_shape.tolist())
    for each in (shape, wanted):
        check_made("MaxUnpool", each, x)
    flat = tl.zeros(math.prod(shape), dtype=x.dtype).scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(shape)
    amounts = [each for have, want in reversed(list(zip(shape, wanted, strict=True))) for each in (0, want - have)]
    return F.pad(flat, amounts)
