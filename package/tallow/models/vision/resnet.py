"""ResNet: stages of residual blocks of convolutions; its classifier, and the stages as the eyes of other models.

Loads Hugging Face folders of `ResNetModel`, `ResNetForImageClassification` and `ResNetBackbone`.

Letters: B batch, C channels, Y and X pixels, D channels of the last stage, L labels.

Source:  He et al. 2015, arXiv:1512.03385; names as in the checkpoints
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import ones, zeros
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError, ShapeError
from tallow.models.activations import activation_named
from tallow.models.config import Config, labels_of, tupled
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.stages import check_stages, chosen, stages_of
from tallow.models.vision.vit import PooledOutput
from tallow.nn import functional as F
from tallow.nn.channel_normalization import BatchNorm2d
from tallow.nn.container import ModuleList, Sequential
from tallow.nn.convolution import Conv2d
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer
from tallow.nn.reshaping import Flatten

KINDS = ("basic", "bottleneck")
REDUCTION = 4  # of channels, inside of a bottleneck
WIDE, NARROW = (256, 512, 1024, 2048), (64, 128, 256, 512)
# Names of the package timm -> depths and kind of block.
TIMM = {
    "resnet18": ((2, 2, 2, 2), "basic"),
    "resnet34": ((3, 4, 6, 3), "basic"),
    "resnet50": ((3, 4, 6, 3), "bottleneck"),
    "resnet101": ((3, 4, 23, 3), "bottleneck"),
    "resnet152": ((3, 8, 36, 3), "bottleneck"),
}


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(Config):
    """The sizes of a ResNet, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        embedding_size: channels after the first convolution.
        hidden_sizes, depths: channels and number of blocks of each stage.
        layer_type: "basic", two convolutions of 3 by 3; or "bottleneck", one of them between two of 1 by 1.
        downsample_in_first_stage: whether the first stage halves the picture, as the others do.
        downsample_in_bottleneck: halve it in the first convolution of a bottleneck, not the second.
        labels: the labels of the classifier, in the order of its logits; `id2label` in the file.
        out_features: the names of the stages whose maps a backbone returns: "stem", "stage1", ...; the last by default.
    """

    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: tuple[int, ...] = WIDE
    depths: tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False
    initializer_range: float = 0.02
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    out_features: tuple[str, ...] = ()

    model_types: ClassVar[tuple[str, ...]] = ("resnet",)
    layer_counts: ClassVar[tuple[str, ...]] = ("blocks",)
    neutral: ClassVar = frozenset({"layer_types"})
    computed: ClassVar = {"layer_types": (list(KINDS), None)}

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        self.require("layer_type", " or ".join(KINDS), lambda kind: kind in KINDS)
        self.require("depths", "one positive number for each of hidden_sizes", self._fit)
        least = 1 if self.layer_type == "basic" else REDUCTION
        self.require("hidden_sizes", f"{least} channels or more", lambda sizes: min(sizes) >= least)
        check_stages(self, len(self.depths))

    def _fit(self, depths: tuple[int, ...]) -> bool:
        return len(depths) == len(self.hidden_sizes) > 0 and min(*depths, *self.hidden_sizes) > 0

    @property
    def blocks(self) -> int:
        """The number of all blocks."""
        return sum(self.depths)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        labels_of(entries)
        tupled(entries, "hidden_sizes", "depths")
        depths = entries.get("depths", cls.depths)
        stages_of(entries, len(depths) if isinstance(depths, tuple) else None)

    @classmethod
    def of_timm(cls, name: str, channels: int = 3, out_features: tuple[str, ...] = ()) -> ResNetConfig:
        """Return the sizes of a model of the package timm, such as "resnet50".  Raises: CheckpointError"""
        stem = name.partition(".")[0]
        if stem not in TIMM:
            raise CheckpointError(f"the backbone {name!r:.80}", hint=f"tallow has {', '.join(TIMM)}")
        depths, kind = TIMM[stem]
        sizes = NARROW if kind == "basic" else WIDE
        return cls(num_channels=channels, depths=depths, layer_type=kind, hidden_sizes=sizes, out_features=out_features)


class FrozenNorm(Module):
    """(x - running_mean) / √(running_var + ε) ⊙ weight + bias, with values of each channel that training leaves."""

    def __init__(self, channels: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        for name, fill in (("weight", ones), ("bias", zeros), ("running_mean", zeros), ("running_var", ones)):
            setattr(self, name, Buffer(fill((channels,), device=device, dtype=dtype)))
        self.eps = 1e-5

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return F.batch_norm(x_BCYX, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)


class Convolution(Module):
    """activation(normalization(convolution(x))); without `activation` where the name is None."""

    def __init__(self, sizes: tuple[int, int], norm: Any, device: Any, dtype: Any, **options: Any) -> None:
        super().__init__()
        size, activation = options.get("kernel_size", 3), options.pop("activation", None)
        options = {"kernel_size": 3, "padding": size // 2, "bias": False} | options
        self.convolution = Conv2d(*sizes, **options, device=device, dtype=dtype)
        self.normalization = norm(sizes[1], device=device, dtype=dtype)
        self.activation = None if activation is None else activation_named(activation)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        x_BCYX = self._normalized(x_BCYX)
        return x_BCYX if self.activation is None else self.activation(x_BCYX)

    def _normalized(self, x_BCYX: Tensor) -> Tensor:
        """Return normalization(convolution(x)): in inference one convolution, as its weights can be scaled."""
        norm, conv = self.normalization, self.convolution
        if self.training:
            return norm(conv(x_BCYX))
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
        bias = norm.bias - norm.running_mean * scale
        weight = conv.weight * scale.reshape(-1, 1, 1, 1)
        return F.conv2d(x_BCYX, weight, bias, conv.stride, conv.padding, conv.dilation, conv.groups)


class ResNetBlock(Module):
    """activation(layer(x) + shortcut(x))"""

    def __init__(
        self, config: ResNetConfig, sizes: tuple[int, int], stride: int, norm: Any, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        before, after = sizes
        factory: dict[str, Any] = {"norm": norm, "device": device, "dtype": dtype}
        self.shortcut = (
            Convolution(sizes, kernel_size=1, stride=stride, **factory) if before != after or stride > 1 else None
        )
        if config.layer_type == "basic":
            parts = [
                Convolution(sizes, stride=stride, activation="relu", **factory),
                Convolution((after, after), **factory),
            ]
        else:
            inner = after // REDUCTION
            first = stride if config.downsample_in_bottleneck else 1
            parts = [
                Convolution((before, inner), kernel_size=1, stride=first, activation="relu", **factory),
                Convolution((inner, inner), stride=stride // first, activation="relu", **factory),
                Convolution((inner, after), kernel_size=1, **factory),
            ]
        self.layer = Sequential(*parts)
        self.activation = activation_named(config.hidden_act)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        added = x_BCYX if self.shortcut is None else self.shortcut(x_BCYX)
        return self.activation(self.layer(x_BCYX) + added)


class ResNetStage(Module):
    """Blocks of one width, of which the first may halve the picture."""

    def __init__(self, blocks: list[ResNetBlock]) -> None:
        super().__init__()
        self.layers = Sequential(*blocks)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return self.layers(x_BCYX)


class ResNetEmbeddings(Module):
    """The first convolution, and a pooling that halves the picture again."""

    def __init__(self, config: ResNetConfig, norm: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        self.channels = config.num_channels
        self.embedder = Convolution(
            (config.num_channels, config.embedding_size),
            norm,
            device,
            dtype,
            kernel_size=7,
            stride=2,
            activation=config.hidden_act,
        )

    def forward(self, pixels_BCYX: Tensor) -> Tensor:
        if pixels_BCYX.ndim != 4 or pixels_BCYX.shape[1] != self.channels:
            raise ShapeError(f"images {tuple(pixels_BCYX.shape)}; expected (B, {self.channels}, height, width)")
        x_BCYX = self.embedder(pixels_BCYX.to(self.embedder.convolution.weight.dtype))
        return F.max_pool2d(x_BCYX, 3, 2, 1)


class ResNetEncoder(Module):
    """The stages."""

    def __init__(self, config: ResNetConfig, norm: Any, device: Any, dtype: Any) -> None:
        super().__init__()
        stages, before = [], config.embedding_size
        for i, (after, depth) in enumerate(zip(config.hidden_sizes, config.depths, strict=True)):
            stride = 2 if i or config.downsample_in_first_stage else 1
            blocks = [ResNetBlock(config, (before, after), stride, norm, device, dtype)]
            blocks += [ResNetBlock(config, (after, after), 1, norm, device, dtype) for _ in range(depth - 1)]
            stages.append(ResNetStage(blocks))
            before = after
        self.stages = ModuleList(stages)

    def forward(self, x_BCYX: Tensor) -> list[Tensor]:
        maps = []
        for stage in self.stages:
            x_BCYX = stage(x_BCYX)
            maps.append(x_BCYX)
        return maps


class ResNetStages(Module):
    """The stages of a ResNet, with norms that training leaves; `forward` returns the maps of `config.out_features`."""

    def __init__(self, config: ResNetConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.embedder = ResNetEmbeddings(config, FrozenNorm, device, dtype)
        self.encoder = ResNetEncoder(config, FrozenNorm, device, dtype)
        self.out_features = config.out_features

    def forward(self, pixels_BCYX: Tensor) -> tuple[Tensor, ...]:
        stem_BDYX = self.embedder(pixels_BCYX)
        return chosen(self.out_features, [stem_BDYX, *self.encoder(stem_BDYX)])


class ResNetPretrainedModel(PretrainedModel):
    """The base of ResNets with and without a head."""

    config_class = ResNetConfig
    base_model_prefix = "resnet"

    def is_superfluous(self, name: str) -> bool:
        return name.startswith("classifier.")


class ResNetModel(ResNetPretrainedModel):
    """The stages, and the mean over the picture.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    def __init__(self, config: ResNetConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embedder = ResNetEmbeddings(config, BatchNorm2d, device, dtype)
        self.encoder = ResNetEncoder(config, BatchNorm2d, device, dtype)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor) -> PooledOutput:
        """Return the maps (B, D, Y, X) of the last stage, and their means (B, D, 1, 1).  Raises: ShapeError"""
        last_BDYX = self.encoder(self.embedder(pixel_values))[-1]
        return PooledOutput(last_BDYX, last_BDYX.mean((2, 3), keepdim=True))


