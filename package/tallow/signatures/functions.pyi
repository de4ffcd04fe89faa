"""Functions of the package. Written by scripts/build_stubs.py."""

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

def abs(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return |input|, which is real for complex numbers."""

def abs_(input: Tensor) -> Tensor:
    """Return |input|, which is real for complex numbers."""

def absolute(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return |input|, which is real for complex numbers."""

def absolute_(input: Tensor) -> Tensor:
    """Return |input|, which is real for complex numbers."""

def acos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse cosine, in [0, π]."""

def acos_(input: Tensor) -> Tensor:
    """Return the inverse cosine, in [0, π]."""

def acosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

def acosh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size."""

def add(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return input + alpha · other, broadcast."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return beta · input + alpha · Σ_b batch1_b @ batch2_b."""

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return input + value · tensor1 / tensor2, broadcast."""

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return input + value · tensor1 · tensor2, broadcast."""

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2)."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return beta · input + alpha · (mat @ vec)."""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return beta · input + alpha · (vec1 vec2ᵀ)."""

def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices: of real ones a view with the last two dims exchanged."""

def all(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return whether all elements over `dim` are nonzero."""

def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
    """Return whether |input - other| ≤ atol + rtol · |other| for every element."""

def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Set elements to SELU's lowest value, then scale and shift all to keep mean 0 and variance 1."""

def amax(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return the maximum over `dim`; elements equal to the maximum share its gradient."""

def amin(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return the minimum over `dim`; elements equal to the minimum share its gradient."""

def aminmax(input: Tensor, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., out: Any = ...) -> results.aminmax:
    """Return the minimum and the maximum over `dim`, or over all elements."""

def angle(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the angle of each number in radians: of real numbers 0, or π for negative ones."""

def any(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return whether any element over `dim` is nonzero."""

def arange(*bounds: builtins.float, start: builtins.float = ..., end: builtins.float = ..., step: builtins.float = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create start, start + step, ... below end: arange(end), arange(start, end), arange(start, end, step)."""

def arccos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse cosine, in [0, π]."""

def arccos_(input: Tensor) -> Tensor:
    """Return the inverse cosine, in [0, π]."""

def arccosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

def arccosh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

def arcsin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse sine, in [-π/2, π/2]."""

def arcsin_(input: Tensor) -> Tensor:
    """Return the inverse sine, in [-π/2, π/2]."""

def arcsinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic sine."""

def arcsinh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse tangent, in [-π/2, π/2]."""

def arctan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the angle in (-π, π] of the point with y = input and x = other."""

def arctan_(input: Tensor) -> Tensor:
    """Return the inverse tangent, in [-π/2, π/2]."""

def arctanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

def arctanh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

def argmax(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return the index of the first maximum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

def argmin(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return the index of the first minimum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

def argsort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return the indices that sort `input` along `dim`. Equal elements always keep their order."""

def argwhere(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the indices of all nonzero elements, one element per row, in row-major order."""

def as_strided(input: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """Return a view of the tensor's memory with explicit strides, in elements."""

def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """Return a copy of the input in which `src` replaces the elements of `as_strided(size, stride, storage_offset)`."""

def as_tensor(data: Any, dtype: Any = ..., device: Any = ...) -> Tensor:
    """Convert `data` to a tensor. A tensor or an array that has the dtype and device already is not copied."""

def asarray(obj: Any, *, dtype: Any = ..., device: Any = ..., copy: builtins.bool | None = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Convert `obj` to a tensor; see `as_tensor`."""

def asin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse sine, in [-π/2, π/2]."""

def asin_(input: Tensor) -> Tensor:
    """Return the inverse sine, in [-π/2, π/2]."""

def asinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic sine."""

def asinh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine."""

def atan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse tangent, in [-π/2, π/2]."""

def atan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the angle in (-π, π] of the point with y = input and x = other."""

def atan_(input: Tensor) -> Tensor:
    """Return the inverse tangent, in [-π/2, π/2]."""

def atanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

def atanh_(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

def atleast_1d(*tensors: Any) -> Any:
    """Return 0-d tensors as vectors of one element; others unchanged."""

def atleast_2d(*tensors: Any) -> Any:
    """Return vectors as one row; others unchanged."""

def atleast_3d(*tensors: Any) -> Any:
    """Return vectors as (1, N, 1), matrices as (N, M, 1); others unchanged."""

def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """Return the mean of each window; see `avg_pool2d`."""

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return beta · input + alpha · (batch1 @ batch2)."""

def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return the triangle 1 - |2t - 1|, t from 0 to 1."""

def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
    """Draw ones with the probabilities in the input, or all with probability `p`; zeros otherwise."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ..., *, out: Any = ...) -> Tensor:
    """Return y_o = Σ_ij input1_i weight_oij input2_j + bias_o."""

def bincount(input: Tensor, weights: Any = ..., minlength: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Count the occurrences of each number, or sum their weights."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = ...) -> Tensor:
    """Draw the number of successes in `count` trials with success probability `prob`, in the dtype of count."""

def bitwise_and(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return the bits that are set in both operands, broadcast; for booleans, logical and."""

def bitwise_left_shift(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · 2^other, broadcast; bits shifted out are lost."""

def bitwise_not(input: Tensor, *, out: Any = ...) -> Tensor:
    """Invert every bit; for booleans, logical not."""

def bitwise_or(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return the bits that are set in either operand, broadcast; for booleans, logical or."""

def bitwise_right_shift(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return floor(input / 2^other), broadcast: the sign bit is repeated."""

def bitwise_xor(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return the bits that differ, broadcast; for booleans, exclusive or."""

def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return 0.42 - 0.5 cos 2πt + 0.08 cos 4πt, t from 0 to 1."""

def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices along its diagonal, and zeros elsewhere."""

def bmm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """Return the products of two batches of matrices, without broadcasting."""

def broadcast_shapes(*shapes: builtins.int | Sequence[builtins.int]) -> Size:
    """Return the shape that tensors of these shapes broadcast to."""

def broadcast_tensors(*tensors: Any) -> builtins.tuple[Tensor, ...]:
    """Return views of the tensors, expanded to their common shape."""

def broadcast_to(input: Tensor, size: Sequence[builtins.int]) -> Tensor:
    """Return a view, expanded to a size; see `expand`."""

def bucketize(input: Tensor | builtins.float, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return the bucket index of each value v: i for boundaries[i-1] < v ≤ boundaries[i]."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element from each vector."""

def cat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Concatenate tensors along an existing dim. Empty one-dim tensors are skipped, whatever the shape of the others."""

def cdist(x1: Tensor, x2: Tensor, p: builtins.float = ..., compute_mode: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """Return y_ij = ‖x1_i - x2_j‖_p for each pair of vectors."""

def ceil(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the smallest integer not less than each element."""

def ceil_(input: Tensor) -> Tensor:
    """Return the smallest integer not less than each element."""

def celu(input: Tensor, alpha: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x / alpha) - 1) elsewhere."""

def celu_(input: Tensor, alpha: builtins.float = ...) -> Tensor:
    """Return x where it is positive and alpha · (exp(x / alpha) - 1) elsewhere."""

def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply matrices; see `linalg.multi_dot`. A single matrix is returned unchanged."""

def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def cholesky(input: Tensor, upper: builtins.bool = ...) -> Tensor:
    """Compute the Cholesky factor; see `linalg.cholesky`."""

def cholesky_inverse(L: Tensor, upper: builtins.bool = ...) -> Tensor:
    """Compute the inverse of A = L · Lᵀ, or Lᵀ · L if `upper`. The gradient is as that of `cholesky_solve`."""

def cholesky_solve(input: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return X in A X = input, where A = L Lᵀ, or Lᵀ L if `upper`. The other triangle of L is not read."""

def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Split into at most `chunks` views of equal size, the last perhaps smaller."""

def clamp(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

def clamp_(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
    """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

def clamp_max(input: Tensor, max: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return min(input, `max`), broadcast."""

def clamp_max_(input: Tensor, max: Tensor | builtins.float) -> Tensor:
    """Return min(input, `max`), broadcast."""

def clamp_min(input: Tensor, min: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return max(input, `min`), broadcast."""

def clamp_min_(input: Tensor, min: Tensor | builtins.float) -> Tensor:
    """Return max(input, `min`), broadcast."""

def clip(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

def clip_(input: Tensor, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
    """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

def clone(input: Tensor, *, memory_format: MemoryFormat | None = ..., out: Any = ...) -> Tensor:
    """Return a copy, in the memory order of the input unless `memory_format` names another."""

def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join horizontally; vectors become columns."""

def combinations(input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...) -> Tensor:
    """Return all combinations of `r` elements of a vector, in the order of `itertools.combinations`."""

def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex numbers real + i · imag."""

def concat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Concatenate tensors along an existing dim. Empty one-dim tensors are skipped, whatever the shape of the others."""

def concatenate(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Concatenate tensors along an existing dim. Empty one-dim tensors are skipped, whatever the shape of the others."""

def conj(input: Tensor) -> Tensor:
    """Return the complex conjugates; real numbers themselves."""

def conj_physical(input: Tensor) -> Tensor:
    """Return the complex conjugates; real numbers themselves."""

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

def copysign(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return the magnitude of `input` with the sign of `other`, broadcast."""

def corrcoef(input: Tensor) -> Tensor:
    """Compute the correlations of variables, one per row: covariance over the product of standard deviations."""

def cos(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the cosine of angles in radians."""

def cos_(input: Tensor) -> Tensor:
    """Return the cosine of angles in radians."""

def cosh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the hyperbolic cosine."""

def cosh_(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """Compute x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`. The bound does not affect the gradient."""

def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """Return the number of nonzero elements over `dim`."""

def cov(input: Tensor, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
    """Compute the covariances of variables, one per row, with an observation in each column."""

def cross(input: Tensor, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """Compute the cross product along `dim`, or along the first dim of length 3."""

def cummax(input: Tensor, dim: builtins.int, *, out: Any = ...) -> results.cummax:
    """Return the cumulative maximum along `dim`, and its last index."""

def cummin(input: Tensor, dim: builtins.int, *, out: Any = ...) -> results.cummin:
    """Return the cumulative minimum along `dim`, and its last index."""

def cumprod(input: Tensor, dim: builtins.int, *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the cumulative product y_i = Π_{j ≤ i} x_j along `dim`."""

def cumsum(input: Tensor, dim: builtins.int, *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the cumulative sum y_i = Σ_{j ≤ i} x_j along `dim`."""

def cumulative_trapezoid(y: Tensor, x: Tensor = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """Integrate up to each sample but the first, by the trapezoidal rule."""

def deg2rad(input: Tensor, *, out: Any = ...) -> Tensor:
    """Convert degrees to radians: input · π / 180."""

def deg2rad_(input: Tensor) -> Tensor:
    """Convert degrees to radians: input · π / 180."""

def dequantize(input: Tensor) -> Tensor:
    """Return the numbers in float32."""

def det(input: Tensor) -> Tensor:
    """Compute the determinant; see `linalg.det`."""

def detach(input: Tensor) -> Tensor:
    """Return a tensor on the same memory without the history."""

def diag(input: Tensor, diagonal: builtins.int = ...) -> Tensor:
    """Return a matrix with a vector as its diagonal, or a copy of the diagonal of a matrix."""

def diag_embed(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Return zeros with the last dim of the input on a diagonal of the new dims `dim1` and `dim2`."""

def diagflat(input: Tensor, offset: builtins.int = ...) -> Tensor:
    """Return a matrix with the flattened elements as its diagonal."""

def diagonal(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Return a view of the elements whose indices along `dim2` and `dim1` differ by `offset`; it becomes the last dim."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Return a copy with `src` on a diagonal."""

def diff(input: Tensor, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
    """Compute the differences of neighbours along `dim`, `n` times; for booleans, whether neighbours differ."""

def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the derivative of lgamma."""

def dist(input: Tensor, other: Tensor, p: builtins.float = ...) -> Tensor:
    """Compute the p-norm of the difference over all elements."""

def div(input: Tensor | builtins.float, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """Return input / other, broadcast."""

def divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """Return input / other, broadcast."""

def dot(input: Tensor, tensor: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inner product of two vectors."""

def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p. Return the input if not `training`."""

def dsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Split along dim 2; into this many equal parts, or before these indices."""

def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join in depth, along dim 2."""

def eig(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eig`."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of the operands' elements over dimensions named by letters."""

def empty(*sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: MemoryFormat = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor with uninitialised memory."""

def empty_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor with uninitialised memory, and the size, dtype and device of the input."""

def empty_strided(size: Sequence[builtins.int], stride: Sequence[builtins.int], *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor with these strides (in elements) and uninitialised memory, just large enough for them."""

def eq(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input = other, elementwise."""

def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether both have the same shape and elements."""

def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erf_(input: Tensor) -> Tensor:
    """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 1 - erf(input), without cancellation."""

def erfc_(input: Tensor) -> Tensor:
    """Return 1 - erf(input), without cancellation."""

def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse of erf on [-1, 1]; NaN elsewhere."""

def exp(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return e to the power of each element."""

def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 2 to the power of each element."""

def exp2_(input: Tensor) -> Tensor:
    """Return 2 to the power of each element."""

def exp_(input: Tensor) -> Tensor:
    """Return e to the power of each element."""

def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(input) - 1, accurate near 0."""

def expm1_(input: Tensor) -> Tensor:
    """Return exp(input) - 1, accurate near 0."""

def eye(n: builtins.int, m: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create an (n, m) matrix with ones on the diagonal and zeros elsewhere; m is n by default."""

def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Apply `alpha_dropout` to whole channels.  Shapes: input (N, C, ...) -> the same"""

def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor of the input's shape and dtype that holds one value; see `fill_`."""

def fix(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the integer part of each element."""

def fix_(input: Tensor) -> Tensor:
    """Return the integer part of each element."""

def flatten(input: Tensor, start_dim: builtins.int = ..., end_dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Merge the dims from `start_dim` to `end_dim` into one."""

def flip(input: Tensor, *dims: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """Return a copy with the order along `dims` reversed."""

def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns."""

def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows."""

def float_power(input: Tensor | builtins.float, exponent: Tensor | builtins.float) -> Tensor:
    """Compute `input` to the power of `exponent` in float64, or complex128, whatever the dtypes of the operands."""

def floor(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the largest integer not greater than each element."""

def floor_(input: Tensor) -> Tensor:
    """Return the largest integer not greater than each element."""

def floor_divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return floor(input / other), broadcast."""

def fmax(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the larger of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""

def fmin(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the smaller of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""

def fmod(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input - other · trunc(input / other), broadcast: C's `fmod`, with the sign of `input`."""

def frac(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return input - trunc(input)."""

def frac_(input: Tensor) -> Tensor:
    """Return input - trunc(input)."""

def frexp(input: Tensor, *, out: Any = ...) -> results.frexp:
    """Split input into mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""

def from_dlpack(ext_tensor: Any, *, device: Any = ..., copy: builtins.bool | None = ...) -> Tensor:
    """Create a tensor that shares memory with an object that has `__dlpack__`, such as a tensor of another library."""

def from_file(filename: Any, shared: builtins.bool | None = ..., size: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return a tensor of one dim over the memory of a file, as `UntypedStorage.from_file`."""

def from_numpy(array: Any) -> Tensor:
    """Create a tensor that shares memory with a NumPy array: writes to one are visible in the other."""

def frombuffer(buffer: Any, *, dtype: Any, count: builtins.int = ..., offset: builtins.int = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Create a 1-d tensor that shares memory with bytes, a bytearray or any other buffer; `offset` is in bytes."""

def full(size: Sequence[builtins.int], fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor filled with one value."""

def full_like(input: Tensor, fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor filled with one value, with the size, dtype and device of the input."""

def gather(input: Tensor, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return y[i, j, k] = input[index[i, j, k], j, k] for dim = 0, and so on for the other dims."""

def gcd(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the greatest common divisor, broadcast; that of 0 and n is |n|."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor, broadcast; that of 0 and n is |n|."""

def ge(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≥ other, elementwise."""

def geqrf(input: Tensor, *, out: Any = ...) -> results.geqrf:
    """Return the QR decomposition as LAPACK stores it: R and the vectors of the reflections in one matrix, and factors."""

def ger(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """Return y_ij = input_i · vec2_j."""

def get_default_device() -> Device:
    """Return the device of new tensors that are created without one."""

def get_device(input: Tensor) -> builtins.int:
    """Return the index of the CUDA device; -1 on the CPU."""

def get_rng_state() -> Tensor:
    """Return the state of the default generator."""

def gradient(input: Tensor, *, spacing: Any = ..., dim: Any = ..., edge_order: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Estimate the derivatives of samples along each of `dim`, or along all dims, by second-order differences."""

def greater(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input > other, elementwise."""

def greater_equal(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≥ other, elementwise."""

def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Normalize each group of channels of one sample over its positions, then scale and shift each channel."""

def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """Return the hidden state after one step."""

def gt(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input > other, elementwise."""

def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., alpha: builtins.float = ..., beta: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return α - β cos 2πt, t from 0 to 1."""

def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return (1 - cos 2πt) / 2, t from 0 to 1."""

def hardshrink(input: Tensor, lambd: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Set elements with |x| ≤ lambd to 0."""

def hash_tensor(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., *, keepdim: builtins.bool = ..., mode: builtins.int = ..., out: Any = ...) -> Tensor:
    """Return the exclusive or of the bits of all elements over `dim`, each as a number of 64 bits."""

def heaviside(input: Tensor, values: Tensor, *, out: Any = ...) -> Tensor:
    """Return 0 below zero, 1 above, and `values` at zero, broadcast."""

def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Count the elements in each of `bins` equal parts of [min, max]; of the elements' own range if both are 0."""

def histogram(input: Tensor, bins: builtins.int | Tensor, *, range: Sequence[builtins.float] | None = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """Count the elements in each bin, which holds its left edge; the last bin holds its right edge too."""

def hsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Split along dim 1, vectors along dim 0; into this many equal parts, or before these indices."""

def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join horizontally: vectors along their only dim, others along dim 1."""

def hypot(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return sqrt(input² + other²), without intermediate overflow."""

def i0(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""

def i0_(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""

def igamma(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return P(a, x) = 1/Γ(a) · ∫ t^(a-1) exp(-t) dt from 0 to x, where a is `input` and x is `other`."""

def igammac(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return Q(a, x) = 1 - P(a, x), without cancellation; see `igamma`."""

def imag(input: Tensor) -> Tensor:
    """Return the imaginary parts, as a view. Raises: UnsupportedError for a dtype that is not complex."""

def index_add(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return a copy with alpha · source[i] added to slice index[i] along `dim`; repeated slices accumulate."""

def index_copy(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, out: Any = ...) -> Tensor:
    """Return a copy in which slice index[i] along `dim` is source[i]."""

def index_fill(input: Tensor, dim: builtins.int, index: Any, value: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return a copy in which the slices `index` along `dim` have one value; negative indices count from the end."""

def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return a copy of `input` with `values`, broadcast, written to input[indices], or added to it if `accumulate`."""

def index_reduce(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
    """Return a copy where slices of `source` with the same index along `dim` are reduced into the slice there."""

def index_select(input: Tensor, dim: builtins.int, index: Any, *, out: Any = ...) -> Tensor:
    """Return the slices of `input` along `dim` at the positions in `index`, in that order."""

def initial_seed() -> builtins.int:
    """Return the seed that the default generator started from."""

def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum products over the last dim of both; the plain product if one of them is 0-d."""

def inverse(input: Tensor) -> Tensor:
    """Invert square matrices; see `linalg.inv`."""

def is_complex(input: Tensor) -> builtins.bool:
    """Return whether the dtype is a complex dtype."""

def is_conj(input: Tensor) -> builtins.bool:
    """Return False: conjugates are computed at once."""

def is_floating_point(input: Tensor) -> builtins.bool:
    """Return whether the dtype is a floating-point dtype."""

def is_inference(input: Tensor) -> builtins.bool:
    """Return whether the tensor was made in inference_mode."""

def is_neg(input: Tensor) -> builtins.bool:
    """Return False: conjugates are computed at once."""

def is_nonzero(input: Tensor) -> builtins.bool:
    """Return whether the only element is nonzero."""

def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether both tensors have the same shape."""

def is_signed(input: Tensor) -> builtins.bool:
    """Return whether the dtype has negative numbers."""

def is_tensor(obj: Any) -> builtins.bool:
    """Return whether the object is a Tensor."""

def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return |input - other| ≤ atol + rtol · |other|, elementwise; equal infinities are close."""

def isfinite(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is neither infinite nor NaN."""

def isin(elements: Tensor | builtins.float, test_elements: Tensor | builtins.float, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return whether each element is one of the test elements, or with `invert` is not."""

def isinf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is infinite, of either sign."""

def isnan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is NaN."""

def isneginf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is -∞."""

def isposinf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is +∞."""

def isreal(input: Tensor) -> Tensor:
    """Return whether each element has no imaginary part."""

def istft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
    """Compute the signal of which `stft` returns these spectra, or the nearest one by least squares."""

def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., beta: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return I0(β √(1 - (2t - 1)²)) / I0(β), t from 0 to 1; I0 is the modified Bessel function."""

def kron(input: Tensor, other: Tensor) -> Tensor:
    """Compute the Kronecker product: each element of `input` times all of `other`."""

def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> results.kthvalue:
    """Return the k-th smallest element along `dim`, counted from one, and its index."""

def layer_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ..., *, out: Any = ...) -> Tensor:
    """Return y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes."""

def lcm(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the least common multiple, broadcast; that of 0 and n is 0."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple, broadcast; that of 0 and n is 0."""

def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Compute input · 2^other."""

def le(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≤ other, elementwise."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input + weight · (end - input), broadcast."""

def less(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input < other, elementwise."""

def less_equal(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≤ other, elementwise."""

def lgamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return ln |Γ(input)|."""

def linspace(start: builtins.float, end: builtins.float, steps: builtins.int, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create `steps` evenly spaced numbers from start to end, both included."""

def log(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the natural logarithm of each element."""

def log10(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the base-10 logarithm of each element."""

def log10_(input: Tensor) -> Tensor:
    """Return the base-10 logarithm of each element."""

def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return log(1 + input), accurate near 0."""

def log1p_(input: Tensor) -> Tensor:
    """Return log(1 + input), accurate near 0."""

def log2(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the base-2 logarithm of each element."""

def log2_(input: Tensor) -> Tensor:
    """Return the base-2 logarithm of each element."""

def log_(input: Tensor) -> Tensor:
    """Return the natural logarithm of each element."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return ln softmax(input) along `dim`, without taking the logarithm of small numbers."""

def logaddexp(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return ln(exp(input) + exp(other)), without intermediate overflow."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return log2(2^input + 2^other), without intermediate overflow."""

def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Any = ...) -> Tensor:
    """Return y_i = log Σ_{j ≤ i} exp x_j along `dim`."""

def logdet(input: Tensor) -> Tensor:
    """Compute the logarithm of the determinant; NaN where it is negative, complex for complex matrices."""

def logical_and(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether both are nonzero, elementwise."""

def logical_not(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether each element is zero."""

def logical_or(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether at least one is nonzero, elementwise."""

def logical_xor(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether exactly one is nonzero, elementwise."""

def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

def logit_(input: Tensor, eps: builtins.float | None = ...) -> Tensor:
    """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, base: builtins.float = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create `steps` numbers from base^start to base^end, evenly spaced on a logarithmic scale."""

def logsumexp(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return log Σ exp(input) over `dim`."""

def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return the hidden state and the cell state after one step."""

def lstsq(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.lstsq`."""

def lt(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input < other, elementwise."""

def lu(input: Tensor, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
    """Return what `linalg.lu_factor` does, and with `get_infos` a third tensor, as `linalg.lu_factor_ex`."""

def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return the X of A X = input, given the results of `linalg.lu_factor(A)`; see `linalg.lu_solve`."""

def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ...) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """Return P, L and U of A = P L U, given the results of `linalg.lu_factor(A)`. What is not asked for is empty."""

def manual_seed(seed: builtins.int) -> Generator:
    """Seed the default generator."""

def masked_fill(input: Tensor, mask: Any, value: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return `value` where the mask is true and `input` elsewhere; the value is a number or a zero-dim tensor."""

def masked_scatter(input: Tensor, mask: Any, source: Tensor, *, out: Any = ...) -> Tensor:
    """Return the input with the elements of `source`, in order, at the positions where the mask is true."""

def masked_select(input: Tensor, mask: Any, *, out: Any = ...) -> Tensor:
    """Return the elements where the mask is true, in row-major order, both broadcast."""

def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the matrix product over the last two dims; a vector is a row on the left, a column on the right."""

def matrix_exp(input: Tensor) -> Tensor:
    """Compute the matrix exponential Σ Aᵏ / k! of square matrices."""

def matrix_power(input: Tensor, n: builtins.int) -> Tensor:
    """Compute the n-th power of square matrices by repeated squaring; of their inverses for a negative n."""

def matrix_rank(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.matrix_rank`."""

@overload
def max(input: Tensor) -> Tensor:
    """Return the greatest element, in one of three ways."""

@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ...) -> results.max:
    """Return the greatest element, in one of three ways."""

@overload
def max(input: Tensor, dim: Tensor) -> Tensor:
    """Return the greatest element, in one of three ways."""

@overload
def max(input: Tensor, *, other: Tensor) -> Tensor:
    """Return the greatest element, in one of three ways."""

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

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> builtins.tuple[Tensor, Tensor]:
    """Return the maximum of each window. Padding counts as -∞."""

@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None = ..., padding: builtins.int | Sequence[builtins.int] = ..., dilation: builtins.int | Sequence[builtins.int] = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """Return the maximum of each window. Padding counts as -∞."""

def maximum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the larger of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

def mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the mean over `dim`."""

@overload
def median(input: Tensor) -> Tensor:
    """Return the median of all elements, or along `dim` with its index. NaN if any element is NaN."""

@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ...) -> results.median:
    """Return the median of all elements, or along `dim` with its index. NaN if any element is NaN."""

def meshgrid(*tensors: Any, indexing: builtins.str | None = ...) -> builtins.tuple[Tensor, ...]:
    """Return the coordinates of a grid, as views expanded to the sizes of all vectors."""

@overload
def min(input: Tensor) -> Tensor:
    """Return the least element, in one of three ways; see `max`."""

@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ...) -> results.min:
    """Return the least element, in one of three ways; see `max`."""

@overload
def min(input: Tensor, dim: Tensor) -> Tensor:
    """Return the least element, in one of three ways; see `max`."""

@overload
def min(input: Tensor, *, other: Tensor) -> Tensor:
    """Return the least element, in one of three ways; see `max`."""

def minimum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the smaller of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

def mm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor:
    """Return the product of two matrices."""

def mode(input: Tensor, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Any = ...) -> results.mode:
    """Return the most frequent element along `dim`, the smallest of equally frequent ones, and its last index."""

def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dims to new positions; the others keep their order."""

def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dims to new positions; the others keep their order."""

def msort(input: Tensor) -> Tensor:
    """Sort the elements along the first dimension, in ascending order."""

def mul(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · other, broadcast."""

def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
    """Draw indices with the weights in each row of the input, which need not sum to one."""

def multiply(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · other, broadcast."""

def mv(input: Tensor, vec: Tensor, *, out: Any = ...) -> Tensor:
    """Return the product of a matrix and a vector."""

def mvlgamma(input: Tensor, p: builtins.int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)."""

def nan_to_num(input: Tensor, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
    """Replace NaN, +∞ and -∞; the latter by the largest and lowest number of the dtype unless given."""

def nan_to_num_(input: Tensor, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
    """Compute `nan_to_num` in place."""

def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the mean over `dim`, ignoring NaN."""

@overload
def nanmedian(input: Tensor) -> Tensor:
    """Return the median of the elements that are not NaN; see `median`."""

@overload
def nanmedian(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ...) -> results.nanmedian:
    """Return the median of the elements that are not NaN; see `median`."""

def nanquantile(input: Tensor, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """Return the quantiles as `quantile` does, ignoring NaN."""

def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the sum over `dim`, with NaN as zero."""

def narrow(input: Tensor, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
    """Return a view of `length` elements along `dim` from `start` on."""

def narrow_copy(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """Return a copy of `length` elements along `dim` from `start` on; see `narrow`."""

def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Interleave groups of channels."""

def ne(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≠ other, elementwise."""

def neg(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return -input."""

def neg_(input: Tensor) -> Tensor:
    """Return -input."""

def negative(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return -input."""

def negative_(input: Tensor) -> Tensor:
    """Return -input."""

def nextafter(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the next number after `input` towards `other`."""

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ...) -> Tensor:
    """Return the indices of all nonzero elements: one in each row, or as a tuple of vectors to index with."""

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]:
    """Return the indices of all nonzero elements: one in each row, or as a tuple of vectors to index with."""

def nonzero_static(input: Tensor, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
    """Return `size` rows: the indices of the first nonzero elements, and rows of `fill_value` if there are fewer."""

def norm(input: Tensor, p: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """Compute (Σ |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the nuclear norm of matrices."""

def normal(mean: Tensor | builtins.float, std: Tensor | builtins.float = ..., size: Sequence[builtins.int] | None = ..., *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw from normal distributions, each element with its own mean and standard deviation; or all from one."""

def not_equal(input: Tensor, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input ≠ other, elementwise."""

def numel(input: Tensor) -> builtins.int:
    """Return the number of elements."""

def ones(*sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor of ones."""

def ones_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create ones with the size, dtype and device of the input."""

def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Return the first columns of Q; see `linalg.householder_product`."""

def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ...) -> Tensor:
    """Multiply `input3` by the square Q, or its conjugate transpose, of which `geqrf` has returned the reflections."""

def outer(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor:
    """Return y_ij = input_i · vec2_j."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Compute ‖x1 - x2 + eps‖_p along the last dim."""

def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """Compute the p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ..."""

def permute(input: Tensor, *dims: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """Reorder the dims: dim i of the result is dim dims[i] of the input."""

def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor:
    """Compute the pseudoinverse; see `linalg.pinv`. The default of `rcond` is smaller than there, as in PyTorch."""

def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Rearrange channels into blocks of r × r pixels."""

def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """Invert pixel_shuffle.  Shapes: input (..., C, H · r, W · r) -> (..., C · r², H, W)"""

def poisson(input: Tensor, generator: Generator | None = ...) -> Tensor:
    """Draw from Poisson distributions with the rates in the input, in its dtype."""

def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex numbers abs · (cos(angle) + i · sin(angle))."""

def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma."""

def positive(input: Tensor) -> Tensor:
    """Return the input itself."""

def pow(input: Tensor | builtins.float, exponent: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return `input` raised to the power of `exponent`, broadcast."""

def prelu(input: Tensor, weight: Tensor, *, out: Any = ...) -> Tensor:
    """Return x where it is positive and weight · x elsewhere, with one weight for all channels or one per channel."""

def prod(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the product over `dim`, or over all elements."""

def put(input: Tensor, index: Any, source: Tensor, accumulate: builtins.bool = ..., *, out: Any = ...) -> Tensor:
    """Return a copy in which element index[i] of the flattened input is replaced by source[i], or has it added."""

def qr(input: Tensor, some: builtins.bool = ...) -> Any:
    """Compute the QR decomposition, reduced if `some`, else complete; see `linalg.qr`."""

def quantile(input: Tensor, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ..., out: Any = ...) -> Tensor:
    """Return the quantiles `q` of `input` along `dim` (or of all elements), interpolated; NaN if there is any."""

def rad2deg(input: Tensor, *, out: Any = ...) -> Tensor:
    """Convert radians to degrees: input · 180 / π."""

def rad2deg_(input: Tensor) -> Tensor:
    """Convert radians to degrees: input · 180 / π."""

def rand(*sizes: Any, size: Any = ..., generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw from the uniform distribution on [0, 1)."""

def rand_like(input: Tensor, *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw from the uniform distribution on [0, 1), with the input's size, dtype and device."""

def randint(*bounds: Any, low: builtins.int = ..., high: builtins.int | None = ..., size: Sequence[builtins.int] | None = ..., generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw integers in [low, high): randint(high, size), randint(low, high, size)."""

def randint_like(input: Tensor, *bounds: builtins.int, low: builtins.int = ..., high: builtins.int | None = ..., generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw integers in [low, high), with the input's size, dtype and device; see `randint`."""

def randn(*sizes: Any, size: Any = ..., generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw from the standard normal distribution."""

def randn_like(input: Tensor, *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Draw from the standard normal distribution, with the input's size, dtype and device."""

def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""

def ravel(input: Tensor, *, out: Any = ...) -> Tensor:
    """Flatten to one dim."""

def real(input: Tensor) -> Tensor:
    """Return the real parts, as a view; the input itself if it is not complex."""

def reciprocal(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 1 / input."""

def reciprocal_(input: Tensor) -> Tensor:
    """Return 1 / input."""

def relu(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return max(x, 0) of each element."""

def relu_(input: Tensor) -> Tensor:
    """Return max(x, 0) of each element."""

def remainder(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input - other · floor(input / other), broadcast: Python's `%`, with the sign of `other`."""

def renorm(input: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
    """Scale the slices along `dim` whose p-norm exceeds `maxnorm` down to it."""

def repeat_interleave(input: Tensor | None = ..., repeats: Tensor | builtins.int | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
    """Repeat each slice along `dim` several times in a row; without `dim`, each element of the flattened tensor."""

def reshape(input: Tensor, *shape: builtins.int | Sequence[builtins.int], out: Any = ...) -> Tensor:
    """Return the same elements in the same order, as a view if the strides allow it. One -1 is inferred."""

def resolve_conj(input: Tensor) -> Tensor:
    """Return the input itself: conjugates are computed at once."""

def resolve_neg(input: Tensor) -> Tensor:
    """Return the input itself: conjugates are computed at once."""

def result_type(tensor: Tensor | builtins.float, other: Tensor | builtins.float) -> Dtype:
    """Return the result dtype of an op on both."""

def rms_norm(input: Tensor, normalized_shape: Sequence[builtins.int], weight: Tensor | None = ..., eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return y = x / sqrt(mean(x²) + eps) ⊙ weight over the last axes; eps None means the machine epsilon of x."""

def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """Compute relu(w_ih · input + b_ih + w_hh · hx + b_hh)."""

def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = ..., b_hh: Tensor | None = ...) -> Tensor:
    """Compute tanh(w_ih · input + b_ih + w_hh · hx + b_hh)."""

def roll(input: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """Return a copy moved by `shifts` positions along `dims`; elements that leave at one end enter at the other."""

def rot90(input: Tensor, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
    """Return a copy rotated by `k` times 90°, from the first of `dims` towards the second."""

def round(input: Tensor, *, decimals: builtins.int = ..., out: Any = ...) -> Tensor:
    """Round to the given number of decimals; ties go to the even digit."""

def round_(input: Tensor, *, decimals: builtins.int = ...) -> Tensor:
    """Round to the given number of decimals; ties go to the even digit."""

def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join vertically, along dim 0; vectors become rows."""

def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Return x where it is positive, elsewhere a · x."""

def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ...) -> Tensor:
    """Compute `rrelu` in place."""

def rsqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 1 / sqrt(input)."""

def rsqrt_(input: Tensor) -> Tensor:
    """Return 1 / sqrt(input)."""

def rsub(input: Tensor, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return other - alpha · input, broadcast."""

def scalar_tensor(s: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a 0-d tensor of the default dtype."""

def scatter(input: Tensor, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """Return a copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

def scatter_add(input: Tensor, dim: builtins.int, index: Any, src: Tensor, *, out: Any = ...) -> Tensor:
    """Return a copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0; repeated positions accumulate."""

def scatter_reduce(input: Tensor, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return a copy in which the elements of `src` with the same position, and the input's element, are reduced to one."""

def searchsorted(sorted_sequence: Tensor, input: Tensor | builtins.float, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: builtins.str | None = ..., sorter: Any = ..., out: Any = ...) -> Tensor:
    """Return the insertion index of each value along the last dim: before equal elements, or after them with `right`."""

def seed() -> builtins.int:
    """Seed the default generator from the operating system, and return the seed."""

def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """Return a view of the slice at one index along `dim`, without that dim."""

def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """Return a copy with `src` at one index along `dim`."""

def selu(input: Tensor, *, out: Any = ...) -> Tensor:
    """Apply `elu` with the scales that keep mean 0 and variance 1 from layer to layer."""

def selu_(input: Tensor) -> Tensor:
    """Apply `elu` with the scales that keep mean 0 and variance 1 from layer to layer."""

def set_default_device(device: Any) -> None:
    """Set the device of new tensors that are created without one, in this thread. None is the CPU."""

def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""

def sgn(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the sign of each element: -1, 0 or 1; of a complex number the number of the same angle on the unit circle."""

def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""

def sigmoid_(input: Tensor) -> Tensor:
    """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""

def sign(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the sign of each element: -1, 0 or 1."""

def signbit(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return whether the sign bit is set: for negative numbers and -0.0."""

def sin(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the sine of angles in radians."""

def sin_(input: Tensor) -> Tensor:
    """Return the sine of angles in radians."""

def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return sin(πx) / πx, and 1 at 0."""

def sinc_(input: Tensor) -> Tensor:
    """Return sin(πx) / πx, and 1 at 0."""

def sinh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the hyperbolic sine."""

def sinh_(input: Tensor) -> Tensor:
    """Return the hyperbolic sine."""

def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
    """Return a copy with `src` at the indices start, start + step, ... below `end` along `dim`."""

def slogdet(input: Tensor) -> Any:
    """Compute the sign and the logarithm of the determinant; see `linalg.slogdet`."""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return exponential weights along `dim` that sum to one; `dtype` converts the input first."""

def solve(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.solve`."""

def sort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ..., *, out: Any = ...) -> results.sort:
    """Sort the elements along `dim`, and return their indices. Equal elements always keep their order."""

def split(tensor: Tensor, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Split into views of `split_size_or_sections` slices each, the last perhaps smaller; or of the given sizes."""

def split_with_sizes(tensor: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Split into views of the given sizes along a dim."""

def sqrt(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the square root of each element."""

def sqrt_(input: Tensor) -> Tensor:
    """Return the square root of each element."""

def square(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the square of each element; booleans become integers."""

def square_(input: Tensor) -> Tensor:
    """Return the square of each element; booleans become integers."""

def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., *, out: Any = ...) -> Tensor:
    """Remove the dims of size 1: all of them, or those in `dim`."""

def stack(tensors: Sequence[Tensor], dim: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Join tensors along a new dim."""

def std(input: Tensor, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
    """Compute the square root of `var`."""

def std_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return `std` and `mean`."""

def stft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
    """Compute the spectra of the frames of a signal, each multiplied by the window."""

def sub(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return input - alpha · other, broadcast."""

def subtract(input: Tensor | builtins.float, other: Tensor | builtins.float, *, alpha: builtins.float = ..., out: Any = ...) -> Tensor:
    """Return input - alpha · other, broadcast."""

def sum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the sum over `dim`."""

def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
    """Compute U, S and V (not Vᵀ) of the singular value decomposition; with square U and V unless `some`."""

def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Swap two dims."""

def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Swap two dims."""

def symeig(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eigh`."""

def t(input: Tensor) -> Tensor:
    """Transpose a matrix; return vectors and 0-d tensors unchanged."""

def take(input: Tensor, index: Any, *, out: Any = ...) -> Tensor:
    """Return the elements of the flattened input at these positions; negative positions count from the end."""

def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
    """Gather elements along `dim`, with the other dims broadcast; without `dim`, from the flattened input."""

def tan(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the tangent of angles in radians."""

def tan_(input: Tensor) -> Tensor:
    """Return the tangent of angles in radians."""

def tanh(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the hyperbolic tangent."""

def tanh_(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""

def tensor(data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor with a copy of `data`: a number, a nested sequence of numbers, or an array."""

def tensor_split(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Split into views of nearly equal sizes, larger ones first; or before the given indices, as Python slices."""

def tensordot(a: Tensor, b: Tensor, dims: builtins.int | Sequence[Sequence[builtins.int]] = ...) -> Tensor:
    """Sum products over `dims`: the last n of `a` and the first n of `b`, or dims[0] of `a` and dims[1] of `b`."""

def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, *, out: Any = ...) -> Tensor:
    """Return x where it is greater than `threshold` and `value` elsewhere."""

def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """Return x where it is greater than `threshold` and `value` elsewhere."""

def tile(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """Repeat as `repeat` does; with fewer repeats than dims, the first dims are not repeated."""

def topk(input: Tensor, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Any = ...) -> results.topk:
    """Return the k largest (or smallest) elements along `dim`, always sorted, and their indices."""

def trace(input: Tensor) -> Tensor:
    """Sum the diagonal of a matrix."""

def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Any = ...) -> Tensor:
    """Swap two dims."""

def trapezoid(y: Tensor, x: Tensor = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """Integrate samples by the trapezoidal rule, at positions `x` or at distance `dx`."""

def trapz(y: Tensor, x: Tensor = ..., *, dx: builtins.float = ..., dim: builtins.int = ...) -> Tensor:
    """Integrate samples by the trapezoidal rule, at positions `x` or at distance `dx`."""

def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ...) -> Any:
    """Return the X of A X = b for a triangular A, or of Aᵀ X = b, and a copy of A; see `linalg.solve_triangular`."""

def tril(input: Tensor, diagonal: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Return the elements on and below a diagonal of each matrix in the last two dims; zero elsewhere."""

def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return row and column indices (2, N) of the elements on and below diagonal `offset` of a (row, col) matrix."""

def triu(input: Tensor, diagonal: builtins.int = ..., *, out: Any = ...) -> Tensor:
    """Return the elements on and above a diagonal of each matrix in the last two dims; zero elsewhere."""

def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Return row and column indices (2, N) of the elements on and above diagonal `offset` of a (row, col) matrix."""

def true_divide(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input / other, broadcast."""

def trunc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the integer part of each element."""

def trunc_(input: Tensor) -> Tensor:
    """Return the integer part of each element."""

def unbind(input: Tensor, dim: builtins.int = ..., *, out: Any = ...) -> builtins.tuple[Tensor, ...]:
    """Return the slices along a dim, each without that dim."""

def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int], *, out: Any = ...) -> Tensor:
    """Split one dim into several; one of their sizes may be -1."""

def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, out: Any = ...) -> Any:
    """Return the unique elements, or slices along `dim`, sorted; NaN are all different."""

def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ..., *, out: Any = ...) -> Any:
    """Remove repeated neighbors; otherwise as `unique`, without sorting."""

def unravel_index(indices: Tensor, shape: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Convert indices into a flattened tensor of `shape` to an index along each dim."""

def unsafe_chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Return what `chunk` does."""

def unsafe_split(tensor: Tensor, split_size: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Return what `split` does."""

def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
    """Return what `split_with_sizes` does."""

def unsqueeze(input: Tensor, dim: builtins.int, *, out: Any = ...) -> Tensor:
    """Insert a dim of size 1 before position `dim`."""

def vander(x: Tensor, N: builtins.int | None = ..., increasing: builtins.bool = ...) -> Tensor:
    """Return a row of powers for each element of a vector, the highest first unless `increasing`."""

def var(input: Tensor, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
    """Compute Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased=True` is correction=1, the default."""

def var_mean(input: Tensor, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> builtins.tuple[Tensor, Tensor]:
    """Return `var` and `mean`."""

def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Compute the inner product Σ conj(input) · other of two vectors."""

def view_as_complex(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return a view of complex numbers whose parts are in the last dim of the input, of size 2."""

def view_as_real(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return a view of real numbers with one more dim, of size 2: the real and the imaginary part."""

def vsplit(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
    """Split along dim 0; into this many equal parts, or before these indices."""

def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join vertically, along dim 0; vectors become rows."""

@overload
def where(condition: Tensor) -> builtins.tuple[Tensor, ...]:
    """Select `input` where the condition holds, else `other`, broadcast. With the condition alone, return its indices."""

@overload
def where(condition: Tensor, input: Any, other: Any) -> Tensor:
    """Select `input` where the condition holds, else `other`, broadcast. With the condition alone, return its indices."""

def xlogy(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""

def xlogy_(input: Tensor | builtins.float, other: Tensor | builtins.float) -> Tensor:
    """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""

def zeros(*sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create a tensor of zeros."""

def zeros_like(input: Tensor, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
    """Create zeros with the size, dtype and device of the input."""
