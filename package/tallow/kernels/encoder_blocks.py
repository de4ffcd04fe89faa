"""The rows of some texts through all blocks of an encoder, post-norm, as BERT's and its kin:

    h = layer_norm(x + output · attention(query · x, key · x, value · x))
    y = layer_norm(h + down · act(up · h))

Every product may have a bias. Texts lie after each other, with nothing between them, so that padding need not be
computed. As one kernel it is a call for all blocks, weights are read as they lie, and between two products nothing is
copied. Letters: N rows of all texts, B texts, D width, H heads, F feed-forward width.

    blocks = [EncoderBlock(query=Affine(weight, bias), ..., heads=12, eps=1e-12, activation="gelu"), ...]    # once
    y = kernels.run("encoder_blocks", x, blocks, offsets, None)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels.cross_decode_block import Affine
from tallow.kernels.table import ARRAY, kernel, run

PARTS = ("query", "key", "value", "output", "attention_norm", "up", "down", "output_norm")
NORMS = ("attention_norm", "output_norm")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu")


@dataclass(slots=True, eq=False)
class EncoderBlock:
    """The weights of one block; checked here once, so that a call need not.

    Args:    activation: one of `ACTIVATIONS`
    Shapes:  norms (D,); up (F, D); down (D, F); all others (D, D); biases as long as what they are added to
    Dtypes:  float32
    Raises:  ShapeError, DtypeError: an array does not fit the others; ArgumentError for another activation
    """

    query: Affine
    key: Affine
    value: Affine
    output: Affine
    attention_norm: Affine
    up: Affine
    down: Affine
    output_norm: Affine
    heads: int
    eps: float
    activation: str = "gelu"
    width: int = field(init=False)
    hidden: int = field(init=False)
    packed: object = field(init=False, default=None, repr=False)  # what a compiled kernel made of all this; its own

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ArgumentError(
                f"EncoderBlock: activation={self.activation!r}", mend=f"one of {', '.join(ACTIVATIONS)}"
            )
        if self.up.weight.ndim != 2:
            raise ShapeError(f"EncoderBlock: up is {self.up.weight.shape}; expected (F, D)")
        self.hidden, self.width = self.up.weight.shape
        if self.heads < 1 or self.width < 1 or self.width % self.heads:
            raise ShapeError(f"EncoderBlock: {self.heads} heads do not divide a width of {self.width}")
        expected = {"up": (self.hidden, self.width), "down": (self.width, self.hidden)}
        for name, (weight, bias) in self.parts():
            shape = (self.width,) if name in NORMS else expected.get(name, (self.width, self.width))
            if weight.shape != shape or (bias is not None and bias.shape != shape[:1]):
                shapes = f"{weight.shape}" + ("" if bias is None else f" and {bias.shape}")
                raise ShapeError(f"EncoderBlock: {name} is {shapes}, the other arrays make it {shape}")
            if weight.dtype != np.float32 or (bias is not None and bias.dtype != np.float32):
                raise DtypeError(f"EncoderBlock: {name} is not float32")

    def parts(self) -> Iterator[tuple[str, Affine]]:
        """Matrices and norms by their names, in order."""
        return ((name, getattr(self, name)) for name in PARTS)


def check_call(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> None:
    """Raise unless the blocks take the rows, and the texts are made of all of them."""
    if not blocks or any(block.width != blocks[0].width for block in blocks):
        widths = [block.width for block in blocks]
        raise ShapeError(f"encoder_blocks: blocks of widths {widths}; expected one or more of the same")
    if x.ndim != 2 or x.shape[1] != blocks[0].width:
        raise ShapeError(f"encoder_blocks: x is {x.shape}; expected rows of width {blocks[0].width}")
    if seen is not None and (seen.shape != x.shape[:1] or seen.dtype != np.bool_):
        raise ShapeError(f"encoder_blocks: seen is {seen.dtype} {seen.shape}; expected bool {x.shape[:1]}")
    fits = offsets.ndim == 1 and offsets.size > 0 and offsets.dtype.kind in "iu"
    if not fits or offsets[0] != 0 or offsets[-1] != len(x) or (offsets[1:] < offsets[:-1]).any():
        raise ShapeError(f"encoder_blocks: offsets {offsets} do not go up from 0 to the {len(x)} rows of x")


@kernel("encoder_blocks", ARRAY)
def encoder_blocks(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> Array:
    """What the last block gives.

    Args:
        offsets: text i is the rows from offsets[i] to offsets[i + 1].
        seen: which rows others may attend to, as keys; None means all. A text without any gets zeros from attention.

    Shapes:  x (N, D), offsets (B + 1,) of integers from 0 to N, seen (N,) of bool -> (N, D)
    Dtypes:  float32
    """
    check_call(x, blocks, offsets, seen)
    texts = [slice(int(a), int(b)) for a, b in pairwise(offsets)]
    for block in blocks:
        query, key, value = (_times(x, affine) for affine in (block.query, block.key, block.value))
        for text in texts:
            keys = text if seen is None else np.arange(text.start, text.stop)[seen[text]]
            query[text] = _attend(query[text], key[keys], value[keys], block.heads)
        h = run("layer_norm", x + _times(query, block.output), *block.attention_norm, block.eps)
        inner = _activated(_times(h, block.up), block.activation)
        x = run("layer_norm", h + _times(inner, block.down), *block.output_norm, block.eps)
    return x


def _times(x: Array, affine: Affine) -> Array:
    y = x @ affine.weight.T
    return y if affine.bias is None else y + affine.bias


def _activated(x: Array, activation: str) -> Array:
    if activation == "relu":
        return array_module(x).maximum(x, np.float32(0))
    y: Array = run("gelu", x, "tanh" if activation == "gelu_tanh" else "none")
    return y


def _attend(query_TD: Array, key_SD: Array, value_SD: Array, heads: int) -> Array:
    if not len(key_SD):
        return array_module(query_TD).zeros_like(query_TD)
    query, key, value = (x.reshape(len(x), heads, -1).swapaxes(0, 1) for x in (query_TD, key_SD, value_SD))
    scores_HTS = query @ key.swapaxes(1, 2) * np.float32(query.shape[-1] ** -0.5)
    mixed_HTK = run("softmax", scores_HTS) @ value
    return mixed_HTK.swapaxes(0, 1).reshape(query_TD.shape)
