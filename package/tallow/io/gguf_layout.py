"""The layout of GGUF, the format of llama.cpp.

    4 bytes     "GGUF"
    uint32      version: 2 or 3
    2 uint64    number of tensors, number of metadata entries
    metadata    each a key, a uint32 type, and the value. A string is a uint64 length and UTF-8; an
                array is the type of its items, a uint64 length, and the items
    tensors     each a name, a uint32 number of dims, that many uint64 lengths, innermost first, a uint32 format, and a
                uint64 offset of its data from the start of all data
    data        at the next multiple of `general.alignment` (default 32); each tensor's at a multiple of it

Everything is little-endian.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tallow import dtypes
from tallow.kernels.quantized import gguf_blocks

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_KEY = "general.alignment"
ALIGNMENT = 32
MAX_ALIGNMENT = 2**20
MAX_DIMENSIONS = 4  # as in ggml
MAX_NESTING = 4  # depth of arrays in arrays
MAX_BYTES = int(np.iinfo(np.intp).max)

# Types of metadata values by number: scalars of fixed size, then string and array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

PLAIN = {
    "F32": dtypes.float32,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F64": dtypes.float64,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
}
# By number. FOREIGN formats are not read: Q8_1 and Q8_K are of inputs, not of weights, and Q1_0 of one family alone.
TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K"}
TYPES |= {12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL"}
TYPES |= {21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M"}
TYPES |= {30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4"}
FOREIGN = {9: "Q8_1", 15: "Q8_K", 41: "Q1_0"}
UNSIZED = frozenset(FOREIGN.values())


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The header entry of a tensor: its format, its shape, and its offset in the data."""

    type: str
    shape: tuple[int, ...]
    begin: int

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of the data in bytes."""
        return data_bytes(self.type, self.shape)


def data_bytes(format: str, shape: tuple[int, ...]) -> int:
    """Return the size in bytes of a tensor in a format of PLAIN or of gguf_blocks.FORMATS."""
    if format in PLAIN:
        return prod(shape) * PLAIN[format].itemsize
    layout = gguf_blocks.FORMATS[format]
    return prod(shape) // layout.weights * layout.record.itemsize
