"""Collate samples to a batch by the type of the first sample, as in torch.utils.data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.creation import as_tensor, tensor
from tallow.core.tensor import Tensor
from tallow.data.dataset import Samples
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.joining import stack

CollateMap: TypeAlias = dict[type | tuple[type, ...], Callable[..., Any]]
NOT_NUMBERS = "SUO"  # NumPy dtype kinds of strings and objects


def default_collate(batch: Any) -> Any:
    """Collate samples to one batch: each leaf gets a leading batch dimension.

        tensors, NumPy arrays    a tensor (B, ...)
        NumPy scalars, ints      a tensor (B,) of their dtype, int64 for ints, bool for bools
        floats                   a tensor (B,) of float64
        strings, bytes           unchanged
        mappings, named tuples   the same type, of collated values
        tuples, lists            a list of collated elements; other sequences keep their type

    Raises:  ArgumentTypeError for samples of other types; ShapeError for tensors, or sequences, of different sizes

    Example:
        >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collate as `default_collate`, with another table of type -> function(batch, *, collate_fn_map)."""
    if isinstance(batch, Samples) and collate_fn_map is default_collate_fn_map:
        return batch.collate()
    first = batch[0]
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def collate_column(column: Sequence[Any]) -> Any:
        return collate(column, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _mapping_like(first, {key: collate_column([sample[key] for sample in batch]) for key in first})
    if not isinstance(first, Sequence):
        raise _unknown(type(first))
    if any(len(sample) != len(first) for sample in batch):
        raise ShapeError(
            "default_collate: each element in list of batch should be of equal size, got lengths "
            f"{sorted({len(sample) for sample in batch})}",
            hint="pad the samples, or pass a collate_fn that does",
        )
    return _sequence_like(first, [collate_column(column) for column in zip(*batch, strict=True)])


def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays and scalars of a sample to tensors; leave other values unchanged.

    The tensors share memory with the arrays.
    """
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in NOT_NUMBERS else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _sequence_like(data, [default_convert(item) for item in data])
    return data


def pin_memory(batch: Any) -> Any:
    """Return the batch with its CPU tensors in pinned memory; see `Tensor.pin_memory`."""
    if isinstance(batch, Tensor):
        return batch.pin_memory() if batch.is_cpu else batch
    if isinstance(batch, str | bytes):
        return batch
    if isinstance(batch, Mapping):
        return _mapping_like(batch, {key: pin_memory(value) for key, value in batch.items()})
    if isinstance(batch, tuple) and not hasattr(batch, "_fields"):
        return tuple(map(pin_memory, batch))
    if isinstance(batch, Sequence):
        return _sequence_like(batch, [pin_memory(item) for item in batch])
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


def _function_for(first: Any, table: CollateMap) -> Callable[..., Any] | None:
    if type(first) in table:
        return table[type(first)]
    return next((function for kind, function in table.items() if isinstance(first, kind)), None)


def _mapping_like(example: Any, values: dict[Any, Any]) -> Any:
    """Return a mapping of the example's type, or a dict if that type cannot be constructed."""
    try:
        if not isinstance(example, MutableMapping):
            return type(example)(values)
        result = copy.copy(example)  # not type(example)(): it may have attributes besides its items
        result.update(values)
        return result
    except TypeError:
        return values


def _sequence_like(example: Any, values: list[Any]) -> Any:
    """Return a sequence of the example's type, or a list for plain tuples and types that cannot be constructed."""
    if isinstance(example, tuple):
        return type(example)(*values) if hasattr(example, "_fields") else values
    try:
        if not isinstance(example, MutableSequence):
            return type(example)(values)
        result = copy.copy(example)
        for i, value in enumerate(values):
            result[i] = value
        return result
    except TypeError:
        return values


def _unknown(kind: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}",
        hint="return these from the dataset, or pass a collate_fn",
    )


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Stack tensors along a new first dimension."""
    return apply(stack, list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Stack NumPy arrays to a tensor."""
    if batch[0].dtype.kind in NOT_NUMBERS:
        raise _unknown(batch[0].dtype)
    return collate_tensor_fn([as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Convert NumPy scalars to a tensor of shape (B,)."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Convert floats to a float64 tensor of shape (B,)."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Convert ints or bools to a tensor of shape (B,)."""
    return tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Return strings or bytes unchanged."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
