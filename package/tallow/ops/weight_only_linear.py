"""Affine map by an int8 or int4 matrix."""

from __future__ import annotations

from tallow.errors import DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.quantized import QuantizedMatrix
from tallow.ops.rows import as_rows
from tallow.ops.table import Array, Index, Result, op


@op("", dtypes="keep")
def weight_only_linear(
    input: Array, codes: Index, scales: Index, bias: Array | None = None, shifts: Index | None = None
) -> Result:
    """Return y = input · (codes ⊙ scales + shifts)ᵀ + bias; see tallow.kernels.quantized.

    Shapes:  input (..., K), codes (N, K) int8 or (N, K / 2) uint8, scales and shifts (N, K / group),
             bias (N,) -> (..., N)
    Dtypes:  input and bias any float; the result has that of input
    Raises:  ShapeError, DtypeError
    """
    matrix = QuantizedMatrix(codes, scales, shifts)
    n, k = matrix.shape
    if not input.ndim or input.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        raise ShapeError(f"weight_only_linear: input {tuple(input.shape)} does not fit a weight {matrix.shape}")
    if input.dtype.kind in "bi":
        raise DtypeError("weight_only_linear: the input is not of floats", hint="convert with .float()")
    has_bias = bias is not None

    def backward(g: Array) -> tuple[object, ...]:
        return lambda: run("matmul", g, matrix.widen()), (lambda: as_rows(g).sum(axis=0)) if has_bias else None

    return run("weight_only_linear", input, codes, scales, bias, shifts), backward


@kernel("weight_only_linear", "array", round_like=0)
def weight_only_linear_array(
    x: Array, codes: Array, scales: Array, bias: Array | None, shifts: Array | None = None
) -> Array:
    """Return x · (codes ⊙ scales + shifts)ᵀ + bias, in the dtype of x.

    Shapes: x (..., K), codes, scales and shifts as QuantizedMatrix, bias (N,) -> (..., N)
    """
    return run("linear", x, QuantizedMatrix(codes, scales, shifts).widen(), bias)
