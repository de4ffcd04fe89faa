"""ONNX's element types in attributes: `to` of Cast, `dtype` of RandomNormal.

Elements of two and four bits are held in int8, uint8 and, for float4e2m1, float32.

Source:  onnx/onnx.proto, TensorProto.DataType
"""

from __future__ import annotations

import numpy as np

from tallow import dtypes
from tallow.dtypes import dtype
from tallow.errors import UnsupportedError
from tallow.onnx.protobuf import DataType
from tallow.onnx.tensors import DATA_TYPES, DTYPES, NARROW

STRING = int(DataType.STRING)
# Of the types narrower than a byte: bits, whether they have a sign.
BITS = {int(kind): (bits, holder is not dtypes.uint8) for kind, (bits, holder) in NARROW.items()}
FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)  # the numbers of float4e2m1 that have no sign
_HELD = {int(kind): held for kind, held in DTYPES.items()} | {int(k): held for k, (_, held) in NARROW.items()}


def dtype_of(element_type: int) -> dtype:
    """Return the dtype of tensors with an element type.  Raises: UnsupportedError if there is none, as for strings"""
    if element_type not in _HELD:
        raise UnsupportedError(
            f"ONNX element type {element_type} has no dtype", hint="8 are strings: arrays of NumPy's dtype object"
        )
    return _HELD[element_type]


def element_type_of(d: dtype) -> int:
    """Return the element type of tensors with a dtype."""
    return int(DATA_TYPES[d])


def range_of(d: dtype) -> tuple[int, int]:
    """Return the lowest and the highest number of an integer dtype."""
    limits = np.iinfo(dtypes.plain_storage(d))
    return int(limits.min), int(limits.max)
