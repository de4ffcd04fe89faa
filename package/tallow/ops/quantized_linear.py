"""Affine map by a matrix of quantised weights."""

from __future__ import annotations

from collections.abc import Iterator

from tallow.devices import array_module, device_of
from tallow.errors import DeviceError, DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix
from tallow.ops.rows import as_rows
from tallow.ops.table import Array, Result, op

PANEL = 2**22  # weights in float32 at a time, 16 MiB


@op("", dtypes="keep", batched="leading")
def quantized_linear(input: Array, matrix: QuantizedMatrix, bias: Array | None = None) -> Result:
    """Return y = input · matrixᵀ + bias.

    On the CPU compiled kernels round each 32 adjacent elements of the input to int8 with one scale, max|x| / 127.

    Shapes:  input (..., K), matrix (N, K), bias (N,) -> (..., N)
    Dtypes:  input and bias any float; the result has that of input
    Raises:  ShapeError, DtypeError, DeviceError
    """
    n, k = matrix.shape
    if not input.ndim or input.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        raise ShapeError(f"quantized_linear: input {tuple(input.shape)} does not fit a weight {matrix.shape}")
    if input.dtype.kind in "bi":
        raise DtypeError("quantized_linear: the input is not of floats", hint="convert with .float()")
    if type(input) is not type(matrix.memory):
        places = f"the input is on {device_of(input)}, the weight on {device_of(matrix.memory)}"
        raise DeviceError(f"quantized_linear: {places}", hint="move one of them")
    has_bias = bias is not None

    def backward(g: Array) -> tuple[object, ...]:
        return lambda: _times_matrix(g, matrix), (lambda: as_rows(g).sum(axis=0)) if has_bias else None

    return run("quantized_linear", input, matrix, bias), backward


@kernel("quantized_linear", "array", round_like=0)
def quantized_linear_array(x: Array, matrix: QuantizedMatrix, bias: Array | None) -> Array:
    """Return x · matrixᵀ + bias in the dtype of x; the matrix is widened in panels of rows.

    Shapes: x (..., K), matrix (N, K), bias (N,) -> (..., N)
    """
    y = array_module(x).empty((*x.shape[:-1], matrix.shape[0]), x.dtype)
    for panel in _panels(matrix):
        y[..., panel] = run("linear", x, matrix.rows(panel), None if bias is None else bias[panel])
    return y


def _times_matrix(g: Array, matrix: QuantizedMatrix) -> Array:
    total = array_module(g).zeros((*g.shape[:-1], matrix.shape[1]), g.dtype)
    for panel in _panels(matrix):
        total += run("matmul", g[..., panel], matrix.rows(panel))
    return total


def _panels(matrix: QuantizedMatrix) -> Iterator[slice]:
    n, k = matrix.shape
    step = max(PANEL // max(k, 1), 1)
    for start in range(0, n, step):
        yield slice(start, start + step)


@kernel("arrange_blocks", "array")
def arrange_blocks_array(blocks: Array, format: str) -> QuantizedMatrix:
    """Return the matrix as it is: products of array code read rows.

    Shapes: blocks as BlockMatrix
    """
    return BlockMatrix(blocks, format)
