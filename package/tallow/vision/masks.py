"""Masks of objects, and COCO's run-length codes of them: the lengths of runs of 0 and 1 in turn, column by column.

Letters: Y and X pixels.

Source:  the formats of annotations of the data set COCO, https://cocodataset.org/#format-data
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, ShapeError

Mask = npt.NDArray[np.bool_]
MAX_PIXELS = 1 << 28  # of a mask that a code may ask for
BITS, MORE, SIGN, FIRST = 5, 0x20, 0x10, 48  # of a character: 5 bits of a number, whether more follow, and an offset
BEFORE = 2  # from the third on, a length is stored as the difference to the one before the last


def mask_area(mask: Any) -> int:
    """Return how many pixels a mask (Y, X) has."""
    return int(np.count_nonzero(mask))


def mask_box(mask: Any) -> tuple[float, float, float, float]:
    """Return the left, top, right and bottom edge of a mask (Y, X); zeros for an empty one."""
    inside = _mask(mask)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not rows.size:
        return (0.0, 0.0, 0.0, 0.0)
    return (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


def encode_rle(mask: Any, *, compressed: bool = True) -> dict[str, Any]:
    """Return COCO's code of a mask: {"size": [Y, X], "counts": ...}.

    Args:
        mask: (Y, X), of bool or numbers.
        compressed: whether the lengths are a text, as in results and crowds, or a list.

    Raises:  ShapeError for another number of axes
    """
    inside = _mask(mask)
    flat = inside.ravel(order="F")
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    edges = np.concatenate([[0], starts, [flat.size]])
    lengths = [int(each) for each in np.diff(edges)] if flat.size else []
    if flat.size and flat[0]:
        lengths.insert(0, 0)  # the first run is of zeros
    return {"size": list(inside.shape), "counts": _text(lengths) if compressed else lengths}


def decode_rle(code: Mapping[str, Any]) -> Mask:
    """Return the mask (Y, X) of COCO's code; the reverse of `encode_rle`.

    Args:    code: "size", the height and width, and "counts", a text, bytes or a list of lengths
    Raises:  ArgumentError for a size that is none, and lengths that do not fill it
    """
    size, counts = code.get("size"), code.get("counts")
    if not (isinstance(size, Sequence) and len(size) == 2 and all(type(side) is int and side >= 0 for side in size)):
        raise ArgumentError(f"a mask of size {size!r:.80}", hint="pass its height and width")
    height, width = size
    if height * width > MAX_PIXELS:
        raise ArgumentError(f"a mask of {width} by {height} pixels", hint=f"the limit is {MAX_PIXELS} pixels")
    if isinstance(counts, bytes):
        counts = counts.decode("ascii", "replace")
    lengths = _lengths(counts) if isinstance(counts, str) else counts
    if not isinstance(lengths, Sequence) or any(type(each) is not int or each < 0 for each in lengths):
        raise ArgumentError("counts of a mask that are no lengths of runs", hint="pass COCO's text or list of them")
    if sum(lengths) != height * width:
        raise ArgumentError(
            f"runs of {sum(lengths)} pixels for a mask of {height} by {width}", hint="pass the code of one whole mask"
        )
    values = np.arange(len(lengths)) % 2 == 1
    return np.repeat(values, lengths).reshape(width, height).T


def _mask(mask: Any) -> Mask:
    array = np.asarray(mask)
    if array.ndim != 2:
        raise ShapeError(f"a mask {array.shape}; expected (height, width)")
    return array.astype(bool)


def _text(lengths: Sequence[int]) -> str:
    """Return lengths as COCO's text."""
    found = []
    for i, length in enumerate(lengths):
        value = length - lengths[i - BEFORE] if i > BEFORE else length
        more = True
        while more:
            bits = value & (MORE - 1)
            value >>= BITS
            more = value != (-1 if bits & SIGN else 0)
            found.append(chr((bits | (MORE if more else 0)) + FIRST))
    return "".join(found)


def _lengths(text: str) -> list[int]:
    """Return the lengths of COCO's text.  Raises: ArgumentError for a text that is none"""
    lengths: list[int] = []
    value = shift = 0
    for place, letter in enumerate(text):
        bits = ord(letter) - FIRST
        if not 0 <= bits < 2 * MORE or shift > 64:
            raise ArgumentError(f"the text of a mask is damaged at {place}", hint="pass COCO's text of its runs")
        value |= (bits & (MORE - 1)) << shift
        shift += BITS
        if bits & MORE:
            continue
        if bits & SIGN:
            value -= 1 << shift
        lengths.append(value + lengths[-BEFORE] if len(lengths) > BEFORE else value)
        value = shift = 0
    if shift:
        raise ArgumentError("the text of a mask ends in a number", hint="pass the whole text")
    return lengths
