"""BERT: an encoder in which every position sees all others, and its heads.

Loads Hugging Face folders of `BertModel`, `BertForPreTraining`, `BertForMaskedLM`, `BertLMHeadModel`,
`BertForNextSentencePrediction`, `BertForSequenceClassification`, `BertForTokenClassification` and
`BertForQuestionAnswering`.

Letters: B batch, T positions, D width, H heads, K head width, V vocabulary, N labels.

Source:  Devlin et al. 2018, arXiv:1810.04805; names as in transformers' `modeling_bert.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from tallow.core.creation import arange, zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings, BertEncoder, BertPooler
from tallow.models.pretrained import PooledModel, PretrainedModel, SpanLogits
from tallow.nn import functional as F
from tallow.nn.attention import key_mask
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter


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


class BertPretrainedModel(PretrainedModel):
    """The base of BERT models with and without a head, and of its relatives'.

    Attributes:
        heads: the beginnings of the names of heads' weights in checkpoints.
        head_family: whose heads a relative has, "Bert" or "Roberta"; `tallow.models.derived_heads` makes them.
        base_class: the model without a head.
        lm_head_class: what computes logits of tokens.
    """

    config_class = BertConfig
    base_model_prefix = "bert"
    heads: ClassVar[tuple[str, ...]] = ("cls.", "classifier.", "qa_outputs.")
    head_family: ClassVar[str] = "Bert"
    base_class: ClassVar[type[BertModel]]
    lm_head_class: ClassVar[type[Any]]

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
    encoder_class: ClassVar[type[Any]] = BertEncoder
    encoder_name: ClassVar[str] = "encoder"
    pooler_class: ClassVar[type[Any]] = BertPooler

    def __init__(
        self, config: BertConfig, device: Any = None, dtype: Any = None, *, add_pooling_layer: bool = True
    ) -> None:
        super().__init__(config)
        self.embeddings = self.embeddings_class(config, device, dtype)
        self.add_module(self.encoder_name, self.encoder_class(config, device, dtype))
        self.pooler = self.pooler_class(config, device, dtype) if add_pooling_layer else None
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
        encode = getattr(self, self.encoder_name)
        x_BTD = encode(self.embed(input_ids, token_type_ids), mask, skip_padding=skip_padding)
        return BertOutput(x_BTD, None if self.pooler is None else self.pooler(x_BTD))

    def embed(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """Return the input of the first layer (B, T, D)."""
        return self.embeddings(input_ids, token_type_ids)


BertPretrainedModel.base_class = BertModel


def without_pooler(family: str, asked: bool) -> bool:
    """Return False, for models that have no pooler.  Raises: ArgumentError if one is asked for"""
    if asked:
        raise ArgumentError(f"{family} has no pooler", hint="leave out add_pooling_layer")
    return False


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

    def __init__(self, config: BertConfig, width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, width, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)
        self.LayerNorm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)

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
            self.decoder = Linear(config.embedding_width, config.vocab_size, device=device, dtype=dtype)

    def logits(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        """Return the logits (B, T, V), by the word embeddings if they are tied, else by a linear layer."""
        return F.linear(x_BTD, embeddings_VD, self.bias) if self.decoder is None else self.decoder(x_BTD)


class BertPredictions(VocabularyLogits):
    """A transform, then logits over the vocabulary."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.transform = BertPredictionTransform(config, config.embedding_width, device, dtype)

    def forward(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        return self.logits(self.transform(x_BTD), embeddings_VD)


class BertMaskedLMHead(Module):
    """The head of BERT's language models, named as in checkpoints."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.predictions = BertPredictions(config, device, dtype)


BertPretrainedModel.lm_head_class = BertMaskedLMHead


class BertForMaskedLM(BertPretrainedModel):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.add_head(device, dtype)
        self.reset_parameters()

    def add_head(self, device: Any, dtype: Any) -> None:
        """Add what computes logits, under its name in checkpoints."""
        self.cls: Module = self.lm_head_class(self.config, device, dtype)

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        """Return the logits (B, T, V) of hidden states.  Args: embeddings_VE: those of the tokens"""
        return self.cls.predictions(x_BTD, embeddings_VE)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        x_BTD = self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.predict(x_BTD, self.base_model.embeddings.word_embeddings.weight)


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
        self.cls = self.lm_head_class(config, device, dtype)
        self.cls.seq_relationship = Linear(config.hidden_size, 2, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> PreTrainingLogits:
        encoded = self.base_model(input_ids, attention_mask, token_type_ids)
        embeddings_VD = self.base_model.embeddings.word_embeddings.weight
        predicted_BTV = self.cls.predictions(encoded.last_hidden_state, embeddings_VD)
        return PreTrainingLogits(predicted_BTV, self.cls.seq_relationship(encoded.pooler_output))


class BertNextSentenceHead(Module):
    """The head that says whether segments follow, named as in checkpoints."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.seq_relationship = Linear(config.hidden_size, 2, device=device, dtype=dtype)


class BertForNextSentencePrediction(BertPretrainedModel):
    """Says whether the second segment follows the first, or comes from elsewhere: logits (B, 2).

    Args:    as BertModel
    """

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype, add_pooling_layer=True)
        self.cls = BertNextSentenceHead(config, device, dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.cls.seq_relationship(self.base_model(input_ids, attention_mask, token_type_ids).pooler_output)


class BertForSequenceClassification(BertPretrainedModel):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel

    Attributes:
        pools_itself: the model without a head has a pooler.
    """

    pools_itself: ClassVar[bool] = True

    def __init__(self, config: BertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype, add_pooling_layer=self.pools_itself)
        self.dropout = Dropout(config.head_dropout)
        self.classifier = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.classifier(self.dropout(self.pooled(input_ids, attention_mask, token_type_ids)))

    def pooled(self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None) -> Tensor:
        """Return the vector (B, D) of each text that is classified."""
        return self.base_model(input_ids, attention_mask, token_type_ids).pooler_output


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
