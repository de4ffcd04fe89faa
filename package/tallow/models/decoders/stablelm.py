"""StableLM: Llama's transformer with layer norms and a part of each head that rotates; attention and feed-forward may
be in parallel, and each head of queries and keys may have a layer norm of its own.

Loads Hugging Face folders of `StableLmForCausalLM`, `StableLmModel`, and the heads for texts and tokens.

Source:  Bellagente et al. 2024, arXiv:2402.17834; names as in transformers' `modeling_stablelm.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.models.decoders.layers import BiaslessLayerNorm
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class StableLmConfig(PartialRotaryConfig):
    """The sizes of a StableLM, as PartialRotaryConfig.

    Attributes:
        use_qkv_bias: whether the projections to queries, keys and values have biases.
        qk_layernorm: whether each head of queries and keys has a layer norm.
        use_parallel_residual: attention and feed-forward are in parallel after one norm.
    """

    max_position_embeddings: int = 4096
    partial_rotary_factor: float = 0.25
    layer_norm_eps: float = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    bos_token_id: int = 0
    eos_token_id: tuple[int, ...] = (0,)

    model_types: ClassVar[tuple[str, ...]] = ("stablelm",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"attention_bias", "mlp_bias", "rms_norm_eps", "head_dim"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_dropout": (0.0,)}
    neutral: ClassVar[frozenset[str]] = frozenset({"norm_eps", "rotary_scaling_factor"})  # of StableLM Alpha

    @property
    def input_bias(self) -> bool:
        return self.use_qkv_bias

    @property
    def output_bias(self) -> bool:
        return False

    @property
    def norm_eps(self) -> float:
        return self.layer_norm_eps


class StableLmLayerNormPerHead(Module):
    """A layer norm for each head of (B, heads, T, K)."""

    def __init__(self, width: int, heads: int, eps: float, device: Any, dtype: Any) -> None:
        super().__init__()
        self.norms = ModuleList(BiaslessLayerNorm(width, eps, device=device, dtype=dtype) for _ in range(heads))

    def forward(self, x: Tensor) -> Tensor:
        return apply(cat, [norm(x[:, i : i + 1]) for i, norm in enumerate(self.norms)], 1)


class StableLmAttention(LlamaAttention):
    """Llama's attention, which may have a layer norm for every head of queries and keys."""

    def __init__(self, config: StableLmConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.has_norms = config.qk_layernorm
        if self.has_norms:
            width, eps = config.head_width, config.norm_eps
            self.q_layernorm = StableLmLayerNormPerHead(width, self.num_heads, eps, device, dtype)
            self.k_layernorm = StableLmLayerNormPerHead(width, self.num_kv_heads, eps, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD)
        if self.has_norms:
            q_BHTK, k_BGTK = self.q_layernorm(q_BHTK), self.k_layernorm(k_BGTK)
        return q_BHTK, k_BGTK, v_BGTK


class StableLmDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with layer norms, or a parallel one."""

    attention_class = StableLmAttention
    norm_class = LayerNorm

    def __init__(self, config: StableLmConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.is_parallel = config.use_parallel_residual
        if self.is_parallel:
            del self.post_attention_layernorm

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        if not self.is_parallel:
            return super().forward(x_BTD, rotary, cache)
        normed_BTD = self.input_layernorm(x_BTD)
        return x_BTD + self.self_attn(normed_BTD, rotary, cache) + self.mlp(normed_BTD)


class StableLmModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = StableLmConfig
    layer_class = StableLmDecoderLayer


class StableLm(Llama):
    """A language model; Hugging Face's `StableLmForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = StableLmModel
