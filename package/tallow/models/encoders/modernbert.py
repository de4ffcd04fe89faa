"""ModernBERT: an encoder of long texts with rotary positions, GeGLU and few biases, and its heads. Most of its layers
see the positions nearby only, with rotary angles of their own.

Loads Hugging Face folders of `ModernBertModel`, `ModernBertForMaskedLM`, `ModernBertForSequenceClassification`,
`ModernBertForTokenClassification` and `ModernBertForQuestionAnswering`.

Letters: B batch, T positions, D width, H heads, K head width, V vocabulary, N labels.

Source:  Warner et al. 2024, arXiv:2412.13663; names as in transformers' `modeling_modernbert.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named, gated
from tallow.models.config import Config, labels_of, rope_entries, tupled
from tallow.models.encoders.distilbert import DistilBertProjector
from tallow.models.pretrained import PretrainedModel, SpanLogits, check_length
from tallow.nn import functional as F
from tallow.nn.attention import key_mask, local_mask, merge_heads, split_heads
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding

FULL, LOCAL = "full_attention", "sliding_attention"  # the kinds of layers in a config


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig(Config):
    """The sizes of a ModernBERT, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        layer_types: of each layer, "full_attention" or "sliding_attention"; None means that the first layer of every
            `global_attn_every_n_layers` sees all positions.
        local_attention: a position of the other layers sees half as many positions on each side.
        global_rope_theta, global_rope_scaling: the base and the scaling of rotary angles in layers that see all
            positions.
        local_rope_theta, local_rope_scaling: the same in the other layers.
        classifier_pooling: a classifier of texts reads the first position, "cls", or the mean of all, "mean".
        decoder_bias: the masked language model's head has a bias.
        tie_word_embeddings: the masked language model's head shares the matrix of the word embeddings.
        labels: the labels of a classifier, in the order of its logits; `id2label` in the file.
    """

    vocab_size: int
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    initializer_range: float = 0.02
    norm_eps: float = 1e-5
    norm_bias: bool = False
    pad_token_id: int = 50283
    attention_bias: bool = False
    attention_dropout: float = 0.0
    layer_types: tuple[str, ...] | None = None
    global_attn_every_n_layers: int = 3
    local_attention: int = 128
    global_rope_theta: float = 160_000.0
    global_rope_scaling: Mapping[str, Any] | None = None
    local_rope_theta: float = 10_000.0
    local_rope_scaling: Mapping[str, Any] | None = None
    embedding_dropout: float = 0.0
    mlp_bias: bool = False
    mlp_dropout: float = 0.0
    classifier_pooling: str = "cls"
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    decoder_bias: bool = True
    tie_word_embeddings: bool = True
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("modernbert",)
    # For training, and for kernels of transformers; the last ones are of BERT's configs, and its class ignores them.
    neutral: ClassVar = frozenset(
        {"initializer_cutoff_factor", "sparse_prediction", "sparse_pred_ignore_index", "deterministic_flash_attn"}
        | {"reference_compile", "repad_logits_with_grad", "layer_norm_eps", "position_embedding_type"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_activation)
        activation_named(self.classifier_activation)
        self.require("pad_token_id", f"an id below {self.vocab_size}", lambda pad: 0 <= pad < self.vocab_size)
        self.require("classifier_pooling", "'cls' or 'mean'", lambda pooling: pooling in ("cls", "mean"))
        kinds = f"{self.num_hidden_layers} times {FULL!r} or {LOCAL!r}"
        self.require("layer_types", kinds, lambda types: types is None or self._are_layers(types))
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ArgumentError(
                f"ModernBertConfig: hidden_size={self.hidden_size} is not {self.num_attention_heads} heads of an even "
                "width"
            )
        for name in ("global", "local"):
            theta, scaling = getattr(self, f"{name}_rope_theta"), getattr(self, f"{name}_rope_scaling")
            self.require(f"{name}_rope_theta", "a positive number", lambda value: value > 0)
            self.require(f"{name}_rope_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
            frequencies(self.head_width, theta, scaling, self.max_position_embeddings)  # raises for an unknown scaling

    def _are_layers(self, types: tuple[str, ...]) -> bool:
        return len(types) == self.num_hidden_layers and {*types} <= {FULL, LOCAL}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """Read `rope_parameters` of both kinds of layers, or a `rope_scaling` of older files for both, in place."""
        scaling = entries.pop("rope_scaling", None)
        rope = entries.get("rope_parameters")
        both = entries.pop("rope_parameters") if isinstance(rope, dict) and {*rope} <= {FULL, LOCAL} else {}
        for kind, name in ((FULL, "global"), (LOCAL, "local")):
            own = {"rope_parameters": both.get(kind), "rope_scaling": scaling}
            rope_entries(own)
            entries |= {f"{name}_{entry}": value for entry, value in own.items() if value is not None}
        tupled(entries, "layer_types")
        labels_of(entries)

    @property
    def head_width(self) -> int:
        """The width of an attention head."""
        return self.hidden_size // self.num_attention_heads

    def is_local(self, layer: int) -> bool:
        """Return whether the positions of a layer see those nearby only."""
        if self.layer_types is not None:
            return self.layer_types[layer] == LOCAL
        return layer % self.global_attn_every_n_layers != 0


def _norm(config: ModernBertConfig, device: Any, dtype: Any) -> LayerNorm:
    return LayerNorm(config.hidden_size, config.norm_eps, bias=config.norm_bias, device=device, dtype=dtype)


class ModernBertEmbeddings(Module):
    """The normalised embeddings of the tokens."""

    def __init__(self, config: ModernBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.tok_embeddings = Embedding(
            config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id, device=device, dtype=dtype
        )
        self.norm = _norm(config, device, dtype)
        self.drop = Dropout(config.embedding_dropout)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        return self.drop(self.norm(self.tok_embeddings(tokens_BT)))


class ModernBertAttention(Module):
    """Multi-head self-attention with rotary positions."""

    def __init__(self, config: ModernBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, bias = config.hidden_size, config.attention_bias
        self.num_heads = config.num_attention_heads
        self.Wqkv = Linear(width, 3 * width, bias, device, dtype)
        self.Wo = Linear(width, width, bias, device, dtype)
        self.out_drop = Dropout(config.attention_dropout)
        self.dropout_p = config.attention_dropout

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (split_heads(part, self.num_heads) for part in self.Wqkv(x_BTD).chunk(3, -1))
        dropout = self.dropout_p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(rotary(q_BHTK), rotary(k_BHTK), v_BHTK, mask, dropout)
        return self.out_drop(self.Wo(merge_heads(mixed)))


class ModernBertMLP(Module):
    """Wo(activation(a) ⊙ b),  a and b the halves of Wi(x)"""

    def __init__(self, config: ModernBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.Wi = Linear(width, 2 * inner, bias, device, dtype)
        self.Wo = Linear(inner, width, bias, device, dtype)
        self.activation = activation_named(config.hidden_activation)
        self.drop = Dropout(config.mlp_dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.Wo(self.drop(gated(self.activation, *self.Wi(x_BTD).chunk(2, -1))))


class ModernBertLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it.

    Args:  layer: the first one does not normalise its input, which the embeddings have normalised
    """

    def __init__(self, config: ModernBertConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attn_norm = Identity() if layer == 0 else _norm(config, device, dtype)
        self.attn = ModernBertAttention(config, device, dtype)
        self.mlp_norm = _norm(config, device, dtype)
        self.mlp = ModernBertMLP(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, mask: Tensor | None) -> Tensor:
        x_BTD = x_BTD + self.attn(self.attn_norm(x_BTD), rotary, mask)
        return x_BTD + self.mlp(self.mlp_norm(x_BTD))


class ModernBertPretrainedModel(PretrainedModel):
    """The base of ModernBERT models with and without a head."""

    config_class = ModernBertConfig
    base_model_prefix = "model"

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("head.", "decoder.", "classifier."))


