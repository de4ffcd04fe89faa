"""The parts that GGUF's block formats share: their registry, and unpacking of small integers.

A format is a record, laid out as in the file, and a formula for its weights. Values of less than a byte are packed in
runs: the first values of a run are the lowest bits of each of its bytes, the next values the bits above, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
Records = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A block format: its layout in the file, its number of weights, and the function (N,) records -> (N, weights)."""

    record: np.dtype[Any]
    weights: int
    dequantize: Callable[[Records], Floats]


REGISTRY: dict[str, Format] = {}  # by name; complete once gguf_blocks.py is imported


def block_format(
    weights: int, *fields: tuple[str, str] | tuple[str, str, int | tuple[int, int]]
) -> Callable[[Callable[[Records], Floats]], Callable[[Records], Floats]]:
    """Register the decorated function as the format of its name, for blocks with these fields."""

    def register(dequantize: Callable[[Records], Floats]) -> Callable[[Records], Floats]:
        REGISTRY[dequantize.__name__] = Format(np.dtype(list(fields)), weights, dequantize)
        return dequantize

    return register


def unpack(packed: Codes, bits: int, run: int) -> Codes:
    """Unpack values of 1, 2 or 4 bits from runs of `run` bytes: (N, bytes) -> (N, values)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    runs = packed.reshape(len(packed), -1, 1, run)
    return ((runs >> shifts) & np.uint8(2**bits - 1)).reshape(len(packed), -1)


def floats(values: np.ndarray[Any, Any], groups: int = 1) -> Floats:
    """Convert to float32 of shape (N, groups, rest), which broadcasts with one scale per group."""
    return values.reshape(len(values), groups, -1).astype(np.float32)


def signed(codes: Codes, zero: int) -> npt.NDArray[np.int8]:
    """Return codes minus `zero`."""
    return codes.view(np.int8) - np.int8(zero)


def flat(values: Floats) -> Floats:
    """Return the weights of each block in one row: (N, weights)."""
    return values.reshape(len(values), -1)
