"""Making tensors from Python numbers, sequences, arrays and sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.offer import offer
from tallow.tensor import Tensor, wrap

Dtype = Any  # a dtype of tallow's or NumPy's, or None
Device = Any  # a device, its name, or None
_BUILTIN_DTYPES = {bool: dtypes.bool, int: dtypes.int64}


def place(array: Array, dtype: dtypes.dtype, device: Device, requires_grad: bool) -> Tensor:
    """A leaf holding this array, converted and moved where that is needed."""
    array = dtypes.cast(array, dtype)
    if device is not None:
        array = devices.move(array, devices.device(device))
    made = wrap(array)
    return made.requires_grad_() if requires_grad else made


def _default_or(dtype: Dtype) -> dtypes.dtype:
    return dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)


def _from_nested(data: Any) -> tuple[Array, dtypes.dtype]:
    """An array of nested sequences, numbers, or anything NumPy reads, and the dtype PyTorch infers for it."""
    try:
        array = np.asarray(_unwrap(data))
    except ValueError as error:
        raise ShapeError(f"tensor: the nested sequence is ragged: {error}", mend="make all rows equally long") from error
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"tensor: could not infer dtype of {type(data).__name__}: {data!r:.80}")
    if isinstance(data, np.ndarray | np.generic):
        return array, dtypes.dtype_of(array)
    inferred = {"b": dtypes.bool, "i": dtypes.int64, "u": dtypes.int64, "f": dtypes.get_default_dtype()}[array.dtype.kind]
    return array, inferred if array.size else dtypes.get_default_dtype()


def _unwrap(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._host()
    return [_unwrap(item) for item in data] if isinstance(data, list | tuple) else data


@offer("tl")
def tensor(data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: a number, a nested sequence of numbers, an array.

    Dtypes: given by `dtype`; else an array's own, int64 for integers, the default dtype for floats.

    Raises: ShapeError for ragged sequences, ArgumentTypeError for anything that holds no numbers.
    """
    if isinstance(data, Tensor):
        made = data.detach().clone()
        return made.to(device=device, dtype=dtype).requires_grad_(requires_grad)
    if devices.is_array(data) and not isinstance(data, np.ndarray):
        return place(data.copy(), dtypes.dtype_of(data) if dtype is None else dtypes.as_dtype(dtype), device, requires_grad)
    array, inferred = _from_nested(data)
    if array is data:
        array = array.copy()
    return place(array, inferred if dtype is None else dtypes.as_dtype(dtype), device, requires_grad)


@offer("tl", "asarray")
def as_tensor(data: Any, dtype: Dtype = None, device: Device = None) -> Tensor:
    """As `tensor`, sharing memory with `data` where it is a tensor or an array of that dtype and device already."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if devices.is_array(data):
        return place(data, dtypes.dtype_of(data) if dtype is None else dtypes.as_dtype(dtype), device, False)
    return tensor(data, dtype=dtype, device=device)


@offer("tl")
def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the memory of a NumPy array: writes through one are seen through the other."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    if array.dtype == dtypes.BF16:
        raise ArgumentTypeError("from_numpy: arrays of uint16 have no dtype in tallow", mend="convert it, e.g. to int32")
    dtypes.dtype_of(array)
    return wrap(array)


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int | Tensor | np.integer) else size
    shape = tuple(int(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ShapeError(f"negative dimension in size {shape}")
    return shape


@offer("tl")
def zeros(*size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    d = _default_or(dtype)
    return place(np.zeros(_size(size), d.storage), d, device, requires_grad)


@offer("tl")
def ones(*size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    return full(_size(size), 1, dtype=_default_or(dtype), device=device, requires_grad=requires_grad)


@offer("tl")
def empty(*size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised memory."""
    d = _default_or(dtype)
    return place(np.empty(_size(size), d.storage), d, device, requires_grad)


@offer("tl")
def full(
    size: Sequence[int], fill_value: Scalar, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    d = dtypes.scalar_dtype(fill_value) if dtype is None else dtypes.as_dtype(dtype)
    value = dtypes.cast(np.asarray(fill_value, np.float32 if d is dtypes.bfloat16 else None), d)
    return place(np.full(_size((size,)), value, d.storage), d, device, requires_grad)


@offer("tl")
def arange(
    *bounds: Scalar, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, **named: Scalar
) -> Tensor:
    """arange(end), arange(start, end), arange(start, end, step): start, start + step, ... below end.

    Dtypes: int64 if all bounds are integers, else the default dtype.
    """
    start, end, step = {0: (0, None, 1), 1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}.get(len(bounds), (0, None, 1))
    start, end, step = named.get("start", start), named.get("end", end), named.get("step", step)
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if end is None or step == 0:
        raise ArgumentError(f"arange: got bounds {bounds} {named}; expected an end, and a step that is not zero")
    if (end - start) * step < 0:
        raise ArgumentError("arange: upper bound and lower bound inconsistent with step sign")
    all_integers = all(isinstance(v, int) for v in (start, end, step))
    d = (dtypes.int64 if all_integers else dtypes.get_default_dtype()) if dtype is None else dtypes.as_dtype(dtype)
    length = math.ceil((end - start) / step)
    exact = np.arange(length, dtype=np.int64)  # computed in full width, so that a float's rounding never adds up
    return place(exact * step + start if all_integers else exact * float(step) + start, d, device, requires_grad)
