"""The ops that are methods. Written by scripts/build_stubs.py."""

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

class Methods:
    def __getitem__(self, index: Any) -> Tensor:
        """Return x[index]: a view for integers, slices, None and ...; a copy for tensors, lists and masks."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write x[index] = value: `copy_` to the view for basic indices, `index_put_` for the others."""

    def _typed_storage(self) -> Any:
        """Return the memory that the tensor is a view of, as elements of its dtype."""

    def abs(self) -> Tensor:
        """Return |input|, which is real for complex numbers."""

    def abs_(self) -> Tensor:
        """Return |input|, which is real for complex numbers."""

    def absolute(self) -> Tensor:
        """Return |input|, which is real for complex numbers."""

    def absolute_(self) -> Tensor:
        """Return |input|, which is real for complex numbers."""

    def acos(self) -> Tensor:
        """Return the inverse cosine, in [0, π]."""

    def acos_(self) -> Tensor:
        """Return the inverse cosine, in [0, π]."""

    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

    def acosh_(self) -> Tensor:
        """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

    def add(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input + alpha · other, broadcast."""

    def add_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input + alpha · other, broadcast."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · Σ_b batch1_b @ batch2_b."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · Σ_b batch1_b @ batch2_b."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """Return input + value · tensor1 / tensor2, broadcast."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """Return input + value · tensor1 / tensor2, broadcast."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """Return input + value · tensor1 · tensor2, broadcast."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """Return input + value · tensor1 · tensor2, broadcast."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (mat1 @ mat2)."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (mat1 @ mat2)."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (mat @ vec)."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (mat @ vec)."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (vec1 vec2ᵀ)."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (vec1 vec2ᵀ)."""

    def adjoint(self) -> Tensor:
        """Return the conjugate transpose of matrices: of real ones a view with the last two dims exchanged."""

    def all(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return whether all elements over `dim` are nonzero."""

    def allclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
        """Return whether |input - other| ≤ atol + rtol · |other| for every element."""

    def amax(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the maximum over `dim`; elements equal to the maximum share its gradient."""

    def amin(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the minimum over `dim`; elements equal to the minimum share its gradient."""

    def aminmax(self, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> results.aminmax:
        """Return the minimum and the maximum over `dim`, or over all elements."""

    def angle(self) -> Tensor:
        """Return the angle of each number in radians: of real numbers 0, or π for negative ones."""

    def angle_(self) -> Tensor:
        """Return the angle of each number in radians: of real numbers 0, or π for negative ones."""

    def any(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return whether any element over `dim` is nonzero."""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by what a function of a Python number returns; slow, and only on the CPU."""

    def arccos(self) -> Tensor:
        """Return the inverse cosine, in [0, π]."""

    def arccos_(self) -> Tensor:
        """Return the inverse cosine, in [0, π]."""

    def arccosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

    def arccosh_(self) -> Tensor:
        """Return the inverse hyperbolic cosine, of numbers ≥ 1."""

    def arcsin(self) -> Tensor:
        """Return the inverse sine, in [-π/2, π/2]."""

    def arcsin_(self) -> Tensor:
        """Return the inverse sine, in [-π/2, π/2]."""

    def arcsinh(self) -> Tensor:
        """Return the inverse hyperbolic sine."""

    def arcsinh_(self) -> Tensor:
        """Return the inverse hyperbolic sine."""

    def arctan(self) -> Tensor:
        """Return the inverse tangent, in [-π/2, π/2]."""

    def arctan2(self, other: Tensor) -> Tensor:
        """Return the angle in (-π, π] of the point with y = input and x = other."""

    def arctan2_(self, other: Tensor) -> Tensor:
        """Return the angle in (-π, π] of the point with y = input and x = other."""

    def arctan_(self) -> Tensor:
        """Return the inverse tangent, in [-π/2, π/2]."""

    def arctanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def arctanh_(self) -> Tensor:
        """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def argmax(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the index of the first maximum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

    def argmin(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the index of the first minimum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

    def argsort(self, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Tensor:
        """Return the indices that sort `input` along `dim`. Equal elements always keep their order."""

    def argwhere(self) -> Tensor:
        """Return the indices of all nonzero elements, one element per row, in row-major order."""

    def as_strided(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """Return a view of the tensor's memory with explicit strides, in elements."""

    def as_strided_(self, size: Size, stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """Change size, stride and offset, in elements, over the same memory. Raises: as `set_`."""

    def as_strided_scatter(self, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """Return a copy of the input in which `src` replaces the elements of `as_strided(size, stride, storage_offset)`."""

    def asin(self) -> Tensor:
        """Return the inverse sine, in [-π/2, π/2]."""

    def asin_(self) -> Tensor:
        """Return the inverse sine, in [-π/2, π/2]."""

    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine."""

    def asinh_(self) -> Tensor:
        """Return the inverse hyperbolic sine."""

    def atan(self) -> Tensor:
        """Return the inverse tangent, in [-π/2, π/2]."""

    def atan2(self, other: Tensor) -> Tensor:
        """Return the angle in (-π, π] of the point with y = input and x = other."""

    def atan2_(self, other: Tensor) -> Tensor:
        """Return the angle in (-π, π] of the point with y = input and x = other."""

    def atan_(self) -> Tensor:
        """Return the inverse tangent, in [-π/2, π/2]."""

    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def atanh_(self) -> Tensor:
        """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def backward(self, gradient: Any = ..., retain_graph: builtins.bool | None = ..., create_graph: builtins.bool = ..., inputs: Any = ...) -> GradStore:
        """Add gradients to `.grad` of the leaves this tensor depends on; see `tallow.autograd.backward`."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (batch1 @ batch2)."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """Return beta · input + alpha · (batch1 @ batch2)."""

    def bernoulli(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """Draw ones with the probabilities in the input, or all with probability `p`; zeros otherwise."""

    def bernoulli_(self, p: Tensor | builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with ones, with probability `p`, and zeros."""

    def bfloat16(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to bfloat16: `to(tl.bfloat16, memory_format=memory_format)`."""

    def bincount(self, weights: Any = ..., minlength: builtins.int = ...) -> Tensor:
        """Count the occurrences of each number, or sum their weights."""

    def bitwise_and(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that are set in both operands, broadcast; for booleans, logical and."""

    def bitwise_and_(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that are set in both operands, broadcast; for booleans, logical and."""

    def bitwise_left_shift(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · 2^other, broadcast; bits shifted out are lost."""

    def bitwise_left_shift_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · 2^other, broadcast; bits shifted out are lost."""

    def bitwise_not(self) -> Tensor:
        """Invert every bit; for booleans, logical not."""

    def bitwise_not_(self) -> Tensor:
        """Invert every bit; for booleans, logical not."""

    def bitwise_or(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that are set in either operand, broadcast; for booleans, logical or."""

    def bitwise_or_(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that are set in either operand, broadcast; for booleans, logical or."""

    def bitwise_right_shift(self, other: Tensor | builtins.float) -> Tensor:
        """Return floor(input / 2^other), broadcast: the sign bit is repeated."""

    def bitwise_right_shift_(self, other: Tensor | builtins.float) -> Tensor:
        """Return floor(input / 2^other), broadcast: the sign bit is repeated."""

    def bitwise_xor(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that differ, broadcast; for booleans, exclusive or."""

    def bitwise_xor_(self, other: Tensor | builtins.float) -> Tensor:
        """Return the bits that differ, broadcast; for booleans, exclusive or."""

    def bmm(self, mat2: Tensor) -> Tensor:
        """Return the products of two batches of matrices, without broadcasting."""

    def bool(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to bool: `to(tl.bool, memory_format=memory_format)`."""

    def broadcast_to(self, *sizes: Any, size: Any = ...) -> Tensor:
        """Return a view, expanded to a size; see `expand`."""

    def byte(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to uint8: `to(tl.uint8, memory_format=memory_format)`."""

    def cauchy_(self, median: builtins.float = ..., sigma: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with numbers from the Cauchy distribution."""

    def ccol_indices(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""

    def cdouble(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to complex128: `to(tl.complex128, memory_format=memory_format)`."""

    def ceil(self) -> Tensor:
        """Return the smallest integer not less than each element."""

    def ceil_(self) -> Tensor:
        """Return the smallest integer not less than each element."""

    def cfloat(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to complex64: `to(tl.complex64, memory_format=memory_format)`."""

    def chalf(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to complex32, whose numbers only convert and move: `to(tl.complex32, memory_format=memory_format)`."""

    def char(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to int8: `to(tl.int8, memory_format=memory_format)`."""

    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """Compute the Cholesky factor; see `linalg.cholesky`."""

    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """Compute the inverse of A = L · Lᵀ, or Lᵀ · L if `upper`. The gradient is as that of `cholesky_solve`."""

    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ...) -> Tensor:
        """Return X in A X = input, where A = L Lᵀ, or Lᵀ L if `upper`. The other triangle of L is not read."""

    def chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Split into at most `chunks` views of equal size, the last perhaps smaller."""

    def clamp(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

    def clamp_(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

    def clamp_max(self, max: Tensor | builtins.float) -> Tensor:
        """Return min(input, `max`), broadcast."""

    def clamp_max_(self, max: Tensor | builtins.float) -> Tensor:
        """Return min(input, `max`), broadcast."""

    def clamp_min(self, min: Tensor | builtins.float) -> Tensor:
        """Return max(input, `min`), broadcast."""

    def clamp_min_(self, min: Tensor | builtins.float) -> Tensor:
        """Return max(input, `min`), broadcast."""

    def clip(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

    def clip_(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one."""

    def clone(self, *, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Return a copy, in the memory order of the input unless `memory_format` names another."""

    def coalesce(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""

    def col_indices(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""

    def conj(self) -> Tensor:
        """Return the complex conjugates; real numbers themselves."""

    def conj_physical(self) -> Tensor:
        """Return the complex conjugates; real numbers themselves."""

    def conj_physical_(self) -> Tensor:
        """Replace the numbers by their complex conjugates."""

    def contiguous(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Return the tensor itself if it is contiguous, in row-major order or that of `memory_format`; else a copy."""

    def copy_(self, src: Tensor | builtins.float, non_blocking: builtins.bool = ...) -> Tensor:
        """Write `src`, broadcast and converted to the dtype and device of the tensor."""

    def copysign(self, other: Tensor | builtins.float) -> Tensor:
        """Return the magnitude of `input` with the sign of `other`, broadcast."""

    def copysign_(self, other: Tensor | builtins.float) -> Tensor:
        """Return the magnitude of `input` with the sign of `other`, broadcast."""

    def corrcoef(self) -> Tensor:
        """Compute the correlations of variables, one per row: covariance over the product of standard deviations."""

    def cos(self) -> Tensor:
        """Return the cosine of angles in radians."""

    def cos_(self) -> Tensor:
        """Return the cosine of angles in radians."""

    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """Return the hyperbolic cosine."""

    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """Return the number of nonzero elements over `dim`."""

    def cov(self, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
        """Compute the covariances of variables, one per row, with an observation in each column."""

    def cpu(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Return the tensor on the CPU; itself if it is there already."""

    def cross(self, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Compute the cross product along `dim`, or along the first dim of length 3."""

    def crow_indices(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""

    def cuda(self, device: Any = ..., non_blocking: builtins.bool = ..., memory_format: MemoryFormat | None = ...) -> Tensor:
        """Return the tensor on a CUDA device, the current one by default; itself if it is there already."""

    def cummax(self, dim: builtins.int) -> results.cummax:
        """Return the cumulative maximum along `dim`, and its last index."""

    def cummin(self, dim: builtins.int) -> results.cummin:
        """Return the cumulative minimum along `dim`, and its last index."""

    def cumprod(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """Return the cumulative product y_i = Π_{j ≤ i} x_j along `dim`."""

    def cumprod_(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """Return the cumulative product y_i = Π_{j ≤ i} x_j along `dim`."""

    def cumsum(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """Return the cumulative sum y_i = Σ_{j ≤ i} x_j along `dim`."""

    def cumsum_(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """Return the cumulative sum y_i = Σ_{j ≤ i} x_j along `dim`."""

    def deg2rad(self) -> Tensor:
        """Convert degrees to radians: input · π / 180."""

    def deg2rad_(self) -> Tensor:
        """Convert degrees to radians: input · π / 180."""

    def dense_dim(self) -> builtins.int:
        """Return the number of dims: all of a dense tensor are dense."""

    def dequantize(self) -> Tensor:
        """Return the numbers in float32."""

    def det(self) -> Tensor:
        """Compute the determinant; see `linalg.det`."""

    def diag(self, diagonal: builtins.int = ...) -> Tensor:
        """Return a matrix with a vector as its diagonal, or a copy of the diagonal of a matrix."""

    def diag_embed(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Return zeros with the last dim of the input on a diagonal of the new dims `dim1` and `dim2`."""

    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """Return a matrix with the flattened elements as its diagonal."""

    def diagonal(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Return a view of the elements whose indices along `dim2` and `dim1` differ by `offset`; it becomes the last dim."""

    def diagonal_scatter(self, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Return a copy with `src` on a diagonal."""

    def diff(self, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
        """Compute the differences of neighbours along `dim`, `n` times; for booleans, whether neighbours differ."""

    def digamma(self) -> Tensor:
        """Return the derivative of lgamma."""

    def digamma_(self) -> Tensor:
        """Return the derivative of lgamma."""

    def dim_order(self, *, ambiguity_check: builtins.bool | Sequence[MemoryFormat] = ...) -> builtins.tuple[builtins.int, ...]:
        """Return the dims from the outermost in memory to the innermost. Dims of equal strides keep their order."""

    def dist(self, other: Tensor, p: builtins.float = ...) -> Tensor:
        """Compute the p-norm of the difference over all elements."""

    def div(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """Return input / other, broadcast."""

    def div_(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """Return input / other, broadcast."""

    def divide(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """Return input / other, broadcast."""

    def divide_(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """Return input / other, broadcast."""

    def dot(self, tensor: Tensor) -> Tensor:
        """Return the inner product of two vectors."""

    def double(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to float64: `to(tl.float64, memory_format=memory_format)`."""

    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Split along dim 2; into this many equal parts, or before these indices."""

    def eig(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eig`."""

    def eq(self, other: Tensor | builtins.float) -> Tensor:
        """Return input = other, elementwise."""

    def eq_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input = other, elementwise."""

    def equal(self, other: Tensor) -> builtins.bool:
        """Return whether both have the same shape and elements."""

    def erf(self) -> Tensor:
        """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

    def erf_(self) -> Tensor:
        """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

    def erfc(self) -> Tensor:
        """Return 1 - erf(input), without cancellation."""

    def erfc_(self) -> Tensor:
        """Return 1 - erf(input), without cancellation."""

    def erfinv(self) -> Tensor:
        """Return the inverse of erf on [-1, 1]; NaN elsewhere."""

    def erfinv_(self) -> Tensor:
        """Return the inverse of erf on [-1, 1]; NaN elsewhere."""

    def exp(self) -> Tensor:
        """Return e to the power of each element."""

    def exp2(self) -> Tensor:
        """Return 2 to the power of each element."""

    def exp2_(self) -> Tensor:
        """Return 2 to the power of each element."""

    def exp_(self) -> Tensor:
        """Return e to the power of each element."""

    def expand(self, *size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Repeat dims of size 1, and new leading ones, without copying. -1 keeps a dim's size."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Return a view, expanded to the shape of `other`."""

    def expm1(self) -> Tensor:
        """Return exp(input) - 1, accurate near 0."""

    def expm1_(self) -> Tensor:
        """Return exp(input) - 1, accurate near 0."""

    def exponential_(self, lambd: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with numbers from the exponential distribution of rate `lambd`: p(x) = λ exp(-λ x)."""

    def fill_(self, value: Any) -> Tensor:
        """Fill with one value: a number, or a 0-d tensor, whose gradient is the sum over all elements."""

    def fill_diagonal_(self, fill_value: builtins.float, wrap: builtins.bool = ...) -> Tensor:
        """Write a number on the main diagonal; with `wrap` the diagonal restarts below the end of a tall matrix."""

    def fix(self) -> Tensor:
        """Return the integer part of each element."""

    def fix_(self) -> Tensor:
        """Return the integer part of each element."""

    def flatten(self, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
        """Merge the dims from `start_dim` to `end_dim` into one."""

    def flip(self, *dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Return a copy with the order along `dims` reversed."""

    def fliplr(self) -> Tensor:
        """Reverse the order of the columns."""

    def flipud(self) -> Tensor:
        """Reverse the order of the rows."""

    def float(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to float32: `to(tl.float32, memory_format=memory_format)`."""

    def float_power(self, exponent: Tensor | builtins.float) -> Tensor:
        """Compute `input` to the power of `exponent` in float64, or complex128, whatever the dtypes of the operands."""

    def float_power_(self, exponent: Tensor | builtins.float) -> Tensor:
        """Compute `float_power` in place.  Raises: DtypeError for a tensor that is not float64"""

    def floor(self) -> Tensor:
        """Return the largest integer not greater than each element."""

    def floor_(self) -> Tensor:
        """Return the largest integer not greater than each element."""

    def floor_divide(self, other: Tensor | builtins.float) -> Tensor:
        """Return floor(input / other), broadcast."""

    def floor_divide_(self, other: Tensor | builtins.float) -> Tensor:
        """Return floor(input / other), broadcast."""

    def fmax(self, other: Tensor) -> Tensor:
        """Return the larger of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""

    def fmin(self, other: Tensor) -> Tensor:
        """Return the smaller of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""

    def fmod(self, other: Tensor | builtins.float) -> Tensor:
        """Return input - other · trunc(input / other), broadcast: C's `fmod`, with the sign of `input`."""

    def fmod_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input - other · trunc(input / other), broadcast: C's `fmod`, with the sign of `input`."""

    def frac(self) -> Tensor:
        """Return input - trunc(input)."""

    def frac_(self) -> Tensor:
        """Return input - trunc(input)."""

    def frexp(self) -> results.frexp:
        """Split input into mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""

    def gather(self, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = ...) -> Tensor:
        """Return y[i, j, k] = input[index[i, j, k], j, k] for dim = 0, and so on for the other dims."""

    def gcd(self, other: Tensor) -> Tensor:
        """Return the greatest common divisor, broadcast; that of 0 and n is |n|."""

    def gcd_(self, other: Tensor) -> Tensor:
        """Return the greatest common divisor, broadcast; that of 0 and n is |n|."""

    def ge(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≥ other, elementwise."""

    def ge_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≥ other, elementwise."""

    def geometric_(self, p: builtins.float, *, generator: Generator | None = ...) -> Tensor:
        """Fill with numbers from the geometric distribution: the number of trials up to the first success."""

    def geqrf(self) -> results.geqrf:
        """Return the QR decomposition as LAPACK stores it: R and the vectors of the reflections in one matrix, and factors."""

    def ger(self, vec2: Tensor) -> Tensor:
        """Return y_ij = input_i · vec2_j."""

    def greater(self, other: Tensor | builtins.float) -> Tensor:
        """Return input > other, elementwise."""

    def greater_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input > other, elementwise."""

    def greater_equal(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≥ other, elementwise."""

    def greater_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≥ other, elementwise."""

    def gt(self, other: Tensor | builtins.float) -> Tensor:
        """Return input > other, elementwise."""

    def gt_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input > other, elementwise."""

    def half(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to float16: `to(tl.float16, memory_format=memory_format)`."""

    def hardshrink(self, lambd: builtins.float = ...) -> Tensor:
        """Set elements with |x| ≤ lambd to 0."""

    def hash_tensor(self, dim: builtins.int | Sequence[builtins.int] | None = ..., *, keepdim: builtins.bool = ..., mode: builtins.int = ...) -> Tensor:
        """Return the exclusive or of the bits of all elements over `dim`, each as a number of 64 bits."""

    def heaviside(self, values: Tensor) -> Tensor:
        """Return 0 below zero, 1 above, and `values` at zero, broadcast."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """Return 0 below zero, 1 above, and `values` at zero, broadcast."""

    def histc(self, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ...) -> Tensor:
        """Count the elements in each of `bins` equal parts of [min, max]; of the elements' own range if both are 0."""

    def histogram(self, bins: builtins.int | Tensor, *, range: Sequence[builtins.float] | None = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
        """Count the elements in each bin, which holds its left edge; the last bin holds its right edge too."""

    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Split along dim 1, vectors along dim 0; into this many equal parts, or before these indices."""

    def hypot(self, other: Tensor) -> Tensor:
        """Return sqrt(input² + other²), without intermediate overflow."""

    def hypot_(self, other: Tensor) -> Tensor:
        """Return sqrt(input² + other²), without intermediate overflow."""

    def i0(self) -> Tensor:
        """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""

    def i0_(self) -> Tensor:
        """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""

    def igamma(self, other: Tensor) -> Tensor:
        """Return P(a, x) = 1/Γ(a) · ∫ t^(a-1) exp(-t) dt from 0 to x, where a is `input` and x is `other`."""

    def igamma_(self, other: Tensor) -> Tensor:
        """Return P(a, x) = 1/Γ(a) · ∫ t^(a-1) exp(-t) dt from 0 to x, where a is `input` and x is `other`."""

    def igammac(self, other: Tensor) -> Tensor:
        """Return Q(a, x) = 1 - P(a, x), without cancellation; see `igamma`."""

    def igammac_(self, other: Tensor) -> Tensor:
        """Return Q(a, x) = 1 - P(a, x), without cancellation; see `igamma`."""

    def index_add(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ...) -> Tensor:
        """Return a copy with alpha · source[i] added to slice index[i] along `dim`; repeated slices accumulate."""

    def index_add_(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ...) -> Tensor:
        """Return a copy with alpha · source[i] added to slice index[i] along `dim`; repeated slices accumulate."""

    def index_copy(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """Return a copy in which slice index[i] along `dim` is source[i]."""

    def index_copy_(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """Return a copy in which slice index[i] along `dim` is source[i]."""

    def index_fill(self, dim: builtins.int, index: Any, value: Tensor | builtins.float) -> Tensor:
        """Return a copy in which the slices `index` along `dim` have one value; negative indices count from the end."""

    def index_fill_(self, dim: builtins.int, index: Any, value: Tensor | builtins.float) -> Tensor:
        """Return a copy in which the slices `index` along `dim` have one value; negative indices count from the end."""

    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy of `input` with `values`, broadcast, written to input[indices], or added to it if `accumulate`."""

    def index_put_(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Write `values`, broadcast, to input[indices]."""

    def index_reduce(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Return a copy where slices of `source` with the same index along `dim` are reduced into the slice there."""

    def index_reduce_(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Compute `index_reduce` in place."""

    def index_select(self, dim: builtins.int, index: Any) -> Tensor:
        """Return the slices of `input` along `dim` at the positions in `index`, in that order."""

    def indices(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""

    def inner(self, other: Tensor) -> Tensor:
        """Sum products over the last dim of both; the plain product if one of them is 0-d."""

    def int(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to int32: `to(tl.int32, memory_format=memory_format)`."""

    def int_repr(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def inverse(self) -> Tensor:
        """Invert square matrices; see `linalg.inv`."""

    def is_coalesced(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""

    def is_conj(self) -> builtins.bool:
        """Return False: conjugates are computed at once."""

    def is_neg(self) -> builtins.bool:
        """Return False: conjugates are computed at once."""

    def is_nonzero(self) -> builtins.bool:
        """Return whether the only element is nonzero."""

    def is_pinned(self, device: Any = ...) -> builtins.bool:
        """Return whether the tensor is in pinned host memory."""

    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Return whether both tensors have the same shape."""

    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        """Return whether both tensors have the same memory, offset, size and stride."""

    def is_shared(self) -> builtins.bool:
        """Return whether other processes can view the memory, see `share_memory_`. True on a CUDA device."""

    def isclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
        """Return |input - other| ≤ atol + rtol · |other|, elementwise; equal infinities are close."""

    def isfinite(self) -> Tensor:
        """Return whether each element is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Return whether each element is infinite, of either sign."""

    def isnan(self) -> Tensor:
        """Return whether each element is NaN."""

    def isneginf(self) -> Tensor:
        """Return whether each element is -∞."""

    def isposinf(self) -> Tensor:
        """Return whether each element is +∞."""

    def isreal(self) -> Tensor:
        """Return whether each element has no imaginary part."""

    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
        """Compute the signal of which `stft` returns these spectra, or the nearest one by least squares."""

    def kron(self, other: Tensor) -> Tensor:
        """Compute the Kronecker product: each element of `input` times all of `other`."""

    def kthvalue(self, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> results.kthvalue:
        """Return the k-th smallest element along `dim`, counted from one, and its index."""

    def lcm(self, other: Tensor) -> Tensor:
        """Return the least common multiple, broadcast; that of 0 and n is 0."""

    def lcm_(self, other: Tensor) -> Tensor:
        """Return the least common multiple, broadcast; that of 0 and n is 0."""

    def ldexp(self, other: Tensor) -> Tensor:
        """Compute input · 2^other."""

    def ldexp_(self, other: Tensor) -> Tensor:
        """Compute `ldexp` in place."""

    def le(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≤ other, elementwise."""

    def le_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≤ other, elementwise."""

    def lerp(self, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
        """Return input + weight · (end - input), broadcast."""

    def lerp_(self, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
        """Return input + weight · (end - input), broadcast."""

    def less(self, other: Tensor | builtins.float) -> Tensor:
        """Return input < other, elementwise."""

    def less_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input < other, elementwise."""

    def less_equal(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≤ other, elementwise."""

    def less_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≤ other, elementwise."""

    def lgamma(self) -> Tensor:
        """Return ln |Γ(input)|."""

    def lgamma_(self) -> Tensor:
        """Return ln |Γ(input)|."""

    def log(self) -> Tensor:
        """Return the natural logarithm of each element."""

    def log10(self) -> Tensor:
        """Return the base-10 logarithm of each element."""

    def log10_(self) -> Tensor:
        """Return the base-10 logarithm of each element."""

    def log1p(self) -> Tensor:
        """Return log(1 + input), accurate near 0."""

    def log1p_(self) -> Tensor:
        """Return log(1 + input), accurate near 0."""

    def log2(self) -> Tensor:
        """Return the base-2 logarithm of each element."""

    def log2_(self) -> Tensor:
        """Return the base-2 logarithm of each element."""

    def log_(self) -> Tensor:
        """Return the natural logarithm of each element."""

    def log_normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with numbers from a log-normal distribution; `mean` and `std` are those of the logarithm."""

    def log_softmax(self, dim: builtins.int | None = ..., dtype: builtins.object = ...) -> Tensor:
        """Return ln softmax(input) along `dim`, without taking the logarithm of small numbers."""

    def logaddexp(self, other: Tensor) -> Tensor:
        """Return ln(exp(input) + exp(other)), without intermediate overflow."""

    def logaddexp2(self, other: Tensor) -> Tensor:
        """Return log2(2^input + 2^other), without intermediate overflow."""

    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """Return y_i = log Σ_{j ≤ i} exp x_j along `dim`."""

    def logdet(self) -> Tensor:
        """Compute the logarithm of the determinant; NaN where it is negative, complex for complex matrices."""

    def logical_and(self, other: Tensor) -> Tensor:
        """Return whether both are nonzero, elementwise."""

    def logical_and_(self, other: Tensor) -> Tensor:
        """Return whether both are nonzero, elementwise."""

    def logical_not(self) -> Tensor:
        """Return whether each element is zero."""

    def logical_not_(self) -> Tensor:
        """Return whether each element is zero."""

    def logical_or(self, other: Tensor) -> Tensor:
        """Return whether at least one is nonzero, elementwise."""

    def logical_or_(self, other: Tensor) -> Tensor:
        """Return whether at least one is nonzero, elementwise."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """Return whether exactly one is nonzero, elementwise."""

    def logical_xor_(self, other: Tensor) -> Tensor:
        """Return whether exactly one is nonzero, elementwise."""

    def logit(self, eps: builtins.float | None = ...) -> Tensor:
        """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

    def logit_(self, eps: builtins.float | None = ...) -> Tensor:
        """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = ...) -> Tensor:
        """Return log Σ exp(input) over `dim`."""

    def long(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to int64: `to(tl.int64, memory_format=memory_format)`."""

    def lstsq(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.lstsq`."""

    def lt(self, other: Tensor | builtins.float) -> Tensor:
        """Return input < other, elementwise."""

    def lt_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input < other, elementwise."""

    def lu(self, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
        """Return what `linalg.lu_factor` does, and with `get_infos` a third tensor, as `linalg.lu_factor_ex`."""

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Return the X of A X = input, given the results of `linalg.lu_factor(A)`; see `linalg.lu_solve`."""

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replace each element by what a function of Python numbers returns for it and for those of two tensors."""

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by what a function of Python numbers returns for it and for the element of `tensor`."""

    def masked_fill(self, mask: Any, value: Tensor | builtins.float) -> Tensor:
        """Return `value` where the mask is true and `input` elsewhere; the value is a number or a zero-dim tensor."""

    def masked_fill_(self, mask: Any, value: Tensor | builtins.float) -> Tensor:
        """Return `value` where the mask is true and `input` elsewhere; the value is a number or a zero-dim tensor."""

    def masked_scatter(self, mask: Any, source: Tensor) -> Tensor:
        """Return the input with the elements of `source`, in order, at the positions where the mask is true."""

    def masked_scatter_(self, mask: Any, source: Tensor) -> Tensor:
        """Return the input with the elements of `source`, in order, at the positions where the mask is true."""

    def masked_select(self, mask: Any) -> Tensor:
        """Return the elements where the mask is true, in row-major order, both broadcast."""

    def matmul(self, other: Tensor) -> Tensor:
        """Return the matrix product over the last two dims; a vector is a row on the left, a column on the right."""

    def matrix_exp(self) -> Tensor:
        """Compute the matrix exponential Σ Aᵏ / k! of square matrices."""

    def matrix_power(self, n: builtins.int) -> Tensor:
        """Compute the n-th power of square matrices by repeated squaring; of their inverses for a negative n."""

    @overload
    def max(self) -> Tensor:
        """Return the greatest element, in one of three ways."""

    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = ...) -> results.max:
        """Return the greatest element, in one of three ways."""

    @overload
    def max(self, dim: Tensor) -> Tensor:
        """Return the greatest element, in one of three ways."""

    @overload
    def max(self, *, other: Tensor) -> Tensor:
        """Return the greatest element, in one of three ways."""

    def maximum(self, other: Tensor) -> Tensor:
        """Return the larger of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

    def maximum_(self, other: Tensor) -> Tensor:
        """Return the larger of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

    def mean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Return the mean over `dim`."""

    @overload
    def median(self) -> Tensor:
        """Return the median of all elements, or along `dim` with its index. NaN if any element is NaN."""

    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = ...) -> results.median:
        """Return the median of all elements, or along `dim` with its index. NaN if any element is NaN."""

    @overload
    def min(self) -> Tensor:
        """Return the least element, in one of three ways; see `max`."""

    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = ...) -> results.min:
        """Return the least element, in one of three ways; see `max`."""

    @overload
    def min(self, dim: Tensor) -> Tensor:
        """Return the least element, in one of three ways; see `max`."""

    @overload
    def min(self, *, other: Tensor) -> Tensor:
        """Return the least element, in one of three ways; see `max`."""

    def minimum(self, other: Tensor) -> Tensor:
        """Return the smaller of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

    def minimum_(self, other: Tensor) -> Tensor:
        """Return the smaller of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""

    def mm(self, mat2: Tensor) -> Tensor:
        """Return the product of two matrices."""

    def mode(self, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> results.mode:
        """Return the most frequent element along `dim`, the smallest of equally frequent ones, and its last index."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Move dims to new positions; the others keep their order."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Move dims to new positions; the others keep their order."""

    def msort(self) -> Tensor:
        """Sort the elements along the first dimension, in ascending order."""

    def mul(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · other, broadcast."""

    def mul_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · other, broadcast."""

    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
        """Draw indices with the weights in each row of the input, which need not sum to one."""

    def multiply(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · other, broadcast."""

    def multiply_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · other, broadcast."""

    def mv(self, vec: Tensor) -> Tensor:
        """Return the product of a matrix and a vector."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Compute the logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)."""

    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """Compute `mvlgamma` in place."""

    def nan_to_num(self, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
        """Replace NaN, +∞ and -∞; the latter by the largest and lowest number of the dtype unless given."""

    def nan_to_num_(self, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
        """Compute `nan_to_num` in place."""

    def nanmean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Return the mean over `dim`, ignoring NaN."""

    @overload
    def nanmedian(self) -> Tensor:
        """Return the median of the elements that are not NaN; see `median`."""

    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = ...) -> results.nanmedian:
        """Return the median of the elements that are not NaN; see `median`."""

    def nanquantile(self, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
        """Return the quantiles as `quantile` does, ignoring NaN."""

    def nansum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Return the sum over `dim`, with NaN as zero."""

    def narrow(self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
        """Return a view of `length` elements along `dim` from `start` on."""

    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Return a copy of `length` elements along `dim` from `start` on; see `narrow`."""

    def ne(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≠ other, elementwise."""

    def ne_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≠ other, elementwise."""

    def neg(self) -> Tensor:
        """Return -input."""

    def neg_(self) -> Tensor:
        """Return -input."""

    def negative(self) -> Tensor:
        """Return -input."""

    def negative_(self) -> Tensor:
        """Return -input."""

    def new(self, *data: Any, device: Any = ...) -> Tensor:
        """Create a tensor of the input's dtype from a size or from data; PyTorch's former `new_empty` and `new_tensor`."""

    def new_empty(self, *sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create a tensor with uninitialised memory, and the dtype and device of the tensor."""

    def new_empty_strided(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., *, layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create a tensor with these strides and uninitialised memory, and the dtype and device of the tensor."""

    def new_full(self, size: Sequence[builtins.int], fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create a tensor filled with one value, with the dtype and device of the tensor."""

    def new_ones(self, *sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create ones with the dtype and device of the tensor."""

    def new_tensor(self, data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create a tensor from data, with the dtype and device of this tensor; see `tl.tensor`."""

    def new_zeros(self, *sizes: Any, size: Any = ..., dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: Any = ..., out: Any = ..., pin_memory: Any = ...) -> Tensor:
        """Create zeros with the dtype and device of the tensor."""

    def nextafter(self, other: Tensor) -> Tensor:
        """Return the next number after `input` towards `other`."""

    def nextafter_(self, other: Tensor) -> Tensor:
        """Return the next number after `input` towards `other`."""

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = ...) -> Tensor:
        """Return the indices of all nonzero elements: one in each row, or as a tuple of vectors to index with."""

    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]:
        """Return the indices of all nonzero elements: one in each row, or as a tuple of vectors to index with."""

    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
        """Return `size` rows: the indices of the first nonzero elements, and rows of `fill_value` if there are fewer."""

    def norm(self, p: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
        """Compute (Σ |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the nuclear norm of matrices."""

    def normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with numbers from the normal distribution. Complex numbers share the variance between their parts."""

    def not_equal(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≠ other, elementwise."""

    def not_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input ≠ other, elementwise."""

    def orgqr(self, input2: Tensor) -> Tensor:
        """Return the first columns of Q; see `linalg.householder_product`."""

    def ormqr(self, input2: Tensor, input3: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ...) -> Tensor:
        """Multiply `input3` by the square Q, or its conjugate transpose, of which `geqrf` has returned the reflections."""

    def outer(self, vec2: Tensor) -> Tensor:
        """Return y_ij = input_i · vec2_j."""

    def permute(self, *dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Reorder the dims: dim i of the result is dim dims[i] of the input."""

    def pin_memory(self, device: Any = ...) -> Tensor:
        """Return a copy in pinned host memory, which a GPU reads directly: `to("cuda", non_blocking=True)` does not wait."""

    def pinverse(self, rcond: builtins.float = ...) -> Tensor:
        """Compute the pseudoinverse; see `linalg.pinv`. The default of `rcond` is smaller than there, as in PyTorch."""

    def polygamma(self, n: builtins.int) -> Tensor:
        """Compute the n-th derivative of digamma."""

    def polygamma_(self, n: builtins.int) -> Tensor:
        """Compute `polygamma` in place."""

    def positive(self) -> Tensor:
        """Return the input itself."""

    def pow(self, exponent: Tensor | builtins.float) -> Tensor:
        """Return `input` raised to the power of `exponent`, broadcast."""

    def pow_(self, exponent: Tensor | builtins.float) -> Tensor:
        """Return `input` raised to the power of `exponent`, broadcast."""

    def prelu(self, weight: Tensor) -> Tensor:
        """Return x where it is positive and weight · x elsewhere, with one weight for all channels or one per channel."""

    def prod(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Return the product over `dim`, or over all elements."""

    def put(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy in which element index[i] of the flattened input is replaced by source[i], or has it added."""

    def put_(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy in which element index[i] of the flattened input is replaced by source[i], or has it added."""

    def q_per_channel_axis(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def q_per_channel_scales(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def q_per_channel_zero_points(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def q_scale(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def q_zero_point(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def qr(self, some: builtins.bool = ...) -> Any:
        """Compute the QR decomposition, reduced if `some`, else complete; see `linalg.qr`."""

    def qscheme(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only quantized tensors have it."""

    def quantile(self, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
        """Return the quantiles `q` of `input` along `dim` (or of all elements), interpolated; NaN if there is any."""

    def rad2deg(self) -> Tensor:
        """Convert radians to degrees: input · 180 / π."""

    def rad2deg_(self) -> Tensor:
        """Convert radians to degrees: input · 180 / π."""

    def random_(self, *bounds: builtins.int, to: builtins.int | None = ..., generator: Generator | None = ..., **named: builtins.int) -> Tensor:
        """Fill with integers in [from, to): random_(to), random_(from, to); by default the range of the dtype."""

    def ravel(self) -> Tensor:
        """Flatten to one dim."""

    def reciprocal(self) -> Tensor:
        """Return 1 / input."""

    def reciprocal_(self) -> Tensor:
        """Return 1 / input."""

    def relu(self) -> Tensor:
        """Return max(x, 0) of each element."""

    def relu_(self) -> Tensor:
        """Return max(x, 0) of each element."""

    def remainder(self, other: Tensor | builtins.float) -> Tensor:
        """Return input - other · floor(input / other), broadcast: Python's `%`, with the sign of `other`."""

    def remainder_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input - other · floor(input / other), broadcast: Python's `%`, with the sign of `other`."""

    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Scale the slices along `dim` whose p-norm exceeds `maxnorm` down to it."""

    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Compute `renorm` in place."""

    def repeat(self, *repeats: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Return a copy tiled `repeats[i]` times along dim i; additional repeats add leading dims."""

    def repeat_interleave(self, repeats: Tensor | builtins.int | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
        """Repeat each slice along `dim` several times in a row; without `dim`, each element of the flattened tensor."""

    def reshape(self, *shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Return the same elements in the same order, as a view if the strides allow it. One -1 is inferred."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshape to the shape of `other`."""

    def resize_(self, *sizes: Any, size: Any = ..., memory_format: Any = ...) -> Tensor:
        """Change the shape, row-major over the same memory. Elements beyond the memory are not initialised."""

    def resize_as_(self, the_template: Tensor, memory_format: Any = ...) -> Tensor:
        """Change the shape to that of another tensor, as `resize_`."""

    def resolve_conj(self) -> Tensor:
        """Return the input itself: conjugates are computed at once."""

    def resolve_neg(self) -> Tensor:
        """Return the input itself: conjugates are computed at once."""

    def roll(self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """Return a copy moved by `shifts` positions along `dims`; elements that leave at one end enter at the other."""

    def rot90(self, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
        """Return a copy rotated by `k` times 90°, from the first of `dims` towards the second."""

    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """Round to the given number of decimals; ties go to the even digit."""

    def round_(self, *, decimals: builtins.int = ...) -> Tensor:
        """Round to the given number of decimals; ties go to the even digit."""

    def row_indices(self) -> Any:
        """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""

    def rsqrt(self) -> Tensor:
        """Return 1 / sqrt(input)."""

    def rsqrt_(self) -> Tensor:
        """Return 1 / sqrt(input)."""

    def rsub(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return other - alpha · input, broadcast."""

    def scatter(self, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ...) -> Tensor:
        """Return a copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

    def scatter_(self, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ...) -> Tensor:
        """Return a copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

    def scatter_add(self, dim: builtins.int, index: Any, src: Tensor) -> Tensor:
        """Return a copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0; repeated positions accumulate."""

    def scatter_add_(self, dim: builtins.int, index: Any, src: Tensor) -> Tensor:
        """Return a copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0; repeated positions accumulate."""

    def scatter_reduce(self, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Return a copy in which the elements of `src` with the same position, and the input's element, are reduced to one."""

    def scatter_reduce_(self, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """Return a copy in which the elements of `src` with the same position, and the input's element, are reduced to one."""

    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a view of the slice at one index along `dim`, without that dim."""

    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a copy with `src` at one index along `dim`."""

    def set_(self, source: Any = ..., storage_offset: builtins.int = ..., size: Any = ..., stride: Sequence[builtins.int] | None = ...) -> Tensor:
        """Lay the tensor over the memory of another tensor, or of a storage; over none without a source."""

    def sgn(self) -> Tensor:
        """Return the sign of each element: -1, 0 or 1; of a complex number the number of the same angle on the unit circle."""

    def sgn_(self) -> Tensor:
        """Return the sign of each element: -1, 0 or 1; of a complex number the number of the same angle on the unit circle."""

    def share_memory_(self) -> Tensor:
        """Move the elements to memory that other processes can view, if they are not there yet."""

    def short(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert to int16: `to(tl.int16, memory_format=memory_format)`."""

    def sigmoid(self) -> Tensor:
        """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""

    def sigmoid_(self) -> Tensor:
        """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""

    def sign(self) -> Tensor:
        """Return the sign of each element: -1, 0 or 1."""

    def sign_(self) -> Tensor:
        """Return the sign of each element: -1, 0 or 1."""

    def signbit(self) -> Tensor:
        """Return whether the sign bit is set: for negative numbers and -0.0."""

    def sin(self) -> Tensor:
        """Return the sine of angles in radians."""

    def sin_(self) -> Tensor:
        """Return the sine of angles in radians."""

    def sinc(self) -> Tensor:
        """Return sin(πx) / πx, and 1 at 0."""

    def sinc_(self) -> Tensor:
        """Return sin(πx) / πx, and 1 at 0."""

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """Return the hyperbolic sine."""

    def slice_scatter(self, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
        """Return a copy with `src` at the indices start, start + step, ... below `end` along `dim`."""

    def slogdet(self) -> Any:
        """Compute the sign and the logarithm of the determinant; see `linalg.slogdet`."""

    def smm(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only sparse tensors have it."""

    def softmax(self, dim: builtins.int | None = ..., dtype: builtins.object = ...) -> Tensor:
        """Return exponential weights along `dim` that sum to one; `dtype` converts the input first."""

    def solve(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.solve`."""

    def sort(self, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> results.sort:
        """Sort the elements along `dim`, and return their indices. Equal elements always keep their order."""

    def sparse_dim(self) -> builtins.int:
        """Return 0: a dense tensor has no sparse dims."""

    def sparse_mask(self, mask: Tensor) -> Tensor:
        """Return the elements at the places of a sparse tensor."""

    def sparse_resize_(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only sparse tensors have it."""

    def sparse_resize_and_clear_(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only sparse tensors have it."""

    def split(self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Split into views of `split_size_or_sections` slices each, the last perhaps smaller; or of the given sizes."""

    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Split into views of the given sizes along a dim."""

    def sqrt(self) -> Tensor:
        """Return the square root of each element."""

    def sqrt_(self) -> Tensor:
        """Return the square root of each element."""

    def square(self) -> Tensor:
        """Return the square of each element; booleans become integers."""

    def square_(self) -> Tensor:
        """Return the square of each element; booleans become integers."""

    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """Remove the dims of size 1: all of them, or those in `dim`."""

    def squeeze_(self, dim: Any = ...) -> Tensor:
        """Remove dims of size 1 in place."""

    def sspaddmm(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only sparse tensors have it."""

    def std(self, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
        """Compute the square root of `var`."""

    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: builtins.str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
        """Compute the spectra of the frames of a signal, each multiplied by the window."""

    def storage(self) -> Any:
        """Return the memory that the tensor is a view of, as elements of its dtype."""

    def storage_type(self) -> Any:
        """Return the class of the storage: UntypedStorage."""

    def sub(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input - alpha · other, broadcast."""

    def sub_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input - alpha · other, broadcast."""

    def subtract(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input - alpha · other, broadcast."""

    def subtract_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """Return input - alpha · other, broadcast."""

    def sum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Return the sum over `dim`."""

    def sum_to_size(self, *sizes: Any, size: Any = ...) -> Tensor:
        """Sum over the dims along which a tensor of that size would be broadcast to the size of this one."""

    def svd(self, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
        """Compute U, S and V (not Vᵀ) of the singular value decomposition; with square U and V unless `some`."""

    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dims."""

    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims in place."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dims."""

    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims in place."""

    def symeig(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eigh`."""

    def t(self) -> Tensor:
        """Transpose a matrix; return vectors and 0-d tensors unchanged."""

    def t_(self) -> Tensor:
        """Transpose a matrix in place."""

    def take(self, index: Any) -> Tensor:
        """Return the elements of the flattened input at these positions; negative positions count from the end."""

    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Gather elements along `dim`, with the other dims broadcast; without `dim`, from the flattened input."""

    def tan(self) -> Tensor:
        """Return the tangent of angles in radians."""

    def tan_(self) -> Tensor:
        """Return the tangent of angles in radians."""

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """Return the hyperbolic tangent."""

    def tensor_split(self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Split into views of nearly equal sizes, larger ones first; or before the given indices, as Python slices."""

    def tile(self, *repeats: Any, dims: Any = ...) -> Tensor:
        """Repeat as `repeat` does; with fewer repeats than dims, the first dims are not repeated."""

    def to(self, *args: Any, dtype: Any = ..., device: Any = ..., other: Tensor | None = ..., non_blocking: builtins.bool = ..., copy: builtins.bool = ..., memory_format: MemoryFormat | None = ...) -> Tensor:
        """Convert: to(dtype), to(device), to(device, dtype), to(other). Return the tensor itself if nothing changes."""

    def to_dense(self, dtype: Any = ...) -> Tensor:
        """Return the tensor itself: all tensors are dense."""

    def to_mkldnn(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only MKL-DNN tensors have it."""

    def to_padded_tensor(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: only nested tensors have it."""

    def to_sparse(self, sparse_dim: builtins.int | None = ..., *, layout: Any = ..., blocksize: Sequence[builtins.int] | None = ..., dense_dim: builtins.int | None = ...) -> Tensor:
        """Return the elements that are not zero: to_sparse(), to_sparse(sparse_dim), to_sparse(layout=...)."""

    def to_sparse_bsc(self, blocksize: Sequence[builtins.int], dense_dim: builtins.int | None = ...) -> Tensor:
        """Return a matrix, or a batch of them, with compressed columns of blocks."""

    def to_sparse_bsr(self, blocksize: Sequence[builtins.int], dense_dim: builtins.int | None = ...) -> Tensor:
        """Return a matrix, or a batch of them, with compressed rows of blocks."""

    def to_sparse_coo(self) -> Tensor:
        """Return the elements that are not zero as a sparse tensor in the COO layout."""

    def to_sparse_csc(self, dense_dim: builtins.int | None = ...) -> Tensor:
        """Return a matrix, or a batch of them, with compressed columns."""

    def to_sparse_csr(self, dense_dim: builtins.int | None = ...) -> Tensor:
        """Return a matrix, or a batch of them, with compressed rows."""

    def topk(self, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> results.topk:
        """Return the k largest (or smallest) elements along `dim`, always sorted, and their indices."""

    def trace(self) -> Tensor:
        """Sum the diagonal of a matrix."""

    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dims."""

    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims in place."""

    def triangular_solve(self, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ...) -> Any:
        """Return the X of A X = b for a triangular A, or of Aᵀ X = b, and a copy of A; see `linalg.solve_triangular`."""

    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements on and below a diagonal of each matrix in the last two dims; zero elsewhere."""

    def tril_(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements on and below a diagonal of each matrix in the last two dims; zero elsewhere."""

    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements on and above a diagonal of each matrix in the last two dims; zero elsewhere."""

    def triu_(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements on and above a diagonal of each matrix in the last two dims; zero elsewhere."""

    def true_divide(self, other: Tensor | builtins.float) -> Tensor:
        """Return input / other, broadcast."""

    def true_divide_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input / other, broadcast."""

    def trunc(self) -> Tensor:
        """Return the integer part of each element."""

    def trunc_(self) -> Tensor:
        """Return the integer part of each element."""

    def type(self, dtype: Any = ..., non_blocking: builtins.bool = ...) -> Any:
        """Convert to a dtype; without one, return the name of PyTorch's class for the tensor's dtype."""

    def type_as(self, other: Tensor) -> Tensor:
        """Convert to the dtype and device of `other`."""

    def unbind(self, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Return the slices along a dim, each without that dim."""

    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Split one dim into several; one of their sizes may be -1."""

    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return a view of all windows of `size` elements along a dim, `step` apart, as a new last dim."""

    def uniform_(self, from_: builtins.float = ..., to: builtins.float = ..., *, generator: Generator | None = ..., **named: builtins.float) -> Tensor:
        """Fill with numbers from the uniform distribution on [from, to), both parts of complex numbers."""

    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """Return the unique elements, or slices along `dim`, sorted; NaN are all different."""

    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """Remove repeated neighbors; otherwise as `unique`, without sorting."""

    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Return what `chunk` does."""

    def unsafe_split(self, split_size: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Return what `split` does."""

    def unsafe_split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Return what `split_with_sizes` does."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a dim of size 1 before position `dim`."""

    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Insert a dim of size 1 in place."""

    def untyped_storage(self) -> Any:
        """Return the memory that the tensor is a view of, as bytes."""

    def values(self) -> Any:
        """Raise UnsupportedError: only sparse tensors have it."""

    def var(self, dim: Any = ..., unbiased: builtins.bool = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
        """Compute Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased=True` is correction=1, the default."""

    def vdot(self, other: Tensor) -> Tensor:
        """Compute the inner product Σ conj(input) · other of two vectors."""

    def view(self, *sizes: Any, size: Any = ..., dtype: Any = ...) -> Tensor:
        """Return the same memory in another shape, view(size), or as another dtype, view(dtype)."""

    def view_as(self, other: Tensor) -> Tensor:
        """Return a view with the shape of `other`."""

    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Split along dim 0; into this many equal parts, or before these indices."""

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """Select this tensor where the condition holds, else `other`."""

    def xlogy(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""

    def xlogy_(self, other: Tensor | builtins.float) -> Tensor:
        """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""

    def zero_(self) -> Tensor:
        """Fill with zeros."""

    @property
    def H(self) -> Tensor:
        """Return the conjugate transpose of a matrix."""

    @property
    def T(self) -> Tensor:
        """Return a view with all dims reversed."""

    @property
    def mH(self) -> Tensor:
        """Return the conjugate transpose of matrices: of real ones a view with the last two dims exchanged."""

    @property
    def mT(self) -> Tensor:
        """Return a view with the last two dims exchanged."""
