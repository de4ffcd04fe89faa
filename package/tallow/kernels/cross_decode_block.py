"""One token of each text through one pre-norm block of a decoder that attends to its text, and to a sound.

    h = x + Wo · attention(Wq · n, Wk · n, Wv · n)           n = layer_norm(x)
    c = h + Wco · attention(Wcq · m, the sound)              m = layer_norm(h)
    y = c + Wdown · gelu(Wup · l)                            l = layer_norm(c)

with the biases that there are. It is the block of Whisper's decoder; as one kernel it costs one call from Python to C
per layer instead of some forty. Letters: B texts, A sounds that they are of (B is a multiple of A; the texts of one
stand after each other), D width, H heads, K head width, F feed-forward width, S positions in the cache, N of a sound.

    block = CrossDecodeBlock(self_norm=Affine(weight, bias), ..., heads=6, eps=1e-5)                             # once
    y = kernels.run("cross_decode_block", x, block, keys, values, cross_keys, cross_values, position)   # for each token
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import BF16, F16, Array, widen
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels.table import ARRAY, kernel, run

# In the order of the C struct.
PARTS = (
    *("self_norm", "query", "key", "value", "output", "cross_norm", "cross_query", "cross_output"),
    *("mlp_norm", "up", "down"),
)
NORMS = ("self_norm", "cross_norm", "mlp_norm")


class Affine(NamedTuple):
    """A matrix (out, in), or the scale of a norm (D,), and what is added."""

    weight: Array
    bias: Array | None


@dataclass(slots=True, eq=False)
class CrossDecodeBlock:
    """The weights of one block; checked here once, so that a call need not.

    Shapes:  norms (D,); up (F, D); down (D, F); all others (D, D); biases as long as what they are added to
    Dtypes:  matrices all float32, all float16 or all bfloat16 (uint16); everything else float32
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
    packed: object = field(init=False, default=None, repr=False)  # what a compiled kernel made of all this; its own

    def __post_init__(self) -> None:
        if self.up.weight.ndim != 2:
            raise ShapeError(f"CrossDecodeBlock: up is {self.up.weight.shape}; expected (F, D)")
        self.hidden, self.width = self.up.weight.shape
        if self.heads < 1 or self.width % self.heads:
            raise ShapeError(f"CrossDecodeBlock: {self.heads} heads do not divide a width of {self.width}")
        expected = {"up": (self.hidden, self.width), "down": (self.width, self.hidden)}
        for name, (weight, bias) in self.parts():
            shape = (self.width,) if name in NORMS else expected.get(name, (self.width, self.width))
            if weight.shape != shape or (bias is not None and bias.shape != shape[:1]):
                shapes = f"{weight.shape}" + ("" if bias is None else f" and {bias.shape}")
                raise ShapeError(f"CrossDecodeBlock: {name} is {shapes}, the other arrays make it {shape}")
        self._check_dtypes()

    def _check_dtypes(self) -> None:
        for name, (weight, bias) in self.parts():
            vectors = [bias] if name not in NORMS else [weight, bias]
            if any(vector is not None and vector.dtype != np.float32 for vector in vectors):
                raise DtypeError(f"CrossDecodeBlock: the vectors of {name} are not float32")
        dtypes = {part.weight.dtype for name, part in self.parts() if name not in NORMS}
        if len(dtypes) > 1 or not dtypes <= {np.dtype(np.float32), F16, BF16}:
            raise DtypeError(
                f"CrossDecodeBlock: the matrices are {sorted(map(str, dtypes))}, not all of one float dtype"
            )

    def parts(self) -> Iterator[tuple[str, Affine]]:
        """Matrices and norms by their names, in order."""
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
            mend="stop at the end of the context, or make the cache longer",
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
    """The block's outputs; the texts' keys and values are written to the cache at `position`.

    Shapes:  x (B, D), keys and values (B, H, S, K), cross_keys and cross_values (A, H, N, K) -> (B, D); attends to the
             positions 0 to `position`, inclusive
    Dtypes:  float32; halves among the weights are widened
    """
    check_call(x, block, keys, values, cross_keys, cross_values, position)
    batch, heads, sounds = x.shape[0], block.heads, cross_keys.shape[0]
    normed = run("layer_norm", x, *block.self_norm, block.eps)
    keys[:, :, position] = _times(normed, block.key).reshape(batch, heads, -1)
    values[:, :, position] = _times(normed, block.value).reshape(batch, heads, -1)
    query = _times(normed, block.query).reshape(batch, heads, 1, -1)
    h = x + _times(_attend(query, keys[:, :, : position + 1], values[:, :, : position + 1]), block.output)

    normed = run("layer_norm", h, *block.cross_norm, block.eps)
    query = _times(normed, block.cross_query).reshape(sounds, batch // sounds, heads, -1).swapaxes(1, 2)
    c = h + _times(_attend(query, cross_keys, cross_values), block.cross_output)

    inner = run("gelu", _times(run("layer_norm", c, *block.mlp_norm, block.eps), block.up), "none")
    y: Array = c + _times(inner, block.down)
    return y


def _times(x: Array, affine: Affine) -> Array:
    y = x @ widen(affine.weight).T
    return y if affine.bias is None else y + affine.bias


def _attend(query: Array, keys: Array, values: Array) -> Array:
    """(A, H, N, K) queries -> (A · N, H · K)"""
    xp = array_module(query)
    scores = query @ keys.swapaxes(-1, -2) * np.float32(query.shape[-1] ** -0.5)
    weights = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ values).swapaxes(1, 2).reshape(-1, query.shape[1] * query.shape[3])
