"""Seed-OSS: Llama's transformer with biases on queries, keys and values.

Loads Hugging Face folders of `SeedOssForCausalLM`, `SeedOssModel`, and the heads for texts, tokens and answers.

Source:  ByteDance Seed Team 2025, https://github.com/ByteDance-Seed/seed-oss; names as in transformers'
         `modeling_seed_oss.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.fused.eligibility import Kind, Pattern
from tallow.models.decoders.layers import DropoutDecoderLayer
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaModel


@dataclass(frozen=True, kw_only=True)
class SeedOssConfig(LlamaConfig):
    """The sizes of a Seed-OSS, as LlamaConfig.

    Attributes:
        attention_out_bias: whether the last projection of attention has a bias.
        residual_dropout: the dropout probability of what attention and feed-forward add.
    """

    num_key_value_heads: int = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False
    attention_dropout: float = 0.1
    residual_dropout: float = 0.1
    bos_token_id: int = 0
    pad_token_id: int | None = 1

    model_types: ClassVar[tuple[str, ...]] = ("seed_oss",)

    @property
    def output_bias(self) -> bool:
        return self.attention_out_bias


class SeedOssModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = SeedOssConfig
    layer_class = DropoutDecoderLayer


class SeedOss(Llama):
    """A language model; Hugging Face's `SeedOssForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = SeedOssModel
    fused_pattern = Pattern({**Llama.fused_pattern.kinds, DropoutDecoderLayer: Kind(dropout=("residual_dropout",))})
