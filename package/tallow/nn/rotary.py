"""The layer that turns queries and keys by the angles of rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.apply import apply
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.nn import rope_scaling
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.ops.rotary import rotary
from tallow.tensor import Tensor


class Tables(NamedTuple):
    """cos and sin (S, K/2) of the first positions, for the texts that `rope_scaling.scaled_length` names."""

    length: int
    cos: Array
    sin: Array


class RotaryEmbedding(Module):
    """Turns pairs of a head's elements by pos · base^(-2i/K), for pair i of K/2.

    Args:
        head_dim: K, even. Of a wider head the elements from K on are left as they are.
        base: theta in Hugging Face's configs.
        interleaved: pairs (2i, 2i + 1), as in llama2.c; otherwise (i, i + K/2), as in Hugging Face's checkpoints.
        scaling: a config's `rope_scaling`; see `tallow.nn.rope_scaling.frequencies`.
        context: positions of the texts that the model was trained on, a config's `max_position_embeddings`.

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
    ) -> None:
        super().__init__()
        if head_dim < 2 or head_dim % 2:
            raise ArgumentError(f"RotaryEmbedding: head_dim={head_dim}", mend="rotary pairs need an even head width")
        self.head_dim = head_dim
        self.base = base
        self.interleaved = interleaved
        self.scaling = scaling
        self.context = context
        rope_scaling.frequencies(head_dim, base, scaling, context)  # refuses a scaling it does not have
        self.amplitude = rope_scaling.amplitude(scaling, context)
        self._tables: dict[devices.device, Tables] = {}

    def tables(self, length: int, device: devices.device = devices.CPU) -> tuple[Array, Array]:
        """cos and sin of the first `length` positions of a text that is so long, float32 (length, K/2), on `device`;
        kept for the next call."""
        scaled = rope_scaling.scaled_length(self.scaling, self.context, length)
        kept = self._tables.get(device)
        if kept is None or kept.length != scaled or len(kept.cos) < length:
            rounded = 1 << max(length - 1, 0).bit_length()
            kept = self._tables[device] = self._make(rounded, scaled, device)
        return kept.cos[:length], kept.sin[:length]

    def _make(self, positions: int, scaled: int, device: devices.device) -> Tables:
        radians = rope_scaling.frequencies(self.head_dim, self.base, self.scaling, self.context, scaled)
        # The angle is rounded to float32, as in every implementation a checkpoint may have been trained with; the
        # cosine of that angle is then computed in float64, so that it does not depend on the platform's cosf.
        angles = np.outer(np.arange(positions, dtype=np.float32), radians).astype(np.float64)
        cos, sin = ((self.amplitude * table).astype(np.float32) for table in (np.cos(angles), np.sin(angles)))
        return Tables(scaled, devices.move(cos, device), devices.move(sin, device))

    def forward(self, x_BHTK: Tensor, start: int = 0, padding: npt.NDArray[np.int64] | None = None) -> Tensor:
        """Turn by the positions `start`, `start` + 1, ...

        Args:
            padding: how many positions at the left of each row are no text, (B,). Attention sees only how far apart two
                positions are, so they count as others do; but where angles change while a text grows, keys that were
                turned before would be off by them, and each row's text begins at 0.
        """
        cos, sin = self.tables(start + x_BHTK.shape[-2], x_BHTK.device)
        if x_BHTK.shape[-1] != self.head_dim:
            turned, kept = x_BHTK[..., : self.head_dim], x_BHTK[..., self.head_dim :]
            return apply(cat, [self.forward(turned, start, padding), kept], -1)
        if padding is None or rope_scaling.unscaled_length(self.scaling, self.context) is None:
            return apply(rotary, x_BHTK, cos[start:], sin[start:], interleaved=self.interleaved)
        batch, heads, length, width = x_BHTK.shape
        positions_N = np.maximum(np.arange(start, start + length) - padding[:, None], 0).reshape(-1)
        places = devices.move(positions_N, x_BHTK.device)
        # All rows after each other are one row of a batch of heads.
        rows = x_BHTK.transpose(0, 1).reshape(heads, batch * length, width)
        turned = apply(rotary, rows, cos[places], sin[places], interleaved=self.interleaved)
        return turned.reshape(heads, batch, length, width).transpose(0, 1)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, base={self.base}, interleaved={self.interleaved}"
