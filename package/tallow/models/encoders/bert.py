"""BERT: an encoder in which every position sees all others, and its heads.

Loads Hugging Face folders of `BertModel`, `BertForPreTraining`, `BertForMaskedLM`, `BertLMHeadModel`,
`BertForSequenceClassification`, `BertForTokenClassification` and `BertForQuestionAnswering`.

Letters: B batch, T positions, D width, H heads, K head width, V vocabulary, N labels.

Source:  Devlin et al. 2018, arXiv:1810.04805; names as in transformers' `modeling_bert.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tallow.core.creation import arange, zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.fused.eligibility import Kind
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of
from tallow.models.encoders.encoder_layers import ACTIVATION, ATTENTION, EncoderLayers, encoder_block, encoder_pattern
from tallow.models.pretrained import PooledModel, PretrainedModel, SpanLogits, check_length
from tallow.nn import functional as F
from tallow.nn.attention import key_mask, merge_heads, split_heads
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter


@dataclass(frozen=True, kw_only=True)
class BertConfig(Config):
    """The sizes of a BERT, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        classifier_dropout: the dropout probability before a classifier; None means hidden_dropout_prob.
        is_decoder: each position sees only itself and those before it.
        tie_word_embeddings: the language model's head shares the matrix of the word embeddings.
        labels: the labels of a classifier, in the order of its logits; `id2label` in the file.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    classifier_dropout: float | None = None
    pad_token_id: int = 0
    is_decoder: bool = False
    tie_word_embeddings: bool = True
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    computed: ClassVar = {"position_embedding_type": ("absolute",)}
    # Options for the pooler of the original program, which has only one kind.
    neutral: ClassVar = frozenset(
        {
            *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
            *("pooler_size_per_head", "pooler_type"),
        }
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        self.require("pad_token_id", f"an id below {self.vocab_size}", lambda pad: 0 <= pad < self.vocab_size)
        if self.hidden_size % self.num_attention_heads:
            raise ArgumentError(
                f"{type(self).__name__}: {self.num_attention_heads} heads do not divide hidden_size={self.hidden_size}"
            )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)

    @property
    def head_dropout(self) -> float:
        """The dropout probability before a classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout


class BertOutput(NamedTuple):
    """The output of the model without a head.

    Shapes:  last_hidden_state (B, T, D); pooler_output (B, D), or None without a pooler
    """

    last_hidden_state: Tensor
    pooler_output: Tensor | None


class PreTrainingLogits(NamedTuple):
    """The output of BERT in pretraining.

    Shapes:  prediction_logits (B, T, V) of the tokens; seq_relationship_logits (B, 2) of whether the second segment
             follows the first, or comes from elsewhere
    """

    prediction_logits: Tensor
    seq_relationship_logits: Tensor


class BertEmbeddings(Module):
    """The sum of the embeddings of the token, its position and its segment."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, factory = config.hidden_size, {"device": device, "dtype": dtype}
        self.word_embeddings = Embedding(config.vocab_size, width, padding_idx=config.pad_token_id, **factory)
        self.position_embeddings = Embedding(config.max_position_embeddings, width, **factory)
        self.token_type_embeddings = Embedding(config.type_vocab_size, width, **factory)
        self.LayerNorm = LayerNorm(width, config.layer_norm_eps, **factory)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        if segments_BT is None:
            segments_BT = zeros((1, 1), dtype=tokens_BT.dtype, device=tokens_BT.device)
        x_BTD = self.word_embeddings(tokens_BT) + self.token_type_embeddings(segments_BT)
        return self.dropout(self.LayerNorm(x_BTD + self.position_embeddings(self.positions(tokens_BT))))

    def positions(self, tokens_BT: Tensor) -> Tensor:
        """Return each token's row in the position embeddings, (B, T) or (T,).

        Raises:  ArgumentError for a text longer than the model's context
        """
        length = tokens_BT.shape[1]
        check_length(length, self.context_length)
        return arange(length, device=tokens_BT.device)

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.position_embeddings.num_embeddings


class BertSelfAttention(Module):
    """Multi-head self-attention without the output projection."""

    def __init__(self, config: Any, device: Any, dtype: Any, *, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.query = Linear(config.hidden_size, config.hidden_size, bias, device, dtype)
        self.key = Linear(config.hidden_size, config.hidden_size, bias, device, dtype)
        self.value = Linear(config.hidden_size, config.hidden_size, bias, device, dtype)
        self.dropout_p = config.attention_probs_dropout_prob

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x_BTD), self.num_heads) for project in (self.query, self.key, self.value)
        )
        dropout = self.dropout_p if self.training else 0.0
        return merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout))


