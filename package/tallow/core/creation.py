"""Create tensors from Python numbers, sequences, arrays and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.factories import creates
from tallow.core.public_api import public
from tallow.core.short_runtime import ABSENT
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import Array, default_or
from tallow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    NumericError,
    OutOfMemoryError,
    ShapeError,
    TallowError,
)
from tallow.ops.checks import unsupported
from tallow.ops.dims import as_int, as_ints, is_int
from tallow.ops.filling import constant
from tallow.ops.memory_format import contiguous_format, dims_back, dims_in_memory, memory_format, preserve_format

Dtype = Any  # a dtype of tallow or NumPy, or None
Device = Any  # a device, its name, or None
Number = Any  # a Python number, or a tensor of one element


def place(array: Array, dtype: dtypes.dtype, device: Device, requires_grad: bool) -> Tensor:
    """Return a leaf with this array, converted to the dtype and moved to the device."""
    if array.dtype is not dtype.storage:
        array = dtypes.cast(array, dtype)
    if device is None and type(array) is np.ndarray:
        device = devices.default.device
    if device is not None:
        array = devices.move(array, devices.chosen(device))
    tensor = wrap(array)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@public("tl")
def set_default_device(device: Device) -> None:
    """Set the device of new tensors that are created without one, in this thread. None is the CPU."""
    devices.default.device = None if device is None else devices.device(device)


@public("tl")
def get_default_device() -> devices.device:
    """Return the device of new tensors that are created without one."""
    return devices.chosen(None)


def int64_or(dtype: Dtype) -> dtypes.dtype:
    """Return the dtype, or int64 for None."""
    return dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)


def number(value: Number) -> Any:
    """Return a Python number for a tensor or NumPy value with one element, and for a class with `__index__`.

    Other values are returned unchanged.
    """
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, Tensor | np.generic | np.ndarray):
        return value.item()
    return as_int(value, "") if is_int(value) and not isinstance(value, bool) else value


# ----------------------------------------------------------------------------------------------------- from data


@public("tl")
@creates
def tensor(data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor with a copy of `data`: a number, a nested sequence of numbers, or an array.

    Dtypes: `dtype` if given; else that of the arrays and NumPy numbers in `data`, int64 for Python integers, the
        default dtype for Python floats.

    Raises: ArgumentError for ragged sequences, DtypeError and ArgumentTypeError for elements that are not numbers,
        NumericError for numbers that the dtype cannot hold.
    """
    if isinstance(data, Tensor):
        return data.detach().to(device=device, dtype=dtype, copy=True).requires_grad_(requires_grad)
    if devices.is_array(data) and not isinstance(data, np.ndarray):
        return place(_of_user(data.copy()), _array_dtype(data, dtype), device, requires_grad)
    array, inferred = _from_nested(data)
    target = inferred if dtype is None else dtypes.as_dtype(dtype)
    if not isinstance(data, np.ndarray | np.generic):
        _check_range(array, target)
    converted = dtypes.cast(array, target)
    return place(converted.copy() if converted is data else converted, target, device, requires_grad)


