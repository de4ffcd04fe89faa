"""Gemma: Llama's transformer with scaled embeddings, norms about one, GELU gates, and wide heads.

Loads folders of Hugging Face's `GemmaForCausalLM`.

Source:  Gemma Team 2024, arXiv:2403.08295; names as in transformers' `modeling_gemma.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.apply import apply
from tallow.models.llama import Llama, LlamaConfig, LlamaDecoderLayer, LlamaMLP, LlamaModel
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.normalization import RMSNorm
from tallow.ops.gates import gelu_mul
from tallow.tensor import Tensor


@dataclass(frozen=True, kw_only=True)
class GemmaConfig(LlamaConfig):
    """The sizes of a Gemma, as LlamaConfig."""

    num_key_value_heads: int = 16
    max_position_embeddings: int = 8192
    head_dim: int | None = 256
    bos_token_id: int = 2
    eos_token_id: tuple[int, ...] = (1,)
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("gemma",)
    # All of them mean the approximation by tanh: it is what Gemma was trained with, whatever its first configs say.
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "hidden_act": ("gelu_pytorch_tanh", "gelu"),
        "hidden_activation": ("gelu_pytorch_tanh",),
        "use_bidirectional_attention": (False,),
    }


class GemmaRMSNorm(RMSNorm):
    """x / sqrt(mean(x²) + eps) ⊙ (1 + weight)"""

    def reset_parameters(self) -> None:
        assert self.weight is not None
        init.zeros_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return F.rms_norm(input, self.normalized_shape, 1 + self.weight, self.eps)


class GemmaMLP(LlamaMLP):
    """down(gelu(gate(x)) ⊙ up(x)).  Source: Shazeer 2020, arXiv:2002.05202, GEGLU"""

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(apply(gelu_mul, self.gate_proj(x_BTD), self.up_proj(x_BTD)))


class GemmaDecoderLayer(LlamaDecoderLayer):
    mlp_class = GemmaMLP
    norm_class = GemmaRMSNorm


class GemmaModel(LlamaModel):
    layer_class: ClassVar[type[LlamaDecoderLayer]] = GemmaDecoderLayer

    def embed(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.embed_tokens(tokens_BT)
        return x_BTD * x_BTD.new_tensor(x_BTD.shape[-1] ** 0.5)  # rounded to the embeddings' dtype, as in training


class Gemma(Llama):
    """A language model; Hugging Face's `GemmaForCausalLM`.

    Args:    as Llama
    """

    config_class = GemmaConfig
    model_class = GemmaModel