class BertResidual(Module):
    """LayerNorm(residual + dropout(dense(x)))"""

    def __init__(self, in_features: int, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(in_features, config.hidden_size, device=device, dtype=dtype)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, residual_BTD: Tensor) -> Tensor:
        return self.LayerNorm(residual_BTD + self.dropout(self.dense(x)))


class BertAttention(Module):
    """Self-attention, its output projection, and the residual."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.self = BertSelfAttention(config, device, dtype)
        self.output = BertResidual(config.hidden_size, config, device, dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x_BTD, mask), x_BTD)


class BertIntermediate(Module):
    """activation(dense(x))"""

    def __init__(self, config: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.activation(self.dense(x_BTD))


class BertLayer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = BertAttention(config, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = BertResidual(config.intermediate_size, config, device, dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.attention(x_BTD, mask)
        return self.output(self.intermediate(x_BTD), x_BTD)


class BertEncoder(EncoderLayers):
    """The layers of a BERT."""

    pattern = encoder_pattern(
        {
            **dict.fromkeys((BertLayer, BertAttention, BertResidual), Kind()),
            BertSelfAttention: ATTENTION,
            BertIntermediate: ACTIVATION,
        }
    )

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(BertLayer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.is_causal = config.is_decoder

    def limit(self) -> str | None:
        return "positions see only those before them (is_decoder)" if self.is_causal else None

    def block_of(self, layer: BertLayer) -> EncoderBlock:
        attention, mixed, output = layer.attention.self, layer.attention.output, layer.output
        return encoder_block(
            query=attention.query,
            key=attention.key,
            value=attention.value,
            output=mixed.dense,
            attention_norm=mixed.LayerNorm,
            up=layer.intermediate.dense,
            down=output.dense,
            output_norm=output.LayerNorm,
            heads=attention.num_heads,
            activation=layer.intermediate.activation,
        )


class BertPooler(Module):
    """tanh(dense(x)) of the first position, which represents the text."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return F.tanh(self.dense(x_BTD[:, 0]))


class BertPretrainedModel(PretrainedModel):
    """The base of BERT models with and without a head."""

    config_class = BertConfig
    base_model_prefix = "bert"
    heads: ClassVar[tuple[str, ...]] = ("cls.", "classifier.", "qa_outputs.")
    base_class: ClassVar[type[BertModel]]

    def add_base_model(self, device: Any, dtype: Any, *, add_pooling_layer: bool = False) -> None:
        """Add the encoder to a model with a head, under its name in checkpoints."""
        base = self.base_class(self.config, device, dtype, add_pooling_layer=add_pooling_layer)
        self.add_module(self.base_model_prefix, base)

    @property
    def base_model(self) -> BertModel:
        """The encoder inside a model with a head."""
        return getattr(self, self.base_model_prefix)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        names = [name for name, module in self.named_modules() if isinstance(module, VocabularyLogits)]
        if not names or not self.config.tie_word_embeddings:
            return {}
        head, table = names[0], f"{self.base_model_prefix}.embeddings.word_embeddings.weight"
        return {f"{head}.decoder.weight": table, f"{head}.decoder.bias": f"{head}.bias"}

    def is_superfluous(self, name: str) -> bool:
        pooler = (f"{self.base_model_prefix}.pooler.", "pooler.")
        return name.startswith((*self.heads, *pooler)) or name.endswith((".position_ids", ".token_type_ids"))


class BertModel(BertPretrainedModel, PooledModel):
    """The encoder without a head.

    Args:
        config: the sizes.
        add_pooling_layer: add the pooler, which classifiers of whole texts use.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.

    A checkpoint without a pooler, such as that of a masked language model, loads as with `add_pooling_layer=False`;
    then `pooler_output` is None.

    Example:
        model = BertModel.from_pretrained("bert-base-uncased")
        model(tl.tensor([[101, 7592, 102]])).last_hidden_state
    """

    embeddings_class: ClassVar[type[BertEmbeddings]] = BertEmbeddings

    def __init__(
        self, config: BertConfig, device: Any = None, dtype: Any = None, *, add_pooling_layer: bool = True
    ) -> None:
        super().__init__(config)
        self.embeddings = self.embeddings_class(config, device, dtype)
        self.encoder = BertEncoder(config, device, dtype)
        self.pooler = BertPooler(config, device, dtype) if add_pooling_layer else None
        self.reset_parameters()

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.embeddings.context_length

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        skip_padding: bool = False,
    ) -> BertOutput:
        """Encode texts.

        Args:
            attention_mask: 1 or True for text, 0 or False for padding; None means no padding.
            token_type_ids: 0 for the first segment, 1 for the second; None means all 0.
            skip_padding: the output at padding is not used, and may be zeros to save time.

        Shapes:  all (B, T), of integers
        """
        mask = None if attention_mask is None else key_mask(attention_mask)
        if self.config.is_decoder:
            mask = backward_mask(input_ids.shape[1], mask, input_ids.device)
        x_BTD = self.encoder(self.embeddings(input_ids, token_type_ids), mask, skip_padding=skip_padding)
        return BertOutput(x_BTD, None if self.pooler is None else self.pooler(x_BTD))


