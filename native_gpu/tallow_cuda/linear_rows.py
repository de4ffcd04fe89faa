"""Products of few rows with matrices, which are read once; see src/linear_rows.cu and src/quantized_rows.cu."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import is_
from typing import Any

from tallow.devices import array_module, get_backend
from tallow.dtypes import Array
from tallow.kernels.quantized.grouped_matrix import INT8, TWO_INT4
from tallow.kernels.quantized.quantized_matrix import Matrix, QuantizedMatrix, as_matrix
from tallow_cuda.launching import FLOAT32, NULL, WARP, contiguous, launch, optional_contiguous
from tallow_cuda.rows import BYTES
from tallow_cuda.sources import element, load

MOST_ROWS = 8
WARPS = 4  # per block, as in linear_rows.cu
TILE = 2  # rows of the matrix that a warp processes at once
ENOUGH_WARPS = 2**14  # four for each of about thirty on 132 multiprocessors; on an H200 faster than one
LANES = 4  # that share 64 bytes of a row with quantized weights
CODES = {INT8: "int8", TWO_INT4: "int4x2"}  # the C++ names of the elements
IN_16_BYTES = {"int8": 16, "int4x2": 32}  # weights
QUANTIZED_WARPS = 8  # per block, as in quantized_rows.cu
RESIDENT = 2  # blocks per multiprocessor there, limited by registers
STAGED_BYTES = 96 << 10  # maximum shared memory for the rows of x next to quantized weights, if the card has as much
OWN_BYTES = 18 << 10  # shared memory that the kernel uses besides them
SHARED_BYTES = 200 << 10  # maximum shared memory of all blocks of a multiprocessor, if it has as much


def few_rows(x: Array) -> bool:
    """Return whether x has one to eight rows."""
    return x.ndim > 0 and 0 < x.size <= MOST_ROWS * x.shape[-1]


def can_be_read(*matrices: Matrix, rows: int = 1, parts: int = 2) -> bool:
    """Return whether the kernel takes these matrices side by side, for `rows` rows of x, each as so many `parts`.

    They have one dtype and are contiguous; or they have one quantization, every 16 bytes of codes are of one group, and
    the rows of x fit in shared memory.
    """
    first, *others = map(as_matrix, matrices)
    if any(_kind(matrix) != _kind(first) for matrix in others):
        return False
    if first.dtype is not None:
        return all(matrix.memory.flags.c_contiguous for matrix in (first, *others))
    if first.group is None or first.arrays[1].dtype != first.arrays[-1].dtype:
        return False
    backend: Any = get_backend("cuda")
    shared = _staged_bytes(rows, parts, first)
    if shared > min(STAGED_BYTES, backend.shared_bytes()[0] - OWN_BYTES):
        return False
    return first.group % IN_16_BYTES[_format(first)] == 0 and first.group & (first.group - 1) == 0


def parts_of(x: Array) -> int:
    """Return how many numbers in half precision each element of x is the sum of, next to quantized weights."""
    return 2 if x.dtype == FLOAT32 else 1


def linear_rows(
    x: Array,
    *weights: Matrix,
    bias: Array | None = None,
    residual: Array | None = None,
    norm: tuple[Array, float] | None = None,
    gated: bool = False,
) -> Array:
    """Return the products of up to eight rows with up to three matrices, side by side, in the dtype of x.

    Args:
        weights: of one format, as `can_be_read` requires.
        norm: the weight, in float32, and the eps of an rms_norm that is applied to x first.
        gated: of two matrices, silu(first product) ⊙ second.

    Shapes:  x (..., K), weights (N_i, K), bias (ΣN_i), residual as the result -> (..., ΣN_i), or (..., N_0) if gated
    """
    xp, x = array_module(x), _aligned(x)
    matrices = [as_matrix(matrix) for matrix in weights]
    first = matrices[0]
    width = x.shape[-1]
    rows = x.size // width
    columns = matrices[0].shape[0] if gated else sum(matrix.shape[0] for matrix in matrices)
    y = xp.empty((*x.shape[:-1], columns), x.dtype)
    if not y.size:
        return y
    operands = [_as_read(matrix) for matrix in matrices]
    # The kernel reads them before it waits for the kernels before it, so it cannot wait for one that copies them.
    waits = all(map(is_, chain.from_iterable(operands), chain.from_iterable(map(_arrays, matrices))))
    weight, eps = (None, 0.0) if norm is None else norm
    defines: dict[str, Any] = {
        "X": element(x),
        "Y": element(y),
        "W": _format(first),
        "BIAS": element(bias),
        "RESIDUAL": element(residual),
        "ROWS": _padded(rows),
        "NORM": int(norm is not None),
        "GATED": int(gated),
    }
    codes, *of_groups = (_three(list(arrays), NULL) for arrays in zip(*operands, strict=True))
    counts = _three([matrix.shape[0] for matrix in matrices], 0)
    weight = None if weight is None else _aligned(weight)
    added = (optional_contiguous(bias), optional_contiguous(residual), weight, float(eps))
    if first.group is None:
        kernel = load("linear_rows.cu", "linear_rows", **defines, TILE=TILE)
        tiles = -(-columns * (2 if gated else 1) // TILE)
        split = _split(tiles, width * codes[0].itemsize // (WARP * BYTES))
        blocks = -(-tiles * split // WARPS)
        launch(kernel, (blocks,), (WARP * WARPS,), x, *codes, *counts, *added, y, rows, width, split, waits=waits)
        return y
    _, scales, shifts = _arrays(first)
    defines |= {"S": element(scales), "SPREAD": int(_is_spread(first)), "SHIFTED": int(shifts is not None)}
    kernel = load("quantized_rows.cu", "quantized_rows", **defines)
    shared = _staged_bytes(rows, 2 if norm else parts_of(x), first)
    backend: Any = get_backend("cuda")
    resident = max(1, min(RESIDENT, min(SHARED_BYTES, backend.shared_bytes()[1]) // (shared + OWN_BYTES)))
    blocks = min(-(-columns // (8 if gated else 16)), backend.multiprocessors() * resident)
    launch(
        kernel, (blocks,), (WARP * QUANTIZED_WARPS,),
        x, *codes, *chain.from_iterable(of_groups), *counts, *added, y, rows, width,
        width // first.group, first.group.bit_length() - 1, shared=shared, waits=waits,
    )  # fmt: skip
    return y


def _padded(rows: int) -> int:
    """Return the number of rows that the kernel is compiled for."""
    return 1 << (rows - 1).bit_length()


def _staged_bytes(rows: int, parts: int, matrix: QuantizedMatrix) -> int:
    """Return the bytes of shared memory for x."""
    step = LANES * IN_16_BYTES[_format(matrix)]
    steps = -(-matrix.shape[1] // (2 * step)) * 2
    return steps * _padded(rows) * (2 * parts * step + 4 + (16 if _is_spread(matrix) else 4))


def _is_spread(matrix: QuantizedMatrix) -> bool:
    """Return whether groups are smaller than the 64 bytes of codes that four lanes read."""
    return matrix.group is not None and matrix.group < LANES * IN_16_BYTES[_format(matrix)]


def _format(matrix: QuantizedMatrix) -> str:
    """Return the C++ name of the matrix's element type."""
    return element(matrix.memory) if matrix.group is None else CODES[matrix.memory.dtype]


def _kind(matrix: QuantizedMatrix) -> tuple[str, Any]:
    """Return what matrices that are read side by side have in common."""
    return matrix.format, matrix.arrays[-1].dtype


def _arrays(matrix: QuantizedMatrix) -> tuple[Array, Array | None, Array | None]:
    """Return the codes, or the elements; the scales and the shifts, or None."""
    return _three(matrix.arrays, None)


def _as_read(matrix: QuantizedMatrix) -> tuple[Array, Array | None, Array | None]:
    """Return the arrays as the kernels read them, which are copies where the matrix's own are not."""
    codes, scales, shifts = _arrays(matrix)
    return (
        contiguous(codes) if scales is None else _aligned(codes),
        optional_contiguous(scales),
        optional_contiguous(shifts),
    )


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


def _three(values: Sequence[Any], filler: Any) -> tuple[Any, Any, Any]:
    first, second, third = (*values, *[filler] * (3 - len(values)))
    return first, second, third
