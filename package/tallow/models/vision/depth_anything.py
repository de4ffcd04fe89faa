"""Depth Anything: the states of four layers of a DINOv2, put back into maps and fused from coarse to fine; one depth
for each pixel.

Loads Hugging Face folders of `DepthAnythingForDepthEstimation`: versions 1 and 2, relative and metric.

Letters: B batch, C channels, Y and X pixels or cells, T positions, D width.

Source:  Yang et al. 2024, arXiv:2401.10891 and arXiv:2406.09414; the neck: Ranftl et al. 2021, arXiv:2103.13413;
         names as in the checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.models.config import Config, tupled
from tallow.models.pretrained import PretrainedModel
from tallow.models.vision.dinov2 import Dinov2Config, Dinov2Stages
from tallow.models.vision.vit import rectangle
from tallow.nn import functional as F
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv2d, ConvTranspose2d
from tallow.nn.linear import Identity
from tallow.nn.module import Module

STAGES = ("stage9", "stage10", "stage11", "stage12")
SMALL = Dinov2Config(image_size=518, hidden_size=384, num_attention_heads=6, out_features=STAGES)
KINDS = ("relative", "metric")


@dataclass(frozen=True, kw_only=True)
class DepthAnythingConfig(Config):
    """The sizes of a Depth Anything, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        backbone_config: the sizes of the DINOv2, and which of its layers are read.
        reassemble_hidden_size: the width of the DINOv2.
        reassemble_factors: of the sides of each map: whole numbers, or one over a whole number.
        neck_hidden_sizes: channels of each map before the fusion.
        fusion_hidden_size, head_hidden_size: channels in the fusion and before the last convolution.
        head_in_index: which of the fused maps the head reads; -1 is the finest.
        depth_estimation_type: "relative", larger values being nearer; or "metric", in metres.
        max_depth: the largest depth that a metric model tells.
    """

    backbone_config: Dinov2Config = field(default_factory=lambda: SMALL)
    patch_size: int = 14
    initializer_range: float = 0.02
    reassemble_hidden_size: int = 384
    reassemble_factors: Any = (4, 2, 1, 0.5)
    neck_hidden_sizes: tuple[int, ...] = (48, 96, 192, 384)
    fusion_hidden_size: int = 64
    head_in_index: Any = -1
    head_hidden_size: int = 32
    depth_estimation_type: str = "relative"
    max_depth: float = 1.0

    model_types: ClassVar[tuple[str, ...]] = ("depth_anything",)
    layer_counts: ClassVar[tuple[str, ...]] = ()
    computed: ClassVar = {"backbone": (None,), "use_timm_backbone": (None, False), "backbone_kwargs": (None, {})}
    neutral: ClassVar = frozenset({"use_pretrained_backbone"})

    def __post_init__(self) -> None:
        super().__post_init__()
        own = self.backbone_config
        maps = max(len(own.out_features), 1)
        self.require("depth_estimation_type", " or ".join(KINDS), lambda kind: kind in KINDS)
        self.require("patch_size", "that of the backbone", lambda side: (side, side) == rectangle(own.patch_size))
        self.require("reassemble_hidden_size", "hidden_size of the backbone", lambda width: width == own.hidden_size)
        self.require(
            "neck_hidden_sizes",
            f"{maps} positive numbers, as the backbone has maps",
            lambda sizes: len(sizes) == maps and min(sizes) > 0,
        )
        self.require(
            "reassemble_factors",
            f"{maps} whole numbers, or 1 over whole numbers, up to 64",
            lambda factors: isinstance(factors, tuple) and len(factors) == maps and all(map(_is_factor, factors)),
        )
        self.require("head_in_index", f"-1, or up to {maps - 1}", lambda i: type(i) is int and -maps <= i < maps)
        self.require("fusion_hidden_size", "2 or more", lambda width: width > 1)

    def check_layers(self, tensors: int, source: str) -> None:
        self.backbone_config.check_layers(tensors, source)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        tupled(entries, "reassemble_factors", "neck_hidden_sizes")
        own = entries.get("backbone_config")
        if own is None or isinstance(own, Dinov2Config):
            entries["backbone_config"] = own or SMALL
            return
        if not isinstance(own, dict) or own.get("model_type", "dinov2") != "dinov2":
            kind = own.get("model_type") if isinstance(own, dict) else own
            raise CheckpointError(f"a backbone of type {kind!r:.80}", hint="tallow has a DINOv2 there")
        entries["backbone_config"] = Dinov2Config.from_entries(own, "backbone_config")


def _is_factor(factor: Any) -> bool:
    if type(factor) not in (int, float) or not 1 / 64 <= factor <= 64:
        return False
    return factor == int(factor) if factor >= 1 else abs(1 / factor - round(1 / factor)) < 1e-6


class ReassembleLayer(Module):
    """resize(projection(x)): a map of other sides."""

    def __init__(self, config: DepthAnythingConfig, channels: int, factor: float, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.projection = Conv2d(config.reassemble_hidden_size, channels, 1, **factory)
        self.resize: Module = Identity()
        if factor > 1:
            self.resize = ConvTranspose2d(channels, channels, int(factor), int(factor), **factory)
        elif factor < 1:
            self.resize = Conv2d(channels, channels, 3, int(1 / factor), 1, **factory)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return self.resize(self.projection(x_BCYX))


class Reassemble(Module):
    """Puts the states of patches back into maps; the token of the whole picture is left out."""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        sizes = zip(config.neck_hidden_sizes, config.reassemble_factors, strict=True)
        self.layers = ModuleList(ReassembleLayer(config, channels, factor, device, dtype) for channels, factor in sizes)

    def forward(self, states: list[Tensor], rows: int, columns: int) -> list[Tensor]:
        maps = []
        for x_BTD, layer in zip(states, self.layers, strict=True):
            batch, _, width = x_BTD.shape
            maps.append(layer(x_BTD[:, 1:].transpose(1, 2).reshape(batch, width, rows, columns)))
        return maps


class ResidualUnit(Module):
    """x + convolution2(relu(convolution1(relu(x))))"""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        sizes = config.fusion_hidden_size, config.fusion_hidden_size, 3
        self.convolution1 = Conv2d(*sizes, padding=1, device=device, dtype=dtype)
        self.convolution2 = Conv2d(*sizes, padding=1, device=device, dtype=dtype)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return x_BCYX + self.convolution2(F.relu(self.convolution1(F.relu(x_BCYX))))


class Fusion(Module):
    """Adds a finer map to a coarser one, and makes the sum larger."""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.fusion_hidden_size
        self.projection = Conv2d(width, width, 1, device=device, dtype=dtype)
        self.residual_layer1 = ResidualUnit(config, device, dtype)
        self.residual_layer2 = ResidualUnit(config, device, dtype)

    def forward(self, coarse_BCYX: Tensor, fine_BCYX: Tensor | None, size: tuple[int, int]) -> Tensor:
        if fine_BCYX is not None:
            if fine_BCYX.shape != coarse_BCYX.shape:
                own = tuple(coarse_BCYX.shape[2:])
                fine_BCYX = F.interpolate(fine_BCYX, size=own, mode="bilinear", align_corners=False)
            coarse_BCYX = coarse_BCYX + self.residual_layer1(fine_BCYX)
        x_BCYX = self.residual_layer2(coarse_BCYX)
        return self.projection(F.interpolate(x_BCYX, size=size, mode="bilinear", align_corners=True))


class FusionStage(Module):
    """Fuses maps from the coarsest to the finest."""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layers = ModuleList(Fusion(config, device, dtype) for _ in config.neck_hidden_sizes)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        coarse_first = maps[::-1]
        fused: list[Tensor] = []
        for i, (x_BCYX, layer) in enumerate(zip(coarse_first, self.layers, strict=True)):
            before = fused[-1] if fused else None
            coarse, fine = (x_BCYX, None) if before is None else (before, x_BCYX)
            height, width = coarse.shape[2:]
            is_last = i + 1 == len(maps)
            size = (2 * height, 2 * width) if is_last else tuple(coarse_first[i + 1].shape[2:])
            fused.append(layer(coarse, fine, size))
        return fused


class Neck(Module):
    """From the states of a DINOv2 to fused maps."""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.fusion_hidden_size
        self.reassemble_stage = Reassemble(config, device, dtype)
        self.convs = ModuleList(
            Conv2d(channels, width, 3, padding=1, bias=False, device=device, dtype=dtype)
            for channels in config.neck_hidden_sizes
        )
        self.fusion_stage = FusionStage(config, device, dtype)

    def forward(self, states: list[Tensor], rows: int, columns: int) -> list[Tensor]:
        maps = self.reassemble_stage(states, rows, columns)
        return self.fusion_stage([conv(each) for conv, each in zip(self.convs, maps, strict=True)])


class DepthHead(Module):
    """Three convolutions, with the map made as large as the patches after the first."""

    def __init__(self, config: DepthAnythingConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner, factory = config.fusion_hidden_size, config.head_hidden_size, {"device": device, "dtype": dtype}
        self.conv1 = Conv2d(width, width // 2, 3, padding=1, **factory)
        self.conv2 = Conv2d(width // 2, inner, 3, padding=1, **factory)
        self.conv3 = Conv2d(inner, 1, 1, **factory)
        self.activation = F.sigmoid if config.depth_estimation_type == "metric" else F.relu
        self.max_depth = config.max_depth

    def forward(self, x_BCYX: Tensor, size: tuple[int, int]) -> Tensor:
        x_BCYX = F.interpolate(self.conv1(x_BCYX), size=size, mode="bilinear", align_corners=True)
        depth_B1YX = self.activation(self.conv3(F.relu(self.conv2(x_BCYX))))
        return depth_B1YX.squeeze(1) * self.max_depth


class DepthAnythingForDepthEstimation(PretrainedModel):
    """Tells how far away each pixel is: see `DepthAnythingConfig.depth_estimation_type`.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    config_class = DepthAnythingConfig
    base_model_prefix = "depth_anything"

    def __init__(self, config: DepthAnythingConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.backbone = Dinov2Stages(config.backbone_config, device, dtype)
        self.neck = Neck(config, device, dtype)
        self.head = DepthHead(config, device, dtype)
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return name.endswith("embeddings.mask_token")

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Return depths (B, Y, X), with the sides of the images rounded down to whole patches.

        Shapes:  pixel_values (B, C, Y, X) of any size, at least one patch, as `ImageProcessor` returns them
        Raises:  ShapeError for other shapes
        """
        states = self.backbone(pixel_values)
        side = self.config.patch_size
        rows, columns = (int(each) // side for each in pixel_values.shape[2:])
        fused = self.neck(states, rows, columns)
        return self.head(fused[self.config.head_in_index], (rows * side, columns * side))
