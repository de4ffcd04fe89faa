"""Functions of tallow.nn.functional. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

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

@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[False] = ...) -> Tensor:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool1d`."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool1d`."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool1d`."""

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool1d`, and their indices in the flattened spatial dims."""

@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[False] = ...) -> Tensor:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool2d`."""

@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool2d`."""

@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool2d`."""

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool2d`, and their indices in the flattened spatial dims."""

@overload
def adaptive_max_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[False] = ...) -> Tensor:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool3d`."""

@overload
def adaptive_max_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool3d`."""

@overload
def adaptive_max_pool3d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool3d`."""

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool3d`, and their indices in the flattened spatial dims."""

def affine_grid(theta: Tensor, size: Sequence[builtins.int], align_corners: builtins.bool | None = ...) -> Tensor:
    """Return the grid for `grid_sample` that applies an affine map to the image."""

def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Set elements to SELU's lowest value, then scale and shift all to keep mean 0 and variance 1."""

def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """Return the mean of each window; see `avg_pool2d`."""

def avg_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """Return the mean of each window."""

def avg_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ..., divisor_override: builtins.int | None = ...) -> Tensor:
    """Return the mean of each window."""

def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = ..., bias: Tensor | None = ..., training: builtins.bool = ..., momentum: builtins.float = ..., eps: builtins.float = ...) -> Tensor:
    """Compute (x - mean) / sqrt(var + eps) ⊙ weight + bias for each channel."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """Return y_o = Σ_ij input1_i weight_oij input2_j + bias_o."""

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute -(t log p + (1 - t) log(1 - p)) · weight for probabilities p = input; each logarithm is at least -100."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., pos_weight: Tensor | None = ...) -> Tensor:
    """Compute binary_cross_entropy of sigmoid(input), without overflow and without a bound on the logarithms."""

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

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute 1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Compute x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`. The bound does not affect the gradient."""

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., ignore_index: builtins.int = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., label_smoothing: builtins.float = ...) -> Tensor:
    """Compute -log softmax(input) of the target class, or its mean under target probabilities."""

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[builtins.int], target_lengths: Tensor | Sequence[builtins.int], blank: builtins.int = ..., reduction: builtins.str = ..., zero_infinity: builtins.bool = ...) -> Tensor:
    """Compute -log of the total probability of all alignments of each target with its input."""

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

def embedding(input: Tensor, weight: Tensor, padding_idx: builtins.int | None = ..., max_norm: builtins.float | None = ..., norm_type: builtins.float = ..., scale_grad_by_freq: builtins.bool = ..., sparse: builtins.bool = ...) -> Tensor:
    """Look up the rows of `weight` at the indices `input`."""

def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = ..., max_norm: builtins.float | None = ..., norm_type: builtins.float = ..., scale_grad_by_freq: builtins.bool = ..., mode: builtins.str = ..., sparse: builtins.bool = ..., per_sample_weights: Tensor | None = ..., include_last_offset: builtins.bool = ..., padding_idx: builtins.int | None = ...) -> Tensor:
    """Return the sum, mean or maximum of the rows of `weight` for each bag of indices."""

def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Apply `alpha_dropout` to whole channels.  Shapes: input (N, C, ...) -> the same"""

def fold(input: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Sum patches into an image, the adjoint of `unfold`: overlapping windows add up."""

@overload
def fractional_max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: Literal[False] = ..., _random_samples: Tensor | None = ...) -> Tensor:
    """Return the maximum of windows that start at random distances; they may overlap."""

@overload
def fractional_max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., _random_samples: Tensor | None = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of windows that start at random distances; they may overlap."""

@overload
def fractional_max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> Any:
    """Return the maximum of windows that start at random distances; they may overlap."""

def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima and their indices; see `fractional_max_pool2d`. `return_indices` has no effect."""

