"""EXAONE 4: Llama's transformer with norms after each part and on every head of queries and keys; the larger model has
a sliding window in three of four layers, which alone rotate.

Loads Hugging Face folders of `Exaone4ForCausalLM`, `Exaone4Model`, and the heads for texts, tokens and answers.

Source:  LG AI Research 2025, arXiv:2507.11407; names as in transformers' `modeling_exaone4.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.config import Count
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.layers import PostNormDecoderLayer
from tallow.models.decoders.llama import Llama, LlamaModel
from tallow.models.decoders.qwen import Qwen3Attention


@dataclass(frozen=True, kw_only=True)
class Exaone4Config(LayerTypesConfig):
    """The sizes of an EXAONE 4, as LayerTypesConfig. Without layer_types every `sliding_window_pattern`-th layer sees
    all positions."""

    rms_norm_eps: float = 1e-5
    sliding_window_pattern: Count = 4
    bos_token_id: int = 0

    model_types: ClassVar[tuple[str, ...]] = ("exaone4",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("sliding_window", 4096)  # null means no window, a missing entry 4096
        if isinstance(entries.get("sliding_window_pattern"), str):  # "LLLG", a letter for each of the layers
            entries["sliding_window_pattern"] = len(entries["sliding_window_pattern"])

    def slides(self, layer: int) -> bool:
        return self.sliding_window_pattern > 0 and (layer + 1) % self.sliding_window_pattern != 0

    def rotates(self, layer: int) -> bool:
        return self.sliding_window is None or self.is_sliding(layer)


class Exaone4DecoderLayer(PostNormDecoderLayer):
    """A layer with norms after each part and Qwen3's attention."""

    attention_class = Qwen3Attention


class Exaone4Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Exaone4Config
    layer_class = Exaone4DecoderLayer


class Exaone4(Llama):
    """A language model; Hugging Face's `Exaone4ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Exaone4Model
