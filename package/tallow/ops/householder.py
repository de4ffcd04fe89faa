"""Factorizations of LAPACK that NumPy does not have: by Householder reflections, and LDLᵀ of symmetric matrices."""

from __future__ import annotations

import math

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.ops.linalg import expect_matrices, expect_square
from tallow.ops.table import Array, Index, Result, op


@op("tl Tensor", refuses="half", result=return_types.geqrf, batched="leading")
def geqrf(input: Array) -> Result:
    """Return the QR decomposition as LAPACK stores it: R and the vectors of the reflections in one matrix, and factors.

    Q is H_1 H_2 ... with H_i = I - τ_i v_i v_iᴴ, where v_i is 1 at i and stands in column i below it. There is no
    gradient; `linalg.qr` has one.

    Shapes:  (..., M, N) -> (..., M, N), (..., min(M, N))
    """
    expect_matrices("geqrf", input)
    xp = array_module(input)
    *batch, m, n = input.shape
    a = input.reshape(math.prod(batch), m, n).copy()
    tau = xp.zeros((len(a), min(m, n)), a.dtype)
    for j in range(min(m, n)):
        first, below = a[:, j, j].copy(), a[:, j + 1 :, j]
        rest = xp.sqrt(xp.square(xp.abs(below)).sum(axis=-1))
        length = -xp.copysign(xp.hypot(xp.abs(first), rest), first.real)
        reflects = (rest != 0) | (first.imag != 0)  # else the column is that of R already
        tau[:, j] = xp.where(reflects, (length - first) / xp.where(reflects, length, 1), 0)
        a[:, j + 1 :, j] = below / xp.where(reflects, first - length, 1)[:, None]
        a[:, j, j] = xp.where(reflects, length, first)
        v = a[:, j:, j].copy()
        v[:, 0] = 1
        right = a[:, j:, j + 1 :]
        right -= (tau[:, j, None].conj() * v)[:, :, None] * (v[:, None, :].conj() @ right)
    return (a.reshape(input.shape), tau.reshape(*batch, min(m, n))), None


PIVOT = (1 + math.sqrt(17)) / 8  # the bound on growth is the same for pivots of one and of two rows


@op("", refuses="half", batched="leading")
def ldl_factor(A: Array, hermitian: bool = False) -> Result:
    """Return the factors of symmetric matrices, A = L D Lᵀ, in one matrix, the pivots, and where D is singular.

    Hermitian matrices are A = L D Lᴴ with a real diagonal.

    D has blocks of one or two rows. For a block of two, both pivots are negative, as in LAPACK, which also says how L
    is to be read. Only the lower triangle of A is read. There is no gradient.

    Shapes:  (..., N, N) -> (..., N, N), (..., N) of int32, (...) of int32
    Source:  Bunch & Kaufman 1977, Math. Comp. 31, 163
    """
    expect_square("linalg.ldl_factor", A)
    xp = array_module(A)
    n = A.shape[-1]
    a = xp.tril(A).reshape(math.prod(A.shape[:-2]), n, n)
    found = [_ldl_of_one(matrix, hermitian and A.dtype.kind == "c") for matrix in a]
    pivots = xp.asarray(np.array([rows for rows, _ in found], np.int32).reshape(A.shape[:-1]))
    info = xp.asarray(np.array([failed for _, failed in found], np.int32).reshape(A.shape[:-2]))
    return (a.reshape(A.shape), pivots, info), None


def _ldl_of_one(a: Array, conjugate: bool) -> tuple[list[int], int]:
    """Factor a matrix in place, and return its pivots and the number, from one, of the first zero in D."""
    n, k, info = len(a), 0, 0
    if conjugate:
        a[np.arange(n), np.arange(n)] = a.diagonal().real
    pivots = [0] * n
    while k < n:
        row, size = _pivot(a, k)
        if size == 0:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        last = k + size - 1
        _exchange(a, k, last, row, conjugate)
        pivots[k : last + 1] = [row + 1 if size == 1 else -(row + 1)] * size
        block, columns = _block(a, k, size, conjugate), a[last + 1 :, k : last + 1].copy()
        if len(columns):
            factor = _divided(columns, block)
            trailing = a[last + 1 :, last + 1 :]
            product = factor @ _turned(columns, conjugate)
            trailing -= product * _lower(trailing)
            a[last + 1 :, k : last + 1] = factor
        k += size
    return pivots, info


def _block(a: Array, k: int, size: int, conjugate: bool) -> Array:
    """Return a copy of a block of D, of which `a` has the lower triangle."""
    block = a[k : k + size, k : k + size].copy()
    if size == 2:
        block[0, 1] = block[1, 0].conj() if conjugate else block[1, 0]
    return block


