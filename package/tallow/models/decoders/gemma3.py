"""Gemma 3 for texts: Gemma 2's transformer with norms on queries and keys instead of soft caps. Five of six layers have
a sliding window, and rotary angles of their own.

Loads Hugging Face folders of `Gemma3ForCausalLM`, `Gemma3TextModel`, and the heads for texts.

Source:  Gemma Team 2025, arXiv:2503.19786; names as in transformers' `modeling_gemma3.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.gemma import GemmaRMSNorm
from tallow.models.decoders.gemma2 import Gemma2, Gemma2Attention, Gemma2Config, Gemma2DecoderLayer, Gemma2Model
from tallow.models.decoders.qwen import Qwen3Attention
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class Gemma3Config(Gemma2Config):
    """The sizes of a Gemma 3, as Gemma2Config. Without layer_types every `sliding_window_pattern`-th layer sees all
    positions.

    Attributes:
        rope_theta, rope_scaling: the base and the scaling of rotary angles in layers that see all positions.
        rope_local_base_freq, rope_local_scaling: the same in layers with a sliding window.
        use_bidirectional_attention: positions see those on both sides, as in EmbeddingGemma; half of the sliding window
            is on each side.
    """

    max_position_embeddings: int = 131072
    rope_theta: float = 1_000_000.0
    rope_local_base_freq: float = 10_000.0
    rope_local_scaling: Mapping[str, Any] | None = None
    sliding_window_pattern: int = 6
    use_bidirectional_attention: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("gemma3_text",)
    # The attention of transformers ignores it, so no model has been trained with it.
    neutral: ClassVar[frozenset[str]] = Gemma2Config.neutral | {"attn_logit_softcapping"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("rope_local_base_freq", "a positive number", lambda value: value > 0)
        self.require("rope_local_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
        # Raises for an unsupported scaling.
        local = (self.rope_local_base_freq, self.rope_local_scaling)
        frequencies(self.rotary_width, *local, self.max_position_embeddings)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """Read `rope_parameters` of both kinds of layers, or those of older files, in place."""
        cls.local_rotary(entries)
        if "_sliding_window_pattern" in entries:
            entries["sliding_window_pattern"] = entries.pop("_sliding_window_pattern")
        entries.setdefault("final_logit_softcapping", None)
        super().prepare(entries)
        entries["attn_logit_softcapping"] = None

    @property
    def sees_both_sides(self) -> bool:
        return self.use_bidirectional_attention or super().sees_both_sides

    def distance_of(self, layer: int) -> int | None:
        window = self.window_of(layer)
        return window // 2 if self.use_bidirectional_attention and window is not None else window

    def slides(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0


class Gemma3Attention(Gemma2Attention, Qwen3Attention):
    """Gemma 2's attention with Qwen3's norms on queries and keys."""

    head_norm_class = GemmaRMSNorm


class Gemma3DecoderLayer(Gemma2DecoderLayer):
    """A Gemma 2 layer with Gemma 3's attention."""

    attention_class = Gemma3Attention


class Gemma3TextModel(Gemma2Model):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Gemma3Config
    layer_class = Gemma3DecoderLayer

    def __init__(self, config: Gemma3Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.rotary_emb_local = RotaryEmbedding(
            config.rotary_width,
            config.rope_local_base_freq,
            scaling=config.rope_local_scaling,
            context=config.max_position_embeddings,
        )

    def rotary_of(self, layer: int) -> RotaryEmbedding:
        return self.rotary_emb_local if self.config.is_sliding(layer) else self.rotary_emb


class Gemma3(Gemma2):
    """A language model; Hugging Face's `Gemma3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Gemma3TextModel
