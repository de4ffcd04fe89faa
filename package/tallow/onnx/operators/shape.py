"""ONNX operators that move elements and change shapes.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Any

import numpy as np

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.onnx.operators.bounds import check_made, check_padded
from tallow.onnx.operators.registry import Ints, ints, operator
from tallow.onnx.operators.windows import last_dim_first
from tallow.onnx.tensors import MAX_DIMENSIONS
from tallow.ops.dims import normalize_dim


@operator("Shape", since=1, whole=True)
def shape(data: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    """Return the sizes of the dims from `start` to `end`."""
    return tl.tensor(tuple(data.shape)[start:end], dtype=tl.int64)


@operator("Size", since=1, whole=True)
def size(data: Tensor) -> Tensor:
    """Return the number of elements."""
    return tl.tensor(math.prod(data.shape), dtype=tl.int64)


@operator("Reshape", since=5)
def reshape(data: Tensor, shape: Ints, *, allowzero: int = 0) -> Tensor:
    """Reshape; a 0 keeps the size of its dim, unless `allowzero`."""
    dims = ints(shape)
    if not allowzero and 0 in dims:
        if any(not dim for dim in dims[data.dim() :]):
            raise ShapeError(f"Reshape: a 0 in {dims!s:.80} for {data.dim()} dims", hint="it keeps the size of its dim")
        dims = tuple(dim if dim else data.shape[axis] for axis, dim in enumerate(dims))
    return tl.reshape(data, dims)


@operator("Reshape", since=1, until=4)
def reshape_to(data: Tensor, *, shape: tuple[int, ...]) -> Tensor:
    """Reshape; a 0 keeps the size of its dim."""
    return reshape(data, shape)


@operator("Flatten", since=1)
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """Return a matrix whose rows are the dims before `axis`."""
    if axis == 0:
        return x.reshape(1, -1)
    if axis == 1:
        return x.flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
    if not -x.dim() <= axis <= x.dim():
        raise DimensionError(f"Flatten: axis={axis} for {x.dim()} dims", hint="it is the number of dims before the cut")
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Transpose", since=1)
def transpose(data: Tensor, *, perm: tuple[int, ...] | None = None) -> Tensor:
    """Permute the dims, or reverse them."""
    return tl.permute(data, tuple(range(data.dim()))[::-1] if perm is None else tuple(perm))


@operator("Squeeze", since=13)
def squeeze(data: Tensor, axes: Ints | None = None) -> Tensor:
    """Leave out the dims `axes`, or all of size 1.  Raises: ShapeError for a dim of another size"""
    return tl.squeeze(data) if axes is None else _squeeze(data, ints(axes))


@operator("Squeeze", since=1, until=12)
def squeeze_axes(data: Tensor, *, axes: tuple[int, ...] | None = None) -> Tensor:
    """Leave out the dims `axes`, or all of size 1."""
    return tl.squeeze(data) if axes is None else _squeeze(data, axes)


def _squeeze(data: Tensor, axes: Sequence[int]) -> Tensor:
    if isinstance(data, Tensor) and any(data.shape[axis] != 1 for axis in axes):
        raise ShapeError(
            f"Squeeze: axes {tuple(axes)} of a tensor of shape {tuple(data.shape)}", hint="sizes must be 1"
        )
    return tl.squeeze(data, tuple(axes)) if axes else data


@operator("Unsqueeze", since=13)
def unsqueeze(data: Tensor, axes: Ints) -> Tensor:
    """Insert dims of size 1 at `axes` of the result."""
    return _unsqueeze(data, ints(axes))


@operator("Unsqueeze", since=1, until=12)
def unsqueeze_axes(data: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    """Insert dims of size 1 at `axes` of the result."""
    return _unsqueeze(data, axes)


def _unsqueeze(data: Tensor, axes: Sequence[int]) -> Tensor:
    if len(axes) > 1 and min(axes) < 0:
        rank = data.dim() + len(axes)
        axes = [normalize_dim(axis, rank, "Unsqueeze") for axis in axes]
    for axis in sorted(axes):
        data = data.unsqueeze(axis)
    return data


@operator("Expand", since=8, whole=True)
def expand(data: Tensor, shape: Ints) -> Tensor:
    """Broadcast to `shape`, whose ones keep the sizes of `data`."""
    whole = tl.broadcast_shapes(tuple(data.shape), ints(shape))
    check_made("Expand", whole, data)  # what reads it makes as many
    return tl.broadcast_to(data, whole)


@operator("Tile", since=6, whole=True)
def tile(data: Tensor, repeats: Ints) -> Tensor:
    """Repeat along each dim."""
    times = ints(repeats)
    if len(times) != data.dim():
        raise ShapeError(f"Tile: {len(times)} repeats for {data.dim()} dims", hint="one for each dim")
    check_made("Tile", map(mul, data.shape, times), data)
    return tl.tile(data, times)


@operator("Concat", since=4)
def concat(*inputs: Any, axis: int) -> Any:
    """Concatenate; strings too."""
    if isinstance(inputs[0], np.ndarray):
        return np.concatenate(inputs, axis)
    return tl.cat(inputs, axis)


@operator("Concat", since=1, until=3)
def concat_along(*inputs: Tensor, axis: int = 1) -> Tensor:
    """Concatenate along `axis`."""
    return tl.cat(inputs, axis)


def _lengths(data: Tensor, axis: int, split: Sequence[int] | None, outputs: int) -> list[int]:
    """Return the lengths of the parts: those given, or one for all."""
    return _parts(data.shape[normalize_dim(axis, data.dim(), "Split")], outputs) if split is None else list(split)


def _parts(length: int, count: int) -> list[int]:
    """Return the lengths of `count` parts, of which the last may be shorter."""
    size = -(-length // count)
    return [max(min(size, length - size * i), 0) for i in range(count)]


@operator("Split", since=13)
def split(
    data: Tensor, split: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int = 1
) -> tuple[Tensor, ...]:
    """Cut along `axis` into parts of the lengths `split`, or of one length.

    Raises:  ArgumentError if `num_outputs` is not the number of outputs
    """
    if num_outputs not in (None, outputs):
        raise ArgumentError(f"Split: num_outputs={num_outputs!s:.80}, but the node has {outputs} outputs")
    lengths = _lengths(data, axis, None if split is None else ints(split), outputs)
    return tuple(tl.split(data, lengths, axis))


@operator("Split", since=2, until=12)
def split_axis(
    data: Tensor, *, axis: int = 0, split: tuple[int, ...] | None = None, outputs: int = 1
) -> tuple[Tensor, ...]:
    """Cut along `axis` into parts of the lengths `split`, or of one length."""
    lengths = _lengths(data, axis, split, outputs)
    return tuple(tl.split(data, lengths, axis))


@operator("Split", since=1, until=1)
def split_input(
    data: Tensor,
    split: Ints | None = None,
    *,
    axis: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """Cut along `axis` into parts of the lengths `split`, or of one length."""
    lengths = _lengths(data, axis, None if split is None else ints(split), outputs)
    return tuple(tl.split(data, lengths, axis))


def _slice(
    data: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int]
) -> Tensor:
    """Slice as NumPy does; a negative step reverses."""
    if 0 in steps:
        raise ArgumentError("Slice: a step of 0", hint="steps are positive or negative")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not -MAX_DIMENSIONS <= axis < MAX_DIMENSIONS:  # the index has an entry for each dim before it
            raise ArgumentError(f"Slice: there is no axis {axis}", hint="axes are dims of the input")
        if step < 0:
            chosen = range(*slice(start, end, step).indices(data.shape[axis]))
            data = data.flip(axis)
            last = data.shape[axis] - 1
            start, end, step = (last - chosen.start, last - chosen.stop, -step) if len(chosen) else (0, 0, 1)
        if axis >= 0:
            index: tuple[Any, ...] = (slice(None),) * axis + (slice(start, end, step),)
        else:
            index = (..., slice(start, end, step), *(slice(None),) * (-1 - axis))
        data = data[index]
    return data


@operator("Slice", since=10)
def slices(data: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Tensor:
    """Slice along `axes`; ends past the size mean all."""
    first, last = ints(starts), ints(ends)
    along = tuple(range(len(first))) if axes is None else ints(axes)
    return _slice(data, first, last, along, (1,) * len(first) if steps is None else ints(steps))


@operator("Slice", since=1, until=9)
def slice_axes(
    data: Tensor, *, starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...] | None = None
) -> Tensor:
    """Slice along `axes`; ends past the size mean all."""
    return _slice(data, starts, ends, range(len(starts)) if axes is None else axes, (1,) * len(starts))


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def pad_dims(data: Tensor, before: Sequence[int], after: Sequence[int], mode: str, value: Any) -> Tensor:
    """Pad each dim by `before` and `after` elements; negative numbers crop."""
    if mode not in _PAD_MODES:
        raise ArgumentError(f"Pad: mode={mode!r}", hint=f"use one of {', '.join(map(repr, _PAD_MODES))}")
    check_padded("Pad", data, before, after)
    if mode == "constant":
        return F.pad(data, last_dim_first(before, after), value=value)
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        if first or last:
            data = tl.index_select(data, axis, tl.from_numpy(_padded_index(data.shape[axis], first, last, mode)))
    return data


def _padded_index(length: int, before: int, after: int, mode: str) -> np.ndarray[Any, Any]:
    """Return the indices of the elements that a padded dim holds."""
    first, count = max(0, -before), length - max(0, -before) - max(0, -after)
    if count < 1:
        raise ShapeError(f"Pad: a dim of {length} has no element to pad by, with mode={mode!r}")
    index = np.arange(-max(0, before), count + max(0, after))
    if mode == "edge":
        return first + np.clip(index, 0, count - 1)
    period = count if mode == "wrap" else max(2 * (count - 1), 1)
    index %= period
    return first + (index if mode == "wrap" else np.minimum(index, period - index))


@operator("Pad", since=11, whole=True)
def pad(
    data: Tensor, pads: Ints, constant_value: Tensor | None = None, axes: Ints | None = None, *, mode: str = "constant"
) -> Tensor:
    """Pad `axes` by the first half of `pads` before and by the second half after."""
    amounts, along = ints(pads), tuple(range(data.dim())) if axes is None else ints(axes)
    if len(amounts) != 2 * len(along):
        raise ShapeError(f"Pad: {len(amounts)} pads for {len(along)} axes", hint="two for each axis")
    before, after = [0] * data.dim(), [0] * data.dim()
    for i, axis in enumerate(along):
        before[axis], after[axis] = amounts[i], amounts[len(along) + i]
    is_unknown = constant_value is None or constant_value.device.type == "meta"  # by which no shape depends on it
    return pad_dims(data, before, after, mode, 0 if is_unknown else constant_value.item())  # type: ignore[union-attr]


@operator("Pad", since=2, until=10)
def pad_by(data: Tensor, *, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> Tensor:
    """Pad each dim by the first half of `pads` before and by the second half after."""
    return pad_dims(data, pads[: len(pads) // 2], pads[len(pads) // 2 :], mode, value)


@operator("Pad", since=1, until=1)
def pad_paddings(data: Tensor, *, paddings: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> Tensor:
    """Pad; see `pad_by`."""
    return pad_by(data, pads=paddings, mode=mode, value=value)


@operator("CenterCropPad", since=18, whole=True)
def center_crop_pad(data: Tensor, shape: Ints, *, axes: tuple[int, ...] | None = None) -> Tensor:
    """Crop or pad with zeros around the centre, so that `axes` have the sizes `shape`."""
    before, after = [0] * data.dim(), [0] * data.dim()
    for axis, wanted in zip(range(data.dim()) if axes is None else axes, ints(shape), strict=True):
        more = wanted - data.shape[axis]
        before[axis] = more // 2 if more > 0 else -(-more // 2)
        after[axis] = more - before[axis]
    return pad_dims(data, before, after, "constant", 0)


@operator("DepthToSpace", since=1)
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Move blocks of channels to height and width: depth outermost (DCR) or innermost (CRD)."""
    if mode == "CRD":
        return F.pixel_shuffle(x, blocksize)
    b, c, h, w = x.shape
    return F.pixel_shuffle(
        x.reshape(b, blocksize**2, c // blocksize**2, h, w).transpose(1, 2).reshape(b, c, h, w), blocksize
    )


@operator("SpaceToDepth", since=1)
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Move blocks of height and width to channels: the block outermost (DCR) or innermost (CRD)."""
    if mode == "CRD":
        return F.pixel_unshuffle(x, blocksize)
    b, c, h, w = x.shape
    x = F.pixel_unshuffle(x, blocksize).reshape(b, c, blocksize**2, h // blocksize, w // blocksize)
    return x.transpose(1, 2).reshape(b, c * blocksize**2, h // blocksize, w // blocksize)


@operator("Trilu", since=14, whole=True)
def trilu(x: Tensor, k: Ints | None = None, *, upper: int = 1) -> Tensor:
    """Keep the triangle above the diagonal `k`, or below it."""
    diagonal = ints(k)[0] if k is not None else 0
    return tl.triu(x, diagonal) if upper else tl.tril(x, diagonal)


@operator("ReverseSequence", since=10, whole=True)
def reverse_sequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Reverse the first `sequence_lens[i]` steps of each sequence."""
    steps = tl.arange(x.shape[time_axis], device=x.device)
    lengths = sequence_lens.unsqueeze(-1)
    index = tl.where(steps < lengths, lengths - 1 - steps, steps)  # (B, T)
    if time_axis < batch_axis:
        index = index.transpose(0, 1)
    index = index.reshape(index.shape + (1,) * (x.dim() - 2))
    return tl.gather(x, time_axis, index.expand(x.shape))


@operator("Identity", since=1)
def identity(x: Any) -> Any:
    """Return the value."""
    return x


@operator("Dropout", since=12, whole=True, folds=False)
def dropout(
    data: Tensor,
    ratio: Tensor | None = None,
    training_mode: Tensor | None = None,
    *,
    seed: int | None = None,
    outputs: int = 1,
) -> Any:
    """Zero elements with probability `ratio` where `training_mode` is true; the mask is true where they are kept."""
    probability = 0.5 if ratio is None else float(ratio.item())
    if training_mode is None or not bool(training_mode.item()) or probability == 0:
        return (data, tl.ones_like(data, dtype=tl.bool)) if outputs > 1 else data
    generator = tl.Generator().manual_seed(seed or 0)
    mask = tl.rand(data.shape, generator=generator if seed is not None else None) >= probability
    result = tl.where(mask, data / (1 - probability), tl.zeros_like(data))
    return (result, mask) if outputs > 1 else result


@operator("Dropout", since=7, until=11)
def dropout_in_inference(data: Tensor, *, ratio: float = 0.5, outputs: int = 1) -> Any:
    """Return the data, and a mask that is true."""
    return (data, tl.ones_like(data, dtype=tl.bool)) if outputs > 1 else data


@operator("Dropout", since=1, until=6)
def dropout_flagged(data: Tensor, *, ratio: float = 0.5, is_test: int = 0, outputs: int = 1) -> Any:
    """Return the data: this opset's training form is not computed."""
    return (data, tl.ones_like(data, dtype=tl.bool)) if outputs > 1 else data
