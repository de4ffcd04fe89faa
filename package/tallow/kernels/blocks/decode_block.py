"""One token through a pre-norm transformer block with a key/value cache: the inner loop of text generation.

    h = x + Wo · attention(rope(Wq · n + bq), rope(Wk · n + bk), Wv · n + bv)      n = rms_norm(x)
    y = h + Wdown · (silu(Wgate · m) ⊙ (Wup · m))                                  m = rms_norm(h)

This is the block of Llama, Mistral and other models of that design, without biases; of Qwen2, with them; and of Qwen3,
in which each head of queries and keys has an RMS norm before it is rotated. Fused, it takes one call from Python to C
per layer instead of about fifteen; in a browser those calls take most of a small model's time. In Qwen3.5 each element
of what a head mixes is multiplied by σ of a gate, and a part of each head is rotated.

Letters: B texts in the cache, D width, H query heads, G key/value heads, K head width, F feed-forward width,
S positions in the cache.

    block = DecodeBlock(attention_norm=..., ..., eps=1e-5, interleaved=True)     # once
    y = kernels.run("decode_block", x, block, position)                          # for every token
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels.blocks.affine import Matrix, check_dtypes, product
from tallow.kernels.quantized.int8_rows import Int8Rows, read, write
from tallow.kernels.table import ARRAY, kernel, run

VECTORS = ("attention_norm", "mlp_norm", "cos", "sin")
OPTIONAL = ("query_bias", "key_bias", "value_bias", "query_norm", "key_norm")
CACHES = ("key_cache", "value_cache")
MLP = ("gate", "up", "down")
MATRICES = ("query", "key", "value", "output", *MLP)


@dataclass(slots=True, eq=False)
class DecodeBlock:
    """The weights and the cache of one block, checked when it is made so that a call need not check them.

    It holds the arrays themselves: a write into an array is seen, an array that replaces another is not. `FusedDecoder`
    builds new blocks when a model's arrays change.

    Args:
        interleaved: rotary pairs are (2i, 2i + 1), as in llama2.c; otherwise (i, i + K/2), as in Hugging Face models.
        mlp: computes the feed-forward part from normalized rows (M, D); gate, up and down are then None.
        gated: the rows of each head in `query` are K of its query, then K of its gate.

    Shapes:  attention_norm, mlp_norm (D,);  query (H·K, D), or (2·H·K, D) if gated;  key, value (G·K, D);  output
             (D, H·K);  gate, up (F, D);  down (D, F);  cos, sin (≥ S, R/2) for the first R elements of each head;
             key_cache, value_cache (B, G, S, K);
             or None: query_bias, as many as query has rows, key_bias, value_bias (G·K,), query_norm, key_norm (K,),
             or (H·K,) and (G·K,) for one norm of all heads
    Dtypes:  matrices quantized, or else all float32, all float16 or all bfloat16 (uint16); caches of one of these
             dtypes, or both Int8Rows; everything else float32
    Raises:  ShapeError, DtypeError: an array does not fit the others
    """

    attention_norm: Array
    query: Matrix
    key: Matrix
    value: Matrix
    output: Matrix
    mlp_norm: Array
    gate: Matrix | None
    up: Matrix | None
    down: Matrix | None
    cos: Array
    sin: Array
    key_cache: Array | Int8Rows
    value_cache: Array | Int8Rows
    eps: float
    interleaved: bool
    query_bias: Array | None = None
    key_bias: Array | None = None
    value_bias: Array | None = None
    query_norm: Array | None = None
    key_norm: Array | None = None
    mlp: Callable[[Array], Array] | None = None
    gated: bool = False
    width: int = field(init=False)
    heads: int = field(init=False)
    kv_heads: int = field(init=False)
    head_width: int = field(init=False)
    hidden: int = field(init=False)
    positions: int = field(init=False)
    texts: int = field(init=False)
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the block

    kernel: ClassVar[str] = "decode_block"

    def __post_init__(self) -> None:
        gate = self.query if self.gate is None else self.gate
        if [len(a.shape) for a in (self.key_cache, self.query, gate)] != [4, 2, 2]:
            raise ShapeError("DecodeBlock: key_cache must be (B, G, S, K), query (H*K, D) and gate (F, D)")
        self.texts, self.kv_heads, self.positions, self.head_width = self.key_cache.shape
        self.width = self.query.shape[1]
        self.heads = self.query.shape[0] // self.head_width // self.parts
        self.hidden = 0 if self.gate is None else self.gate.shape[0]
        self._check_shapes()
        self._check_dtypes()

    def _check_shapes(self) -> None:
        d, h, g, k, f, s = self.width, self.heads, self.kv_heads, self.head_width, self.hidden, self.positions
        table = (max(s, self.cos.shape[0]), min(self.cos.shape[1], k // 2))  # it may be longer than the cache
        queries = h * k * self.parts
        cache = (self.texts, g, s, k)
        expected = {
            "attention_norm": (d,), "query": (queries, d), "key": (g * k, d), "value": (g * k, d), "output": (d, h * k),
            "mlp_norm": (d,), "gate": (f, d), "up": (f, d), "down": (d, f),
            "cos": table, "sin": table, "key_cache": cache, "value_cache": cache,
            "query_bias": (queries,), "key_bias": (g * k,), "value_bias": (g * k,),
            "query_norm": (h * k,) if self.norms_all else (k,), "key_norm": (g * k,) if self.norms_all else (k,),
        }  # fmt: skip
        for name, array in self._given(expected):
            if array.shape != expected[name]:
                raise ShapeError(
                    f"DecodeBlock: {name} is {array.shape}; expected {expected[name]}, from the shapes of the other "
                    "arrays"
                )
        if k % 2 or h % g:
            raise ShapeError(f"DecodeBlock: the head width {k} must be even, and {g} kv heads must divide {h} heads")

    def _check_dtypes(self) -> None:
        for name, vector in self._given((*VECTORS, *OPTIONAL)):
            if vector.dtype != np.float32:
                raise DtypeError(f"DecodeBlock: {name} is {vector.dtype}, not float32")
        check_dtypes("DecodeBlock", list(self._given(MATRICES)))
        if not all(isinstance(cache, Int8Rows) for cache in self.caches):
            check_dtypes("DecodeBlock", [(name, getattr(self, name)) for name in CACHES])

    def _given(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield the arrays of these names, without those that the block may lack and does."""
        for name in names:
            array = getattr(self, name)
            if array is not None or not (name in OPTIONAL or (self.mlp and name in MLP)):
                yield name, array

    @property
    def parts(self) -> int:
        """The number of vectors of K elements that `query` has for each head."""
        return 2 if self.gated else 1

    @property
    def rotated(self) -> int:
        """R"""
        return 2 * self.cos.shape[1]

    @property
    def norms_all(self) -> bool:
        """True if the norms of queries and keys are of all heads together."""
        return self.query_norm is not None and self.query_norm.shape[0] != self.head_width

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every matrix that the block has, in the order of the arguments."""
        return tuple(matrix for _, matrix in self._given(MATRICES))

    @property
    def weights(self) -> tuple[Matrix | None, ...]:
        """Everything but the caches, in the order of the arguments."""
        return (
            self.attention_norm, self.query, self.key, self.value, self.output, self.mlp_norm, self.gate, self.up,
            self.down, self.cos, self.sin, *self.additions,
        )  # fmt: skip

    @property
    def additions(self) -> tuple[Array | None, ...]:
        """The biases and the norms of heads, in the order of the arguments."""
        return self.query_bias, self.key_bias, self.value_bias, self.query_norm, self.key_norm

    @property
    def caches(self) -> tuple[Array | Int8Rows, Array | Int8Rows]:
        """The memory of keys and of values."""
        return self.key_cache, self.value_cache


class Block(Protocol):
    """The interface of all blocks of a `DecodeStack`."""

    kernel: ClassVar[str]  # the name of what computes the block
    mlp_norm: Array
    gate: Matrix | None
    up: Matrix | None
    down: Matrix | None
    eps: float
    mlp: Callable[[Array], Array] | None
    width: int
    texts: int
    positions: int
    packed: object

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every matrix that the block has."""


