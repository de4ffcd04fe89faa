"""Functions of tallow.nn.functional. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.layout import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.size import Size
from tallow.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "bilinear",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "feature_alpha_dropout",
    "fold",
    "gelu",
    "glu",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardsigmoid_",
    "hardswish",
    "hardswish_",
    "hardtanh",
    "hardtanh_",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mish_",
    "normalize",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "prelu",
    "relu",
    "relu6",
    "relu6_",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "silu_",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "unfold",
]

def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means over windows chosen so that the output has `output_size`, None meaning the input's."""

def adaptive_avg_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means over windows chosen so that the output has `output_size`, None meaning the input's."""

def adaptive_avg_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means over windows chosen so that the output has `output_size`, None meaning the input's."""

def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Maxima over windows chosen so that the output has `output_size`; see adaptive_avg_pool."""

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]: ...

def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Maxima over windows chosen so that the output has `output_size`; see adaptive_avg_pool."""

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]: ...

def adaptive_max_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Maxima over windows chosen so that the output has `output_size`; see adaptive_avg_pool."""

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]: ...

def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Set elements to SELU's lowest value, and scale and shift all so that mean 0 and variance 1 stay."""

def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of each window; see avg_pool2d."""

def avg_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """The mean of each window."""

def avg_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """The mean of each window."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """y_o = Σ_ij input1_i weight_oij input2_j + bias_o."""

def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x / alpha) - 1)."""

def celu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x / alpha) - 1)."""

def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """The gradient of a convolution with respect to its input, as a function: each element spreads a kernel."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """The gradient of a convolution with respect to its input, as a function: each element spreads a kernel."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """The gradient of a convolution with respect to its input, as a function: each element spreads a kernel."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`; through the bound the gradient goes unchanged."""

def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p; the input itself if not `training`."""

def dropout1d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, L) or (C, L) -> the same"""

def dropout2d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, H, W) -> the same"""

def dropout3d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, D, H, W) or (C, D, H, W) -> the same"""

def elu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x) - 1)."""

def elu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x) - 1)."""

def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """As `alpha_dropout`, by whole channels.  Shapes: input (N, C, ...) -> the same"""

def fold(input: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """The adjoint of `unfold`: where windows overlap, they add up."""

def gelu(input: Tensor, *, approximate: builtins.str = ..., out: Any = ...) -> Tensor:
    """x · Φ(x), with the normal distribution function Φ; or its approximation by tanh."""

def glu(input: Tensor, dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""

def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """As batch_norm, mean and var those of a group of channels of one sample, over its positions."""

def gumbel_softmax(logits: Tensor, tau: builtins.float = ..., hard: builtins.bool = ..., eps: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """A sample from the categorical distribution of `logits` along `dim`, as differentiable weights that sum to one."""

def hardshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """x, and 0 where |x| ≤ lambd."""

def hardsigmoid(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""

def hardsigmoid_(input: Tensor) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""

def hardswish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6"""

def hardswish_(input: Tensor) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6"""

def hardtanh(input: Tensor, min_val: builtins.float = ..., max_val: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """min(max(x, min_val), max_val)"""

def hardtanh_(input: Tensor, min_val: builtins.float = ..., max_val: builtins.float = ...) -> Tensor:
    """min(max(x, min_val), max_val)"""

def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes, var without Bessel's correction."""

def leaky_relu(input: Tensor, negative_slope: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, elsewhere negative_slope · x."""

def leaky_relu_(input: Tensor, negative_slope: builtins.float = ...) -> Tensor:
    """x where it is positive, elsewhere negative_slope · x."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """y = input · weightᵀ + bias."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """ln softmax(input) along `dim`, where no small number is taken the logarithm of; `dtype` converts the input first."""

def logsigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """ln sigmoid(x) = min(x, 0) - ln(1 + exp(-|x|))"""

def lp_pool1d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """(Σ x^p)^(1/p) of each window, p = norm_type."""

def lp_pool2d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """(Σ x^p)^(1/p) of each window, p = norm_type."""

def lp_pool3d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """(Σ x^p)^(1/p) of each window, p = norm_type."""

def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """The maxima of windows, and where each lies in the flattened spatial dims of the input."""

def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def max_pool2d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """The maxima of windows, and where each lies in the flattened spatial dims of the input."""

def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def max_pool3d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """The maxima of windows, and where each lies in the flattened spatial dims of the input."""

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Zeros, with the input's elements at the places that max pooling took them from."""

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Zeros, with the input's elements at the places that max pooling took them from."""

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Zeros, with the input's elements at the places that max pooling took them from."""

def mish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """x · tanh(ln(1 + exp(x)))"""

def mish_(input: Tensor) -> Tensor:
    """x · tanh(ln(1 + exp(x)))"""

def normalize(input: Tensor, p: builtins.float = ..., dim: builtins.int | builtins.tuple[builtins.int, ...] = ..., eps: builtins.float = ..., out: Tensor | None = ...) -> Tensor:
    """x / max(‖x‖_p, eps), the norm taken along `dim`."""

def pad(input: Tensor, pad: Sequence[builtins.int], mode: builtins.str = ..., value: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Lengthen dims at their ends, or with negative numbers shorten them."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """‖x1 - x2 + eps‖_p along the last dim."""

def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ..."""

def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Spread channels over r × r pixels."""

def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """The inverse of pixel_shuffle.  Shapes: input (..., C, H · r, W · r) -> (..., C · r², H, W)"""

def prelu(input: Tensor, weight: Tensor, *, out: Any = ...) -> Tensor:
    """x where it is positive, elsewhere weight · x, with one weight for all channels or one for each."""

def relu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """max(x, 0)"""

def relu6(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """min(max(x, 0), 6)"""

def relu6_(input: Tensor) -> Tensor:
    """min(max(x, 0), 6)"""

def relu_(input: Tensor) -> Tensor:
    """max(x, 0)"""

def rms_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """y = x / sqrt(mean(x²) + eps) ⊙ weight over the last axes; eps None means the machine epsilon of x."""

def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, elsewhere a · x: a is drawn from [lower, upper] for each element, or their mean."""

def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ...) -> Tensor:
    """`rrelu` in place."""

def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """elu with the scales that keep mean 0 and variance 1 from layer to layer."""

def selu_(input: Tensor) -> Tensor:
    """elu with the scales that keep mean 0 and variance 1 from layer to layer."""

def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 / (1 + exp(-x))"""

def silu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """x · sigmoid(x)"""

def silu_(input: Tensor) -> Tensor:
    """x · sigmoid(x)"""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Exponential weights along `dim`, summing to one; `dtype` converts the input first."""

def softmin(input: Tensor, dim: builtins.int | None = ..., dtype: Any = ...) -> Tensor:
    """softmax(-input) along `dim`."""

def softplus(input: Tensor, beta: builtins.float = ..., threshold: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """ln(1 + exp(beta · x)) / beta, and x itself where beta · x is above the threshold."""

def softshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """x moved towards 0 by lambd, and 0 within."""

def softsign(input: Tensor, *, out: Any = ...) -> Tensor:
    """x / (1 + |x|)"""

def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Hyperbolic tangent."""

def tanhshrink(input: Tensor, *, out: Any = ...) -> Tensor:
    """x - tanh(x)"""

def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """x where it is above the threshold, elsewhere `value`."""

def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """x where it is above the threshold, elsewhere `value`."""

def unfold(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """All windows of an image, each a column."""
