"""SmolLM3: Llama's transformer, in which every fourth layer does not rotate queries and keys.

Loads Hugging Face folders of `SmolLM3ForCausalLM`, `SmolLM3Model`, and the heads for texts, tokens and answers.

Source:  Yang et al. 2025, arXiv:2501.18795, for the layers without positions; names as in transformers'
         `modeling_smollm3.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.config import tupled
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.llama import Llama, LlamaModel


@dataclass(frozen=True, kw_only=True)
class SmolLM3Config(LayerTypesConfig):
    """The sizes of a SmolLM3, as LayerTypesConfig.

    Attributes:
        no_rope_layers: for each layer 1 if queries and keys rotate with the position, 0 if not; None means that every
            `no_rope_layer_interval`-th does not.
        use_sliding_window: without layer_types, whether layers that do not rotate have the sliding window.
    """

    num_key_value_heads: int = 4
    max_position_embeddings: int = 32768
    rope_theta: float = 2_000_000.0
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4
    use_sliding_window: bool = False
    bos_token_id: int = 128000
    eos_token_id: tuple[int, ...] = (128001,)
    pad_token_id: int | None = 128004
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("smollm3",)
    unread: ClassVar[frozenset[str]] = frozenset()
    neutral: ClassVar[frozenset[str]] = frozenset({"max_window_layers", "pretraining_tp"})  # of Qwen2 and Llama

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "no_rope_layers",
            "a number for each layer",
            lambda kinds: kinds is None or len(kinds) >= self.num_hidden_layers,
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        tupled(entries, "no_rope_layers")

    def rotates(self, layer: int) -> bool:
        if self.no_rope_layers is None:
            return (layer + 1) % self.no_rope_layer_interval != 0
        return self.no_rope_layers[layer] != 0

    def slides(self, layer: int) -> bool:
        return self.use_sliding_window and not self.rotates(layer)


class SmolLM3Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = SmolLM3Config


class SmolLM3(Llama):
    """A language model; Hugging Face's `SmolLM3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = SmolLM3Model
