"""The most common functions of tensors under NumPy's names, with `axis` and `keepdims`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.dtype_names import as_dtype
from tallow.keras.functions.operands import as_int32, comparable, floats, promoted, summed, tensor
from tallow.nn import functional as F
from tallow.ops.dims import normalize_dim, normalize_dims

Axis = int | Sequence[int] | None


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
        x = floats(x) if name in ("mean", "std", "var") else tensor(x)
        if name in ("any", "all"):
            x = x.to(tl.bool)
        options = {"unbiased": False} if name in ("std", "var") else {}
        dims = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, int) else tuple(axis)
        if not isinstance(dims, int) and name in ("prod", "any", "all"):  # these take one dim at a time
            y = x
            for dim in sorted(normalize_dims(dims, x.ndim, name), reverse=True):
                y = getattr(y, name)(dim, keepdim=keepdims)
        else:
            y = getattr(x, {"max": "amax", "min": "amin"}.get(name, name))(dims, keepdim=keepdims, **options)
        return summed(x, y) if name in ("sum", "prod") else y

    return reduce


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the maximum along an axis."""
    return as_int32(comparable(x).argmax(axis, keepdim=keepdims))


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the minimum along an axis."""
    return as_int32(comparable(x).argmin(axis, keepdim=keepdims))


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sum along an axis, or of the flattened tensor."""
    x = tensor(x, dtype)
    x = as_int32(x) if x.dtype is tl.bool else x
    return x.reshape(-1).cumsum(0, dtype=x.dtype) if axis is None else x.cumsum(axis, dtype=x.dtype)


def sort(x: Any, axis: int = -1) -> Tensor:
    """Sort along an axis."""
    return tensor(x).sort(axis)[0]


def argsort(x: Any, axis: int = -1) -> Tensor:
    """Return the indices that sort along an axis; equal elements keep their order."""
    return as_int32(tensor(x).argsort(axis, stable=True))


def top_k(x: Any, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the k largest elements along the last axis, and their indices."""
    values, indices = tensor(x).topk(k, -1, sorted=sorted)
    return values, indices


# -------------------------------------------------------------------------------------------------------------- shapes


def shape(x: Any) -> tuple[Any, ...]:
    """Return the shape."""
    return tuple(tensor(x).shape)


def ndim(x: Any) -> int:
    """Return the number of dims."""
    return tensor(x).ndim


def reshape(x: Any, newshape: int | Sequence[int]) -> Tensor:
    """Return the tensor with a new shape."""
    return tensor(x).reshape((newshape,) if isinstance(newshape, int) else tuple(newshape))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the axes; by default reverse them."""
    x = tensor(x)
    return x.permute(*(reversed(range(x.ndim)) if axes is None else axes))


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """Insert axes of size 1."""
    x = tensor(x)
    rank = x.ndim + (1 if isinstance(axis, int) else len(axis))
    for position in sorted(normalize_dims(axis, rank, "expand_dims")):
        x = x.unsqueeze(position)
    return x


def squeeze(x: Any, axis: Axis = None) -> Tensor:
    """Remove axes of size 1, by default all.  Raises: ArgumentError if one of `axis` has another size"""
    x = tensor(x)
    if axis is None:
        return x.squeeze()
    axes = normalize_dims(axis, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in axes):
        raise ArgumentError(f"squeeze: axis {axis} of shape {tuple(x.shape)} has more than one element")
    return x.squeeze(axes)


def concatenate(xs: Sequence[Any], axis: int = -1) -> Tensor:
    """Concatenate along an axis."""
    return tl.cat([tensor(x) for x in xs], axis)


def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Stack along a new axis."""
    return tl.stack([tensor(part) for part in x], axis)


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split into equal parts, or at indices."""
    x = tensor(x)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise ArgumentError(f"split: {x.shape[axis]} elements cannot be split into {indices_or_sections} equal parts")
    return tuple(x.tensor_split(indices_or_sections, axis))


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeat each element along an axis."""
    return tensor(x).repeat_interleave(repeats if isinstance(repeats, int) else tensor(repeats), axis)


def tile(x: Any, repeats: int | Sequence[int]) -> Tensor:
    """Repeat the whole tensor along its axes."""
    return tensor(x).tile((repeats,) if isinstance(repeats, int) else tuple(repeats))


def flip(x: Any, axis: Axis = None) -> Tensor:
    """Reverse the order along axes; by default all."""
    x = tensor(x)
    return x.flip(tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis))


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """Shift elements along axes, by one number or one for each axis; elements beyond the end reappear at the start."""
    if isinstance(shift, int) and isinstance(axis, list | tuple):
        shift = [shift] * len(axis)
    return tl.roll(tensor(x), shift, axis)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Swap two axes."""
    return tensor(x).transpose(axis1, axis2)


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to other positions."""
    return tensor(x).movedim(source, destination)


def broadcast_to(x: Any, shape: Sequence[int]) -> Tensor:
    """Broadcast to a shape."""
    return tensor(x).broadcast_to(tuple(shape))


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float | None = None) -> Tensor:
    """Pad; `pad_width` is one number, (before, after), or such a pair for each axis."""
    x = tensor(x)
    pairs = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    return F.pad(x, [n for pair in reversed(pairs) for n in pair], mode, constant_values)


def ravel(x: Any) -> Tensor:
    """Flatten to one axis."""
    return tensor(x).reshape(-1)


def tril(x: Any, k: int = 0) -> Tensor:
    """Set the elements above a diagonal to zero."""
    return tensor(x).tril(k)


def triu(x: Any, k: int = 0) -> Tensor:
    """Set the elements below a diagonal to zero."""
    return tensor(x).triu(k)


# ------------------------------------------------------------------------------------------- selection, combination


def cast(x: Any, dtype: Any) -> Tensor:
    """Cast to a dtype."""
    return tensor(x, dtype)


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Select from x1 or x2 by a condition; without them, return the indices where the condition is True."""
    condition = tensor(condition).to(tl.bool)
    if x1 is None or x2 is None:
        return tuple(condition.nonzero().T)
    return tl.where(condition, tensor(x1), tensor(x2))


def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
    """Limit values to a range."""
    return tensor(x).clamp(x_min, x_max)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return the elements at indices along an axis, or of the flattened tensor."""
    x, indices = tensor(x), tensor(indices).long()
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalize_dim(axis, x.ndim, "take")
    selected = x.index_select(axis, indices.reshape(-1))
    return selected.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return the elements at indices that match the other axes."""
    return tl.take_along_dim(tensor(x), tensor(indices).long(), axis)


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = "float32") -> Tensor:
    """Return one-hot vectors of indices; an index out of range gives all zeros."""
    x = tensor(x).long()
    hot = x[..., None] == tl.arange(num_classes, device=x.device)
    return (hot if axis == -1 else hot.movedim(-1, axis)).to(as_dtype(dtype))


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Evaluate an einsum."""
    return tl.einsum(subscripts, *map(tensor, operands))


def dot(x1: Any, x2: Any) -> Tensor:
    """Multiply as numpy.dot does: over the last axis of x1 and the second-to-last of x2."""
    x1, x2 = promoted(x1, x2)
    return x1 * x2 if not x1.ndim or not x2.ndim else tl.tensordot(x1, x2, ([-1], [-1 if x2.ndim == 1 else -2]))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors or matrices."""
    return tl.linalg.norm(floats(x), ord, axis, keepdim=keepdims)


