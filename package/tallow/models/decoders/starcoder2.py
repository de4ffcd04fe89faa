"""StarCoder2: Llama's transformer with layer norms, biases, and a feed-forward part without a gate.

Loads Hugging Face folders of `Starcoder2ForCausalLM`, `Starcoder2Model`, and the heads for texts and tokens.

Source:  Lozhkov et al. 2024, arXiv:2402.19173; names as in transformers' `modeling_starcoder2.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.layers import DropoutDecoderLayer, PlainMLP
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaModel
from tallow.models.decoders.llama_config import UseBiasConfig
from tallow.nn import functional as F
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class Starcoder2Config(UseBiasConfig):
    """The sizes of a StarCoder2, as UseBiasConfig.

    Attributes:
        norm_epsilon: the number that layer norms add to the variance.
        residual_dropout, embedding_dropout: the dropout probabilities of what attention and feed-forward add, and of
            embeddings.
    """

    num_key_value_heads: int = 2
    max_position_embeddings: int = 4096
    hidden_act: str = "gelu_pytorch_tanh"
    norm_epsilon: float = 1e-5
    use_bias: bool = True
    residual_dropout: float = 0.0
    embedding_dropout: float = 0.0
    bos_token_id: int = 50256
    eos_token_id: tuple[int, ...] = (50256,)
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("starcoder2",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias", "rms_norm_eps"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "norm_type": ("layer_norm",),
        "mlp_type": ("default",),
    }

    @property
    def norm_eps(self) -> float:
        return self.norm_epsilon


class Starcoder2MLP(PlainMLP):
    """c_proj(activation(c_fc(x)))"""

    names = ("c_fc", "c_proj")


class Starcoder2DecoderLayer(DropoutDecoderLayer):
    """A Llama layer with layer norms and a feed-forward part without a gate."""

    mlp_class = Starcoder2MLP
    norm_class = LayerNorm


class Starcoder2Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Starcoder2Config
    layer_class = Starcoder2DecoderLayer

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return F.dropout(super().embed(tokens_BT), self.config.embedding_dropout, self.training)


class Starcoder2(Llama):
    """A language model; Hugging Face's `Starcoder2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Starcoder2Model
