"""Bilinear form of two vectors."""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import run
from tallow.ops.checks import refuse_bool
from tallow.ops.rows import as_rows
from tallow.ops.second_order import Derived, Unread
from tallow.ops.table import Array, Result, op


@op("tl F", batched="itself")
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Result:
    """Return y_o = Σ_ij input1_i weight_oij input2_j + bias_o.

    Shapes:  input1 (..., I), input2 (..., J), weight (O, I, J), bias (O) -> (..., O)
    """
    shapes = f"input1 {tuple(input1.shape)}, input2 {tuple(input2.shape)}, weight {tuple(weight.shape)}"
    if input1.shape[:-1] != input2.shape[:-1] or not input1.ndim:
        raise ShapeError(f"bilinear: batch dimensions do not match: {shapes}")
    if weight.ndim != 3 or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise ShapeError(f"bilinear: expected input1 (..., I), input2 (..., J) and weight (O, I, J), got {shapes}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(f"bilinear: bias must have shape {weight.shape[:1]}, got {tuple(bias.shape)}")
    refuse_bool("bilinear", input1)
    o, i, j = weight.shape
    left, right = as_rows(input1), as_rows(input2)
    has_bias = bias is not None

    def half_way() -> Array:
        """Return Σ_i input1_i weight_oij, (N, O, J)."""
        return run("matmul", left, weight.transpose(1, 0, 2).reshape(i, o * j)).reshape(len(left), o, j)

    y = run("matmul", half_way(), right[:, :, None])[:, :, 0]
    if bias is not None:
        y = y + bias

    def backward(g: Array) -> tuple[object, ...]:
        g = as_rows(g)

        def d_left() -> Array:
            other = run("matmul", right, weight.reshape(o * i, j).T).reshape(len(right), o, i)
            return run("matmul", g[:, None, :], other).reshape(input1.shape)

        def d_weight() -> Array:
            outer = (g[:, :, None] * left[:, None, :]).reshape(len(g), o * i)
            return run("matmul", outer.T, right).reshape(o, i, j)

        return (
            d_left,
            lambda: run("matmul", g[:, None, :], half_way()).reshape(input2.shape),
            d_weight,
            (lambda: g.sum(axis=0)) if has_bias else None,
        )

    return y.reshape(*input1.shape[:-1], o), backward


@bilinear.definition(unneeded="left right has_bias")
def _(*, input1: Derived, input2: Derived, weight: Derived, bias: Unread, o: int, i: int, j: int) -> Derived:
    half_way = input1.reshape(-1, i) @ weight.permute(1, 0, 2).reshape(i, o * j)
    y = (half_way.reshape(-1, o, j) @ input2.reshape(-1, j, 1)).reshape(-1, o)
    return y if bias is None else y + bias
