"""Cohere's Command R: attention and feed-forward in parallel after one layer norm without bias, rotary pairs that are
neighbours, and scaled logits; Command R7B and A (`cohere2`) rotate only in layers with a sliding window.

Loads Hugging Face folders of `CohereForCausalLM`, `CohereModel`, `Cohere2ForCausalLM` and `Cohere2Model`.

Source:  Cohere 2025, arXiv:2504.00698; names as in transformers' `modeling_cohere.py` and `modeling_cohere2.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.layers import BiaslessLayerNorm, ParallelDecoderLayer
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class CohereConfig(LlamaConfig):
    """The sizes of a Command R, as LlamaConfig.

    Attributes:
        logit_scale: the factor of logits.
        use_qk_norm: whether each head of queries and keys has a layer norm.
    """

    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    rope_theta: float = 500_000.0
    rope_interleaved: bool = True
    logit_scale: float = 0.0625
    use_qk_norm: bool = False
    bos_token_id: int = 5
    eos_token_id: tuple[int, ...] = (255001,)
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("cohere",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias", "rms_norm_eps"}
    files_interleave: ClassVar[bool] = True

    @property
    def norm_eps(self) -> float:
        return self.layer_norm_eps


class HeadsNorm(LayerNorm):
    """A LayerNorm of each head of (B, heads, T, K), with weights (heads, K)."""

    def __init__(self, heads: int, width: int, eps: float, device: Any, dtype: Any) -> None:
        super().__init__((heads, width), eps, bias=False, device=device, dtype=dtype)

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        centered = input - input.mean(-1, keepdim=True)
        scale = (centered.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return centered * scale * self.weight[:, None]


class CohereAttention(LlamaAttention):
    """Llama's attention, which may have a layer norm on every head of queries and keys."""

    def __init__(self, config: CohereConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.has_norms = config.use_qk_norm
        if self.has_norms:
            width, eps = config.head_width, config.norm_eps
            self.q_norm = HeadsNorm(self.num_heads, width, eps, device, dtype)
            self.k_norm = HeadsNorm(self.num_kv_heads, width, eps, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD)
        if self.has_norms:
            q_BHTK, k_BGTK = self.q_norm(q_BHTK), self.k_norm(k_BGTK)
        return q_BHTK, k_BGTK, v_BGTK


class CohereDecoderLayer(ParallelDecoderLayer):
    """A parallel layer with Cohere's norms."""

    attention_class = CohereAttention
    norm_class = BiaslessLayerNorm


class CohereModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = CohereConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = CohereDecoderLayer


class Cohere(Llama):
    """A language model; Hugging Face's `CohereForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = CohereModel

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return super().logits(hidden_BTD) * self.config.logit_scale


@dataclass(frozen=True, kw_only=True)
class Cohere2Config(CohereConfig, LayerTypesConfig):
    """The sizes of a Command R7B, as CohereConfig and LayerTypesConfig. Without layer_types every
    `sliding_window_pattern`-th layer sees all positions."""

    rope_theta: float = 10_000.0
    sliding_window_pattern: int = 4

    model_types: ClassVar[tuple[str, ...]] = ("cohere2",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias", "rms_norm_eps", "use_qk_norm", "head_dim"})
    neutral: ClassVar[frozenset[str]] = LlamaConfig.neutral | {"order_of_interleaved_layers", "rotary_pct"}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("sliding_window", 4096)  # null means no window, a missing entry 4096

    def slides(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def rotates(self, layer: int) -> bool:
        return self.window_of(layer) is not None


class Cohere2Model(CohereModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Cohere2Config


class Cohere2(Cohere):
    """A language model; Hugging Face's `Cohere2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Cohere2Model
