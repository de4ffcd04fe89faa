"""One token through a pre-norm block that has a state of a fixed size for each text instead of keys and values.

    h = x + Wo · mixed(n) + bo                              n = rms_norm(x)
    y = h + Wdown · (silu(Wgate · m) ⊙ (Wup · m))           m = rms_norm(h)

A mixer is LFM2's gated convolution or the gated delta rule of Qwen3-Next and Qwen3.5. Such blocks and those of
`tallow.kernels.blocks.decode_block` make up a `DecodeStack`.

Letters: B texts in the cache, D width, C channels of the convolution, W its width, P = W - 1, H value heads, G key
heads, K key width, V value width, F feed-forward width, E mixed values.

    block = StateBlock(norm=..., mixer=GatedConvolution(...), ..., eps=1e-5, positions=512)    # once
    y = kernels.run("state_block", x, block, position)                                         # for every token
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import DtypeError, ShapeError
from tallow.kernels.blocks.affine import Affine, Matrix, check_dtypes, check_vectors
from tallow.kernels.blocks.decode_block import check_call, feed_forward, projected, rms_norm, rows_of
from tallow.kernels.table import ARRAY, kernel

LENGTH_EPS = 1e-6  # of the lengths of queries and keys


@dataclass(slots=True, eq=False)
class GatedConvolution:
    """b, c, x = W n;  mixed = c ⊙ convolution(b ⊙ x)

    Shapes:  input (3 D, D); weight (D, W), bias (D,) or None; past (B, P, D), which each row replaces
    """

    input: Affine
    weight: Array
    bias: Array | None
    past: Array

    @property
    def inputs(self) -> dict[str, tuple[Affine, int]]:
        """The matrices and their numbers of rows, by name."""
        return {"input": (self.input, 3 * self.channels)}

    @property
    def vectors(self) -> dict[str, tuple[Array | None, tuple[int, ...]]]:
        """The other arrays with the shapes that they must have, by name."""
        taps = self.weight.shape[1]
        return {
            "weight": (self.weight, (self.channels, taps)),
            "bias": (self.bias, (self.channels,)),
            "past": (self.past, (len(self.past), taps - 1, self.channels)),
        }

    @property
    def channels(self) -> int:
        """C"""
        return self.weight.shape[0]

    @property
    def mixed(self) -> int:
        """E"""
        return self.channels

    @property
    def states(self) -> tuple[Array, ...]:
        """The arrays that each row replaces."""
        return (self.past,)

    def mix(self, n_D: Array, text: int, _eps: float) -> Array:
        """Return the mixed values (E,) of a normalized row."""
        b, c, x = projected(n_D, *self.input).reshape(3, -1)
        return c * _convolved(b * x, self.weight, self.bias, self.past, text)


@dataclass(slots=True, eq=False)
class GatedDeltaRule:
    """q, k, v = silu(convolution(W n));  mixed = rms_norm(delta_rule(q, k, v)) ⊙ silu(gate) of each head

    Queries and keys have length 1, and queries are divided by √K. The correction's strength is σ(beta), and the decay
    -exp(log_rate) softplus(size + size_bias).

    Args:    tiled: key head g serves the value heads g, g + G, ..., instead of H / G neighbours

    Shapes:  mixed_input (2 G K + H V, D), gate (H V, D), beta, size (H, D); weight (C, W); norm (V,); log_rate,
             size_bias (H,); past (B, P, C) and state (B, H, K, V), which each row replaces
    """

    mixed_input: Affine
    gate: Affine
    beta: Affine
    size: Affine
    weight: Array
    log_rate: Array
    size_bias: Array
    norm: Array
    past: Array
    state: Array
    tiled: bool

    @property
    def inputs(self) -> dict[str, tuple[Affine, int]]:
        """As GatedConvolution."""
        _, heads, _, width = self.state.shape
        rows = {"mixed_input": self.channels, "gate": heads * width, "beta": heads, "size": heads}
        return {name: (getattr(self, name), count) for name, count in rows.items()}

    @property
    def vectors(self) -> dict[str, tuple[Array | None, tuple[int, ...]]]:
        """As GatedConvolution."""
        texts, heads, _, width = self.state.shape
        taps = self.weight.shape[1]
        shapes = {
            "weight": (self.channels, taps), "log_rate": (heads,), "size_bias": (heads,), "norm": (width,),
            "past": (texts, taps - 1, self.channels), "state": self.state.shape,
        }  # fmt: skip
        return {name: (getattr(self, name), shape) for name, shape in shapes.items()}

    @property
    def channels(self) -> int:
        """C"""
        return self.weight.shape[0]

    @property
    def key_heads(self) -> int:
        """G"""
        return (self.channels - self.mixed) // (2 * self.state.shape[2])

    @property
    def mixed(self) -> int:
        """E"""
        return self.state.shape[1] * self.state.shape[3]

    @property
    def states(self) -> tuple[Array, ...]:
        """The arrays that each row replaces."""
        return self.past, self.state

    def mix(self, n_D: Array, text: int, eps: float) -> Array:
        """Return the mixed values (E,) of a normalized row."""
        xp = array_module(n_D)
        _, heads, key_width, width = self.state.shape
        u = _convolved(projected(n_D, *self.mixed_input), self.weight, None, self.past, text)
        u = _silu(u)
        keys = self.key_heads * key_width
        q_HK, k_HK = (self._directions(part) for part in (u[:keys], u[keys : 2 * keys]))
        v_HV = u[2 * keys :].reshape(heads, width)
        size_H = projected(n_D, *self.size) + self.size_bias
        decay_H = -xp.exp(self.log_rate) * xp.logaddexp(size_H, np.float32(0))
        beta_H = 1 / (1 + xp.exp(-projected(n_D, *self.beta)))
        state_HKV = self.state[text] * xp.exp(decay_H)[:, None, None]
        missing_HV = (v_HV - (k_HK[:, None] @ state_HKV)[:, 0]) * beta_H[:, None]
        state_HKV += k_HK[:, :, None] * missing_HV[:, None]
        self.state[text] = state_HKV
        y_HV = (q_HK[:, None] @ state_HKV)[:, 0] * np.float32(key_width**-0.5)
        normed_HV = rms_norm(y_HV, self.norm, eps)
        return (normed_HV * _silu(projected(n_D, *self.gate)).reshape(heads, width)).reshape(-1)

    def _directions(self, x: Array) -> Array:
        """Return queries or keys of length 1, each for the value heads it serves, (H, K)."""
        xp = array_module(x)
        x_GK = x.reshape(self.key_heads, -1)
        x_GK = x_GK / xp.sqrt((x_GK * x_GK).sum(-1, keepdims=True) + np.float32(LENGTH_EPS))
        each = self.state.shape[1] // self.key_heads
        return xp.tile(x_GK, (each, 1)) if self.tiled else xp.repeat(x_GK, each, 0)


@dataclass(slots=True, eq=False)
class StateBlock:
    """The weights and the states of one block, checked when it is made; as DecodeBlock.

    Args:
        mlp: as DecodeBlock.
        positions: the number of positions that a text may have.

    Shapes:  norm, mlp_norm (D,);  output (D, E);  gate, up (F, D);  down (D, F)
    Dtypes:  matrices quantized, or else all float32, all float16 or all bfloat16 (uint16); everything else float32
    Raises:  ShapeError, DtypeError: an array does not fit the others
    """

    norm: Array
    mixer: GatedConvolution | GatedDeltaRule
    output: Affine
    mlp_norm: Array
    gate: Matrix | None
    up: Matrix | None
    down: Matrix | None
    eps: float
    positions: int
    mlp: Callable[[Array], Array] | None = None
    width: int = field(init=False)
    hidden: int = field(init=False)
    texts: int = field(init=False)
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the block

    kernel: ClassVar[str] = "state_block"

    def __post_init__(self) -> None:
        self.width = self.norm.shape[0]
        self.hidden = 0 if self.gate is None else self.gate.shape[0]
        self.texts = len(self.mixer.past)
        self._check_shapes()
        self._check_dtypes()

    def _check_shapes(self) -> None:
        mixer, d, f = self.mixer, self.width, self.hidden
        if any((matrix is None) is (self.mlp is None) for matrix in (self.gate, self.up, self.down)):
            raise ShapeError("StateBlock: it takes gate, up and down, or mlp")
        expected = {name: (array, shape) for name, (array, shape) in mixer.vectors.items() if array is not None}
        for name, (affine, rows) in self._affines.items():
            expected[name] = affine.weight, (rows, mixer.mixed if name == "output" else d)
            if affine.bias is not None:
                expected[f"{name}.bias"] = affine.bias, (rows,)
        for name, shape in {"mlp_norm": (d,), "gate": (f, d), "up": (f, d), "down": (d, f)}.items():
            if (array := getattr(self, name)) is not None:
                expected[f"feed-forward {name}"] = array, shape
        for name, (array, shape) in expected.items():
            if array.shape != shape:
                raise ShapeError(f"StateBlock: {name} is {array.shape}; expected {shape}, from the other arrays")
        if isinstance(mixer, GatedConvolution):
            fits = mixer.channels == d
        else:
            _, heads, key_width, _ = mixer.state.shape
            fits = mixer.key_heads * key_width * 2 + mixer.mixed == mixer.channels
            fits = fits and mixer.key_heads > 0 and heads % mixer.key_heads == 0
            fits = fits and len(mixer.state) == self.texts
        if not fits or mixer.weight.shape[1] < 1:
            raise ShapeError(f"StateBlock: {mixer.channels} channels do not fit the states and a width of {d}")

    def _check_dtypes(self) -> None:
        check_vectors("StateBlock", [(name, affine) for name, (affine, _) in self._affines.items()], ())
        vectors = {"norm": self.norm, "mlp_norm": self.mlp_norm}
        vectors |= {name: array for name, (array, _) in self.mixer.vectors.items() if array is not None}
        for name, array in vectors.items():
            if array.dtype != np.float32:
                raise DtypeError(f"StateBlock: {name} is {array.dtype}, not float32")
        check_dtypes("StateBlock", [(str(i), matrix) for i, matrix in enumerate(self.matrices)])

    @property
    def _affines(self) -> dict[str, tuple[Affine, int]]:
        return self.mixer.inputs | {"output": (self.output, self.width)}

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every matrix that the block has."""
        matrices = [affine.weight for affine, _ in self._affines.values()]
        return (*matrices, *(each for each in (self.gate, self.up, self.down) if each is not None))

    def arrays(self) -> Iterator[Array]:
        """Yield every array that is not a matrix."""
        yield from (self.norm, self.mlp_norm)
        yield from (affine.bias for affine, _ in self._affines.values() if affine.bias is not None)
        yield from (array for array, _ in self.mixer.vectors.values() if array is not None)


