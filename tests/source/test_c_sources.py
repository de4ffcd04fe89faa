"""C sources name no processor: vec.h has the vectors of all, and only the cores of products have more."""

from __future__ import annotations

import re

import pytest
from support.paths import ROOT

SOURCES = ROOT / "package" / "tallow" / "kernels" / "src"
FILES = {path.relative_to(SOURCES).as_posix(): path for path in sorted(SOURCES.rglob("*.[ch]"))}
VECTORS = "runtime/vec.h"
# The inner loops of products: they choose tiles by the registers of a processor, or multiply bytes by its instructions.
PRODUCT_CORES = {
    "convolution/channels_last_f32.c": "the size of a tile",
    "product/matmul_f32.c": "which products are small",
    "product/panels.h": "the width of a panel",
    "product/product.c": "the size of a tile",
    "quantized/column_tile.h": "the size of a tile",
    "quantized/integer_product.c": "the size of a tile, and products of bytes",
    "quantized/interleaved.h": "conversions of halves, and products of bytes",
    "quantized/interleaved_linear.h": "the size of a tile",
    "quantized/quantized.h": "products of bytes",
    "tiles/tiles.h": "the tiles of AMX, vectors of halves and their products",
}
# Instructions that are not for vectors.
WAITING = {"runtime/parts.c", "blocks/stages.h"}  # threads pause, wait and notify
START = {"runtime/library.c"}  # what the processor has; the compiler's probes of the stack
INTRINSIC = re.compile(r"\b(_mm\d*_\w+|__builtin_(ia32|wasm|neon|arm)_\w+|wasm_\w+x\d+_\w+|v\w+q_[sfu]\d+|__asm__)\b")
HEADER = re.compile(r"#include <(immintrin|arm_neon|wasm_simd128)\.h>")
MAX_LINES = 500


def code(name: str) -> str:
    """Return the text of a file without comments."""
    return re.sub(r"//.*", "", FILES[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_only_vectors_and_cores_of_products_name_avx512(name: str) -> None:
    if name not in {VECTORS, *PRODUCT_CORES}:
        assert "__AVX512" not in code(name)


@pytest.mark.parametrize("name", FILES)
def test_only_they_use_intrinsics(name: str) -> None:
    found = {match[0] for match in INTRINSIC.finditer(code(name))} | set(HEADER.findall(code(name)))
    if name in WAITING:
        found -= {each for each in found if re.search("pause|atomic", each)}
    if name not in {VECTORS, *PRODUCT_CORES, *START}:
        assert not found


def test_each_exception_is_one() -> None:
    for name in PRODUCT_CORES:
        assert "__AVX512" in code(name) or INTRINSIC.search(code(name)), name
    for name in WAITING | START:
        assert INTRINSIC.search(code(name)), name


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_one_subject(name: str) -> None:
    assert FILES[name].read_text(encoding="utf-8").count("\n") <= MAX_LINES


def test_sources_are_there() -> None:
    assert len(FILES) > 60
