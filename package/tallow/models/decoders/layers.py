"""Layers of decoders that differ from Llama's in the places of norms, and feed-forward parts without a gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.decoders.llama import LlamaConfig, LlamaDecoderLayer
from tallow.nn import functional as F
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm, RMSNorm
from tallow.nn.rotary import RotaryEmbedding


class ParallelDecoderLayer(LlamaDecoderLayer):
    """x + attention(n) + mlp(n), with n = norm(x).  Source: Wang & Komatsuzaki 2021, GPT-J-6B"""

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        del self.post_attention_layernorm

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        normed_BTD = self.input_layernorm(x_BTD)
        return x_BTD + self.added(self.self_attn(normed_BTD, rotary, cache)) + self.added(self.mlp(normed_BTD))


class DropoutDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with dropout, of the config's probability `residual_dropout`, of what each part adds."""

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.residual_dropout = config.residual_dropout

    def added(self, x_BTD: Tensor) -> Tensor:
        return F.dropout(x_BTD, self.residual_dropout, self.training)


class PostNormDecoderLayer(LlamaDecoderLayer):
    """Attention and feed-forward, each before a norm and added to its input.  Source: arXiv:2501.00656, section 3.1"""

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        del self.input_layernorm
        self.post_feedforward_layernorm = self.new_norm(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.post_attention_layernorm(self.self_attn(x_BTD, rotary, cache))
        return x_BTD + self.post_feedforward_layernorm(self.mlp(x_BTD))


class PlainMLP(Module):
    """second(activation(first(x))).

    Attributes:
        names: of the two layers.
    """

    names: ClassVar[Sequence[str]] = ("fc1", "fc2")

    def __init__(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, hidden, bias = config.hidden_size, config.intermediate_size, config.feed_forward_bias
        first, second = self.names
        self.add_module(first, Linear(width, hidden, bias, device, dtype))
        self.add_module(second, Linear(hidden, width, bias, device, dtype))
        self.activation = activation_named(config.activation)

    def forward(self, x_BTD: Tensor) -> Tensor:
        first, second = (getattr(self, name) for name in self.names)
        return second(self.activation(first(x_BTD)))


class BiaslessLayerNorm(LayerNorm):
    """A LayerNorm without a bias."""

    def __init__(self, normalized_shape: int, eps: float, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, bias=False, device=device, dtype=dtype)


class PlainRMSNorm(RMSNorm):
    """An RMSNorm without weights."""

    def __init__(self, normalized_shape: int, eps: float, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine=False, device=device, dtype=dtype)
