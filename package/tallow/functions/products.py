"""Tensor products that are computed by matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import eye
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.functions.complex_numbers import conj
from tallow.functions.filling import copy_
from tallow.ops.convolution import conv1d
from tallow.ops.cross import linalg_cross
from tallow.ops.dims import as_int, is_int, normalize_dim
from tallow.ops.joining import cat, stack
from tallow.ops.linalg import linalg_inv
from tallow.ops.matmul import dot


@public("tl")
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Sum products over `dims`: the last n of `a` and the first n of `b`, or dims[0] of `a` and dims[1] of `b`.

    Shapes:  what is left of `a`, then what is left of `b`; a dim of length 1 goes with a longer one
    Raises:  ShapeError
    """
    pairs: Any = dims
    if is_int(dims):
        dims = as_int(dims, "tensordot")
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot: dims={dims} for shapes {tuple(a.shape)} and {tuple(b.shape)}")
        of_a, of_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        if (pairs[0] and not a.ndim) or (pairs[1] and not b.ndim):
            raise DimensionError(f"tensordot: dims={dims} for shapes {tuple(a.shape)} and {tuple(b.shape)}")
        of_a = [normalize_dim(d, a.ndim, "tensordot") for d in pairs[0]]
        of_b = [normalize_dim(d, b.ndim, "tensordot") for d in pairs[1]]
    if len(of_a) != len(of_b) or any(len({a.shape[i], b.shape[j]} - {1}) > 1 for i, j in zip(of_a, of_b, strict=True)):
        raise ShapeError(f"tensordot: dims {of_a} of {tuple(a.shape)} do not match dims {of_b} of {tuple(b.shape)}")
    for i, j in zip(of_a, of_b, strict=True):  # Σ a₁ b_j is a₁ Σ b_j
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                b = b.sum(j, keepdim=True, dtype=b.dtype)
            else:
                a = a.sum(i, keepdim=True, dtype=a.dtype)
    left_a = [i for i in range(a.ndim) if i not in of_a]
    left_b = [i for i in range(b.ndim) if i not in of_b]
    rows, columns = [a.shape[i] for i in left_a], [b.shape[i] for i in left_b]
    inner = math.prod(a.shape[i] for i in of_a)
    a_matrix = a.permute([*left_a, *of_a]).reshape(math.prod(rows), inner)
    b_matrix = b.permute([*of_b, *left_b]).reshape(inner, math.prod(columns))
    return (a_matrix @ b_matrix).reshape([*rows, *columns])


@public("tl Tensor")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum products over the last dim of both; the plain product if one of them is 0-d.

    Shapes:  (..., K), (*, K) -> (..., *)
    Raises:  ShapeError
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(f"inner: the last dims must match, got shapes {tuple(input.shape)} and {tuple(other.shape)}")
    return tensordot(input, other, [[-1], [-1]])


@public("tl Tensor")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Compute the Kronecker product: each element of `input` times all of `other`.

    Shapes:  (a₁, ..., a_n), (b₁, ..., b_n) -> (a₁ b₁, ..., a_n b_n); the shorter one gets ones in front
    """
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + tuple(input.shape)
    b = (1,) * (n - other.ndim) + tuple(other.shape)
    blocks = input.reshape([m for size in a for m in (size, 1)]) * other.reshape([m for size in b for m in (1, size)])
    return blocks.reshape([i * j for i, j in zip(a, b, strict=True)])


@public("tl Tensor")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Compute the cross product along `dim`, or along the first dim of length 3.

    Raises:  ShapeError where there is none
    """
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise ShapeError(f"cross: no dimension of length 3 in shape {tuple(input.shape)}")
    return apply(linalg_cross, input, other, dim=dim)


@public("linalg", checked=True)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Compute Σ conj(x) y along `dim`, broadcast."""
    return (conj(x) * y).sum(dim)


@public("tl Tensor")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Compute the inner product Σ conj(input) · other of two vectors.

    Shapes:  (K), (K) -> ()
    Raises:  ShapeError
    """
    return apply(dot, conj(input), other)


