"""Integers as vectors, and numbers as integers: CategoryEncoding, Discretization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.layers.checks import positive
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor
from tallow.tensor import Tensor

MODES = ("int", "one_hot", "multi_hot", "count")


def checked_mode(layer: str, output_mode: Any, *further: str) -> str:
    mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(output_mode, output_mode)  # their names in older programs
    known = (*MODES, *further)
    if mode not in known:
        raise ArgumentError(f"{layer}: output_mode={output_mode!r}", mend=f"use {', '.join(map(repr, known))}")
    return str(mode)


def refuse_sparse(layer: str, sparse: bool) -> None:
    if sparse:
        raise ArgumentError(f"{layer}: sparse=True: there are no sparse tensors", mend="leave it out")


def encoded(indices: Tensor, mode: str, depth: int, dtype: Any, weights: Tensor | None = None) -> Tensor:
    """Indices as vectors; one that is out of range counts nowhere.

    Shapes:  "one_hot": (...) or (..., 1) -> (..., depth); "multi_hot" and "count": (N) -> (depth), (B, N) -> (B, depth)
    """
    if not indices.ndim:
        indices = indices[None]
    if mode == "one_hot" and indices.ndim > 1 and indices.shape[-1] == 1:
        indices = indices[..., 0]
    hot = (indices[..., None] == tl.arange(depth, device=indices.device)).to(dtype)
    if mode == "one_hot":
        return hot
    axis = 1 if indices.ndim > 1 else 0
    if mode == "multi_hot":
        return hot.amax(axis) if indices.shape[axis] else hot.sum(axis)
    return (hot if weights is None else hot * weights[..., None].to(dtype)).sum(axis)


def encoded_shape(shape: Shape, mode: str, depth: int | None) -> Shape:
    """The shape of what `encoded` gives."""
    if mode == "int":
        return tuple(shape)
    if mode == "one_hot":
        kept = shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape
        return (*kept, depth)
    return (shape[0], *shape[2:], depth) if len(shape) > 1 else (depth,)


def batches(data: Any, steps: int | None = None) -> Iterator[Any]:
    """What `adapt` is given: an array, or an iterable of them, of which the first `steps` count."""
    if isinstance(data, Tensor | np.ndarray | str) or (isinstance(data, Sequence) and not isinstance(data, bytes)):
        yield data
        return
    if not isinstance(data, Iterable):
        raise ArgumentError(f"adapt: {type(data).__name__}", mend="give an array, or an iterable of batches")
    for index, batch in enumerate(data):
        if steps is not None and index >= steps:
            return
        yield batch[0] if isinstance(batch, tuple) else batch


class CategoryEncoding(Layer):
    """Integers as vectors.

    Args:
        num_tokens: how many there are; all are from 0 up to it.
        output_mode: "multi_hot" says which come in a sample, "count" how often, "one_hot" which each is.
        sparse: refused.

    Shapes:  inputs (B, N) -> (B, num_tokens); "one_hot": (...) or (..., 1) -> (..., num_tokens). count_weights, in a
             call with "count", are of the shape of the inputs
    """

    def __init__(self, num_tokens: int, output_mode: str = "multi_hot", sparse: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_tokens = positive(self.name, "num_tokens", num_tokens)
        self.output_mode = checked_mode(self.name, output_mode)
        if self.output_mode == "int":
            raise ArgumentError(f"{self.name}: output_mode='int'", mend="use 'one_hot', 'multi_hot' or 'count'")
        refuse_sparse(self.name, sparse)

    def call(self, inputs: Any, count_weights: Any = None) -> Tensor:
        indices = tl.as_tensor(inputs).long()
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < self.num_tokens:
            raise ArgumentError(
                f"{self.name}: integers from {int(indices.min())} to {int(indices.max())}; "
                f"num_tokens={self.num_tokens} takes 0 to {self.num_tokens - 1}"
            )
        if count_weights is not None and self.output_mode != "count":
            raise ArgumentError(f"{self.name}: count_weights are for output_mode='count'")
        weights = None if count_weights is None else tl.as_tensor(count_weights)
        return encoded(indices, self.output_mode, self.num_tokens, self._dtype, weights)

    def compute_output_spec(self, inputs: Any, count_weights: Any = None) -> Any:
        return KerasTensor(self.compute_output_shape(inputs.shape), self._dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self.num_tokens)


class Discretization(Layer):
    """Numbers as the index of the range they are in.

    Args:
        bin_boundaries: where ranges end and the next ones begin, rising; or
        num_bins: how many ranges `adapt` finds, such that each has about as many of the data.
        epsilon: how exactly it does; less takes longer.
        output_mode: "int", or the index as in CategoryEncoding.
        sparse: refused.
    """

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        refuse_sparse(self.name, sparse)
        if (bin_boundaries is None) == (num_bins is None):
            raise ArgumentError(f"{self.name}: give bin_boundaries, or num_bins and then adapt")
        self.num_bins = None if num_bins is None else positive(self.name, "num_bins", num_bins)
        if not 0 < epsilon < 1:
            raise ArgumentError(f"{self.name}: epsilon must be between 0 and 1, got {epsilon!r}")
        self.epsilon = epsilon
        self.output_mode = checked_mode(self.name, output_mode)
        self.bin_boundaries = None if bin_boundaries is None else tuple(float(b) for b in bin_boundaries)
        if self.bin_boundaries is not None and sorted(self.bin_boundaries) != list(self.bin_boundaries):
            raise ArgumentError(f"{self.name}: bin_boundaries must rise, got {self.bin_boundaries}")
        self.summary = np.zeros((2, 0), np.float32)  # values, and how many of the data each stands for

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Find the ranges of an array, or of an iterable of them."""
        self.reset_state()
        for batch in batches(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Add data to what the ranges are found of."""
        if self.num_bins is None:
            raise ArgumentError(f"{self.name}: adapt: bin_boundaries were given already")
        values = data.numpy(force=True) if isinstance(data, Tensor) else np.asarray(data)
        values = np.sort(values.reshape(-1).astype(np.float32))
        step = max(values.size * self.epsilon, 1)
        sampled = values[int(step - 1) :: int(step)]
        merged = np.concatenate([np.stack([sampled, np.full_like(sampled, step)]), self.summary], axis=1)
        self.summary = _compressed(merged[:, np.argsort(merged[0])], self.epsilon)

    def finalize_state(self) -> None:
        if self.num_bins is not None and self.summary.size:
            self.bin_boundaries = tuple(_compressed(self.summary, 1 / self.num_bins)[0, :-1].tolist())

    def reset_state(self) -> None:
        """Forget the data."""
        self.summary = np.zeros((2, 0), np.float32)

    def call(self, inputs: Any) -> Tensor:
        if self.bin_boundaries is None:
            raise ArgumentError(f"{self.name}: there are no ranges", mend="adapt it to data first")
        x = tl.as_tensor(inputs)
        x = x if x.is_floating_point() else x.float()
        edges = tl.tensor(self.bin_boundaries, dtype=x.dtype, device=x.device)
        indices = tl.bucketize(x, edges, right=True)
        if self.output_mode == "int":
            return indices.to(tl.int32)
        return encoded(indices, self.output_mode, len(self.bin_boundaries) + 1, self._dtype)

    def compute_output_spec(self, inputs: Any) -> Any:
        kind = tl.int32 if self.output_mode == "int" else self._dtype
        return KerasTensor(self.compute_output_shape(inputs.shape), kind)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        depth = self.num_bins if self.bin_boundaries is None else len(self.bin_boundaries) + 1
        return encoded_shape(input_shape, self.output_mode, depth)

    def get_config(self) -> dict[str, Any]:
        found = self.bin_boundaries
        return super().get_config() | {
            "bin_boundaries": None if found is None else list(found),
            "num_bins": None if found is not None else self.num_bins,
        }


def _compressed(summary: np.ndarray[Any, Any], epsilon: float) -> np.ndarray[Any, Any]:
    """A summary of about 1 / epsilon values, at equal parts of the data."""
    if summary.shape[1] * epsilon < 1:
        return summary
    parts = epsilon + np.arange(0.0, 1.0, epsilon)
    counts = summary[1].cumsum()
    shares = counts / counts[-1]
    values, sums = np.interp(parts, shares, summary[0]), np.interp(parts, shares, counts)
    weights = sums - np.concatenate([[0], sums[:-1]])
    return np.stack([values, weights]).astype(np.float32)
