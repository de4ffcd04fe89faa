"""The quantised blocks of GGUF: each holds 32 or 256 weights as small integers, with the scales to make floats of them.

A format is a record, as the bytes lie in the file, and the formula of its weights. Values of less than a byte lie in
runs: a run of bytes holds first the values of all its lowest bits, then those of the bits above, and so on.

Source:  https://github.com/ggml-org/llama.cpp, `ggml/src/ggml-common.h`, `block_*`; `ggml-quants.c`, `dequantize_row_*`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
Records = np.ndarray[Any, Any]

CHUNK = 2**18  # weights made at a time: what is computed in between stays in the cache


@dataclass(frozen=True, slots=True)
class Format:
    """A block: its layout in the file, how many weights it holds, and its weights: (N,) records -> (N, weights)."""

    record: np.dtype[Any]
    weights: int
    dequantize: Callable[[Records], Floats]


FORMATS: dict[str, Format] = {}


def _format(
    weights: int, *fields: tuple[str, str] | tuple[str, str, int]
) -> Callable[[Callable[[Records], Floats]], Callable[[Records], Floats]]:
    """File a function under its name, that of the format, for blocks of these fields."""

    def file(dequantize: Callable[[Records], Floats]) -> Callable[[Records], Floats]:
        FORMATS[dequantize.__name__] = Format(np.dtype(list(fields)), weights, dequantize)
        return dequantize

    return file


def dequantize(name: str, raw: Codes) -> Floats:
    """The weights of whole blocks of a format, flat, in float32."""
    layout = FORMATS[name]
    blocks = raw.view(layout.record)
    out = np.empty((len(blocks), layout.weights), np.float32)
    step = CHUNK // layout.weights
    with np.errstate(all="ignore"):  # a damaged scale may be infinite or NaN; so are its weights then
        for start in range(0, len(blocks), step):
            out[start : start + step] = layout.dequantize(blocks[start : start + step])
    return out.reshape(-1)


def _unpack(packed: Codes, bits: int, run: int) -> Codes:
    """Values of 1, 2 or 4 bits out of runs of `run` bytes: (N, bytes) -> (N, values)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    runs = packed.reshape(len(packed), -1, 1, run)
    return ((runs >> shifts) & np.uint8(2**bits - 1)).reshape(len(packed), -1)


def _floats(values: np.ndarray[Any, Any], groups: int = 1) -> Floats:
    """In float32, as (N, groups, the rest): one scale for each group can be multiplied to it."""
    return values.reshape(len(values), groups, -1).astype(np.float32)


def _signed(codes: Codes, zero: int) -> npt.NDArray[np.int8]:
    return codes.view(np.int8) - np.int8(zero)


def _weights(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


@_format(32, ("d", "<f2"), ("qs", "u1", 16))
def Q4_0(block: Records) -> Floats:
    """d (q - 8)"""
    return _weights(_floats(block["d"]) * _floats(_signed(_unpack(block["qs"], 4, 16), 8)))


@_format(32, ("d", "<f2"), ("m", "<f2"), ("qs", "u1", 16))
def Q4_1(block: Records) -> Floats:
    """d q + m"""
    return _weights(_floats(block["d"]) * _floats(_unpack(block["qs"], 4, 16)) + _floats(block["m"]))


def _five_bits(block: Records) -> Codes:
    high = np.unpackbits(block["qh"], axis=1, bitorder="little")
    return _unpack(block["qs"], 4, 16) | (high << np.uint8(4))


@_format(32, ("d", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16))
def Q5_0(block: Records) -> Floats:
    """d (q - 16)"""
    return _weights(_floats(block["d"]) * _floats(_signed(_five_bits(block), 16)))


@_format(32, ("d", "<f2"), ("m", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16))
def Q5_1(block: Records) -> Floats:
    """d q + m"""
    return _weights(_floats(block["d"]) * _floats(_five_bits(block)) + _floats(block["m"]))


@_format(32, ("d", "<f2"), ("qs", "i1", 32))
def Q8_0(block: Records) -> Floats:
    """d q"""
    return _weights(_floats(block["d"]) * _floats(block["qs"]))


@_format(256, ("scales", "u1", 16), ("qs", "u1", 64), ("d", "<f2"), ("dmin", "<f2"))
def Q2_K(block: Records) -> Floats:
    """d s q - dmin m, with s and m for 16 weights each, 4 bits, in one byte"""
    scale = _floats(block["d"]) * _floats(block["scales"] & 0xF, 16)
    minimum = _floats(block["dmin"]) * _floats(block["scales"] >> 4, 16)
    return _weights(scale * _floats(_unpack(block["qs"], 2, 32), 16) - minimum)


@_format(256, ("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", "<f2"))
def Q3_K(block: Records) -> Floats:
    """d (s - 32) (q - 4), with s for 16 weights each, 6 bits: the lower four in 8 bytes, the upper two in 4"""
    packed = block["scales"]
    s = _unpack(packed[:, :8], 4, 8) | (_unpack(packed[:, 8:], 2, 4) << np.uint8(4))
    q = _unpack(block["qs"], 2, 32) | (_unpack(block["hmask"], 1, 32) << np.uint8(2))
    return _weights(_floats(block["d"]) * _floats(_signed(s, 32), 16) * _floats(_signed(q, 4), 16))


def _six_bit_scales(packed: Codes) -> tuple[Codes, Codes]:
    """Eight scales and eight minima of 6 bits, (N, 8) each, out of 12 bytes.

    The lower six bits of bytes 0 to 3 are the first four scales, those of bytes 4 to 7 the first four minima. The
    others have their lower four bits in bytes 8 to 11, scales below minima, and their upper two on top of the first.
    """
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 0x3F, (rest & 0x0F) | ((first >> 2) & 0x30)], axis=1)
    minima = np.concatenate([second & 0x3F, (rest >> 4) | ((second >> 2) & 0x30)], axis=1)
    return scales, minima


@_format(256, ("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qs", "u1", 128))
def Q4_K(block: Records) -> Floats:
    """d s q - dmin m, with s and m for 32 weights each"""
    return _scaled_by_32(block, _unpack(block["qs"], 4, 32))


@_format(256, ("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128))
def Q5_K(block: Records) -> Floats:
    """d s q - dmin m, with s and m for 32 weights each"""
    return _scaled_by_32(block, _unpack(block["qs"], 4, 32) | (_unpack(block["qh"], 1, 32) << np.uint8(4)))


def _scaled_by_32(block: Records, codes: Codes) -> Floats:
    s, m = _six_bit_scales(block["scales"])
    scale, minimum = _floats(block["d"]) * _floats(s, 8), _floats(block["dmin"]) * _floats(m, 8)
    return _weights(scale * _floats(codes, 8) - minimum)


@_format(256, ("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "<f2"))
def Q6_K(block: Records) -> Floats:
    """d s (q - 32), with s for 16 weights each"""
    q = _unpack(block["ql"], 4, 64) | (_unpack(block["qh"], 2, 32) << np.uint8(4))
    return _weights(_floats(block["d"]) * _floats(block["scales"], 16) * _floats(_signed(q, 32), 16))
