"""A short convolution over the positions of a text, each channel for itself, that a cache can continue.

Letters: B batch, T positions, C channels, W width of the kernel, P = W - 1 positions before the first.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.nn.cache import KVCache
from tallow.nn.convolution import Conv1d
from tallow.ops.joining import cat


class ShortConvolution(Conv1d):
    """A causal depthwise convolution: y[t] = bias + Σ_i weight[i] ⊙ x[t - P + i], with zeros before the text.

    Args:    bias: add a bias

    Shapes:  x (B, T, C) -> (B, T, C); weight (C, 1, W), bias (C,)
    Source:  the layers `conv` and `conv1d` of transformers' models with `causal_conv1d`
    """

    state: ClassVar[str] = "conv"  # the name in a cache of the last P inputs, (B, P, C)

    def __init__(self, channels: int, width: int, bias: bool, device: Any, dtype: Any) -> None:
        super().__init__(channels, channels, width, groups=channels, bias=bias, device=device, dtype=dtype)

    def forward(self, x_BTC: Tensor, cache: KVCache | None = None, layer: int = 0) -> Tensor:
        """Return the outputs (B, T, C). With a cache, the inputs follow those whose last P it holds.

        Args:    layer: of the cache
        """
        batch, count, channels = x_BTC.shape
        width = self.weight.shape[-1]
        states = None if cache is None else cache.states(layer)
        past_BPC = x_BTC.new_zeros(batch, width - 1, channels) if states is None else states[self.state]
        inputs = apply(cat, [past_BPC.to(x_BTC.dtype), x_BTC], 1)
        if cache is not None:
            cache.store(layer, **{self.state: inputs[:, inputs.shape[1] - width + 1 :]})
        weight_CW = self.weight.squeeze(1)
        parts = [inputs[:, i : i + count] * weight_CW[:, i] for i in range(width)]
        total = parts[0] if self.bias is None else parts[0] + self.bias
        for part in parts[1:]:
            total = total + part
        return total
