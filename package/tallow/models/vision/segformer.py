"""SegFormer: stages of attention over smaller and smaller maps, in which keys and values come from maps that are
smaller still; and heads for labels of pixels and of pictures.

Loads Hugging Face folders of `SegformerModel`, `SegformerForSemanticSegmentation` and
`SegformerForImageClassification`.

Letters: B batch, C channels, Y and X pixels or cells, T cells, D width, L labels.

Source:  Xie et al. 2021, arXiv:2105.15203; the smaller maps: Wang et al. 2021, arXiv:2102.12122; names as in the
         checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of, tupled
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.dinov2 import DropPath
from tallow.models.vision.vit import Dense
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.channel_normalization import BatchNorm2d
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.ops.joining import cat

OF_STAGES = ("depths", "sr_ratios", "hidden_sizes", "patch_sizes", "strides", "num_attention_heads", "mlp_ratios")


@dataclass(frozen=True, kw_only=True)
class SegformerConfig(Config):
    """The sizes of a SegFormer, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        num_encoder_blocks: the number of stages.
        depths, hidden_sizes, num_attention_heads: layers, width and heads of each stage.
        sr_ratios: how much smaller the maps of keys and values are than those of queries, in each stage.
        patch_sizes, strides: of the convolution before each stage.
        mlp_ratios: the width of each feed-forward part, relative to hidden_sizes.
        drop_path_rate: in training, the probability that a sample skips a part of the last layer; less for others.
        decoder_hidden_size: channels of the head for pixels.
        semantic_loss_ignore_index: the label of pixels that a loss leaves out.
        labels: names of the labels, in the order of the logits; `id2label` in the file.
    """

    num_channels: int = 3
    num_encoder_blocks: int = 4
    depths: tuple[int, ...] = (2, 2, 2, 2)
    sr_ratios: tuple[int, ...] = (8, 4, 2, 1)
    hidden_sizes: tuple[int, ...] = (32, 64, 160, 256)
    patch_sizes: tuple[int, ...] = (7, 3, 3, 3)
    strides: tuple[int, ...] = (4, 2, 2, 2)
    num_attention_heads: tuple[int, ...] = (1, 2, 5, 8)
    mlp_ratios: tuple[int, ...] = (4, 4, 4, 4)
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    drop_path_rate: float = 0.1
    decoder_hidden_size: int = 256
    semantic_loss_ignore_index: int = 255
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    model_types: ClassVar[tuple[str, ...]] = ("segformer",)
    layer_counts: ClassVar[tuple[str, ...]] = ("layers",)
    computed: ClassVar = {"reshape_last_stage": (True,)}
    # The norms have PyTorch's epsilon whatever the file says; the other entries are of older versions.
    neutral: ClassVar = frozenset({"layer_norm_eps", "image_size", "downsampling_rates", "num_hidden_layers"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        count = self.num_encoder_blocks
        for name in OF_STAGES:
            what = f"{count} positive numbers, one for each stage"
            self.require(name, what, lambda sizes: len(sizes) == count and min(sizes) > 0)
        self.require(
            "num_attention_heads",
            "numbers that divide hidden_sizes",
            lambda heads: not any(width % each for width, each in zip(self.hidden_sizes, heads, strict=True)),
        )
        self.require("drop_path_rate", "a probability below 1", lambda rate: rate < 1)

    @property
    def layers(self) -> int:
        """The number of all layers."""
        return sum(self.depths)

    def smallest(self, side: int) -> int:
        """Return the length of the shortest side of all maps, of pictures with a side of this length."""
        least = side
        for patch, stride, ratio in zip(self.patch_sizes, self.strides, self.sr_ratios, strict=True):
            side = (side + 2 * (patch // 2) - patch) // stride + 1
            least = min(least, side // ratio)
        return least

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)
        tupled(entries, *OF_STAGES)


def to_map(x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
    """Return cells (B, T, D) as a map (B, D, Y, X)."""
    return x_BTD.transpose(1, 2).reshape(x_BTD.shape[0], x_BTD.shape[2], *size)


def to_cells(x_BDYX: Tensor) -> Tensor:
    """Return a map (B, D, Y, X) as cells (B, T, D)."""
    return x_BDYX.flatten(2).transpose(1, 2)


class SegformerSelfAttention(Module):
    """Attention whose keys and values come from a map that is `ratio` times smaller."""

    def __init__(self, config: SegformerConfig, stage: int, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        width, ratio = config.hidden_sizes[stage], config.sr_ratios[stage]
        self.heads, self.ratio = config.num_attention_heads[stage], ratio
        self.query = Linear(width, width, **factory)
        self.key = Linear(width, width, **factory)
        self.value = Linear(width, width, **factory)
        if ratio > 1:
            self.sr = Conv2d(width, width, ratio, ratio, **factory)
            self.layer_norm = LayerNorm(width, **factory)
        self.dropout_p = config.attention_probs_dropout_prob

    def forward(self, x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
        seen_BSD = x_BTD
        if self.ratio > 1:
            seen_BSD = self.layer_norm(to_cells(self.sr(to_map(x_BTD, size))))
        parts = self.query(x_BTD), self.key(seen_BSD), self.value(seen_BSD)
        q_BHTK, k_BHSK, v_BHSK = (split_heads(each, self.heads) for each in parts)
        dropout = self.dropout_p if self.training else 0.0
        return merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSK, None, dropout))


class SegformerAttention(Module):
    """Self-attention and its output projection."""

    def __init__(self, config: SegformerConfig, stage: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_sizes[stage]
        self.self = SegformerSelfAttention(config, stage, device, dtype)
        self.output = Dense(width, width, device, dtype)

    def forward(self, x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
        return self.output(self.self(x_BTD, size))


class DepthwiseConvolution(Module):
    """A convolution of each channel, by which cells know where they are."""

    def __init__(self, channels: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dwconv = Conv2d(channels, channels, 3, padding=1, groups=channels, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
        return to_cells(self.dwconv(to_map(x_BTD, size)))


class MixedFeedForward(Module):
    """dense2(activation(dwconv(dense1(x))))"""

    def __init__(self, config: SegformerConfig, stage: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_sizes[stage]
        inner = width * config.mlp_ratios[stage]
        self.dense1 = Linear(width, inner, device=device, dtype=dtype)
        self.dwconv = DepthwiseConvolution(inner, device, dtype)
        self.dense2 = Linear(inner, width, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
        inner = self.dropout(self.activation(self.dwconv(self.dense1(x_BTD), size)))
        return self.dropout(self.dense2(inner))


class SegformerLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it."""

    def __init__(self, config: SegformerConfig, stage: int, rate: float, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_sizes[stage]
        self.layer_norm_1 = LayerNorm(width, device=device, dtype=dtype)
        self.attention = SegformerAttention(config, stage, device, dtype)
        self.layer_norm_2 = LayerNorm(width, device=device, dtype=dtype)
        self.mlp = MixedFeedForward(config, stage, device, dtype)
        self.dropout, self.drop_path = Dropout(config.hidden_dropout_prob), DropPath(rate)

    def forward(self, x_BTD: Tensor, size: tuple[int, int]) -> Tensor:
        x_BTD = x_BTD + self.drop_path(self.dropout(self.attention(self.layer_norm_1(x_BTD), size)))
        return x_BTD + self.drop_path(self.mlp(self.layer_norm_2(x_BTD), size))


class OverlappingPatches(Module):
    """Embeds patches that overlap, and normalises them."""

    def __init__(self, config: SegformerConfig, stage: int, device: Any, dtype: Any) -> None:
        super().__init__()
        before = config.hidden_sizes[stage - 1] if stage else config.num_channels
        side, width = config.patch_sizes[stage], config.hidden_sizes[stage]
        self.proj = Conv2d(before, width, side, config.strides[stage], side // 2, device=device, dtype=dtype)
        self.layer_norm = LayerNorm(width, device=device, dtype=dtype)

    def forward(self, x_BCYX: Tensor) -> tuple[Tensor, tuple[int, int]]:
        x_BDYX = self.proj(x_BCYX)
        height, width = (int(each) for each in x_BDYX.shape[2:])
        return self.layer_norm(to_cells(x_BDYX)), (height, width)


class SegformerEncoder(Module):
    """The stages."""

    def __init__(self, config: SegformerConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        stages = range(config.num_encoder_blocks)
        step = config.drop_path_rate / max(1, config.layers - 1)
        self.patch_embeddings = ModuleList(OverlappingPatches(config, stage, device, dtype) for stage in stages)
        self.block = ModuleList(
            ModuleList(
                SegformerLayer(config, stage, step * (sum(config.depths[:stage]) + i), device, dtype)
                for i in range(config.depths[stage])
            )
            for stage in stages
        )
        self.layer_norm = ModuleList(LayerNorm(width, device=device, dtype=dtype) for width in config.hidden_sizes)

    def forward(self, x_BCYX: Tensor) -> list[Tensor]:
        maps = []
        for embed, layers, norm in zip(self.patch_embeddings, self.block, self.layer_norm, strict=True):
            x_BTD, size = embed(x_BCYX)
            for layer in layers:
                x_BTD = layer(x_BTD, size)
            x_BCYX = to_map(norm(x_BTD), size)
            maps.append(x_BCYX)
        return maps


class StagesOutput(NamedTuple):
    """The output of a SegFormer without a head.

    Shapes:  last_hidden_state (B, D, Y, X), the map of the last stage; hidden_states: those of all stages
    """

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]


class SegformerPretrainedModel(PretrainedModel):
    """The base of SegFormers with and without a head."""

    config_class = SegformerConfig
    base_model_prefix = "segformer"

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("decode_head.", "classifier.")) or name.endswith(".num_batches_tracked")


class SegformerModel(SegformerPretrainedModel):
    """The stages without a head.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: SegformerConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.encoder = SegformerEncoder(config, device, dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor) -> StagesOutput:
        """Return the maps (B, D, Y, X) of the stages, from fine to coarse.

        Shapes:  pixel_values (B, C, Y, X) of any size from which the stages leave a cell
        Raises:  ShapeError for other shapes
        """
        shape, channels = tuple(pixel_values.shape), self.config.num_channels
        if len(shape) != 4 or shape[1] != channels or self.config.smallest(min(shape[2:])) < 1:
            raise ShapeError(
                f"images {shape}; expected (B, {channels}, height, width), from which the stages leave a cell",
                hint="resize them with ImageProcessor",
            )
        maps = self.encoder(pixel_values.to(self.encoder.patch_embeddings[0].proj.weight.dtype))
        return StagesOutput(maps[-1], tuple(maps))


class LinearProjection(Module):
    """A linear map of each cell, under the name that checkpoints give it."""

    def __init__(self, before: int, after: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.proj = Linear(before, after, device=device, dtype=dtype)


class SegformerHead(Module):
    """Makes maps of one width and size of all stages, and labels the pixels of the finest."""

    def __init__(self, config: SegformerConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, factory = config.decoder_hidden_size, {"device": device, "dtype": dtype}
        self.linear_c = ModuleList(LinearProjection(before, width, device, dtype) for before in config.hidden_sizes)
        self.linear_fuse = Conv2d(width * config.num_encoder_blocks, width, 1, bias=False, **factory)
        self.batch_norm = BatchNorm2d(width, **factory)
        self.dropout = Dropout(config.classifier_dropout_prob)
        self.classifier = Conv2d(width, len(config.labels), 1, **factory)

    def forward(self, maps: tuple[Tensor, ...]) -> Tensor:
        finest = tuple(int(each) for each in maps[0].shape[2:])
        alike = []
        for x_BDYX, project in zip(maps, self.linear_c, strict=True):
            own = int(x_BDYX.shape[2]), int(x_BDYX.shape[3])
            own_map = to_map(project.proj(to_cells(x_BDYX)), own)
            alike.append(F.interpolate(own_map, size=finest, mode="bilinear", align_corners=False))
        x_BDYX = F.relu(self.batch_norm(self.linear_fuse(apply(cat, alike[::-1], 1))))
        return self.classifier(self.dropout(x_BDYX))


class SegformerForSemanticSegmentation(SegformerPretrainedModel):
    """Labels pixels: logits (B, L, Y, X) for cells of 4 by 4 pixels, in the order of `config.labels`.

    Args:    as SegformerModel
    """

    def __init__(self, config: SegformerConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.segformer = SegformerModel(config, device, dtype)
        self.decode_head = SegformerHead(config, device, dtype)
        self.reset_parameters()

    def of_stages(self, stages: StagesOutput) -> Tensor:
        """Return the logits of the maps of the stages."""
        return self.decode_head(stages.hidden_states)

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.of_stages(self.segformer(pixel_values))


class SegformerForImageClassification(SegformerPretrainedModel):
    """Labels images: logits (B, L), in the order of `config.labels`.

    Args:    as SegformerModel
    """

    def __init__(self, config: SegformerConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.segformer = SegformerModel(config, device, dtype)
        self.classifier = Linear(config.hidden_sizes[-1], len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def of_stages(self, stages: StagesOutput) -> Tensor:
        """Return the logits of the maps of the stages."""
        return self.classifier(stages.last_hidden_state.mean((2, 3)))

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.of_stages(self.segformer(pixel_values))
