"""DINOv2: a ViT trained without labels, with a learned scale of each part of a layer; its classifier, and its
layers as the eyes of other models.

Loads Hugging Face folders of `Dinov2Model`, `Dinov2ForImageClassification` and `Dinov2Backbone`.

Letters: B batch, T positions, D width, L labels.

Source:  Oquab et al. 2023, arXiv:2304.07193; names as in the checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.creation import full, ones
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named, gated
from tallow.models.config import Side
from tallow.models.encoders.encoder_layers import FeedForward
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.stages import check_stages, chosen, stages_of
from tallow.models.vision.vit import ImageConfig, ImageLayers, PooledOutput, ViTAttention, ViTEmbeddings, rectangle
from tallow.nn import functional as F
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class Dinov2Config(ImageConfig):
    """The sizes of a DINOv2, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        mlp_ratio: the width of the feed-forward part, relative to hidden_size.
        image_size: of the images whose positions the checkpoint has; images of other sizes are read as well.
        drop_path_rate: in training, the probability that a sample skips a part of a layer.
        layerscale_value: the scales of fresh weights.
        use_swiglu_ffn: the feed-forward part is a SwiGLU of two thirds of that width.
        out_features: the names of the layers whose output a backbone returns: "stem", "stage1", ...; the last by
            default.
        apply_layernorm, reshape_hidden_states: of a backbone: normalize its outputs, and return them as maps.
    """

    mlp_ratio: float = 4
    layer_norm_eps: float = 1e-6
    patch_size: Side = 14
    layerscale_value: float = 1.0
    drop_path_rate: float = 0.0
    use_swiglu_ffn: bool = False
    out_features: tuple[str, ...] = ()
    apply_layernorm: bool = True
    reshape_hidden_states: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("dinov2",)
    neutral: ClassVar = frozenset({"use_mask_token"})  # of pretraining with masked patches

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        stages_of(entries, entries.get("num_hidden_layers", cls.num_hidden_layers))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("drop_path_rate", "a probability below 1", lambda rate: rate < 1)
        self.require("mlp_ratio", "0.1 to 100", lambda ratio: 0.1 <= ratio <= 100)
        check_stages(self, self.num_hidden_layers)

    @property
    def inner_size(self) -> int:
        """The width of the feed-forward part."""
        inner = int(self.hidden_size * self.mlp_ratio)
        return (int(inner * 2 / 3) + 7) // 8 * 8 if self.use_swiglu_ffn else inner


class SwiGLU(Module):
    """weights_out(silu(a) ⊙ b),  a and b the halves of weights_in(x).  Source: Shazeer 2020, arXiv:2002.05202"""

    def __init__(self, width: int, inner: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.weights_in = Linear(width, 2 * inner, device=device, dtype=dtype)
        self.weights_out = Linear(inner, width, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.weights_out(gated(F.silu, *self.weights_in(x_BTD).chunk(2, -1)))


class LayerScale(Module):
    """x ⊙ lambda1.  Source: Touvron et al. 2021, arXiv:2103.17239, eq. 4"""

    def __init__(self, config: Dinov2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.lambda1 = Parameter(full((config.hidden_size,), config.layerscale_value, device=device, dtype=dtype))

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD * self.lambda1


class DropPath(Module):
    """In training, replace a part of the samples by zeros, and scale the others so that the mean stays.

    Source:  Huang et al. 2016, arXiv:1603.09382
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x_BTD: Tensor) -> Tensor:
        if not self.training or not self.p:
            return x_BTD
        kept = ones((x_BTD.shape[0], 1, 1), dtype=x_BTD.dtype, device=x_BTD.device)
        return x_BTD * F.dropout(kept, self.p)


