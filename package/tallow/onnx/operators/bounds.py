"""Bounds of what a node makes, where numbers in a file or in an input say how much.

A file of a few bytes may ask for terabytes, by pads, repeats, sizes or depths. It is refused before memory is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ShapeError, TraceError

FEW, MOST_TIMES = 1 << 28, 64  # elements that a node may make, and for each of its operands' elements, if that is more
USUAL = 64  # pads and dilations up to it are no attack, so sizes that are not known yet need no check


def check_made(what: str, shape: Iterable[Any], *operands: Tensor) -> None:
    """Refuse a result of many more elements than the operands have.

    Raises:  ShapeError; TraceError for sizes that are not known before a model runs: the whole operator runs then
    """
    sizes = tuple(shape)
    if not all(isinstance(each, int) for each in (*sizes, *(n for x in operands for n in x.shape))):
        raise TraceError(f"{what}: the sizes {sizes!s:.80} are not known", hint="they are known when the model runs")
    most = max(FEW, MOST_TIMES * sum(math.prod(x.shape) for x in operands))
    if math.prod(max(each, 0) for each in sizes) > most:
        raise ShapeError(f"{what}: a result of shape {sizes!s:.80}", hint=f"at most {most:,} elements are made")


def check_padded(what: str, x: Tensor, before: Sequence[int], after: Sequence[int]) -> None:
    """Refuse pads of the last dims of x that make many more elements than it has.  Raises: as `check_made`"""
    if max((*before, *after), default=0) > USUAL:
        sizes = x.shape
        first = len(sizes) - len(before)
        padded = (n + b + a for n, b, a in zip(sizes[first:], before, after, strict=True))
        check_made(what, (*sizes[:first], *padded), x)
