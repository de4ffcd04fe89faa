"""Functions of tallow.special. Written by scripts/build_stubs.py."""

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

def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the derivative of lgamma."""

def entr(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return -x · ln x, 0 at 0 and -inf below. The slope is inf at 0."""

def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 1 - erf(input), without cancellation."""

def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse of erf on [-1, 1]; NaN elsewhere."""

def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 2 to the power of each element."""

def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(input) - 1, accurate near 0."""

def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return log(1 + input), accurate near 0."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return ln softmax(input) along `dim`, without taking the logarithm of small numbers."""

def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

def multigammaln(input: Tensor, p: builtins.int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)."""

def ndtr(input: Tensor) -> Tensor:
    """Return the cumulative distribution function of the standard normal distribution, erfc(-x / √2) / 2."""

def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma."""

def round(input: Tensor, *, decimals: builtins.int = ..., out: Any = ...) -> Tensor:
    """Round to the given number of decimals; ties go to the even digit."""

def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return sin(πx) / πx, and 1 at 0."""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return exponential weights along `dim` that sum to one; `dtype` converts the input first."""

def xlogy(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""
