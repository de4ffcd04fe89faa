"""Helium: Llama's transformer whose rotary pairs are neighbours.

Loads Hugging Face folders of `HeliumForCausalLM`, `HeliumModel`, and the heads for texts and tokens.

Source:  Kyutai 2025, https://kyutai.org/helium; names as in transformers' `modeling_helium.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaModel


@dataclass(frozen=True, kw_only=True)
class HeliumConfig(LlamaConfig):
    """The sizes of a Helium, as LlamaConfig."""

    num_key_value_heads: int = 20
    head_dim: int | None = 128
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-8
    rope_theta: float = 100_000.0
    rope_interleaved: bool = True
    pad_token_id: int | None = 3

    model_types: ClassVar[tuple[str, ...]] = ("helium",)
    files_interleave: ClassVar[bool] = True

    @property
    def output_bias(self) -> bool:
        return False


class HeliumModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = HeliumConfig


class Helium(Llama):
    """A language model; Hugging Face's `HeliumForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = HeliumModel
