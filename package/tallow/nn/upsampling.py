"""Layers that resize signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn.module import Module


class Upsample(Module):
    """Resize by interpolation, to `size` or by `scale_factor`.

    Args:    as torch.nn.Upsample; mode: "nearest", "linear", "bilinear", "bicubic", "trilinear" and others of
             F.interpolate
    Shapes:  (N, C, L), (N, C, H, W) or (N, C, D, H, W) -> the same with resized spatial dimensions
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, Sequence):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        by = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{by}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode="nearest"."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode="bilinear" and align_corners=True."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
