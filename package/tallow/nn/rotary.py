"""Rotary position embedding of queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.apply import apply
from tallow.core.creation import arange, from_numpy
from tallow.core.tensor import Tensor
from tallow.dtypes import Array, float32, float64
from tallow.errors import ArgumentError
from tallow.nn import rope_scaling
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.ops.rotary import rotary
from tallow.tape.modes import is_exporting


class Tables(NamedTuple):
    """cos and sin (S, K/2) of the first positions, for texts of the `length` of `rope_scaling.scaled_length`."""

    length: int
    cos: Array
    sin: Array


class RotaryEmbedding(Module):
    """Rotates pairs of a head's elements by pos · base^(-2i/K), for pair i of K/2.

    Args:
        head_dim: K, even. Elements of a wider head from K on are not changed.
        base: theta in Hugging Face configs.
        interleaved: pairs (2i, 2i + 1), as in llama2.c; otherwise (i, i + K/2), as in Hugging Face checkpoints.
        scaling: a config's `rope_scaling`; see `tallow.nn.rope_scaling.frequencies`.
        context: the context that the model was trained with, a config's `max_position_embeddings`.
        absolute: what follows depends on the positions themselves, not only on the distance of two: the text of each
            row begins at position 0, after its padding.

    Source:  Su et al. 2021, arXiv:2104.09864
    """

    def __init__(
        self,
        head_dim: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        scaling: Mapping[str, Any] | None = None,
        context: int | None = None,
        absolute: bool = False,
    ) -> None:
        super().__init__()
        if head_dim < 2 or head_dim % 2:
            raise ArgumentError(f"RotaryEmbedding: head_dim={head_dim}", hint="rotary pairs need an even head width")
        self.head_dim = head_dim
        self.base = base
        self.interleaved = interleaved
        self.scaling = scaling
        self.context = context
        self.absolute = absolute
        rope_scaling.frequencies(head_dim, base, scaling, context)  # raises for an unsupported scaling
        self.amplitude = rope_scaling.amplitude(scaling, context)
        self._tables: dict[devices.device, Tables] = {}

    def tables(self, length: int, device: devices.device = devices.CPU) -> tuple[Array, Array]:
        """Return cos and sin of the first `length` positions of a text of that length, float32 (length, K/2).

        The tables are cached for each device.
        """
        scaled = rope_scaling.scaled_length(self.scaling, self.context, length)
        tables = self._tables.get(device)
        if tables is None or tables.length != scaled or len(tables.cos) < length:
            rounded = 1 << max(length - 1, 0).bit_length()
            tables = self._tables[device] = self._make(rounded, scaled, device)
        return tables.cos[:length], tables.sin[:length]

    def _make(self, positions: int, scaled: int, device: devices.device) -> Tables:
        cos, sin = self._rows(np.arange(positions), scaled)
        return Tables(scaled, devices.move(cos, device), devices.move(sin, device))

    def _rows(self, positions_N: npt.NDArray[np.int64], scaled: int) -> tuple[Array, Array]:
        """Return cos and sin (N, K/2) of some positions, for texts of the length `scaled`."""
        radians = rope_scaling.frequencies(self.head_dim, self.base, self.scaling, self.context, scaled)
        # The angle is rounded to float32, as in the implementations that checkpoints are trained with. Its cosine is
        # computed in float64, so that it does not depend on the platform's cosf.
        angles = np.outer(positions_N.astype(np.float32), radians).astype(np.float64)
        cos, sin = ((self.amplitude * table).astype(np.float32) for table in (np.cos(angles), np.sin(angles)))
        return cos, sin

    def _computed_tables(self, length: int, device: devices.device) -> tuple[Tensor, Tensor]:
        """Return what `tables` returns, computed by ops, for an exported graph: it has to know no length."""
        scaled = rope_scaling.scaled_length(self.scaling, self.context, length)
        radians = rope_scaling.frequencies(self.head_dim, self.base, self.scaling, self.context, scaled)
        positions = arange(length, dtype=float32, device=device)
        angles = (positions[:, None] * from_numpy(radians).to(device)).to(float64)
        return (angles.cos() * self.amplitude).to(float32), (angles.sin() * self.amplitude).to(float32)

    def forward(self, x_BHTK: Tensor, start: int = 0, padding: npt.NDArray[np.int64] | None = None) -> Tensor:
        """Rotate by the positions `start`, `start` + 1, ...

        Args:
            padding: the number of padding positions on the left of each row, (B,). Attention depends only on the
                distance of two positions, so padding normally counts like text. If angles depend on the length of the
                text, the text of each row begins at position 0 instead.
        """
        cos: Any
        sin: Any
        if is_exporting():
            cos, sin = self._computed_tables(start + x_BHTK.shape[-2], x_BHTK.device)
        else:
            cos, sin = self.tables(start + x_BHTK.shape[-2], x_BHTK.device)
        if x_BHTK.shape[-1] != self.head_dim:
            rotated, rest = x_BHTK[..., : self.head_dim], x_BHTK[..., self.head_dim :]
            return apply(cat, [self.forward(rotated, start, padding), rest], -1)
        if padding is None or not (self.absolute or rope_scaling.unscaled_length(self.scaling, self.context)):
            return apply(rotary, x_BHTK, cos[start:], sin[start:], interleaved=self.interleaved)
        positions_BT = np.maximum(np.arange(start, start + x_BHTK.shape[2]) - padding[:, None], 0)
        index = devices.move(positions_BT.reshape(-1), x_BHTK.device)
        return self._rotated(x_BHTK, cos[index], sin[index])

    def rotate_at(self, x_BHTK: Tensor, positions_BT: npt.NDArray[np.int64]) -> Tensor:
        """Rotate by any positions, also negative ones, of each row or, with B = 1, of all."""
        if x_BHTK.shape[-1] != self.head_dim:
            rotated, rest = x_BHTK[..., : self.head_dim], x_BHTK[..., self.head_dim :]
            return apply(cat, [self.rotate_at(rotated, positions_BT), rest], -1)
        scaled = rope_scaling.scaled_length(self.scaling, self.context, int(positions_BT.max(initial=0)) + 1)
        positions_N = np.broadcast_to(positions_BT, (x_BHTK.shape[0], x_BHTK.shape[2])).reshape(-1)
        # No table: its size would be the greatest position.
        cos, sin = (devices.move(rows, x_BHTK.device) for rows in self._rows(positions_N, scaled))
        return self._rotated(x_BHTK, cos, sin)

    def _rotated(self, x_BHTK: Tensor, cos: Array, sin: Array) -> Tensor:
        """Rotate by the angles of the positions of each row (B T, K/2)."""
        batch, heads, length, width = x_BHTK.shape
        # Concatenate the rows to one long row, in a batch of heads, since each row has other positions.
        rows = x_BHTK.transpose(0, 1).reshape(heads, batch * length, width)
        rotated = apply(rotary, rows, cos, sin, interleaved=self.interleaved)
        return rotated.reshape(heads, batch, length, width).transpose(0, 1)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, base={self.base}, interleaved={self.interleaved}"


class Unrotated(RotaryEmbedding):
    """Takes the place of a RotaryEmbedding in layers whose queries and keys do not depend on positions.

    Args:    head_dim: as RotaryEmbedding
    Source:  Kazemnejad et al. 2023, arXiv:2305.19466
    """

    def __init__(self, head_dim: int) -> None:
        super().__init__(head_dim)

    def _rows(self, positions_N: npt.NDArray[np.int64], scaled: int) -> tuple[Array, Array]:
        shape = len(positions_N), self.head_dim // 2
        return np.ones(shape, np.float32), np.zeros(shape, np.float32)

    def forward(self, x_BHTK: Tensor, start: int = 0, padding: npt.NDArray[np.int64] | None = None) -> Tensor:
        return x_BHTK

    def rotate_at(self, x_BHTK: Tensor, positions_BT: npt.NDArray[np.int64]) -> Tensor:
        return x_BHTK
