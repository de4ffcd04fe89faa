"""Each library that this machine can load gives a row of a quantised product the same bits among any other rows."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.quantized_blocks import COMPILED, random_matrix

from tallow import kernels
from tallow.kernels import library
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.interleaved import half_place

Array = np.ndarray[Any, Any]

# From the least that a processor or an engine can have to the most: what loads one library loads those before it.
LIBRARIES = (
    ("native x86-64", "native x86-64-v3", "native x86-64-v4", "native x86-64-v4-amx"),
    ("native aarch64", "native aarch64-dot"),
    ("wasm simd128", "wasm relaxed-simd"),
)
LOADED = kernels.info().library.removesuffix("-bf16")  # which multiplies no blocks
LOADABLE = next((names[: names.index(LOADED) + 1] for names in LIBRARIES if LOADED in names), ())
ROWS, COLUMNS = 29, 53  # tiles of 8, 4 and 1 rows; groups of 16 columns, and a part of one
ROWS_OF_TILES = 61  # three tiles of AMX and 13 rows more
GROUP = 16  # threads divide columns between groups

pytestmark = pytest.mark.skipif(not LOADABLE, reason=f"no compiled kernels: {kernels.info().reason}")
rng = np.random.default_rng(41)


def address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def opened(name: str) -> ctypes.CDLL:
    stem = f"tallow-{name.removeprefix('native ').replace(' ', '-')}"
    return ctypes.CDLL(os.path.join(library.FOLDER, stem + os.path.splitext(library.path())[1]))


@pytest.fixture(params=LOADABLE)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each library that can be loaded; that of x86-64-v4 without the tiles of AMX, and with them."""
    name: str = request.param
    if not LOADED.endswith("-amx") or "v4" not in name:
        yield name
        return
    products, tiles = opened("native x86-64-v4"), opened("native x86-64-v4-amx").tl_panel_tiles
    products.tl_use_tiles(tiles if name.endswith("-amx") else None)
    yield name
    products.tl_use_tiles(tiles)


class Product:
    """x @ weight.T + bias by the functions of one library, with blocks as they lie in a file or interleaved."""

    def __init__(self, name: str, matrix: BlockMatrix, bias: Array) -> None:
        self._library = opened(name.removesuffix("-amx"))
        for function in ("tl_rounded_bytes", "tl_interleaved_columns"):
            getattr(self._library, function).restype = ctypes.c_size_t
        self._format, self._bias, self._width = matrix.format, bias, matrix.shape[1]
        self.blocks = {"linear": matrix.blocks}
        if self._library.tl_interleaved_columns():
            self.blocks["interleaved"] = self._interleaved(matrix)

    def _interleaved(self, matrix: BlockMatrix) -> Array:
        out, groups = matrix.blocks.copy(), len(matrix.blocks) // GROUP
        sizes = map(ctypes.c_size_t, (groups, out.shape[1], FORMATS[matrix.format].record.itemsize))
        self._library.tl_interleave(address(out), address(matrix.blocks), *sizes, half_place(matrix.format))
        return out

    def __call__(self, kind: str, x: Array, first: int = 0, last: int = COLUMNS) -> Array:
        x, blocks, bias = np.ascontiguousarray(x), self.blocks[kind][first:last], self._bias[first:last]
        row_bytes = self._library.tl_rounded_bytes(ctypes.c_size_t(self._width))
        rounded, y = np.empty((len(x), row_bytes), np.uint8), np.empty((len(x), last - first), np.float32)
        rows, width, columns = map(ctypes.c_size_t, (len(x), self._width, last - first))
        self._library.tl_round_rows_f32(address(rounded), address(x), rows, width)
        multiply = getattr(self._library, f"tl_{kind}_{self._format.lower()}")
        multiply(address(y), address(rounded), address(blocks), address(bias), rows, width, columns, columns)
        return y


@pytest.mark.parametrize("format", COMPILED)
def test_a_row_alone_has_the_bits_that_it_has_among_others(name: str, format: str) -> None:
    unit = FORMATS[format].weights
    for width in (unit, 9 * unit, 2304):  # panels hold 512 weights of a row
        count = ROWS_OF_TILES if name.endswith("-amx") else ROWS
        x = rng.standard_normal((count, width)).astype(np.float32)
        matrix = random_matrix(format, COLUMNS, width, rng)
        product = Product(name, matrix, rng.standard_normal(COLUMNS).astype(np.float32))
        for kind in product.blocks:
            check(product, kind, x)


def check(product: Product, kind: str, x: Array) -> None:
    together = product(kind, x)
    some = [slice(0, 2), slice(2, 5), slice(1, 5), slice(1, 8), slice(3, 20), slice(2, 27)]
    for rows in [slice(i, i + 1) for i in range(len(x))] + some:
        np.testing.assert_array_equal(product(kind, x[rows]), together[rows], err_msg=f"{kind}, {rows} of {x.shape}")
    for rows in (slice(0, 1), slice(0, len(x))):
        parts = [product(kind, x[rows], *columns) for columns in ((0, GROUP), (GROUP, 3 * GROUP), (3 * GROUP, COLUMNS))]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), together[rows], err_msg=f"{kind}, columns")
