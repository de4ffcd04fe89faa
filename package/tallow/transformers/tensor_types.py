"""The types that `return_tensors` names, and the conversion of lists to it.

Source:  transformers 5.23, `TensorType` and `to_py_obj`
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn

import numpy as np

import tallow
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError


class Choice(StrEnum):
    """A choice of a few words. Another word raises ArgumentError with the list of these."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = ", ".join(repr(each.value) for each in cls)
        raise ArgumentError(f"{value!r:.80} is not a valid {cls.__name__}", hint=f"choose one of {known}")


class TensorType(Choice):
    """The kinds of `return_tensors`: tensors, or NumPy's arrays."""

    PYTORCH = "pt"
    NUMPY = "np"


def converted(value: Any, kind: TensorType) -> Any:
    """Return nested lists, arrays or tensors as one array or tensor; one of this kind as it is.

    Dtypes:  integers int64; of lists of floats, float32 in a tensor and float64 in an array
    Raises:  ValueError for lists of unequal lengths, and for what is no number
    """
    if kind is TensorType.PYTORCH:
        return value if isinstance(value, Tensor) else _tensor(value)
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, list | tuple) and not (value and isinstance(value[0], np.ndarray)):
        value = [plain(each) for each in value]
    array = _array(value)
    return array if array.size else array.astype(np.int64)


def _tensor(value: Any) -> Tensor:
    if isinstance(value, list | tuple) and value and isinstance(value[0], Tensor):
        return tallow.stack(list(value))
    if isinstance(value, np.ndarray):
        return tallow.from_numpy(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], np.ndarray):
        return tallow.from_numpy(np.array(value))
    array = np.array(value)
    return tallow.tensor(value) if array.size else tallow.zeros(array.shape, dtype=tallow.int64)


def _array(value: Any) -> np.ndarray[Any, Any]:
    """Return an array; of rows of unequal lengths, an array of arrays."""
    if isinstance(value, list) and value and isinstance(value[0], list) and len({len(row) for row in value}) > 1:
        rows = np.empty(len(value), object)
        rows[:] = [np.asarray(row) for row in value]
        return rows
    return np.asarray(value)


def plain(value: Any) -> Any:
    """Return tensors and arrays, of other packages too and in lists and dicts, as Python's numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if all(type(each) is int for each in value) else [plain(each) for each in value]
    return value
