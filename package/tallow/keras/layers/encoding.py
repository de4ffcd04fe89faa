"""Layers that encode integers as vectors and bucketize numbers: CategoryEncoding, Discretization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.layers.checks import positive
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor

MODES = ("int", "one_hot", "multi_hot", "count")


def check_mode(layer: str, output_mode: Any, *more_modes: str) -> str:
    """Return the output mode under its current name; raise ArgumentError if it is unknown."""
    mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(output_mode, output_mode)  # Keras 2's names
    modes = (*MODES, *more_modes)
    if mode not in modes:
        raise ArgumentError(f"{layer}: output_mode={output_mode!r}", hint=f"use {', '.join(map(repr, modes))}")
    return str(mode)


def refuse_sparse(layer: str, sparse: bool) -> None:
    """Raise ArgumentError if `sparse` is True."""
    if sparse:
        raise ArgumentError(f"{layer}: sparse=True: sparse tensors are not supported", hint="remove sparse=True")


def encode(indices: Tensor, mode: str, depth: int, dtype: Any, weights: Tensor | None = None) -> Tensor:
    """Encode indices as vectors; an index out of range contributes nothing.

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
    """Return the output shape of `encode`."""
    if mode == "int":
        return tuple(shape)
    if mode == "one_hot":
        outer = shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape
        return (*outer, depth)
    return (shape[0], *shape[2:], depth) if len(shape) > 1 else (depth,)


def batches(data: Any, steps: int | None = None) -> Iterator[Any]:
    """Yield the batches of data passed to `adapt`: an array, or at most `steps` items of an iterable."""
    if isinstance(data, Tensor | np.ndarray | str) or (isinstance(data, Sequence) and not isinstance(data, bytes)):
        yield data
        return
    if not isinstance(data, Iterable):
        raise ArgumentError(f"adapt: {type(data).__name__}", hint="pass an array or an iterable of batches")
    for index, batch in enumerate(data):
        if steps is not None and index >= steps:
            return
        yield batch[0] if isinstance(batch, tuple) else batch


