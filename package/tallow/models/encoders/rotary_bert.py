"""Encoders of long texts that are BERT with rotary positions in place of embeddings: Nomic, GTE and Jina v3.

Loads Hugging Face folders of `NomicBertModel`, `GteModel` and `JinaEmbeddingsV3Model` and of their heads, with the
names of transformers 5 and with those of the repositories' own code, such as `NewModel` of GTE.

Letters: B batch, T positions, D width, H heads, K head width, F feed-forward width, V vocabulary.

Source:  Nussbaum et al. 2024, arXiv:2402.01613; Zhang et al. 2024, arXiv:2407.19669; Sturua et al. 2024,
         arXiv:2409.10173; names as in transformers' `modeling_nomic_bert.py`, `modeling_gte.py` and
         `modeling_jina_embeddings_v3.py`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named, gated
from tallow.models.config import MAX_SIZE, Count, rename, rope_entries, whole_heads
from tallow.models.encoders.bert import BertForMaskedLM, BertModel, BertPretrainedModel
from tallow.models.encoders.bert_layers import BertConfig
from tallow.models.encoders.distilbert import DistilBertProjector
from tallow.models.encoders.encoder_layers import EncoderLayers, FeedForward, encoder_pattern
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class RotaryBertConfig(BertConfig):
    """The sizes of a BERT with rotary positions, as BertConfig.

    Attributes:
        head_dim: K; None means hidden_size / num_attention_heads.
        rope_theta, rope_scaling: the base and the scaling of rotary angles.
        older_names: patterns of names in checkpoints of the repositories' own code, and what they are here.
        older_parts: the ends of the names of older matrices that hold several, and the names of the parts.
    """

    type_vocab_size: Count = 2
    head_dim: int | None = None
    rope_theta: float = 10_000.0
    rope_scaling: Mapping[str, Any] | None = None

    is_gated: ClassVar[bool] = True
    projection_bias: ClassVar[bool] = True
    down_bias: ClassVar[bool] = True
    older_names: ClassVar[Mapping[str, str]] = {}
    older_parts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    computed: ClassVar = {"partial_rotary_factor": (1.0,)}
    unread: ClassVar[frozenset[str]] = frozenset({"is_decoder"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("rope_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
        self.require("rope_theta", "a positive number", lambda value: value > 0)
        if self.head_width % 2:
            raise ArgumentError(
                f"{type(self).__name__}: heads of {self.head_width}", hint="rotary pairs need even ones"
            )
        frequencies(self.head_width, self.rope_theta, self.rope_scaling, self.max_position_embeddings)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        rope_entries(entries)
        whole_heads(entries)

    @property
    def adds_positions(self) -> bool:
        return False

    @property
    def head_width(self) -> int:
        """The width of an attention head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for name, tensor in state.items():
            for old, new in self.older_names.items():
                name = re.sub(old, new, name)
            path, _, kind = name.rpartition(".")
            parts = next((parts for end, parts in self.older_parts.items() if path.endswith(f".{end}")), None)
            if parts is None:
                found[name] = tensor
                continue
            parent = path.rpartition(".")[0]
            split = tensor.chunk(len(parts)) if tensor.ndim and len(tensor) % len(parts) == 0 else ()
            found |= {f"{parent}.{part}.{kind}": rows for part, rows in zip(parts, split, strict=False)}
        return found


QUERY_KEY_VALUE = ("q_proj", "k_proj", "v_proj")


@dataclass(frozen=True, kw_only=True)
class NomicBertConfig(RotaryBertConfig):
    """The sizes of a Nomic encoder, as RotaryBertConfig; with the entries of its repository's own code."""

    hidden_act: str = "silu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 2048
    rope_theta: float = 1000.0

    model_types: ClassVar[tuple[str, ...]] = ("nomic_bert",)
    projection_bias: ClassVar[bool] = False
    down_bias: ClassVar[bool] = False
    computed: ClassVar = {
        **RotaryBertConfig.computed,
        **dict.fromkeys(("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm", "parallel_block"), (False,)),
        **dict.fromkeys(("causal", "use_rms_norm", "rotary_emb_interleaved"), (False,)),
        "scale_attn_by_inverse_layer_idx": (False,),
        **dict.fromkeys(("rotary_emb_fraction", "scale_attn_weights"), (1.0,)),
    }
    neutral: ClassVar = frozenset(
        {
            *(
                "dense_seq_output",
                "fused_bias_fc",
                "fused_dropout_add_ln",
                "pad_vocab_size_multiple",
                "reorder_and_upcast_attn",
            ),
            *("use_flash_attn", "use_xentropy", "last_layer_subset"),
            *(f"summary_{part}" for part in ("activation", "first_dropout", "proj_to_labels", "type", "use_proj")),
            *("expert_choice_router", "ffn_div", "moe_impl", "router_aux_loss_coef"),
        }
    )
    older_names: ClassVar = {
        r"\bencoder\.layers\b": "layers",
        r"\bemb_ln\b": "embeddings.LayerNorm",
        r"\battn\.out_proj\b": "self_attn.o_proj",
        r"\battn\.": "self_attn.",
        r"\bfc11\b": "up_proj",
        r"\bfc12\b": "gate_proj",
        r"\bfc2\b": "down_proj",
        r"\bnorm1\b": "post_attention_layernorm",
        r"\bnorm2\b": "post_mlp_layernorm",
        r"\btransform\.layer_norm\b": "transform.LayerNorm",
    }
    older_parts: ClassVar = {"Wqkv": QUERY_KEY_VALUE}

    def joined(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name.replace(".transform.LayerNorm.", ".transform.layer_norm."): each for name, each in state.items()}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        if entries.get("max_trained_positions") is not None:
            entries["max_position_embeddings"] = entries.pop("max_trained_positions")
            entries.pop("n_positions", None)
        if entries.get("activation_function") == "swiglu":
            entries["activation_function"] = "silu"
        rename(entries, NOMIC_NAMES)
        super().prepare(entries)