@public("tl Tensor linalg", checked=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Compute the n-th power of square matrices by repeated squaring; of their inverses for a negative n.

    For n = 0 it is the identity matrix, with a gradient of zeros.

    Raises:  ShapeError, LinAlgError for a singular matrix and n < 0
    """
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ShapeError(f"linalg.matrix_power: expected square matrices, got shape {tuple(input.shape)}")
    if n < 0:
        return matrix_power(apply(linalg_inv, input), -n)
    if n == 0:
        return copy_(input.clone(), eye(input.shape[-1], dtype=input.dtype, device=input.device))
    if n == 1:
        return input.clone()
    half = matrix_power(input, n // 2)
    return half @ half @ input if n % 2 else half @ half


@public("linalg")
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Multiply two or more matrices in the order with the fewest multiplications.

    Shapes:  matrices; the first and the last may be vectors
    Raises:  ShapeError, ArgumentError for fewer than two
    Source:  Cormen et al., Introduction to Algorithms, 15.2
    """
    if len(tensors) < 2:
        raise ArgumentError(f"linalg.multi_dot: expected at least 2 tensors, got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    matrices = [first[None] if first.ndim == 1 else first, *tensors[1:-1], last[:, None] if last.ndim == 1 else last]
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise ShapeError(f"linalg.multi_dot: tensor {i} has shape {tuple(tensors[i].shape)}; expected a matrix")
    sizes = [*(m.shape[0] for m in matrices), matrices[-1].shape[1]]
    value = _chain(matrices, _cheapest_splits(sizes), 0, len(matrices) - 1)
    if first.ndim == 1:
        value = value[0]
    return value[..., 0] if last.ndim == 1 else value


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split the product of matrices i..j; matrix k has sizes[k] by sizes[k + 1]."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            split[i, j] = min(costs, key=lambda k: costs[k])
            cost[i, j] = costs[split[i, j]]
    return split


def _chain(matrices: Sequence[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = split[i, j]
    return _chain(matrices, split, i, k) @ _chain(matrices, split, k + 1, j)


@public("tl")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply matrices; see `linalg.multi_dot`. A single matrix is returned unchanged."""
    return matrices[0] if len(matrices) == 1 else linalg_multi_dot(matrices)


def _check_groups(ends: list[int], mat_a: Tensor, mat_b: Tensor) -> None:
    for matrix in (mat_a, mat_b):
        if matrix.ndim == 3 and len(matrix) != len(ends):
            raise ShapeError(f"grouped_mm: matrix batch sizes have to match: {len(matrix)} and {len(ends)} offsets")
    length = mat_b.shape[-1] if mat_a.ndim == 3 else mat_a.shape[-1 if mat_b.ndim == 2 else 0]
    if not 0 <= (ends or [0])[0] <= (ends or [0])[-1] <= length or ends != sorted(ends):
        raise ShapeError(f"grouped_mm: offsets {ends} must rise, and end at {length} or before")


@public("F")
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Multiply groups of matrices, whose sizes along one dim may differ.

    A matrix with 2 dims holds all groups, one after the other; `offs` has the end of each, and what follows the last
    is zero in the result. With 3 dims, the first counts the groups.

    Args:
        bias: added to the product; out_dtype: of the result, that of mat_a by default.

    Shapes:  (G, M, K), (G, K, N) -> (G, M, N); (rows, K), (G, K, N) -> (rows, N); (G, M, K), (K, columns) ->
             (M, columns); (M, inner), (inner, N) -> (G, M, N)
    Raises:  ShapeError unless `offs` is given for matrices with 2 dims, and only for them, and fits the matrices
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise ShapeError(f"grouped_mm: expected 2 or 3 dims, got {tuple(mat_a.shape)} and {tuple(mat_b.shape)}")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise ShapeError("grouped_mm: Have to provide offsets if there is a 2d matrix, and only then")
    if offs is None:
        value = mat_a @ mat_b
    else:
        ends = offs.tolist()
        _check_groups(ends, mat_a, mat_b)
        parts = list(zip([0, *ends[:-1]], ends, strict=True))
        if mat_a.ndim == mat_b.ndim == 2:
            value = stack.call([mat_a[:, i:j] @ mat_b[i:j] for i, j in parts])
        elif mat_a.ndim == 2:
            rest = mat_a.new_zeros(len(mat_a) - ends[-1], mat_b.shape[-1])
            value = cat.call([*[mat_a[i:j] @ mat_b[group] for group, (i, j) in enumerate(parts)], rest])
        else:
            rest = mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1])
            value = cat.call([*[mat_a[group] @ mat_b[:, i:j] for group, (i, j) in enumerate(parts)], rest], 1)
    value = value if bias is None else value + bias
    return value if out_dtype is None else value.to(out_dtype)


@public("tl F")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve sequences that lie time first.

    Shapes:  input (T, N, C), weight (K, C, O), bias (O) -> (T + 2 pad - K + 1, N, O)
    """
    return apply(conv1d, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