def _turned(a: Array, conjugate: bool) -> Array:
    return a.T.conj() if conjugate else a.T


def _lower(a: Array) -> Array:
    xp = array_module(a)
    return xp.tril(xp.ones_like(a))


def _divided(columns: Array, block: Array) -> Array:
    """Return columns · block⁻¹ for a symmetric or Hermitian block of one or two rows."""
    if len(block) == 1:
        return columns / block[0, 0]
    below, above = block[1, 0], block[0, 1]
    d0, d1 = block[1, 1] / below, block[0, 0] / above
    det = d0 * d1 - 1
    xp = array_module(columns)
    first, second = columns[:, 0], columns[:, 1]
    return xp.stack([(d0 * first - second) / (det * above), (d1 * second - first) / (det * below)], axis=1)


def _sizes(a: Array) -> Array:
    """Return the sizes by which pivots are chosen: of complex numbers, as LAPACK, the sum of both parts' sizes."""
    xp = array_module(a)
    return xp.abs(a.real) + xp.abs(a.imag) if a.dtype.kind == "c" else xp.abs(a)


def _pivot(a: Array, k: int) -> tuple[int, int]:
    """Return the row to exchange with, and the size of the next block of D; 0 for a column of zeros."""
    xp = array_module(a)
    here, below = float(_sizes(a[k, k])), _sizes(a[k + 1 :, k])
    if not len(below) or not float(below.max()):
        return k, int(here != 0)
    row, greatest = int(below.argmax()) + k + 1, float(below.max())
    if here >= PIVOT * greatest:
        return k, 1
    others = xp.concatenate([a[row, k:row], a[row + 1 :, row]])
    in_row = float(_sizes(others).max())
    if here >= PIVOT * greatest * (greatest / in_row):
        return k, 1
    return row, 1 if float(_sizes(a[row, row])) >= PIVOT * in_row else 2


def _exchange(a: Array, k: int, i: int, j: int, conjugate: bool) -> None:
    """Exchange rows and columns i and j > i of the lower triangle from column k on."""
    if i == j:
        return
    for here, there in (
        (a[j + 1 :, i], a[j + 1 :, j]),
        (a[i + 1 : j, i], a[j, i + 1 : j]),
        (a[i : i + 1, i], a[j : j + 1, j]),
        (a[i, k:i], a[j, k:i]),
    ):
        kept = here.copy()
        here[...] = there
        there[...] = kept
    if conjugate:  # what was in a row is in a column now
        for turned in (a[i + 1 : j, i], a[j, i + 1 : j], a[j, i : i + 1]):
            turned[...] = turned.conj()


@op("", refuses="half")
def ldl_solve(LD: Array, pivots: Index, B: Array, hermitian: bool = False) -> Result:
    """Return the X of A X = B, given the factors of A; see `ldl_factor`. There is no gradient."""
    xp = array_module(LD, B)
    n, k = LD.shape[-1], B.shape[-1]
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    factors = xp.broadcast_to(LD, (*batch, n, n)).reshape(math.prod(batch), n, n)
    rows = xp.broadcast_to(pivots, (*batch, n)).reshape(math.prod(batch), n)
    x = xp.broadcast_to(B, (*batch, n, k)).reshape(math.prod(batch), n, k).copy()
    for matrix, order, right in zip(factors, rows.tolist(), x, strict=True):
        _solve_one(matrix, [int(p) for p in order], right, hermitian and LD.dtype.kind == "c")
    return x.reshape(*batch, n, k), None


def _solve_one(a: Array, pivots: list[int], x: Array, conjugate: bool) -> None:
    blocks, k = [], 0
    while k < len(a):
        blocks.append((k, 1 if pivots[k] > 0 else 2))
        k += blocks[-1][1]
    for k, size in blocks:
        last = k + size - 1
        _swap(x, last, abs(pivots[k]) - 1)
        x[last + 1 :] -= a[last + 1 :, k : last + 1] @ x[k : last + 1]
        block = _block(a, k, size, conjugate)  # x = D⁻¹ x is xᵀ = xᵀ D⁻ᵀ
        x[k : last + 1] = _divided(x[k : last + 1].T.copy(), block.T).T
    for k, size in reversed(blocks):
        last = k + size - 1
        x[k : last + 1] -= _turned(a[last + 1 :, k : last + 1], conjugate) @ x[last + 1 :]
        _swap(x, last, abs(pivots[k]) - 1)


def _swap(x: Array, i: int, j: int) -> None:
    if i != j:
        kept = x[i].copy()
        x[i] = x[j]
        x[j] = kept
