"""Granite: Llama's transformer with factors of embeddings, scores, residual connections and logits.

Loads Hugging Face folders of `GraniteForCausalLM` and `GraniteModel`; and Granite 4 without experts and without
state-space layers, `GraniteMoeHybridForCausalLM` and `GraniteMoeHybridModel`, which may have no rotary positions.

Source:  Granite Team 2024, https://github.com/ibm-granite/granite-3.0-language-models; Yang et al. 2022,
         arXiv:2203.03466, for the factors; names as in transformers' `modeling_granite.py` and
         `modeling_granitemoehybrid.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.models.decoders.phi3 import Phi3MLP


@dataclass(frozen=True, kw_only=True)
class GraniteConfig(LlamaConfig):
    """The sizes of a Granite, as LlamaConfig.

    Attributes:
        embedding_multiplier, residual_multiplier, attention_multiplier: factors of the embeddings of tokens, of what a
            part of a layer adds, and of the scores of attention.
        logits_scaling: logits are divided by it.
    """

    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    logits_scaling: float = 1.0

    model_types: ClassVar[tuple[str, ...]] = ("granite",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("logits_scaling", "a positive number", lambda value: value > 0)


class GraniteAttention(LlamaAttention):
    """Llama's attention with another scale of the scores."""

    def __init__(self, config: GraniteConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.scale = config.attention_multiplier


class GraniteDecoderLayer(LlamaDecoderLayer):
    """A Llama layer that scales what attention and feed-forward add."""

    attention_class = GraniteAttention

    def __init__(self, config: GraniteConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.residual_multiplier = config.residual_multiplier

    def added(self, x_BTD: Tensor) -> Tensor:
        return x_BTD * self.residual_multiplier


class GraniteModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GraniteConfig
    layer_class: ClassVar[type[LlamaDecoderLayer]] = GraniteDecoderLayer

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return super().embed(tokens_BT) * self.config.embedding_multiplier


class Granite(Llama):
    """A language model; Hugging Face's `GraniteForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = GraniteModel

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return super().logits(hidden_BTD) / self.config.logits_scaling


@dataclass(frozen=True, kw_only=True)
class GraniteMoeHybridConfig(GraniteConfig):
    """The sizes of a Granite 4 without experts and without state-space layers, as GraniteConfig.

    Attributes:
        shared_intermediate_size: the number of hidden features of the feed-forward parts.
        position_embedding_type: "rope", or None for queries and keys that do not rotate.
    """

    intermediate_size: int = 1  # of experts, which the model has not
    shared_intermediate_size: int = 1024
    position_embedding_type: str | None = None

    model_types: ClassVar[tuple[str, ...]] = ("granitemoehybrid",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {"mlp_bias", "head_dim", "intermediate_size"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **GraniteConfig.computed,
        "num_local_experts": (0,),
        "layer_types": (None,),
        "layers_block_type": (None,),
        "output_router_logits": (False,),
    }
    # Of the parts that such a model has not, as its tensors show.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {
            *("num_experts_per_tok", "router_aux_loss_coef", "mamba_n_heads", "mamba_n_groups", "mamba_d_state"),
            *("mamba_d_head", "mamba_d_conv", "mamba_expand", "mamba_chunk_size", "mamba_conv_bias"),
            *("mamba_proj_bias", "time_step_limit", "time_step_min", "time_step_max", "time_step_floor"),
            *("rope_parameters", "normalization_function", "init_method", "shared_expert_num"),
        }
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("position_embedding_type", '"rope" or None', lambda kind: kind in ("rope", None))

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        for name in ("layer_types", "layers_block_type"):
            kinds = entries.get(name)
            if isinstance(kinds, list) and all(kind in ("attention", "full_attention") for kind in kinds):
                del entries[name]
        entries.setdefault("num_local_experts", 8)
        if entries.get("position_embedding_type") == "nope":
            entries["position_embedding_type"] = None
        super().prepare(entries)

    def rotates(self, layer: int) -> bool:
        return self.position_embedding_type == "rope"


class GraniteMoeHybridMLP(Phi3MLP):
    """Phi-3's feed-forward part with other names and the width of the shared expert."""

    names = ("input_linear", "output_linear")

    def __init__(self, config: GraniteMoeHybridConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype, config.shared_intermediate_size)


class GraniteMoeHybridDecoderLayer(GraniteDecoderLayer):
    """A Granite layer with the names of a shared expert."""

    mlp_class = GraniteMoeHybridMLP
    mlp_name = "shared_mlp"


class GraniteMoeHybridModel(GraniteModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GraniteMoeHybridConfig
    layer_class = GraniteMoeHybridDecoderLayer


class GraniteMoeHybrid(Granite):
    """A language model; Hugging Face's `GraniteMoeHybridForCausalLM` of attention layers without experts.

    Args:    as DecoderModel
    """

    model_class = GraniteMoeHybridModel
