"""ONNX operators of linear algebra.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import tallow as tl
from tallow import Tensor
from tallow.onnx.operators.registry import operator

operator("MatMul", since=1)(tl.matmul)
operator("Det", since=11)(tl.linalg.det)


@operator("Gemm", since=7)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return alpha · a @ b + beta · c.

    Shapes:  a (M, K) or with `transA` (K, M), b (K, N) or (N, K), c broadcasts to (M, N)
    """
    left = a.transpose(0, 1) if transA else a
    right = b.transpose(0, 1) if transB else b
    if c is not None and alpha == beta == 1:
        return tl.addmm(c, left, right)
    product = tl.matmul(left, right)
    if alpha != 1:
        product = product * alpha
    return product if c is None or beta == 0 else product + (c if beta == 1 else c * beta)


@operator("Gemm", since=1, until=6)
def gemm_broadcast(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return alpha · a @ b + beta · c."""
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@operator("Einsum", since=12)
def einsum(*inputs: Tensor, equation: str) -> Tensor:
    """Sum products of elements as `equation` says."""
    return tl.einsum(equation, *inputs)
