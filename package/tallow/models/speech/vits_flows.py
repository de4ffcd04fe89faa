"""The flows of VITS, in the direction that speaks: of latents, and of durations.

Letters: B batch, C channels, T positions, E width of a speaker's vector, K bins of a spline.

Source:  Kim et al. 2021, arXiv:2106.06103; names as in transformers' `modeling_vits.py`
"""

from __future__ import annotations

import math
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.functions.sampling import randn
from tallow.nn import functional as F
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter
from tallow.nn.utils.parametrizations import weight_norm
from tallow.ops.joining import cat

where = PUBLIC["tl"]["where"]
LEAST = 1e-3  # of the width, height and slope of a bin
MARGIN = 1e-6  # added to the last edge, which so belongs to the last bin


class WaveNet(Module):
    """Gated convolutions, whose outputs add up.  Source: van den Oord et al. 2016, arXiv:1609.03499"""

    def __init__(self, config: Any, layers: int, **factory: Any) -> None:
        super().__init__()
        self.width = width = config.hidden_size
        kernel = config.wavenet_kernel_size
        self.in_layers, self.res_skip_layers = ModuleList(), ModuleList()
        self.dropout = Dropout(config.wavenet_dropout)
        if config.speaker_embedding_size:
            self.cond_layer = weight_norm(Conv1d(config.speaker_embedding_size, 2 * width * layers, 1, **factory))
        for i in range(layers):
            dilation = config.wavenet_dilation_rate**i
            padding = (kernel - 1) * dilation // 2
            conv = Conv1d(width, 2 * width, kernel, dilation=dilation, padding=padding, **factory)
            self.in_layers.append(weight_norm(conv))
            outputs = width if i == layers - 1 else 2 * width
            self.res_skip_layers.append(weight_norm(Conv1d(width, outputs, 1, **factory)))

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, speaker_BE1: Tensor | None = None) -> Tensor:
        total: Tensor | None = None
        conditions = None if speaker_BE1 is None else self.cond_layer(speaker_BE1).chunk(len(self.in_layers), 1)
        for i, (gate, project) in enumerate(zip(self.in_layers, self.res_skip_layers, strict=True)):
            gates = gate(x_BCT) if conditions is None else gate(x_BCT) + conditions[i]
            output = project(self.dropout(gates[:, : self.width].tanh() * gates[:, self.width :].sigmoid()))
            if i < len(self.in_layers) - 1:
                x_BCT = (x_BCT + output[:, : self.width]) * mask_B1T
                output = output[:, self.width :]
            total = output if total is None else total + output
        assert total is not None
        return total * mask_B1T


class CouplingLayer(Module):
    """Moves one half of the channels by what the other half says."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        half = config.flow_size // 2
        self.conv_pre = Conv1d(half, config.hidden_size, 1, **factory)
        self.wavenet = WaveNet(config, config.prior_encoder_num_wavenet_layers, **factory)
        self.conv_post = Conv1d(config.hidden_size, half, 1, **factory)

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, speaker_BE1: Tensor | None = None) -> Tensor:
        kept, moved = x_BCT.chunk(2, 1)
        inner = self.wavenet(self.conv_pre(kept) * mask_B1T, mask_B1T, speaker_BE1)
        return apply(cat, (kept, (moved - self.conv_post(inner) * mask_B1T) * mask_B1T), 1)


class CouplingBlock(Module):
    """The flow from the prior of a text to the latents of its sound."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        self.flows = ModuleList(CouplingLayer(config, **factory) for _ in range(config.prior_encoder_num_flows))

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, speaker_BE1: Tensor | None = None) -> Tensor:
        for flow in reversed(list(self.flows)):
            x_BCT = flow(x_BCT.flip(1), mask_B1T, speaker_BE1)
        return x_BCT


