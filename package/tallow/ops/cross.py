"""Cross product of three-dimensional vectors."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.dims import normalize_dim
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op


def _cross(a: Array, b: Array, axis: int) -> Array:
    """Return a_{i+1} b_{i+2} - a_{i+2} b_{i+1}, indices modulo 3. `axis` counts from the end."""
    xp = array_module(a)
    return xp.roll(a, -1, axis) * xp.roll(b, -2, axis) - xp.roll(a, -2, axis) * xp.roll(b, -1, axis)


@op("linalg", dtypes="promote", batched="dim")
def linalg_cross(input: Array, other: Array, *, dim: int = -1) -> Result:
    """Return the cross product along `dim`.

    da = b × g,  db = g × a

    Shapes:  both (..., 3, ...) with 3 at `dim`, broadcast
    Raises:  ShapeError
    """
    if input.ndim != other.ndim:
        raise ShapeError(f"linalg.cross: inputs must have as many dimensions, got {input.shape} and {other.shape}")
    axis = normalize_dim(dim, input.ndim, "linalg.cross") - input.ndim
    if input.ndim == 0 or input.shape[axis] != 3 or other.shape[axis] != 3:
        raise ShapeError(f"linalg.cross: dim {dim} must have length 3, got {input.shape} and {other.shape}")
    np.broadcast_shapes(input.shape, other.shape)
    return _cross(input, other, axis), lambda g: (lambda: _cross(other, g, axis), lambda: _cross(g, input, axis))


@linalg_cross.second
def _(g: Derived, *, input: Derived, other: Derived, axis: int) -> Gradients:
    return [linalg_cross.call(other, g, dim=axis), linalg_cross.call(g, input, dim=axis)]
