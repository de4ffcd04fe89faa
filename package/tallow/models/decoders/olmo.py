"""OLMo: Llama's transformer with layer norms that have no weights; OLMo 2 and 3: with norms after each part, and on
all queries and on all keys of a token. Three of four layers of OLMo 3 have a sliding window.

Loads Hugging Face folders of `OlmoForCausalLM`, `OlmoModel`, and the head for texts, and the same of OLMo 2 and 3.

Source:  Groeneveld et al. 2024, arXiv:2402.00838; OLMo Team 2025, arXiv:2501.00656; names as in transformers'
         `modeling_olmo.py`, `modeling_olmo2.py` and `modeling_olmo3.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.layer_types import LocalRotaryConfig, LocalRotaryModel
from tallow.models.decoders.layers import PostNormDecoderLayer
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.attention import split_heads
from tallow.nn.normalization import LayerNorm, RMSNorm


@dataclass(frozen=True, kw_only=True)
class OlmoConfig(LlamaConfig):
    """The sizes of an OLMo, as LlamaConfig.

    Attributes:
        clip_qkv: the largest magnitude of queries, keys and values; None means any.
    """

    clip_qkv: float | None = None
    eos_token_id: tuple[int, ...] = (50279,)
    pad_token_id: int | None = 1

    model_types: ClassVar[tuple[str, ...]] = ("olmo",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias", "rms_norm_eps"}

    @property
    def norm_eps(self) -> float:
        return 1e-5


class OlmoAttention(LlamaAttention):
    """Llama's attention with a bound of queries, keys and values."""

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.bound = config.clip_qkv

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD)
        if self.bound is None:
            return q_BHTK, k_BGTK, v_BGTK
        low, high = -self.bound, self.bound
        return q_BHTK.clamp(low, high), k_BGTK.clamp(low, high), v_BGTK.clamp(low, high)


class OlmoLayerNorm(LayerNorm):
    """A LayerNorm without weights."""

    def __init__(self, normalized_shape: int, eps: float, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine=False, device=device, dtype=dtype)


class OlmoDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with OLMo's norms."""

    attention_class = OlmoAttention
    norm_class = OlmoLayerNorm


class OlmoModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = OlmoConfig
    layer_class = OlmoDecoderLayer


class Olmo(Llama):
    """A language model; Hugging Face's `OlmoForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = OlmoModel


@dataclass(frozen=True, kw_only=True)
class Olmo2Config(LlamaConfig):
    """The sizes of an OLMo 2, as LlamaConfig."""

    rms_norm_eps: float = 1e-5
    eos_token_id: tuple[int, ...] = (50279,)
    pad_token_id: int | None = 1

    model_types: ClassVar[tuple[str, ...]] = ("olmo2",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias"}


class Olmo2Attention(LlamaAttention):
    """Llama's attention with a norm on the queries of all heads together, and one on the keys."""

    def __init__(self, config: Any, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        widths = self.num_heads * config.head_width, self.num_kv_heads * config.head_width
        self.q_norm, self.k_norm = (RMSNorm(width, config.rms_norm_eps, device=device, dtype=dtype) for width in widths)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (
            split_heads(self.q_norm(self.q_proj(x_BTD)), self.num_heads),
            split_heads(self.k_norm(self.k_proj(x_BTD)), self.num_kv_heads),
            split_heads(self.v_proj(x_BTD), self.num_kv_heads),
        )


class Olmo2DecoderLayer(PostNormDecoderLayer):
    """A layer with norms after each part and OLMo 2's attention."""

    attention_class = Olmo2Attention


class Olmo2Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Olmo2Config
    layer_class = Olmo2DecoderLayer


class Olmo2(Llama):
    """A language model; Hugging Face's `Olmo2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = Olmo2Model


@dataclass(frozen=True, kw_only=True)
class Olmo3Config(Olmo2Config, LocalRotaryConfig):
    """The sizes of an OLMo 3, as Olmo2Config and LocalRotaryConfig. Without layer_types every fourth layer sees all
    positions."""

    rope_theta: float = 500_000.0

    model_types: ClassVar[tuple[str, ...]] = ("olmo3",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("sliding_window", 4096)  # null means no window, a missing entry 4096

    def slides(self, layer: int) -> bool:
        return (layer + 1) % 4 != 0


class Olmo3Model(Olmo2Model, LocalRotaryModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Olmo3Config


class Olmo3(Olmo2):
    """A language model; Hugging Face's `Olmo3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Olmo3Model
