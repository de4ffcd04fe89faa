"""matmul, gradient_product: matrix products by cuBLAS, which reads views and transposed matrices directly.

Float32 is multiplied in float32, or on tensor cores if `tl.backends.cuda.matmul.allow_tf32` is set. Halves are
multiplied on tensor cores, and summed in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module, get_backend
from tallow.dtypes import HALVES, Array, cast, dtype, dtype_of
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow.ops.rows import as_rows
from tallow_cuda.launching import FLOAT32, is_float
from tallow_cuda.matrices import INT_MAX, Operand, address, as_matrices, batches, layout
from tallow_cuda.padding import PACK, contiguous_rows, copy_rows, padded, worth_padding

LONG = 256  # length of a side of a product with which it takes longer than another pass over the opposite matrix


def float_matrices(a: Array, b: Array) -> bool:
    """Arrays of float32, float16 or bfloat16 that fit; a float32 operand with a half is rounded to it."""
    if not is_float(a, b) or not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        return False
    return a.dtype == b.dtype or a.dtype == FLOAT32 or b.dtype == FLOAT32


@kernel("matmul", "cuda", accepts=float_matrices)
def matmul(a: Array, b: Array) -> Array:
    """Return a @ b, in float32 if one of them is float32, such as the gradient of a product of halves.

    Shapes:  as numpy.matmul; (..., M, K) @ (..., K, N) -> (..., M, N), batch dimensions broadcast
    """
    return _product(a, b, FLOAT32 if FLOAT32 in (a.dtype, b.dtype) else a.dtype)


@kernel("gradient_product", "cuda", accepts=float_matrices)
def gradient_product(a: Array, b: Array) -> Array:
    """Return a @ b in float32, for halves too."""
    return _product(a, b, FLOAT32)


def half(operand: Array) -> bool:
    """float16 or bfloat16."""
    return operand.dtype in HALVES


@kernel("rounded_dtype", "cuda", accepts=half)
def rounded_dtype(operand: Array) -> dtype:
    """Return the dtype of the operand: tensor cores multiply halves."""
    return dtype_of(operand)


def gradient_of_halves(g: Array, to: dtype) -> bool:
    """A gradient in float32, float16 or bfloat16, and one of the last two."""
    return is_float(g) and to.storage in HALVES


@kernel("factor_of_products", "cuda", accepts=gradient_of_halves)
def factor_of_products(g: Array, to: dtype) -> Array:
    """Return the gradient in another dtype; its rows are padded where that makes products with it faster."""
    g = cast(g, to)
    if g.ndim < 2 or not g.flags.c_contiguous or not worth_padding(g.shape, g.dtype):
        return g
    return copy_rows(g, padded(array_module(g), g.shape, g.dtype))


def _product(a: Array, b: Array, result: Any) -> Array:
    if b.ndim == 1:
        return _product(a, b[:, None], result)[..., 0]
    if a.ndim == 1:
        return _product(a[None, :], b, result)[..., 0, :]
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"matmul: batch dimensions do not broadcast: {a.shape} @ {b.shape}") from None
    if b.ndim == 2 and a.ndim > 2 and _are_rows(a):
        return _product(as_rows(a), b, result).reshape(*a.shape[:-1], b.shape[-1])
    a, b = _to_one_dtype(a, b)
    (m, k), n = a.shape[-2:], b.shape[-1]
    xp = array_module(a)
    if not (m and n and k and math.prod(batch)):
        return xp.zeros((*batch, m, n), result)
    if max(m, n, k) > INT_MAX:
        raise ShapeError(f"matmul: cuBLAS counts rows and columns in 32 bits: {a.shape} @ {b.shape}")
    a, b = as_matrices(a), as_matrices(b)
    if k >= LONG and worth_padding((*batch, m, n), result):
        c, whole = padded(xp, (*batch, m, n), result), n - n % PACK
        _multiply(a, b[..., :whole], c[..., :whole])
        _multiply(a, b[..., whole:], c[..., whole:])
        return contiguous_rows(c)
    c = xp.empty((*batch, m, n), result)
    if n >= LONG and result == FLOAT32 and worth_padding(a.shape, a.dtype):
        whole = k - k % PACK
        _multiply(a[..., :whole], b[..., :whole, :], c)
        _multiply(a[..., whole:], b[..., whole:, :], c, add=True)
    else:
        _multiply(a, b, c)
    return c


def _are_rows(x: Array) -> bool:
    """Return whether all rows of an array are at equal distances in memory."""
    steps = zip(x.strides[:-2], x.strides[1:-1], x.shape[1:-1], strict=True)
    return all(outer == inner * length for outer, inner, length in steps)


def _to_one_dtype(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype == b.dtype:
        return a, b
    half = dtype_of(a if a.dtype in HALVES else b)
    return cast(a, half), cast(b, half)


def _multiply(a: Array, b: Array, c: Array, add: bool = False) -> None:
    """Compute c = a @ b, or add it to c. For cuBLAS, which is column-major, these are transposes: cᵀ = bᵀ aᵀ."""
    backend: Any = get_backend("cuda")
    (a_by_rows, a_leading), (b_by_rows, b_leading) = layout(a), layout(b)
    (m, n), c_leading = c.shape[-2:], c.strides[-2] // c.itemsize
    for (at_a, at_b, at_c), count, (step_a, step_b, step_c) in batches(c.shape[:-2], a, b, c):
        backend.gemm(
            Operand(address(b) + at_b, b.dtype, not b_by_rows, b_leading, step_b // b.itemsize),
            Operand(address(a) + at_a, a.dtype, not a_by_rows, a_leading, step_a // a.itemsize),
            Operand(address(c) + at_c, c.dtype, False, max(n, c_leading), step_c // c.itemsize),
            n, m, a.shape[-1], count, add,
        )  # fmt: skip
