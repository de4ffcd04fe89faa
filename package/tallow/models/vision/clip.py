"""CLIP: an encoder of images and one of texts, whose vectors are near each other where a text describes an image.

Loads Hugging Face folders of `CLIPModel`, `CLIPForImageClassification`, `CLIPTextModel`, `CLIPVisionModel`,
`CLIPTextModelWithProjection` and `CLIPVisionModelWithProjection`; those of one encoder from the folder of a `CLIPModel`
as well.

Letters: B texts, I images, C channels, Y and X pixels, T positions, D width, E width of the shared vectors, L labels.

Source:  Radford et al. 2021, arXiv:2103.00020; names as in the checkpoints
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

from tallow.core.apply import apply
from tallow.core.creation import arange, full
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of
from tallow.models.encoders.bert import backward_mask
from tallow.models.encoders.encoder_layers import FeedForward
from tallow.models.pretrained import PretrainedModel, check_length
from tallow.models.vision.vit import PooledOutput, check_image, check_sizes, grid_of, positions_of
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import key_mask, merge_heads, split_heads
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.ops.joining import cat

LEGACY_END = 2  # `eos_token_id` of older files, which is not the tokenizer's: there the end has the highest id


@dataclass(frozen=True, kw_only=True)
class CLIPTowerConfig(Config):
    """The sizes that both encoders have.

    Attributes:
        projection_dim: E.
        part: the entry with these sizes in the `config.json` of a `CLIPModel`.
    """

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int = 12
    num_attention_heads: int
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float = 0.0
    initializer_range: float = 0.02
    projection_dim: int = 512

    part: ClassVar[str]
    neutral: ClassVar = frozenset({"dropout", "tie_word_embeddings"})  # of no use in an encoder

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        if entries.get("model_type") == "clip":
            own = part_of(entries, cls.part) | {"projection_dim": entries.get("projection_dim")}  # that of the weights
            entries.clear()
            entries.update(own)


@dataclass(frozen=True, kw_only=True)
class CLIPTextConfig(CLIPTowerConfig):
    """The sizes of CLIP's encoder of texts, named as in Hugging Face's `config.json`.

    Attributes:
        eos_token_id: the token whose position represents a text; 2 means the highest id of the text.
    """

    vocab_size: int = 49408
    hidden_size: int = 512
    intermediate_size: int = 2048
    num_attention_heads: int = 8
    max_position_embeddings: int = 77
    eos_token_id: int = 49407

    model_types: ClassVar[tuple[str, ...]] = ("clip_text_model", "clip")
    part = "text_config"


@dataclass(frozen=True, kw_only=True)
class CLIPVisionConfig(CLIPTowerConfig):
    """The sizes of CLIP's encoder of images, named as in Hugging Face's `config.json`."""

    hidden_size: int = 768
    intermediate_size: int = 3072
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int = 224
    patch_size: int = 32

    model_types: ClassVar[tuple[str, ...]] = ("clip_vision_model", "clip")
    part = "vision_config"


def part_of(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the entries of one encoder. In older files `NAME_dict` takes the place of `NAME`.

    Raises:  CheckpointError
    """
    own = entries.get(f"{name}_dict") or entries.get(name) or {}
    if not isinstance(own, dict):
        raise CheckpointError(f"{name} is {own!r:.80}", hint="use the model's own config.json")
    return own


