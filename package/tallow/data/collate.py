"""From the samples of a batch to the batch, as torch.utils.data: by the type of the first sample."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np

from tallow import dtypes
from tallow.apply import apply
from tallow.creation import as_tensor, tensor
from tallow.data.dataset import Samples
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.joining import stack
from tallow.tensor import Tensor

CollateMap: TypeAlias = dict[type | tuple[type, ...], Callable[..., Any]]
NOT_NUMBERS = "SUO"  # NumPy's kinds of arrays of strings and objects


def default_collate(batch: Any) -> Any:
    """The samples of a batch as one, each leaf with a dimension more, of the batch, in front.

        tensors, NumPy arrays    a tensor (B, ...)
        NumPy scalars, ints      a tensor (B,) of their dtype, int64 for ints, bool for bools
        floats                   a tensor (B,) of float64
        strings, bytes           as they are
        mappings, named tuples   the same, of collated values
        tuples, lists            a list of collated elements; other sequences, of their own type

    Raises:  ArgumentTypeError for samples of other types; ShapeError for tensors, or sequences, of different sizes

    Example:
        >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """As `default_collate`, with the functions of another table: type -> function(batch, *, collate_fn_map)."""
    if isinstance(batch, Samples) and collate_fn_map is default_collate_fn_map:
        return batch.collate()
    first = batch[0]
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def collated(column: Sequence[Any]) -> Any:
        return collate(column, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _mapping_like(first, {key: collated([sample[key] for sample in batch]) for key in first})
    if not isinstance(first, Sequence):
        raise _unknown(type(first))
    if any(len(sample) != len(first) for sample in batch):
        raise ShapeError(
            "default_collate: each element in list of batch should be of equal size, got lengths "
            f"{sorted({len(sample) for sample in batch})}",
            mend="pad the samples, or pass a collate_fn that does",
        )
    return _sequence_like(first, [collated(column) for column in zip(*batch, strict=True)])


def default_convert(data: Any) -> Any:
    """A sample with its NumPy arrays and scalars as tensors; all else is left as it is.

    Arrays share their memory with the tensors.
    """
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in NOT_NUMBERS else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _sequence_like(data, [default_convert(item) for item in data])
    return data


def pinned(batch: Any) -> Any:
    """The batch with its tensors of the CPU in pinned memory, as `Tensor.pin_memory` gives it."""
    if isinstance(batch, Tensor):
        return batch.pin_memory() if batch.is_cpu else batch
    if isinstance(batch, str | bytes):
        return batch
    if isinstance(batch, Mapping):
        return _mapping_like(batch, {key: pinned(value) for key, value in batch.items()})
    if isinstance(batch, tuple) and not hasattr(batch, "_fields"):
        return tuple(map(pinned, batch))
    if isinstance(batch, Sequence):
        return _sequence_like(batch, [pinned(item) for item in batch])
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


def _function_for(first: Any, table: CollateMap) -> Callable[..., Any] | None:
    if type(first) in table:
        return table[type(first)]
    return next((function for kind, function in table.items() if isinstance(first, kind)), None)


def _mapping_like(example: Any, values: dict[Any, Any]) -> Any:
    """A mapping of the example's type; a dict, if that cannot be made so."""
    try:
        if not isinstance(example, MutableMapping):
            return type(example)(values)
        made = copy.copy(example)  # not type(example)(): it may have attributes beside its items
        made.update(values)
        return made
    except TypeError:
        return values


def _sequence_like(example: Any, values: list[Any]) -> Any:
    """A sequence of the example's type; a list, if that cannot be made so, and for tuples without names."""
    if isinstance(example, tuple):
        return type(example)(*values) if hasattr(example, "_fields") else values
    try:
        if not isinstance(example, MutableSequence):
            return type(example)(values)
        made = copy.copy(example)
        for i, value in enumerate(values):
            made[i] = value
        return made
    except TypeError:
        return values


def _unknown(found: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}",
        mend="return these from the dataset, or pass a collate_fn",
    )


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return apply(stack, list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    if batch[0].dtype.kind in NOT_NUMBERS:
        raise _unknown(batch[0].dtype)
    return collate_tensor_fn([as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
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
