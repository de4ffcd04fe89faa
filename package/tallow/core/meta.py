"""Device "meta": tensors with a shape and a dtype, and no memory.

A model created on it uses no memory. Loading a checkpoint replaces these arrays with those of the file. An op on
tensors of this device has a result on it: element by element by the rules of shapes and dtypes, in microseconds; other
functions of NumPy run on zeros. Reading a value raises DeviceError, as do functions with results whose shape depends on
the values, and ops with a tensor of another device, so a weight that was never loaded does not go unnoticed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from tallow import devices
from tallow.core.trees import map_leaves
from tallow.errors import DeviceError, ShapeError
from tallow.kernels.table import PREFERENCE

# Functions with results whose shape depends on the values.
BY_VALUES = (np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.compress, np.extract)
# Functions that return a view, of which no element is read.
VIEWS = (np.transpose, np.swapaxes, np.moveaxis, np.squeeze, np.expand_dims, np.broadcast_to, np.diagonal)
BASIC = (int, slice, type(None), type(...), np.integer)  # parts of an index that chooses a view
# Functions that write to their first argument, and return nothing.
WRITERS = (np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis)


class MetaArray(np.ndarray[Any, Any]):
    """An array of any shape with one element, repeated by strides of zero.

    Attributes:
        layout: the strides, in bytes, that it would have with memory; None in row-major order.
        start: the offset of its first element in that memory, in bytes.
    """

    layout: tuple[int, ...] | None = None
    start: int = 0

    @property  # type: ignore[misc]  # NumPy's arrays let it be set
    def strides(self) -> tuple[int, ...]:
        """The strides, in bytes, that the array would have with memory."""
        return row_major(self.shape, self.itemsize) if self.layout is None else self.layout

    @property
    def flags(self) -> SimpleNamespace:  # type: ignore[override]
        """The flags that the array would have with memory."""
        return SimpleNamespace(
            c_contiguous=is_row_major(self.shape, self.strides, self.itemsize),
            f_contiguous=is_row_major(self.shape[::-1], self.strides[::-1], self.itemsize),
            writeable=True,
            owndata=self.layout is None,
        )

    def viewed(self, function: Callable[[Any], Any]) -> Any:
        """Return the view that a function makes of the array. The function reads no elements: there are none."""
        plain = np.ndarray.view(self, np.ndarray)
        probe = np.lib.stride_tricks.as_strided(plain, self.shape, self.strides, writeable=False)
        found = function(probe)
        same = _view(self, found.shape) if found.dtype == self.dtype else empty(found.shape, found.dtype)
        return laid_out(same, found.strides, self.start + _address(found) - _address(probe))

    def transpose(self, *axes: Any) -> Any:
        """Return a view with permuted dims."""
        return self.viewed(lambda x: x.transpose(*axes))

    def swapaxes(self, axis1: Any, axis2: Any) -> Any:
        """Return a view with two dims exchanged."""
        return self.viewed(lambda x: x.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> Any:
        """Return a view without dims of size 1."""
        return self.viewed(lambda x: x.squeeze(axis))

    def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """Return a view of diagonals."""
        return self.viewed(lambda x: x.diagonal(offset, axis1, axis2))

    real = property(lambda self: self.viewed(lambda x: x.real))
    imag = property(lambda self: self.viewed(lambda x: x.imag))
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and ufunc.signature is None and kwargs.keys() <= {"out", "dtype", "casting", "subok"}:
            samples = [_sample(x) for x in inputs]
            (out,) = kwargs.pop("out", (None,))
            results = ufunc(*samples, **kwargs)
            shape = np.broadcast_shapes(*(np.shape(x) for x in inputs))
            return out if out is not None else _map(lambda r: _like_operands(inputs, shape, r.dtype), results)
        if ufunc is np.matmul and method == "__call__":
            return _product(*inputs)
        if method == "reduce" and kwargs.keys() <= {"axis", "keepdims", "dtype", "initial", "where"}:
            return _reduced(ufunc, *inputs, **kwargs)
        return on_zeros(getattr(ufunc, method), *inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return on_zeros(func, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, MetaArray) and part.dtype == bool for part in parts):
            raise _no_data("indexing by a mask")  # its shape depends on the values
        if not all(isinstance(part, BASIC) and not isinstance(part, bool) for part in parts):
            return super().__getitem__(index)
        if len(parts) == self.ndim and all(isinstance(part, int | np.integer) for part in parts):
            return super().__getitem__(index)  # an element, which NumPy would read
        return self.viewed(lambda x: x[parts if any(part is ... for part in parts) else (*parts, ...)])

    def __int__(self) -> NoReturn:
        raise _no_data("a value as an int")

    def nonzero(self) -> NoReturn:
        """Refuse: the shape of the result depends on the values."""
        raise _no_data("nonzero")

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write nothing: there are no values."""

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> MetaArray:
        """Return an array of another dtype."""
        return dense(self, empty(self.shape, dtype))

    def copy(self, order: Any = "C") -> MetaArray:
        """Return an array like this one."""
        same = empty(self.shape, self.dtype)
        return dense(self, same) if order in ("K", "A") else same

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> MetaArray:
        """Return an array of another shape and as many elements."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        known = math.prod(n for n in sizes if n >= 0)
        wanted = tuple(self.size // known if n < 0 and known else n for n in sizes)
        if math.prod(wanted) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {tuple(sizes)}")
        try:
            return self.viewed(lambda x: x.reshape(wanted, copy=False))
        except ValueError:  # there is no such view: NumPy would copy
            return empty(wanted, self.dtype)


def _view(array: np.ndarray[Any, Any], shape: Any, strides: Any = None) -> MetaArray:
    """Return an array of another shape over the one element of an array, as a view of the same memory."""
    same = np.lib.stride_tricks.as_strided(array, shape, (0,) * len(shape), subok=True, writeable=False)
    return laid_out(same.view(MetaArray), strides, getattr(array, "start", 0))


def row_major(shape: Any, step: int) -> tuple[int, ...]:
    """Return the strides of an array without gaps, whose elements are `step` bytes apart."""
    strides: list[int] = []
    for n in reversed(shape):
        strides.insert(0, step)
        step *= max(n, 1)
    return tuple(strides)


def is_row_major(shape: Any, strides: Any, step: int) -> bool:
    """Return whether an array of these strides has its elements in row-major order, `step` bytes apart."""
    return not math.prod(shape) or all(
        n == 1 or own == wanted for n, own, wanted in zip(shape, strides, row_major(shape, step), strict=True)
    )


def laid_out(array: MetaArray, strides: Any, start: int = 0) -> MetaArray:
    """Set the strides and the offset that an array would have with memory, in bytes. None means row-major order."""
    if strides is not None and any(n != 1 for n in array.shape):
        array.layout = tuple(strides)
    array.start = start
    return array


def dense(like: np.ndarray[Any, Any], array: MetaArray) -> MetaArray:
    """Give an array the order of the dims of another of its shape, without gaps."""
    order = sorted(range(array.ndim), key=lambda d: -abs(like.strides[d]))
    inner = row_major([array.shape[d] for d in order], array.itemsize)
    return laid_out(array, [inner[order.index(d)] for d in range(array.ndim)])


def _like_operands(operands: Any, shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """Return the result of a ufunc, in the order of the first operand of its shape."""
    found = empty(shape, dtype)
    whole = [x for x in operands if isinstance(x, np.ndarray) and x.shape == shape]
    return dense(whole[0], found) if whole else found


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _sample(x: Any) -> Any:
    """Return one element of an array, by which a ufunc chooses the dtype of its result."""
    return np.ones((), x.dtype)[()] if isinstance(x, np.ndarray | np.generic) else x


def _map(function: Callable[[Any], Any], results: Any) -> Any:
    return tuple(map(function, results)) if isinstance(results, tuple) else function(results)


def _product(a: Any, b: Any) -> MetaArray:
    """Return the product of matrices, of the shape that matmul gives."""
    if a.ndim < 2 or b.ndim < 2:
        return on_zeros(np.matmul, a, b)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"matmul: {tuple(a.shape)} and {tuple(b.shape)}", hint="transpose one operand with .mT")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return empty((*batch, a.shape[-2], b.shape[-1]), np.result_type(a.dtype, b.dtype))


def _reduced(
    ufunc: np.ufunc, x: Any, axis: Any = 0, keepdims: bool = False, where: Any = True, **kwargs: Any
) -> MetaArray:
    """Return the reduction of an array along dims: its shape, and the dtype that one element leads to."""
    one = ufunc.reduce(np.zeros([min(n, 1) for n in x.shape], x.dtype), axis, keepdims=True, **kwargs)
    del where  # which elements count does not matter
    dims = range(x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdims or d not in dims]
    return empty(tuple(shape), one.dtype)


def on_zeros(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a function makes of zeros in the place of tensors without values: arrays without values again."""

    if function in BY_VALUES or (function is np.where and len(args) == 1):
        raise _no_data(function.__name__)
    if function in WRITERS:
        return None  # there are no values
    if function is np.where:
        return empty(np.broadcast_shapes(*map(np.shape, args)), np.where(*map(_sample, args)).dtype)
    if function in VIEWS and args and isinstance(args[0], MetaArray):
        return args[0].viewed(lambda x: function(x, *args[1:], **kwargs))

    def zeros(x: Any) -> Any:
        return np.ndarray.view(x, np.ndarray) if isinstance(x, MetaArray) else x

    out = kwargs.pop("out", None)
    results = function(*map_leaves(zeros, list(args)), **map_leaves(zeros, kwargs))
    if out is not None:
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out

    def without_values(x: Any) -> Any:
        return empty(x.shape, x.dtype) if isinstance(x, np.ndarray | np.generic) else x

    return map_leaves(without_values, results)