@overload
def fractional_max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: Literal[False] = ..., _random_samples: Tensor | None = ...) -> Tensor:
    """Return the maximum of windows of three dims; see `fractional_max_pool2d`."""

@overload
def fractional_max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., _random_samples: Tensor | None = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of windows of three dims; see `fractional_max_pool2d`."""

@overload
def fractional_max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> Any:
    """Return the maximum of windows of three dims; see `fractional_max_pool2d`."""

def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int | None] | None = ..., output_ratio: Any = ..., return_indices: builtins.bool = ..., _random_samples: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maxima and their indices; see `fractional_max_pool3d`. `return_indices` has no effect."""

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | builtins.float, full: builtins.bool = ..., eps: builtins.float = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute (log max(var, eps) + (input - target)² / max(var, eps)) / 2. The bound does not affect the gradient."""

def gelu(input: Tensor, *, approximate: builtins.str = ..., out: Any = ...) -> Tensor:
    """Return x · Φ(x), where Φ is the cumulative distribution function of the normal distribution."""

def glu(input: Tensor, dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Multiply the first half of `input` along `dim` by the sigmoid of the second half."""

def grid_sample(input: Tensor, grid: Tensor, mode: builtins.str = ..., padding_mode: builtins.str = ..., align_corners: builtins.bool | None = ...) -> Tensor:
    """Sample the input at the points of `grid`."""

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

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute input where target is 1, max(0, margin - input) where it is -1, and the sum of both elsewhere."""

def huber_loss(input: Tensor, target: Tensor, reduction: builtins.str = ..., delta: builtins.float = ..., weight: Tensor | None = ...) -> Tensor:
    """Compute d² / 2 where |d| < delta, else delta (|d| - delta / 2), d = input - target."""

def instance_norm(input: Tensor, running_mean: Tensor | None = ..., running_var: Tensor | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., use_input_stats: builtins.bool = ..., momentum: builtins.float = ..., eps: builtins.float = ...) -> Tensor:
    """Compute batch_norm with separate statistics for each sample."""

def interpolate(input: Tensor, size: builtins.int | Sequence[builtins.int] | None = ..., scale_factor: builtins.float | Sequence[builtins.float] | None = ..., mode: builtins.str = ..., align_corners: builtins.bool | None = ..., recompute_scale_factor: builtins.bool | None = ..., antialias: builtins.bool = ...) -> Tensor:
    """Resize the spatial dims to `size` or by `scale_factor`."""

def kl_div(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., log_target: builtins.bool = ...) -> Tensor:
    """Compute t (log t - input): the divergence of `input`, a distribution in logarithms, from `target` t."""

def l1_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """Compute |input - target|."""

def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Return y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes."""