class DepthSeparableConvolutions(Module):
    """Convolutions of each channel at growing distances, then over channels; each pair is added to its input."""

    def __init__(self, config: Any, dropout: float = 0.0, **factory: Any) -> None:
        super().__init__()
        kernel, width = config.duration_predictor_kernel_size, config.hidden_size
        count = range(config.depth_separable_num_layers)
        self.dropout = Dropout(dropout)
        self.convs_dilated = ModuleList(
            Conv1d(width, width, kernel, 1, (kernel - 1) * kernel**i // 2, kernel**i, groups=width, **factory)
            for i in count
        )
        self.convs_pointwise = ModuleList(Conv1d(width, width, 1, **factory) for _ in count)
        self.norms_1 = ModuleList(LayerNorm(width, **factory) for _ in count)
        self.norms_2 = ModuleList(LayerNorm(width, **factory) for _ in count)

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, condition: Tensor | None = None) -> Tensor:
        x_BCT = x_BCT if condition is None else x_BCT + condition
        parts = zip(self.convs_dilated, self.norms_1, self.convs_pointwise, self.norms_2, strict=True)
        for far, norm, mix, last in parts:
            inner = F.gelu(norm(far(x_BCT * mask_B1T).mT).mT)
            x_BCT = x_BCT + self.dropout(F.gelu(last(mix(inner).mT).mT))
        return x_BCT * mask_B1T


def inverse_spline(y: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor, bound: float) -> Tensor:
    """Return x where a spline of rational quadratic functions has the value y; y itself beyond the bound.

    Args:
        widths, heights: before the softmax, (..., K).
        slopes: of the inner edges, before softplus, (..., K - 1); at the bounds the slope is 1.

    Source:  Durkan et al. 2019, arXiv:1906.04032, eq. 6 to 8
    """
    one = math.log(math.exp(1 - LEAST) - 1)  # softplus of it, with the least slope, is 1
    edges_x, edges_y = _edges(widths, bound), _edges(heights, bound)
    slopes = LEAST + F.softplus(F.pad(slopes, (1, 1), value=one))
    is_inside = (y >= -bound) & (y <= bound)
    inner = y.clamp(-bound, bound)
    last = edges_y[..., -1:] + MARGIN
    index = ((inner[..., None] >= edges_y[..., :-1]).sum(-1) + (inner[..., None] >= last).sum(-1) - 1)[..., None]
    index = index.clamp(0, widths.shape[-1] - 1)

    def at(values: Tensor, of: Tensor = index) -> Tensor:
        return values.gather(-1, of)[..., 0]

    left, bottom = at(edges_x), at(edges_y)
    width, height = at(edges_x, index + 1) - left, at(edges_y, index + 1) - bottom
    steep, start, end = height / width, at(slopes), at(slopes, index + 1)
    above = inner - bottom
    bend = above * (start + end - 2 * steep)
    a, b, c = height * (steep - start) + bend, height * start - bend, -steep * above
    root = 2 * c / (-b - (b.square() - 4 * a * c).clamp(min=0.0).sqrt())
    return where(is_inside, root * width + left, y)


def _edges(sizes: Tensor, bound: float) -> Tensor:
    """Return the edges of bins (..., K + 1), from -bound to bound."""
    shares = LEAST + (1 - LEAST * sizes.shape[-1]) * F.softmax(sizes, -1)
    inner = 2 * bound * shares.cumsum(-1)[..., :-1] - bound
    return F.pad(F.pad(inner, (1, 0), value=-bound), (0, 1), value=bound)


class ConvFlow(Module):
    """Bends one half of the channels by splines that the other half chooses."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        self.kept, self.bins = config.depth_separable_channels // 2, config.duration_predictor_flow_bins
        self.bound, self.scale = config.duration_predictor_tail_bound, config.hidden_size**-0.5
        self.conv_pre = Conv1d(self.kept, config.hidden_size, 1, **factory)
        self.conv_dds = DepthSeparableConvolutions(config, **factory)
        self.conv_proj = Conv1d(config.hidden_size, self.kept * (self.bins * 3 - 1), 1, **factory)

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, condition: Tensor) -> Tensor:
        kept, bent = x_BCT.chunk(2, 1)
        inner = self.conv_proj(self.conv_dds(self.conv_pre(kept), mask_B1T, condition)) * mask_B1T
        sizes_BCTK = inner.reshape(kept.shape[0], self.kept, -1, kept.shape[2]).transpose(2, 3)
        widths, heights = (sizes_BCTK[..., i * self.bins : (i + 1) * self.bins] * self.scale for i in (0, 1))
        bent = inverse_spline(bent, widths, heights, sizes_BCTK[..., 2 * self.bins :], self.bound)
        return apply(cat, (kept, bent), 1) * mask_B1T


class ElementwiseAffine(Module):
    """Moves and scales each channel."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        shape = (config.depth_separable_channels, 1)
        self.translate, self.log_scale = Parameter(zeros(shape, **factory)), Parameter(zeros(shape, **factory))

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, condition: Tensor) -> Tensor:
        return (x_BCT - self.translate) * (-self.log_scale).exp() * mask_B1T


