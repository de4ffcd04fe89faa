"""DINOv2: a ViT trained without labels, with a learned scale of each part of a layer; and its classifier.

Loads Hugging Face folders of `Dinov2Model` and `Dinov2ForImageClassification`.

Letters: B batch, T positions, D width, L labels.

Source:  Oquab et al. 2023, arXiv:2304.07193; names as in the checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.creation import full, ones
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.models.activations import activation_named, gated
from tallow.models.config import Side, tupled
from tallow.models.encoders.encoder_layers import FeedForward
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.vit import ImageConfig, ImageLayers, PooledOutput, ViTAttention, ViTEmbeddings
from tallow.nn import functional as F
from tallow.nn.linear import Identity, Linear
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
        out_indices: of a backbone, the layers whose states it returns: 0 the embeddings; None means the last one.
        apply_layernorm: whether a backbone normalises them.
    """

    mlp_ratio: float = 4
    layer_norm_eps: float = 1e-6
    patch_size: Side = 14
    layerscale_value: float = 1.0
    drop_path_rate: float = 0.0
    use_swiglu_ffn: bool = False
    out_indices: tuple[int, ...] | None = None
    apply_layernorm: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("dinov2",)
    # Of pretraining with masked patches, and the layout of a backbone's result.
    neutral: ClassVar = frozenset({"use_mask_token", "stage_names", "reshape_hidden_states"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("drop_path_rate", "a probability below 1", lambda rate: rate < 1)
        self.require("mlp_ratio", "0.1 to 100", lambda ratio: 0.1 <= ratio <= 100)
        count = self.num_hidden_layers
        self.require("out_indices", f"numbers of layers, rising, up to {count}", self._are_layers)

    def _are_layers(self, numbers: tuple[int, ...] | None) -> bool:
        count = self.num_hidden_layers
        if numbers is not None and not all(-count - 1 <= number <= count for number in numbers):
            return False
        return list(self.read_layers) == sorted({*self.read_layers}) != []

    @property
    def read_layers(self) -> tuple[int, ...]:
        """The numbers of the layers whose states a backbone returns, 0 for the embeddings."""
        chosen = (-1,) if self.out_indices is None else self.out_indices
        return tuple(number % (self.num_hidden_layers + 1) for number in chosen)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        found = {name: entries.pop(name, None) for name in ("out_features", "out_indices")}
        named, numbered = (entries.get(f"_{name}") or value for name, value in found.items())
        if numbered is None and isinstance(named, list):
            numbered = [0 if name == "stem" else _number_of(name) for name in named]
        entries["out_indices"] = numbered
        tupled(entries, "out_indices")

    @property
    def inner_size(self) -> int:
        """The width of the feed-forward part."""
        inner = int(self.hidden_size * self.mlp_ratio)
        return (int(inner * 2 / 3) + 7) // 8 * 8 if self.use_swiglu_ffn else inner


def _number_of(name: Any) -> int:
    """Return the number of a stage such as "stage3".  Raises: CheckpointError"""
    number = str(name).removeprefix("stage")
    if not number.isascii() or not number.isdigit() or len(number) > len("1000"):
        raise CheckpointError(f"out_features has {name!r:.80}", hint='name layers as "stem", "stage1" and so on')
    return int(number)


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


class Dinov2Backbone(Module):
    """The encoder as the eyes of other models: `forward` returns the states (B, T, D) after some of its layers.

    Args:    as Dinov2Model; `config.out_indices` says after which
    """

    def __init__(self, config: Dinov2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.config = config
        self.embeddings = ViTEmbeddings(config, device, dtype)
        self.encoder = ImageLayers(Dinov2Layer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.layernorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, pixels_BCYX: Tensor) -> list[Tensor]:
        x_BTD = self.embeddings(pixels_BCYX, any_size=True)
        states = [x_BTD]
        for layer in self.encoder.layer:
            x_BTD = layer(x_BTD)
            states.append(x_BTD)
        norm = self.layernorm if self.config.apply_layernorm else Identity()
        return [norm(states[number]) for number in self.config.read_layers]


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