@public("tl")
@recorded_whole
def as_tensor(data: Any, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Convert `data` to a tensor. A tensor or an array that has the dtype and device already is not copied."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if devices.is_array(data):
        return place(_of_user(data), _array_dtype(data, dtype), device, False)
    return tensor(data, dtype=dtype, device=device)


@public("tl")
def asarray(
    obj: Any, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Convert `obj` to a tensor; see `as_tensor`.

    Args:
        copy: True always copies, False never does, None copies only if necessary.

    Raises: ArgumentError if `copy` is False and a copy is needed.
    """
    if hasattr(obj, "__array_interface__") and not isinstance(obj, np.generic):  # such as a storage
        obj = np.asarray(obj)
    if copy:
        result = tensor(obj, dtype=dtype, device=device)
    else:
        result = as_tensor(obj, dtype, device)
        if copy is False and not np.may_share_memory(result.array, getattr(obj, "array", obj)):
            raise ArgumentError("asarray: cannot convert without a copy", hint="pass copy=None")
        result = result.detach() if isinstance(obj, Tensor) and requires_grad != obj.requires_grad else result
    return result.requires_grad_(requires_grad) if requires_grad else result


@public("tl")
@recorded_whole
def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Create a tensor that shares memory with a NumPy array: writes to one are visible in the other."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"from_numpy: can't convert an array of {array.dtype}", hint="make it one of numbers")
    array = _of_user(array)
    return wrap(dtypes.cast(array, dtypes.dtype_of(array)))


@public("tl")
@recorded_whole
def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Create a 1-d tensor that shares memory with bytes, a bytearray or any other buffer; `offset` is in bytes."""
    try:
        array = np.frombuffer(buffer, dtypes.as_dtype(dtype).storage, count, offset)
    except ValueError as error:
        raise ArgumentError(f"frombuffer: {error}") from error
    tensor = wrap(array)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@public("tl")
def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Create a tensor that shares memory with an object that has `__dlpack__`, such as a tensor of another library.

    A capsule, which `to_dlpack` of a library returns, serves once, and must be of memory on the CPU: it names its
    device to C alone.

    Args:
        device: moves the tensor there.
        copy: True always copies, False raises ArgumentError where `device` makes a copy necessary.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    device_type, _ = ext_tensor.__dlpack_device__()
    backend = devices.get_backend("cuda" if device_type == DLPACK_CUDA else "cpu")
    array = backend.module.from_dlpack(ext_tensor)
    _array_dtype(array, None)
    target = devices.device_of(array) if device is None else devices.device(device)
    if copy is False and target != devices.device_of(array):
        raise ArgumentError(f"from_dlpack: cannot move to {target} without a copy", hint="pass copy=None")
    return wrap(devices.move(_of_user(array.copy() if copy else array), target))


class _Capsule:
    """An object that `from_dlpack` takes, around a capsule of DLPack."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CPU, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


DLPACK_CPU, DLPACK_CUDA = 1, 2  # kDLCPU and kDLCUDA in dlpack.h


@public("tl")
@creates
def scalar_tensor(s: Number, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Create a 0-d tensor of the default dtype."""
    return full((), s, dtype=default_or(dtype), device=device, requires_grad=requires_grad)


def _array_dtype(array: Array, dtype: Dtype) -> dtypes.dtype:
    """Return the dtype for an array of the user. Its uint16 are integers, not bfloat16 bit patterns."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    return dtypes.uint16 if array.dtype == dtypes.BF16 else dtypes.dtype_of(array)


def _of_user(array: Array) -> Array:
    """Return an array of the user as a tensor holds it, on the same memory."""
    return array.view(dtypes.uint16.storage) if array.dtype == dtypes.BF16 else array


def _from_nested(data: Any) -> tuple[Array, dtypes.dtype]:
    """Return an array of nested sequences, numbers, or anything that NumPy reads; and the dtype PyTorch infers."""
    if isinstance(data, str | bytes):
        raise ArgumentTypeError(f"tensor: invalid data type {type(data).__name__!r}: {data!r:.80}")
    plain = isinstance(data, np.ndarray | np.generic)
    typed = [] if plain else list(_typed_leaves(data))
    try:
        array = np.asarray(_as_arrays(data) if typed else data)
    except ValueError as error:
        raise ArgumentError(
            f"tensor: expected sequence of length as the others, but the nested one is ragged: {error}",
            hint="make all rows equally long",
        ) from None
    except OverflowError as error:
        raise ArgumentError(f"tensor: {error}") from error
    if array.dtype.kind == "O" and any(isinstance(v, int) for v in array.flat):
        raise ArgumentError("tensor: an integer is too large for 64 bits", hint="use floats")
    if array.dtype.kind not in "biufc":
        wrong = next(iter(array.flat)) if array.size else data
        first = data
        while isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(first, str) and first is not data:
            raise ArgumentError(f"tensor: too many dimensions 'str': {data!r:.80}", hint="convert to numbers first")
        if array.dtype.kind in "US":
            raise ArgumentTypeError(f"tensor: invalid data type 'str': {data!r:.80}", hint="convert to numbers first")
        raise DtypeError(f"tensor: could not infer dtype of {type(wrong).__name__}: {data!r:.80}")
    if plain:
        return _of_user(array), _array_dtype(array, None)
    if typed:
        inferred = typed[0]
        for d in typed[1:]:
            inferred = dtypes.promote_types(inferred, d)
    elif array.size:
        default = dtypes.get_default_dtype()
        inferred = default.to_complex() if array.dtype.kind == "c" else OF_KIND.get(array.dtype.kind, default)
    else:
        inferred = dtypes.get_default_dtype()
    return _of_user(array), inferred


OF_KIND = {"b": dtypes.bool, "i": dtypes.int64, "u": dtypes.int64}


def _typed_leaves(data: Any) -> Iterator[dtypes.dtype]:
    """Yield the dtypes of all leaves of a nested sequence, if the first leaf is an array or a NumPy number.

    Long lists of Python numbers are the usual case, and NumPy reads them a hundred times faster than a loop.
    """
    first = data
    while isinstance(first, list | tuple) and first:
        first = first[0]
    return _leaf_dtypes(data) if isinstance(first, Tensor | np.ndarray | np.generic) else iter(())


def _leaf_dtypes(data: Any) -> Iterator[dtypes.dtype]:
    if isinstance(data, list | tuple):
        for item in data:
            yield from _leaf_dtypes(item)
    elif isinstance(data, Tensor):
        yield data.dtype
    elif isinstance(data, np.ndarray | np.generic):
        yield _array_dtype(data, None)
    else:
        yield dtypes.scalar_dtype(data)


def _as_arrays(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._host()
    return [_as_arrays(item) for item in data] if isinstance(data, list | tuple) else data


def _check_range(array: Array, target: dtypes.dtype) -> None:
    """Raise NumericError for numbers that an integer dtype cannot hold. Elements of an array wrap around instead."""
    if target.category != 1 or not array.size:
        return
    if array.dtype.kind == "c":
        raise NumericError(f"tensor: complex numbers cannot be converted to {target.name}", hint="take their real part")
    array = dtypes.numbers_of(array)
    constant(number(array.min()), target, "tensor")
    constant(number(array.max()), target, "tensor")


# ----------------------------------------------------------------------------------------------------- from a size


def as_size(sizes: tuple[Any, ...], name: str = "size", size: Any = None) -> tuple[int, ...]:
    """Return a shape from separate integers or one sequence of them, or from `size`, the argument of that name.

    Raises: ArgumentTypeError for anything but integers, and for both or neither; ShapeError for a negative one.
    """
    if size is not None or not sizes:
        sizes = given_once(sizes, size, name)
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes
    for n in shape:
        if type(n) is not int or n < 0:
            break
    else:
        return shape
    if any(isinstance(n, bool | float | str) or not hasattr(n, "__index__") for n in shape):
        raise ArgumentTypeError(f"{name}: a size consists of integers, got {shape}")
    shape = tuple(n.__index__() for n in shape)
    if any(n < 0 for n in shape):
        negative = next(n for n in shape if n < 0)
        raise ShapeError(f"{name}: trying to create tensor with negative dimension {negative}: {list(shape)}")
    return shape


def given_once(sizes: tuple[Any, ...], size: Any, function: str, name: str = "size") -> tuple[Any, ...]:
    """Return the size of zeros(2, 3) or zeros(size=(2, 3)).  Raises: ArgumentTypeError for both or neither"""
    if size is None:
        if not sizes:
            raise ArgumentTypeError(f"{function}: missing argument '{name}'")
        return sizes
    if sizes:
        raise ArgumentTypeError(f"{function}: got {sizes} and {name}={size}", hint=f"pass {name} once")
    return (size,)


def allocation_error(shape: tuple[int, ...], d: dtypes.dtype, error: Exception) -> TallowError:
    """Return the error for an array that NumPy cannot allocate, for lack of memory or because the size is too large."""
    kind = OutOfMemoryError if isinstance(error, MemoryError) else ShapeError
    return kind(f"cannot allocate a tensor of size {shape} and {d.name}: {error}", hint="check the size")


PLAIN_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def filled(
    shape: tuple[int, ...], value: Number | None, d: dtypes.dtype, device: Device, requires_grad: bool = False
) -> Tensor:
    """Create a leaf of that size on its device. Without a value its memory is uninitialised."""
    target = devices.chosen(device)
    xp = np if target is devices.CPU else devices.get_backend(target.type).module
    if devices.MULTI_DEVICE and (guard := devices.guard_on(target)) is not None:
        with guard:
            return filled(shape, value, d, device, requires_grad)
    try:
        if value == 0 and target.type != "meta":
            array = xp.zeros(shape, d.storage)
        else:
            array = xp.empty(shape, d.storage)
            if value is not None and target.type != "meta":
                array.fill(1 if value == 1 and d.storage in PLAIN_FLOATS else constant(value, d, "full")[()])
    except (MemoryError, OverflowError, ValueError) as error:
        if isinstance(error, TallowError):
            raise
        raise allocation_error(shape, d, error) from error
    if target.type != "cpu":
        return place(array, d, device, requires_grad)  # which names a device that is not there
    tensor = wrap(array)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@public("tl")
@creates
def zeros(
    *sizes: Any, size: Any = None, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor of zeros."""
    return filled(as_size(sizes, "zeros", size), 0, default_or(dtype), device, requires_grad)


@public("tl")
@creates
def ones(
    *sizes: Any, size: Any = None, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor of ones."""
    return filled(as_size(sizes, "ones", size), 1, default_or(dtype), device, requires_grad)


@public("tl")
@creates
def empty(
    *sizes: Any,
    size: Any = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: memory_format = contiguous_format,
) -> Tensor:
    """Create a tensor with uninitialised memory."""
    shape = as_size(sizes, "empty", size)
    if memory_format is contiguous_format:
        return filled(shape, None, default_or(dtype), device, requires_grad)
    if memory_format is preserve_format:
        raise ArgumentError("empty: there is no tensor whose format to preserve", hint="pass tl.channels_last")
    order = dims_in_memory(shape, memory_format)
    tensor = filled(tuple(shape[i] for i in order), None, default_or(dtype), device)
    tensor.array = tensor.array.transpose(dims_back(order))
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@public("tl")
@creates
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with these strides (in elements) and uninitialised memory, just large enough for them."""
    shape, d = as_size((tuple(size),), "empty_strided"), default_or(dtype)
    stride = as_ints(stride, "empty_strided")
    if len(stride) != len(shape) or any(s < 0 for s in stride):
        raise ShapeError(
            f"empty_strided: size {list(shape)} and stride {list(stride)} must have one length, none negative"
        )
    length = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if math.prod(shape) else 0
    flat = empty(length, dtype=d, device=device).array
    xp = devices.array_module(flat)
    steps = tuple(s * d.itemsize for s in stride)
    return place(xp.lib.stride_tricks.as_strided(flat, shape, steps), d, device, requires_grad)


@public("tl")
@creates
def full(
    size: Sequence[int], fill_value: Number, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor filled with one value.

    Dtypes: `dtype` if given, else inferred from the value as in `tensor`.

    Raises: NumericError for a value that the dtype cannot hold.
    """
    if dtype is not None:
        d = dtypes.as_dtype(dtype)
    else:
        d = fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.scalar_dtype(number(fill_value))
    return filled(as_size((size,), "full"), number(fill_value), d, device, requires_grad)


# --------------------------------------------------------------------------------------------------------- ranges


@public("tl")
@creates
def arange(
    *bounds: Number,
    start: Number = 0,
    end: Number = None,
    step: Number = 1,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create start, start + step, ... below end: arange(end), arange(start, end), arange(start, end, step).

    Dtypes: int64 if all bounds are integers, else the default dtype.
    """
    if len(bounds) == 1 and end is None:
        bounds = (start, *bounds)
    start, end, step, *excess = map(number, (*bounds, *(start, end, step)[len(bounds) :]))
    if end is None or excess:
        raise ArgumentTypeError("arange: expected end, or start and end, or start, end and step")
    if step == 0:
        raise ShapeError("arange: step must be nonzero")
    if not all(map(math.isfinite, (start, end, step))):
        raise NumericError(f"arange: unsupported range: {start} -> {end} by {step}")
    if (end - start) * step < 0:
        raise ShapeError(f"arange: from {start} to {end} by {step}: the step has the wrong sign")
    integers = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    d = (dtypes.int64 if integers else dtypes.get_default_dtype()) if dtype is None else dtypes.as_dtype(dtype)
    if d is dtypes.bool:
        raise unsupported("arange", d, "numbers")
    if d is dtypes.int64 and not integers:
        start, end, step, integers = int(start), int(end), int(step), True
        if step == 0:
            raise ArgumentError("arange: step must be nonzero in int64")
    length = -((start - end) // step) if integers else math.ceil((end - start) / step)
    target = devices.chosen(device)
    xp = np if target.type == "meta" else devices.get_backend(target.type).module
    try:
        exact = xp.arange(length, dtype=np.int64)  # integers, so that rounding errors do not accumulate
    except (MemoryError, OverflowError, ValueError) as error:
        raise allocation_error((length,), d, error) from error
    if not integers:
        step = float(step)
    elif step == 1 and start == 0:
        return place(exact, d, target, requires_grad)
    return place(exact * step + start, d, target, requires_grad)


@public("tl")
@creates
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create `steps` evenly spaced numbers from start to end, both included."""
    start, end = number(start), number(end)
    d = _dtype_of_spaced("linspace", dtype, start, end)
    return place(_spaced(start, end, steps, "linspace", d), d, device, requires_grad)


@public("tl")
@creates
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create `steps` numbers from base^start to base^end, evenly spaced on a logarithmic scale."""
    start, end = number(start), number(end)
    d = _dtype_of_spaced("logspace", dtype, start, end)
    exponents = _spaced(start, end, steps, "logspace", d)
    return place(np.power(float(base), exponents), d, device, requires_grad)


def _dtype_of_spaced(name: str, dtype: Dtype, start: Any, end: Any) -> dtypes.dtype:
    """Return the dtype of numbers from `start` to `end`: complex by default if one of them is."""
    if not isinstance(start, complex) and not isinstance(end, complex):
        return default_or(dtype)
    inferred = dtypes.get_default_dtype().to_complex()
    if dtype is not None and not dtypes.as_dtype(dtype).is_complex:
        wanted = dtypes.as_dtype(dtype).name
        raise DtypeError(f"{name}(): inferred dtype {inferred.name} can't be safely cast to {wanted}")
    return inferred if dtype is None else dtypes.as_dtype(dtype)


def _spaced(start: float, end: float, steps: int, name: str, d: dtypes.dtype) -> Array:
    """Return evenly spaced float64 numbers, computed from both ends so that both are exact.

    For integer dtypes the fractions of both ends are dropped first, as in PyTorch, and those of the results last.
    """
    steps = as_int(steps, name)
    if steps < 0:
        raise ShapeError(f"{name}: number of steps must be non-negative, got {steps}")
    if d is dtypes.bool:
        raise unsupported(name, d, "numbers")
    if d.category == 1 and steps > 1:
        start, end = math.trunc(start), math.trunc(end)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    half = steps // 2
    from_start, to_end = np.arange(half, dtype=np.float64), np.arange(steps - 1 - half, -1, -1, dtype=np.float64)
    spaced = np.concatenate([start + step * from_start, end - step * to_end]) if steps > 1 else to_end + start
    return np.trunc(spaced) if d.category == 1 and name == "linspace" else spaced


@public("tl")
@creates
def eye(n: int, m: int = ABSENT, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Create an (n, m) matrix with ones on the diagonal and zeros elsewhere; m is n by default."""
    n = as_int(n, "eye")
    m = n if m is ABSENT else as_int(m, "eye")
    if n < 0 or m < 0:
        raise ShapeError(f"eye: n and m must be at least 0, got {n} and {m}")
    d = default_or(dtype)
    target = devices.chosen(device)
    xp = np if target.type == "meta" else devices.get_backend(target.type).module
    return place(xp.eye(n, m, dtype=np.bool_), d, target, requires_grad)


@public("tl")
@creates
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return row and column indices (2, N) of the elements on and below diagonal `offset` of a (row, col) matrix."""
    return _indices_where(row, col, offset, np.less_equal, dtype, device, requires_grad)


@public("tl")
@creates
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Return row and column indices (2, N) of the elements on and above diagonal `offset` of a (row, col) matrix."""
    return _indices_where(row, col, offset, np.greater_equal, dtype, device, requires_grad)


def _indices_where(
    row: int, col: int, offset: int, keep: Any, dtype: Dtype, device: Device, requires_grad: bool
) -> Tensor:
    row, col, offset = (as_int(n, "tril_indices, triu_indices") for n in (row, col, offset))
    if row < 0 or col < 0:
        raise ShapeError(f"tril_indices, triu_indices: row and col must be non-negative, got {row} and {col}")
    mask = keep(np.arange(col, dtype=np.int64) - np.arange(row, dtype=np.int64)[:, None], offset)
    return place(np.stack(np.nonzero(mask)), int64_or(dtype), device, requires_grad)
