"""ERNIE 4.5: Llama's transformer whose rotary pairs are neighbours.

Loads Hugging Face folders of `Ernie4_5ForCausalLM` and `Ernie4_5Model`.

Source:  ERNIE Team 2025, https://github.com/PaddlePaddle/ERNIE; names as in transformers' `modeling_ernie4_5.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaModel
from tallow.models.decoders.llama_config import UseBiasConfig


@dataclass(frozen=True, kw_only=True)
class Ernie4_5Config(UseBiasConfig):
    """The sizes of an ERNIE 4.5, as UseBiasConfig."""

    num_key_value_heads: int = 2
    max_position_embeddings: int = 131072
    head_dim: int | None = 128
    rms_norm_eps: float = 1e-5
    rope_theta: float = 500_000.0
    rope_interleaved: bool = True
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("ernie4_5",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"attention_bias", "mlp_bias", "attention_dropout"}
    files_interleave: ClassVar[bool] = True


class Ernie4_5Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Ernie4_5Config


class Ernie4_5(Llama):
    """A language model; Hugging Face's `Ernie4_5ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Ernie4_5Model
