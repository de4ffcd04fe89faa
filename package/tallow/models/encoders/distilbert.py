"""DistilBERT: a smaller BERT without segments and pooler, and its heads.

Loads Hugging Face folders of `DistilBertModel`, `DistilBertForMaskedLM`, `DistilBertForSequenceClassification`,
`DistilBertForTokenClassification` and `DistilBertForQuestionAnswering`.

Letters: B batch, T positions, D width, H heads, K head width, V vocabulary, N labels.

Source:  Sanh et al. 2019, arXiv:1910.01108; names as in transformers' `modeling_distilbert.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import arange, zeros
from tallow.core.tensor import Tensor
from tallow.fused.eligibility import Kind
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of, rename
from tallow.models.encoders.encoder_layers import ACTIVATION, ATTENTION, EncoderLayers, encoder_block, encoder_pattern
from tallow.models.pretrained import PretrainedModel, SpanLogits, check_length
from tallow.nn import functional as F
from tallow.nn.attention import key_mask, merge_heads, split_heads
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter

# Names from the configs of other models, which transformers accepts as aliases.
ALIASES = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
EPS = 1e-12  # of every norm; not in the config


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(Config):
    """The sizes of a DistilBERT, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        tie_word_embeddings: the masked language model's head shares the matrix of the word embeddings.
        labels: the labels of a classifier, in the order of its logits; `id2label` in the file.
    """

    vocab_size: int
    max_position_embeddings: int = 512
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    initializer_range: float = 0.02
    qa_dropout: float = 0.1
    seq_classif_dropout: float = 0.2
    pad_token_id: int = 0
    tie_word_embeddings: bool = True
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    neutral: ClassVar = frozenset({"sinusoidal_pos_embds", "tie_weights_"})  # position embeddings are weights anyway

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation)
        self.require("pad_token_id", f"an id below {self.vocab_size}", lambda pad: 0 <= pad < self.vocab_size)
        self.check_heads("dim", "n_heads")

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        rename(entries, ALIASES)
        labels_of(entries)

    @property
    def hidden_size(self) -> int:
        """`dim`, under the name of other configs."""
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        """`n_layers`, under the name of other configs."""
        return self.n_layers


class DistilBertEmbeddings(Module):
    """The sum of the embeddings of the token and of its position."""

    def __init__(self, config: DistilBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, factory = config.dim, {"device": device, "dtype": dtype}
        self.word_embeddings = Embedding(config.vocab_size, width, padding_idx=config.pad_token_id, **factory)
        self.position_embeddings = Embedding(config.max_position_embeddings, width, **factory)
        self.LayerNorm = LayerNorm(width, EPS, **factory)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        length, limit = tokens_BT.shape[1], self.position_embeddings.num_embeddings
        check_length(length, limit)
        positions_T = arange(length, device=tokens_BT.device)
        x_BTD = self.word_embeddings(tokens_BT) + self.position_embeddings(positions_T)
        return self.dropout(self.LayerNorm(x_BTD))


class DistilBertAttention(Module):
    """Multi-head self-attention."""

    def __init__(self, config: DistilBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_heads = config.n_heads
        self.q_lin = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.k_lin = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.v_lin = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.out_lin = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.dropout_p = config.attention_dropout

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x_BTD), self.num_heads) for project in (self.q_lin, self.k_lin, self.v_lin)
        )
        dropout = self.dropout_p if self.training else 0.0
        return self.out_lin(merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout)))


class DistilBertFeedForward(Module):
    """lin2(activation(lin1(x)))"""

    def __init__(self, config: DistilBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.lin1 = Linear(config.dim, config.hidden_dim, device=device, dtype=dtype)
        self.lin2 = Linear(config.hidden_dim, config.dim, device=device, dtype=dtype)
        self.activation = activation_named(config.activation)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.dropout(self.lin2(self.activation(self.lin1(x_BTD))))


class DistilBertLayer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: DistilBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = DistilBertAttention(config, device, dtype)
        self.sa_layer_norm = LayerNorm(config.dim, EPS, device=device, dtype=dtype)
        self.ffn = DistilBertFeedForward(config, device, dtype)
        self.output_layer_norm = LayerNorm(config.dim, EPS, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.sa_layer_norm(self.attention(x_BTD, mask) + x_BTD)
        return self.output_layer_norm(self.ffn(x_BTD) + x_BTD)


class DistilBertTransformer(EncoderLayers):
    """The layers of a DistilBERT."""

    pattern = encoder_pattern(
        {DistilBertLayer: Kind(), DistilBertAttention: ATTENTION, DistilBertFeedForward: ACTIVATION}
    )

    def __init__(self, config: DistilBertConfig, device: Any, dtype: Any) -> None:
        super().__init__(DistilBertLayer(config, device, dtype) for _ in range(config.n_layers))

    def block_of(self, layer: DistilBertLayer) -> EncoderBlock:
        return encoder_block(
            query=layer.attention.q_lin,
            key=layer.attention.k_lin,
            value=layer.attention.v_lin,
            output=layer.attention.out_lin,
            attention_norm=layer.sa_layer_norm,
            up=layer.ffn.lin1,
            down=layer.ffn.lin2,
            output_norm=layer.output_layer_norm,
            heads=layer.attention.num_heads,
            activation=layer.ffn.activation,
        )


class DistilBertPretrainedModel(PretrainedModel):
    """The base of DistilBERT models with and without a head."""

    config_class = DistilBertConfig
    base_model_prefix = "distilbert"

    def is_superfluous(self, name: str) -> bool:
        heads = ("vocab_", "pre_classifier.", "classifier.", "qa_outputs.")
        return name.startswith(heads) or name.endswith(".position_ids")


class DistilBertModel(DistilBertPretrainedModel):
    """The encoder without a head: hidden states (B, T, D).

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: DistilBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = DistilBertEmbeddings(config, device, dtype)
        self.transformer = DistilBertTransformer(config, device, dtype)
        self.reset_parameters()

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.embeddings.position_embeddings.num_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, *, skip_padding: bool = False) -> Tensor:
        """Encode texts.

        Args:
            attention_mask: 1 or True for text, 0 or False for padding; None means no padding.
            skip_padding: the output at padding is not used, and may be zeros to save time.

        Shapes:  both (B, T), of integers
        """
        mask = None if attention_mask is None else key_mask(attention_mask)
        return self.transformer(self.embeddings(input_ids), mask, skip_padding=skip_padding)


