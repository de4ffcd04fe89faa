"""`x[index]` and `x[index] = value`, with PyTorch's meaning.

An index is split in two: the basic part (integers, slices, None, ...) makes a view, and the advanced part (tensors,
lists, arrays) gathers from that view. NumPy lets an integer beside an array count as advanced; PyTorch and this do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import devices
from tallow.core.apply import apply, apply_inplace, check_writable, is_writable, writes_history
from tallow.core.creation import tensor
from tallow.core.overrides import ASKING, after_failure
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DeviceError, DimensionError, DtypeError, ShapeError
from tallow.functions.casting import convert
from tallow.functions.filling import copy_, fill_
from tallow.ops.dims import as_int, is_int
from tallow.ops.filling import constant, placed
from tallow.ops.index_put import index_put, put_into
from tallow.ops.indexing import full_index, getitem, take_at
from tallow.tape.graph import check_inplace, note_write
from tallow.tape.modes import mode

WHOLE = slice(None)


class Parsed:
    """An index, split.

    Attributes:
        basic: for NumPy: integers, slices, None, and one Ellipsis at the end or where it stood.
        arrays: for the dims of the basic part's result, an array of places or a mask, or None; empty if there is none.
        plain: the basic part takes everything as it is.
    """

    __slots__ = ("arrays", "basic", "plain")

    def __init__(self, x: Array, index: Any) -> None:
        items = _items_of(index if isinstance(index, tuple) or _stands_for_tuple(index) else (index,))
        self.basic: list[Any] = []
        arrays: list[Array | None] = []
        missing = x.ndim - sum(_dims_of(item) for item in items)
        if missing < 0:
            raise DimensionError(f"too many indices for tensor of dimension {x.ndim}: {len(items)} given")
        dim = 0  # of x, where the next item begins
        has_ellipsis = self.plain = False
        for item in items:
            if item is Ellipsis:
                if has_ellipsis:
                    continue  # the first one stands for all missing dims
                has_ellipsis = True
                self.basic.append(Ellipsis)
                arrays += [None] * missing
                dim += missing
            elif item is None:
                self.basic.append(None)
                arrays.append(None)
            elif isinstance(item, slice):
                self.basic.append(_slice(item))
                arrays.append(None)
                dim += 1
            elif _is_integer(item):
                self.basic.append(_integer(item, x.shape[dim], dim))
                dim += 1
            else:
                array = _array(item, x)
                if array.ndim or array.dtype != bool:
                    dims = max(array.ndim, 1) if array.dtype == bool else 1
                    if array.dtype == bool:
                        _check_mask(array, x, dim)
                    self.basic += [WHOLE] * dims
                    dim += dims
                else:  # a single bool: a new dim, of size one or zero
                    self.basic.append(None)
                    array = array.reshape(1)
                arrays.append(array)
        self.plain = all(item == WHOLE if isinstance(item, slice) else item is Ellipsis for item in self.basic)
        if not has_ellipsis:
            self.basic.append(Ellipsis)
        self.arrays = tuple(arrays) if any(a is not None for a in arrays) else ()


def _check_mask(mask: Array, x: Array, dim: int) -> None:
    for i, (size, expected) in enumerate(zip(mask.shape, x.shape[dim:], strict=False)):
        if size != expected:
            raise DimensionError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape of the indexed tensor "
                f"{list(x.shape)} at index {dim + i}"
            )


def _items_of(index: Any) -> tuple[Any, ...]:
    """Return the items of an index, with the arrays of tensors."""
    return tuple([item.array if isinstance(item, Tensor) else item for item in index])


def _stands_for_tuple(index: Any) -> bool:
    """Return whether an index is a list that PyTorch reads as a tuple, because it cannot be a tensor."""
    return isinstance(index, list) and any(i is None or i is Ellipsis or isinstance(i, slice) for i in index)


def _dims_of(item: Any) -> int:
    """Return how many dims an item of an index refers to."""
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    if isinstance(item, list | tuple):
        return np.ndim(item) if _is_mask(item) else 1
    return item.ndim if getattr(item, "dtype", None) in MASKS else 1


def _is_mask(items: Any) -> bool:
    while isinstance(items, list | tuple) and items:
        items = items[0]
    return isinstance(items, bool | np.bool_)


def _is_integer(item: Any) -> bool:
    if devices.is_array(item):
        return item.ndim == 0 and item.dtype.kind == "i" and devices.has_elements(item)
    return is_int(item) and not isinstance(item, bool)


def _integer(item: Any, size: int, dim: int) -> int:
    i = _value_of(item) if devices.is_array(item) else as_int(item, "index")
    if type(i) is int and not -size <= i < size:  # NumPy checks a size that `tallow.export` follows
        raise DimensionError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    return i


def _value_of(item: Array) -> int:
    """Return the value of an integer tensor; it decides the place of a view, so a graph cannot repeat it."""
    if mode.tracer is not None:
        mode.tracer.reads(item, "an index of one place")
    return int(item)


def _slice(item: slice) -> slice:
    """Return the slice with Python integers for tensors. Raises: ArgumentError for a step that is not positive."""
    parts = [None if p is None else p.__index__() for p in (item.start, item.stop, item.step)]
    if parts[2] is not None and parts[2] <= 0:
        raise ArgumentError(f"step must be greater than zero, got {parts[2]}", hint="use .flip(dim) to reverse")
    return slice(*parts)


def _array(item: Any, x: Array) -> Array:
    """Return indices or a mask as an array on the device of x."""
    if devices.is_array(item):
        array = item
    elif isinstance(item, bool | np.bool_):
        array = np.asarray(item)
    elif isinstance(item, list | tuple | range):
        array = tensor(list(item)).array if mode.tracer is not None and len(item) else places_in(item)
    elif isinstance(item, str):
        raise ArgumentTypeError(f"a tensor has no index {item!r:.80}: invalid data type 'str'")
    else:
        raise DimensionError(
            "only integers, slices, ellipsis, None and integer or bool tensors, lists and arrays are valid indices, "
            f"not {type(item).__name__}"
        )
    if array.dtype == np.uint8:
        array = array.astype(np.bool_)
    if array.dtype not in PLACES:
        raise DimensionError(f"tensors used as indices must be of int64, int32, uint8 or bool, not {array.dtype}")
    if type(array) is not type(x) and devices.has_elements(array):
        target = devices.device_of(x)
        if not isinstance(array, np.ndarray) and not devices.is_on(array, target):
            raise DeviceError("indices must be on the CPU or on the device of the tensor they index")
        array = devices.move(array, target)
    return array


def _simple(index: Any) -> tuple[Any, ...] | None:
    """Return a basic index in the form that NumPy takes; None if anything in it has to be converted first."""
    items = index if type(index) is tuple else (index,)
    has_ellipsis = False
    for item in items:
        kind = type(item)
        if kind is int or item is None:
            continue
        if kind is slice and (item.step is None or (type(item.step) is int and item.step > 0)):
            continue
        if item is Ellipsis and not has_ellipsis:
            has_ellipsis = True
            continue
        return None
    return items if has_ellipsis else (*items, ...)  # with an Ellipsis NumPy returns a view even of one element


def places_in(items: Any) -> Array:
    """Return a list of indices or booleans as an array on the host."""
    if items and all(type(i) is int and abs(i) < HIGHEST_PLACE for i in items):
        return np.array(items, np.int64)
    if items and all(isinstance(i, np.signedinteger) for i in items):  # of any width, unlike an array
        return np.array(items, np.int64)
    host = tensor(items, device="cpu").array  # "cpu", because the default device may be another
    return host if host.size else host.astype(np.int64)


@public("Tensor")
def __getitem__(input: Tensor, index: Any) -> Tensor:
    """Return x[index]: a view for integers, slices, None and ...; a copy for tensors, lists and masks."""
    try:
        simple = (index, ...) if type(index) is int else _simple(index)
        if simple is not None:
            return getitem.call(input, simple)
        places = index.array if type(index) is Tensor and input.array.ndim else None
        if places is not None and places.ndim and places.dtype in PLACES and type(places) is type(input.array):
            if places.dtype.kind == "b":
                _check_mask(places, input.array, 0)
            return take_at.call(input, (places,))
        return _getitem_parsed(input, index)
    except Exception:
        return after_failure(Tensor.__getitem__, (input, index), {})


@devices.guarded
def _getitem_parsed(input: Tensor, index: Any) -> Tensor:
    parsed = Parsed(input.array, index)
    if parsed.arrays:
        source = input if parsed.plain else apply(getitem, input, tuple(parsed.basic))
        return apply(take_at, source, parsed.arrays)
    return apply(getitem, input, tuple(parsed.basic))


@public("Tensor")
def __setitem__(input: Tensor, index: Any, value: Any) -> None:
    """Write x[index] = value: `copy_` to the view for basic indices, `index_put_` for the others."""
    try:
        simple = _simple(index)
        if simple is not None and _written_at_once(input, simple, value):
            return
        arrays: tuple[Array | None, ...] = ()
        if simple is not None:
            target = getitem.call(input, simple)
        else:
            parsed = Parsed(input.array, index)
            target, arrays = input if parsed.plain else apply(getitem, input, tuple(parsed.basic)), parsed.arrays
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, Tensor | int | float | complex):
            raise ArgumentTypeError(
                f"can't assign a {type(value).__name__} to a tensor", hint="convert it first, with tl.tensor(...)"
            )
        if isinstance(value, Tensor):
            value = _without_leading_ones(value)
        if arrays:
            put(target, arrays, value)
        elif isinstance(value, Tensor):
            copy_(target, value)
        else:
            fill_(target, value)
    except Exception:
        after_failure(Tensor.__setitem__, (input, index, value), {})


ASKING.update((__getitem__.__code__, __setitem__.__code__))


def _written_at_once(input: Tensor, index: tuple[Any, ...], value: Any) -> bool:
    """Write directly if there is nothing to convert, record or check. Otherwise write nothing and return False."""
    array = input.array
    if array.dtype not in PLAIN or type(array) is not np.ndarray or not is_writable(array):
        return False
    if mode.tracer is not None or (input._inference and not mode.inference):
        return False
    tensors = (input, value) if isinstance(value, Tensor) else (input,)
    if mode.recording and writes_history(input, tensors):
        return False
    if isinstance(value, Tensor):
        value = value.array
        if type(value) is not np.ndarray or value.dtype is not array.dtype:
            return False
    elif type(value) not in (int, float) or not -HIGHEST <= value <= HIGHEST:
        return False
    try:
        array[index] = value
    except (ValueError, IndexError, TypeError):
        return False  # the general way fails too, with an error that explains it
    note_write(input)
    return True


MASKS = (np.dtype(np.bool_), np.dtype(np.uint8))  # PyTorch still accepts bytes as masks
PLACES = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_))
PLAIN = (np.dtype(np.float32), np.dtype(np.float64))
HIGHEST_PLACE = 1 << 62
HIGHEST = 3e38  # within the range of float32 and float64


def _without_leading_ones(value: Tensor) -> Tensor:
    """Drop leading dims of size 1. As in PyTorch, the value may have more of them than the target."""
    while value.array.shape[:1] == (1,):
        value = value[0]
    return value


@public("Tensor_", checked=True)
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values`, broadcast, to input[indices].

    Args:
        indices: a tensor for each of the first dims.
        accumulate: add instead of overwriting.
    """
    if isinstance(indices, Tensor):
        raise ArgumentTypeError("index_put_: indices must be a tuple of tensors, one for each dim, not a Tensor")
    arrays = tuple(None if i is None else _array(i, input.array) for i in _items_of(indices))
    return put(input, arrays, values, accumulate)