BertPretrainedModel.base_class = BertModel


def backward_mask(length: int, mask: Tensor | None, device: Any) -> Tensor:
    """Return a causal mask: every position sees itself and those before it.

    Args:    mask: the keys that are not padding; None means all
    Shapes:  mask (B, 1, 1, T) -> (B, 1, T, T), or (1, 1, T, T) without one; bool
    """
    positions_T = arange(length, device=device)
    seen_TT = positions_T[:, None] >= positions_T
    if mask is None:
        return seen_TT[None, None]
    return seen_TT & (mask | (positions_T[:, None] == positions_T))  # padding sees itself, as softmax needs one key


class BertPredictionTransform(Module):
    """LayerNorm(activation(dense(x)))"""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.LayerNorm(self.activation(self.dense(x_BTD)))


class VocabularyLogits(Module):
    """Logits over the vocabulary: a product with the word embeddings and a bias, or a layer with its own weights."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        if config.tie_word_embeddings:
            self.bias = Parameter(zeros(config.vocab_size, device=device, dtype=dtype))
            self.decoder = None
        else:
            self.decoder = Linear(config.hidden_size, config.vocab_size, device=device, dtype=dtype)

    def logits(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        """Return the logits (B, T, V), by the word embeddings if they are tied, else by a linear layer."""
        return F.linear(x_BTD, embeddings_VD, self.bias) if self.decoder is None else self.decoder(x_BTD)


class BertPredictions(VocabularyLogits):
    """A transform, then logits over the vocabulary."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.transform = BertPredictionTransform(config, device, dtype)

    def forward(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        return self.logits(self.transform(x_BTD), embeddings_VD)


class BertMaskedLMHead(Module):
    """The head of BERT's language models, named as in checkpoints."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.predictions = BertPredictions(config, device, dtype)


class BertForMaskedLM(BertPretrainedModel):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.cls = BertMaskedLMHead(config, device, dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        x_BTD = self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.cls.predictions(x_BTD, self.base_model.embeddings.word_embeddings.weight)


class BertLMHeadModel(BertForMaskedLM):
    """Predicts the token after each position: logits (B, T, V).

    The config must set `is_decoder`, or positions see those after them. The model has no key/value cache, so
    `tallow.generation` does not support it.

    Args:    as BertModel
    """


class BertForPreTraining(BertPretrainedModel):
    """Predicts the tokens behind [MASK], and whether the second segment follows the first.

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype, add_pooling_layer=True)
        self.cls = BertMaskedLMHead(config, device, dtype)
        self.cls.seq_relationship = Linear(config.hidden_size, 2, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> PreTrainingLogits:
        encoded = self.base_model(input_ids, attention_mask, token_type_ids)
        embeddings_VD = self.base_model.embeddings.word_embeddings.weight
        predicted_BTV = self.cls.predictions(encoded.last_hidden_state, embeddings_VD)
        return PreTrainingLogits(predicted_BTV, self.cls.seq_relationship(encoded.pooler_output))


class BertForSequenceClassification(BertPretrainedModel):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype, add_pooling_layer=True)
        self.dropout = Dropout(config.head_dropout)
        self.classifier = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.classifier(self.dropout(self.base_model(input_ids, attention_mask, token_type_ids).pooler_output))


class BertForTokenClassification(BertPretrainedModel):
    """Labels every token: logits (B, T, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.dropout = Dropout(config.head_dropout)
        self.classifier = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.classifier(
            self.dropout(self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state)
        )


class BertForQuestionAnswering(BertPretrainedModel):
    """Finds where an answer starts and ends: logits (B, T) for each.

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.qa_outputs = Linear(config.hidden_size, 2, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> SpanLogits:
        x_BTD = self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state
        return SpanLogits(*self.qa_outputs(x_BTD).unbind(-1))
