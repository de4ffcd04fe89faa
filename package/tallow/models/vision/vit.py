"""ViT: an encoder that reads an image as a sequence of square patches, after a token for the whole image; its
classifier, and the decoder of images with masked patches.

Loads Hugging Face folders of `ViTModel`, `ViTForImageClassification` and `ViTForMaskedImageModeling`.

Letters: B batch, C channels, Y and X pixels, P patches, T positions (P + 1), D width, L labels.

Source:  Dosovitskiy et al. 2020, arXiv:2010.11929; names as in the checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.models.activations import activation_named
from tallow.models.config import Config, Side, labels_of, tupled
from tallow.models.encoders.bert_layers import BertIntermediate, BertSelfAttention
from tallow.models.pretrained import PooledModel, PretrainedModel
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.container import ModuleList, Sequential
from tallow.nn.convolution import Conv2d
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.nn.reshaping import PixelShuffle
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class ImageConfig(Config):
    """The sizes that a ViT and a DINOv2 have in common.

    Attributes:
        image_size, patch_size: the sides of the images and of the patches, in pixels; or the heights and the widths.
        labels: the labels of the classifier, in the order of its logits; `id2label` in the file.
    """

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    initializer_range: float = 0.02
    image_size: Side = 224
    patch_size: Side = 16
    num_channels: int = 3
    qkv_bias: bool = True
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(self)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)
        tupled(entries, "image_size", "patch_size")


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ImageConfig):
    """The sizes of a ViT, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        pooler_output_size, pooler_act: the width of the pooler's output, None for hidden_size, and its activation.
        encoder_stride: the sides in pixels of what the decoder of masked images makes of a patch.
    """

    intermediate_size: int = 3072
    layer_norm_eps: float = 1e-12
    pooler_output_size: int | None = None
    pooler_act: str = "tanh"
    encoder_stride: int = 16

    model_types: ClassVar[tuple[str, ...]] = ("vit",)

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.pooler_act)
        self.require("encoder_stride", "1 to 1024", lambda stride: 0 < stride <= 1024)


def rectangle(side: Side) -> tuple[int, int]:
    """Return the height and the width that a field of type Side has."""
    return side if isinstance(side, tuple) else (side, side)


def grid_of(config: Any) -> tuple[int, int]:
    """Return the numbers of rows and columns of patches in an image of the size of the config."""
    (height, width), (rows, columns) = rectangle(config.image_size), rectangle(config.patch_size)
    return height // rows, width // columns


def check_sizes(config: Any) -> None:
    """Check the sizes that all these encoders have.  Raises: ArgumentError"""
    activation_named(config.hidden_act)
    config.check_heads("hidden_size", "num_attention_heads")
    if hasattr(config, "image_size"):
        config.require("patch_size", "at most image_size", lambda _: min(grid_of(config)) > 0)


class PooledOutput(NamedTuple):
    """The output of a model without a head.

    Shapes:  last_hidden_state (B, T, D); pooler_output (B, D), or None without a pooler
    """

    last_hidden_state: Tensor
    pooler_output: Tensor | None


def positions_of(table_TD: Tensor, grid: tuple[int, int], rows: int, columns: int) -> Tensor:
    """Return the position embeddings of a grid of patches: those of the checkpoint's grid, resized.

    Shapes:  (1 + P, D), the token of the whole image first -> (1 + rows · columns, D)
    """
    if (rows, columns) == grid:
        return table_TD
    grid_1DYX = table_TD[1:].T.reshape(1, -1, *grid)
    resized = F.interpolate(grid_1DYX.float(), size=(rows, columns), mode="bicubic", align_corners=False)
    return apply(cat, (table_TD[:1], resized.flatten(2)[0].T.to(table_TD.dtype)))


def check_image(pixels_BCYX: Tensor, config: Any, *, any_size: bool) -> None:
    """Check the shape of images.

    Args:    any_size: whether images may have another size than that of the config, of at least one patch
    Raises:  ShapeError
    """
    shape, channels = tuple(pixels_BCYX.shape), config.num_channels
    (least_y, least_x), (height, width) = rectangle(config.patch_size), rectangle(config.image_size)
    if len(shape) != 4 or shape[1] != channels or shape[2] < least_y or shape[3] < least_x:
        raise ShapeError(
            f"images {shape}; expected (B, {channels}, height, width), at least {least_y} by {least_x} pixels"
        )
    if not any_size and shape[2:] != (height, width):
        raise ShapeError(
            f"images of {shape[2]} by {shape[3]} pixels; the model reads {height} by {width}",
            hint="resize them with ImageProcessor, or pass interpolate_pos_encoding=True",
        )


class PatchProjection(Module):
    """A linear map of each patch: a convolution whose step is its size."""

    def __init__(self, config: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        patch = rectangle(config.patch_size)
        self.projection = Conv2d(config.num_channels, config.hidden_size, patch, patch, device=device, dtype=dtype)


class ViTEmbeddings(Module):
    """A learned token and the embedded patches, plus the embeddings of their positions."""

    def __init__(self, config: Any, device: Any, dtype: Any, *, use_mask_token: bool = False) -> None:
        super().__init__()
        self.config = config
        positions = 1 + prod(grid_of(config))
        self.patch_embeddings = PatchProjection(config, device, dtype)
        self.mask_token = (
            Parameter(zeros((1, 1, config.hidden_size), device=device, dtype=dtype)) if use_mask_token else None
        )
        self.cls_token = empty_parameter(1, 1, config.hidden_size, device=device, dtype=dtype)
        self.position_embeddings = empty_parameter(1, positions, config.hidden_size, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)
        for table in (self.cls_token, self.position_embeddings):
            init.trunc_normal_(table, 0.0, config.initializer_range)

    def forward(self, pixels_BCYX: Tensor, masked_BP: Tensor | None = None, *, any_size: bool) -> Tensor:
        project = self.patch_embeddings.projection
        check_image(pixels_BCYX, self.config, any_size=any_size)
        patches_BDYX = project(pixels_BCYX.to(project.weight.dtype))
        patches_BPD = patches_BDYX.flatten(2).transpose(1, 2)
        if masked_BP is not None:
            patches_BPD = self.masked(patches_BPD, masked_BP)
        x_BTD = apply(cat, (self.cls_token.expand(pixels_BCYX.shape[0], -1, -1), patches_BPD), 1)
        grid = grid_of(self.config)
        return self.dropout(x_BTD + positions_of(self.position_embeddings[0], grid, *patches_BDYX.shape[2:]))

    def masked(self, patches_BPD: Tensor, masked_BP: Tensor) -> Tensor:
        """Replace patches where the mask is not 0 by the token for them.

        Raises:  ShapeError for a mask of another shape; ArgumentError for a model without the token
        """
        if self.mask_token is None:
            raise ArgumentError("the model has no token for masked patches", hint="make it with use_mask_token=True")
        if tuple(masked_BP.shape) != tuple(patches_BPD.shape[:2]):
            raise ShapeError(
                f"bool_masked_pos {tuple(masked_BP.shape)}; the images have {tuple(patches_BPD.shape[:2])} patches"
            )
        mask_BP1 = masked_BP[:, :, None].to(patches_BPD.dtype)
        return patches_BPD * (1 - mask_BP1) + self.mask_token * mask_BP1


class Dense(Module):
    """A linear layer under the name that checkpoints give it."""

    def __init__(self, in_features: int, out_features: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(in_features, out_features, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x)


class ViTAttention(Module):
    """Self-attention and its output projection."""

    def __init__(self, config: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = BertSelfAttention(config, device, dtype, bias=config.qkv_bias)
        self.output = Dense(config.hidden_size, config.hidden_size, device, dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.output(self.attention(x_BTD, None))


class ViTLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it."""

    def __init__(self, config: ViTConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = ViTAttention(config, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = Dense(config.intermediate_size, config.hidden_size, device, dtype)
        self.layernorm_before = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.layernorm_after = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.dropout(self.attention(self.layernorm_before(x_BTD)))
        return x_BTD + self.dropout(self.output(self.intermediate(self.layernorm_after(x_BTD))))


class ImageLayers(Module):
    """Layers under the name that checkpoints give their list."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layer = ModuleList(layers)

    def forward(self, x_BTD: Tensor) -> Tensor:
        for layer in self.layer:
            x_BTD = layer(x_BTD)
        return x_BTD


class ViTPooler(Dense):
    """activation(dense(x)) of the first position, which represents the image."""

    def __init__(self, config: ViTConfig, device: Any, dtype: Any) -> None:
        super().__init__(config.hidden_size, config.pooler_output_size or config.hidden_size, device, dtype)
        self.activation = activation_named(config.pooler_act)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.activation(self.dense(x_BTD[:, 0]))


class ViTPretrainedModel(PretrainedModel):
    """The base of ViT models with and without a head."""

    config_class = ViTConfig
    base_model_prefix = "vit"

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("classifier.", "decoder.")) or "pooler." in name or name.endswith("mask_token")


class ViTModel(ViTPretrainedModel, PooledModel):
    """The encoder without a head.

    Args:
        config: the sizes.
        add_pooling_layer: add the pooler; a checkpoint without one loads without it.
        use_mask_token: add the token that takes the place of masked patches.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(
        self,
        config: ViTConfig,
        device: Any = None,
        dtype: Any = None,
        *,
        add_pooling_layer: bool = True,
        use_mask_token: bool = False,
    ) -> None:
        super().__init__(config)
        self.embeddings = ViTEmbeddings(config, device, dtype, use_mask_token=use_mask_token)
        self.encoder = ImageLayers(ViTLayer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.pooler = ViTPooler(config, device, dtype) if add_pooling_layer else None
        self.reset_parameters()

    def forward(
        self,
        pixel_values: Tensor,
        *,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> PooledOutput:
        """Encode images.

        Args:
            bool_masked_pos: True or 1 for patches that the model does not see.
            interpolate_pos_encoding: take images of any size, and resize the position embeddings.

        Shapes:  pixel_values (B, C, height, width), as `ImageProcessor` returns them; bool_masked_pos (B, P)
        Raises:  ShapeError for other shapes; ArgumentError for masked patches in a model without a token for them
        """
        x_BTD = self.embeddings(pixel_values, bool_masked_pos, any_size=interpolate_pos_encoding)
        x_BTD = self.layernorm(self.encoder(x_BTD))
        return PooledOutput(x_BTD, None if self.pooler is None else self.pooler(x_BTD))


class ViTForImageClassification(ViTPretrainedModel):
    """Labels images: logits (B, L), in the order of `config.labels`.

    Args:    as ViTModel
    """

    def __init__(self, config: ViTConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.vit = ViTModel(config, device, dtype, add_pooling_layer=False)
        self.classifier = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor, *, interpolate_pos_encoding: bool = False) -> Tensor:
        x_BTD = self.vit(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
        return self.classifier(x_BTD[:, 0])


class ViTForMaskedImageModeling(ViTPretrainedModel):
    """Restores images of which patches are masked: (B, C, Y, X), of `config.encoder_stride` pixels for each patch.

    Args:    as ViTModel
    Source:  Xie et al. 2021, arXiv:2111.09886
    """

    def __init__(self, config: ViTConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.vit = ViTModel(config, device, dtype, add_pooling_layer=False, use_mask_token=True)
        channels = config.encoder_stride**2 * config.num_channels
        self.decoder = Sequential(
            Conv2d(config.hidden_size, channels, 1, device=device, dtype=dtype), PixelShuffle(config.encoder_stride)
        )
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) and not name.startswith("decoder.")

    def forward(
        self,
        pixel_values: Tensor,
        *,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> Tensor:
        """Return the restored images.  Args, shapes, raises: as `ViTModel`"""
        encoded = self.vit(
            pixel_values, bool_masked_pos=bool_masked_pos, interpolate_pos_encoding=interpolate_pos_encoding
        )
        rows, columns = rectangle(self.config.patch_size)
        grid = pixel_values.shape[2] // rows, pixel_values.shape[3] // columns
        return self.decoder(encoded.last_hidden_state[:, 1:].transpose(1, 2).unflatten(2, grid))