class DistilBertProjector(Module):
    """Logits over the vocabulary: a product with the word embeddings, and a bias if the model has one."""

    def __init__(self, vocab_size: int, device: Any, dtype: Any, *, bias: bool = True) -> None:
        super().__init__()
        self.bias = Parameter(zeros(vocab_size, device=device, dtype=dtype)) if bias else None

    def forward(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        return F.linear(x_BTD, embeddings_VD, self.bias)


class DistilBertForMaskedLM(DistilBertPretrainedModel):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as DistilBertModel
    """

    def __init__(self, config: DistilBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config, device, dtype)
        self.vocab_transform = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.vocab_layer_norm = LayerNorm(config.dim, EPS, device=device, dtype=dtype)
        self.vocab_projector = (
            DistilBertProjector(config.vocab_size, device, dtype)
            if config.tie_word_embeddings
            else Linear(config.dim, config.vocab_size, device=device, dtype=dtype)
        )
        self.activation = activation_named(config.activation)
        self.reset_parameters()

    @property
    def tied_weights(self) -> Mapping[str, str]:
        tied = self.config.tie_word_embeddings
        return {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"} if tied else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x_BTD = self.activation(self.vocab_transform(self.distilbert(input_ids, attention_mask)))
        tied = (self.distilbert.embeddings.word_embeddings.weight,) if self.config.tie_word_embeddings else ()
        return self.vocab_projector(self.vocab_layer_norm(x_BTD), *tied)


class DistilBertForSequenceClassification(DistilBertPretrainedModel):
    """Labels whole texts by their first position: logits (B, N), in the order of `config.labels`.

    Args:    as DistilBertModel
    """

    def __init__(self, config: DistilBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config, device, dtype)
        self.pre_classifier = Linear(config.dim, config.dim, device=device, dtype=dtype)
        self.classifier = Linear(config.dim, len(config.labels), device=device, dtype=dtype)
        self.dropout = Dropout(config.seq_classif_dropout)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        first_BD = self.distilbert(input_ids, attention_mask)[:, 0]
        return self.classifier(self.dropout(F.relu(self.pre_classifier(first_BD))))


class DistilBertForTokenClassification(DistilBertPretrainedModel):
    """Labels every token: logits (B, T, N), in the order of `config.labels`.

    Args:    as DistilBertModel
    """

    def __init__(self, config: DistilBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config, device, dtype)
        self.dropout = Dropout(config.dropout)
        self.classifier = Linear(config.dim, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.classifier(self.dropout(self.distilbert(input_ids, attention_mask)))


class DistilBertForQuestionAnswering(DistilBertPretrainedModel):
    """Finds where an answer starts and ends: logits (B, T) for each.

    Args:    as DistilBertModel
    """

    def __init__(self, config: DistilBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config, device, dtype)
        self.qa_outputs = Linear(config.dim, 2, device=device, dtype=dtype)
        self.dropout = Dropout(config.qa_dropout)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SpanLogits:
        x_BTD = self.dropout(self.distilbert(input_ids, attention_mask))
        return SpanLogits(*self.qa_outputs(x_BTD).unbind(-1))