class CategoryEncoding(Layer):
    """Encode integers as vectors.

    Args:
        num_tokens: the number of tokens; inputs are integers from 0 to num_tokens - 1.
        output_mode: "multi_hot" marks the tokens of a sample, "count" counts them, "one_hot" encodes each one.
        sparse: not supported.

    Shapes:  inputs (B, N) -> (B, num_tokens); "one_hot": (...) or (..., 1) -> (..., num_tokens). count_weights of a
             call with "count" have the shape of the inputs
    """

    def __init__(self, num_tokens: int, output_mode: str = "multi_hot", sparse: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_tokens = positive(self.name, "num_tokens", num_tokens)
        self.output_mode = check_mode(self.name, output_mode)
        if self.output_mode == "int":
            raise ArgumentError(f"{self.name}: output_mode='int'", hint="use 'one_hot', 'multi_hot' or 'count'")
        refuse_sparse(self.name, sparse)

    def call(self, inputs: Any, count_weights: Any = None) -> Tensor:
        indices = tl.as_tensor(inputs).long()
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < self.num_tokens:
            raise ArgumentError(
                f"{self.name}: integers from {int(indices.min())} to {int(indices.max())}; "
                f"num_tokens={self.num_tokens} takes 0 to {self.num_tokens - 1}"
            )
        if count_weights is not None and self.output_mode != "count":
            raise ArgumentError(f"{self.name}: count_weights need output_mode='count'")
        weights = None if count_weights is None else tl.as_tensor(count_weights)
        return encode(indices, self.output_mode, self.num_tokens, self._dtype, weights)

    def compute_output_spec(self, inputs: Any, count_weights: Any = None) -> Any:
        return KerasTensor(self.compute_output_shape(inputs.shape), self._dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self.num_tokens)


class Discretization(Layer):
    """Replace numbers by the index of the range that contains them.

    Args:
        bin_boundaries: the ascending boundaries between ranges; or
        num_bins: the number of ranges that `adapt` computes, with about equally many values each.
        epsilon: the tolerance of `adapt`; smaller is more accurate and slower.
        output_mode: "int", or an encoding of the index as in CategoryEncoding.
        sparse: not supported.
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
            raise ArgumentError(f"{self.name}: pass either bin_boundaries, or num_bins and then call adapt")
        self.num_bins = None if num_bins is None else positive(self.name, "num_bins", num_bins)
        if not 0 < epsilon < 1:
            raise ArgumentError(f"{self.name}: epsilon must be between 0 and 1, got {epsilon!r}")
        self.epsilon = epsilon
        self.output_mode = check_mode(self.name, output_mode)
        self.bin_boundaries = None if bin_boundaries is None else tuple(float(b) for b in bin_boundaries)
        if self.bin_boundaries is not None and sorted(self.bin_boundaries) != list(self.bin_boundaries):
            raise ArgumentError(f"{self.name}: bin_boundaries must be ascending, got {self.bin_boundaries}")
        self.summary = np.zeros((2, 0), np.float32)  # values, and the number of data points each represents

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Compute the ranges from an array or an iterable of arrays; `steps` limits the number of batches."""
        self.reset_state()
        for batch in batches(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Add data to the summary from which the ranges are computed."""
        if self.num_bins is None:
            raise ArgumentError(f"{self.name}: adapt: bin_boundaries are set already")
        values = data.numpy(force=True) if isinstance(data, Tensor) else np.asarray(data)
        values = np.sort(values.reshape(-1).astype(np.float32))
        step = max(values.size * self.epsilon, 1)
        sampled = values[int(step - 1) :: int(step)]
        merged = np.concatenate([np.stack([sampled, np.full_like(sampled, step)]), self.summary], axis=1)
        self.summary = _compressed(merged[:, np.argsort(merged[0])], self.epsilon)

    def finalize_state(self) -> None:
        """Set bin_boundaries from the data seen so far."""
        if self.num_bins is not None and self.summary.size:
            self.bin_boundaries = tuple(_compressed(self.summary, 1 / self.num_bins)[0, :-1].tolist())

    def reset_state(self) -> None:
        """Clear the summary of the data."""
        self.summary = np.zeros((2, 0), np.float32)

    def call(self, inputs: Any) -> Tensor:
        if self.bin_boundaries is None:
            raise ArgumentError(f"{self.name}: bin_boundaries are not set", hint="call adapt(data) first")
        x = tl.as_tensor(inputs)
        x = x if x.is_floating_point() else x.float()
        edges = tl.tensor(self.bin_boundaries, dtype=x.dtype, device=x.device)
        indices = tl.bucketize(x, edges, right=True)
        if self.output_mode == "int":
            return indices.to(tl.int32)
        return encode(indices, self.output_mode, len(self.bin_boundaries) + 1, self._dtype)

    def compute_output_spec(self, inputs: Any) -> Any:
        kind = tl.int32 if self.output_mode == "int" else self._dtype
        return KerasTensor(self.compute_output_shape(inputs.shape), kind)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        depth = self.num_bins if self.bin_boundaries is None else len(self.bin_boundaries) + 1
        return encoded_shape(input_shape, self.output_mode, depth)

    def get_config(self) -> dict[str, Any]:
        boundaries = self.bin_boundaries
        return super().get_config() | {
            "bin_boundaries": None if boundaries is None else list(boundaries),
            "num_bins": None if boundaries is not None else self.num_bins,
        }


def _compressed(summary: np.ndarray[Any, Any], epsilon: float) -> np.ndarray[Any, Any]:
    """Return a summary of about 1 / epsilon values at equal quantiles of the data."""
    if summary.shape[1] * epsilon < 1:
        return summary
    quantiles = epsilon + np.arange(0.0, 1.0, epsilon)
    counts = summary[1].cumsum()
    cumulative = counts / counts[-1]
    values, sums = np.interp(quantiles, cumulative, summary[0]), np.interp(quantiles, cumulative, counts)
    weights = sums - np.concatenate([[0], sums[:-1]])
    return np.stack([values, weights]).astype(np.float32)
