"""Functions that create, split, join and rearrange tensors, beyond the common ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.config import floatx
from tallow.keras.dtype_names import as_dtype
from tallow.keras.functions.operands import as_int32, as_operand, floats, promoted, summed, tensor


def array(x: Any, dtype: Any = None) -> Tensor:
    """Convert to a tensor."""
    return tensor(x, dtype)


def copy(x: Any) -> Tensor:
    """Return a copy."""
    return tensor(x).clone()


def empty(shape: Sequence[int], dtype: Any = None) -> Tensor:
    """Return an uninitialized tensor."""
    return tl.empty(shape, dtype=as_dtype(dtype or floatx()))


def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Return an uninitialized tensor with the shape of x."""
    return tl.empty_like(tensor(x, dtype))


def identity(n: int, dtype: Any = None) -> Tensor:
    """Return an identity matrix."""
    return tl.eye(n, dtype=as_dtype(dtype or floatx()))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return ones on and below a diagonal, and zeros elsewhere."""
    return tensor(np.tri(N, M, k), dtype or floatx())


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return numbers evenly spaced on a log scale, from base^start to base^stop."""
    return tensor(np.logspace(start, stop, num, endpoint, base, axis=axis), dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Return numbers in geometric progression from start to stop."""
    return tensor(np.geomspace(start, stop, num, endpoint, axis=axis), dtype)


def _window(name: str) -> Callable[..., Any]:
    def window(x: int) -> Tensor:
        return tensor(getattr(np, name)(int(x)).astype(np.float32))

    return window


def kaiser(x: int, beta: float) -> Tensor:
    """Return the Kaiser window with x points."""
    return tensor(np.kaiser(int(x), beta).astype(np.float32))


# ------------------------------------------------------------------------------------------------------------- joining


def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
    """Concatenate two tensors along an axis; without an axis, flatten them first."""
    x1, x2 = tensor(x1), tensor(x2)
    return tl.cat([x1.reshape(-1), x2.reshape(-1)]) if axis is None else tl.cat([x1, x2], axis)


def hstack(xs: Sequence[Any]) -> Tensor:
    """Stack tensors horizontally, as numpy.hstack."""
    return tl.hstack([tensor(x) for x in xs])


def vstack(xs: Sequence[Any]) -> Tensor:
    """Stack tensors vertically, as numpy.vstack."""
    return tl.vstack([tensor(x) for x in xs])


def dstack(xs: Sequence[Any]) -> Tensor:
    """Stack tensors along the third axis, as numpy.dstack."""
    return tl.dstack([tensor(x) for x in xs])


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Return coordinate grids from coordinate vectors."""
    return list(tl.meshgrid(*(tensor(part) for part in x), indexing=indexing))


# ----------------------------------------------------------------------------------------------------------- splitting


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Split into parts of nearly equal size, or at indices."""
    return list(tensor(x).tensor_split(indices_or_sections, axis))


def _split_along(axis_of: Callable[[int], int]) -> Callable[..., Any]:
    def split(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
        x = tensor(x)
        axis = axis_of(x.ndim)
        if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
            raise ArgumentError(f"{x.shape[axis]} elements cannot be split into {indices_or_sections} equal parts")
        return array_split(x, indices_or_sections, axis)

    return split


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis."""
    x = tensor(x)
    if num not in (None, x.shape[axis]):
        raise ArgumentError(f"unstack: num={num}, but axis {axis} has {x.shape[axis]} slices")
    return list(x.unbind(axis))


def slice(inputs: Any, start_indices: Sequence[Any], shape: Sequence[int]) -> Tensor:
    """Return the block of a shape that starts at these indices."""
    return tensor(inputs)[_block(start_indices, shape)]


def slice_update(inputs: Any, start_indices: Sequence[Any], updates: Any) -> Tensor:
    """Return a copy with a block replaced, starting at these indices."""
    result, updates = tensor(inputs).clone(), tensor(updates)
    result[_block(start_indices, updates.shape)] = updates.to(result.dtype)
    return result


def _block(start: Sequence[Any], shape: Sequence[int]) -> tuple[Any, ...]:
    return tuple(np.s_[int(first) : int(first) + int(n)] for first, n in zip(start, shape, strict=True))


def get_item(x: Any, key: Any) -> Tensor:
    """Return x[key]."""
    return tensor(x)[key if not isinstance(key, list) else tuple(key)]


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Return windows along the last axis.

    Shapes:  x (..., N) -> (..., windows, sequence_length)
    """
    return tensor(x).unfold(-1, sequence_length, sequence_stride)


# --------------------------------------------------------------------------------------------------------- rearranging


def fliplr(x: Any) -> Tensor:
    """Flip left and right, along the second axis."""
    return tl.fliplr(tensor(x))


def flipud(x: Any) -> Tensor:
    """Flip up and down, along the first axis."""
    return tl.flipud(tensor(x))


def rot90(array: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotate by 90 degrees, k times, in the plane of two axes."""
    return tl.rot90(tensor(array), k, axes)


def diag(x: Any, k: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal."""
    return tl.diag(tensor(x), k)


def diagflat(x: Any, k: int = 0) -> Tensor:
    """Return a matrix with the flattened input on its diagonal."""
    return tl.diagflat(tensor(x), k)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonals of two axes."""
    return tl.diagonal(tensor(x), offset, axis1, axis2)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the sum of the diagonal of two axes."""
    x = diagonal(x, offset, axis1, axis2)
    return summed(x, x.sum(-1))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector."""
    return tl.vander(tensor(x), N, increasing)


def view(x: Any, dtype: Any = None) -> Tensor:
    """Reinterpret the bytes as another dtype."""
    x = tensor(x)
    return x if dtype is None else x.view(as_dtype(dtype))


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Reorder, split and merge axes, as in "b (h w) c -> b c h w"; sizes that the pattern leaves open are keywords.

    Source:  Rogozhnikov 2022, Einops, ICLR
    """
    x = _as_tensor(tensor)
    left, arrow, right = pattern.partition("->")
    source_axes, target_axes = _axes(left), _axes(right)
    source_names, target_names = ([name for group in side for name in group] for side in (source_axes, target_axes))
    if not arrow or sorted(source_names) != sorted(target_names) or len(set(source_names)) != len(source_names):
        raise ArgumentError(f"rearrange: {pattern!r}", hint="name each axis once on both sides of ->")
    if len(source_axes) != x.ndim:
        raise ShapeError(f"rearrange: {pattern!r} has {len(source_axes)} axes, the tensor {x.ndim}")
    sizes = dict(axes_lengths)
    for group, length in zip(source_axes, x.shape, strict=True):
        known_size = int(np.prod([sizes[name] for name in group if name in sizes], dtype=np.int64))
        unknown = [name for name in group if name not in sizes]
        if len(unknown) > 1 or (length % known_size if unknown else length != known_size):
            raise ShapeError(f"rearrange: {pattern!r}: ({' '.join(group)}) does not fit an axis of {length}")
        sizes |= dict.fromkeys(unknown, length // known_size)
    x = x.reshape(*(sizes[name] for name in source_names))
    x = x.permute(*(source_names.index(name) for name in target_names))
    return x.reshape(*(int(np.prod([sizes[name] for name in group], dtype=np.int64)) for group in target_axes))


_as_tensor = tensor  # the parameter of rearrange is called tensor, as in Keras


def _axes(side: str) -> list[list[str]]:
    """Parse one side of a pattern: "b (h w) c" -> [["b"], ["h", "w"], ["c"]]."""
    parts = re.findall(r"\(([^()]*)\)|(\w+)", side)
    if re.sub(r"\([\w\s]*\)|\w+|\s", "", side):
        raise ArgumentError(
            f"rearrange: {side!r}", hint="use names, with parentheses around the names of a merged axis"
        )
    return [inner.split() if not name else [name] for inner, name in parts]


# ------------------------------------------------------------------------------------------------ indices and products


def size(x: Any) -> int:
    """Return the number of elements."""
    return tensor(x).numel()


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return the indices of nonzero elements, one tensor per axis."""
    return tuple(as_int32(tensor(x).nonzero()).T)


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Convert flat indices to indices along each axis."""
    return tuple(tl.unravel_index(tensor(indices).long(), tuple(shape)))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Return, per element, the first choice whose condition is True."""
    if len(condlist) != len(choicelist):
        raise ArgumentError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    result = tensor(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        choice = tensor(choice)
        result = tl.where(tensor(condition).to(tl.bool), choice, as_operand(result, choice).to(choice.dtype))
    return result


def scatter(indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """Add values to zeros at indices.

    Shapes:  indices (N, axes), values (N, ...) -> shape
    """
    values = tensor(values)
    zeros = tl.zeros(shape, dtype=values.dtype, device=values.device)
    return zeros.index_put(_index_tuple(indices), values, accumulate=True)


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Tensor:
    """Return a copy with elements replaced at indices, or combined by reduction "add", "max", "min" or "mul".

    Shapes:  indices (N, axes), updates (N, ...)
    """
    x, updates, positions = tensor(inputs), tensor(updates), _index_tuple(indices)
    if reduction in (None, "add"):
        return x.index_put(positions, updates.to(x.dtype), accumulate=reduction == "add")
    kinds = {"max": "amax", "min": "amin", "mul": "prod"}
    if reduction not in kinds:
        raise ArgumentError(f"scatter_update: reduction={reduction!r}", hint="use None, 'add', 'max', 'min' or 'mul'")
    count = len(positions)
    flat = x.reshape(-1, *x.shape[count:])
    steps = [int(np.prod(x.shape[axis + 1 : count], dtype=np.int64)) for axis in range(count)]
    rows = sum(position * step for position, step in zip(positions, steps, strict=True))
    rows = rows.reshape(-1, *[1] * (flat.ndim - 1)).expand(-1, *flat.shape[1:])  # type: ignore[union-attr]  # tensors
    updated = flat.scatter_reduce(0, rows, updates.to(x.dtype).reshape(rows.shape), kinds[reduction])
    return updated.reshape(x.shape)


def _index_tuple(indices: Any) -> tuple[Tensor, ...]:
    return tensor(indices).long().unbind(-1)


def _segments(reduce: str, empty: float) -> Callable[..., Any]:
    def segments(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Tensor:
        data, ids = tensor(data), tensor(segment_ids).long()
        count = int(ids.max()) + 1 if num_segments is None else num_segments
        start = empty if data.is_floating_point() or np.isfinite(empty) else _limit(data.dtype, empty)
        base = tl.full((count, *data.shape[1:]), start, dtype=data.dtype, device=data.device)
        rows = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(*data.shape)
        return base.scatter_reduce(0, rows, data, reduce)

    return segments


def _limit(dtype: Any, sign: float) -> int:
    info = tl.iinfo(dtype)
    return int(info.max if sign > 0 else info.min)


def inner(x1: Any, x2: Any) -> Tensor:
    """Return the inner product over the last axes."""
    return tl.inner(tensor(x1), tensor(x2))


def outer(x1: Any, x2: Any) -> Tensor:
    """Return the outer product of two flattened tensors."""
    return tl.outer(tensor(x1).reshape(-1), tensor(x2).reshape(-1))


def vdot(x1: Any, x2: Any) -> Tensor:
    """Return the dot product of two flattened tensors."""
    return tl.dot(tensor(x1).reshape(-1), tensor(x2).reshape(-1))


def kron(x1: Any, x2: Any) -> Tensor:
    """Return the Kronecker product."""
    return tl.kron(tensor(x1), tensor(x2))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """Return the sum of products over pairs of axes."""
    x1, x2 = promoted(x1, x2)
    return tl.tensordot(x1, x2, axes)


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Return the cross product of vectors with three elements along their axes; `axisc` is the axis of the result."""
    if axis is not None:
        axisa = axisb = axisc = axis
    y = tl.cross(tensor(x1).movedim(axisa, -1), tensor(x2).movedim(axisb, -1), -1)
    return y.movedim(-1, axisc)


def cdist(x: Any, y: Any) -> Tensor:
    """Return the Euclidean distances of all pairs.

    Shapes:  x (..., N, D), y (..., M, D) -> (..., N, M)
    """
    return tl.cdist(floats(x), floats(y))


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Return whether each target is among the k largest predictions, or tied with one of them.

    Shapes:  targets (B) of integers, predictions (B, C) -> (B)
    """
    targets, predictions = tensor(targets).long(), tensor(predictions)
    target_scores = tl.take_along_dim(predictions, targets[:, None], -1)
    return target_scores[:, 0] >= predictions.topk(k, -1)[0][:, -1]


def saturate_cast(x: Any, dtype: Any) -> Tensor:
    """Cast to a dtype; values out of range are clipped to it."""
    x, target = tensor(x), as_dtype(dtype)
    if not target.is_floating_point and target is not tl.bool:
        info = tl.iinfo(target)
        low, high = info.min, info.max
        if not x.is_floating_point() and x.dtype is not tl.bool:
            low, high = max(low, tl.iinfo(x.dtype).min), min(high, tl.iinfo(x.dtype).max)
        x = x.clamp(low, high)
    return x.to(target)


def is_tensor(x: Any) -> bool:
    """Return whether x is a tensor."""
    return isinstance(x, Tensor)


def dtype(x: Any) -> str:
    """Return the name of the dtype."""
    return str(tensor(x).dtype.name)


NUMPY: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        append, array, array_split, copy, cross, diag, diagflat, diagonal, dstack, empty, empty_like, fliplr, flipud,
        geomspace, get_item, hstack, identity, inner, kaiser, kron, logspace, meshgrid, nonzero, outer, rot90, select,
        size, tensordot, trace, tri, unravel_index, vander, vdot, view, vstack,
    )
} | {
    "bartlett": _window("bartlett"), "blackman": _window("blackman"), "hamming": _window("hamming"),
    "hanning": _window("hanning"), "hsplit": _split_along(lambda rank: 0 if rank == 1 else 1),
    "vsplit": _split_along(lambda rank: 0), "dsplit": _split_along(lambda rank: 2),
}  # fmt: skip
CORE: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        cdist, dtype, extract_sequences, in_top_k, is_tensor, rearrange, saturate_cast, scatter, scatter_update, slice,
        slice_update, unstack,
    )
} | {
    "segment_sum": _segments("sum", 0), "segment_prod": _segments("prod", 1),
    "segment_max": _segments("amax", -np.inf), "segment_min": _segments("amin", np.inf),
}  # fmt: skip