def _flows(config: Any, **factory: Any) -> ModuleList:
    count = range(config.duration_predictor_num_flows)
    return ModuleList((ElementwiseAffine(config, **factory), *(ConvFlow(config, **factory) for _ in count)))


class StochasticDurationPredictor(Module):
    """Draws the logarithms of durations (B, 1, T). The parts whose names begin with "post" are for training."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        width, dropout = config.hidden_size, config.duration_predictor_dropout
        self.conv_pre, self.conv_proj = (Conv1d(width, width, 1, **factory) for _ in range(2))
        self.conv_dds = DepthSeparableConvolutions(config, dropout, **factory)
        if config.speaker_embedding_size:
            self.cond = Conv1d(config.speaker_embedding_size, width, 1, **factory)
        self.flows = _flows(config, **factory)
        self.post_conv_pre, self.post_conv_proj = Conv1d(1, width, 1, **factory), Conv1d(width, width, 1, **factory)
        self.post_conv_dds = DepthSeparableConvolutions(config, dropout, **factory)
        self.post_flows = _flows(config, **factory)

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, speaker_BE1: Tensor | None, noise: float) -> Tensor:
        x_BCT = self.conv_pre(x_BCT.detach())
        if speaker_BE1 is not None:
            x_BCT = x_BCT + self.cond(speaker_BE1.detach())
        x_BCT = self.conv_proj(self.conv_dds(x_BCT, mask_B1T)) * mask_B1T
        affine, _, *others = self.flows  # the flow after the affine one bends the half that is dropped
        drawn = randn((x_BCT.shape[0], 2, x_BCT.shape[2])).to(device=x_BCT.device, dtype=x_BCT.dtype) * noise
        for flow in (*reversed(others), affine):
            drawn = flow(drawn.flip(1), mask_B1T, x_BCT)
        return drawn[:, :1]


class DurationPredictor(Module):
    """Computes the logarithms of durations (B, 1, T)."""

    def __init__(self, config: Any, **factory: Any) -> None:
        super().__init__()
        kernel, width = config.duration_predictor_kernel_size, config.duration_predictor_filter_channels
        self.dropout = Dropout(config.duration_predictor_dropout)
        self.conv_1 = Conv1d(config.hidden_size, width, kernel, padding=kernel // 2, **factory)
        self.norm_1 = LayerNorm(width, config.layer_norm_eps, **factory)
        self.conv_2 = Conv1d(width, width, kernel, padding=kernel // 2, **factory)
        self.norm_2 = LayerNorm(width, config.layer_norm_eps, **factory)
        self.proj = Conv1d(width, 1, 1, **factory)
        if config.speaker_embedding_size:
            self.cond = Conv1d(config.speaker_embedding_size, config.hidden_size, 1, **factory)

    def forward(self, x_BCT: Tensor, mask_B1T: Tensor, speaker_BE1: Tensor | None) -> Tensor:
        x_BCT = x_BCT.detach()
        if speaker_BE1 is not None:
            x_BCT = x_BCT + self.cond(speaker_BE1.detach())
        for conv, norm in ((self.conv_1, self.norm_1), (self.conv_2, self.norm_2)):
            x_BCT = self.dropout(norm(F.relu(conv(x_BCT * mask_B1T)).mT).mT)
        return self.proj(x_BCT * mask_B1T) * mask_B1T
