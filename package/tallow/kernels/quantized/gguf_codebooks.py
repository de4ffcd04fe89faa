"""Dequantise GGUF blocks whose codes are indices: of single values, or of groups of 4 or 8 values in a grid.

Source:  https://github.com/ggml-org/llama.cpp, `ggml/src/ggml-common.h`; `ggml-quants.c`, `dequantize_row_*`;
         MXFP4: the OCP Microscaling Formats specification, version 1.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.kernels.quantized.gguf_format import (
    Codes,
    Floats,
    Records,
    Scaled,
    block_format,
    flat,
    signed,
    single,
    unpack,
)
from tallow.kernels.quantized.gguf_grids import grid

# The values of IQ4_NL and IQ4_XS; those of a 4-bit float with two bits of exponent and one of mantissa, doubled.
NON_LINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
DELTA = np.float32(0.125)  # of IQ1: the values of its grid are shifted by this much, up or down
HALF, QUARTER = np.float32(0.5), np.float32(0.25)
SEVEN_BITS = np.arange(128, dtype=np.uint8)
PARITY = np.bitwise_xor.reduce((SEVEN_BITS[:, None] >> np.arange(7, dtype=np.uint8)) & np.uint8(1), axis=1)


def _signs(bits: Codes) -> Floats:
    """Return the signs of eight values from the bits of a byte, 1 for minus: (...) -> (..., 8)."""
    set_bits = np.unpackbits(bits[..., None], axis=-1, bitorder="little")
    return np.float32(1) - np.float32(2) * set_bits.astype(np.float32)


def _seven_signs(words: np.ndarray[Any, Any]) -> Floats:
    """Return the signs of 4 · 8 values from the lowest 28 bits of words: seven for each eight values; the eighth makes
    the number of minus signs even: (N, W) -> (N, W, 4, 8)."""
    parts = ((words[..., None] >> np.array([0, 7, 14, 21], np.uint32)) & np.uint32(0x7F)).astype(np.uint8)
    return _signs(parts | (PARITY[parts] << np.uint8(7)))


def _scaled(scale: Floats, values: Floats) -> Floats:
    """Return values (N, ...) times the scales (N, G) of G equal parts of each block."""
    return flat(scale[..., None] * values.reshape(*scale.shape, -1))


def _nibbles(packed: Codes) -> Codes:
    """Return the lower and the upper half of each byte, side by side: (N, bytes) -> (N, 2 bytes)."""
    return unpack(packed, 4, 1)


@block_format(256, ("d", "<f2"), ("qs", "<u4", (8, 2)))
def IQ2_XXS(block: Records) -> Floats:
    """Compute d (s + 1/2) / 4 · ±grid, with a 4-bit s for each 32 weights."""
    first, second = block["qs"][..., 0], block["qs"][..., 1]
    index = np.ascontiguousarray(first).view(np.uint8).reshape(len(block), 8, 4)
    scale = single(block["d"]) * (HALF + (second >> np.uint32(28)).astype(np.float32)) * QUARTER
    return _scaled(scale, grid("IQ2_XXS")[index] * _seven_signs(second))


@block_format(256, ("d", "<f2"), ("qs", "<u2", 32), ("scales", "u1", 8))
def IQ2_XS(block: Records) -> Floats:
    """Compute d (s + 1/2) / 4 · ±grid, with a 4-bit s for each 16 weights."""
    index, bits = block["qs"] & np.uint16(511), (block["qs"] >> np.uint16(9)).astype(np.uint8)
    signs = _signs(bits | (PARITY[bits] << np.uint8(7)))
    return _scaled(_quarters(block), grid("IQ2_XS")[index] * signs)


@block_format(256, ("d", "<f2"), ("qs", "u1", 32), ("signs", "u1", 32), ("qh", "u1", 8), ("scales", "u1", 8))
def IQ2_S(block: Records) -> Floats:
    """Compute d (s + 1/2) / 4 · ±grid, with a 4-bit s for each 16 weights."""
    index = block["qs"].astype(np.uint16) | (unpack(block["qh"], 2, 1).astype(np.uint16) << np.uint16(8))
    return _scaled(_quarters(block), grid("IQ2_S")[index] * _signs(block["signs"]))


def _quarters(block: Records) -> Floats:
    return single(block["d"]) * (HALF + _nibbles(block["scales"]).astype(np.float32)) * QUARTER


@block_format(256, ("d", "<f2"), ("qs", "u1", 64), ("scales", "<u4", 8))
def IQ3_XXS(block: Records) -> Floats:
    """Compute d (s + 1/2) / 2 · ±grid, with a 4-bit s for each 32 weights."""
    words = block["scales"]
    scale = single(block["d"]) * (HALF + (words >> np.uint32(28)).astype(np.float32)) * HALF
    return _scaled(scale, grid("IQ3_XXS")[block["qs"]].reshape(len(block), 8, 4, 8) * _seven_signs(words))


@block_format(256, ("d", "<f2"), ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4))
def IQ3_S(block: Records) -> Floats:
    """Compute d (2 s + 1) · ±grid, with a 4-bit s for each 32 weights."""
    index = block["qs"].astype(np.uint16) | (unpack(block["qh"], 1, 1).astype(np.uint16) << np.uint16(8))
    scale = single(block["d"]) * (1 + 2 * _nibbles(block["scales"])).astype(np.float32)
    return _scaled(scale, grid("IQ3_S")[index].reshape(len(block), 32, 8) * _signs(block["signs"]))


@block_format(256, ("d", "<f2"), ("qs", "u1", 32), ("qh", "<u2", 8))
def IQ1_S(block: Records) -> Floats:
    """Compute d (2 s + 1) (grid ± 1/8), with a 3-bit s and a sign for each 32 weights."""
    words = block["qh"]
    high = (words[..., None] >> np.array([0, 3, 6, 9], np.uint16)) & np.uint16(7)
    index = block["qs"].reshape(-1, 8, 4).astype(np.uint16) | (high << np.uint16(8))
    scale = single(block["d"]) * (2 * ((words >> np.uint16(12)) & np.uint16(7)) + 1).astype(np.float32)
    delta = np.where(words & np.uint16(0x8000), -DELTA, DELTA)[..., None, None]
    return _scaled(scale, grid("IQ1_S")[index] + delta)


@block_format(256, ("qs", "u1", 32), ("qh", "u1", 16), ("scales", "<u2", 4))
def IQ1_M(block: Records) -> Floats:
    """Compute d (2 s + 1) (grid ± 1/8), with a 3-bit s for each 16 weights and a sign for each 8.

    The four bits on top of each word of `scales` are a quarter of d, lowest bits first.
    """
    words = block["scales"]
    quarters = (words & np.uint16(0xF000)) >> np.array([12, 8, 4, 0], np.uint16)
    d = np.bitwise_or.reduce(quarters, axis=1, keepdims=True).view("<f2").astype(np.float32)
    s = (words[..., None] >> np.array([0, 3, 6, 9], np.uint16)) & np.uint16(7)
    scale = d * (2 * s.reshape(len(block), 16) + 1).astype(np.float32)
    high = _nibbles(block["qh"])
    index = block["qs"].astype(np.uint16) | ((high & np.uint8(7)).astype(np.uint16) << np.uint16(8))
    delta = np.where(high & np.uint8(8), -DELTA, DELTA)[..., None]
    return _scaled(scale, grid("IQ1_S")[index] + delta)


@block_format(32, ("d", "<f2"), ("qs", "u1", 16))
def IQ4_NL(block: Records) -> Scaled:
    """Compute d values[q]."""
    return Scaled(NON_LINEAR[unpack(block["qs"], 4, 16)], single(block["d"]))


@block_format(256, ("d", "<f2"), ("scales_h", "<u2"), ("scales_l", "u1", 4), ("qs", "u1", 128))
def IQ4_XS(block: Records) -> Scaled:
    """Compute d (s - 32) values[q], with a 6-bit s for each 32 weights: lower 4 bits in scales_l, upper 2 in
    scales_h."""
    high = (block["scales_h"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16)).astype(np.uint8) & np.uint8(3)
    s = signed(_nibbles(block["scales_l"]) | (high << np.uint8(4)), 32)
    return Scaled(NON_LINEAR[unpack(block["qs"], 4, 16)], single(block["d"]) * single(s))


@block_format(32, ("e", "u1"), ("qs", "u1", 16))
def MXFP4(block: Records) -> Scaled:
    """Compute 2^(e - 128) values[q]: the values are doubled."""
    e = block["e"].astype(np.uint32)
    bits = np.where(e < 2, np.uint32(0x00200000) << np.minimum(e, 1), (np.maximum(e, 1) - 1) << np.uint32(23))
    return Scaled(E2M1[unpack(block["qs"], 4, 16)], bits.astype(np.uint32).view(np.float32)[:, None])


@block_format(64, ("scales", "u1", 4), ("qs", "u1", 32))
def NVFP4(block: Records) -> Scaled:
    """Compute d / 2 · values[q], with an 8-bit float d, 4 bits of exponent and 3 of mantissa, for each 16 weights."""
    exponent, mantissa = (
        ((block["scales"] >> np.uint8(3)) & np.uint8(15)).astype(np.int32),
        block["scales"] & np.uint8(7),
    )
    normal = np.ldexp(np.float32(1) + mantissa.astype(np.float32) / np.float32(8), exponent - 7)
    d = np.where(exponent == 0, np.ldexp(mantissa.astype(np.float32), -9), normal) * HALF
    d = np.where(block["scales"] == 0x7F, np.float32(0), d)
    return Scaled(E2M1[unpack(block["qs"], 4, 8)], d.astype(np.float32))
