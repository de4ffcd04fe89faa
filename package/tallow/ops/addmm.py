"""Matrix products added to a tensor: beta · input + alpha · (product)."""

from __future__ import annotations

from typing import Any

from tallow.errors import ShapeError
from tallow.ops.filling import factor
from tallow.ops.matmul import (
    Products,
    batched_operands,
    gradients_of_product,
    matmul_result,
    matrix_operands,
    outer_result,
    product,
    vector_operands,
)
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, Scalar, op


def _add_product(name: str, input: Array, beta: Scalar, alpha: Scalar, value: Array, backward: Products) -> Result:
    """Return beta · input + alpha · value. With beta = 0 the input is ignored, including its NaN, as in BLAS."""
    shape = value.shape
    if alpha != 1:
        value = value * factor(alpha, value, name)
    if beta != 0:
        value = value + (input if beta == 1 else input * factor(beta, input, name))
    fits = input.ndim <= len(shape) and all(n in (1, m) for n, m in zip(input.shape[::-1], shape[::-1], strict=False))
    if not fits:
        raise ShapeError(f"{name}: input of shape {input.shape} cannot be broadcast to the product's shape {shape}")
    return value, lambda g: (lambda: g * beta, *backward(g if alpha == 1 else g * alpha))


@op("tl Tensor Tensor_", batched="itself")
def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Result:
    """Return beta · input + alpha · (mat1 @ mat2).

    Shapes:  input broadcast to (M, N); (M, K), (K, N) -> (M, N)
    Raises:  ShapeError
    """
    matrix_operands("addmm", mat1=mat1, mat2=mat2)
    return _add_product("addmm", input, beta, alpha, *matmul_result(mat1, mat2, "addmm"))


@addmm.second(a="mat1", b="mat2", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived, alpha: Scalar, beta: Scalar) -> Gradients:
    return [g * beta, *gradients_of_product(g * alpha, a, b)]


@op("tl Tensor Tensor_", batched="itself")
def addmv(input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Result:
    """Return beta · input + alpha · (mat @ vec).

    Shapes:  input broadcast to (M); (M, K), (K) -> (M)
    Raises:  ShapeError
    """
    matrix_operands("addmv", mat=mat)
    vector_operands("addmv", vec=vec)
    return _add_product("addmv", input, beta, alpha, *matmul_result(mat, vec, "addmv"))


@addmv.second(a="mat", b="vec", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived, alpha: Scalar, beta: Scalar) -> Gradients:
    return [g * beta, *gradients_of_product(g * alpha, a, b)]


@op("tl Tensor Tensor_", batched="itself")
def addr(input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Result:
    """Return beta · input + alpha · (vec1 vec2ᵀ).

    Shapes:  input broadcast to (M, N); (M), (N) -> (M, N)
    Raises:  ShapeError
    """
    vector_operands("addr", vec1=vec1, vec2=vec2)
    return _add_product("addr", input, beta, alpha, *outer_result(vec1, vec2))


@addr.second(a="vec1", b="vec2")
def _(g: Derived, *, a: Derived, b: Derived, alpha: Scalar, beta: Scalar) -> Gradients:
    return [g * beta, g @ b * alpha, a @ g * alpha]


@op("tl Tensor Tensor_", batched="itself")
def baddbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Result:
    """Return beta · input + alpha · (batch1 @ batch2).

    Shapes:  input broadcast to (B, M, N); (B, M, K), (B, K, N) -> (B, M, N)
    Raises:  ShapeError
    """
    batched_operands("baddbmm", batch1=batch1, batch2=batch2)
    return _add_product("baddbmm", input, beta, alpha, *matmul_result(batch1, batch2, "baddbmm"))


@baddbmm.second(a="batch1", b="batch2", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived, alpha: Scalar, beta: Scalar) -> Gradients:
    return [g * beta, *gradients_of_product(g * alpha, a, b)]


@op("tl Tensor Tensor_", batched="itself")
def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Result:
    """Return beta · input + alpha · Σ_b batch1_b @ batch2_b.

    Shapes:  input broadcast to (M, N); (B, M, K), (B, K, N) -> (M, N)
    Raises:  ShapeError
    """
    batched_operands("addbmm", batch1=batch1, batch2=batch2)
    b, m, k = batch1.shape
    # The sum over the batch becomes part of one long inner dimension.
    long = product(batch1.swapaxes(0, 1).reshape(m, b * k), batch2.reshape(b * k, batch2.shape[2]), "addbmm")

    def backward(g: Array) -> tuple[Any, Any]:
        return lambda: product(g, batch2.swapaxes(1, 2), "addbmm"), lambda: product(batch1.swapaxes(1, 2), g, "addbmm")

    return _add_product("addbmm", input, beta, alpha, long, backward)


@addbmm.second
def _(g: Derived, *, batch1: Derived, batch2: Derived, alpha: Scalar, beta: Scalar) -> Gradients:
    return [g * beta, g @ batch2.mT * alpha, batch1.mT @ g * alpha]
