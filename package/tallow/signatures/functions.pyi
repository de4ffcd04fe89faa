"""Functions of the package. Written by scripts/build_stubs.py."""

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
    "abs",
    "abs_",
    "absolute",
    "absolute_",
    "acos",
    "acos_",
    "acosh",
    "acosh_",
    "adaptive_avg_pool1d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "adjoint",
    "all",
    "allclose",
    "alpha_dropout",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arange",
    "arccos",
    "arccos_",
    "arccosh",
    "arccosh_",
    "arcsin",
    "arcsin_",
    "arcsinh",
    "arcsinh_",
    "arctan",
    "arctan2",
    "arctan_",
    "arctanh",
    "arctanh_",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_tensor",
    "asarray",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "atan",
    "atan2",
    "atan_",
    "atanh",
    "atanh_",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "baddbmm",
    "bartlett_window",
    "bernoulli",
    "bilinear",
    "bincount",
    "binomial",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "cartesian_prod",
    "cat",
    "cdist",
    "ceil",
    "ceil_",
    "celu",
    "celu_",
    "chain_matmul",
    "channel_shuffle",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clip",
    "clip_",
    "clone",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "corrcoef",
    "cos",
    "cos_",
    "cosh",
    "cosh_",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "deg2rad",
    "deg2rad_",
    "det",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dropout",
    "dsplit",
    "dstack",
    "einsum",
    "empty",
    "empty_like",
    "empty_strided",
    "eq",
    "equal",
    "erf",
    "erf_",
    "erfc",
    "erfc_",
    "erfinv",
    "exp",
    "exp2",
    "exp2_",
    "exp_",
    "expm1",
    "expm1_",
    "eye",
    "feature_alpha_dropout",
    "fill",
    "fix",
    "fix_",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "frac_",
    "frexp",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "gather",
    "gcd",
    "gcd_",
    "ge",
    "ger",
    "get_default_device",
    "get_device",
    "get_rng_state",
    "gradient",
    "greater",
    "greater_equal",
    "group_norm",
    "gru_cell",
    "gt",
    "hamming_window",
    "hann_window",
    "hardshrink",
    "heaviside",
    "histc",
    "hsplit",
    "hstack",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "index_select",
    "initial_seed",
    "inner",
    "inverse",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kaiser_window",
    "kron",
    "kthvalue",
    "layer_norm",
    "lcm",
    "lcm_",
    "ldexp",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "log",
    "log10",
    "log10_",
    "log1p",
    "log1p_",
    "log2",
    "log2_",
    "log_",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logit_",
    "logspace",
    "logsumexp",
    "lstm_cell",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nan_to_num_",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "neg_",
    "negative",
    "negative_",
    "nextafter",
    "nonzero",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "outer",
    "pairwise_distance",
    "pdist",
    "permute",
    "pinverse",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson",
    "polygamma",
    "positive",
    "pow",
    "prelu",
    "prod",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rad2deg_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "reciprocal",
    "reciprocal_",
    "relu",
    "relu_",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "result_type",
    "rms_norm",
    "rnn_relu_cell",
    "rnn_tanh_cell",
    "roll",
    "rot90",
    "round",
    "round_",
    "row_stack",
    "rrelu",
    "rrelu_",
    "rsqrt",
    "rsqrt_",
    "rsub",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "select",
    "select_scatter",
    "selu",
    "selu_",
    "set_default_device",
    "set_rng_state",
    "sgn",
    "sigmoid",
    "sigmoid_",
    "sign",
    "signbit",
    "sin",
    "sin_",
    "sinc",
    "sinc_",
    "sinh",
    "sinh_",
    "slice_scatter",
    "slogdet",
    "softmax",
    "sort",
    "split",
    "split_with_sizes",
    "sqrt",
    "sqrt_",
    "square",
    "square_",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "svd",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "tensor",
    "tensor_split",
    "tensordot",
    "threshold",
    "threshold_",
    "tile",
    "topk",
    "trace",
    "transpose",
    "trapezoid",
    "trapz",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "trunc_",
    "unbind",
    "unflatten",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsqueeze",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "xlogy_",
    "zeros",
    "zeros_like",
]

def abs(input: Tensor, *, out: Any = ...) -> Tensor:
    """|input|"""

def abs_(input: Tensor) -> Tensor:
    """|input|"""

def absolute(input: Tensor, *, out: Any = ...) -> Tensor:
    """|input|"""

def absolute_(input: Tensor) -> Tensor:
    """|input|"""

def acos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse cosine, in [0, π]."""

def acos_(input: Tensor) -> Tensor:
    """Inverse cosine, in [0, π]."""

def acosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic cosine, of numbers from 1."""

def acosh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine, of numbers from 1."""

def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means over windows chosen so that the output has `output_size`, None meaning the input's."""

