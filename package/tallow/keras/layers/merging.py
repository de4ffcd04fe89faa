"""Layers that make one tensor of several, and the same as functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.tensor import Tensor


class _Merge(Layer):
    """Elementwise, of tensors that broadcast; one with fewer dims gets ones behind the batch.

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
        for axis, found in enumerate(zip(*full, strict=True)):
            known = {n for n in found if n not in (1, None)}
            if len(known) > 1:
                raise ShapeError(f"{self.name}: shapes {', '.join(map(str, input_shape))} differ in axis {axis}")
            merged.append(known.pop() if known else None if None in found else 1)
        return tuple(merged)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """A place counts that counts in one of them; all do where one has no mask."""
        if not previous_mask or any(mask is None for mask in previous_mask):
            return None
        return functools.reduce(lambda one, other: one | other, previous_mask)


class Add(_Merge):
    """Their sum."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x + y, inputs)


class Subtract(_Merge):
    """The first minus the second, of two."""

    least = most = 2

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return inputs[0] - inputs[1]


class Multiply(_Merge):
    """Their product."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x * y, inputs)


class Average(_Merge):
    """Their mean."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(lambda x, y: x + y, inputs) / len(inputs)


class Maximum(_Merge):
    """Their maximum."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(tl.maximum, inputs)


class Minimum(_Merge):
    """Their minimum."""

    def _merge(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(tl.minimum, inputs)


class Concatenate(_Merge):
    """One behind the other along `axis`; their other sizes are the same."""

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
        """Those of the inputs one behind the other; along the features, a place counts that counts in one of them."""
        if not previous_mask or all(mask is None for mask in previous_mask):
            return None
        parts = []
        for x, mask in zip(inputs, previous_mask, strict=True):
            first = x[..., :1]  # of the features, which have one mask
            part = tl.ones_like(first, dtype=tl.bool) if mask is None else mask.to(tl.bool)
            parts.append(part.reshape(*part.shape, *[1] * (x.ndim - part.ndim)).expand(*first.shape))
        return tl.cat(parts, self.axis).any(-1)


class Dot(_Merge):
    """The dot products of two tensors' vectors along an axis of each.

    Args:
        axes: the axis, or one for each.
        normalize: scale the vectors to length 1 first, which makes it their cosine.

    Shapes:  (batch, ..., n, ...) twice -> (batch, the other axes of the first, those of the second), or (batch, 1)
    """

    least = most = 2

    def __init__(self, axes: int | Sequence[int], normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes = (axes, axes) if isinstance(axes, int) else tuple(axes)
        if len(self.axes) != 2 or 0 in self.axes:
            raise ArgumentError(f"{self.name}: axes={axes!r}", mend="give one axis, or two, that are not the batch's")
        self.normalize = normalize

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        self._check_count(inputs)
        x, y = (F.normalize(v, dim=axis) if self.normalize else v for v, axis in zip(inputs, self.axes, strict=True))
        i, j = self.axes[0] % x.ndim, self.axes[1] % y.ndim
        ours = "a" + "ijklmn"[: x.ndim - 1].replace("ijklmn"[i - 1], "z")
        theirs = "a" + "opqrst"[: y.ndim - 1].replace("opqrst"[j - 1], "z")
        kept = "a" + ours[1:].replace("z", "") + theirs[1:].replace("z", "")
        result = tl.einsum(f"{ours},{theirs}->{kept}", x, y)
        return result[:, None] if result.ndim == 1 else result

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Shape:
        self._check_count(input_shape)
        one, other = list(input_shape[0]), list(input_shape[1])
        n, m = one[self.axes[0]], other[self.axes[1]]
        if n != m and None not in (n, m):
            raise ShapeError(f"{self.name}: axes {self.axes} of {tuple(one)} and {tuple(other)} differ: {n}, {m}")
        del one[self.axes[0]], other[self.axes[1]]
        return tuple(one + other[1:]) if len(one + other) > 2 else (one[0], 1)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        return None


def _as_function(layer: type[_Merge], name: str) -> Callable[..., Any]:
    def merge(inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return layer(*args, **kwargs)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = f"{layer.__name__}(...)(inputs)."
    return merge


add = _as_function(Add, "add")
subtract = _as_function(Subtract, "subtract")
multiply = _as_function(Multiply, "multiply")
average = _as_function(Average, "average")
maximum = _as_function(Maximum, "maximum")
minimum = _as_function(Minimum, "minimum")
concatenate = _as_function(Concatenate, "concatenate")
dot = _as_function(Dot, "dot")
