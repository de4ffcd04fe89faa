"""Phi-1, Phi-1.5 and Phi-2: attention and feed-forward in parallel after one layer norm, biases everywhere, and a part
of each head that rotates.

Loads Hugging Face folders of `PhiForCausalLM`, `PhiModel`, and the heads for texts and tokens.

Source:  Li et al. 2023, arXiv:2309.05463; names as in transformers' `modeling_phi.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.layers import DropoutDecoderLayer, ParallelDecoderLayer, PlainMLP
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaModel
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.nn import functional as F
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class PhiConfig(PartialRotaryConfig):
    """The sizes of a Phi, as PartialRotaryConfig.

    Attributes:
        qk_layernorm: whether each head of queries and keys has a layer norm.
        resid_pdrop, embd_pdrop: the dropout probabilities of what attention and feed-forward add, and of embeddings.
    """

    hidden_act: str = "gelu_new"
    partial_rotary_factor: float = 0.5
    layer_norm_eps: float = 1e-5
    qk_layernorm: bool = False
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0

    model_types: ClassVar[tuple[str, ...]] = ("phi",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"attention_bias", "mlp_bias", "rms_norm_eps"}

    @property
    def input_bias(self) -> bool:
        return True

    @property
    def output_bias(self) -> bool:
        return True

    @property
    def feed_forward_bias(self) -> bool:
        return True

    @property
    def residual_dropout(self) -> float:
        """`resid_pdrop`, under the name of other configs."""
        return self.resid_pdrop

    @property
    def norm_eps(self) -> float:
        return self.layer_norm_eps


class PhiAttention(LlamaAttention):
    """Llama's attention, which may have a layer norm on every head of queries and keys."""

    output_name = "dense"

    def __init__(self, config: PhiConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.has_norms = config.qk_layernorm
        if self.has_norms:
            self.q_layernorm = LayerNorm(config.head_width, config.norm_eps, device=device, dtype=dtype)
            self.k_layernorm = LayerNorm(config.head_width, config.norm_eps, device=device, dtype=dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD)
        if self.has_norms:
            q_BHTK, k_BGTK = self.q_layernorm(q_BHTK), self.k_layernorm(k_BGTK)
        return q_BHTK, k_BGTK, v_BGTK


class PhiDecoderLayer(DropoutDecoderLayer, ParallelDecoderLayer):
    """A parallel layer with Phi's attention."""

    attention_class = PhiAttention
    mlp_class = PlainMLP
    norm_class = LayerNorm


class PhiModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = PhiConfig
    layer_class = PhiDecoderLayer
    norm_name = "final_layernorm"

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return F.dropout(super().embed(tokens_BT), self.config.embd_pdrop, self.training)


class Phi(Llama):
    """A language model; Hugging Face's `PhiForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = PhiModel
    head_bias = True
