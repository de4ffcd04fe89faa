"""Products of few rows with matrices, which are read once; see src/linear_rows.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tallow.devices import array_module, get_backend
from tallow.dtypes import Array
from tallow.kernels.quantized import INT8, QuantizedMatrix
from tallow_cuda.launching import NULL, WARP, contiguous, launch, optional_contiguous
from tallow_cuda.sources import element, load

Matrix: TypeAlias = Array | QuantizedMatrix

MOST_ROWS = 8
WARPS = 4  # per block, as in the source
TILE = 2  # rows of the matrix that a warp processes at once
ENOUGH_WARPS = 4096  # for any card: 132 multiprocessors with about thirty each
STAGED_BYTES = 96 << 10  # maximum shared memory for the rows of x next to quantized weights, if the card has as much
OWN_BYTES = 512  # shared memory that the kernel uses besides them
SHARED_BYTES = 160 << 10  # maximum shared memory of all blocks of a multiprocessor, if it has as much
MOST_BLOCKS = 5  # per multiprocessor, limited by registers
PER_LOAD = {"float": 4, "f16": 8, "bf16": 8, "int8": 16, "int4x2": 32}  # weights in 16 bytes


def few_rows(x: Array) -> bool:
    """Return whether x has one to eight rows."""
    return x.ndim > 0 and 0 < x.size <= MOST_ROWS * x.shape[-1]


def can_be_read(*matrices: Matrix, rows: int = 1) -> bool:
    """Return whether the kernel takes these matrices side by side, for `rows` rows of x.

    They have one dtype and are contiguous; or they have one quantization, every 16 bytes of codes are of one group, and
    the rows of x fit in shared memory.
    """
    if any(_format(matrix) != _format(matrices[0]) for matrix in matrices):
        return False
    quantized = [matrix for matrix in matrices if isinstance(matrix, QuantizedMatrix)]
    if not quantized:
        return all(matrix.flags.c_contiguous for matrix in matrices)  # type: ignore[union-attr]
    first = quantized[0]
    if any(matrix.group != first.group or matrix.scales.dtype != first.scales.dtype for matrix in quantized):
        return False
    backend: Any = get_backend("cuda")
    if _staged_bytes(rows, first.shape[1], _format(first)) > min(STAGED_BYTES, backend.shared_bytes()[0] - OWN_BYTES):
        return False
    whole_row = first.group == first.shape[1]
    return first.group % PER_LOAD[_format(first)] == 0 and (whole_row or first.group & (first.group - 1) == 0)


def linear_rows(
    x: Array,
    *matrices: Matrix,
    bias: Array | None = None,
    residual: Array | None = None,
    norm: tuple[Array, float] | None = None,
    gated: bool = False,
) -> Array:
    """Return the products of up to eight rows with up to three matrices, side by side, in the dtype of x.

    Args:
        matrices: of one format, as `can_be_read` requires.
        norm: the weight, in float32, and the eps of an rms_norm that is applied to x first.
        gated: of two matrices, silu(first product) ⊙ second.

    Shapes:  x (..., K), matrices (N_i, K), bias (ΣN_i), residual as the result -> (..., ΣN_i), or (..., N_0) if gated
    """
    xp, x = array_module(x), _aligned(x)
    formats = [_format(matrix) for matrix in matrices]
    width = x.shape[-1]
    rows = x.size // width
    columns = matrices[0].shape[0] if gated else sum(matrix.shape[0] for matrix in matrices)
    y = xp.empty((*x.shape[:-1], columns), x.dtype)
    if not y.size:
        return y
    operands = [_codes_and_scales(matrix) for matrix in matrices]
    scales = operands[0][1]
    kernel = load(
        "linear_rows.cu",
        "linear_rows",
        X=element(x),
        Y=element(y),
        W=formats[0],
        S=element(scales),
        BIAS=element(bias),
        RESIDUAL=element(residual),
        ROWS=_padded(rows),
        TILE=TILE,
        NORM=int(norm is not None),
        GATED=int(gated),
    )
    tiles = -(-columns * (2 if gated else 1) // TILE)
    split = _split(tiles, width // (WARP * PER_LOAD[formats[0]]))
    blocks, shared = -(-tiles * split // WARPS), 0
    if scales is not None:
        shared = _staged_bytes(rows, width, formats[0])
        backend: Any = get_backend("cuda")
        resident = min(SHARED_BYTES, backend.shared_bytes()[1]) // shared
        blocks = min(blocks, backend.multiprocessors() * max(1, min(MOST_BLOCKS, resident)))
    weight, eps = (None, 0.0) if norm is None else norm
    launch(
        kernel,
        (blocks,),
        (WARP * WARPS,),
        x,
        *_three([codes for codes, _ in operands], NULL),
        *_three([scales for _, scales in operands], NULL),
        *_three([matrix.shape[0] for matrix in matrices], 0),
        optional_contiguous(bias),
        optional_contiguous(residual),
        optional_contiguous(weight),
        float(eps),
        y,
        rows,
        width,
        1 if scales is None else scales.shape[1],
        _log2_of_group(matrices[0]),
        split,
        shared=shared,
    )
    return y


def _padded(rows: int) -> int:
    """Return the number of rows that the kernel is compiled for."""
    return 1 << (rows - 1).bit_length()


def _staged_bytes(rows: int, width: int, format: str) -> int:
    """Return the bytes of shared memory for x."""
    per_warp = WARP * PER_LOAD[format]
    return 4 * _padded(rows) * -(-width // per_warp) * per_warp


def _format(matrix: Matrix) -> str:
    """Return the C++ name of the matrix's element type."""
    if isinstance(matrix, QuantizedMatrix):
        return "int8" if matrix.codes.dtype == INT8 else "int4x2"
    return element(matrix)


def _codes_and_scales(matrix: Matrix) -> tuple[Array, Array | None]:
    if isinstance(matrix, QuantizedMatrix):
        return _aligned(matrix.codes), contiguous(matrix.scales)
    return contiguous(matrix), None


def _log2_of_group(matrix: Matrix) -> int:
    if not isinstance(matrix, QuantizedMatrix) or matrix.scales.shape[1] == 1:
        return 62  # every element is in group 0
    return matrix.group.bit_length() - 1


def _aligned(array: Array) -> Array:
    """Return the array contiguous at a multiple of 16 bytes, as newly allocated memory always is."""
    array = contiguous(array)
    return array if array.data.ptr % 16 == 0 else array.copy()


def _split(tiles: int, loads: int) -> int:
    """Return how many warps share a tile: several only if tiles are few and each lane has at least two loads."""
    split = 1
    while split < WARPS and 2 * split * tiles <= ENOUGH_WARPS and loads >= 4 * split:
        split *= 2
    return split


def _three(values: Sequence[Any], filler: Any) -> tuple[Any, ...]:
    return (*values, *[filler] * (3 - len(values)))
