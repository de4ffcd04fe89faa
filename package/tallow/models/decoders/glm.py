"""GLM-4: Llama's transformer whose rotary pairs are neighbours, in half of each head, and with one matrix for gate and
up; the models of 2025 (`glm4`) have norms after each part, too.

Loads Hugging Face folders of `GlmForCausalLM`, `GlmModel`, and the heads for texts and tokens, and the same of `Glm4`.

Source:  GLM Team 2024, arXiv:2406.12793; names as in transformers' `modeling_glm.py` and `modeling_glm4.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.models.decoders.phi3 import Phi3MLP
from tallow.nn.cache import KVCache
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class GlmConfig(PartialRotaryConfig):
    """The sizes of a GLM-4, as PartialRotaryConfig."""

    num_key_value_heads: int = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 0.00000015625
    rope_interleaved: bool = True
    partial_rotary_factor: float = 0.5
    attention_bias: bool = True
    eos_token_id: tuple[int, ...] = (151329, 151336, 151338)
    pad_token_id: int | None = 151329

    model_types: ClassVar[tuple[str, ...]] = ("glm",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias"}
    files_interleave: ClassVar[bool] = True

    @property
    def output_bias(self) -> bool:
        return False


class GlmDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with one matrix for gate and up."""

    mlp_class = Phi3MLP


class GlmModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GlmConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = GlmDecoderLayer


class Glm(Llama):
    """A language model; Hugging Face's `GlmForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = GlmModel


@dataclass(frozen=True, kw_only=True)
class Glm4Config(GlmConfig):
    """The sizes of a GLM-4-0414, as GlmConfig."""

    model_types: ClassVar[tuple[str, ...]] = ("glm4",)


class Glm4DecoderLayer(GlmDecoderLayer):
    """Attention and feed-forward, each between two norms and added to its input."""

    def __init__(self, config: Glm4Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.post_self_attn_layernorm = self.new_norm(config, device, dtype)
        self.post_mlp_layernorm = self.new_norm(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        attended_BTD = self.self_attn(self.input_layernorm(x_BTD), rotary, cache)
        x_BTD = x_BTD + self.post_self_attn_layernorm(attended_BTD)
        return x_BTD + self.post_mlp_layernorm(self.mlp(self.post_attention_layernorm(x_BTD)))


class Glm4Model(GlmModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Glm4Config
    layer_class = Glm4DecoderLayer


class Glm4(Glm):
    """A language model; Hugging Face's `Glm4ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Glm4Model
