"""Reshaping: views wherever the strides allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.devices import array_module, device_type_of
from tallow.errors import ShapeError
from tallow.ops.dims import as_ints, normalize_dim, normalize_dims
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Ints, Result, op


def shares_memory(value: Array, input: Array) -> bool:
    """Return whether `value`, just computed from `input`, is a view of it."""
    if device_type_of(input) == "meta":
        return np.shares_memory(np.ndarray.view(value, np.ndarray), np.ndarray.view(input, np.ndarray))
    return value.base is not None and (value.base is input or value.base is input.base)


def _reshape(input: Array, shape: Ints, name: str) -> Array:
    """Reshape as NumPy does, with PyTorch's error messages."""
    shape = as_ints(shape, name)
    try:
        if not shape or min(shape) >= -1:
            return input.reshape(shape)
    except ValueError:
        pass
    product = math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ShapeError(f"{name}: only one dimension can be inferred, got {list(shape)}")
    if any(n < -1 for n in shape):
        raise ShapeError(f"{name}: invalid shape dimension {min(shape)} in {list(shape)}")
    if -1 in shape and product == 0:
        raise ShapeError(
            f"{name}: cannot reshape a tensor of {input.size} elements into {list(shape)}: "
            "the unspecified dimension could be anything"
        )
    raise ShapeError(
        f"{name}: shape {list(shape)} is invalid for input of size {input.size} and shape {list(input.shape)}"
    )


def _as_before(g: Derived, *, from_shape: Sequence[int]) -> Gradients:
    return [g.reshape(from_shape)]


def _reshape_value(input: Array, shape: Ints) -> Array:
    value = input.reshape(shape)
    if value.shape != shape and min(shape) < -1:  # NumPy infers such a size too
        raise ShapeError("reshape: invalid shape dimension")
    return value


@op(dtypes="keep", view=True, value=_reshape_value, batched="itself")
def reshape(input: Array, shape: Ints) -> Result:
    """Return the same elements in the same order, as a view if the strides allow it. One -1 is inferred."""
    from_shape = input.shape
    return _reshape(input, shape, "reshape"), lambda g: (g.reshape(from_shape),)


reshape.second(_as_before)


def _view_value(input: Array, size: Ints) -> Array:
    value = input.reshape(size)
    owner = value.base
    if (owner is input or (owner is not None and owner is input.base)) and value.shape == size:
        return value
    return view.function(input, size)[0]


@op("", dtypes="keep", view=True, value=_view_value, batched="itself")
def view(input: Array, size: Ints) -> Result:
    """Reshape as `reshape` does, but never copy.

    Raises: ShapeError if the strides do not allow a view.
    """
    from_shape = input.shape
    value = _reshape(input, size, "view")
    if value.size and not shares_memory(value, input):
        raise ShapeError(
            f"view size is not compatible with input tensor's size and stride: {list(value.shape)} of "
            f"{list(input.shape)} with strides {[s // input.itemsize for s in input.strides]}: at least one dimension "
            "spans two contiguous subspaces",
            hint="use .reshape(...), which copies if necessary",
        )
    return value, lambda g: (g.reshape(from_shape),)


view.second(_as_before)


