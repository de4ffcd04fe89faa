"""Sequences of different lengths: padded to the longest, or packed without padding.

Packed data holds the first elements of all sequences, then the second elements of those that have one, and so on: each
step of a recurrent layer reads one row per sequence that has not ended.

Letters: T steps of the longest sequence, N sequences, R total steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.apply import apply
from tallow.core.creation import full
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array, int64
from tallow.errors import ArgumentError, ShapeError
from tallow.lazy_names import names_of
from tallow.nn import functional as F
from tallow.ops.joining import stack


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


class PackedSequence(_Packed):
    """Sequences without padding, created by `pack_padded_sequence` and `pack_sequence`.

    Attributes:
        data: (R, ...), the rows of all steps, step by step.
        batch_sizes: (T), the number of sequences at each step; on the CPU.
        sorted_indices: the order that sorts the sequences by length; None if they were sorted.
        unsorted_indices: the inverse of that order.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = sorted_indices.argsort()
        if batch_sizes.device.type != "cpu":
            raise ArgumentError("PackedSequence: batch_sizes must be on the CPU", hint="use pack_padded_sequence")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert and move the data as Tensor.to does; the indices move with it."""
        data = self.data.to(*args, **kwargs)
        orders = (None if order is None else order.to(data.device) for order in self[2:])
        return PackedSequence(data, self.batch_sizes, *orders)

    def cpu(self) -> PackedSequence:
        """Move to the CPU."""
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """Move to the GPU."""
        return self.to("cuda")

    @property
    def is_cuda(self) -> bool:
        """True if the data is on a GPU."""
        return self.data.device.type == "cuda"


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    Args:    enforce_sorted: require lengths in descending order; False sorts the sequences and stores their order
    Shapes:  input (T, N, ...), or (N, T, ...) with batch_first; lengths (N) -> data (R, ...)
    """
    host = np.array(lengths.tolist() if isinstance(lengths, Tensor) else lengths, dtype=np.int64)
    x = input.transpose(0, 1) if batch_first else input
    longest, batch = x.shape[:2]
    if host.shape != (batch,):
        raise ShapeError(f"pack_padded_sequence: expected {batch} lengths, got {tuple(host.shape)}")
    if (host < 1).any() or (host > longest).any():
        raise ArgumentError(f"pack_padded_sequence: lengths must be from 1 to {longest}, got {host.tolist()}")
    order = None
    if enforce_sorted and (np.diff(host) > 0).any():
        raise ArgumentError(
            f"pack_padded_sequence: lengths must be in descending order, got {host.tolist()}",
            hint="sort the sequences, or pass enforce_sorted=False",
        )
    if not enforce_sorted:
        sorting = np.argsort(-host, kind="stable").astype(np.int64)
        order = wrap(devices.move(sorting, input.device))
        x, host = x.index_select(1, order), host[sorting]
    sizes = (host > np.arange(host.max(), dtype=np.int64)[:, None]).sum(axis=1, dtype=np.int64)
    rows = x.reshape(longest * batch, *x.shape[2:]).index_select(0, _rows(sizes, batch, input))
    return PackedSequence(rows, wrap(sizes), order)


def _rows(batch_sizes: Array, batch: int, like: Tensor) -> Tensor:
    """Return the indices of the packed rows among the T · N padded rows.  Shapes: -> (R)"""
    is_packed = np.arange(batch, dtype=np.int64) < batch_sizes[:, None]  # (T, N)
    return wrap(devices.move(np.flatnonzero(is_packed).astype(np.int64), like.device))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Invert `pack_padded_sequence`: return padded sequences in their original order, and their lengths.

    Args:    total_length: number of steps to pad to; None means those of the longest sequence
    Shapes:  data (R, ...) -> (T, N, ...), or (N, T, ...) with batch_first; lengths (N)
    """
    data, sizes = sequence.data, sequence.batch_sizes.numpy()
    longest, batch = len(sizes), int(sizes[0])
    steps = longest if total_length is None else total_length
    if steps < longest:
        raise ArgumentError(f"pad_packed_sequence: total_length={total_length} is less than the longest, {longest}")
    empty = full((steps * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = empty.index_copy(0, _rows(sizes, batch, data), data).reshape(steps, batch, *data.shape[1:])
    lengths = wrap((np.arange(batch, dtype=np.int64) < sizes[:, None]).sum(axis=0, dtype=np.int64))
    padded = padded.transpose(0, 1) if batch_first else padded
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad sequences of different lengths to one tensor.

    Shapes:  N of (length, ...) -> (T, N, ...), or (N, T, ...) with batch_first
    """
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side={padding_side!r}", hint="use 'left' or 'right'")
    tensors = list(sequences)
    if not tensors:
        raise ArgumentError("pad_sequence: no sequences")
    steps = max(len(x) for x in tensors)
    padded = []
    for x in tensors:
        missing = (steps - len(x), 0) if padding_side == "left" else (0, steps - len(x))
        padded.append(F.pad(x, (*[0, 0] * (x.ndim - 1), *missing), value=padding_value))
    return apply(stack, padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split a padded tensor into sequences of the given lengths."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(x, lengths.to(int64).tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.  Shapes: N of (length, ...) -> data (R, ...)"""
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Invert `pack_sequence`."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the order that undoes an order; None for None."""
    return None if permutation is None else permutation.argsort()


__getattr__, __dir__ = names_of(__name__)
