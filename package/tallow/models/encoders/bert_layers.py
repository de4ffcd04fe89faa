"""The sizes of a BERT and its layers; `bert` has the models.

Letters: B batch, T positions, D width, H heads, K head width, V vocabulary, N labels.

Source:  Devlin et al. 2018, arXiv:1810.04805; names as in transformers' `modeling_bert.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import arange, zeros
from tallow.core.tensor import Tensor
from tallow.fused.eligibility import Kind
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of
from tallow.models.encoders.encoder_layers import ACTIVATION, ATTENTION, EncoderLayers, encoder_block, encoder_pattern
from tallow.models.pretrained import check_length
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


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
        self.check_heads("hidden_size", "num_attention_heads")

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)

    @property
    def adds_positions(self) -> bool:
        """The embeddings of tokens are added to those of their positions."""
        return True

    @property
    def embedding_width(self) -> int:
        """The width of the embeddings, and of the language model's head."""
        return self.hidden_size

    @property
    def head_dropout(self) -> float:
        """The dropout probability before a classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout


class BertEmbeddings(Module):
    """The sum of the embeddings of the token, of its position and of its segment; relatives lack one of the latter.

    As in transformers, a model without embeddings of segments reads all of them alike.
    """

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, factory = config.embedding_width, {"device": device, "dtype": dtype}
        self.word_embeddings = Embedding(config.vocab_size, width, padding_idx=config.pad_token_id, **factory)
        self.context_length = config.max_position_embeddings
        self.position_embeddings = (
            Embedding(config.max_position_embeddings, width, **factory) if config.adds_positions else None
        )
        self.token_type_embeddings = (
            Embedding(config.type_vocab_size, width, **factory) if config.type_vocab_size else None
        )
        self.LayerNorm: Module = LayerNorm(width, config.layer_norm_eps, **factory)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        return self.dropout(self.LayerNorm(self.sum(tokens_BT, segments_BT)))

    def sum(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        """Return the embeddings before they are normalised; None means that all tokens are of the first segment."""
        x_BTD = self.words(tokens_BT)
        if self.token_type_embeddings is not None:
            if segments_BT is None:
                segments_BT = zeros((1, 1), dtype=tokens_BT.dtype, device=tokens_BT.device)
            x_BTD = x_BTD + self.token_type_embeddings(segments_BT)
        if self.position_embeddings is not None:
            x_BTD = x_BTD + self.position_embeddings(self.positions(tokens_BT))
        return x_BTD

    def words(self, tokens_BT: Tensor) -> Tensor:
        """Return the embeddings of the tokens alone."""
        return self.word_embeddings(tokens_BT)

    def positions(self, tokens_BT: Tensor) -> Tensor:
        """Return each token's row in the position embeddings, (B, T) or (T,).

        Raises:  ArgumentError for a text longer than the model's context
        """
        length = tokens_BT.shape[1]
        check_length(length, self.context_length)
        return arange(length, device=tokens_BT.device)


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