@dataclass(frozen=True, kw_only=True)
class CLIPConfig(Config):
    """The sizes of a CLIP, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        projection_dim: E.
        logit_scale_init_value: of fresh weights, the logarithm of the factor of the cosines.
        labels: the labels of the classifier of images, in the order of its logits; `id2label` in the file.
    """

    text_config: CLIPTextConfig = field(default_factory=CLIPTextConfig)
    vision_config: CLIPVisionConfig = field(default_factory=CLIPVisionConfig)
    projection_dim: int = 512
    logit_scale_init_value: float = 2.6592
    initializer_range: float = 0.02
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("clip",)
    neutral: ClassVar = frozenset({"text_config_dict", "vision_config_dict"})  # read by from_entries
    unread: ClassVar = frozenset({"initializer_range"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str, *, strict: bool = False) -> Self:
        kinds = (CLIPTextConfig, CLIPVisionConfig)
        if entries.get("model_type", "clip") == "clip":
            parts = {
                kind.part: kind.from_entries(part_of(entries, kind.part), f"{source}: {kind.part}", strict=strict)
                for kind in kinds
            }
            entries = {**entries, **parts}
        return super().from_entries(entries, source, strict=strict)

    def check_layers(self, tensors: int, source: str) -> None:
        self.text_config.check_layers(tensors, source)
        self.vision_config.check_layers(tensors, source)


class CLIPAttention(Module):
    """Multi-head self-attention."""

    def __init__(self, config: CLIPTowerConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.k_proj = Linear(width, width, device=device, dtype=dtype)
        self.v_proj = Linear(width, width, device=device, dtype=dtype)
        self.q_proj = Linear(width, width, device=device, dtype=dtype)
        self.out_proj = Linear(width, width, device=device, dtype=dtype)
        self.dropout_p = config.attention_dropout

    def forward(self, x_BTD: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x_BTD), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        dropout = self.dropout_p if self.training else 0.0
        return self.out_proj(
            merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout, is_causal))
        )


class CLIPLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it."""

    def __init__(self, config: CLIPTowerConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, activation = config.hidden_size, activation_named(config.hidden_act)
        self.self_attn = CLIPAttention(config, device, dtype)
        self.layer_norm1 = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)
        self.mlp = FeedForward(width, config.intermediate_size, activation, device, dtype)
        self.layer_norm2 = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.layer_norm1(x_BTD), mask, is_causal)
        return x_BTD + self.mlp(self.layer_norm2(x_BTD))


class CLIPEncoder(Module):
    """The layers of an encoder."""

    def __init__(self, config: CLIPTowerConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layers = ModuleList(CLIPLayer(config, device, dtype) for _ in range(config.num_hidden_layers))

    def forward(self, x_BTD: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            x_BTD = layer(x_BTD, mask, is_causal)
        return x_BTD


class CLIPTextEmbeddings(Module):
    """The sum of the embeddings of the token and of its position."""

    def __init__(self, config: CLIPTextConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.token_embedding = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.position_embedding = Embedding(
            config.max_position_embeddings, config.hidden_size, device=device, dtype=dtype
        )

    def forward(self, tokens_BT: Tensor) -> Tensor:
        length = tokens_BT.shape[1]
        check_length(length, self.position_embedding.num_embeddings)
        return self.token_embedding(tokens_BT) + self.position_embedding.weight[:length]


class CLIPVisionEmbeddings(Module):
    """A learned token and the embedded patches, plus the embeddings of their positions."""

    def __init__(self, config: CLIPVisionConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.config = config
        width, patch = config.hidden_size, config.patch_size
        positions = 1 + prod(grid_of(config))
        self.class_embedding = empty_parameter(width, device=device, dtype=dtype)
        self.patch_embedding = Conv2d(config.num_channels, width, patch, patch, bias=False, device=device, dtype=dtype)
        self.position_embedding = Embedding(positions, width, device=device, dtype=dtype)
        init.normal_(self.class_embedding, 0.0, config.initializer_range)

    def forward(self, pixels_BCYX: Tensor, *, any_size: bool) -> Tensor:
        project = self.patch_embedding
        check_image(pixels_BCYX, self.config, any_size=any_size)
        patches_BDYX = project(pixels_BCYX.to(project.weight.dtype))
        first_B1D = self.class_embedding.expand(pixels_BCYX.shape[0], 1, -1)
        x_BTD = apply(cat, (first_B1D, patches_BDYX.flatten(2).transpose(1, 2)), 1)
        return x_BTD + positions_of(self.position_embedding.weight, grid_of(self.config), *patches_BDYX.shape[2:])


class CLIPTowerModel(PretrainedModel):
    """The base of both encoders."""

    def is_superfluous(self, name: str) -> bool:
        other = "vision_model." if self.base_model_prefix == "text_model" else "text_model."
        heads = ("text_projection.", "visual_projection.", "logit_scale", "classifier.")
        return name.startswith((other, *heads)) or name.endswith(".position_ids")


class CLIPTextModel(CLIPTowerModel):
    """The encoder of texts; a position sees itself and those before it.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    config_class = CLIPTextConfig
    base_model_prefix = "text_model"

    def __init__(self, config: CLIPTextConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = CLIPTextEmbeddings(config, device, dtype)
        self.encoder = CLIPEncoder(config, device, dtype)
        self.final_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.config.max_position_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> PooledOutput:
        """Encode texts.

        Args:    attention_mask: 1 or True for text, 0 or False for padding; None means no padding. Padding behind a
                 text does not change its vector
        Shapes:  both (B, T), of integers
        """
        mask = None
        if attention_mask is not None:
            mask = backward_mask(input_ids.shape[1], key_mask(attention_mask), input_ids.device)
        x_BTD = self.encoder(self.embeddings(input_ids), mask, is_causal=mask is None)
        x_BTD = self.final_layer_norm(x_BTD)
        end = self.config.eos_token_id
        ends_B = (input_ids if end == LEGACY_END else (input_ids == end).long()).argmax(-1)
        return PooledOutput(x_BTD, x_BTD[arange(input_ids.shape[0], device=input_ids.device), ends_B])


class CLIPVisionModel(CLIPTowerModel):
    """The encoder of images.

    Args:    as CLIPTextModel
    """

    config_class = CLIPVisionConfig
    base_model_prefix = "vision_model"

    def __init__(self, config: CLIPVisionConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        width, eps = config.hidden_size, config.layer_norm_eps
        self.embeddings = CLIPVisionEmbeddings(config, device, dtype)
        self.pre_layrnorm = LayerNorm(width, eps, device=device, dtype=dtype)  # spelt as in checkpoints
        self.encoder = CLIPEncoder(config, device, dtype)
        self.post_layernorm = LayerNorm(width, eps, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> PooledOutput:
        """Encode images.

        Args:    interpolate_pos_encoding: take images of any size, and resize the position embeddings
        Shapes:  pixel_values (I, C, height, width), as `ImageProcessor` returns them
        Raises:  ShapeError for other shapes
        """
        x_BTD = self.pre_layrnorm(self.embeddings(pixel_values, any_size=interpolate_pos_encoding))
        x_BTD = self.encoder(x_BTD)
        return PooledOutput(x_BTD, self.post_layernorm(x_BTD[:, 0]))


class CLIPTextModelOutput(NamedTuple):
    """Vectors of texts that can be compared with those of images, and hidden states.

    Shapes:  text_embeds (B, E); last_hidden_state (B, T, D)
    """

    text_embeds: Tensor
    last_hidden_state: Tensor


class CLIPTextModelWithProjection(CLIPTowerModel):
    """The encoder of texts, and its projection to the shared vectors.

    Args:    as CLIPTextModel
    """

    config_class = CLIPTextConfig
    base_model_prefix = "text_model"

    def __init__(self, config: CLIPTextConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.text_model = CLIPTextModel(config, device, dtype)
        self.text_projection = Linear(config.hidden_size, config.projection_dim, False, device, dtype)
        self.reset_parameters()

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.text_model.context_length

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CLIPTextModelOutput:
        """Encode texts.  Args, shapes: as `CLIPTextModel`"""
        hidden_BTD, pooled_BD = self.text_model(input_ids, attention_mask)
        return CLIPTextModelOutput(self.text_projection(pooled_BD), hidden_BTD)


class CLIPVisionModelOutput(NamedTuple):
    """Vectors of images that can be compared with those of texts, and hidden states.

    Shapes:  image_embeds (I, E); last_hidden_state (I, T, D)
    """

    image_embeds: Tensor
    last_hidden_state: Tensor


class CLIPVisionModelWithProjection(CLIPTowerModel):
    """The encoder of images, and its projection to the shared vectors.

    Args:    as CLIPTextModel
    """

    config_class = CLIPVisionConfig
    base_model_prefix = "vision_model"

    def __init__(self, config: CLIPVisionConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.vision_model = CLIPVisionModel(config, device, dtype)
        self.visual_projection = Linear(config.hidden_size, config.projection_dim, False, device, dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> CLIPVisionModelOutput:
        """Encode images.  Args, shapes: as `CLIPVisionModel`"""
        hidden_ITD, pooled_ID = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding)
        return CLIPVisionModelOutput(self.visual_projection(pooled_ID), hidden_ITD)


class CLIPOutput(NamedTuple):
    """The output of CLIP. The logits are cosines of the vectors, times a learned factor.

    Shapes:  logits_per_image (I, B); logits_per_text (B, I); text_embeds (B, E) and image_embeds (I, E) of length 1
    """

    logits_per_image: Tensor
    logits_per_text: Tensor
    text_embeds: Tensor
    image_embeds: Tensor


class CLIPModel(PretrainedModel):
    """Both encoders, and the projections to vectors that can be compared.

    Args:    as CLIPTextModel
    """

    config_class = CLIPConfig
    base_model_prefix = "clip"

    def __init__(self, config: CLIPConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        text, vision, width = config.text_config, config.vision_config, config.projection_dim
        self.text_model = CLIPTextModel(text, device, dtype)
        self.vision_model = CLIPVisionModel(vision, device, dtype)
        self.visual_projection = Linear(vision.hidden_size, width, bias=False, device=device, dtype=dtype)
        self.text_projection = Linear(text.hidden_size, width, bias=False, device=device, dtype=dtype)
        self.logit_scale = Parameter(full((), config.logit_scale_init_value, device=device, dtype=dtype))
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return name.endswith(".position_ids")

    def get_text_features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the vectors (B, E) of texts; arguments as for `CLIPTextModel`."""
        return self.text_projection(self.text_model(input_ids, attention_mask).pooler_output)

    def get_image_features(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> Tensor:
        """Return the vectors (I, E) of images; arguments as for `CLIPVisionModel`."""
        encoded = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding)
        return self.visual_projection(encoded.pooler_output)

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        *,
        interpolate_pos_encoding: bool = False,
    ) -> CLIPOutput:
        """Compare texts with images; arguments as for the two encoders."""
        images_IE = F.normalize(
            self.get_image_features(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding), dim=-1
        )
        texts_BE = F.normalize(self.get_text_features(input_ids, attention_mask), dim=-1)
        logits_BI = texts_BE @ images_IE.T * self.logit_scale.exp()
        return CLIPOutput(logits_BI.T, logits_BI, texts_BE, images_IE)


class CLIPForImageClassification(PretrainedModel):
    """Labels images by the mean of the patches: logits (I, L), in the order of `config.labels`.

    Args:    as CLIPTextModel
    """

    config_class = CLIPConfig
    base_model_prefix = "clip"

    def __init__(self, config: CLIPConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        vision = config.vision_config
        self.vision_model = CLIPVisionModel(vision, device, dtype)
        self.classifier = Linear(vision.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        others = ("text_model.", "text_projection.", "visual_projection.", "logit_scale")
        return name.startswith(others) or name.endswith(".position_ids")

    def forward(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> Tensor:
        """Return logits (I, L).  Args, shapes, raises: as `CLIPVisionModel`"""
        x_ITD = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
        return self.classifier(x_ITD[:, 1:].mean(1))
