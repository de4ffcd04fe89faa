"""The sizes of a BLIP, its encoder of images, and the layers that read and write texts; `blip` has the models.

Letters: B texts, C channels, Y and X pixels, T positions of a text, A sources (B is a multiple of A), S positions of a
source, D width, H heads, K head width, V vocabulary.

Source:  Li et al. 2022, arXiv:2201.12086; names as in the checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.config import Config, Count, Side, tupled
from tallow.models.encoders.bert import BertMaskedLMHead
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings, BertIntermediate, BertResidual
from tallow.models.encoders.encoder_layers import FeedForward
from tallow.models.pretrained import check_length
from tallow.models.seq2seq.cross_layers import CrossKeys
from tallow.models.seq2seq.model import Sources
from tallow.models.vision.clip import part_of
from tallow.models.vision.vit import PooledOutput, check_image, check_sizes, grid_of, positions_of, rectangle
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import causal_attention, cross_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import empty_parameter
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class BlipTextConfig(BertConfig):
    """The sizes of BLIP's encoder and decoder of texts, named as in Hugging Face's `config.json`.

    Attributes:
        encoder_hidden_size: the width of what the decoder writes about; that of the image's encoder.
        bos_token_id, sep_token_id: the tokens that begin and end what is written.
    """

    vocab_size: int = 30524
    hidden_size: int = 768
    encoder_hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    intermediate_size: int = 3072
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    type_vocab_size: Count = 0
    is_decoder: bool = True
    bos_token_id: int = 30522
    sep_token_id: int = 102

    model_types: ClassVar[tuple[str, ...]] = ("blip_text_model",)
    computed: ClassVar = BertConfig.computed | {"add_cross_attention": (False, True)}
    neutral: ClassVar = frozenset({"label_smoothing", "projection_dim"})  # of training, and of models that compare


@dataclass(frozen=True, kw_only=True)
class BlipVisionConfig(Config):
    """The sizes of BLIP's encoder of images, named as in Hugging Face's `config.json`."""

    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    image_size: Side = 384
    patch_size: Side = 16
    num_channels: int = 3
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0
    initializer_range: float = 1e-10

    model_types: ClassVar[tuple[str, ...]] = ("blip_vision_model",)
    neutral: ClassVar = frozenset({"projection_dim", "dropout", "tie_word_embeddings"})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        tupled(entries, "image_size", "patch_size")


@dataclass(frozen=True, kw_only=True)
class BlipConfig(Config):
    """The sizes of a BLIP, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        tie_word_embeddings: the decoder's head shares the matrix of its word embeddings.
    """

    text_config: BlipTextConfig = field(default_factory=BlipTextConfig)
    vision_config: BlipVisionConfig = field(default_factory=BlipVisionConfig)
    initializer_range: float = 0.02
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("blip",)
    layer_counts: ClassVar[tuple[str, ...]] = ()
    # Of training and of models that compare; the parts in another form; and what follows from the parts.
    neutral: ClassVar = frozenset(
        {"projection_dim", "logit_scale_init_value", "image_text_hidden_size", "label_smoothing"}
        | {"text_config_dict", "vision_config_dict"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        widths = {self.text_config.encoder_hidden_size, self.vision_config.hidden_size}
        self.require("text_config", "encoder_hidden_size as the images' hidden_size", lambda _: len(widths) == 1)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        own = {name: part_of(entries, name) for name in ("text_config", "vision_config")}
        if isinstance(entries.get("vision_config"), BlipVisionConfig):
            return
        vision = BlipVisionConfig.from_entries(own["vision_config"], "vision_config")
        text = own["text_config"] | {"encoder_hidden_size": vision.hidden_size}  # whatever it says, as in transformers
        entries["vision_config"] = vision
        entries["text_config"] = BlipTextConfig.from_entries(text, "text_config")

    def check_layers(self, tensors: int, source: str) -> None:
        self.text_config.check_layers(tensors, source)
        self.vision_config.check_layers(tensors, source)


class BlipImageAttention(Module):
    """Multi-head self-attention with one projection for queries, keys and values."""

    def __init__(self, config: BlipVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout_p = config.num_attention_heads, config.attention_dropout
        self.qkv = Linear(width, 3 * width, device=device, dtype=dtype)
        self.projection = Linear(width, width, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        query, key, value = (split_heads(each, self.heads) for each in self.qkv(x_BTD).chunk(3, -1))
        dropout = self.dropout_p if self.training else 0.0
        return self.projection(merge_heads(F.scaled_dot_product_attention(query, key, value, None, dropout)))


class BlipImageLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it."""

    def __init__(self, config: BlipVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.self_attn = BlipImageAttention(config, device, dtype)
        self.layer_norm1 = LayerNorm(width, eps, device=device, dtype=dtype)
        self.mlp = FeedForward(width, config.intermediate_size, activation_named(config.hidden_act), device, dtype)
        self.layer_norm2 = LayerNorm(width, eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.layer_norm1(x_BTD))
        return x_BTD + self.mlp(self.layer_norm2(x_BTD))


class BlipImageLayers(Module):
    """The layers of the encoder of images, under the name that checkpoints give their list."""

    def __init__(self, config: BlipVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layers = ModuleList(BlipImageLayer(config, device, dtype) for _ in range(config.num_hidden_layers))

    def forward(self, x_BTD: Tensor) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD)
        return x_BTD


class BlipImageEmbeddings(Module):
    """A learned token and the embedded patches, plus the embeddings of their positions."""

    def __init__(self, config: BlipVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.config = config
        width, patch = config.hidden_size, rectangle(config.patch_size)
        self.class_embedding = empty_parameter(1, 1, width, device=device, dtype=dtype)
        self.patch_embedding = Conv2d(config.num_channels, width, patch, patch, device=device, dtype=dtype)
        self.position_embedding = empty_parameter(1, 1 + prod(grid_of(config)), width, device=device, dtype=dtype)
        for table in (self.class_embedding, self.position_embedding):
            init.trunc_normal_(table, 0.0, config.initializer_range)

    def forward(self, pixels_BCYX: Tensor, *, any_size: bool) -> Tensor:
        project = self.patch_embedding
        check_image(pixels_BCYX, self.config, any_size=any_size)
        patches_BDYX = project(pixels_BCYX.to(project.weight.dtype))
        first_B1D = self.class_embedding.expand(pixels_BCYX.shape[0], 1, -1)
        x_BTD = apply(cat, (first_B1D, patches_BDYX.flatten(2).transpose(1, 2)), 1)
        return x_BTD + positions_of(self.position_embedding[0], grid_of(self.config), *patches_BDYX.shape[2:])


class BlipVisionModel(Module):
    """The encoder of images."""

    def __init__(self, config: BlipVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.embeddings = BlipImageEmbeddings(config, device, dtype)
        self.encoder = BlipImageLayers(config, device, dtype)
        self.post_layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> PooledOutput:
        """Encode images.  Args, shapes, raises: as `ViTModel.forward`"""
        x_BTD = self.embeddings(pixel_values, any_size=interpolate_pos_encoding)
        x_BTD = self.post_layernorm(self.encoder(x_BTD))
        return PooledOutput(x_BTD, self.post_layernorm(x_BTD[:, 0]))


class BlipProjections(Module):
    """Queries of a text, and keys and values of the text or of a source."""

    def __init__(self, config: BlipTextConfig, source_width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.query = Linear(width, width, device=device, dtype=dtype)
        self.key = Linear(source_width, width, device=device, dtype=dtype)
        self.value = Linear(source_width, width, device=device, dtype=dtype)


class BlipTextAttention(Module):
    """Attention of a text to itself or to a source, its output projection, and the residual."""

    def __init__(self, config: BlipTextConfig, source_width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.heads, self.dropout_p = config.num_attention_heads, config.attention_probs_dropout_prob
        self.self = BlipProjections(config, source_width, device, dtype)
        self.output = BertResidual(config.hidden_size, config, device, dtype)

    @property
    def dropout(self) -> float:
        """The dropout probability in effect."""
        return self.dropout_p if self.training else 0.0

    def query(self, x_BTD: Tensor) -> Tensor:
        """Return queries (B, H, T, K)."""
        return split_heads(self.self.query(x_BTD), self.heads)

    def keys_and_values(self, x_BSD: Tensor) -> CrossKeys:
        """Return keys and values (B, H, S, K)."""
        return CrossKeys(*(split_heads(each(x_BSD), self.heads) for each in (self.self.key, self.self.value)))


class SelfAttention(BlipTextAttention):
    """Attention of a text to itself: each position to those before it, or with a mask to all that it allows."""

    def forward(self, x_BTD: Tensor, layer: int, cache: KVCache | None, mask: Tensor | None, is_causal: bool) -> Tensor:
        keys, values = self.keys_and_values(x_BTD)
        if is_causal:
            lengths = masks = None
            if cache is not None:
                lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
                keys, values = cache.append(layer, keys, values)
            mixed_BHTK = causal_attention(
                self.query(x_BTD), keys, values, dropout_p=self.dropout, lengths=lengths, masks=masks
            )
        else:
            mixed_BHTK = F.scaled_dot_product_attention(self.query(x_BTD), keys, values, mask, self.dropout)
        return self.output(merge_heads(mixed_BHTK), x_BTD)


class SourceAttention(BlipTextAttention):
    """Attention of a text to a source."""

    def forward(self, x_BTD: Tensor, source: CrossKeys, mask: Tensor | None) -> Tensor:
        mixed_BHTK = cross_attention(self.query(x_BTD), *source, mask, dropout_p=self.dropout)
        return self.output(merge_heads(mixed_BHTK), x_BTD)


class BlipTextLayer(Module):
    """Attention to the text, attention to the source, and a feed-forward part; each is added, then normalised."""

    def __init__(self, config: BlipTextConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = SelfAttention(config, config.hidden_size, device, dtype)
        self.crossattention = SourceAttention(config, config.encoder_hidden_size, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = BertResidual(config.intermediate_size, config, device, dtype)

    def forward(
        self,
        x_BTD: Tensor,
        source: CrossKeys,
        source_mask: Tensor | None,
        layer: int,
        cache: KVCache | None,
        mask: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        x_BTD = self.attention(x_BTD, layer, cache, mask, is_causal)
        x_BTD = self.crossattention(x_BTD, source, source_mask)
        return self.output(self.intermediate(x_BTD), x_BTD)


class BlipTextLayers(Module):
    """The layers of an encoder or decoder of texts, under the name that checkpoints give their list."""

    def __init__(self, config: BlipTextConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = ModuleList(BlipTextLayer(config, device, dtype) for _ in range(config.num_hidden_layers))


class BlipTextModel(Module):
    """Reads or writes texts about sources."""

    def __init__(self, config: BlipTextConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config, device, dtype)
        self.encoder = BlipTextLayers(config, device, dtype)

    def cross_keys(self, encoded_ASD: Tensor) -> list[CrossKeys]:
        """Return the keys and values of encoded sources for each layer."""
        return [layer.crossattention.keys_and_values(encoded_ASD) for layer in self.encoder.layer]

    def forward(
        self,
        tokens_BT: Tensor,
        sources: Sources,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
    ) -> Tensor:
        """Return hidden states (B, T, D) of texts.

        Args:
            cache: of a text so far, to which the tokens are appended.
            mask: (B, 1, 1, T), True at text, for a text that is read to both sides.
            is_causal: each position sees itself and those before it.

        Raises:  ArgumentError for a text longer than the model's context
        """
        embeddings: Any = self.embeddings
        start, length = 0 if cache is None else cache.length, tokens_BT.shape[1]
        check_length(start + length, embeddings.context_length)
        x_BTD = embeddings.words(tokens_BT) + embeddings.position_embeddings.weight[start : start + length]
        x_BTD = embeddings.dropout(embeddings.LayerNorm(x_BTD))
        for i, (layer, keys) in enumerate(zip(self.encoder.layer, sources.layers, strict=True)):
            x_BTD = layer(x_BTD, keys, sources.mask, i, cache, mask, is_causal)
        if cache is not None:
            cache.advance(length)
        return x_BTD


class BlipTextLMHeadModel(Module):
    """Writes texts about sources."""

    def __init__(self, config: BlipTextConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.bert = BlipTextModel(config, device, dtype)
        self.cls = BertMaskedLMHead(config, device, dtype)

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits (B, T, V) from hidden states."""
        table: Any = self.bert.embeddings.word_embeddings
        return self.cls.predictions(hidden_BTD, table.weight)
