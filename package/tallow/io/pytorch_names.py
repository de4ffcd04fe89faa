"""The closed list of names that a PyTorch checkpoint may use, and their implementations here.

A storage is a flat tensor, created once per key; the tensors over it are views, so tensors that shared memory when
saved share memory again. Every function checks all its arguments, since they come from the file, and pays for work on
arguments of any length; see `pickle_budget`.

Source:  https://github.com/pytorch/pytorch/blob/v2.6.0/torch/_utils.py, `_rebuild_*`; torch/_weights_only_unpickler.py
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Mapping
from importlib import import_module
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.size import Size
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array, Dtype
from tallow.errors import CheckpointError, ShapeError
from tallow.io.elements import as_elements
from tallow.io.pickle_budget import ELEMENT, Budget, KeyGuard
from tallow.io.safe_globals import set_attributes
from tallow.io.unpickler import Function
from tallow.nn.parameter import Parameter
from tallow.ops.memory_format import layout as Layout
from tallow.ops.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

MAX_DIMENSIONS = 64  # as in NumPy
MAX_BYTES = int(np.iinfo(np.intp).max)  # size of an array, counted as if no stride were 0

STORAGES = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
}
SPARSE_LAYOUTS = (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
UNTYPED = "UntypedStorage"  # raw bytes, for dtypes introduced after typed storages
STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}

_NUMPY_DTYPE = re.compile(r"[<|=]?([biuf][1248])")
_LATIN_1 = ("latin1", "latin-1")


class StorageType(str):
    """The class name of a storage, as in its persistent id."""

    __slots__ = ()

    @property
    def dtype(self) -> Dtype:
        """The dtype of the elements."""
        return dtypes.uint8 if self == UNTYPED else STORAGES[self]


class ArrayType:
    """Placeholder for the class numpy.ndarray."""


def is_count(value: Any) -> bool:
    """Return whether `value` is a valid size, stride or offset."""
    return type(value) is int and 0 <= value < 2**63


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CheckpointError(message)


# ------------------------------------------------------------------------------------------------------ plain values


def _ordered_dict(budget: Budget, pairs: Any = ()) -> OrderedDict[Any, Any]:
    _require(type(pairs) in (list, tuple), "an OrderedDict not built from a list")
    budget.pay(ELEMENT * len(pairs))
    result, guard = OrderedDict(), KeyGuard()
    for pair in pairs:  # as Python 2 wrote them
        _require(type(pair) in (list, tuple) and len(pair) == 2, "an OrderedDict not built from pairs")
        budget.pay_keys((guard.admit(pair[0]),))
        result[pair[0]] = pair[1]
    return result


def _counter(budget: Budget, counts: Any = None) -> Counter[Any]:
    _require(counts is None or type(counts) is dict, "a Counter not built from a dict")
    budget.pay(ELEMENT * len(counts or ()))
    result: Counter[Any] = Counter()
    dict.update(result, counts or {})  # Counter.update would compare the counts, which may be any values
    return result


def _set(budget: Budget, items: Any) -> set[Any]:
    _require(type(items) is list, "a set not built from a list")
    budget.pay(ELEMENT * len(items))
    guard = KeyGuard()
    budget.pay_keys(map(guard.admit, items))
    return set(items)


def _complex(budget: Budget, real: Any, imaginary: Any) -> complex:
    _require(type(real) is float and type(imaginary) is float, "a complex number not built from floats")
    return complex(real, imaginary)


def _encode(budget: Budget, text: Any, encoding: Any) -> bytes:
    """Return bytes as protocol 2 encodes them."""
    is_valid = type(text) is str and type(encoding) is str and len(encoding) < 8 and encoding in _LATIN_1
    _require(is_valid, "bytes in an encoding other than latin-1")
    budget.pay(len(text))
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise CheckpointError("bytes that are not latin-1") from None


def _bytearray(budget: Budget, content: Any = b"", encoding: Any = None) -> bytearray:
    if encoding is not None:
        content = _encode(budget, content, encoding)
    _require(type(content) is bytes, "a bytearray not built from bytes")
    budget.pay(len(content))
    return bytearray(content)


def _size(budget: Budget, lengths: Any) -> Size:
    budget.pay(ELEMENT * len(lengths) if type(lengths) is tuple else 0)
    _require(type(lengths) is tuple and all(type(n) is int for n in lengths), "a torch.Size not built from integers")
    return Size(lengths)


def _device(budget: Budget, kind: Any, index: Any = None) -> devices.device:
    is_valid = type(kind) is str and re.fullmatch(r"[a-z_]{1,32}(:\d{1,4})?", kind) is not None
    _require(
        is_valid and (index is None or (is_count(index) and ":" not in kind)), "a torch.device without a valid name"
    )
    return devices.device(kind, index)


def _no_instance(budget: Budget, *arguments: Any) -> Any:
    raise CheckpointError("a call of a tensor class, which PyTorch does not save")


# ----------------------------------------------------------------------------------------------------------- tensors


def _tensor(budget: Budget, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """Return a strided view of a storage; strides are in elements."""
    _require(isinstance(storage, Tensor) and storage.ndim == 1, "a tensor without a storage")
    _require(is_count(offset), "a tensor whose storage offset is not a natural number")
    for lengths in (size, stride):
        is_valid = isinstance(lengths, tuple) and len(lengths) <= MAX_DIMENSIONS and all(map(is_count, lengths))
        _require(is_valid, "a tensor whose size or stride is not a tuple of natural numbers")
    _require(len(size) == len(stride), f"a tensor of {len(size)} dims with {len(stride)} strides")
    array, count = storage.array, prod(size)
    _require(prod(max(n, 1) for n in size) * array.itemsize <= MAX_BYTES, "a tensor that exceeds all memory")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    _require(not count or last < array.size, f"a tensor that reaches element {last} of a storage of {array.size}")
    return wrap(_view(array, offset, tuple(size), stride) if count else array[:0].reshape(size))


def _view(array: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    if _is_row_major(size, stride):
        return array[offset : offset + prod(size)].reshape(size)
    steps = tuple(n * array.itemsize for n in stride)
    if type(array) is np.ndarray:
        return np.ndarray(size, array.dtype, array, offset * array.itemsize, steps)
    xp = devices.array_module(array)
    if devices.device_type_of(array) == "meta":
        return xp.empty(size, array.dtype)
    return xp.lib.stride_tricks.as_strided(array[offset:], size, steps)


def _is_row_major(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for n, step in zip(reversed(size), reversed(stride), strict=True):
        if n != 1 and step != expected:
            return False
        expected *= n
    return True


def _tensor_v2(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    tensor = _resolved(budget, _tensor(budget, storage, offset, size, stride), metadata)
    return tensor.requires_grad_() if _may_require_grad(tensor, requires_grad) else tensor


def _tensor_v3(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    # Bool tensors have their own storage class, which checks the bytes.
    is_valid = isinstance(dtype, Dtype) and dtype.category != 0
    _require(is_valid, "a tensor without a dtype, or of bool over bytes")
    _require(isinstance(storage, Tensor) and storage.dtype is dtypes.uint8, "a tensor over a storage of another dtype")
    array = storage.array
    _require(array.ndim == 1 and array.size % dtype.itemsize == 0, f"a storage of {array.size} bytes for {dtype}")
    elements = wrap(_converted(budget, array, dtype))
    return _tensor_v2(budget, elements, offset, size, stride, requires_grad, hooks, metadata)


def _resolved(budget: Budget, tensor: Tensor, metadata: Any) -> Tensor:
    """Return the conjugates or negatives of which PyTorch has noted that the tensor is a view of them."""
    if not metadata:
        return tensor
    _require(type(metadata) is dict and metadata.keys() <= {"conj", "neg"}, "a tensor with metadata of unknown meaning")
    _require(budget.may_copy and tensor.dtype not in dtypes.PACKED, f"conjugates of {tensor.dtype} that are a view")
    budget.pay(tensor.nbytes)
    array = tensor.array.conj() if metadata.get("conj") else tensor.array
    return wrap(-array if metadata.get("neg") else array)


def _converted(budget: Budget, array: Array, dtype: Dtype) -> Array:
    """Return bytes as elements of a dtype; each conversion is done once."""
    if type(array) is not np.ndarray:
        is_held = dtype not in dtypes.PACKED or devices.device_type_of(array) == "meta"
        _require(is_held, f"a tensor of {dtype} on a device whose arrays have no such dtype")
        return array.view(dtype.storage)
    key = (array.ctypes.data, array.size, dtype)
    if key not in budget.converted:
        aligned = array.ctypes.data % dtype.itemsize == 0
        _require(aligned or budget.may_copy, "a part of a storage that is not aligned for its elements")
        budget.pay(0 if aligned else array.size)
        budget.converted[key] = as_elements(array, dtype, "a storage")
    return budget.converted[key]


def _may_require_grad(tensor: Tensor, requires_grad: Any) -> bool:
    _require(type(requires_grad) is bool, "a tensor whose requires_grad is not a bool")
    _require(not requires_grad or tensor.dtype.category >= 2, f"a tensor of {tensor.dtype} that requires grad")
    return requires_grad


def _parameter(budget: Budget, data: Any, requires_grad: Any, hooks: Any) -> Parameter:
    _require(isinstance(data, Tensor), "a Parameter not built from a tensor")
    return Parameter(data, _may_require_grad(data, requires_grad))


def _parameter_with_state(budget: Budget, data: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    return _with_attributes(budget, _parameter(budget, data, requires_grad, hooks), state)


def _layout(budget: Budget, name: Any) -> Layout:
    layouts = {f"torch.{x.name}": x for x in SPARSE_LAYOUTS}
    _require(type(name) is str and name in layouts, f"a layout {name!r:.40}")
    return layouts[name]


def _sparse_tensor(budget: Budget, layout: Any, parts: Any) -> Tensor:
    """Return a sparse tensor from its places, values, size and, of the COO layout, whether it is coalesced."""
    # The storages of the legacy format are filled later: places could not be checked.
    _require(budget.may_copy, "a sparse tensor in the format before PyTorch 1.6")
    _require(isinstance(layout, Layout) and type(parts) is tuple, "a sparse tensor without a layout")
    count = 2 if layout is sparse_coo else 3
    tensors, rest = parts[:count], parts[count:]
    is_valid = len(tensors) == count and all(isinstance(x, Tensor) and x.layout is strided for x in tensors)
    flags = rest[1:]
    _require(
        is_valid and 0 < len(rest) < 3 and all(type(x) is bool for x in flags), "a sparse tensor without its parts"
    )
    _require(type(rest[0]) is Size and all(map(is_count, rest[0])), "a sparse tensor without a size")
    _require(all(x.dtype in (dtypes.int64, dtypes.int32) for x in tensors[:-1]), "places that are not integers")
    budget.pay(sum(x.nbytes for x in tensors[:-1]))  # for checking them
    creation: Any = import_module("tallow.sparse.creation")
    try:
        if layout is sparse_coo:
            return creation.sparse_coo_tensor(*tensors, rest[0], is_coalesced=any(flags))
        return creation.sparse_compressed_tensor(*tensors, rest[0], layout=layout)
    except ShapeError as error:
        raise CheckpointError(f"a sparse tensor whose parts do not fit: {error}") from error


def _from_type(budget: Budget, function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """Return a tensor with saved attributes."""
    _require(
        isinstance(function, Function) and function.name.startswith("torch._utils."), "a tensor not built by a function"
    )
    tensor = function(budget, arguments)
    _require(isinstance(kind, Function) and kind.make is _no_instance, "a tensor without a class")
    return _with_attributes(budget, tensor, state)


def _with_attributes(budget: Budget, tensor: Tensor, state: Any) -> Tensor:
    budget.pay(ELEMENT * len(state) if type(state) is dict else 0)
    _require(type(state) is dict and all(type(name) is str for name in state), "a tensor whose state is not a dict")
    tensor.__dict__.update((k, v) for k, v in state.items() if k != "array" and not hasattr(type(tensor), k))
    return tensor


# ------------------------------------------------------------------------------------------------------------- NumPy


def _numpy_dtype(budget: Budget, name: Any, align: Any = False, copy: Any = False) -> np.dtype[Any]:
    match = _NUMPY_DTYPE.fullmatch(name) if type(name) is str and len(name) < 8 else None
    _require(match is not None, "a NumPy dtype other than plain little-endian numbers")
    try:
        return np.dtype(f"<{match[1]}" if match else "")
    except TypeError:
        raise CheckpointError(f"an unknown NumPy dtype: {name}") from None


def _set_numpy_dtype(state: Any) -> None:
    is_valid = type(state) is tuple and len(state) > 1 and type(state[1]) is str and state[1] in tuple("<|=")
    _require(is_valid, "a NumPy dtype that is big-endian or structured")


def _numpy_bytes(budget: Budget, dtype: Any, content: Any, count: int) -> bytes:
    """Return `content` as bytes, checked to be those of `count` elements."""
    _require(isinstance(dtype, np.dtype) and type(content) in (bytes, str), "NumPy values without dtype or content")
    raw = _encode(budget, content, "latin1") if type(content) is str else content  # Python 2 used strings for bytes
    budget.pay(len(raw))  # for copying it
    _require(len(raw) == count * dtype.itemsize, f"{len(raw)} bytes for {count} elements of {dtype}")
    _require(dtype.kind != "b" or np.frombuffer(raw, np.uint8).max(initial=0) <= 1, "booleans other than 0 and 1")
    return raw


def _numpy_scalar(budget: Budget, dtype: Any, content: Any) -> Any:
    return np.frombuffer(_numpy_bytes(budget, dtype, content, 1), dtype)[0]


def _numpy_array(budget: Budget, kind: Any, shape: Any, code: Any) -> np.ndarray[Any, Any]:
    _require(kind is ArrayType, "a NumPy array of another class")
    return np.empty(0, np.int8)  # its content comes with the state that follows


def _set_numpy_array(budget: Budget, array: np.ndarray[Any, Any], state: Any) -> None:
    _require(array.size == 0 and type(state) is tuple and len(state) == 5, "a NumPy array without content")
    version, shape, dtype, fortran, content = state
    _require(version == 1 and type(fortran) is bool, "a NumPy array of an unknown version")
    raw = _numpy_content(budget, dtype, content, shape)
    array.__setstate__((1, shape, dtype, fortran, raw))


def _numpy_from_buffer(budget: Budget, content: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    """Return an array as protocol 5 encodes it."""
    if type(content) is bytearray:
        budget.pay(len(content))
        content = bytes(content)
    raw = _numpy_content(budget, dtype, content, shape)
    _require(type(order) is str and order in ("C", "F"), "a NumPy array without a valid order")
    return np.frombuffer(bytearray(raw), dtype).reshape(shape, order=order)


def _numpy_content(budget: Budget, dtype: Any, content: Any, shape: Any) -> bytes:
    is_valid = type(shape) is tuple and len(shape) <= MAX_DIMENSIONS and all(map(is_count, shape))
    _require(is_valid, "a NumPy array without a shape")
    raw = _numpy_bytes(budget, dtype, content, prod(shape))
    _require(prod(max(n, 1) for n in shape) * dtype.itemsize <= MAX_BYTES, "an array that exceeds all memory")
    return raw


# --------------------------------------------------------------------------------------------------------- the table


def set_state(budget: Budget, target: Any, state: Any, permitted: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Implement the opcode BUILD: set attributes of a state_dict, or the state of a NumPy dtype or array.

    Args:
        permitted: classes that the program permits, by name; their objects get any state.
    """
    if type(target) is OrderedDict:
        budget.pay(ELEMENT * len(state) if type(state) is dict else 0)
        _require(type(state) is dict and all(type(name) is str for name in state), "attributes that are not a dict")
        target.__dict__.update((name, value) for name, value in state.items() if not hasattr(OrderedDict, name))
    elif isinstance(target, np.dtype):
        _set_numpy_dtype(state)
    elif isinstance(target, np.ndarray):
        _set_numpy_array(budget, target, state)
    elif any(type(target) is value for value in permitted.values()):
        set_attributes(target, state)
    else:
        raise CheckpointError(f"a state for a {type(target).__name__}")


