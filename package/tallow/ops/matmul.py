"""Products of matrices and vectors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np

from tallow import kernels
from tallow.devices import array_module
from tallow.dtypes import HALVES, cast, dtype, float32, widen
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow.kernels.table import Limit
from tallow.kernels.threads import IN_BROWSER
from tallow.ops.checks import unsupported
from tallow.ops.half_gradients import reads_rounded
from tallow.ops.rows import as_rows
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op

EXACT = 1 << 15  # multiplications of integers, from which BLAS is worth a look at their values
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
# The product of two small matrices. `np.dot` takes two thirds of the time of `@` with BLAS, and more without it, as in
# the tab. Unwrapped, it does not search for other array types.
array_dot: Callable[[Array, Array], Array] = operator.matmul if IN_BROWSER else unwrap(np.dot)
Products = Callable[[Array], tuple[Any, Any]]  # returns the gradients of two factors, from that of their product


@kernel("matmul", "array", round_like=0)
def array_matmul(a: Array, b: Array) -> Array:
    """Multiply as numpy.matmul does; a batch of rows times one matrix is a single product."""
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous and a.shape[-1] == b.shape[0]:
        return array_matmul(as_rows(a), b).reshape(*a.shape[:-1], b.shape[-1])
    if type(a) is np.ndarray and a.size and a.ndim > 1 and b.ndim > 1:
        if a.shape[-1] == b.shape[-2] == 1:
            return a * b  # ten times as fast as by BLAS
        if a.dtype.kind in "iu" and _is_exact_in_float64(a, b):
            return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.result_type(a, b))
    return array_module(a).matmul(a, b)


PRODUCTS = Limit("matmul")


def _is_exact_in_float64(a: Array, b: Array) -> bool:
    """Return whether BLAS can multiply integers, for which NumPy has a slow loop: if all sums are below 2^53."""
    if a.size * b.shape[-1] < EXACT:
        return False
    largest = [max(int(x.max()), -int(x.min())) for x in (a, b)]
    return largest[0] * largest[1] * a.shape[-1] < 2**53


@kernel("rounded_dtype", "array")
def rounded_dtype(operand: Array) -> dtype:
    """Return the dtype in which products with this half-precision operand read a gradient; some kernels read halves."""
    return float32


@kernel("factor_of_products", "array")
def factor_of_products(g: Array, to: dtype) -> Array:
    """Return a gradient in a `rounded_dtype`, as a factor of `gradient_product`."""
    return cast(g, to)


@kernel("gradient_product", "array")
def gradient_product(a: Array, b: Array) -> Array:
    """Return a @ b in float32, where one is a gradient in the `rounded_dtype` of the other, a half.

    Shapes: as numpy.matmul
    """
    return kernels.run("matmul", widen(a), widen(b))


def product(a: Array, b: Array, name: str) -> Array:
    """Return a @ b by the best kernel.

    Raises: UnsupportedDtypeError for booleans, ShapeError with both shapes.
    """
    if a.dtype.kind == "b":
        raise unsupported(name, a.dtype, "numbers", hint="convert the operands first: x.float()")
    try:
        return array_dot(a, b) if is_small_product(a, b) else kernels.run("matmul", a, b)
    except ValueError:
        raise _unfit(a, b, name) from None


def is_small_product(a: Array, b: Array) -> bool:
    """Return whether the array implementation multiplies, and the operands are matrices that `array_dot` takes."""
    is_plain = a.ndim == 2 and b.ndim == 2 and type(a) is np.ndarray and a.dtype is b.dtype and a.dtype in FLOATS
    return is_plain and a.size * b.shape[1] < PRODUCTS.size


def _unfit(a: Array, b: Array, name: str) -> ShapeError:
    if a.ndim == 0 or b.ndim == 0:
        return ShapeError(
            f"{name}: both operands need at least one dimension, got {a.shape} @ {b.shape}",
            hint="multiply by a number with *",
        )
    inner = b.shape[max(b.ndim - 2, 0)]
    if a.shape[-1] != inner:
        return ShapeError(
            f"{name}: shapes cannot be multiplied: {a.shape} @ {b.shape}; expected {a.shape[-1]} == {inner}",
            hint="transpose one operand with .mT, or check the layer's input width",
        )
    return ShapeError(f"{name}: batch dimensions do not broadcast: {a.shape} @ {b.shape}")


def _times_transposed(g: Array, b: Array) -> Array:
    """Return the gradient of `a` in a @ b, where both are matrices or batches of them."""
    transposed = b.T
    if is_small_product(g, transposed):
        return array_dot(g, transposed)
    return _of_gradient(g, b.swapaxes(-1, -2), b)


def _transposed_times(a: Array, g: Array, b_ndim: int) -> Array:
    """Return the gradient of `b` in a @ b. For one matrix shared by a whole batch it is a single product."""
    if is_small_product(a, g):
        return array_dot(a.T, g)
    if b_ndim == 2 and a.ndim > 2:
        a, g = as_rows(a), as_rows(g)
    return _of_gradient(a.swapaxes(-1, -2), g, a)


def _of_gradient(a: Array, b: Array, operand: Array) -> Array:
    return kernels.run("gradient_product" if operand.dtype in HALVES else "matmul", a, b)


def _matmul_value(a: Array, b: Array) -> Array:
    if a.ndim == b.ndim == 2 and a.size * b.shape[1] < PRODUCTS.size:  # floats, so that this is `is_small_product`
        return array_dot(a, b)
    return product(a, b, "matmul")


@op("tl Tensor linalg", halves=True, value=_matmul_value, batched="itself")
def matmul(input: Array, other: Array) -> Result:
    """Return the matrix product over the last two dims; a vector is a row on the left, a column on the right.

    da = g bᵀ,  db = aᵀ g

    Shapes:  (..., M, K) @ (..., K, N) -> (..., M, N), batch dimensions broadcast; (K) @ (K) -> ()
    Dtypes:  any but bool, both the same
    Raises:  ShapeError
    """
    return matmul_result(input, other, "matmul")


@matmul.second(a="input", b="other", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return gradients_of_product(g, a, b)


def matmul_result(a: Array, b: Array, name: str) -> tuple[Array, Products]:
    """Return a @ b and its backward, for the op `name`."""
    value = product(a, b, name)
    # Neither gradient needs its own operand, which may be overwritten, as an optimizer does with a weight.
    a_ndim, b_ndim = a.ndim, b.ndim
    if a_ndim > 1 and b_ndim > 1:
        rounded = kernels.run("rounded_dtype", a) if a.dtype in HALVES else None

        def backward_of_matrices(g: Array) -> tuple[Any, Any]:
            """Return the gradients of two matrices, or of batches with one shared matrix."""
            g = g if rounded is None else kernels.run("factor_of_products", g, rounded)  # once for both products
            return lambda: _times_transposed(g, b), lambda: _transposed_times(a, g, b_ndim)

        if rounded is not None:
            reads_rounded(backward_of_matrices, rounded)
        return value, backward_of_matrices

    def backward(g: Array) -> tuple[Any, Any]:
        g = g[..., None] if b_ndim == 1 else g
        g = g[..., None, :] if a_ndim == 1 else g

        def of_a() -> Array:
            da = _times_transposed(g, b[:, None] if b_ndim == 1 else b)
            return da[..., 0, :] if a_ndim == 1 else da

        def of_b() -> Array:
            db = _transposed_times(a[None, :] if a_ndim == 1 else a, g, max(b_ndim, 2))
            return db[..., 0] if b_ndim == 1 else db

        return of_a, of_b

    return value, backward


def gradients_of_product(g: Derived, a: Derived, b: Derived) -> Gradients:
    """Return the gradients of a @ b as tensors, before they are summed over broadcast dims."""
    row, column = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    g = g.unsqueeze(-1) if b.ndim == 1 else g
    g = g.unsqueeze(-2) if a.ndim == 1 else g
    of_a, of_b = g @ column.transpose(-1, -2), row.transpose(-1, -2) @ g
    return [of_a.squeeze(-2) if a.ndim == 1 else of_a, of_b.squeeze(-1) if b.ndim == 1 else of_b]


def vector_operands(name: str, **operands: Array) -> None:
    """Raise ShapeError unless every operand is a vector."""
    _expect_dims(name, 1, "a vector", operands)


def matrix_operands(name: str, **operands: Array) -> None:
    """Raise ShapeError unless every operand is a matrix."""
    _expect_dims(name, 2, "a matrix", operands)


def batched_operands(name: str, **operands: Array) -> None:
    """Raise ShapeError unless the two operands are batches of matrices, of one size, that can be multiplied."""
    _expect_dims(name, 3, "a batch of matrices", operands)
    first, second = operands.values()
    if (expected := [first.shape[0], first.shape[2]]) != [*second.shape[:2]]:
        got = list(second.shape[:2])
        raise ShapeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {got}",
            hint="use matmul, which broadcasts",
        )


def _expect_dims(name: str, ndim: int, what: str, operands: dict[str, Array]) -> None:
    for operand, array in operands.items():
        if array.ndim != ndim:
            message = f"{name}: {operand} must be {what}, got shape {array.shape}"
            raise ShapeError(message, hint="use matmul, which broadcasts")


@op(halves=True, batched="itself")
def mm(input: Array, mat2: Array) -> Result:
    """Return the product of two matrices.

    Shapes:  (M, K), (K, N) -> (M, N)
    Raises:  ShapeError
    """
    matrix_operands("mm", input=input, mat2=mat2)
    return matmul_result(input, mat2, "mm")


@mm.second(a="input", b="mat2", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return gradients_of_product(g, a, b)


@op(halves=True, batched="itself")
def bmm(input: Array, mat2: Array) -> Result:
    """Return the products of two batches of matrices, without broadcasting.

    Shapes:  (B, M, K), (B, K, N) -> (B, M, N)
    Raises:  ShapeError
    """
    batched_operands("bmm", input=input, mat2=mat2)
    return matmul_result(input, mat2, "bmm")


@bmm.second(a="input", b="mat2", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return gradients_of_product(g, a, b)


@op(halves=True, batched="itself")
def mv(input: Array, vec: Array) -> Result:
    """Return the product of a matrix and a vector.

    Shapes:  (M, K), (K) -> (M)
    Raises:  ShapeError
    """
    matrix_operands("mv", input=input)
    vector_operands("mv", vec=vec)
    return matmul_result(input, vec, "mv")


@mv.second(a="input", b="vec", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return gradients_of_product(g, a, b)


@op(halves=True, batched="itself")
def dot(input: Array, tensor: Array) -> Result:
    """Return the inner product of two vectors.

    Shapes:  (K), (K) -> ()
    Raises:  ShapeError
    """
    vector_operands("dot", input=input, tensor=tensor)
    return matmul_result(input, tensor, "dot")


@dot.second(a="input", b="tensor", unneeded="a_ndim b_ndim rounded")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return gradients_of_product(g, a, b)


@op(dtypes="promote", aliases=("ger",), batched="itself")
def outer(input: Array, vec2: Array) -> Result:
    """Return y_ij = input_i · vec2_j.

    Shapes:  (M), (N) -> (M, N)
    Raises:  ShapeError
    """
    vector_operands("outer", input=input, vec2=vec2)
    return outer_result(input, vec2)


@outer.second(a="input", b="vec2")
def _(g: Derived, *, a: Derived, b: Derived) -> Gradients:
    return [g @ b, a @ g]


def outer_result(a: Array, b: Array) -> tuple[Array, Products]:
    """Return the outer product of two vectors, and its backward."""
    rows, columns = a[:, None], b[None]
    is_small = type(a) is np.ndarray and a.size * b.size < PRODUCTS.size
    value = rows * columns if is_small or a.dtype.kind != "f" else kernels.run("matmul", rows, columns)
    return value, lambda g: (lambda: product(g, b, "outer"), lambda: product(a, g, "outer"))