@devices.guarded
def put(target: Tensor, arrays: tuple[Array | None, ...], value: Any, accumulate: bool = False) -> Tensor:
    """Write to target[arrays], directly if nothing has to be recorded; the recorded op copies the target."""
    if not isinstance(value, Tensor):
        value = as_element(value, target)
    elif value.dtype is not target.dtype:
        masks = [a for a in arrays if a is not None]
        if accumulate or value.numel() != 1 or len(masks) != 1 or masks[0].dtype != bool:
            raise DtypeError(
                f"index_put_: source and destination dtypes differ: {value.dtype.name} into {target.dtype.name}",
                hint="convert the source with .to(dtype)",
            )
        value = value.to(target.dtype)  # one value at the places of a mask, as masked_fill_
    if not value.ndim:
        value = convert(value, None, target.device)
    is_seen = mode.batching is not None or mode.tracer is not None
    if is_seen or (mode.recording and writes_history(target, (target, value))):
        return apply_inplace(index_put, target, arrays, value, accumulate)
    put_at_once(target, arrays, value, accumulate)
    return target


def as_element(number: float, target: Tensor) -> Tensor:
    """Return a number as a zero-dim tensor of the target's dtype and device."""
    if mode.tracer is not None:
        return tensor(number, dtype=target.dtype, device=target.device)
    return wrap(placed(constant(number, target.dtype, "index_put_"), devices.array_module(target.physical().array)))


def put_at_once(target: Tensor, arrays: tuple[Array | None, ...], value: Tensor, accumulate: bool) -> None:
    """Write to target[arrays], where nothing has to be recorded."""
    check_inplace(target, "index_put_", recording=False)
    check_writable(target, "index_put_")
    try:
        put_into(target.array, full_index(arrays), value.array, accumulate)
    except ValueError as error:
        raise ShapeError(f"index_put_: {error}") from error
    except IndexError as error:
        raise DimensionError(f"index_put_: {error}") from error
    note_write(target)
