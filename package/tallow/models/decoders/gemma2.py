"""Gemma 2: Gemma's transformer with norms also after each part, soft caps on scores and logits, and a sliding window
in every other layer.

Loads Hugging Face folders of `Gemma2ForCausalLM`, `Gemma2Model`, and the heads for texts and tokens.

Source:  Gemma Team 2024, arXiv:2408.00118; names as in transformers' `modeling_gemma2.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.gemma import Gemma, GemmaConfig, GemmaDecoderLayer, GemmaModel
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.llama import LlamaAttention
from tallow.nn.attention import soft_cap
from tallow.nn.cache import KVCache
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class Gemma2Config(GemmaConfig, LayerTypesConfig):
    """The sizes of a Gemma 2, as GemmaConfig and LayerTypesConfig. Without layer_types every other layer, from the
    first on, has the sliding window.

    Attributes:
        hidden_activation: the activation of the feed-forward parts; hidden_act is not read.
        query_pre_attn_scalar: scores are divided by its root instead of the root of the head width.
        attn_logit_softcapping, final_logit_softcapping: the bounds of scores and logits; None means no cap.
    """

    num_key_value_heads: int = 4
    hidden_activation: str = "gelu_pytorch_tanh"
    query_pre_attn_scalar: float = 256
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None

    model_types: ClassVar[tuple[str, ...]] = ("gemma2",)
    unread: ClassVar[frozenset[str]] = frozenset({"hidden_act", "mlp_bias"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"):
            self.require(name, "a positive number", lambda value: value is None or value > 0)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        # null in the file means no window and no cap; a missing entry means the first model's value.
        entries.setdefault("sliding_window", 4096)
        entries.setdefault("attn_logit_softcapping", 50.0)
        entries.setdefault("final_logit_softcapping", 30.0)

    @property
    def activation(self) -> str:
        return self.hidden_activation

    def slides(self, layer: int) -> bool:
        return layer % 2 == 0


class Gemma2Attention(LlamaAttention):
    """Llama's attention with another scale of the scores, and a soft cap."""

    def __init__(self, config: Gemma2Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.scale = config.query_pre_attn_scalar**-0.5
        self.softcap = config.attn_logit_softcapping


class Gemma2DecoderLayer(GemmaDecoderLayer):
    """Attention and feed-forward, each between two norms and added to its input."""

    attention_class = Gemma2Attention

    def __init__(self, config: Gemma2Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        norm = partial(self.norm_class, config.hidden_size, config.rms_norm_eps, device=device, dtype=dtype)
        self.pre_feedforward_layernorm = norm()
        self.post_feedforward_layernorm = norm()

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        attended_BTD = self.self_attn(self.input_layernorm(x_BTD), rotary, cache)
        x_BTD = x_BTD + self.post_attention_layernorm(attended_BTD)
        return x_BTD + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x_BTD)))


class Gemma2Model(GemmaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Gemma2Config
    layer_class = Gemma2DecoderLayer


class Gemma2(Gemma):
    """A language model; Hugging Face's `Gemma2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[Gemma2Model]] = Gemma2Model

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return soft_cap(super().logits(hidden_BTD), self.config.final_logit_softcapping)
