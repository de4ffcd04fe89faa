"""Padding of the windows of convolutions and pooling, as ONNX's `auto_pad` and `pads` say."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.errors import ArgumentError, ShapeError

Pads = tuple[tuple[int, ...], tuple[int, ...]]  # before and after each spatial dim


def last_dim_first(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return pads as F.pad takes them: pairs of both sides, the last dim first."""
    return [each for pair in zip(reversed(before), reversed(after), strict=True) for each in pair]


def explicit_pads(pads: Sequence[int] | None, rank: int, auto_pad: str) -> Pads:
    """Return the pads before and after each dim.

    Raises:  ArgumentError for an unknown `auto_pad`, ShapeError for pads of another rank
    """
    if auto_pad not in ("NOTSET", "", "VALID"):
        raise ArgumentError(f"auto_pad={auto_pad!r}", hint="use NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    if pads is None or auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    if len(pads) != 2 * rank:
        raise ShapeError(f"{len(pads)} pads for {rank} spatial dims", hint="two for each dim")
    return tuple(pads[:rank]), tuple(pads[rank:])


def same_pads(
    sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], auto_pad: str
) -> Pads:
    """Return pads with which the result has ceil(size / stride) elements; an odd one is at the end (SAME_UPPER)."""
    totals = [
        max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    small = tuple(total // 2 for total in totals)
    large = tuple(total - total // 2 for total in totals)
    return (large, small) if auto_pad == "SAME_LOWER" else (small, large)