NOMIC_NAMES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "activation_function": "hidden_act",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
    "attn_pdrop": "attention_probs_dropout_prob",
    "resid_pdrop": "hidden_dropout_prob",
    "embd_pdrop": "hidden_dropout_prob",
}


@dataclass(frozen=True, kw_only=True)
class GteConfig(RotaryBertConfig):
    """The sizes of a GTE encoder, as RotaryBertConfig; with the entries of its repository's own code."""

    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 8192
    type_vocab_size: Count = 1
    pad_token_id: int = 1
    rope_theta: float = 160_000.0

    model_types: ClassVar[tuple[str, ...]] = ("gte", "new")
    computed: ClassVar = {
        **RotaryBertConfig.computed,
        **dict.fromkeys(("logn_attention_scale", "logn_attention_clip1"), (False,)),
        "layer_norm_type": ("layer_norm",),
        "position_embedding_type": ("absolute", "rope"),
        "pack_qkv": (True,),
    }
    neutral: ClassVar = BertConfig.neutral | {"unpad_inputs", "use_memory_efficient_attention"}
    older_names: ClassVar = {
        r"^new\.": "gte.",
        r"\bencoder\.layer\b": "layers",
        r"\battention\.": "self_attn.",
        r"\battn_ln\b": "post_attention_layernorm",
        r"\bmlp_ln\b": "post_mlp_layernorm",
        r"^lm_head\.norm\b": "lm_head.layer_norm",
    }
    older_parts: ClassVar = {"qkv_proj": QUERY_KEY_VALUE, "up_gate_proj": ("up_proj", "gate_proj")}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        scaling = entries["rope_scaling"]
        if isinstance(scaling, dict) and scaling.get("type") == "ntk":
            entries |= _fixed_ntk(entries, scaling)


