"""Distances between the vectors of two sets."""

from __future__ import annotations

import math
from typing import Any

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.checks import expect_float
from tallow.ops.maps import with_value
from tallow.ops.matmul import product
from tallow.ops.norm import linalg_vector_norm, of_norm
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.selection import masked
from tallow.ops.table import Array, Result, Scalar, op

BY_PRODUCT = "use_mm_for_euclid_dist"
BY_DIFFERENCES = "donot_use_mm_for_euclid_dist"
BY_SIZE = "use_mm_for_euclid_dist_if_necessary"
FEW = 25  # maximum rows for which PyTorch, and so tallow, takes differences: exact where points are close


@op("tl", refuses="half", batched="itself")
def cdist(x1: Array, x2: Array, p: Scalar = 2.0, compute_mode: str = BY_SIZE) -> Result:
    """Return y_ij = ‖x1_i - x2_j‖_p for each pair of vectors.

    Args:
        compute_mode: whether the Euclidean distance is computed as |a|² + |b|² - 2ab, which is one matrix product but
            inexact for points that are close together: "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", or
            "use_mm_for_euclid_dist_if_necessary", which does so for more than 25 vectors in a set.

    Shapes:  (..., P, M), (..., R, M) -> (..., P, R), batch dimensions broadcast
    Dtypes:  any float
    Raises:  ShapeError, DtypeError, ArgumentError
    """
    expect_float("cdist", x1)
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: expected (..., P, M) and (..., R, M), got {x1.shape} and {x2.shape}")
    if p < 0 or compute_mode not in (BY_PRODUCT, BY_DIFFERENCES, BY_SIZE):
        raise ArgumentError(f"cdist: p={p} is negative, or compute_mode={compute_mode!r} is unknown")
    many = max(x1.shape[-2], x2.shape[-2]) > FEW
    if p == 2 and compute_mode != BY_DIFFERENCES and (many or compute_mode == BY_PRODUCT):
        return _euclidean_by_product(x1, x2)
    return _by_differences(x1, x2, p)


@cdist.second(a="x1", b="x2", y="value", unneeded="input axes reduced_shape")
def _(
    g: Derived,
    *,
    x1: Unread,
    x2: Unread,
    a: Derived = None,
    b: Derived = None,
    value: Derived = None,
    x: Derived = None,
    ord: Scalar = 0,
    y: Derived = None,
    differences: Derived = None,
    sizes: Derived = None,
) -> Gradients:
    if a is not None:  # by a product
        weight = (g / value).masked_fill(value.detach() == 0, 0)
        back = weight.transpose(-1, -2)
        return [a * weight.sum(-1, keepdim=True) - weight @ b, b * back.sum(-1, keepdim=True) - back @ a]
    if x is not None:
        x = with_value.call((0 if x1 is None else x1.unsqueeze(-2)) - (0 if x2 is None else x2.unsqueeze(-3)), x)
    (of_differences,) = _of_distance(g, x=x, ord=ord, y=y, differences=differences, sizes=sizes, value=value)
    return [of_differences.sum(-2), -of_differences.sum(-3)]


@op("", batched="leading")
def distance(differences: Array, p: Scalar) -> Result:
    """Return the p-norms over the last dim. For p = ∞ each of several greatest elements gets the whole gradient.

    In PyTorch, too, they share it in `linalg.vector_norm`, and do not in `cdist` and `pdist`.

    Shapes:  (..., M) -> (...)
    """
    if not differences.shape[-1]:
        p = 1.0  # distances between vectors of length 0 are 0; the maximum of no elements would raise
    if not math.isinf(p):
        return linalg_vector_norm.function(differences, p, -1)
    xp = array_module(differences)
    sizes = xp.abs(differences)
    value = sizes.max(axis=-1)
    return value, lambda g: (masked(xp.sign(differences) * g[..., None], sizes == value[..., None]),)


@distance.second(x="differences", y="value", unneeded="input axes reduced_shape")
def _of_distance(
    g: Derived,
    *,
    x: Derived = None,
    ord: Scalar = 0,
    y: Derived = None,
    differences: Derived = None,
    sizes: Derived = None,
    value: Derived = None,
) -> Gradients:
    g = g.unsqueeze(-1)
    if x is None:  # of an infinite order
        return [(g * differences.sign().detach()).masked_fill(sizes != value.detach().unsqueeze(-1), 0)]
    return [x.detach() * 0 if y is None else of_norm(g, x, ord, y)]


def _by_differences(x1: Array, x2: Array, p: Scalar) -> Result:
    value, backward = distance.function(x1[..., :, None, :] - x2[..., None, :, :], p)

    def backward_of_both(g: Array) -> tuple[Any, Any]:
        (of_differences,) = backward(g)  # type: ignore[misc]  # this op always has one
        return of_differences.sum(axis=-2), -of_differences.sum(axis=-3)

    return value, backward_of_both


def _euclidean_by_product(a: Array, b: Array) -> Result:
    xp = array_module(a)
    squares = (a * a).sum(axis=-1)[..., :, None] + (b * b).sum(axis=-1)[..., None, :]
    value = xp.sqrt(xp.maximum(squares - 2 * product(a, b.swapaxes(-1, -2), "cdist"), a.dtype.type(0)))

    def backward(g: Array) -> tuple[Any, Any]:
        weight = xp.where(value == 0, value, g / value)
        return (
            lambda: a * weight.sum(axis=-1)[..., None] - product(weight, b, "cdist"),
            lambda: b * weight.sum(axis=-2)[..., None] - product(weight.swapaxes(-1, -2), a, "cdist"),
        )

    return value, backward
