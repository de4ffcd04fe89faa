"""Dequantise GGUF blocks: mostly 32 or 256 weights each, as small integers with scales.

Source:  https://github.com/ggml-org/llama.cpp, `ggml/src/ggml-common.h`, `block_*`; `ggml-quants.c`, `dequantize_row_*`
"""

from __future__ import annotations

import numpy as np

from tallow.kernels.quantized import gguf_codebooks  # noqa: F401 - registers its formats
from tallow.kernels.quantized.gguf_format import (
    REGISTRY,
    Codes,
    Floats,
    Records,
    Scaled,
    block_format,
    signed,
    single,
    unpack,
)

FORMATS = REGISTRY  # every format by name
CHUNK = 2**18  # weights dequantised at a time, so that intermediate results fit the CPU cache


def dequantize(name: str, raw: Codes) -> Floats:
    """Return the weights of whole blocks of the format `name`, flat, in float32."""
    layout = FORMATS[name]
    blocks = raw.view(layout.record)
    out = np.empty((len(blocks), layout.weights), np.float32)
    step = CHUNK // layout.weights
    with np.errstate(all="ignore"):  # damaged scales may be infinite or NaN
        for start in range(0, len(blocks), step):
            out[start : start + step] = layout.dequantize(blocks[start : start + step])
    return out.reshape(-1)


@block_format(32, ("d", "<f2"), ("qs", "u1", 16))
def Q4_0(block: Records) -> Scaled:
    """Compute d (q - 8)."""
    return Scaled(signed(unpack(block["qs"], 4, 16), 8), single(block["d"]))


@block_format(32, ("d", "<f2"), ("m", "<f2"), ("qs", "u1", 16))
def Q4_1(block: Records) -> Scaled:
    """Compute d q + m."""
    return Scaled(unpack(block["qs"], 4, 16), single(block["d"]), single(block["m"]))


def _five_bits(block: Records) -> Codes:
    high = np.unpackbits(block["qh"], axis=1, bitorder="little")
    return unpack(block["qs"], 4, 16) | (high << np.uint8(4))


@block_format(32, ("d", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16))
def Q5_0(block: Records) -> Scaled:
    """Compute d (q - 16)."""
    return Scaled(signed(_five_bits(block), 16), single(block["d"]))


@block_format(32, ("d", "<f2"), ("m", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16))
def Q5_1(block: Records) -> Scaled:
    """Compute d q + m."""
    return Scaled(_five_bits(block), single(block["d"]), single(block["m"]))


@block_format(32, ("d", "<f2"), ("qs", "i1", 32))
def Q8_0(block: Records) -> Scaled:
    """Compute d q."""
    return Scaled(block["qs"], single(block["d"]))


@block_format(256, ("scales", "u1", 16), ("qs", "u1", 64), ("d", "<f2"), ("dmin", "<f2"))
def Q2_K(block: Records) -> Scaled:
    """Compute d s q - dmin m, with 4-bit s and m, packed in one byte, for each 16 weights."""
    scale, shift = (
        single(block["d"]) * single(block["scales"] & 0xF),
        single(block["dmin"]) * -single(block["scales"] >> 4),
    )
    return Scaled(unpack(block["qs"], 2, 32), scale, shift)


@block_format(256, ("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", "<f2"))
def Q3_K(block: Records) -> Scaled:
    """Compute d (s - 32) (q - 4), with a 6-bit s for each 16 weights: lower 4 bits in 8 bytes, upper 2 in 4."""
    packed = block["scales"]
    s = unpack(packed[:, :8], 4, 8) | (unpack(packed[:, 8:], 2, 4) << np.uint8(4))
    q = unpack(block["qs"], 2, 32) | (unpack(block["hmask"], 1, 32) << np.uint8(2))
    return Scaled(signed(q, 4), single(block["d"]) * single(signed(s, 32)))


def _six_bit_scales(packed: Codes) -> tuple[Codes, Codes]:
    """Unpack eight scales and eight minima of 6 bits, (N, 8) each, from 12 bytes.

    The lower six bits of bytes 0 to 3 are the first four scales, those of bytes 4 to 7 the first four minima. The other
    scales and minima have their lower four bits in bytes 8 to 11 (scales in the low nibble) and their upper two bits on
    top of the first ones.
    """
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 0x3F, (rest & 0x0F) | ((first >> 2) & 0x30)], axis=1)
    minima = np.concatenate([second & 0x3F, (rest >> 4) | ((second >> 2) & 0x30)], axis=1)
    return scales, minima


@block_format(256, ("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qs", "u1", 128))
def Q4_K(block: Records) -> Scaled:
    """Compute d s q - dmin m, with s and m for each 32 weights."""
    return _scaled_by_32(block, unpack(block["qs"], 4, 32))


@block_format(256, ("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128))
def Q5_K(block: Records) -> Scaled:
    """Compute d s q - dmin m, with s and m for each 32 weights."""
    return _scaled_by_32(block, unpack(block["qs"], 4, 32) | (unpack(block["qh"], 1, 32) << np.uint8(4)))


def _scaled_by_32(block: Records, codes: Codes) -> Scaled:
    s, m = _six_bit_scales(block["scales"])
    return Scaled(codes, single(block["d"]) * single(s), single(block["dmin"]) * -single(m))


@block_format(256, ("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "<f2"))
def Q6_K(block: Records) -> Scaled:
    """Compute d s (q - 32), with s for each 16 weights."""
    q = unpack(block["ql"], 4, 64) | (unpack(block["qh"], 2, 32) << np.uint8(4))
    return Scaled(signed(q, 32), single(block["d"]) * single(block["scales"]))


@block_format(256, ("qs", "u1", 48), ("qh", "u1", 4), ("d", "<f2"))
def TQ1_0(block: Records) -> Scaled:
    """Compute d (q - 1). Five ternary q share a byte, as the digits after the point of byte / 256 in base 3."""
    runs = ((block["qs"][:, :32], 5), (block["qs"][:, 32:], 5), (block["qh"], 4))
    digits = [_ternary(packed, count) for packed, count in runs]
    return Scaled(signed(np.concatenate(digits, axis=1), 1), single(block["d"]))


def _ternary(packed: Codes, count: int) -> Codes:
    """Return the first `count` digits of each byte, all first digits before all second ones."""
    shifted = packed[:, None, :] * (3 ** np.arange(count)).astype(np.uint8)[:, None]
    return ((shifted.astype(np.uint16) * np.uint16(3)) >> np.uint16(8)).astype(np.uint8).reshape(len(packed), -1)


@block_format(256, ("qs", "u1", 64), ("d", "<f2"))
def TQ2_0(block: Records) -> Scaled:
    """Compute d (q - 1)."""
    return Scaled(signed(unpack(block["qs"], 2, 32), 1), single(block["d"]))