@kernel("state_block", ARRAY)
def state_block(x: Array, block: StateBlock, places: int | Array) -> Array:
    """Return the block's outputs for some tokens, and replace the states of their texts.

    A token at the first position that it sees begins from states of zeros.

    Args, Shapes, Dtypes:  as `decode_block`; tokens of one text are in the order of their positions, each after the
                           one before
    """
    check_call(x, block, places)
    outputs = [
        _row(row, block, place) for row, place in zip(x.reshape(-1, block.width), rows_of(block, places), strict=True)
    ]
    return array_module(x).stack(outputs).reshape(x.shape)


def _row(x_D: Array, block: StateBlock, place: tuple[int, int, int]) -> Array:
    text, position, start = place
    if position == start:
        for state in block.mixer.states:
            state[text] = 0
    mixed_E = block.mixer.mix(rms_norm(x_D, block.norm, block.eps), text, block.eps)
    return feed_forward(x_D + projected(mixed_E, *block.output), block)


def _silu(x: Array) -> Array:
    return x / (1 + array_module(x).exp(-x))


def _convolved(x_C: Array, weight_CW: Array, bias_C: Array | None, past_BPC: Array, text: int) -> Array:
    inputs_WC = array_module(x_C).concatenate([past_BPC[text], x_C[None]])
    past_BPC[text] = inputs_WC[1:]
    y_C = (inputs_WC * weight_CW.T).sum(0)
    return y_C if bias_C is None else y_C + bias_C