def empty(shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """Return an array with this shape and dtype, and no memory."""
    try:
        return np.broadcast_to(np.zeros((), dtype), shape).view(MetaArray)
    except ValueError as error:
        raise ShapeError(f"a tensor of shape {shape} exceeds what this platform can address: {error}") from error


def full(shape: Any, fill_value: Any = 0, dtype: Any = None) -> MetaArray:
    """Return an array with this shape and dtype, by default that of the value."""
    return empty(
        (shape,) if isinstance(shape, int) else tuple(shape), np.asarray(fill_value).dtype if dtype is None else dtype
    )


def zeros(shape: Any, dtype: Any = float) -> MetaArray:
    """Return an array with this shape and dtype."""
    return full(shape, dtype=dtype)


def like(array: Any, *_: Any, dtype: Any = None, shape: Any = None) -> MetaArray:
    """Return an array with the shape and dtype of another, or those that are given."""
    found = full(array.shape if shape is None else shape, dtype=array.dtype if dtype is None else dtype)
    return dense(array, found) if shape is None else found


lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=_view))
ones = zeros
empty_like = zeros_like = ones_like = full_like = like


def _no_data(what: str) -> DeviceError:
    return DeviceError(f"{what}: a tensor on device 'meta' has no data", hint="load the model's weights first")


class _Meta:
    type = "meta"
    array_type = MetaArray
    module = sys.modules[__name__]

    def device_of(self, array: Any) -> devices.device:
        return devices.device("meta")

    def from_host(self, array: np.ndarray[Any, Any], target: devices.device, non_blocking: bool = False) -> MetaArray:
        return empty(array.shape, array.dtype)

    def to_host(self, array: Any) -> NoReturn:
        raise _no_data("copy")

    def transfer(self, array: Any, target: devices.device) -> Any:
        return array

    def linalg_errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_capturing(self) -> bool:
        return False


def register() -> None:
    """Register the device."""
    devices.register_backend(_Meta())
    PREFERENCE["meta"] = ()


def __getattr__(name: str) -> Any:
    """Return NumPy's function of this name, for arrays without values."""
    if name.startswith("__"):
        raise AttributeError(name)
    value = getattr(np, name)
    is_class = isinstance(value, type)
    return partial(on_zeros, value) if callable(value) and not is_class and not isinstance(value, np.ufunc) else value
