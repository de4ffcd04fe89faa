"""Hunyuan (dense): Llama's transformer with norms on queries and keys after they are rotated.

Loads Hugging Face folders of `HunYuanDenseV1ForCausalLM`, `HunYuanDenseV1Model`, and the head for texts.

Source:  Tencent Hunyuan Team 2025, https://github.com/Tencent-Hunyuan; names as in transformers'
         `modeling_hunyuan_v1_dense.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.config import MAX_SIZE
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class HunYuanDenseV1Config(LlamaConfig):
    """The sizes of a Hunyuan, as LlamaConfig. Its rope_scaling of type "dynamic" may have an `alpha`, which changes the
    base of all angles: `from_json` reads it as another `rope_theta`."""

    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0

    model_types: ClassVar[tuple[str, ...]] = ("hunyuan_v1_dense",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias"}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        rope = entries["rope_scaling"]
        if not isinstance(rope, dict) or not rope.get("alpha"):
            return
        width = entries.get("head_dim")
        if width is None and type(heads := entries.get("num_attention_heads")) is int and heads > 0:
            width = entries.get("hidden_size", 0) // heads if type(entries.get("hidden_size")) is int else None
        base, alpha = entries.get("rope_theta", cls.rope_theta), rope["alpha"]
        kind = rope.get("rope_type", rope.get("type"))
        is_number = all(type(number) in (int, float) and 0 < number <= MAX_SIZE for number in (base, alpha))
        if kind == "dynamic" and is_number and type(width) is int and 2 < width < 2**16:
            entries |= {"rope_theta": base * alpha ** (width / (width - 2)), "rope_scaling": None}


class HunYuanDenseV1Attention(LlamaAttention):
    """Llama's attention with a norm on every head of queries and keys after they are rotated."""

    def __init__(self, config: HunYuanDenseV1Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        width, eps = config.head_width, config.rms_norm_eps
        self.query_layernorm = RMSNorm(width, eps, device=device, dtype=dtype)
        self.key_layernorm = RMSNorm(width, eps, device=device, dtype=dtype)

    def rotated(
        self, q_BHTK: Tensor, k_BGTK: Tensor, rotary: RotaryEmbedding, start: int = 0, padding: Any = None
    ) -> tuple[Tensor, Tensor]:
        q_BHTK, k_BGTK = super().rotated(q_BHTK, k_BGTK, rotary, start, padding)
        return self.query_layernorm(q_BHTK), self.key_layernorm(k_BGTK)


class HunYuanDenseV1DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Hunyuan's attention."""

    attention_class = HunYuanDenseV1Attention


class HunYuanDenseV1Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = HunYuanDenseV1Config
    layer_class = HunYuanDenseV1DecoderLayer
    counts_from_text = True


class HunYuanDenseV1(Llama):
    """A language model; Hugging Face's `HunYuanDenseV1ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = HunYuanDenseV1Model
