"""Vectors as integers of eight bits, or as single bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, warn

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")


def quantize_embeddings(
    embeddings: Any, precision: str, ranges: Any = None, calibration_embeddings: Any = None
) -> npt.NDArray[Any]:
    """Return vectors (N, D) in a precision.

    Args:
        precision: "int8" and "uint8" divide the range of each of the D numbers in 256 steps; "binary" and "ubinary"
            keep the sign of each, eight in a byte (N, D / 8).
        ranges: the least and the greatest of each number (2, D); None means those of calibration_embeddings, or else
            of the vectors.
        calibration_embeddings: vectors to take the ranges from.

    Raises:  ArgumentError for an unknown precision and for the ranges of one vector; ArgumentTypeError for integers
    """
    if precision not in PRECISIONS:
        raise ArgumentError(f"precision={precision!r:.80}", hint=f"pass one of {', '.join(PRECISIONS)}")
    vectors = _array(embeddings)
    if vectors.dtype.kind != "f":
        raise ArgumentTypeError(f"embeddings of {vectors.dtype}; expected floats")
    if precision == "float32":
        return vectors.astype(np.float32)
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits ^ 0x80).view(np.int8)
    limits = _ranges(vectors, calibration_embeddings) if ranges is None else _array(ranges)
    limits = limits.astype(np.float32)
    steps = (limits[1] - limits[0]) / 255
    levels = np.clip(np.floor((vectors - limits[0]) / np.where(steps == 0, 1, steps)), 0, 255)
    return levels.astype(np.uint8) if precision == "uint8" else (levels - 128).astype(np.int8)


def _array(vectors: Any) -> npt.NDArray[Any]:
    if isinstance(vectors, list):
        return np.stack([_array(each) for each in vectors])
    return vectors.float().cpu().numpy() if isinstance(vectors, Tensor) else np.asarray(vectors)


def _ranges(vectors: npt.NDArray[Any], calibration: Any) -> npt.NDArray[Any]:
    source = vectors if calibration is None else _array(calibration)
    if source.ndim < 2 or len(source) < 2:
        raise ArgumentError(
            "a single vector has no ranges for integers", hint="pass ranges, or calibration_embeddings of many texts"
        )
    if calibration is None and len(source) < 100:
        warn(f"the ranges for integers are those of {len(source)} vectors; pass calibration_embeddings of more")
    return np.stack([source.min(0), source.max(0)])
