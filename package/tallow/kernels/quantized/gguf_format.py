"""The parts that GGUF's block formats share: their registry, and unpacking of small integers.

A format is a record, laid out as in the file, and a formula for its weights. In most formats that is an integer times a
scale: `Scaled`. Values of less than a byte are packed in runs: the first values of a run are the lowest bits of each of
its bytes, the next values the bits above, and so on.
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


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Weights scale · code + shift: those of a block are divided into G equal groups.

    Shapes:  codes (N, weights), from -128 to 127; scales, shifts (N, G)
    """

    codes: np.ndarray[Any, Any]
    scales: Floats
    shifts: Floats | None = None

    def floats(self) -> Floats:
        """Return the weights, (N, weights)."""
        weights = self.codes.reshape(*self.scales.shape, -1).astype(np.float32)
        weights *= self.scales[..., None]
        if self.shifts is not None:
            weights += self.shifts[..., None]
        return flat(weights)


Reader = Callable[[Records], Floats | Scaled]


@dataclass(frozen=True, slots=True)
class Format:
    """A block format: its layout in the file, its number of weights, and the function (N,) records -> (N, weights)."""

    record: np.dtype[Any]
    weights: int
    read: Reader

    def dequantize(self, records: Records) -> Floats:
        """Return the weights of blocks: (N,) -> (N, weights)."""
        weights = self.read(records)
        return weights.floats() if isinstance(weights, Scaled) else weights


REGISTRY: dict[str, Format] = {}  # by name; complete once gguf_blocks.py is imported


def block_format(
    weights: int, *fields: tuple[str, str] | tuple[str, str, int | tuple[int, int]]
) -> Callable[[Reader], Reader]:
    """Register the decorated function as the format of its name, for blocks with these fields."""

    def register(read: Reader) -> Reader:
        REGISTRY[read.__name__] = Format(np.dtype(list(fields)), weights, read)
        return read

    return register


def unpack(packed: Codes, bits: int, run: int) -> Codes:
    """Unpack values of 1, 2 or 4 bits from runs of `run` bytes: (N, bytes) -> (N, values)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    runs = packed.reshape(len(packed), -1, 1, run)
    return ((runs >> shifts) & np.uint8(2**bits - 1)).reshape(len(packed), -1)


def single(values: np.ndarray[Any, Any]) -> Floats:
    """Convert to float32, with the groups of a block in a row: (N,) or (N, G) -> (N, 1) or (N, G)."""
    return values.reshape(len(values), -1).astype(np.float32)


def signed(codes: Codes, zero: int) -> npt.NDArray[np.int8]:
    """Return codes minus `zero`."""
    return codes.view(np.int8) - np.int8(zero)


def flat(values: Floats) -> Floats:
    """Return the weights of each block in one row: (N, weights)."""
    return values.reshape(len(values), -1)
