"""nanochat: Llama's transformer with norms that have no weights, on the embeddings and on rotated queries and keys too,
a feed-forward part of squared ReLU, a soft cap on logits, and rotation to the other side.

Loads Hugging Face folders of `NanoChatForCausalLM` and `NanoChatModel`.

Source:  Karpathy 2025, https://github.com/karpathy/nanochat; names as in transformers' `modeling_nanochat.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.models.decoders.layers import PlainMLP, PlainRMSNorm
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.attention import soft_cap
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class NanoChatConfig(LlamaConfig):
    """The sizes of a nanochat, as LlamaConfig.

    Attributes:
        final_logit_softcapping: the bound of logits; None means no cap.
    """

    hidden_act: str = "relu2"
    final_logit_softcapping: float | None = None
    bos_token_id: int = 0
    eos_token_id: tuple[int, ...] = (1,)
    pad_token_id: int | None = 1

    model_types: ClassVar[tuple[str, ...]] = ("nanochat",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("final_logit_softcapping", "a positive number", lambda value: value is None or value > 0)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.setdefault("final_logit_softcapping", 15.0)  # null means no cap, a missing entry 15


class BackwardRotary(RotaryEmbedding):
    """Rotates by the negative angles."""

    def _rows(self, positions_N: npt.NDArray[np.int64], scaled: int) -> tuple[Array, Array]:
        cos, sin = super()._rows(positions_N, scaled)
        return cos, -sin

    def _computed_tables(self, length: int, device: Any) -> tuple[Tensor, Tensor]:
        cos, sin = super()._computed_tables(length, device)
        return cos, -sin


class NanoChatAttention(LlamaAttention):
    """Llama's attention with norms on queries and keys after they are rotated."""

    def __init__(self, config: NanoChatConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.q_norm = self.k_norm = PlainRMSNorm(config.head_width, config.norm_eps)

    def rotated(
        self, q_BHTK: Tensor, k_BGTK: Tensor, rotary: RotaryEmbedding, start: int = 0, padding: Any = None
    ) -> tuple[Tensor, Tensor]:
        q_BHTK, k_BGTK = super().rotated(q_BHTK, k_BGTK, rotary, start, padding)
        return self.q_norm(q_BHTK), self.k_norm(k_BGTK)


class NanoChatDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with nanochat's norms."""

    attention_class = NanoChatAttention
    mlp_class = PlainMLP
    norm_class = PlainRMSNorm


class NanoChatModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = NanoChatConfig
    layer_class = NanoChatDecoderLayer
    rotary_class = BackwardRotary

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return self.norm(super().embed(tokens_BT))


class NanoChat(Llama):
    """A language model; Hugging Face's `NanoChatForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = NanoChatModel

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return soft_cap(super().logits(hidden_BTD), self.config.final_logit_softcapping)
