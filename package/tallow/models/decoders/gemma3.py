"""Gemma 3 for texts: Gemma 2's transformer with norms on queries and keys instead of soft caps. Five of six layers have
a sliding window, and rotary angles of their own.

Loads Hugging Face folders of `Gemma3ForCausalLM`, `Gemma3TextModel`, and the heads for texts.

Source:  Gemma Team 2025, arXiv:2503.19786; names as in transformers' `modeling_gemma3.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.gemma import GemmaRMSNorm
from tallow.models.decoders.gemma2 import Gemma2, Gemma2Attention, Gemma2Config, Gemma2DecoderLayer, Gemma2Model
from tallow.models.decoders.layer_types import LocalRotaryConfig, LocalRotaryModel
from tallow.models.decoders.qwen import Qwen3Attention


@dataclass(frozen=True, kw_only=True)
class Gemma3Config(Gemma2Config, LocalRotaryConfig):
    """The sizes of a Gemma 3, as Gemma2Config. Without layer_types every `sliding_window_pattern`-th layer sees all
    positions.

    Attributes:
        use_bidirectional_attention: positions see those on both sides, as in EmbeddingGemma; half of the sliding window
            is on each side.
    """

    max_position_embeddings: int = 131072
    rope_theta: float = 1_000_000.0
    rope_local_base_freq: float | None = 10_000.0
    sliding_window_pattern: int = 6
    use_bidirectional_attention: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("gemma3_text",)
    # The attention of transformers ignores it, so no model has been trained with it.
    neutral: ClassVar[frozenset[str]] = Gemma2Config.neutral | {"attn_logit_softcapping"}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
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


class Gemma3TextModel(Gemma2Model, LocalRotaryModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Gemma3Config
    layer_class = Gemma3DecoderLayer


class Gemma3(Gemma2):
    """A language model; Hugging Face's `Gemma3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Gemma3TextModel
