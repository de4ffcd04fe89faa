"""Gemma: Llama's transformer with scaled embeddings, norms that scale by 1 + weight, GELU gates, and wide heads.

Loads Hugging Face folders of `GemmaForCausalLM`, `GemmaModel`, and the heads for texts and tokens.

Source:  Gemma Team 2024, arXiv:2403.08295; names as in transformers' `modeling_gemma.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.normalization import RMSNorm


@dataclass(frozen=True, kw_only=True)
class GemmaConfig(LlamaConfig):
    """The sizes of a Gemma, as LlamaConfig."""

    num_key_value_heads: int = 16
    max_position_embeddings: int = 8192
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    bos_token_id: int = 2
    eos_token_id: tuple[int, ...] = (1,)
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("gemma",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "hidden_activation": ("gelu_pytorch_tanh",),
        "use_bidirectional_attention": (False,),
    }

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if entries.get("hidden_act") == "gelu":  # the first configs name the wrong GELU
            entries["hidden_act"] = "gelu_pytorch_tanh"


class GemmaRMSNorm(RMSNorm):
    """x / sqrt(mean(x²) + eps) ⊙ (1 + weight)"""

    def reset_parameters(self) -> None:
        assert self.weight is not None
        init.zeros_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return F.rms_norm(input, self.normalized_shape, 1 + self.weight, self.eps)


class GemmaDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Gemma's norms."""

    norm_class = GemmaRMSNorm


class GemmaModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GemmaConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = GemmaDecoderLayer

    def embed(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.embed_tokens(tokens_BT)
        return x_BTD * x_BTD.new_tensor(x_BTD.shape[-1] ** 0.5)  # rounded to the embeddings' dtype, as in training


class Gemma(Llama):
    """A language model; Hugging Face's `GemmaForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = GemmaModel