def check_call(x: Array, block: Block, places: int | Array) -> None:
    """Raise unless `x` has the hidden state of a token for each place; a place that is a number must be in the cache.

    Places in a device's memory are not read: that would wait for the device.
    """
    rows = 1 if isinstance(places, int) else len(places)
    if x.size != rows * block.width:
        raise ShapeError(f"decode_block: x is {x.shape}; expected {(rows, block.width)}")
    if isinstance(places, int):
        if not 0 <= places < block.positions:
            raise outside(places, block.positions)
    elif places.shape != (rows, 3):
        raise ShapeError(f"decode_block: places are {places.shape}; expected {(rows, 3)}")


def outside(position: int, positions: int) -> ArgumentError:
    """Return the error for a position that the cache does not have."""
    return ArgumentError(
        f"decode_block: position {position} lies outside the cache of {positions} positions",
        hint="stop at the end of the context, or make the cache longer",
    )


@kernel("decode_block", ARRAY)
def decode_block(x: Array, block: DecodeBlock, places: int | Array) -> Array:
    """Return the block's outputs for some tokens, and write their keys and values to the cache.

    Args:
        places: for each token its text of the cache, its position, and the first position that it sees; a CUDA kernel
            reads them when it runs. Or the position of one token of the first text.

    Shapes:  x (..., D) of M tokens -> the same;  places (M, 3), int64
    Dtypes:  x float32; half-precision weights are widened, and everything is computed in float32
    """
    check_call(x, block, places)
    rows = zip(x.reshape(-1, block.width), rows_of(block, places), strict=True)
    return array_module(x).stack([decode_row(row, block, place) for row, place in rows]).reshape(x.shape)