def add(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """input + alpha · other, broadcast."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """beta · input + alpha · Σ_b batch1_b @ batch2_b"""

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ..., out: Any = ...) -> Tensor:
    """input + value · tensor1 / tensor2, broadcast."""

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ..., out: Any = ...) -> Tensor:
    """input + value · tensor1 · tensor2, broadcast."""

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2)"""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """beta · input + alpha · (mat @ vec)"""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """beta · input + alpha · (vec1 vec2ᵀ)"""

def adjoint(input: Tensor) -> Tensor:
    """The last two dims exchanged; for complex numbers it would be the conjugate of that."""

def all(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Whether every element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""

def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
    """Whether |input - other| ≤ atol + rtol · |other| for every element."""

def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Set elements to SELU's lowest value, and scale and shift all so that mean 0 and variance 1 stay."""

def amax(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """max input over `dim`; elements that share the maximum share its gradient."""

def amin(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """min input over `dim`; elements that share the minimum share its gradient."""

def aminmax(input: Tensor, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., out: Any = ...) -> results.aminmax:
    """The least and the greatest element, over `dim` or over everything."""

def any(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Whether some element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""

def arange(*bounds: builtins.float, start: builtins.float = ..., end: builtins.float = ..., step: builtins.float = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """arange(end), arange(start, end), arange(start, end, step): start, start + step, ... below end."""

def arccos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse cosine, in [0, π]."""

def arccos_(input: Tensor) -> Tensor:
    """Inverse cosine, in [0, π]."""

def arccosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic cosine, of numbers from 1."""

def arccosh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine, of numbers from 1."""

def arcsin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse sine, in [-π/2, π/2]."""

def arcsin_(input: Tensor) -> Tensor:
    """Inverse sine, in [-π/2, π/2]."""

def arcsinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic sine."""

def arcsinh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse tangent, in [-π/2, π/2]."""

def arctan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The angle in (-π, π] of the point with y = input and x = other."""

def arctan_(input: Tensor) -> Tensor:
    """Inverse tangent, in [-π/2, π/2]."""

def arctanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

def arctanh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

def argmax(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Where the first maximum stands: along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

def argmin(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Where the first minimum stands: along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

def argsort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Where each element of the sorted tensor stood. Equal elements always keep their order."""

def argwhere(input: Tensor, *, out: Any = ...) -> Tensor:
    """The places of all elements that are not zero, one a row, in row-major order."""

def as_strided(input: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """A view of the tensor's storage by explicit steps, in elements."""

def as_tensor(data: Any, dtype: Any = ..., device: Any = ...) -> Tensor:
    """As `tensor`, sharing memory with `data` where it is a tensor or an array of that dtype and device already."""

def asarray(obj: Any, *, dtype: Any = ..., device: Any = ..., copy: builtins.bool | None = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """As `as_tensor`; `copy` says whether to share memory always (False), never (True), or where possible (None)."""

def asin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse sine, in [-π/2, π/2]."""

def asin_(input: Tensor) -> Tensor:
    """Inverse sine, in [-π/2, π/2]."""

def asinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic sine."""

def asinh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""

def atan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse tangent, in [-π/2, π/2]."""

def atan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The angle in (-π, π] of the point with y = input and x = other."""

def atan_(input: Tensor) -> Tensor:
    """Inverse tangent, in [-π/2, π/2]."""

def atanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

def atanh_(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

def atleast_1d(*tensors: Any) -> Any:
    """A number as a vector of one element; anything else as it is."""

def atleast_2d(*tensors: Any) -> Any:
    """Vectors as one row."""

def atleast_3d(*tensors: Any) -> Any:
    """Vectors as (1, N, 1), matrices as (N, M, 1)."""

def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of each window; see avg_pool2d."""

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """beta · input + alpha · (batch1 @ batch2)"""

def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A triangle: 1 - |2t - 1|, t from 0 to 1."""

def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
    """Ones with the probabilities that the input holds, or all with probability `p`; zeros else."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """y_o = Σ_ij input1_i weight_oij input2_j + bias_o."""

def bincount(input: Tensor, weights: Any = ..., minlength: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """How often each number occurs, or the sum of its weights."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = ...) -> Tensor:
    """The successes of `count` trials that each succeed with probability `prob`, in count's dtype."""

def bitwise_and(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """The bits that are set in both, broadcast; of booleans, and."""

def bitwise_left_shift(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input · 2^other, broadcast; bits that leave are lost."""

def bitwise_not(input: Tensor, *, out: Any = ...) -> Tensor:
    """Every bit turned; of booleans, not."""

def bitwise_or(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """The bits that are set in either, broadcast; of booleans, or."""

def bitwise_right_shift(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """floor(input / 2^other), broadcast: the sign bit is repeated."""

def bitwise_xor(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """The bits that differ, broadcast; of booleans, exclusive or."""

def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """0.42 - 0.5 cos 2πt + 0.08 cos 4πt, t from 0 to 1."""

def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a matrix of zeros."""

def bmm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """The products of two batches of matrices, which are not broadcast."""

def broadcast_shapes(*shapes: builtins.int | Sequence[builtins.int]) -> Size:
    """The shape that tensors of these shapes broadcast to."""

def broadcast_tensors(*tensors: Any) -> builtins.tuple[Tensor, ...]:
    """Views of the tensors, expanded to their common shape."""

def broadcast_to(input: Tensor, *size: Any) -> Tensor: ...

def bucketize(input: Tensor | builtins.float, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The number of the bucket that each value falls into: i for boundaries[i-1] < v ≤ boundaries[i], or with `right`"""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector."""

def cat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Join along an existing dim. One-dim tensors without elements are skipped, whatever the others' shape."""

def cdist(x1: Tensor, x2: Tensor, p: builtins.float = ..., compute_mode: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """y_ij = ‖x1_i - x2_j‖_p"""

def ceil(input: Tensor, *, out: Any = ...) -> Tensor:
    """The least integer that is not below."""

def ceil_(input: Tensor) -> Tensor:
    """The least integer that is not below."""

def celu(input: Tensor, alpha: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x / alpha) - 1)."""

def celu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """x where it is positive, elsewhere alpha · (exp(x / alpha) - 1)."""

def chain_matmul(*matrices: Tensor) -> Tensor:
    """As `linalg.multi_dot`, of matrices alone; a single one is returned as it is."""

def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def cholesky(input: Tensor, upper: builtins.bool = ...) -> Tensor:
    """As `linalg.cholesky`."""

def cholesky_inverse(L: Tensor, upper: builtins.bool = ...) -> Tensor:
    """The inverse of A = L · Lᵀ, or Lᵀ · L if `upper`."""

def cholesky_solve(input: Tensor, L: Tensor, upper: builtins.bool = ...) -> Tensor:
    """X of A · X = input, where A = L · Lᵀ, or Lᵀ · L if `upper`."""

def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """At most `chunks` views, all of one size but perhaps the last."""

def clamp(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

def clamp_(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
    """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

def clamp_max(input: Tensor, max: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """min(input, `max`), broadcast."""

def clamp_max_(input: Tensor, max: Tensor | builtins.float) -> Tensor:
    """min(input, `max`), broadcast."""

def clamp_min(input: Tensor, min: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """max(input, `min`), broadcast."""

def clamp_min_(input: Tensor, min: Tensor | builtins.float) -> Tensor:
    """max(input, `min`), broadcast."""

def clip(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

def clip_(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
    """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

def clone(input: Tensor, *, memory_format: MemoryFormat | None = ..., out: Any = ...) -> Tensor:
    """A copy, in the order in memory that the input has unless told otherwise."""

def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side, vectors as columns."""

def combinations(input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...) -> Tensor:
    """All choices of `r` elements of a vector, in the order of `itertools.combinations`."""

def concat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Join along an existing dim. One-dim tensors without elements are skipped, whatever the others' shape."""

def concatenate(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Join along an existing dim. One-dim tensors without elements are skipped, whatever the others' shape."""

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

def copysign(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """The size of the input with the sign of `other`."""

def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, a row each: their covariances by the product of their standard deviations."""

def cos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Cosine of an angle in radians."""

def cos_(input: Tensor) -> Tensor:
    """Cosine of an angle in radians."""

def cosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Hyperbolic cosine."""

def cosh_(input: Tensor) -> Tensor:
    """Hyperbolic cosine."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`; through the bound the gradient goes unchanged."""

def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """How many elements over `dim` are other than zero. Dtypes: int64"""

def cov(input: Tensor, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
    """The covariances of variables, a row each, whose observations stand in the columns."""

def cross(input: Tensor, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """The cross product along `dim`, or along the first dimension of length 3."""

def cummax(input: Tensor, dim: builtins.int, *, out: Any = ...) -> results.cummax:
    """The greatest of the elements so far along `dim`, and where the last such stands."""

def cummin(input: Tensor, dim: builtins.int, *, out: Any = ...) -> results.cummin:
    """The least of the elements so far along `dim`, and where the last such stands."""

def cumprod(input: Tensor, dim: builtins.int, *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """y_i = Π_{j ≤ i} x_j along `dim`."""

def cumsum(input: Tensor, dim: builtins.int, *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """y_i = Σ_{j ≤ i} x_j along `dim`."""

def cumulative_trapezoid(y: Tensor, x: Tensor | None = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """The integral up to each sample but the first, by the trapezoidal rule."""

def deg2rad(input: Tensor, *, out: Any = ...) -> Tensor:
    """Degrees as radians: input · π / 180."""

def deg2rad_(input: Tensor) -> Tensor:
    """Degrees as radians: input · π / 180."""

def det(input: Tensor) -> Tensor:
    """As `linalg.det`."""

def detach(input: Tensor) -> Tensor:
    """The same memory without the history."""

def diag(input: Tensor, diagonal: builtins.int = ...) -> Tensor:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector: a copy."""

def diag_embed(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Zeros, with the last dim of the input on a diagonal of the new dims `dim1` and `dim2`."""

def diagflat(input: Tensor, offset: builtins.int = ...) -> Tensor:
    """The elements, flattened, as the diagonal of a matrix."""

def diagonal(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """A view of the elements whose places along `dim2` and `dim1` differ by `offset`; it becomes the last dim."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """A copy with `src` on a diagonal."""

def diff(input: Tensor, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; of booleans, whether they differ."""

def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of lgamma."""

def dist(input: Tensor, other: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norm of the difference, over everything."""

def div(input: Tensor | builtins.float, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

def divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

def dot(input: Tensor, tensor: Tensor, *, out: Any = ...) -> Tensor:
    """The inner product of two vectors."""

def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p; the input itself if not `training`."""

def dsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Cut along dim 2; into as many equal parts, or before the given places."""

def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """One behind the other, along dim 2."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Σ over the products of the operands' elements, the dimensions named by letters."""

def empty(*size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: MemoryFormat = ...) -> Tensor:
    """Uninitialised memory."""

def empty_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """Uninitialised memory."""

def empty_strided(size: Sequence[builtins.int], stride: Sequence[builtins.int], *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Uninitialised memory, just large enough for these steps (in elements) from one element to the next."""

def eq(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input = other, elementwise."""

def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether both have one shape and the same elements."""

def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """The error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erf_(input: Tensor) -> Tensor:
    """The error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 - erf(input), without the cancellation."""

def erfc_(input: Tensor) -> Tensor:
    """1 - erf(input), without the cancellation."""

def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of erf, on [-1, 1]; NaN elsewhere."""

def exp(input: Tensor, *, out: Any = ...) -> Tensor:
    """e to the power of input."""

def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """2 to the power of input."""

def exp2_(input: Tensor) -> Tensor:
    """2 to the power of input."""

def exp_(input: Tensor) -> Tensor:
    """e to the power of input."""

def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """exp(input) - 1, exact near 0."""

def expm1_(input: Tensor) -> Tensor:
    """exp(input) - 1, exact near 0."""

def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix of zeros; m is n if not given."""

def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """As `alpha_dropout`, by whole channels.  Shapes: input (N, C, ...) -> the same"""

def fill(input: Tensor, value: builtins.float, *, out: Any = ...) -> Tensor:
    """The same value everywhere."""

def fix(input: Tensor, *, out: Any = ...) -> Tensor:
    """The integer part."""

def fix_(input: Tensor) -> Tensor:
    """The integer part."""

def flatten(input: Tensor, start_dim: builtins.int = ..., end_dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Merge the dims from `start_dim` to `end_dim` into one."""

def flip(input: Tensor, *dims: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """A copy with the order along `dims` reversed."""

def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""

def float_power(input: Tensor | builtins.float, exponent: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input to the power of `exponent`, computed in float64 whatever the operands are."""

def floor(input: Tensor, *, out: Any = ...) -> Tensor:
    """The greatest integer that is not above."""

def floor_(input: Tensor) -> Tensor:
    """The greatest integer that is not above."""

def floor_divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """floor(input / other), broadcast."""

def fmax(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The larger of two, or the one that is not NaN. Of equal ones the first has the gradient."""

def fmin(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The smaller of two, or the one that is not NaN. Of equal ones the first has the gradient."""

def fmod(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input - other · trunc(input / other): C's remainder, which has the sign of `input`."""

def frac(input: Tensor, *, out: Any = ...) -> Tensor:
    """What truncation leaves: input - trunc(input)."""

def frac_(input: Tensor) -> Tensor:
    """What truncation leaves: input - trunc(input)."""

def frexp(input: Tensor, *, out: Any = ...) -> results.frexp:
    """input = mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""

def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor on the memory of anything that offers `__dlpack__`: arrays and tensors of other libraries."""

def from_numpy(array: Any) -> Tensor:
    """A tensor on the memory of a NumPy array: writes through one are seen through the other."""

def frombuffer(buffer: Any, *, dtype: Any, count: builtins.int = ..., offset: builtins.int = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A tensor of one dim on the memory of bytes, a bytearray or any other buffer; `offset` is in bytes."""

def full(size: Sequence[builtins.int], fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """The same value everywhere."""

def full_like(input: Tensor, fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: ...

def gather(input: Tensor, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = ..., out: Any = ...) -> Tensor:
    """y[i, j, k] = input[index[i, j, k], j, k] for dim = 0, and so on for the other dims."""

def gcd(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The greatest common divisor, broadcast; that of 0 and n is |n|."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, broadcast; that of 0 and n is |n|."""

def ge(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≥ other, elementwise."""

def ger(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """y_ij = input_i · vec2_j"""

def get_default_device() -> Device: ...

def get_device(input: Tensor) -> builtins.int:
    """The number of its GPU; -1 on the CPU."""

def get_rng_state() -> Tensor: ...

def gradient(input: Tensor, *, spacing: Any = ..., dim: Any = ..., edge_order: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """The derivatives of samples along each of `dim`, or along all, by second-order differences."""

def greater(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input > other, elementwise."""

def greater_equal(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≥ other, elementwise."""

def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """As batch_norm, mean and var those of a group of channels of one sample, over its positions."""

def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """The hidden state after one step."""

def gt(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input > other, elementwise."""

def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., alpha: builtins.float = ..., beta: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """α - β cos 2πt, t from 0 to 1."""

def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """(1 - cos 2πt) / 2, t from 0 to 1."""

def hardshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """x, and 0 where |x| ≤ lambd."""

def heaviside(input: Tensor, values: Tensor, *, out: Any = ...) -> Tensor:
    """0 below zero, 1 above, and `values` at zero, broadcast."""

def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """How many elements fall into each of `bins` equal parts of [min, max]; of the elements' own range if both are 0."""

def hsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Cut along dim 1, vectors along dim 0; into as many equal parts, or before the given places."""

def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side: vectors along their only dim, others along dim 1."""

def hypot(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """sqrt(input² + other²), without overflow on the way."""

def index_add(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """A copy with alpha · source[i] added to the slice along `dim` that index[i] names, repeated ones adding up."""

def index_copy(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, out: Any = ...) -> Tensor:
    """A copy where the slice along `dim` that index[i] names is source[i]."""

def index_fill(input: Tensor, dim: builtins.int, index: Any, value: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """A copy where the slices along `dim` that `index` names hold one value; negative places count from the end."""

def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """A copy of the input where input[indices] is `values`, broadcast; or has `values` added to it."""

def index_reduce(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
    """A copy where the slices of `source` with the same place along `dim`, and the one there, are reduced to one."""

def index_select(input: Tensor, dim: builtins.int, index: Any, *, out: Any = ...) -> Tensor:
    """The slices along `dim` that `index` names, in its order."""

def initial_seed() -> builtins.int: ...

def inner(input: Tensor, other: Tensor) -> Tensor:
    """Σ over the last dimension of both; the plain product if one of them has none."""

def inverse(input: Tensor) -> Tensor:
    """As `linalg.inv`."""

def is_complex(input: Tensor) -> builtins.bool: ...

def is_floating_point(input: Tensor) -> builtins.bool: ...

def is_inference(input: Tensor) -> builtins.bool: ...

def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the only element is not zero."""

def is_same_size(input: Tensor, other: Tensor) -> builtins.bool: ...

def is_signed(input: Tensor) -> builtins.bool: ...

def is_tensor(obj: Any) -> builtins.bool: ...

def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """|input - other| ≤ atol + rtol · |other|, elementwise; infinities are close to themselves."""

def isfinite(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is neither infinite nor NaN."""

def isin(elements: Tensor | builtins.float, test_elements: Tensor | builtins.float, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Whether each element is one of the test elements, or with `invert` is not. Dtypes: bool"""

def isinf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is infinite, of either sign."""

def isnan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is NaN."""

def isneginf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is -∞."""

def isposinf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is +∞."""

def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., beta: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """I0(β √(1 - (2t - 1)²)) / I0(β), t from 0 to 1; I0 the modified Bessel function."""

def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of `input` times the whole of `other`."""

def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> results.kthvalue:
    """The k-th least element along `dim`, counted from one, and where it stands."""

def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes, var without Bessel's correction."""

def lcm(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The least common multiple, broadcast; that of 0 and n is 0."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple, broadcast; that of 0 and n is 0."""

def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input · 2^other"""

def le(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≤ other, elementwise."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input + weight · (end - input), broadcast."""

def less(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input < other, elementwise."""

def less_equal(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≤ other, elementwise."""

def lgamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """ln |Γ(input)|"""

def linspace(start: builtins.float, end: builtins.float, steps: builtins.int, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """`steps` numbers at equal distances, both ends included."""

def log(input: Tensor, *, out: Any = ...) -> Tensor:
    """Natural logarithm."""

def log10(input: Tensor, *, out: Any = ...) -> Tensor:
    """Logarithm to base 10."""

def log10_(input: Tensor) -> Tensor:
    """Logarithm to base 10."""

def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """log(1 + input), exact near 0."""

def log1p_(input: Tensor) -> Tensor:
    """log(1 + input), exact near 0."""

def log2(input: Tensor, *, out: Any = ...) -> Tensor:
    """Logarithm to base 2."""

def log2_(input: Tensor) -> Tensor:
    """Logarithm to base 2."""

def log_(input: Tensor) -> Tensor:
    """Natural logarithm."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """ln softmax(input) along `dim`, where no small number is taken the logarithm of; `dtype` converts the input first."""

def logaddexp(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """ln(exp(input) + exp(other)), without overflow on the way."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """log2(2^input + 2^other), without overflow on the way."""

def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Any = ...) -> Tensor:
    """y_i = log Σ_{j ≤ i} exp x_j along `dim`."""

def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative."""

def logical_and(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Whether both are nonzero."""

def logical_not(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether it is zero."""

def logical_or(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Whether one is nonzero, or both."""

def logical_xor(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Whether exactly one is nonzero."""

def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """ln(x / (1 - x)), the inverse of sigmoid; x is kept within [eps, 1 - eps] if `eps` is given."""

def logit_(input: Tensor, eps: builtins.float | None = ...) -> Tensor:
    """ln(x / (1 - x)), the inverse of sigmoid; x is kept within [eps, 1 - eps] if `eps` is given."""

def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, base: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """base^start to base^end in `steps` numbers, each the same multiple of the one before."""

def logsumexp(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """log Σ exp(input) over `dim`."""

def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """The hidden state and the cell after one step."""

def lt(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input < other, elementwise."""

def manual_seed(seed: builtins.int) -> Generator:
    """Seed the generator that everything uses which is not given one of its own."""

def masked_fill(input: Tensor, mask: Any, value: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """`value` where the mask holds, else `input`; the value is a number or a tensor without dims."""

def masked_scatter(input: Tensor, mask: Any, source: Tensor, *, out: Any = ...) -> Tensor:
    """The elements of `source` in order, one for each place where the mask holds; elsewhere the input."""

def masked_select(input: Tensor, mask: Any, *, out: Any = ...) -> Tensor:
    """The elements where the mask holds, in row-major order, both broadcast."""

def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The matrix product, over the last two dimensions; a vector counts as a row on the left, a column on the right."""

def matrix_exp(input: Tensor) -> Tensor:
    """Σ Aᵏ / k!, of square matrices."""

def matrix_power(input: Tensor, n: builtins.int) -> Tensor:
    """The product of n equal square matrices, by repeated squaring; of their inverses for a negative n."""

def max(input: Tensor, dim: builtins.int | Tensor | None = ..., keepdim: builtins.bool = ..., *, other: Tensor | None = ...) -> Any:
    """The greatest element, in one of three ways."""

def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor]:
    """The maxima of windows, and where each lies in the flattened spatial dims of the input."""

def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The maximum of each window; padding counts as -∞."""

def maximum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The larger of two, NaN if one is NaN. Equal ones share the gradient."""

def mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Σ input / n over `dim`."""

def median(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
    """The lower of the two middle elements: of all, or along `dim` with its index. NaN if there is any."""

def meshgrid(*tensors: Any, indexing: builtins.str = ...) -> builtins.tuple[Tensor, ...]:
    """Coordinates of a grid: views, expanded to the sizes of all vectors."""

def min(input: Tensor, dim: builtins.int | Tensor | None = ..., keepdim: builtins.bool = ..., *, other: Tensor | None = ...) -> Any:
    """The least element, in one of three ways; see `max`."""

def minimum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The smaller of two, NaN if one is NaN. Equal ones share the gradient."""

def mm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """The product of two matrices."""

def mode(input: Tensor, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> results.mode:
    """The commonest element along `dim`, the least of several such, and where it last stands."""

def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dims to new positions; the others keep their order."""

def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dims to new positions; the others keep their order."""

def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension."""

def mul(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input · other, broadcast."""

def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
    """Indices drawn with the weights that each row of the input holds; they need not sum to one."""

def multiply(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input · other, broadcast."""

def mv(input: Tensor, vec: Tensor, *, out: Any = ...) -> Tensor:
    """A matrix times a vector."""

def mvlgamma(input: Tensor, p: builtins.int) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)"""

def nan_to_num(input: Tensor, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
    """Other numbers for NaN, +∞ and -∞: without `posinf` and `neginf`, the largest and the lowest of the dtype."""

def nan_to_num_(input: Tensor, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
    """`nan_to_num` in place."""

def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """The mean over `dim` of what is not NaN."""

def nanmedian(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
    """As `median`, of the elements that are not NaN."""

def nanquantile(input: Tensor, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """As `quantile`, of the elements that are not NaN."""

def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Σ input over `dim`, NaN counting as zero."""

def narrow(input: Tensor, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
    """The `length` places along `dim` from `start` on: a view."""

def ne(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≠ other, elementwise."""

def neg(input: Tensor, *, out: Any = ...) -> Tensor:
    """-input"""

def neg_(input: Tensor) -> Tensor:
    """-input"""

def negative(input: Tensor, *, out: Any = ...) -> Tensor:
    """-input"""

def negative_(input: Tensor) -> Tensor:
    """-input"""

def nextafter(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The next number after the input towards `other`."""

def nonzero(input: Tensor, *, as_tuple: builtins.bool = ...) -> Any:
    """The places of all elements that are not zero: one a row, or as a tuple of vectors to index with."""

def norm(input: Tensor, p: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """(Σ |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the nuclear norm of matrices."""

def normal(mean: Tensor | builtins.float, std: Tensor | builtins.float = ..., size: Sequence[builtins.int] | None = ..., *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Normal, each element with its own mean and standard deviation; or all alike, in the given size."""

def not_equal(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input ≠ other, elementwise."""

def numel(input: Tensor) -> builtins.int: ...

def ones(*size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor: ...

def ones_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: ...

def outer(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """y_ij = input_i · vec2_j"""

def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """‖x1 - x2 + eps‖_p along the last dim."""

def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ..."""

def permute(input: Tensor, *dims: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """Reorder the dims: dim i of the result is dim dims[i] of the input."""

def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor:
    """As `linalg.pinv`, with the smallest singular values kept that PyTorch keeps here."""

def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Spread channels over r × r pixels."""

def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """The inverse of pixel_shuffle.  Shapes: input (..., C, H · r, W · r) -> (..., C · r², H, W)"""

def poisson(input: Tensor, generator: Generator | None = ...) -> Tensor:
    """Poisson numbers with the rates that the input holds, in its dtype."""

def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""

def positive(input: Tensor) -> Tensor:
    """The input itself."""

def pow(input: Tensor | builtins.float, exponent: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input to the power of `exponent`, broadcast."""

def prelu(input: Tensor, weight: Tensor, *, out: Any = ...) -> Tensor:
    """x where it is positive, elsewhere weight · x, with one weight for all channels or one for each."""

def prod(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Π input over `dim`, or over everything."""

def put(input: Tensor, index: Any, source: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """A copy where the element number index[i] of the flattened input is source[i]; or has it added."""

def qr(input: Tensor, some: builtins.bool = ...) -> Any:
    """As `linalg.qr`: reduced if `some`, else complete."""

def quantile(input: Tensor, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """The elements below which the parts `q` of `dim` (or of everything) lie, interpolated; NaN if there is any."""

def rad2deg(input: Tensor, *, out: Any = ...) -> Tensor:
    """Radians as degrees: input · 180 / π."""

def rad2deg_(input: Tensor) -> Tensor:
    """Radians as degrees: input · 180 / π."""

def rand(*size: Any, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Uniform in [0, 1)."""

def rand_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """Uniform in [0, 1), in the input's size, dtype and device."""

def randint(*bounds: Any, low: builtins.int = ..., high: builtins.int | None = ..., size: Sequence[builtins.int] | None = ..., generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """randint(high, size), randint(low, high, size): integers in [low, high)."""

def randint_like(input: Tensor, *bounds: builtins.int, low: builtins.int = ..., high: builtins.int | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """randint_like(input, high), randint_like(input, low, high), in the input's size, dtype and device."""

def randn(*size: Any, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Standard normal."""

def randn_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor:
    """Standard normal, in the input's size, dtype and device."""

def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """The integers from 0 to n - 1 in random order."""

def ravel(input: Tensor, *, out: Any = ...) -> Tensor:
    """All elements in one dim."""

def reciprocal(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 / input"""

def reciprocal_(input: Tensor) -> Tensor:
    """1 / input"""

def relu(input: Tensor, *, out: Any = ...) -> Tensor:
    """max(x, 0)"""

def relu_(input: Tensor) -> Tensor:
    """max(x, 0)"""

def remainder(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input - other · floor(input / other): Python's `%`, which has the sign of `other`."""

def renorm(input: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
    """The slices along `dim` whose p-norm exceeds `maxnorm`, shrunk to it."""

def repeat_interleave(input: Tensor, repeats: Tensor | builtins.int | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
    """Each place along `dim` several times in a row; without `dim`, each element of the flattened tensor."""

def reshape(input: Tensor, *shape: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """The same elements in the same order; a view where the strides allow it, else a copy. One -1 is inferred."""

def result_type(tensor1: Tensor | builtins.float, tensor2: Tensor | builtins.float) -> Dtype:
    """The dtype of an op that mixes the two."""

def rms_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """y = x / sqrt(mean(x²) + eps) ⊙ weight over the last axes; eps None means the machine epsilon of x."""

def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """relu(w_ih · input + b_ih + w_hh · hx + b_hh)"""

def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """tanh(w_ih · input + b_ih + w_hh · hx + b_hh)"""

def roll(input: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """A copy moved by `shifts` places along `dims`; what leaves at one end enters at the other."""

def rot90(input: Tensor, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
    """A copy turned by `k` quarters, from the first of `dims` towards the second."""

def round(input: Tensor, *, decimals: builtins.int = ..., out: Any = ...) -> Tensor:
    """To the nearest number with that many decimals; what lies half way goes to the even one."""

def round_(input: Tensor, *, decimals: builtins.int = ...) -> Tensor:
    """To the nearest number with that many decimals; what lies half way goes to the even one."""

def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """One below the other: vectors as rows."""

def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, elsewhere a · x: a is drawn from [lower, upper] for each element, or their mean."""

def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ...) -> Tensor:
    """`rrelu` in place."""

def rsqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 / sqrt(input)"""

def rsqrt_(input: Tensor) -> Tensor:
    """1 / sqrt(input)"""

def rsub(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """other - alpha · input, broadcast."""

def scalar_tensor(s: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A tensor of no dims, of the default dtype."""

def scatter(input: Tensor, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """A copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

def scatter_add(input: Tensor, dim: builtins.int, index: Any, src: Tensor, *, out: Any = ...) -> Tensor:
    """A copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0, repeated places adding up."""

def scatter_reduce(input: Tensor, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
    """A copy where the elements of `src` with the same place, and the one there, are reduced to one."""

def searchsorted(sorted_sequence: Tensor, input: Tensor | builtins.float, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: builtins.str | None = ..., sorter: Any = ..., out: Any = ...) -> Tensor:
    """Where along the last dim each value would be inserted: before equal elements, or after them with `right`."""

def seed() -> builtins.int:
    """Seed that generator from the operating system."""

def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """The slice at one place along `dim`, without that dim: a view."""

def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """A copy with `src` at one place along `dim`."""

def selu(input: Tensor, *, out: Any = ...) -> Tensor:
    """elu with the scales that keep mean 0 and variance 1 from layer to layer."""

def selu_(input: Tensor) -> Tensor:
    """elu with the scales that keep mean 0 and variance 1 from layer to layer."""

def set_default_device(device: Any) -> None:
    """Put new tensors that name no device there, in this thread; None is the CPU."""

def set_rng_state(new_state: Tensor) -> None: ...

def sgn(input: Tensor, *, out: Any = ...) -> Tensor:
    """-1, 0 or 1: the same as `sign`, as there are no complex numbers here."""

def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 / (1 + exp(-x))"""

def sigmoid_(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))"""

def sign(input: Tensor, *, out: Any = ...) -> Tensor:
    """-1, 0 or 1."""

def signbit(input: Tensor, *, out: Any = ...) -> Tensor:
    """Whether the sign bit is set: for negative numbers, -0.0 included."""

def sin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Sine of an angle in radians."""

def sin_(input: Tensor) -> Tensor:
    """Sine of an angle in radians."""

def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """sin(πx) / πx, and 1 at 0."""

def sinc_(input: Tensor) -> Tensor:
    """sin(πx) / πx, and 1 at 0."""

def sinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Hyperbolic sine."""

def sinh_(input: Tensor) -> Tensor:
    """Hyperbolic sine."""

def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
    """A copy with `src` at the places start, start + step, ... below `end` along `dim`."""

def slogdet(input: Tensor) -> Any:
    """As `linalg.slogdet`."""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Exponential weights along `dim`, summing to one; `dtype` converts the input first."""

def sort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, out: Any = ...) -> results.sort:
    """The elements along `dim` in order, and where each one stood. Equal elements always keep their order."""

def split(tensor: Tensor, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Views of `split_size` places each, the last perhaps fewer; or of the given sizes."""

def split_with_sizes(tensor: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Views of the given sizes along a dim."""

def sqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """Square root."""

def sqrt_(input: Tensor) -> Tensor:
    """Square root."""

def square(input: Tensor, *, out: Any = ...) -> Tensor:
    """input · input, as an integer for booleans."""

def square_(input: Tensor) -> Tensor:
    """input · input, as an integer for booleans."""

def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """Drop the dims of size 1: all of them, or those in `dim`."""

def stack(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Join along a new dim."""

def std(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
    """The square root of `var`."""

def std_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """`std` and `mean`."""

def sub(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """input - alpha · other, broadcast."""

def subtract(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """input - alpha · other, broadcast."""

def sum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Σ input over `dim`."""

def svd(input: Tensor, some: builtins.bool = ...) -> Any:
    """U, S and V, not Vᵀ, of the singular value decomposition: reduced if `some`, else with square U and V."""

def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Exchange two dims."""

def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Exchange two dims."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and numbers stay as they are."""

def take(input: Tensor, index: Any, *, out: Any = ...) -> Tensor:
    """The elements of the flattened input at these places; negative ones count from the end."""

def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """As `gather`, the other dims broadcast; without `dim`, of the flattened input. Negative indices are taken too."""

def tan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Tangent of an angle in radians."""

def tan_(input: Tensor) -> Tensor:
    """Tangent of an angle in radians."""

def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Hyperbolic tangent."""

def tanh_(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""

def tensor(data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A new tensor with a copy of `data`: a number, a nested sequence of numbers, an array."""

def tensor_split(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Views of nearly equal sizes, the larger first; or cut before the given indices, as Python slices are."""

def tensordot(a: Tensor, b: Tensor, dims: builtins.int | Sequence[Sequence[builtins.int]] = ...) -> Tensor:
    """Σ over `dims`: the last n of `a` with the first n of `b`, or dims[0] of `a` with dims[1] of `b`."""

def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, *, out: Any = ...) -> Tensor:
    """x where it is above the threshold, elsewhere `value`."""

def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """x where it is above the threshold, elsewhere `value`."""

def tile(input: Tensor, *dims: Any) -> Tensor:
    """As `repeat`; where there are fewer repeats than dims, the first dims are not repeated."""

def topk(input: Tensor, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Any = ...) -> results.topk:
    """The k greatest (or least) elements along `dim`, in order whatever `sorted` says, and where they stood."""

def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""

def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Exchange two dims."""

def trapezoid(y: Tensor, x: Tensor | None = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """The integral of samples by the trapezoidal rule, at positions `x` or `dx` apart."""

def trapz(y: Tensor, x: Tensor | None = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """The integral of samples by the trapezoidal rule, at positions `x` or `dx` apart."""

def tril(input: Tensor, diagonal: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """The elements on and below a diagonal, zero above; of each matrix in the last two dims."""

def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ...) -> Tensor:
    """Rows and columns (2, N) of the elements on and below diagonal number `offset` of a (row, col) matrix."""

def triu(input: Tensor, diagonal: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """The elements on and above a diagonal, zero below; of each matrix in the last two dims."""

def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ...) -> Tensor:
    """Rows and columns (2, N) of the elements on and above diagonal number `offset` of a (row, col) matrix."""

def true_divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input / other, broadcast."""

def trunc(input: Tensor, *, out: Any = ...) -> Tensor:
    """The integer part."""

def trunc_(input: Tensor) -> Tensor:
    """The integer part."""

def unbind(input: Tensor, dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """The slices along a dim, each without it."""

def unflatten(input: Tensor, dim: builtins.int, *sizes: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """Split one dim into several; one of their sizes may be -1."""

def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, out: Any = ...) -> Any:
    """The elements, or the slices along `dim`, each once and in order; NaN are all different."""

def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, out: Any = ...) -> Any:
    """As `unique`, without sorting: of equal neighbours one is left."""

def unravel_index(indices: Tensor, shape: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """The places along each dim of the elements at these places of the flattened tensor."""

def unsqueeze(input: Tensor, dim: builtins.int, *, out: Any = ...) -> Tensor:
    """Insert a dim of size 1 before position `dim`."""

def vander(x: Tensor, N: builtins.int | None = ..., increasing: builtins.bool = ...) -> Tensor:
    """Rows of powers of the elements of a vector, the highest first unless `increasing`."""

def var(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
    """Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased` is another word for correction=1, the default."""

def var_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """`var` and `mean`."""

def vdot(input: Tensor, tensor: Tensor, *, out: Any = ...) -> Tensor:
    """The inner product of two vectors."""

def vsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Cut along dim 0; into as many equal parts, or before the given places."""

def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One below the other: vectors as rows."""

def where(condition: Tensor, input: Any = ..., other: Any = ...) -> Any:
    """`input` where the condition holds, else `other`, broadcast; with the condition alone, where it holds."""

def xlogy(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input · ln(other), 0 where the input is 0 unless `other` is NaN."""

def xlogy_(input: Tensor | builtins.float, other: Tensor | builtins.float) -> Tensor:
    """input · ln(other), 0 where the input is 0 unless `other` is NaN."""

def zeros(*size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor: ...

def zeros_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: ...