def stop_gradient(variable: Any) -> Tensor:
    """Return the values without gradients."""
    return tensor(variable).detach()


# ---------------------------------------------------------------------------------------------------------- new tensors


def zeros(shape: Sequence[int], dtype: Any = "float32") -> Tensor:
    """Return zeros."""
    return tl.zeros(shape, dtype=as_dtype(dtype))


def ones(shape: Sequence[int], dtype: Any = "float32") -> Tensor:
    """Return ones."""
    return tl.ones(shape, dtype=as_dtype(dtype))


def full(shape: Sequence[int], fill_value: Any, dtype: Any = "float32") -> Tensor:
    """Return a tensor filled with a value."""
    return tl.full(tuple(shape), fill_value, dtype=as_dtype(dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = "float32") -> Tensor:
    """Return ones on a diagonal, and zeros elsewhere."""
    return tensor(np.eye(N, M, k), dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return evenly spaced numbers from start up to, but not including, stop."""
    numbers = np.arange(start, step=step) if stop is None else np.arange(start, stop, step)
    return tensor(numbers, dtype or ("int32" if numbers.dtype == np.int64 else "float32"))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """Return evenly spaced numbers from start to stop; `endpoint` includes stop, `retstep` also returns the step."""
    numbers, step = np.linspace(start, stop, num, endpoint, retstep=True, axis=axis)
    return (tensor(numbers, dtype), tensor(step, dtype)) if retstep else tensor(numbers, dtype)


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Return zeros with the shape of x."""
    return tl.zeros_like(tensor(x, dtype))


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Return ones with the shape of x."""
    return tl.ones_like(tensor(x, dtype))


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor with the shape of x, filled with a value."""
    return tl.full_like(tensor(x, dtype), fill_value)


def convert_to_tensor(x: Any, dtype: Any = None) -> Tensor:
    """Convert to a tensor."""
    return tensor(x, dtype)


def convert_to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Convert to a NumPy array."""
    return tensor(x).numpy(force=True)


# Functions of keras.ops.numpy, and those that are only in keras.ops.
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all")
OF_NUMPY = (
    arange, argmax, argmin, argsort, broadcast_to, clip, concatenate, cumsum, dot, einsum, expand_dims, eye, flip, full,
    full_like, linspace, moveaxis, ndim, ones, ones_like, pad, ravel, repeat, reshape, roll, sort, split, squeeze,
    stack, swapaxes, take, take_along_axis, tile, transpose, tril, triu, where, zeros, zeros_like,
)  # fmt: skip
OTHERS = (cast, convert_to_numpy, convert_to_tensor, shape, stop_gradient, top_k)
OF_NN = (one_hot,)
OF_LINALG = (norm,)

NUMPY: dict[str, Callable[..., Any]] = {
    **{name: _reduction(name) for name in REDUCTIONS},
    **{function.__name__: function for function in OF_NUMPY},
}
CORE = {"logsumexp": _reduction("logsumexp")} | {function.__name__: function for function in OTHERS}
