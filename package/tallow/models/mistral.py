"""Mistral: Llama's transformer, whose queries see a sliding window of positions.

Loads folders of Hugging Face's `MistralForCausalLM`.

Source:  Jiang et al. 2023, arXiv:2310.06825; names as in transformers' `modeling_mistral.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.llama import Llama, LlamaConfig


@dataclass(frozen=True, kw_only=True)
class MistralConfig(LlamaConfig):
    """The sizes of a Mistral, as LlamaConfig."""

    num_key_value_heads: int = 8
    max_position_embeddings: int = 131072

    model_types: ClassVar[tuple[str, ...]] = ("mistral",)
    unread: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("sliding_window", 4096)  # null in the file is no window, and no entry is the first model's


class Mistral(Llama):
    """A language model; Hugging Face's `MistralForCausalLM`.

    Args:    as Llama
    """

    config_class = MistralConfig
