"""Weighted sums of a few elements along an axis: interpolation, and pooling with windows of different lengths.

The indices and weights depend on sizes alone, so they are computed once, on the host. The gradient is a sum of the same
kind, over the outputs that an element contributed to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array


@dataclass(frozen=True, slots=True)
class Taps:
    """y[i] = Σ_t weight[t, i] · x[index[t, i]] along one axis of length `size`.

    Shapes:  index, weight (taps, outputs)
    """

    index: np.ndarray[Any, np.dtype[np.int64]]
    weight: np.ndarray[Any, np.dtype[np.float64]]
    size: int

    def transposed(self) -> Taps:
        """Return the taps that map the gradient of y to that of x."""
        outputs = np.broadcast_to(np.arange(self.index.shape[1], dtype=np.int64), self.index.shape)
        used = self.weight != 0
        source, output, weight = self.index[used], outputs[used], self.weight[used]
        order = np.argsort(source, kind="stable")
        source, output, weight = source[order], output[order], weight[order]
        counts = np.bincount(source.astype(np.intp), minlength=self.size)
        rank = np.arange(len(source)) - (np.cumsum(counts) - counts)[source]
        shape = (max(1, int(counts.max(initial=0))), self.size)
        index, weights = np.zeros(shape, np.int64), np.zeros(shape)
        index[rank, source], weights[rank, source] = output, weight
        return Taps(index, weights, self.index.shape[1])

    def apply(self, x: Array, axis: int) -> Array:
        """Apply the taps along a negative axis, whose length becomes the number of outputs."""
        xp = array_module(x)
        tail = [1] * (-1 - axis)
        y = None
        weighted = (self.weight != 1).any(axis=1)
        indices, weights = xp.asarray(self.index), xp.asarray(self.weight, x.dtype)
        for index, weight, is_weighted in zip(indices, weights, weighted, strict=True):
            part = xp.take(x, index, axis=axis)
            if is_weighted:
                part *= weight.reshape(-1, *tail)
            if y is None:
                y = part
            else:
                y += part
        return y


def mean_taps(size: int, out: int) -> Taps:
    """Return the taps of means over windows that divide `size` as evenly as possible; see `even_windows`."""
    start, stop = even_windows(size, out)
    length = stop - start
    place = np.arange(int(length.max()), dtype=np.int64)[:, None]
    return Taps(np.minimum(start + place, stop - 1), np.where(place < length, 1 / length, 0.0), size)


def even_windows(size: int, out: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the start and end of `out` windows over `size` elements: ⌊i · size / out⌋ to ⌈(i + 1) · size / out⌉."""
    i = np.arange(out, dtype=np.int64)
    return i * size // out, -(-(i + 1) * size // out)
