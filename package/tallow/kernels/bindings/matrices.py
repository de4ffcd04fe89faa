"""The matrices of fused blocks as C takes them; see `affine` of src/runtime/kernels.h."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.kernels.bindings.arrays import FLOAT32, address, optional_address
from tallow.kernels.bindings.quantized_linear import FORMATS, INTEGER_PRODUCTS
from tallow.kernels.blocks.affine import Affine, Matrix, memory
from tallow.kernels.library import POINTER
from tallow.kernels.quantized.interleaved import SUFFIX
from tallow.kernels.quantized.quantized_matrix import FORMATS_OF_FLOATS, as_matrix

# The numbers of kernels.h.
DTYPES = {FLOAT32: 0, F16: 1, BF16: 2}
_NUMBERS = {name: 3 + i for i, name in enumerate(FORMATS)}
_NUMBERS |= {name + SUFFIX: number + 16 for name, number in _NUMBERS.items()}
_NUMBERS |= {name: DTYPES[dtype] for dtype, name in FORMATS_OF_FLOATS.items()}


def format_number(matrix: Matrix) -> int | None:
    """Return the number of the format of a matrix; None for a format that the kernels do not read."""
    return _NUMBERS.get(as_matrix(matrix).format)


def is_plain(array: Array | None) -> bool:
    """Return whether an array is contiguous and aligned memory of the host; true for None."""
    return array is None or (isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned)


def work(matrix: Matrix) -> float:
    """Return the multiplications of a row with a matrix, for the choice of threads."""
    rows, columns = matrix.shape
    return rows * columns / (1 if format_number(matrix) in DTYPES.values() else INTEGER_PRODUCTS)


def can_be_packed(parts: Iterable[tuple[str, Affine]]) -> bool:
    """Return whether the kernels read all parts of a block."""
    return all(
        format_number(weight) is not None and is_plain(memory(weight)) and is_plain(bias) for _, (weight, bias) in parts
    )


class Part(ctypes.Structure):
    """`affine` of kernels.h."""

    _fields_ = [("weight", POINTER), ("bias", POINTER), ("format", ctypes.c_int32)]

    @classmethod
    def of(cls, affine: Affine) -> Part:
        """Return the addresses of the arrays, which are valid as long as those."""
        return cls(address(memory(affine.weight)), optional_address(affine.bias), format_number(affine.weight))