class ResNetBackbone(ResNetPretrainedModel):
    """The stages as the eyes of another model: the maps (B, D, Y, X) of `config.out_features`, the first ones first.

    Args:    as ResNetModel
    """

    def __init__(self, config: ResNetConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embedder = ResNetEmbeddings(config, BatchNorm2d, device, dtype)
        self.encoder = ResNetEncoder(config, BatchNorm2d, device, dtype)
        self.reset_parameters()

    @property
    def num_features(self) -> list[int]:
        """The channels of the map after the stem, and after each stage."""
        return [self.config.embedding_size, *self.config.hidden_sizes]

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        """Return the maps.  Raises: ShapeError"""
        stem_BDYX = self.embedder(pixel_values)
        return chosen(self.config.out_features, [stem_BDYX, *self.encoder(stem_BDYX)])


class ResNetForImageClassification(ResNetPretrainedModel):
    """Labels images: logits (B, L), in the order of `config.labels`.

    Args:    as ResNetModel
    """

    def __init__(self, config: ResNetConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.resnet = ResNetModel(config, device, dtype)
        head = Linear(config.hidden_sizes[-1], len(config.labels), device=device, dtype=dtype)
        self.classifier = Sequential(Flatten(), head)
        self.reset_parameters()

    def forward(self, pixel_values: Tensor) -> Tensor:
        pooled: Any = self.resnet(pixel_values).pooler_output
        return self.classifier(pooled)


_FROM_TIMM = (
    (r"conv1\.", "embedder.embedder.convolution."),
    (r"bn1\.", "embedder.embedder.normalization."),
    (r"layer(\d)\.(\d+)\.downsample\.0\.", "encoder.stages.{0}.layers.{1}.shortcut.convolution."),
    (r"layer(\d)\.(\d+)\.downsample\.1\.", "encoder.stages.{0}.layers.{1}.shortcut.normalization."),
    (r"layer(\d)\.(\d+)\.conv(\d)\.", "encoder.stages.{0}.layers.{1}.layer.{2}.convolution."),
    (r"layer(\d)\.(\d+)\.bn(\d)\.", "encoder.stages.{0}.layers.{1}.layer.{2}.normalization."),
)


def from_timm(name: str) -> str:
    """Return the name of a weight of a backbone by that in the package timm, which counts stages and layers from 1."""
    for pattern, new in _FROM_TIMM:
        if match := re.match(pattern, name):
            stage, block, part = (*match.groups(), "1", "1", "1")[:3]
            return new.format(int(stage) - 1, block, int(part) - 1) + name[match.end() :]
    return name