def rows_of(block: Block, places: int | Array) -> list[tuple[int, int, int]]:
    """Return the places of rows as numbers.  Raises: ArgumentError for a position outside the cache"""
    rows = [(0, places, 0)] if isinstance(places, int) else [tuple(place) for place in places.tolist()]
    for _, position, _ in rows:
        if not 0 <= position < block.positions:
            raise outside(position, block.positions)
    return rows


def decode_row(x: Array, block: DecodeBlock, place: tuple[int, int, int]) -> Array:
    """Return the block's output for one row.

    Args:    place: a text of the cache, the row's position, and the first position that it sees
    Shapes, Dtypes:  as `decode_block`
    """
    text, position, start = place
    xp = array_module(x)
    n = rms_norm(x.reshape(-1), block.attention_norm, block.eps)
    projected_HpK = projected(n, block.query, block.query_bias).reshape(block.heads, block.parts, -1)
    query_HK = _normed(block, projected_HpK[:, 0], block.query_norm)
    key_GK = _normed(block, projected(n, block.key, block.key_bias), block.key_norm)
    value_GK = _normed(block, projected(n, block.value, block.value_bias), None)
    query_HK, key_GK = _rotate(query_HK, block, position), _rotate(key_GK, block, position)
    write(block.key_cache, (text, slice(None), position), key_GK)
    write(block.value_cache, (text, slice(None), position), value_GK)

    keys_GSK, values_GSK = (read(cache[text, :, start : position + 1]) for cache in block.caches)
    query_GNK = query_HK.reshape(block.kv_heads, -1, block.head_width)  # N query heads share a key/value head
    scores_GNS = query_GNK @ keys_GSK.transpose(0, 2, 1) * np.float32(block.head_width**-0.5)
    weights_GNS = xp.exp(scores_GNS - scores_GNS.max(axis=-1, keepdims=True))
    weights_GNS /= weights_GNS.sum(axis=-1, keepdims=True)
    mixed_HK = (weights_GNS @ values_GSK).reshape(block.heads, -1)
    if block.gated:
        mixed_HK = mixed_HK / (1 + xp.exp(-projected_HpK[:, 1]))
    return feed_forward(x.reshape(-1) + product(mixed_HK.reshape(-1), block.output), block).reshape(x.shape)


def feed_forward(h_D: Array, block: Block) -> Array:
    """Return a row with what the feed-forward part of a block adds to it."""
    m = rms_norm(h_D, block.mlp_norm, block.eps)
    if block.gate is None or block.up is None or block.down is None:
        assert block.mlp is not None
        return h_D + block.mlp(m.reshape(1, -1)).reshape(-1)
    gate = product(m, block.gate)
    gate /= 1 + array_module(gate).exp(-gate)
    return h_D + product(gate * product(m, block.up), block.down)


def projected(x: Array, matrix: Matrix, bias: Array | None) -> Array:
    """Return x · matrixᵀ, plus the bias where there is one.  Shapes: x (..., in), matrix (out, in) -> (..., out)"""
    y = product(x, matrix)
    return y if bias is None else y + bias


def _normed(block: DecodeBlock, x: Array, norm: Array | None) -> Array:
    if norm is not None:
        x = run("rms_norm", x.reshape(-1, norm.shape[0]), norm, block.eps)
    return x.reshape(-1, block.head_width)


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Return rows divided by the roots of their mean squares, times a weight."""
    mean = (x * x).mean(axis=-1, keepdims=True)
    return x * (np.float32(1) / array_module(x).sqrt(mean + np.float32(eps))) * weight


def _rotate(x_NK: Array, block: DecodeBlock, position: int) -> Array:
    cos, sin = block.cos[position], block.sin[position]
    end, half = block.rotated, block.rotated // 2
    first, second = (slice(0, end, 2), slice(1, end, 2)) if block.interleaved else (slice(half), slice(half, end))
    rotated = x_NK.copy()
    rotated[:, first] = x_NK[:, first] * cos - x_NK[:, second] * sin
    rotated[:, second] = x_NK[:, first] * sin + x_NK[:, second] * cos
    return rotated
