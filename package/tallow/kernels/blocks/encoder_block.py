"""Packed texts through every post-norm block of an encoder (BERT and similar):

    h = layer_norm(x + output · attention(query · x, key · x, value · x))
    y = layer_norm(h + down · act(up · h))

Every product may add a bias. Texts are packed: the rows of one follow those of another without padding, so padding is
never computed. Fused, one call computes all blocks; it reads weights in their own layout, and copies nothing between
products.

Letters: N rows of all texts, B texts, D width, H heads, F feed-forward width.

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
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.blocks.affine import Affine, check_dtypes, check_shapes, check_vectors, times
from tallow.kernels.table import ARRAY, kernel, run

PARTS = ("query", "key", "value", "output", "attention_norm", "up", "down", "output_norm")
NORMS = ("attention_norm", "output_norm")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu")


@dataclass(slots=True, eq=False)
class EncoderBlock:
    """The weights of one block, checked when it is made so that a call need not check them.

    Args:    activation: one of `ACTIVATIONS`
    Shapes:  norms (D,); up (F, D); down (D, F); all others (D, D); a bias has the length of its product
    Dtypes:  float32; matrices may be quantised blocks
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
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the block

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ArgumentError(
                f"EncoderBlock: activation={self.activation!r}", hint=f"use one of {', '.join(ACTIVATIONS)}"
            )
        if len(self.up.weight.shape) != 2:
            raise ShapeError(f"EncoderBlock: up is {self.up.weight.shape}; expected (F, D)")
        self.hidden, self.width = self.up.weight.shape
        if self.heads < 1 or self.width < 1 or self.width % self.heads:
            raise ShapeError(f"EncoderBlock: {self.heads} heads do not divide a width of {self.width}")
        shapes = {"up": (self.hidden, self.width), "down": (self.width, self.hidden)}
        check_shapes("EncoderBlock", self.parts(), NORMS, self.width, shapes)
        check_vectors("EncoderBlock", self.parts(), NORMS)
        matrices = [(name, weight) for name, (weight, _) in self.parts() if name not in NORMS]
        check_dtypes("EncoderBlock", matrices, frozenset({np.dtype(np.float32)}))

    def parts(self) -> Iterator[tuple[str, Affine]]:
        """Yield matrices and norms with their names, in the order of the C struct."""
        return ((name, getattr(self, name)) for name in PARTS)


def check_call(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> None:
    """Raise ShapeError unless the blocks take rows of x's width and `offsets` divides all rows into texts."""
    if not blocks or any(block.width != blocks[0].width for block in blocks):
        widths = [block.width for block in blocks]
        raise ShapeError(f"encoder_blocks: blocks of widths {widths}; expected one or more blocks of one width")
    if x.ndim != 2 or x.shape[1] != blocks[0].width:
        raise ShapeError(f"encoder_blocks: x is {x.shape}; expected rows of width {blocks[0].width}")
    if seen is not None and (seen.shape != x.shape[:1] or seen.dtype != np.bool_):
        raise ShapeError(f"encoder_blocks: seen is {seen.dtype} {seen.shape}; expected bool {x.shape[:1]}")
    fits = offsets.ndim == 1 and offsets.size > 0 and offsets.dtype.kind in "iu"
    if not fits or offsets[0] != 0 or offsets[-1] != len(x) or (offsets[1:] < offsets[:-1]).any():
        raise ShapeError(f"encoder_blocks: offsets {offsets} do not ascend from 0 to the {len(x)} rows of x")


@kernel("encoder_blocks", ARRAY)
def encoder_blocks(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> Array:
    """Return the last block's output.

    Args:
        offsets: text i consists of the rows from offsets[i] to offsets[i + 1].
        seen: the rows that others may attend to, as keys; None means all. Attention gives zeros to a text without any.

    Shapes:  x (N, D), offsets (B + 1,) of integers from 0 to N, seen (N,) of bool -> (N, D)
    Dtypes:  float32
    """
    check_call(x, blocks, offsets, seen)
    texts = [slice(int(a), int(b)) for a, b in pairwise(offsets)]
    for block in blocks:
        query, key, value = (times(x, affine) for affine in (block.query, block.key, block.value))
        for text in texts:
            keys = text if seen is None else np.arange(text.start, text.stop)[seen[text]]
            query[text] = _attend(query[text], key[keys], value[keys], block.heads)
        h = run("layer_norm", x + times(query, block.output), *block.attention_norm, block.eps)
        inner = _activated(times(h, block.up), block.activation)
        x = run("layer_norm", h + times(inner, block.down), *block.output_norm, block.eps)
    return x


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
