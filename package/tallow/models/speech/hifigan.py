"""HiFi-GAN: from frames of sound to samples.

Letters: B batch, C channels, T frames, N samples, E width of a speaker's vector.

Source:  Kong et al. 2020, arXiv:2010.05646; names as in transformers' `modeling_vits.py`
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d, ConvTranspose1d
from tallow.nn.module import Module


def same(channels: int, kernel: int, dilation: int, **factory: Any) -> Conv1d:
    """Return a convolution whose output has as many frames as its input."""
    return Conv1d(channels, channels, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2, **factory)


class ResidualBlock(Module):
    """Pairs of convolutions, each added to its input; the first of a pair reads frames at a distance."""

    def __init__(self, channels: int, kernel: int, dilations: Any, slope: float, **factory: Any) -> None:
        super().__init__()
        self.slope = slope
        self.convs1 = ModuleList(same(channels, kernel, dilation, **factory) for dilation in dilations)
        self.convs2 = ModuleList(same(channels, kernel, 1, **factory) for _ in dilations)

    def forward(self, x_BCT: Tensor) -> Tensor:
        for far, near in zip(self.convs1, self.convs2, strict=True):
            x_BCT = x_BCT + near(F.leaky_relu(far(F.leaky_relu(x_BCT, self.slope)), self.slope))
        return x_BCT


class HifiGan(Module):
    """The decoder."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        width = config.upsample_initial_channel
        self.slope = config.leaky_relu_slope
        self.conv_pre = Conv1d(config.flow_size, width, 7, padding=3, **factory)
        self.upsampler, self.resblocks = ModuleList(), ModuleList()
        for step, kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
            before, width = width, width // 2
            self.upsampler.append(ConvTranspose1d(before, width, kernel, step, padding=(kernel - step) // 2, **factory))
            for size, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True):
                self.resblocks.append(ResidualBlock(width, size, dilations, self.slope, **factory))
        self.conv_post = Conv1d(width, 1, 7, padding=3, bias=False, **factory)
        if config.speaker_embedding_size:
            self.cond = Conv1d(config.speaker_embedding_size, config.upsample_initial_channel, 1, **factory)

    def forward(self, x_BCT: Tensor, speaker_BE1: Tensor | None = None) -> Tensor:
        """Return samples (B, N)."""
        x_BCT = self.conv_pre(x_BCT)
        if speaker_BE1 is not None:
            x_BCT = x_BCT + self.cond(speaker_BE1)
        blocks = len(self.resblocks) // len(self.upsampler)
        for i, upsample in enumerate(self.upsampler):
            x_BCT = upsample(F.leaky_relu(x_BCT, self.slope))
            first, *others = self.resblocks[i * blocks : (i + 1) * blocks]
            total = first(x_BCT)
            for block in others:
                total = total + block(x_BCT)
            x_BCT = total / blocks
        return self.conv_post(F.leaky_relu(x_BCT)).tanh()[:, 0]