class ModernBertModel(ModernBertPretrainedModel):
    """The encoder without a head: hidden states (B, T, D).

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: ModernBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = ModernBertEmbeddings(config, device, dtype)
        self.layers = ModuleList(
            ModernBertLayer(config, layer, device, dtype) for layer in range(config.num_hidden_layers)
        )
        self.final_norm = _norm(config, device, dtype)
        width, context = config.head_width, config.max_position_embeddings
        self.rotary_emb = RotaryEmbedding(
            width, config.global_rope_theta, scaling=config.global_rope_scaling, context=context
        )
        self.rotary_emb_local = RotaryEmbedding(
            width, config.local_rope_theta, scaling=config.local_rope_scaling, context=context
        )
        self.reset_parameters()

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.config.max_position_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Encode texts.

        Args:
            attention_mask: 1 or True for text, 0 or False for padding; None means no padding.

        Shapes:  both (B, T), of integers
        """
        check_length(input_ids.shape[1], self.context_length)
        everywhere = None if attention_mask is None else key_mask(attention_mask)
        nearby = local_mask(input_ids, everywhere, self.config.local_attention // 2)
        x_BTD = self.embeddings(input_ids)
        for i, layer in enumerate(self.layers):
            is_local = self.config.is_local(i)
            rotary = self.rotary_emb_local if is_local else self.rotary_emb
            x_BTD = layer(x_BTD, rotary, nearby if is_local else everywhere)
        return self.final_norm(x_BTD)


class ModernBertPredictionHead(Module):
    """norm(activation(dense(x)))"""

    def __init__(self, config: ModernBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, config.classifier_bias, device, dtype)
        self.activation = activation_named(config.classifier_activation)
        self.norm = _norm(config, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


class ModernBertForMaskedLM(ModernBertPretrainedModel):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as ModernBertModel
    """

    def __init__(self, config: ModernBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.model = ModernBertModel(config, device, dtype)
        self.head = ModernBertPredictionHead(config, device, dtype)
        self.decoder = (
            DistilBertProjector(config.vocab_size, device, dtype, bias=config.decoder_bias)
            if config.tie_word_embeddings
            else Linear(config.hidden_size, config.vocab_size, config.decoder_bias, device, dtype)
        )
        self.reset_parameters()

    @property
    def tied_weights(self) -> Mapping[str, str]:
        tied = self.config.tie_word_embeddings
        return {"decoder.weight": "model.embeddings.tok_embeddings.weight"} if tied else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        tied = (self.model.embeddings.tok_embeddings.weight,) if self.config.tie_word_embeddings else ()
        return self.decoder(self.head(self.model(input_ids, attention_mask)), *tied)


class ModernBertClassifier(ModernBertPretrainedModel):
    """The base of the models with a classifier on the prediction head.

    Args:  outputs: how many numbers the classifier computes
    """

    def __init__(self, config: ModernBertConfig, outputs: int, device: Any, dtype: Any) -> None:
        super().__init__(config)
        self.model = ModernBertModel(config, device, dtype)
        self.head = ModernBertPredictionHead(config, device, dtype)
        self.drop = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, outputs, device=device, dtype=dtype)
        self.reset_parameters()

    def classify(self, x: Tensor) -> Tensor:
        """Return the classifier's output for hidden states (..., D)."""
        return self.classifier(self.drop(self.head(x)))


class ModernBertForSequenceClassification(ModernBertClassifier):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as ModernBertModel
    """

    def __init__(self, config: ModernBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, len(config.labels), device, dtype)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x_BTD = self.model(input_ids, attention_mask)
        if self.config.classifier_pooling == "cls":
            return self.classify(x_BTD[:, 0])
        if attention_mask is None:
            return self.classify(x_BTD.mean(1))
        weights_BT1 = attention_mask.bool().to(x_BTD.dtype).unsqueeze(-1)
        return self.classify((x_BTD * weights_BT1).sum(1) / weights_BT1.sum(1))


class ModernBertForTokenClassification(ModernBertClassifier):
    """Labels every token: logits (B, T, N), in the order of `config.labels`.

    Args:    as ModernBertModel
    """

    def __init__(self, config: ModernBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, len(config.labels), device, dtype)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.classify(self.model(input_ids, attention_mask))


class ModernBertForQuestionAnswering(ModernBertClassifier):
    """Finds where an answer starts and ends: logits (B, T) for each.

    Args:    as ModernBertModel
    """

    def __init__(self, config: ModernBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, 2, device, dtype)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SpanLogits:
        return SpanLogits(*self.classify(self.model(input_ids, attention_mask)).unbind(-1))
