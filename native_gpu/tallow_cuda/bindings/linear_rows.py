"""Products of few rows with matrices that are read once: see src/linear_rows.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tallow.devices import array_module, get_backend
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.quantized import INT8, QuantizedMatrix
from tallow_cuda.launching import NULL, WARP, contiguous, cuda, is_float, launch, optional_contiguous
from tallow_cuda.sources import element, load

Matrix: TypeAlias = Array | QuantizedMatrix

MOST_ROWS = 8
WARPS = 4  # of a block, as in the source
TILE = 2  # rows of the matrix that a warp takes at once
ENOUGH_WARPS = 4096  # for any card: 132 multiprocessors with some thirty each
STAGED_BYTES = 96 << 10  # of shared memory, for the rows beside quantized weights, if the card has so much
OWN_BYTES = 512  # of shared memory, that the kernel has beside them
SHARED_BYTES = 160 << 10  # that the blocks of a multiprocessor take at most, if it has so much
MOST_BLOCKS = 5  # that a multiprocessor has registers for
PER_LOAD = {"float": 4, "f16": 8, "bf16": 8, "int8": 16, "int4x2": 32}  # weights in 16 bytes


def few_rows(x: Array) -> bool:
    """Whether x has from one to eight rows."""
    return x.ndim > 0 and 0 < x.size <= MOST_ROWS * x.shape[-1]


def few_rows_of_quantized(x: Array, codes: Array, scales: Array, bias: Array | None) -> bool:
    """Up to eight rows of floats, as float32 96 KiB, and no more than a block can have of shared memory; groups of 32,
    64, 128 … weights, or int8 rows of 16, 32, 48 …"""
    if not few_rows(x) or not is_float(x, scales, bias):
        return False
    return can_be_read(QuantizedMatrix(codes, scales), rows=x.size // x.shape[-1])


def can_be_read(*matrices: Matrix, rows: int = 1) -> bool:
    """Whether the kernel takes these side by side: of one dtype and contiguous; or of one quantization, 16 bytes of the
    codes being all of one group, and so few rows of x beside them that shared memory holds them."""
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


@cuda("weight_only_linear", few_rows_of_quantized)
def weight_only_linear(x: Array, codes: Array, scales: Array, bias: Array | None) -> Array:
    """As tallow.kernels.quantized.weight_only_linear."""
    matrix = QuantizedMatrix(codes, scales)
    if x.shape[-1] != matrix.shape[1] or (bias is not None and bias.shape != matrix.shape[:1]):
        raise ShapeError(f"weight_only_linear: shapes do not fit each other: x {x.shape}, weight {matrix.shape}")
    return linear_rows(x, matrix, bias=bias)


def linear_rows(
    x: Array,
    *matrices: Matrix,
    bias: Array | None = None,
    residual: Array | None = None,
    norm: tuple[Array, float] | None = None,
    gated: bool = False,
) -> Array:
    """The products of up to eight rows with up to three matrices, side by side, in the dtype of x.

    Args:
        matrices: alike, as `can_be_read` says.
        norm: the weight, in float32, and the eps of an rms_norm that x goes through first.
        gated: of two matrices, silu(first product) ⊙ second.

    Shapes:  x (..., K), matrices (N_i, K), bias (ΣN_i), residual as the result -> (..., ΣN_i), or (..., N_0) if gated
    """
    xp, x = array_module(x), _at_multiples(x)
    formats = [_format(matrix) for matrix in matrices]
    width = x.shape[-1]
    rows = x.size // width
    columns = matrices[0].shape[0] if gated else sum(matrix.shape[0] for matrix in matrices)
    y = xp.empty((*x.shape[:-1], columns), x.dtype)
    if not y.size:
        return y
    held = [_codes_and_scales(matrix) for matrix in matrices]
    scales = held[0][1]
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
        together = min(SHARED_BYTES, backend.shared_bytes()[1]) // shared
        blocks = min(blocks, backend.multiprocessors() * max(1, min(MOST_BLOCKS, together)))
    weight, eps = (None, 0.0) if norm is None else norm
    launch(
        kernel,
        (blocks,),
        (WARP * WARPS,),
        x,
        *_three([codes for codes, _ in held], NULL),
        *_three([scales for _, scales in held], NULL),
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
    """How many rows the kernel is compiled for."""
    return 1 << (rows - 1).bit_length()


def _staged_bytes(rows: int, width: int, format: str) -> int:
    """Of shared memory, that x takes."""
    whole = WARP * PER_LOAD[format]
    return 4 * _padded(rows) * -(-width // whole) * whole


def _format(matrix: Matrix) -> str:
    """What C++ calls its element."""
    if isinstance(matrix, QuantizedMatrix):
        return "int8" if matrix.codes.dtype == INT8 else "int4x2"
    return element(matrix)


def _codes_and_scales(matrix: Matrix) -> tuple[Array, Array | None]:
    if isinstance(matrix, QuantizedMatrix):
        return _at_multiples(matrix.codes), contiguous(matrix.scales)
    return contiguous(matrix), None


def _log2_of_group(matrix: Matrix) -> int:
    if not isinstance(matrix, QuantizedMatrix) or matrix.scales.shape[1] == 1:
        return 62  # whatever the element, it is in group 0
    return matrix.group.bit_length() - 1


def _at_multiples(array: Array) -> Array:
    """The array contiguous from a multiple of 16 bytes on, as new memory always is."""
    array = contiguous(array)
    return array if array.data.ptr % 16 == 0 else array.copy()


def _split(tiles: int, loads: int) -> int:
    """How many warps share a tile: more than one only where tiles are few, and each has two loads for each lane."""
    split = 1
    while split < WARPS and 2 * split * tiles <= ENOUGH_WARPS and loads >= 4 * split:
        split *= 2
    return split


def _three(values: Sequence[Any], filler: Any) -> tuple[Any, ...]:
    return (*values, *[filler] * (3 - len(values)))