class Dinov2Layer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it, scaled."""

    def __init__(self, config: Dinov2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.inner_size
        self.norm1 = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)
        self.attention = ViTAttention(config, device, dtype)
        self.layer_scale1 = LayerScale(config, device, dtype)
        self.norm2 = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)
        self.mlp: Module = (
            SwiGLU(width, inner, device, dtype)
            if config.use_swiglu_ffn
            else FeedForward(width, inner, activation_named(config.hidden_act), device, dtype)
        )
        self.layer_scale2 = LayerScale(config, device, dtype)
        self.drop_path = DropPath(config.drop_path_rate)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.drop_path(self.layer_scale1(self.attention(self.norm1(x_BTD))))
        return x_BTD + self.drop_path(self.layer_scale2(self.mlp(self.norm2(x_BTD))))


class Dinov2PretrainedModel(PretrainedModel):
    """The base of DINOv2 models with and without a head."""

    config_class = Dinov2Config
    base_model_prefix = "dinov2"

    def is_superfluous(self, name: str) -> bool:
        return name.startswith("classifier.") or name.endswith("embeddings.mask_token")


class Dinov2Model(Dinov2PretrainedModel):
    """The encoder without a head.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: Dinov2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = ViTEmbeddings(config, device, dtype)
        self.encoder = ImageLayers(Dinov2Layer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor) -> PooledOutput:
        """Encode images of any size.

        Shapes:  pixel_values (B, C, height, width), as `ImageProcessor` returns them
        Raises:  ShapeError for other shapes
        """
        x_BTD = self.layernorm(self.encoder(self.embeddings(pixel_values, any_size=True)))
        return PooledOutput(x_BTD, x_BTD[:, 0])


class Dinov2Stages(Module):
    """The encoder as the eyes of other models: `forward` returns the states (B, T, D) of `config.out_features`.

    Args:    as Dinov2Model
    """

    def __init__(self, config: Dinov2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.config = config
        self.embeddings = ViTEmbeddings(config, device, dtype)
        self.encoder = ImageLayers(Dinov2Layer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, pixels_BCYX: Tensor) -> tuple[Tensor, ...]:
        return states_of(self, pixels_BCYX)


def states_of(model: Any, pixels_BCYX: Tensor) -> tuple[Tensor, ...]:
    """Return the states (B, T, D) of `config.out_features`, normalised if the config says so."""
    states = [model.embeddings(pixels_BCYX, any_size=True)]
    for layer in model.encoder.layer:
        states.append(layer(states[-1]))
    found = chosen(model.config.out_features, states)
    return tuple(model.layernorm(x_BTD) for x_BTD in found) if model.config.apply_layernorm else found


class Dinov2ForImageClassification(Dinov2PretrainedModel):
    """Labels images by the first position and the mean of the patches: logits (B, L), in the order of `config.labels`.

    Args:    as Dinov2Model
    """

    def __init__(self, config: Dinov2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.dinov2 = Dinov2Model(config, device, dtype)
        self.classifier = Linear(2 * config.hidden_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor) -> Tensor:
        x_BTD = self.dinov2(pixel_values).last_hidden_state
        return self.classifier(apply(cat, (x_BTD[:, 0], x_BTD[:, 1:].mean(1)), -1))


class Dinov2Backbone(Dinov2PretrainedModel):
    """The layers as the eyes of another model: the outputs of `config.out_features`, the first ones first.

    Args:    as Dinov2Model
    """

    def __init__(self, config: Dinov2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = ViTEmbeddings(config, device, dtype)
        self.encoder = ImageLayers(Dinov2Layer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def num_features(self) -> list[int]:
        """The width after the embeddings, and after each layer."""
        return [self.config.hidden_size] * (self.config.num_hidden_layers + 1)

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of images of any size.

        Shapes:  pixel_values (B, C, height, width) -> each (B, D, rows, columns), or (B, T, D) unless
                 `config.reshape_hidden_states`
        Raises:  ShapeError for other shapes
        """
        found = states_of(self, pixel_values)
        if not self.config.reshape_hidden_states:
            return found
        (height, width), (rows, columns) = pixel_values.shape[2:], rectangle(self.config.patch_size)
        return tuple(x_BTD[:, 1:].mT.unflatten(2, (height // rows, width // columns)) for x_BTD in found)
