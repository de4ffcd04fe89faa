"""Mistral: Llama's transformer with a sliding window for queries.

Loads Hugging Face folders of `MistralForCausalLM`, `MistralModel`, and the heads for texts, tokens and answers.

Source:  Jiang et al. 2023, arXiv:2310.06825; names as in transformers' `modeling_mistral.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaModel


@dataclass(frozen=True, kw_only=True)
class MistralConfig(LlamaConfig):
    """The sizes of a Mistral, as LlamaConfig."""

    num_key_value_heads: int = 8
    max_position_embeddings: int = 131072

    model_types: ClassVar[tuple[str, ...]] = ("mistral",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("sliding_window", 4096)  # null means no window, a missing entry 4096


class MistralModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = MistralConfig


class Mistral(Llama):
    """A language model; Hugging Face's `MistralForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = MistralModel