def _flattened(input: Array, start_dim: int, end_dim: int) -> Array:
    shape = input.shape
    start, end = normalize_dim(start_dim, input.ndim, "flatten"), normalize_dim(end_dim, input.ndim, "flatten")
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    return input.reshape((*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@op(dtypes="keep", view=True, value=_flattened, batched="itself")
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Result:
    """Merge the dims from `start_dim` to `end_dim` into one."""
    from_shape = input.shape
    return _flattened(input, start_dim, end_dim), lambda g: (g.reshape(from_shape),)


flatten.second(_as_before)


@op(dtypes="keep", view=True, batched="dim")
def unflatten(input: Array, dim: int, sizes: Sequence[int]) -> Result:
    """Split one dim into several; one of their sizes may be -1."""
    from_shape = input.shape
    dim = normalize_dim(dim, input.ndim, "unflatten")
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    size = from_shape[dim] if from_shape else 1
    part = np.broadcast_to(False, (size,))  # only its shape counts
    into = _reshape(part, sizes, "unflatten").shape
    return input.reshape(from_shape[:dim] + into + from_shape[dim + 1 :]), lambda g: (g.reshape(from_shape),)


unflatten.second(_as_before)


@op(dtypes="keep", view=True, batched="itself")
def ravel(input: Array) -> Result:
    """Flatten to one dim."""
    from_shape = input.shape
    return input.reshape(-1), lambda g: (g.reshape(from_shape),)


ravel.second(_as_before)


def _squeezed(input: Array, dim: int | Ints | None) -> Array:
    shape = input.shape
    if dim is None:
        return input.reshape([n for n in shape if n != 1])
    if dim == ():
        return input.reshape(shape)
    dims = normalize_dims(dim, input.ndim, "squeeze")
    return input.reshape([n for i, n in enumerate(shape) if n != 1 or i not in dims])


@op(dtypes="keep", view=True, value=_squeezed, batched="itself")
def squeeze(input: Array, dim: int | Ints | None = None) -> Result:
    """Remove the dims of size 1: all of them, or those in `dim`."""
    from_shape = input.shape
    return _squeezed(input, dim), lambda g: (g.reshape(from_shape),)


squeeze.second(_as_before)


def _unsqueezed(input: Array, dim: int) -> Array:
    shape = list(input.shape)
    if not 0 <= dim <= len(shape):
        dim = normalize_dim(dim, len(shape) + 1, "unsqueeze")
    shape.insert(dim, 1)
    return input.reshape(shape)


@op(dtypes="keep", view=True, value=_unsqueezed, batched="dim")
def unsqueeze(input: Array, dim: int) -> Result:
    """Insert a dim of size 1 before position `dim`."""
    from_shape = input.shape
    return _unsqueezed(input, dim), lambda g: (g.reshape(from_shape),)


unsqueeze.second(_as_before)


@op(dtypes="keep", view=True, aliases=("swapaxes", "swapdims"), value=np.ndarray.swapaxes, batched="dim")
def transpose(input: Array, dim0: int, dim1: int) -> Result:
    """Swap two dims."""
    first, second = normalize_dim(dim0, input.ndim, "transpose"), normalize_dim(dim1, input.ndim, "transpose")
    if not input.ndim:
        return input[...], lambda g: (g[...],)
    return input.swapaxes(first, second), lambda g: (g.swapaxes(first, second),)


@transpose.second
def _(g: Derived, *, first: int | None = None, second: int | None = None) -> Gradients:
    return [g if first is None else g.transpose(first, second)]


@op(dtypes="keep", view=True, value=np.ndarray.transpose, batched="itself")
def permute(input: Array, dims: Ints) -> Result:
    """Reorder the dims: dim i of the result is dim dims[i] of the input."""
    ndim = input.ndim
    order = tuple([normalize_dim(d, ndim, "permute") for d in dims])
    if len(order) != ndim:
        raise ShapeError(f"permute: number of dimensions in the tensor input does not match: {len(order)}, {ndim}")
    if len(set(order)) != len(order):
        raise ShapeError(f"permute: repeated dim in {list(dims)}")
    return input.transpose(order), lambda g: (g.transpose(sorted(range(ndim), key=order.__getitem__)),)


@permute.second
def _(g: Derived, *, ndim: int, order: Sequence[int]) -> Gradients:
    return [g.permute(sorted(range(ndim), key=order.__getitem__))]


@op("Tensor", dtypes="keep", view=True, batched="itself")
def expand(input: Array, size: Ints) -> Result:
    """Repeat dims of size 1, and new leading ones, without copying. -1 keeps a dim's size."""
    size = as_ints(size, "expand")
    extra = len(size) - input.ndim
    if extra < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(size)}) must be at least the number of dims ({input.ndim})"
        )
    shape: list[int] = []
    for i, n in enumerate(size):
        current: Any = input.shape[i - extra] if i >= extra else None
        if n == -1 and current is None:
            raise ShapeError(f"expand: -1 is not allowed in a leading, non-existing dimension {i}")
        if n < -1 or (current not in (None, 1, n) and n != -1):
            raise ShapeError(
                f"expand: the expanded size ({n}) must match the existing size ({current}) at non-singleton dimension "
                f"{i}; target {list(size)}"
            )
        shape.append(current if n == -1 else n)
    if math.prod(shape) == input.size:
        return input.reshape(shape), lambda g: (g[...],)  # the result of NumPy's broadcast_to is not writeable
    if type(input) is np.ndarray and input.flags.c_contiguous:  # a fifth of the time of NumPy's function
        own = zip(input.strides, input.shape, shape[extra:], strict=True)
        steps = [0] * extra + [step if m == n else 0 for step, m, n in own]
        return np.ndarray(shape, input.dtype, input, 0, steps), lambda g: (g[...],)
    value = array_module(input).broadcast_to(input, shape)
    if type(value) is np.ndarray:
        value.flags.writeable = input.flags.writeable  # writes look for overlaps: part of the view may have none
    return value, lambda g: (g[...],)


expand.second(lambda g: [g])  # the engine sums it
