"""LU decomposition with partial pivoting, which NumPy does not have."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.ops.diagonals import diag_embed
from tallow.ops.gather import gather
from tallow.ops.joining import cat
from tallow.ops.linalg import expect_matrices, lapack, linalg_inv, times, transposed
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op


@op("", refuses="half", batched="leading")
def lu_factor(A: Array) -> Result:
    """Return L and U of A = P L U in one matrix, without L's diagonal; the pivots; and the row of A for each of L U.

    dA = P L⁻ᵀ (tril(Lᵀ gL, -1) + triu(gU Uᵀ)) U⁻ᵀ for square L and U; L⁻¹ multiplies the part of
    A to the right of them, and the part below them is multiplied by U⁻¹.

    Shapes:  (..., M, N) -> (..., M, N), (..., min(M, N)) and (..., M)
    Dtypes:  that of A, int32 (rows counted from one, as in LAPACK) and int64
    Raises:  LinAlgError in backward for a zero on the diagonal of U
    """
    name = "linalg.lu_factor"
    expect_matrices(name, A)
    xp = array_module(A)
    *batch, m, n = A.shape
    lu = A.reshape(math.prod(batch), m, n).copy()
    each = xp.arange(len(lu), dtype=np.int64)
    order = xp.broadcast_to(xp.arange(m, dtype=np.int64), (len(lu), m)).copy()
    pivots = xp.empty((len(lu), min(m, n)), np.int32)
    for j in range(min(m, n)):
        column = lu[:, j:, j]
        size = xp.abs(column) if column.dtype.kind != "c" else xp.abs(column.real) + xp.abs(column.imag)  # as LAPACK
        pivot = size.argmax(axis=1) + j
        pivots[:, j] = pivot + 1
        for rows in (lu, order):
            upper = rows[:, j].copy()
            rows[:, j] = rows[each, pivot]
            rows[each, pivot] = upper
        diagonal = lu[:, j, j, None]
        lu[:, j + 1 :, j] /= xp.where(diagonal == 0, 1, diagonal)  # then the whole column is zero
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    lu, order = lu.reshape(A.shape), order.reshape(*batch, m)

    def backward(g: Array, *_: Array) -> tuple[Array]:
        k = min(m, n)
        lower = xp.tril(lu[..., :k, :k], -1) + xp.eye(k, dtype=lu.dtype)
        upper = xp.triu(lu[..., :k, :k])
        l_inverse = transposed(lapack(name, xp.linalg.inv, lower))
        u_inverse = transposed(lapack(name, xp.linalg.inv, upper))
        g_lower, g_upper = xp.tril(g[..., :k, :k], -1), xp.triu(g[..., :k, :k])
        right, below = times(name, l_inverse, g[..., :k, k:]), times(name, g[..., k:, :k], u_inverse)
        g_lower = g_lower - times(name, right, transposed(lu[..., :k, k:]))
        g_upper = g_upper - times(name, transposed(lu[..., k:, :k]), below)
        middle = xp.tril(times(name, transposed(lower), g_lower), -1)
        middle = middle + xp.triu(times(name, g_upper, transposed(upper)))
        d = xp.concatenate([times(name, l_inverse, middle, u_inverse), right], axis=-1)
        if m > n:
            d = xp.concatenate([d, below], axis=-2)
        return (xp.take_along_axis(d, order.argsort(axis=-1)[..., None], axis=-2),)

    return (lu, pivots.reshape(*batch, min(m, n)), order), backward


@lu_factor.second(lu="value0", unneeded="name")
def _(g: Derived, *_: Derived, lu: Derived, order: Derived, m: int, n: int) -> Gradients:
    k = min(m, n)
    lower = lu[..., :k, :k].tril(-1) + diag_embed.call(lu.detach().diagonal(0, -2, -1) * 0 + 1)
    l_inverse, u_inverse = linalg_inv.call(lower).mT, linalg_inv.call(lu[..., :k, :k].triu()).mT
    right, below = l_inverse @ g[..., :k, k:], g[..., k:, :k] @ u_inverse
    g_lower = g[..., :k, :k].tril(-1) - right @ lu[..., :k, k:].mT
    g_upper = g[..., :k, :k].triu() - lu[..., k:, :k].mT @ below
    middle = (lower.mT @ g_lower).tril(-1) + (g_upper @ lu[..., :k, :k].triu().mT).triu()
    d = cat.call([l_inverse @ middle @ u_inverse, right], -1)
    d = cat.call([d, below], -2) if m > n else d
    rows = order.argsort(-1).unsqueeze(-1)
    return [gather.call(d, -2, rows.expand(d.shape))]
