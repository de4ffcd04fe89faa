"""Rows of different lengths as tensors.

Letters: B rows, T elements of the longest one.
"""

from __future__ import annotations

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor

Rows = list[list[int]]


def padded(rows: Rows, value: int, multiple: int | None = None) -> Tensor:
    """Return rows (B, T), filled on the right with a value.  Args: multiple: T is a multiple of it"""
    length = max(map(len, rows))
    if multiple:
        length = -(-length // multiple) * multiple
    return tensor([row + [value] * (length - len(row)) for row in rows])


def right_padded(rows: Rows, pad: int, multiple: int | None = None) -> tuple[Tensor, Tensor]:
    """Return ids (B, T) that are padded on the right, and their mask, 1 for ids that are none of padding."""
    return padded(rows, pad, multiple), padded([[1] * len(row) for row in rows], 0, multiple)


def left_padded(rows: Rows, pad: int) -> tuple[Tensor, Tensor]:
    """Return ids (B, T) that are padded on the left, and their mask, 1 for ids that are none of padding."""
    length = max(map(len, rows))
    ids = [[pad] * (length - len(row)) + row for row in rows]
    return tensor(ids), tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows])
