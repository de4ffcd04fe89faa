"""Sequences for the recurrent ops: rows step by step, those that a mask leaves out not among them."""

from __future__ import annotations

import numpy as np

import tallow as tl
from tallow.tensor import Tensor


class Packed:
    """How a batch is laid out in rows: the first steps that count of all sequences, then the second ones, and so on,
    the sequences in order of falling length.

    A mask may have gaps. Where it leaves a step out, the output of the step before is repeated, zeros at the start; a
    sequence of which no step counts keeps its state.

    Args:
        sequences, steps: N and T.
        mask: (N, T), True for steps that count; None if all do.

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
        # One step at least, which is thrown away again, for the ops take no empty sequences.
        lengths = np.maximum(self._lengths, 1)
        self._order = np.argsort(-lengths, kind="stable")
        self.batch_sizes = tuple(int((lengths > t).sum()) for t in range(int(lengths.max())))
        # Where row (step t of the i-th sequence in order) comes from, in the flat batch (N · T).
        counting_first = np.argsort(~counts, axis=1, kind="stable")
        self._rows = np.concatenate(
            [self._order[:n] * T + counting_first[self._order[:n], t] for t, n in enumerate(self.batch_sizes)]
        )
        starts = np.concatenate([[0], np.cumsum(self.batch_sizes)])[:-1]
        place = np.empty(N, np.int64)
        place[self._order] = np.arange(N)
        latest = np.maximum(counts.cumsum(1) - 1, 0)  # the last step that counts so far
        self._outputs = starts[latest] + place[:, None]
        self._before_start = counts.cumsum(1) == 0

    def pack(self, x: Tensor) -> Tensor:
        """(N, T, I) -> (R, I)"""
        if self._mask is None:
            return x.transpose(0, 1).reshape(-1, x.shape[2])
        return x.reshape(-1, x.shape[2])[_index(self._rows, x)]

    def unpack(self, rows: Tensor) -> Tensor:
        """(R, U) -> (N, T, U)"""
        N, T = self.shape
        if self._mask is None:
            return rows.reshape(T, N, -1).transpose(0, 1)
        outputs = rows[_index(self._outputs.reshape(-1), rows)].reshape(N, T, -1)
        return outputs.masked_fill(_index(self._before_start, rows)[..., None], 0.0)

    def in_order(self, state: Tensor) -> Tensor:
        """(N, U), the sequences in the rows' order."""
        return state if self._mask is None else state[_index(self._order, state)]

    def restored(self, new: Tensor, old: Tensor) -> Tensor:
        """A last state in the batch's order; that of a sequence without steps is the one it had."""
        if self._mask is None:
            return new
        restored = new[_index(np.argsort(self._order), new)]
        return tl.where(_index(self._lengths[:, None] > 0, new), restored, old)


def _index(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], like: Tensor) -> Tensor:
    return tl.as_tensor(values, device=like.device)
