"""One token of each text through a pre-norm decoder block that attends to its own text and to an encoded sound.

    h = x + Wo · attention(Wq · n, Wk · n, Wv · n)           n = layer_norm(x)
    c = h + Wco · attention(Wcq · m, the sound)              m = layer_norm(h)
    y = c + Wdown · gelu(Wup · l)                            l = layer_norm(c)

Every product may add a bias. This is the block of Whisper's decoder. Fused, it takes one call from Python to C per
layer instead of about forty.

Letters: B texts, A sounds (B is a multiple of A; the texts of one sound are adjacent rows), D width, H heads, K head
width, F feed-forward width, S positions in the cache, N positions of a sound.

    block = CrossDecodeBlock(self_norm=Affine(weight, bias), ..., heads=6, eps=1e-5)                             # once
    y = kernels.run("cross_decode_block", x, block, keys, values, cross_keys, cross_values, position)   # for each token
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.blocks.affine import Affine, check_dtypes, check_shapes, check_vectors, times
from tallow.kernels.table import ARRAY, kernel, run

# In the order of the C struct.
PARTS = (
    *("self_norm", "query", "key", "value", "output", "cross_norm", "cross_query", "cross_output"),
    *("mlp_norm", "up", "down"),
)
NORMS = ("self_norm", "cross_norm", "mlp_norm")


@dataclass(slots=True, eq=False)
class CrossDecodeBlock:
    """The weights of one block, checked when it is made so that a call need not check them.

    Shapes:  norms (D,); up (F, D); down (D, F); all others (D, D); a bias has the length of its product
    Dtypes:  matrices quantised, or else all float32, all float16 or all bfloat16 (uint16); everything else float32
    Raises:  ShapeError, DtypeError: an array does not fit the others
    """

    self_norm: Affine
    query: Affine
    key: Affine
    value: Affine
    output: Affine
    cross_norm: Affine
    cross_query: Affine
    cross_output: Affine
    mlp_norm: Affine
    up: Affine
    down: Affine
    heads: int
    eps: float
    width: int = field(init=False)
    hidden: int = field(init=False)
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the block

    def __post_init__(self) -> None:
        if len(self.up.weight.shape) != 2:
            raise ShapeError(f"CrossDecodeBlock: up is {self.up.weight.shape}; expected (F, D)")
        self.hidden, self.width = self.up.weight.shape
        if self.heads < 1 or self.width % self.heads:
            raise ShapeError(f"CrossDecodeBlock: {self.heads} heads do not divide a width of {self.width}")
        shapes = {"up": (self.hidden, self.width), "down": (self.width, self.hidden)}
        check_shapes("CrossDecodeBlock", self.parts(), NORMS, self.width, shapes)
        check_vectors("CrossDecodeBlock", self.parts(), NORMS)
        check_dtypes("CrossDecodeBlock", [(name, weight) for name, (weight, _) in self.parts() if name not in NORMS])

    def parts(self) -> Iterator[tuple[str, Affine]]:
        """Yield matrices and norms with their names, in the order of the C struct."""
        return ((name, getattr(self, name)) for name in PARTS)


def check_call(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> None:
    """Raise unless the arrays fit the block and each other, and `position` lies in the cache."""
    head = block.width // block.heads
    fits = (
        x.ndim == 2
        and x.shape[1] == block.width
        and keys.ndim == cross_keys.ndim == 4
        and keys.shape == values.shape == (x.shape[0], block.heads, keys.shape[2], head)
        and cross_keys.shape == cross_values.shape == (cross_keys.shape[0], block.heads, cross_keys.shape[2], head)
        and min(*x.shape, *cross_keys.shape) > 0
        and x.shape[0] % cross_keys.shape[0] == 0
    )
    if not fits:
        raise ShapeError(
            f"cross_decode_block: x {x.shape}, keys {keys.shape}, values {values.shape}, cross_keys "
            f"{cross_keys.shape}, cross_values {cross_values.shape}; width {block.width}, {block.heads} heads"
        )
    if not 0 <= position < keys.shape[2]:
        raise ArgumentError(
            f"cross_decode_block: position {position} lies outside the cache of {keys.shape[2]} positions",
            hint="stop at the end of the context, or make the cache longer",
        )


@kernel("cross_decode_block", ARRAY)
def cross_decode_block(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> Array:
    """Return the block's outputs, and write the texts' keys and values to the cache at `position`.

    Attends to the positions 0 to `position`, inclusive, and to the whole sound.

    Shapes:  x (B, D), keys and values (B, H, S, K), cross_keys and cross_values (A, H, N, K) -> (B, D)
    Dtypes:  float32; quantised and half-precision weights are widened
    """
    check_call(x, block, keys, values, cross_keys, cross_values, position)
    batch, heads, sounds = x.shape[0], block.heads, cross_keys.shape[0]
    normed = run("layer_norm", x, *block.self_norm, block.eps)
    keys[:, :, position] = times(normed, block.key).reshape(batch, heads, -1)
    values[:, :, position] = times(normed, block.value).reshape(batch, heads, -1)
    query = times(normed, block.query).reshape(batch, heads, 1, -1)
    h = x + times(_attend(query, keys[:, :, : position + 1], values[:, :, : position + 1]), block.output)

    normed = run("layer_norm", h, *block.cross_norm, block.eps)
    query = times(normed, block.cross_query).reshape(sounds, batch // sounds, heads, -1).swapaxes(1, 2)
    c = h + times(_attend(query, cross_keys, cross_values), block.cross_output)

    inner = run("gelu", times(run("layer_norm", c, *block.mlp_norm, block.eps), block.up), "none")
    y: Array = c + times(inner, block.down)
    return y


def _attend(query: Array, keys: Array, values: Array) -> Array:
    """Return what (A, H, N, K) queries read from keys and values, (A · N, H · K)."""
    xp = array_module(query)
    scores = query @ keys.swapaxes(-1, -2) * np.float32(query.shape[-1] ** -0.5)
    weights = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ values).swapaxes(1, 2).reshape(-1, query.shape[1] * query.shape[3])
