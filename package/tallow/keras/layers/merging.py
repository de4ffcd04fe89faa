"""Layers that merge several tensors into one, and functions for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.ops.dims import normalize_dim


class _Merge(Layer):
    """Base class of elementwise merge layers.

    Tensors broadcast; those with fewer dims get dims of size 1 after the batch.

    Shapes:  a list of x (batch, ...) -> (batch, ...)
    """

    supports_masking = True
    least, most = 1, 10**6

    def build(self, input_shape: Any) -> None:
        self._check_count(input_shape)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        self._check_count(inputs)
        rank = max(x.ndim for x in inputs)
        return self._merge([x.reshape(x.shape[0], *[1] * (rank - x.ndim), *x.shape[1:]) for x in inputs])

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _check_count(self, inputs: Any) -> None:
        is_list = isinstance(inputs, list | tuple) and not isinstance(inputs[0] if inputs else 0, int | None)
        count = len(inputs) if is_list else 1
        if not is_list or not self.least <= count <= self.most:
            expected = f"{self.least}" if self.least == self.most else f"at least {self.least}"
            raise ArgumentError(
                f"{self.name}: expected a list of {expected} tensors, got {count if is_list else 'one'}"
            )

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Shape:
        self._check_count(input_shape)
        rank = max(map(len, input_shape))
        full = [(shape[0], *[1] * (rank - len(shape)), *shape[1:]) for shape in input_shape]
        merged = []
        for axis, axis_sizes in enumerate(zip(*full, strict=True)):
            fixed = {n for n in axis_sizes if n not in (1, None)}
            if len(fixed) > 1:
                raise ShapeError(f"{self.name}: shapes {', '.join(map(str, input_shape))} differ in axis {axis}")
            merged.append(fixed.pop() if fixed else None if None in axis_sizes else 1)
        return tuple(merged)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Combine masks by `or`; return None if any input has no mask."""
        if not previous_mask or any(mask is None for mask in previous_mask):
            return None
        return functools.reduce(lambda first, second: first | second, previous_mask)


class Add(_Merge):
    """Sum of the inputs."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x + y, inputs)


class Subtract(_Merge):
    """Difference of two inputs: the first minus the second."""

    least = most = 2

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return inputs[0] - inputs[1]


class Multiply(_Merge):
    """Product of the inputs."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x * y, inputs)


class Average(_Merge):
    """Mean of the inputs."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x + y, inputs) / len(inputs)


class Maximum(_Merge):
    """Elementwise maximum of the inputs."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(tl.maximum, inputs)


class Minimum(_Merge):
    """Elementwise minimum of the inputs."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(tl.minimum, inputs)


class Concatenate(_Merge):
    """Concatenate the inputs along `axis`; all other sizes must be equal."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        self._check_count(inputs)
        return tl.cat(list(inputs), self.axis)

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Shape:
        self._check_count(input_shape)
        first = list(input_shape[0])
        axis = self.axis % len(first)
        for shape in input_shape:
            fits = len(shape) == len(first) and all(
                n == m or None in (n, m) or i == axis for i, (n, m) in enumerate(zip(shape, first, strict=True))
            )
            if not fits:
                shapes = ", ".join(map(str, input_shape))
                raise ShapeError(f"{self.name}: shapes {shapes} must be the same in all axes but {self.axis}")
        sizes = [shape[axis] for shape in input_shape]
        first[axis] = None if None in sizes else sum(n for n in sizes if n is not None)
        return tuple(first)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Concatenate the masks; if `axis` is the feature axis, combine them by `or`."""
        if not previous_mask or all(mask is None for mask in previous_mask):
            return None
        parts = []
        for x, mask in zip(inputs, previous_mask, strict=True):
            first = x[..., :1]  # one feature, because all features of a step share a mask
            part = tl.ones_like(first, dtype=tl.bool) if mask is None else mask.to(tl.bool)
            parts.append(part.reshape(*part.shape, *[1] * (x.ndim - part.ndim)).expand(*first.shape))
        return tl.cat(parts, self.axis).any(-1)


class Dot(_Merge):
    """Dot products of the vectors of two tensors along one axis of each.

    Args:
        axes: the axis, or one axis for each input.
        normalize: scale the vectors to length 1 first, which gives the cosine similarity.

    Shapes:  (batch, ..., n, ...) twice -> (batch, other axes of the first, other axes of the second), or (batch, 1)
    """

    least = most = 2

    def __init__(self, axes: int | Sequence[int], normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes = (axes, axes) if isinstance(axes, int) else tuple(axes)
        if len(self.axes) != 2 or 0 in self.axes:
            raise ArgumentError(f"{self.name}: axes={axes!r}", hint="pass one or two axes other than the batch axis")
        self.normalize = normalize

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        self._check_count(inputs)
        x, y = (F.normalize(v, dim=axis) if self.normalize else v for v, axis in zip(inputs, self.axes, strict=True))
        i, j = (normalize_dim(axis, v.ndim, self.name) for axis, v in zip(self.axes, (x, y), strict=True))
        left = "a" + "ijklmn"[: x.ndim - 1].replace("ijklmn"[i - 1], "z")
        right = "a" + "opqrst"[: y.ndim - 1].replace("opqrst"[j - 1], "z")
        output = "a" + left[1:].replace("z", "") + right[1:].replace("z", "")
        result = tl.einsum(f"{left},{right}->{output}", x, y)
        return result[:, None] if result.ndim == 1 else result

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Shape:
        self._check_count(input_shape)
        left, right = map(list, input_shape)
        i, j = (normalize_dim(axis, len(dims), self.name) for axis, dims in zip(self.axes, (left, right), strict=True))
        n, m = left[i], right[j]
        if n != m and None not in (n, m):
            raise ShapeError(f"{self.name}: axes {self.axes} of {tuple(left)} and {tuple(right)} differ: {n}, {m}")
        del left[i], right[j]
        return tuple(left + right[1:]) if len(left + right) > 2 else (left[0], 1)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        return None


def _functional(layer: type[_Merge], name: str) -> Callable[..., Any]:
    def merge(inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return layer(*args, **kwargs)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = f"{layer.__name__}(...)(inputs)."
    return merge


add = _functional(Add, "add")
subtract = _functional(Subtract, "subtract")
multiply = _functional(Multiply, "multiply")
average = _functional(Average, "average")
maximum = _functional(Maximum, "maximum")
minimum = _functional(Minimum, "minimum")
concatenate = _functional(Concatenate, "concatenate")
dot = _functional(Dot, "dot")
