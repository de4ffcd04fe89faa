"""Packing of masked sequences into the rows of the recurrent ops."""

from __future__ import annotations

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor


class Packed:
    """The layout of a batch as rows, grouped by step: the first unmasked steps of all sequences, then the second, etc.

    Sequences are sorted by descending length. A mask may have gaps. A masked step repeats the output of the previous
    step, zeros at the start; a fully masked sequence keeps its state.

    Args:
        sequences, steps: N and T.
        mask: (N, T), True for the steps to process; None if there are no masked steps.

    Attributes:
        batch_sizes: the number of rows of each step.
    """

    def __init__(self, sequences: int, steps: int, mask: Tensor | None) -> None:
        self.shape = N, T = sequences, steps
        self._mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None = None
        if mask is None:
            self.batch_sizes: tuple[int, ...] = (N,) * T
            return
        counts = mask.cpu().numpy().astype(bool)
        self._lengths = counts.sum(1)
        self._mask = counts
        # The ops reject empty sequences; those get one step, whose result is discarded.
        lengths = np.maximum(self._lengths, 1)
        self._order = np.argsort(-lengths, kind="stable")
        self.batch_sizes = tuple(int((lengths > t).sum()) for t in range(int(lengths.max())))
        # Index of each row (step t of the i-th sorted sequence) in the flat batch (N · T).
        unmasked_first = np.argsort(~counts, axis=1, kind="stable")
        self._rows = np.concatenate(
            [self._order[:n] * T + unmasked_first[self._order[:n], t] for t, n in enumerate(self.batch_sizes)]
        )
        starts = np.concatenate([[0], np.cumsum(self.batch_sizes)])[:-1]
        rank = np.empty(N, np.int64)
        rank[self._order] = np.arange(N)
        latest = np.maximum(counts.cumsum(1) - 1, 0)  # the last unmasked step so far
        self._outputs = starts[latest] + rank[:, None]
        self._before_start = counts.cumsum(1) == 0

    def pack(self, x: Tensor) -> Tensor:
        """Return the rows of a batch.

        Shapes:  x (N, T, I) -> (R, I)
        """
        if self._mask is None:
            return x.transpose(0, 1).reshape(-1, x.shape[2])
        return x.reshape(-1, x.shape[2])[_index(self._rows, x)]

    def unpack(self, rows: Tensor) -> Tensor:
        """Return the batch of output rows.

        Shapes:  rows (R, U) -> (N, T, U)
        """
        N, T = self.shape
        if self._mask is None:
            return rows.reshape(T, N, -1).transpose(0, 1)
        outputs = rows[_index(self._outputs.reshape(-1), rows)].reshape(N, T, -1)
        return outputs.masked_fill(_index(self._before_start, rows)[..., None], 0.0)

    def sort(self, state: Tensor) -> Tensor:
        """Sort a state, (N, U), into the order of the rows."""
        return state if self._mask is None else state[_index(self._order, state)]

    def restore(self, new: Tensor, old: Tensor) -> Tensor:
        """Return a last state in the batch's order; a sequence without steps keeps its old state."""
        if self._mask is None:
            return new
        restored = new[_index(np.argsort(self._order), new)]
        return tl.where(_index(self._lengths[:, None] > 0, new), restored, old)


def _index(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], like: Tensor) -> Tensor:
    return tl.as_tensor(values, device=like.device)
