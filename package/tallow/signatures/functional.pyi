"""Functions of tallow.nn.functional. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tallow.autograd.api import GradStore
from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.ops.memory_format import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.core.size import Size
from tallow.core.tensor import Tensor

def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size."""

def adaptive_avg_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size."""

def adaptive_avg_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size."""

def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool1d`."""

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool1d`, and their indices in the flattened spatial dims."""

def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool2d`."""

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool2d`, and their indices in the flattened spatial dims."""

def adaptive_max_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool3d`."""

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool3d`, and their indices in the flattened spatial dims."""

def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Set elements to SELU's lowest value, then scale and shift all to keep mean 0 and variance 1."""

def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """Return the mean of each window; see `avg_pool2d`."""

def avg_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """Return the mean of each window."""

def avg_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """Return the mean of each window."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """Return y_o = Σ_ij input1_i weight_oij input2_j + bias_o."""

def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x / alpha) - 1) elsewhere."""

def celu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x / alpha) - 1) elsewhere."""

def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Convolve `input` with `weight` over one spatial dim."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Convolve `input` with `weight` over two spatial dims."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] | builtins.str = ..., dilation: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Convolve `input` with `weight` over three spatial dims."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: builtins.int = ...) -> Tensor:
    """Convolve sequences that lie time first."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_padding: builtins.int | Sequence[builtins.int] = ..., groups: builtins.int = ..., dilation: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Compute x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`. The bound does not affect the gradient."""

def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p. Return the input if not `training`."""

def dropout1d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, L) or (C, L) -> the same"""

def dropout2d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, H, W) -> the same"""

def dropout3d(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, D, H, W) or (C, D, H, W) -> the same"""

def elu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x) - 1) elsewhere."""

def elu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x) - 1) elsewhere."""

def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Apply `alpha_dropout` to whole channels.  Shapes: input (N, C, ...) -> the same"""

def fold(input: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Sum patches into an image, the adjoint of `unfold`: overlapping windows add up."""

def gelu(input: Tensor, *, approximate: builtins.str = ..., out: Any = ...) -> Tensor:
    """Return x · Φ(x), where Φ is the cumulative distribution function of the normal distribution."""

def glu(input: Tensor, dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Multiply the first half of `input` along `dim` by the sigmoid of the second half."""

def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Normalize each group of channels of one sample over its positions, then scale and shift each channel."""

def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = ..., bias: Tensor | None = ..., out_dtype: Any = ...) -> Tensor:
    """Multiply groups of matrices, whose sizes along one dim may differ."""

def gumbel_softmax(logits: Tensor, tau: builtins.float = ..., hard: builtins.bool = ..., eps: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """Sample from the categorical distribution of `logits` along `dim`, as differentiable weights that sum to one."""

def hardshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Set elements with |x| ≤ lambd to 0."""

def hardsigmoid(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6 of each element."""

def hardsigmoid_(input: Tensor) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6 of each element."""

def hardswish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return x · min(max(x + 3, 0), 6) / 6 of each element."""

def hardswish_(input: Tensor) -> Tensor:
    """Return x · min(max(x + 3, 0), 6) / 6 of each element."""

def hardtanh(input: Tensor, min_val: builtins.float = ..., max_val: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Clamp each element to [min_val, max_val]."""

def hardtanh_(input: Tensor, min_val: builtins.float = ..., max_val: builtins.float = ...) -> Tensor:
    """Clamp each element to [min_val, max_val]."""

def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Return y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes."""

def leaky_relu(input: Tensor, negative_slope: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive and negative_slope · x elsewhere."""

def leaky_relu_(input: Tensor, negative_slope: builtins.float = ...) -> Tensor:
    """Return x where it is positive and negative_slope · x elsewhere."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """Return y = input · weightᵀ + bias."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., _stacklevel: builtins.int = ..., dtype: Any = ...) -> Tensor:
    """Return the logarithm of `softmax`; the arguments are the same. See `tallow.log_softmax`."""

def logsigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return ln(sigmoid(x)) of each element, computed as min(x, 0) - ln(1 + exp(-|x|))."""

def lp_pool1d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""

def lp_pool2d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""

def lp_pool3d(input: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., ceil_mode: builtins.bool = ...) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""

def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool1d`."""

def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool2d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool2d`."""

def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool3d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool3d`."""

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool1d` took them from."""

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool2d` took them from."""

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., output_size: Any = ...) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool3d` took them from."""

def mish(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return x · tanh(ln(1 + exp(x))) of each element."""

def mish_(input: Tensor) -> Tensor:
    """Return x · tanh(ln(1 + exp(x))) of each element."""

def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def normalize(input: Tensor, p: builtins.float = ..., dim: builtins.int | builtins.tuple[builtins.int, ...] = ..., eps: builtins.float = ..., out: Tensor | None = ...) -> Tensor:
    """Compute x / max(‖x‖_p, eps), with the norm along `dim`."""

def pad(input: Tensor, pad: Sequence[builtins.int], mode: builtins.str = ..., value: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Pad dims at their ends, or crop them with negative numbers."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Compute ‖x1 - x2 + eps‖_p along the last dim."""

def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """Compute the p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ..."""

def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Rearrange channels into blocks of r × r pixels."""

def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """Invert pixel_shuffle.  Shapes: input (..., C, H · r, W · r) -> (..., C · r², H, W)"""

def prelu(input: Tensor, weight: Tensor, *, out: Any = ...) -> Tensor:
    """Return x where it is positive and weight · x elsewhere, with one weight for all channels or one per channel."""

def relu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return max(x, 0) of each element."""

def relu6(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return min(max(x, 0), 6) of each element."""

def relu6_(input: Tensor) -> Tensor:
    """Return min(max(x, 0), 6) of each element."""

def relu_(input: Tensor) -> Tensor:
    """Return max(x, 0) of each element."""

def rms_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return y = x / sqrt(mean(x²) + eps) ⊙ weight over the last axes; eps None means the machine epsilon of x."""

def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive, elsewhere a · x."""

def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ...) -> Tensor:
    """Compute `rrelu` in place."""

def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Apply `elu` with the scales that keep mean 0 and variance 1 from layer to layer."""

def selu_(input: Tensor) -> Tensor:
    """Apply `elu` with the scales that keep mean 0 and variance 1 from layer to layer."""

def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""

def silu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """Return x · sigmoid(x) of each element (SiLU, swish)."""

def silu_(input: Tensor) -> Tensor:
    """Return x · sigmoid(x) of each element (SiLU, swish)."""

def softmax(input: Tensor, dim: builtins.int | None = ..., _stacklevel: builtins.int = ..., dtype: Any = ...) -> Tensor:
    """Return exponential weights along `dim` that sum to one; see `tallow.softmax`."""

def softmin(input: Tensor, dim: builtins.int | None = ..., _stacklevel: builtins.int = ..., dtype: Any = ...) -> Tensor:
    """Return `softmax` of -input; the arguments are the same."""

def softplus(input: Tensor, beta: builtins.float = ..., threshold: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Return ln(1 + exp(beta · x)) / beta, or x itself where beta · x is greater than `threshold`."""

def softshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Move each element towards 0 by `lambd`; elements with |x| ≤ lambd become 0."""

def softsign(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return x / (1 + |x|) of each element."""

def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the hyperbolic tangent."""

def tanhshrink(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return x - tanh(x) of each element."""

def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is greater than `threshold` and `value` elsewhere."""

def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """Return x where it is greater than `threshold` and `value` elsewhere."""

def unfold(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Extract all windows of an image, each as a column."""
