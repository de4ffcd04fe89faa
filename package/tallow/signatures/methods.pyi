"""The ops that are methods. Written by scripts/build_stubs.py."""

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

class Methods:
    def __getitem__(self, index: Any) -> Tensor:
        """x[index]: a view for integers, slices, None and ...; a copy for tensors, lists and masks."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """x[index] = value: `copy_` on the view for basic indices, `index_put_` for the others."""

    def abs(self) -> Tensor:
        """|input|"""

    def abs_(self) -> Tensor:
        """|input|"""

    def absolute(self) -> Tensor:
        """|input|"""

    def absolute_(self) -> Tensor:
        """|input|"""

    def acos(self) -> Tensor:
        """Inverse cosine, in [0, π]."""

    def acos_(self) -> Tensor:
        """Inverse cosine, in [0, π]."""

    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine, of numbers from 1."""

    def acosh_(self) -> Tensor:
        """Inverse hyperbolic cosine, of numbers from 1."""

    def add(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input + alpha · other, broadcast."""

    def add_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input + alpha · other, broadcast."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · Σ_b batch1_b @ batch2_b"""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · Σ_b batch1_b @ batch2_b"""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """input + value · tensor1 / tensor2, broadcast."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """input + value · tensor1 / tensor2, broadcast."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """input + value · tensor1 · tensor2, broadcast."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = ...) -> Tensor:
        """input + value · tensor1 · tensor2, broadcast."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (mat1 @ mat2)"""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (mat1 @ mat2)"""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (mat @ vec)"""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (mat @ vec)"""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (vec1 vec2ᵀ)"""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (vec1 vec2ᵀ)"""

    def adjoint(self) -> Tensor:
        """The last two dims exchanged; for complex numbers it would be the conjugate of that."""

    def all(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Whether every element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""

    def allclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
        """Whether |input - other| ≤ atol + rtol · |other| for every element."""

    def amax(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """max input over `dim`; elements that share the maximum share its gradient."""

    def amin(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """min input over `dim`; elements that share the minimum share its gradient."""

    def aminmax(self, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> results.aminmax:
        """The least and the greatest element, over `dim` or over everything."""

    def any(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Whether some element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Put what a function of a Python number returns in the place of each element; slow, and on the CPU alone."""

    def arccos(self) -> Tensor:
        """Inverse cosine, in [0, π]."""

    def arccos_(self) -> Tensor:
        """Inverse cosine, in [0, π]."""

    def arccosh(self) -> Tensor:
        """Inverse hyperbolic cosine, of numbers from 1."""

    def arccosh_(self) -> Tensor:
        """Inverse hyperbolic cosine, of numbers from 1."""

    def arcsin(self) -> Tensor:
        """Inverse sine, in [-π/2, π/2]."""

    def arcsin_(self) -> Tensor:
        """Inverse sine, in [-π/2, π/2]."""

    def arcsinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def arcsinh_(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def arctan(self) -> Tensor:
        """Inverse tangent, in [-π/2, π/2]."""

    def arctan2(self, other: Tensor) -> Tensor:
        """The angle in (-π, π] of the point with y = input and x = other."""

    def arctan2_(self, other: Tensor) -> Tensor:
        """The angle in (-π, π] of the point with y = input and x = other."""

    def arctan_(self) -> Tensor:
        """Inverse tangent, in [-π/2, π/2]."""

    def arctanh(self) -> Tensor:
        """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def arctanh_(self) -> Tensor:
        """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def argmax(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Where the first maximum stands: along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

    def argmin(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Where the first minimum stands: along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any."""

    def argsort(self, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Tensor:
        """Where each element of the sorted tensor stood. Equal elements always keep their order."""

    def argwhere(self) -> Tensor:
        """The places of all elements that are not zero, one a row, in row-major order."""

    def as_strided(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """A view of the tensor's storage by explicit steps, in elements."""

    def asin(self) -> Tensor:
        """Inverse sine, in [-π/2, π/2]."""

    def asin_(self) -> Tensor:
        """Inverse sine, in [-π/2, π/2]."""

    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def asinh_(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def atan(self) -> Tensor:
        """Inverse tangent, in [-π/2, π/2]."""

    def atan2(self, other: Tensor) -> Tensor:
        """The angle in (-π, π] of the point with y = input and x = other."""

    def atan2_(self, other: Tensor) -> Tensor:
        """The angle in (-π, π] of the point with y = input and x = other."""

    def atan_(self) -> Tensor:
        """Inverse tangent, in [-π/2, π/2]."""

    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def atanh_(self) -> Tensor:
        """Inverse hyperbolic tangent, of numbers in [-1, 1]."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (batch1 @ batch2)"""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor:
        """beta · input + alpha · (batch1 @ batch2)"""

    def bernoulli(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """Ones with the probabilities that the input holds, or all with probability `p`; zeros else."""

    def bernoulli_(self, p: Tensor | builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with ones, each with probability `p`, and zeros."""

    def bfloat16(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(bfloat16, memory_format=memory_format)."""

    def bincount(self, weights: Any = ..., minlength: builtins.int = ...) -> Tensor:
        """How often each number occurs, or the sum of its weights."""

    def bitwise_and(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that are set in both, broadcast; of booleans, and."""

    def bitwise_and_(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that are set in both, broadcast; of booleans, and."""

    def bitwise_left_shift(self, other: Tensor | builtins.float) -> Tensor:
        """input · 2^other, broadcast; bits that leave are lost."""

    def bitwise_left_shift_(self, other: Tensor | builtins.float) -> Tensor:
        """input · 2^other, broadcast; bits that leave are lost."""

    def bitwise_not(self) -> Tensor:
        """Every bit turned; of booleans, not."""

    def bitwise_not_(self) -> Tensor:
        """Every bit turned; of booleans, not."""

    def bitwise_or(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that are set in either, broadcast; of booleans, or."""

    def bitwise_or_(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that are set in either, broadcast; of booleans, or."""

    def bitwise_right_shift(self, other: Tensor | builtins.float) -> Tensor:
        """floor(input / 2^other), broadcast: the sign bit is repeated."""

    def bitwise_right_shift_(self, other: Tensor | builtins.float) -> Tensor:
        """floor(input / 2^other), broadcast: the sign bit is repeated."""

    def bitwise_xor(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that differ, broadcast; of booleans, exclusive or."""

    def bitwise_xor_(self, other: Tensor | builtins.float) -> Tensor:
        """The bits that differ, broadcast; of booleans, exclusive or."""

    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices, which are not broadcast."""

    def bool(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(bool, memory_format=memory_format)."""

    def broadcast_to(self, *size: Any) -> Tensor: ...

    def byte(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(uint8, memory_format=memory_format)."""

    def cauchy_(self, median: builtins.float = ..., sigma: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: ...

    def ceil(self) -> Tensor:
        """The least integer that is not below."""

    def ceil_(self) -> Tensor:
        """The least integer that is not below."""

    def char(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(int8, memory_format=memory_format)."""

    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """As `linalg.cholesky`."""

    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """The inverse of A = L · Lᵀ, or Lᵀ · L if `upper`."""

    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ...) -> Tensor:
        """X of A · X = input, where A = L · Lᵀ, or Lᵀ · L if `upper`."""

    def chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """At most `chunks` views, all of one size but perhaps the last."""

    def clamp(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

    def clamp_(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

    def clamp_max(self, max: Tensor | builtins.float) -> Tensor:
        """min(input, `max`), broadcast."""

    def clamp_max_(self, max: Tensor | builtins.float) -> Tensor:
        """min(input, `max`), broadcast."""

    def clamp_min(self, min: Tensor | builtins.float) -> Tensor:
        """max(input, `min`), broadcast."""

    def clamp_min_(self, min: Tensor | builtins.float) -> Tensor:
        """max(input, `min`), broadcast."""

    def clip(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

    def clip_(self, min: Tensor | builtins.float | None = ..., max: Tensor | builtins.float | None = ...) -> Tensor:
        """min(max(input, `min`), `max`), broadcast: where the bounds cross, the upper one."""

    def clone(self, *, memory_format: MemoryFormat | None = ...) -> Tensor:
        """A copy, in the order in memory that the input has unless told otherwise."""

    def contiguous(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """The tensor itself if its elements lie in row-major order, or that of `memory_format`, else a copy that does."""

    def copy_(self, src: Tensor | builtins.float, non_blocking: builtins.bool = ...) -> Tensor:
        """Write `src`, broadcast and converted to the dtype and device of the tensor."""

    def copysign(self, other: Tensor | builtins.float) -> Tensor:
        """The size of the input with the sign of `other`."""

    def copysign_(self, other: Tensor | builtins.float) -> Tensor:
        """The size of the input with the sign of `other`."""

    def corrcoef(self) -> Tensor:
        """The correlations of variables, a row each: their covariances by the product of their standard deviations."""

    def cos(self) -> Tensor:
        """Cosine of an angle in radians."""

    def cos_(self) -> Tensor:
        """Cosine of an angle in radians."""

    def cosh(self) -> Tensor:
        """Hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """Hyperbolic cosine."""

    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """How many elements over `dim` are other than zero. Dtypes: int64"""

    def cov(self, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
        """The covariances of variables, a row each, whose observations stand in the columns."""

    def cpu(self, memory_format: MemoryFormat | None = ...) -> Tensor: ...

    def cross(self, other: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """The cross product along `dim`, or along the first dimension of length 3."""

    def cuda(self, device: Any = ..., non_blocking: builtins.bool = ..., memory_format: MemoryFormat | None = ...) -> Tensor: ...

    def cummax(self, dim: builtins.int) -> results.cummax:
        """The greatest of the elements so far along `dim`, and where the last such stands."""

    def cummin(self, dim: builtins.int) -> results.cummin:
        """The least of the elements so far along `dim`, and where the last such stands."""

    def cumprod(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """y_i = Π_{j ≤ i} x_j along `dim`."""

    def cumprod_(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """y_i = Π_{j ≤ i} x_j along `dim`."""

    def cumsum(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """y_i = Σ_{j ≤ i} x_j along `dim`."""

    def cumsum_(self, dim: builtins.int, *, dtype: builtins.object = ...) -> Tensor:
        """y_i = Σ_{j ≤ i} x_j along `dim`."""

    def deg2rad(self) -> Tensor:
        """Degrees as radians: input · π / 180."""

    def deg2rad_(self) -> Tensor:
        """Degrees as radians: input · π / 180."""

    def det(self) -> Tensor:
        """As `linalg.det`."""

    def diag(self, diagonal: builtins.int = ...) -> Tensor:
        """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector: a copy."""

    def diag_embed(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Zeros, with the last dim of the input on a diagonal of the new dims `dim1` and `dim2`."""

    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """The elements, flattened, as the diagonal of a matrix."""

    def diagonal(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """A view of the elements whose places along `dim2` and `dim1` differ by `offset`; it becomes the last dim."""

    def diagonal_scatter(self, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """A copy with `src` on a diagonal."""

    def diff(self, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor:
        """The differences of neighbours along `dim`, taken `n` times; of booleans, whether they differ."""

    def digamma(self) -> Tensor:
        """The derivative of lgamma."""

    def digamma_(self) -> Tensor:
        """The derivative of lgamma."""

    def dist(self, other: Tensor, p: builtins.float = ...) -> Tensor:
        """The p-norm of the difference, over everything."""

    def div(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

    def div_(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

    def divide(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

    def divide_(self, other: Tensor | builtins.float, *, rounding_mode: builtins.str | None = ...) -> Tensor:
        """input / other, broadcast; with a `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""

    def dot(self, tensor: Tensor) -> Tensor:
        """The inner product of two vectors."""

    def double(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(float64, memory_format=memory_format)."""

    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Cut along dim 2; into as many equal parts, or before the given places."""

    def eq(self, other: Tensor | builtins.float) -> Tensor:
        """input = other, elementwise."""

    def eq_(self, other: Tensor | builtins.float) -> Tensor:
        """input = other, elementwise."""

    def equal(self, other: Tensor) -> builtins.bool:
        """Whether both have one shape and the same elements."""

    def erf(self) -> Tensor:
        """The error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

    def erf_(self) -> Tensor:
        """The error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

    def erfc(self) -> Tensor:
        """1 - erf(input), without the cancellation."""

    def erfc_(self) -> Tensor:
        """1 - erf(input), without the cancellation."""

    def erfinv(self) -> Tensor:
        """The inverse of erf, on [-1, 1]; NaN elsewhere."""

    def erfinv_(self) -> Tensor:
        """The inverse of erf, on [-1, 1]; NaN elsewhere."""

    def exp(self) -> Tensor:
        """e to the power of input."""

    def exp2(self) -> Tensor:
        """2 to the power of input."""

    def exp2_(self) -> Tensor:
        """2 to the power of input."""

    def exp_(self) -> Tensor:
        """e to the power of input."""

    def expand(self, *size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Repeat dims of size 1, and new leading ones, without copying. -1 keeps a dim's size."""

    def expand_as(self, other: Tensor) -> Tensor: ...

    def expm1(self) -> Tensor:
        """exp(input) - 1, exact near 0."""

    def expm1_(self) -> Tensor:
        """exp(input) - 1, exact near 0."""

    def exponential_(self, lambd: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with waiting times of rate `lambd`: p(x) = λ exp(-λ x)."""

    def fill_(self, value: Any) -> Tensor:
        """Write the same value everywhere: a number, or a tensor of no dims, which then gets the gradient's sum."""

    def fill_diagonal_(self, fill_value: builtins.float, wrap: builtins.bool = ...) -> Tensor:
        """Write a number on the main diagonal; with `wrap` again and again down a tall matrix, a row apart."""

    def fix(self) -> Tensor:
        """The integer part."""

    def fix_(self) -> Tensor:
        """The integer part."""

    def flatten(self, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
        """Merge the dims from `start_dim` to `end_dim` into one."""

    def flip(self, *dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """A copy with the order along `dims` reversed."""

    def fliplr(self) -> Tensor:
        """Columns in reverse order."""

    def flipud(self) -> Tensor:
        """Rows in reverse order."""

    def float(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(float32, memory_format=memory_format)."""

    def float_power(self, exponent: Tensor | builtins.float) -> Tensor:
        """input to the power of `exponent`, computed in float64 whatever the operands are."""

    def float_power_(self, exponent: Tensor | builtins.float) -> Tensor:
        """input to the power of `exponent`, computed in float64 whatever the operands are."""

    def floor(self) -> Tensor:
        """The greatest integer that is not above."""

    def floor_(self) -> Tensor:
        """The greatest integer that is not above."""

    def floor_divide(self, other: Tensor | builtins.float) -> Tensor:
        """floor(input / other), broadcast."""

    def floor_divide_(self, other: Tensor | builtins.float) -> Tensor:
        """floor(input / other), broadcast."""

    def fmax(self, other: Tensor) -> Tensor:
        """The larger of two, or the one that is not NaN. Of equal ones the first has the gradient."""

    def fmin(self, other: Tensor) -> Tensor:
        """The smaller of two, or the one that is not NaN. Of equal ones the first has the gradient."""

    def fmod(self, other: Tensor | builtins.float) -> Tensor:
        """input - other · trunc(input / other): C's remainder, which has the sign of `input`."""

    def fmod_(self, other: Tensor | builtins.float) -> Tensor:
        """input - other · trunc(input / other): C's remainder, which has the sign of `input`."""

    def frac(self) -> Tensor:
        """What truncation leaves: input - trunc(input)."""

    def frac_(self) -> Tensor:
        """What truncation leaves: input - trunc(input)."""

    def frexp(self) -> results.frexp:
        """input = mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""

    def gather(self, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = ...) -> Tensor:
        """y[i, j, k] = input[index[i, j, k], j, k] for dim = 0, and so on for the other dims."""

    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor, broadcast; that of 0 and n is |n|."""

    def gcd_(self, other: Tensor) -> Tensor:
        """The greatest common divisor, broadcast; that of 0 and n is |n|."""

    def ge(self, other: Tensor | builtins.float) -> Tensor:
        """input ≥ other, elementwise."""

    def ge_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≥ other, elementwise."""

    def geometric_(self, p: builtins.float, *, generator: Generator | None = ...) -> Tensor:
        """Fill with the number of trials up to the first success."""

    def ger(self, vec2: Tensor) -> Tensor:
        """y_ij = input_i · vec2_j"""

    def greater(self, other: Tensor | builtins.float) -> Tensor:
        """input > other, elementwise."""

    def greater_(self, other: Tensor | builtins.float) -> Tensor:
        """input > other, elementwise."""

    def greater_equal(self, other: Tensor | builtins.float) -> Tensor:
        """input ≥ other, elementwise."""

    def greater_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≥ other, elementwise."""

    def gt(self, other: Tensor | builtins.float) -> Tensor:
        """input > other, elementwise."""

    def gt_(self, other: Tensor | builtins.float) -> Tensor:
        """input > other, elementwise."""

    def half(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(float16, memory_format=memory_format)."""

    def hardshrink(self, lambd: builtins.float = ...) -> Tensor:
        """x, and 0 where |x| ≤ lambd."""

    def heaviside(self, values: Tensor) -> Tensor:
        """0 below zero, 1 above, and `values` at zero, broadcast."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """0 below zero, 1 above, and `values` at zero, broadcast."""

    def histc(self, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ...) -> Tensor:
        """How many elements fall into each of `bins` equal parts of [min, max]; of the elements' own range if both are 0."""

    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Cut along dim 1, vectors along dim 0; into as many equal parts, or before the given places."""

    def hypot(self, other: Tensor) -> Tensor:
        """sqrt(input² + other²), without overflow on the way."""

    def hypot_(self, other: Tensor) -> Tensor:
        """sqrt(input² + other²), without overflow on the way."""

    def index_add(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ...) -> Tensor:
        """A copy with alpha · source[i] added to the slice along `dim` that index[i] names, repeated ones adding up."""

    def index_add_(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: builtins.float = ...) -> Tensor:
        """A copy with alpha · source[i] added to the slice along `dim` that index[i] names, repeated ones adding up."""

    def index_copy(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """A copy where the slice along `dim` that index[i] names is source[i]."""

    def index_copy_(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """A copy where the slice along `dim` that index[i] names is source[i]."""

    def index_fill(self, dim: builtins.int, index: Any, value: Tensor | builtins.float) -> Tensor:
        """A copy where the slices along `dim` that `index` names hold one value; negative places count from the end."""

    def index_fill_(self, dim: builtins.int, index: Any, value: Tensor | builtins.float) -> Tensor:
        """A copy where the slices along `dim` that `index` names hold one value; negative places count from the end."""

    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy of the input where input[indices] is `values`, broadcast; or has `values` added to it."""

    def index_put_(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Write `values`, broadcast, to input[indices], or add them to it."""

    def index_reduce(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """A copy where the slices of `source` with the same place along `dim`, and the one there, are reduced to one."""

    def index_reduce_(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def index_select(self, dim: builtins.int, index: Any) -> Tensor:
        """The slices along `dim` that `index` names, in its order."""

    def inner(self, other: Tensor) -> Tensor:
        """Σ over the last dimension of both; the plain product if one of them has none."""

    def int(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(int32, memory_format=memory_format)."""

    def inverse(self) -> Tensor:
        """As `linalg.inv`."""

    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not zero."""

    def is_pinned(self, device: Any = ...) -> builtins.bool:
        """Whether it lies in memory of the host's that a GPU reads by itself."""

    def is_same_size(self, other: Tensor) -> builtins.bool: ...

    def isclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
        """|input - other| ≤ atol + rtol · |other|, elementwise; infinities are close to themselves."""

    def isfinite(self) -> Tensor:
        """Whether it is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Whether it is infinite, of either sign."""

    def isnan(self) -> Tensor:
        """Whether it is NaN."""

    def isneginf(self) -> Tensor:
        """Whether it is -∞."""

    def isposinf(self) -> Tensor:
        """Whether it is +∞."""

    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: each element of `input` times the whole of `other`."""

    def kthvalue(self, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> results.kthvalue:
        """The k-th least element along `dim`, counted from one, and where it stands."""

    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple, broadcast; that of 0 and n is 0."""

    def lcm_(self, other: Tensor) -> Tensor:
        """The least common multiple, broadcast; that of 0 and n is 0."""

    def ldexp(self, other: Tensor) -> Tensor:
        """input · 2^other"""

    def ldexp_(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def le(self, other: Tensor | builtins.float) -> Tensor:
        """input ≤ other, elementwise."""

    def le_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≤ other, elementwise."""

    def lerp(self, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
        """input + weight · (end - input), broadcast."""

    def lerp_(self, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
        """input + weight · (end - input), broadcast."""

    def less(self, other: Tensor | builtins.float) -> Tensor:
        """input < other, elementwise."""

    def less_(self, other: Tensor | builtins.float) -> Tensor:
        """input < other, elementwise."""

    def less_equal(self, other: Tensor | builtins.float) -> Tensor:
        """input ≤ other, elementwise."""

    def less_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≤ other, elementwise."""

    def lgamma(self) -> Tensor:
        """ln |Γ(input)|"""

    def lgamma_(self) -> Tensor:
        """ln |Γ(input)|"""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log10(self) -> Tensor:
        """Logarithm to base 10."""

    def log10_(self) -> Tensor:
        """Logarithm to base 10."""

    def log1p(self) -> Tensor:
        """log(1 + input), exact near 0."""

    def log1p_(self) -> Tensor:
        """log(1 + input), exact near 0."""

    def log2(self) -> Tensor:
        """Logarithm to base 2."""

    def log2_(self) -> Tensor:
        """Logarithm to base 2."""

    def log_(self) -> Tensor:
        """Natural logarithm."""

    def log_normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor:
        """Fill with exp of normal numbers; `mean` and `std` are those of the logarithm."""

    def log_softmax(self, dim: builtins.int | None = ..., dtype: builtins.object = ...) -> Tensor:
        """ln softmax(input) along `dim`, where no small number is taken the logarithm of; `dtype` converts the input first."""

    def logaddexp(self, other: Tensor) -> Tensor:
        """ln(exp(input) + exp(other)), without overflow on the way."""

    def logaddexp2(self, other: Tensor) -> Tensor:
        """log2(2^input + 2^other), without overflow on the way."""

    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """y_i = log Σ_{j ≤ i} exp x_j along `dim`."""

    def logdet(self) -> Tensor:
        """The logarithm of the determinant; NaN where that is negative."""

    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both are nonzero."""

    def logical_and_(self, other: Tensor) -> Tensor:
        """Whether both are nonzero."""

    def logical_not(self) -> Tensor:
        """Whether it is zero."""

    def logical_not_(self) -> Tensor:
        """Whether it is zero."""

    def logical_or(self, other: Tensor) -> Tensor:
        """Whether one is nonzero, or both."""

    def logical_or_(self, other: Tensor) -> Tensor:
        """Whether one is nonzero, or both."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one is nonzero."""

    def logical_xor_(self, other: Tensor) -> Tensor:
        """Whether exactly one is nonzero."""

    def logit(self, eps: builtins.float | None = ...) -> Tensor:
        """ln(x / (1 - x)), the inverse of sigmoid; x is kept within [eps, 1 - eps] if `eps` is given."""

    def logit_(self, eps: builtins.float | None = ...) -> Tensor:
        """ln(x / (1 - x)), the inverse of sigmoid; x is kept within [eps, 1 - eps] if `eps` is given."""

    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = ...) -> Tensor:
        """log Σ exp(input) over `dim`."""

    def long(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(int64, memory_format=memory_format)."""

    def lt(self, other: Tensor | builtins.float) -> Tensor:
        """input < other, elementwise."""

    def lt_(self, other: Tensor | builtins.float) -> Tensor:
        """input < other, elementwise."""

    def masked_fill(self, mask: Any, value: Tensor | builtins.float) -> Tensor:
        """`value` where the mask holds, else `input`; the value is a number or a tensor without dims."""

    def masked_fill_(self, mask: Any, value: Tensor | builtins.float) -> Tensor:
        """`value` where the mask holds, else `input`; the value is a number or a tensor without dims."""

    def masked_scatter(self, mask: Any, source: Tensor) -> Tensor:
        """The elements of `source` in order, one for each place where the mask holds; elsewhere the input."""

    def masked_scatter_(self, mask: Any, source: Tensor) -> Tensor:
        """The elements of `source` in order, one for each place where the mask holds; elsewhere the input."""

    def masked_select(self, mask: Any) -> Tensor:
        """The elements where the mask holds, in row-major order, both broadcast."""

    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product, over the last two dimensions; a vector counts as a row on the left, a column on the right."""

    def matrix_exp(self) -> Tensor:
        """Σ Aᵏ / k!, of square matrices."""

    def matrix_power(self, n: builtins.int) -> Tensor:
        """The product of n equal square matrices, by repeated squaring; of their inverses for a negative n."""

    def max(self, dim: builtins.int | Tensor | None = ..., keepdim: builtins.bool = ..., *, other: Tensor | None = ...) -> Any:
        """The greatest element, in one of three ways."""

    def maximum(self, other: Tensor) -> Tensor:
        """The larger of two, NaN if one is NaN. Equal ones share the gradient."""

    def maximum_(self, other: Tensor) -> Tensor:
        """The larger of two, NaN if one is NaN. Equal ones share the gradient."""

    def mean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Σ input / n over `dim`."""

    def median(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """The lower of the two middle elements: of all, or along `dim` with its index. NaN if there is any."""

    def min(self, dim: builtins.int | Tensor | None = ..., keepdim: builtins.bool = ..., *, other: Tensor | None = ...) -> Any:
        """The least element, in one of three ways; see `max`."""

    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of two, NaN if one is NaN. Equal ones share the gradient."""

    def minimum_(self, other: Tensor) -> Tensor:
        """The smaller of two, NaN if one is NaN. Equal ones share the gradient."""

    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices."""

    def mode(self, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> results.mode:
        """The commonest element along `dim`, the least of several such, and where it last stands."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Move dims to new positions; the others keep their order."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Move dims to new positions; the others keep their order."""

    def msort(self) -> Tensor:
        """The elements in order along the first dimension."""

    def mul(self, other: Tensor | builtins.float) -> Tensor:
        """input · other, broadcast."""

    def mul_(self, other: Tensor | builtins.float) -> Tensor:
        """input · other, broadcast."""

    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
        """Indices drawn with the weights that each row of the input holds; they need not sum to one."""

    def multiply(self, other: Tensor | builtins.float) -> Tensor:
        """input · other, broadcast."""

    def multiply_(self, other: Tensor | builtins.float) -> Tensor:
        """input · other, broadcast."""

    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)"""

    def mvlgamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def nan_to_num(self, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
        """Other numbers for NaN, +∞ and -∞: without `posinf` and `neginf`, the largest and the lowest of the dtype."""

    def nan_to_num_(self, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor:
        """`nan_to_num` in place."""

    def nanmean(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """The mean over `dim` of what is not NaN."""

    def nanmedian(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """As `median`, of the elements that are not NaN."""

    def nanquantile(self, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
        """As `quantile`, of the elements that are not NaN."""

    def nansum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Σ input over `dim`, NaN counting as zero."""

    def narrow(self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
        """The `length` places along `dim` from `start` on: a view."""

    def ne(self, other: Tensor | builtins.float) -> Tensor:
        """input ≠ other, elementwise."""

    def ne_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≠ other, elementwise."""

    def neg(self) -> Tensor:
        """-input"""

    def neg_(self) -> Tensor:
        """-input"""

    def negative(self) -> Tensor:
        """-input"""

    def negative_(self) -> Tensor:
        """-input"""

    def new(self, *data: Any, device: Any = ...) -> Tensor:
        """PyTorch's older `new_empty(size)` and `new_tensor(data)` in one, in the input's dtype."""

    def new_empty(self, *size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Uninitialised memory."""

    def new_full(self, size: Sequence[builtins.int], fill_value: builtins.float, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor: ...

    def new_ones(self, *size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor: ...

    def new_tensor(self, data: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """`tl.tensor(data)` with the dtype and on the device of the tensor."""

    def new_zeros(self, *size: Any, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor: ...

    def nextafter(self, other: Tensor) -> Tensor:
        """The next number after the input towards `other`."""

    def nextafter_(self, other: Tensor) -> Tensor:
        """The next number after the input towards `other`."""

    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """The places of all elements that are not zero: one a row, or as a tuple of vectors to index with."""

    def norm(self, p: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
        """(Σ |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the nuclear norm of matrices."""

    def normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: ...

    def not_equal(self, other: Tensor | builtins.float) -> Tensor:
        """input ≠ other, elementwise."""

    def not_equal_(self, other: Tensor | builtins.float) -> Tensor:
        """input ≠ other, elementwise."""

    def outer(self, vec2: Tensor) -> Tensor:
        """y_ij = input_i · vec2_j"""

    def permute(self, *dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Reorder the dims: dim i of the result is dim dims[i] of the input."""

    def pin_memory(self, device: Any = ...) -> Tensor:
        """A copy in memory of the host's that a GPU reads by itself: `to("cuda", non_blocking=True)` of it does not wait."""

    def pinverse(self, rcond: builtins.float = ...) -> Tensor:
        """As `linalg.pinv`, with the smallest singular values kept that PyTorch keeps here."""

    def polygamma(self, n: builtins.int) -> Tensor:
        """The n-th derivative of digamma."""

    def polygamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def positive(self) -> Tensor:
        """The input itself."""

    def pow(self, exponent: Tensor | builtins.float) -> Tensor:
        """input to the power of `exponent`, broadcast."""

    def pow_(self, exponent: Tensor | builtins.float) -> Tensor:
        """input to the power of `exponent`, broadcast."""

    def prelu(self, weight: Tensor) -> Tensor:
        """x where it is positive, elsewhere weight · x, with one weight for all channels or one for each."""

    def prod(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Π input over `dim`, or over everything."""

    def put(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy where the element number index[i] of the flattened input is source[i]; or has it added."""

    def put_(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy where the element number index[i] of the flattened input is source[i]; or has it added."""

    def qr(self, some: builtins.bool = ...) -> Any:
        """As `linalg.qr`: reduced if `some`, else complete."""

    def quantile(self, q: Tensor | builtins.float, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: builtins.str = ...) -> Tensor:
        """The elements below which the parts `q` of `dim` (or of everything) lie, interpolated; NaN if there is any."""

    def rad2deg(self) -> Tensor:
        """Radians as degrees: input · 180 / π."""

    def rad2deg_(self) -> Tensor:
        """Radians as degrees: input · 180 / π."""

    def random_(self, *bounds: builtins.int, generator: Generator | None = ...) -> Tensor:
        """random_(to), random_(from, to): fill with integers in [from, to); without bounds, up to what the dtype holds."""

    def ravel(self) -> Tensor:
        """All elements in one dim."""

    def reciprocal(self) -> Tensor:
        """1 / input"""

    def reciprocal_(self) -> Tensor:
        """1 / input"""

    def relu(self) -> Tensor:
        """max(x, 0)"""

    def relu_(self) -> Tensor:
        """max(x, 0)"""

    def remainder(self, other: Tensor | builtins.float) -> Tensor:
        """input - other · floor(input / other): Python's `%`, which has the sign of `other`."""

    def remainder_(self, other: Tensor | builtins.float) -> Tensor:
        """input - other · floor(input / other): Python's `%`, which has the sign of `other`."""

    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """The slices along `dim` whose p-norm exceeds `maxnorm`, shrunk to it."""

    def renorm_(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def repeat(self, *repeats: builtins.int | Sequence[builtins.int]) -> Tensor:
        """A copy laid side by side, `repeats[i]` times along dim i; there may be more repeats than dims, for new ones."""

    def repeat_interleave(self, repeats: Tensor | builtins.int | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor:
        """Each place along `dim` several times in a row; without `dim`, each element of the flattened tensor."""

    def reshape(self, *shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The same elements in the same order; a view where the strides allow it, else a copy. One -1 is inferred."""

    def reshape_as(self, other: Tensor) -> Tensor: ...

    def roll(self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """A copy moved by `shifts` places along `dims`; what leaves at one end enters at the other."""

    def rot90(self, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor:
        """A copy turned by `k` quarters, from the first of `dims` towards the second."""

    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """To the nearest number with that many decimals; what lies half way goes to the even one."""

    def round_(self, *, decimals: builtins.int = ...) -> Tensor:
        """To the nearest number with that many decimals; what lies half way goes to the even one."""

    def rsqrt(self) -> Tensor:
        """1 / sqrt(input)"""

    def rsqrt_(self) -> Tensor:
        """1 / sqrt(input)"""

    def rsub(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """other - alpha · input, broadcast."""

    def scatter(self, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ...) -> Tensor:
        """A copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

    def scatter_(self, dim: builtins.int, index: Any, src: Tensor | builtins.float | None = ..., *, value: builtins.float | None = ..., reduce: builtins.str | None = ...) -> Tensor:
        """A copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims."""

    def scatter_add(self, dim: builtins.int, index: Any, src: Tensor) -> Tensor:
        """A copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0, repeated places adding up."""

    def scatter_add_(self, dim: builtins.int, index: Any, src: Tensor) -> Tensor:
        """A copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0, repeated places adding up."""

    def scatter_reduce(self, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """A copy where the elements of `src` with the same place, and the one there, are reduced to one."""

    def scatter_reduce_(self, dim: builtins.int, index: Any, src: Tensor, reduce: builtins.str, *, include_self: builtins.bool = ...) -> Tensor:
        """A copy where the elements of `src` with the same place, and the one there, are reduced to one."""

    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at one place along `dim`, without that dim: a view."""

    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy with `src` at one place along `dim`."""

    def sgn(self) -> Tensor:
        """-1, 0 or 1: the same as `sign`, as there are no complex numbers here."""

    def sgn_(self) -> Tensor:
        """-1, 0 or 1: the same as `sign`, as there are no complex numbers here."""

    def short(self, memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(int16, memory_format=memory_format)."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))"""

    def sigmoid_(self) -> Tensor:
        """1 / (1 + exp(-x))"""

    def sign(self) -> Tensor:
        """-1, 0 or 1."""

    def sign_(self) -> Tensor:
        """-1, 0 or 1."""

    def signbit(self) -> Tensor:
        """Whether the sign bit is set: for negative numbers, -0.0 included."""

    def sin(self) -> Tensor:
        """Sine of an angle in radians."""

    def sin_(self) -> Tensor:
        """Sine of an angle in radians."""

    def sinc(self) -> Tensor:
        """sin(πx) / πx, and 1 at 0."""

    def sinc_(self) -> Tensor:
        """sin(πx) / πx, and 1 at 0."""

    def sinh(self) -> Tensor:
        """Hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """Hyperbolic sine."""

    def slice_scatter(self, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
        """A copy with `src` at the places start, start + step, ... below `end` along `dim`."""

    def slogdet(self) -> Any:
        """As `linalg.slogdet`."""

    def softmax(self, dim: builtins.int | None = ..., dtype: builtins.object = ...) -> Tensor:
        """Exponential weights along `dim`, summing to one; `dtype` converts the input first."""

    def sort(self, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> results.sort:
        """The elements along `dim` in order, and where each one stood. Equal elements always keep their order."""

    def split(self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Views of `split_size` places each, the last perhaps fewer; or of the given sizes."""

    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Views of the given sizes along a dim."""

    def sqrt(self) -> Tensor:
        """Square root."""

    def sqrt_(self) -> Tensor:
        """Square root."""

    def square(self) -> Tensor:
        """input · input, as an integer for booleans."""

    def square_(self) -> Tensor:
        """input · input, as an integer for booleans."""

    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor:
        """Drop the dims of size 1: all of them, or those in `dim`."""

    def squeeze_(self, dim: Any = ...) -> Tensor: ...

    def std(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
        """The square root of `var`."""

    def sub(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input - alpha · other, broadcast."""

    def sub_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input - alpha · other, broadcast."""

    def subtract(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input - alpha · other, broadcast."""

    def subtract_(self, other: Tensor | builtins.float, *, alpha: builtins.float = ...) -> Tensor:
        """input - alpha · other, broadcast."""

    def sum(self, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ...) -> Tensor:
        """Σ input over `dim`."""

    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the dims along which a tensor of that size would be broadcast to this one's."""

    def svd(self, some: builtins.bool = ...) -> Any:
        """U, S and V, not Vᵀ, of the singular value decomposition: reduced if `some`, else with square U and V."""

    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims."""

    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor: ...

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims."""

    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor: ...

    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and numbers stay as they are."""

    def t_(self) -> Tensor: ...

    def take(self, index: Any) -> Tensor:
        """The elements of the flattened input at these places; negative ones count from the end."""

    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """As `gather`, the other dims broadcast; without `dim`, of the flattened input. Negative indices are taken too."""

    def tan(self) -> Tensor:
        """Tangent of an angle in radians."""

    def tan_(self) -> Tensor:
        """Tangent of an angle in radians."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """Hyperbolic tangent."""

    def tensor_split(self, indices_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """Views of nearly equal sizes, the larger first; or cut before the given indices, as Python slices are."""

    def tile(self, *dims: Any) -> Tensor:
        """As `repeat`; where there are fewer repeats than dims, the first dims are not repeated."""

    def to(self, *args: Any, dtype: Any = ..., device: Any = ..., other: Tensor | None = ..., non_blocking: builtins.bool = ..., copy: builtins.bool = ..., memory_format: MemoryFormat | None = ...) -> Tensor:
        """to(dtype), to(device), to(device, dtype), to(other): the tensor itself if nothing changes, unless `copy`."""

    def to_dense(self, dtype: Any = ...) -> Tensor:
        """The tensor itself, as all are dense."""

    def topk(self, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> results.topk:
        """The k greatest (or least) elements along `dim`, in order whatever `sorted` says, and where they stood."""

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""

    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dims."""

    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor: ...

    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """The elements on and below a diagonal, zero above; of each matrix in the last two dims."""

    def tril_(self, diagonal: builtins.int = ...) -> Tensor:
        """The elements on and below a diagonal, zero above; of each matrix in the last two dims."""

    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """The elements on and above a diagonal, zero below; of each matrix in the last two dims."""

    def triu_(self, diagonal: builtins.int = ...) -> Tensor:
        """The elements on and above a diagonal, zero below; of each matrix in the last two dims."""

    def true_divide(self, other: Tensor | builtins.float) -> Tensor:
        """input / other, broadcast."""

    def true_divide_(self, other: Tensor | builtins.float) -> Tensor:
        """input / other, broadcast."""

    def trunc(self) -> Tensor:
        """The integer part."""

    def trunc_(self) -> Tensor:
        """The integer part."""

    def type(self, dtype: Any = ..., non_blocking: builtins.bool = ...) -> Any:
        """The tensor converted to a dtype; without one, the name of PyTorch's class for the tensor's own."""

    def type_as(self, other: Tensor) -> Tensor:
        """The tensor with the dtype and on the device of `other`."""

    def unbind(self, dim: builtins.int = ...) -> builtins.tuple[Tensor, ...]:
        """The slices along a dim, each without it."""

    def unflatten(self, dim: builtins.int, *sizes: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Split one dim into several; one of their sizes may be -1."""

    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """All windows of `size` places along a dim, `step` apart, as a new last dim: a view."""

    def uniform_(self, from_: builtins.float = ..., to: builtins.float = ..., *, generator: Generator | None = ..., **named: builtins.float) -> Tensor:
        """Fill with numbers uniform in [from, to)."""

    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """The elements, or the slices along `dim`, each once and in order; NaN are all different."""

    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """As `unique`, without sorting: of equal neighbours one is left."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a dim of size 1 before position `dim`."""

    def unsqueeze_(self, dim: builtins.int) -> Tensor: ...

    def var(self, dim: Any = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor:
        """Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased` is another word for correction=1, the default."""

    def vdot(self, tensor: Tensor) -> Tensor:
        """The inner product of two vectors."""

    def view(self, *size: Any, dtype: Any = ...) -> Tensor:
        """view(size): the same memory in another shape. view(dtype): the same memory read as another dtype."""

    def view_as(self, other: Tensor) -> Tensor: ...

    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Tensor, ...]:
        """Cut along dim 0; into as many equal parts, or before the given places."""

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, else `other`."""

    def xlogy(self, other: Tensor | builtins.float) -> Tensor:
        """input · ln(other), 0 where the input is 0 unless `other` is NaN."""

    def xlogy_(self, other: Tensor | builtins.float) -> Tensor:
        """input · ln(other), 0 where the input is 0 unless `other` is NaN."""

    def zero_(self) -> Tensor: ...
