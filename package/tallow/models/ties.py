"""Weights that have the values of another one, unless a checkpoint holds other values for them.

A model states its ties as {name: name of the other weight}. A checkpoint may hold any of the names: one is enough, and
equal values under several are one weight. Weights with other values are apart: the model gets layers for them.

Source:  `PreTrainedModel.tie_weights` in transformers 5, which compares in the same order
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.io.stored import StoredTensor

COMPARED_BYTES = 4 << 20  # at once


def tied_values(ties: Mapping[str, str], state: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the tensor of each tied name that the state holds under some name, and the names that are apart.

    A name that the state lacks has the tensor of its other weight; where that is missing too, of the first one that is
    tied to the same.
    """
    values = {name: state[name] for name in (*ties, *ties.values()) if name in state}
    for name, other in ties.items():
        if name in values:
            values.setdefault(other, values[name])
    apart = set()
    for name, other in ties.items():
        if name in values and not are_equal(values[name], values[other]):
            apart.add(name)
        elif other in values:
            values[name] = values[other]
    return values, frozenset(apart)


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two tensors have the same shape and values. They are read in parts, up to the first difference."""
    if one is other:
        return True
    if tuple(one.shape) != tuple(other.shape):
        return False
    if _memory(one) is not None and _memory(one) == _memory(other):
        return True
    rows = one.shape[0] if one.shape else 1
    step = max(1, COMPARED_BYTES * rows // max(1, prod(one.shape) * one.dtype.itemsize))
    return all(_are_same(_rows(one, start, step), _rows(other, start, step)) for start in range(0, rows, step))


def _memory(tensor: Any) -> tuple[Any, ...] | None:
    """Return what identifies the memory of a tensor on the CPU, or its place in a file."""
    if isinstance(tensor, StoredTensor):
        return tensor.path, tensor.offset, tensor.dtype
    array = tensor.array
    return (array.ctypes.data, array.strides, array.dtype) if isinstance(array, np.ndarray) else None


def _rows(tensor: Tensor | StoredTensor, start: int, count: int) -> Array:
    """Return rows of a tensor, or the whole tensor if it has no dims."""
    if not tensor.shape:
        return tensor.read().array if isinstance(tensor, StoredTensor) else tensor.array
    stop = min(start + count, tensor.shape[0])
    if isinstance(tensor, StoredTensor):
        return tensor.read(0, start, stop).array
    return tensor.array[start:stop]


def _are_same(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype:
        one, other = dtypes.widen(one), dtypes.widen(other)
    elif one.dtype == dtypes.F16:  # NumPy compares bits 15 times as fast
        one, other = one.view(dtypes.BF16), other.view(dtypes.BF16)
    return bool((one == other).all())
