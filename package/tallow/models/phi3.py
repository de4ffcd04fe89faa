"""Phi-3: Llama's transformer, with one matrix for queries, keys and values, and one for gate and up.

Loads folders of Hugging Face's `Phi3ForCausalLM`, but for those whose rotary positions are scaled by "longrope".

Source:  Abdin et al. 2024, arXiv:2404.14219; names as in transformers' `modeling_phi3.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.apply import apply
from tallow.models.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.attention import split_heads
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.ops.silu_mul import silu_mul
from tallow.tensor import Tensor


@dataclass(frozen=True, kw_only=True)
class Phi3Config(LlamaConfig):
    """The sizes of a Phi-3, as LlamaConfig."""

    model_types: ClassVar[tuple[str, ...]] = ("phi3",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "resid_pdrop": (0.0,),
        "embd_pdrop": (0.0,),
    }
    neutral: ClassVar = LlamaConfig.neutral | {"original_max_position_embeddings"}  # counts with "longrope" only


class Phi3Attention(LlamaAttention):
    """Its queries, keys and values come out of one matrix, in this order."""

    def add_projections(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        heads = self.num_heads + 2 * self.num_kv_heads
        self.qkv_proj = Linear(config.hidden_size, heads * config.head_width, config.attention_bias, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heads = split_heads(self.qkv_proj(x_BTD), self.num_heads + 2 * self.num_kv_heads)
        q_BHTK, k_BGTK, v_BGTK = heads.split([self.num_heads, self.num_kv_heads, self.num_kv_heads], 1)
        return q_BHTK, k_BGTK, v_BGTK


class Phi3MLP(Module):
    """down(silu(gate) ⊙ up), gate and up the halves of one matrix's output."""

    def __init__(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, hidden, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_up_proj = Linear(width, 2 * hidden, bias, device, dtype)
        self.down_proj = Linear(hidden, width, bias, device, dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x_BTD).chunk(2, -1)
        return self.down_proj(apply(silu_mul, gate, up))


class Phi3DecoderLayer(LlamaDecoderLayer):
    attention_class = Phi3Attention
    mlp_class = Phi3MLP


class Phi3Model(LlamaModel):
    layer_class = Phi3DecoderLayer


class Phi3(Llama):
    """A language model; Hugging Face's `Phi3ForCausalLM`.

    Args:    as Llama
    """

    config_class = Phi3Config
    model_class = Phi3Model
