"""Tensors of a weights file that hold NaN or infinities, which models turn into logits of NaN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.io.contents import leaves
from tallow.io.files import load
from tallow.io.gguf import GGUF
from tallow.io.model_folder import load_folder
from tallow.io.source import Path

AT_ONCE = 1 << 20  # elements that are converted to floats at a time


def non_finite(path: Path) -> Iterator[str]:
    """Yield the names of the tensors of a file or folder that hold NaN or infinities. Reads all weights.

    Raises:  as `tallow.io.load`
    """
    loaded = load_folder(path) if os.path.isdir(path) else load(path)
    if isinstance(loaded, GGUF):
        yield from (name for name in loaded if not _is_finite_in(loaded, name))
    else:
        yield from non_finite_in(loaded)


def non_finite_in(loaded: Any) -> Iterator[str]:
    """Yield the names of the tensors in mappings and lists that hold NaN or infinities."""
    return (name for name, value in leaves(loaded) if isinstance(value, Tensor) and not _is_finite(value))


def _is_finite_in(file: GGUF, name: str) -> bool:
    matrix = file.matrix(name)
    if matrix is None:
        return _is_finite(file[name])
    rows, width = matrix.shape
    step = max(1, AT_ONCE // max(width, 1))
    return all(_all_finite(matrix.rows(slice(i, i + step))) for i in range(0, rows, step))


def _is_finite(tensor: Tensor) -> bool:
    if tensor.dtype.category < 2:
        return True
    flat = tensor.array.reshape(-1)
    return all(_all_finite(dtypes.numbers_of(flat[i : i + AT_ONCE])) for i in range(0, flat.size, AT_ONCE))


def _all_finite(array: np.ndarray[Any, Any]) -> bool:
    return bool(np.isfinite(array).all())
