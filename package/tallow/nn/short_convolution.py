"""A short convolution over the positions of a text, each channel for itself, that a cache can continue.

Letters: B batch, T positions, C channels, W width of the kernel, P = W - 1 positions before the first.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.kernels.table import ARRAY, kernel, run
from tallow.nn.cache import KVCache
from tallow.nn.convolution import Conv1d
from tallow.ops.joining import cat
from tallow.tape.modes import computes_values_only, no_grad


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
        batch, _, channels = x_BTC.shape
        width = self.weight.shape[-1]
        states = None if cache is None else cache.states(layer)
        past_BPC = x_BTC.new_zeros(batch, width - 1, channels) if states is None else states[self.state]
        operands = x_BTC, past_BPC.to(x_BTC.dtype), self.weight.squeeze(1), self.bias
        if computes_values_only():
            arrays = run("short_convolution", *[each if each is None else each.array for each in operands])
            y_BTC, past_BPC = map(wrap, arrays)
        else:
            y_BTC, past_BPC = _convolved(*operands)
        if cache is not None:
            cache.store(layer, **{self.state: past_BPC})
        return y_BTC


@kernel("short_convolution", ARRAY)
def short_convolution(x_BTC: Array, past_BPC: Array, weight_CW: Array, bias_C: Array | None) -> tuple[Array, Array]:
    """Return the outputs, and the last P of the inputs with those before."""
    bias = None if bias_C is None else wrap(bias_C)
    with no_grad():
        y, past = _convolved(wrap(x_BTC), wrap(past_BPC), wrap(weight_CW), bias)
    return y.array, past.array


def _convolved(x_BTC: Tensor, past_BPC: Tensor, weight_CW: Tensor, bias_C: Tensor | None) -> tuple[Tensor, Tensor]:
    count, width = x_BTC.shape[1], weight_CW.shape[1]
    inputs = apply(cat, [past_BPC, x_BTC], 1)
    parts = [inputs[:, i : i + count] * weight_CW[:, i] for i in range(width)]
    total = parts[0] if bias_C is None else parts[0] + bias_C
    for part in parts[1:]:
        total = total + part
    return total, inputs[:, inputs.shape[1] - width + 1 :]