FUNCTIONS = (
    Function("collections.OrderedDict", _ordered_dict, 0, 1),
    Function("collections.Counter", _counter, 0, 1),
    Function("builtins.set", _set, 1, 1),
    Function("builtins.complex", _complex, 2, 2),
    Function("builtins.bytearray", _bytearray, 0, 2),
    Function("_codecs.encode", _encode, 2, 2),
    Function("torch.Size", _size, 1, 1),
    Function("torch.device", _device, 1, 2),
    Function("torch.Tensor", _no_instance, 0, 0),
    Function("torch.nn.parameter.Parameter", _no_instance, 0, 0),
    Function("torch._utils._rebuild_tensor", _tensor, 4, 4),
    Function("torch._utils._rebuild_tensor_v2", _tensor_v2, 6, 7),
    Function("torch._utils._rebuild_tensor_v3", _tensor_v3, 7, 8),
    Function("torch._utils._rebuild_sparse_tensor", _sparse_tensor, 2, 2),
    Function("torch.serialization._get_layout", _layout, 1, 1),
    Function("torch._utils._rebuild_parameter", _parameter, 3, 3),
    Function("torch._utils._rebuild_parameter_with_state", _parameter_with_state, 4, 4),
    Function("torch._tensor._rebuild_from_type_v2", _from_type, 4, 4),
    Function("numpy.dtype", _numpy_dtype, 1, 3),
    Function("numpy.core.multiarray.scalar", _numpy_scalar, 2, 2),
    Function("numpy.core.multiarray._reconstruct", _numpy_array, 3, 3),
    Function("numpy.core.numeric._frombuffer", _numpy_from_buffer, 4, 4),
    Function("numpy._core.numeric._frombuffer", _numpy_from_buffer, 4, 4),
    Function("numpy._core.multiarray.scalar", _numpy_scalar, 2, 2),  # renamed in NumPy 2
    Function("numpy._core.multiarray._reconstruct", _numpy_array, 3, 3),
)
NAMES: dict[str, Any] = {
    **{function.name: function for function in FUNCTIONS},
    "numpy.ndarray": ArrayType,
    **{f"torch.{name}": StorageType(name) for name in (*STORAGES, UNTYPED)},
    f"torch.storage.{UNTYPED}": StorageType(UNTYPED),
    **{f"torch.{dtype.name}": dtype for dtype in dtypes.BY_STORAGE.values()},
}
