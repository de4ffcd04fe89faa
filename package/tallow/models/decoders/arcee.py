"""Arcee: Llama's transformer with a feed-forward part of squared ReLU, without a gate.

Loads Hugging Face folders of `ArceeForCausalLM`, `ArceeModel`, and the heads for texts, tokens and answers.

Source:  Arcee AI 2025, https://www.arcee.ai/blog/announcing-the-arcee-foundation-model-family; So et al. 2021,
         arXiv:2109.08668; names as in transformers' `modeling_arcee.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.decoders.layers import PlainMLP
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaDecoderLayer, LlamaModel


@dataclass(frozen=True, kw_only=True)
class ArceeConfig(LlamaConfig):
    """The sizes of an Arcee, as LlamaConfig."""

    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    bos_token_id: int = 128000
    eos_token_id: tuple[int, ...] = (128001,)

    model_types: ClassVar[tuple[str, ...]] = ("arcee",)


class ArceeMLP(PlainMLP):
    """down_proj(activation(up_proj(x)))"""

    names = ("up_proj", "down_proj")


class ArceeDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with a feed-forward part without a gate."""

    mlp_class = ArceeMLP


class ArceeModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = ArceeConfig
    layer_class = ArceeDecoderLayer


class Arcee(Llama):
    """A language model; Hugging Face's `ArceeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = ArceeModel