def _fixed_ntk(entries: Mapping[str, Any], scaling: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base and the scaling of rotary angles of GTE's "ntk": the base grows by the factor, and angles shrink
    by its root, whatever the length of the text.  Source: `modeling.py` of Alibaba-NLP/new-impl"""
    numbers: tuple[Any, ...] = scaling.get("factor"), entries.get("rope_theta", GteConfig.rope_theta)
    heads, width = (entries.get(name, 0) for name in ("num_attention_heads", "hidden_size"))
    has_sizes = all(type(size) is int and size > 0 for size in (heads, width))
    if not has_sizes or not {"type", "rope_type", "factor"} >= {*scaling}:
        return {}  # refused by its name
    if not all(type(number) in (int, float) and 1 <= number <= MAX_SIZE for number in numbers):
        return {}
    factor, base = numbers
    return {
        "rope_theta": base * factor,
        "rope_scaling": {"rope_type": "linear", "factor": factor ** (2 * heads / width)},
    }


@dataclass(frozen=True, kw_only=True)
class JinaEmbeddingsV3Config(RotaryBertConfig):
    """The sizes of a Jina v3 encoder, as RotaryBertConfig."""

    max_position_embeddings: int = 8194
    type_vocab_size: Count = 1
    layer_norm_eps: float = 1e-5
    pad_token_id: int = 1
    rope_theta: float = 20_000.0

    model_types: ClassVar[tuple[str, ...]] = ("jina_embeddings_v3",)
    is_gated: ClassVar[bool] = False
    older_names: ClassVar = {
        r"\bemb_ln\b": "embeddings.LayerNorm",
        r"\bencoder\.layers\b": "layers",
        r"\bmixer\.out_proj\b": "self_attn.o_proj",
        r"\bmixer\.": "self_attn.",
        r"\bnorm1\b": "post_attention_layernorm",
        r"\bnorm2\b": "post_mlp_layernorm",
    }
    older_parts: ClassVar = {"Wqkv": QUERY_KEY_VALUE}


class RotaryBertAttention(Module):
    """Multi-head self-attention with rotary positions."""

    def __init__(self, config: RotaryBertConfig, rotary: RotaryEmbedding, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.num_attention_heads * config.head_width
        self.num_heads = config.num_attention_heads
        for name in QUERY_KEY_VALUE:
            self.add_module(name, Linear(width, inner, config.projection_bias, device, dtype))
        self.o_proj = Linear(inner, width, config.projection_bias, device, dtype)
        self.rotary = rotary
        self.dropout_p = config.attention_probs_dropout_prob

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x_BTD), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        dropout = self.dropout_p if self.training else 0.0
        mixed_BHTK = F.scaled_dot_product_attention(self.rotary(q_BHTK), self.rotary(k_BHTK), v_BHTK, mask, dropout)
        return self.o_proj(merge_heads(mixed_BHTK))


class GatedFeedForward(Module):
    """down_proj(activation(gate_proj(x)) ⊙ up_proj(x))"""

    def __init__(self, config: RotaryBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = Linear(width, inner, False, device, dtype)
        self.up_proj = Linear(width, inner, False, device, dtype)
        self.down_proj = Linear(inner, width, config.down_bias, device, dtype)
        self.activation = activation_named(config.hidden_act)
        self.dropout = Dropout(config.hidden_dropout_prob if config.down_bias else 0.0)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(self.dropout(gated(self.activation, self.gate_proj(x_BTD), self.up_proj(x_BTD))))


class RotaryBertLayer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: RotaryBertConfig, rotary: RotaryEmbedding, device: Any, dtype: Any) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.self_attn = RotaryBertAttention(config, rotary, device, dtype)
        self.post_attention_layernorm = LayerNorm(width, eps, device=device, dtype=dtype)
        self.mlp = (
            GatedFeedForward(config, device, dtype)
            if config.is_gated
            else FeedForward(width, config.intermediate_size, activation_named(config.hidden_act), device, dtype)
        )
        self.post_mlp_layernorm = LayerNorm(width, eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.post_attention_layernorm(x_BTD + self.dropout(self.self_attn(x_BTD, mask)))
        return self.post_mlp_layernorm(x_BTD + self.dropout(self.mlp(x_BTD)))


class RotaryBertLayers(EncoderLayers):
    """The layers, by number."""

    pattern = encoder_pattern({})

    def __init__(self, config: RotaryBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        context, scaling = config.max_position_embeddings, config.rope_scaling
        rotary = RotaryEmbedding(config.head_width, config.rope_theta, scaling=scaling, context=context)
        for i in range(config.num_hidden_layers):
            self.add_module(str(i), RotaryBertLayer(config, rotary, device, dtype))

    def in_order(self) -> list[Any]:
        return list(self.children())

    def limit(self) -> str | None:
        return "positions are rotary"


class RotaryBertModel(BertModel):
    """The base of the encoders without a head."""

    encoder_class = RotaryBertLayers
    encoder_name = "layers"


class NomicBertPretrainedModel(BertPretrainedModel):
    """The base of Nomic's models with and without a head."""

    config_class = NomicBertConfig
    base_model_prefix = "nomic_bert"


class NomicBertModel(NomicBertPretrainedModel, RotaryBertModel):
    """The encoder without a head.

    Args:    as BertModel
    """


NomicBertPretrainedModel.base_class = NomicBertModel


class GtePretrainedModel(BertPretrainedModel):
    """The base of GTE models with and without a head."""

    config_class = GteConfig
    base_model_prefix = "gte"
    heads = ("lm_head.", "classifier.")


class GteModel(GtePretrainedModel, RotaryBertModel):
    """The encoder without a head.

    Args:    as BertModel
    """


GtePretrainedModel.base_class = GteModel


class GteLMHead(Module):
    """layer_norm(gelu(dense(x))), then logits over the vocabulary."""

    def __init__(self, config: GteConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.dense = Linear(width, width, device=device, dtype=dtype)
        self.layer_norm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)
        self.decoder = (
            DistilBertProjector(config.vocab_size, device, dtype)
            if config.tie_word_embeddings
            else Linear(width, config.vocab_size, device=device, dtype=dtype)
        )

    def forward(self, x_BTD: Tensor, *tied: Tensor) -> Tensor:
        return self.decoder(self.layer_norm(F.gelu(self.dense(x_BTD))), *tied)


class GteForMaskedLM(GtePretrainedModel, BertForMaskedLM):
    """Predicts the tokens behind <mask>: logits (B, T, V).

    Args:    as BertModel
    """

    def add_head(self, device: Any, dtype: Any) -> None:
        self.lm_head = GteLMHead(self.config, device, dtype)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        tied = self.config.tie_word_embeddings
        return {"lm_head.decoder.weight": "gte.embeddings.word_embeddings.weight"} if tied else {}

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        return self.lm_head(x_BTD, *((embeddings_VE,) if self.config.tie_word_embeddings else ()))


class JinaEmbeddingsV3PretrainedModel(BertPretrainedModel):
    """The base of Jina v3 models with and without a head."""

    config_class = JinaEmbeddingsV3Config
    base_model_prefix = "roberta"
    heads = ("lm_head.", "classifier.", "qa_outputs.")
    head_family = "Roberta"


class JinaEmbeddingsV3Model(JinaEmbeddingsV3PretrainedModel, RotaryBertModel):
    """The encoder without a head.

    Args:    as BertModel
    """


JinaEmbeddingsV3PretrainedModel.base_class = JinaEmbeddingsV3Model