def leaky_relu(input: Tensor, negative_slope: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive and negative_slope · x elsewhere."""

def leaky_relu_(input: Tensor, negative_slope: builtins.float = ...) -> Tensor:
    """Return x where it is positive and negative_slope · x elsewhere."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """Return y = input · weightᵀ + bias."""

def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = ..., weight: Tensor | None = ..., reduction: builtins.str = ..., ignore_index: builtins.int | None = ..., label_smoothing: builtins.float = ..., options: builtins.object = ...) -> Tensor:
    """Compute `cross_entropy` of the logits input · linear_weightᵀ + linear_bias."""

def local_response_norm(input: Tensor, size: builtins.int, alpha: builtins.float = ..., beta: builtins.float = ..., k: builtins.float = ...) -> Tensor:
    """Compute x / (k + alpha · mean of x² over `size` neighbouring channels)^beta."""

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

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute max(0, -target (input1 - input2) + margin). Target 1 ranks input1 higher, -1 input2."""

@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool1d`."""

@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool2d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool2d`."""

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def max_pool3d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
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

def mse_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., weight: Tensor | None = ...) -> Tensor:
    """Compute (input - target)²."""

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: builtins.int, num_heads: builtins.int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: builtins.bool, dropout_p: builtins.float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: builtins.bool = ..., key_padding_mask: Tensor | None = ..., need_weights: builtins.bool = ..., attn_mask: Tensor | None = ..., use_separate_proj_weight: builtins.bool = ..., q_proj_weight: Tensor | None = ..., k_proj_weight: Tensor | None = ..., v_proj_weight: Tensor | None = ..., static_k: Tensor | None = ..., static_v: Tensor | None = ..., average_attn_weights: builtins.bool = ..., is_causal: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor | None]:
    """Project query, key and value, compute attention for each head, and project the result."""

def multi_margin_loss(input: Tensor, target: Tensor, p: builtins.int = ..., margin: builtins.float = ..., weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute Σ_{i ≠ y} weight_y max(0, margin - x_y + x_i)^p / C, y the sample's class."""

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute Σ_j Σ_i max(0, 1 - x_j + x_i) / C, j the sample's labels, i all other classes."""

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute binary_cross_entropy_with_logits, averaged over the classes of each sample."""

def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: builtins.bool | None = ..., ignore_index: builtins.int = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute -input of the target class, times its weight: cross_entropy for log-probabilities."""

def normalize(input: Tensor, p: builtins.float = ..., dim: builtins.int | builtins.tuple[builtins.int, ...] = ..., eps: builtins.float = ..., out: Tensor | None = ...) -> Tensor:
    """Compute x / max(‖x‖_p, eps), with the norm along `dim`."""

def one_hot(tensor: Tensor, num_classes: builtins.int = ...) -> Tensor:
    """Encode indices along a new last dim: 1 at the index, 0 elsewhere."""

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

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool = ..., full: builtins.bool = ..., size_average: builtins.bool | None = ..., eps: builtins.float = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute exp(input) - target · input, or with log_input=False input - target · log(input + eps)."""

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

def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = ..., dropout_p: builtins.float = ..., is_causal: builtins.bool = ..., scale: builtins.float | None = ..., enable_gqa: builtins.bool = ...) -> Tensor:
    """Compute softmax(q kᵀ · scale + mask) v."""

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

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ..., beta: builtins.float = ...) -> Tensor:
    """Compute d² / (2 beta) where |d| < beta, else |d| - beta / 2, d = input - target."""

def soft_margin_loss(input: Tensor, target: Tensor, size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute log(1 + exp(-target · input)), target 1 or -1."""

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

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: builtins.float = ..., p: builtins.float = ..., eps: builtins.float = ..., swap: builtins.bool = ..., size_average: builtins.bool | None = ..., reduce: builtins.bool | None = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference + eps."""

def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = ..., margin: builtins.float = ..., swap: builtins.bool = ..., reduction: builtins.str = ...) -> Tensor:
    """Compute triplet_margin_loss with any distance function; pairwise_distance if None."""

def unfold(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = ..., padding: builtins.int | Sequence[builtins.int] = ..., stride: builtins.int | Sequence[builtins.int] = ..., *, out: Any = ...) -> Tensor:
    """Extract all windows of an image, each as a column."""

def upsample(input: Tensor, size: builtins.int | Sequence[builtins.int] | None = ..., scale_factor: builtins.float | Sequence[builtins.float] | None = ..., mode: builtins.str = ..., align_corners: builtins.bool | None = ...) -> Tensor:
    """Resize the spatial dims; the former name of `interpolate`."""

def upsample_bilinear(input: Tensor, size: builtins.int | Sequence[builtins.int] | None = ..., scale_factor: builtins.float | Sequence[builtins.float] | None = ...) -> Tensor:
    """Resize bilinearly with aligned corners; see `interpolate`."""

def upsample_nearest(input: Tensor, size: builtins.int | Sequence[builtins.int] | None = ..., scale_factor: builtins.float | Sequence[builtins.float] | None = ...) -> Tensor:
    """Resize by the nearest element; see `interpolate`."""
