"""Functions of tallow.special. Written by scripts/build_stubs.py."""

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
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expm1",
    "log1p",
    "log_softmax",
    "logit",
    "multigammaln",
    "polygamma",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]

def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """The derivative of lgamma."""

def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """The error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """1 - erf(input), without the cancellation."""

def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse of erf, on [-1, 1]; NaN elsewhere."""

def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """2 to the power of input."""

def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """exp(input) - 1, exact near 0."""

def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """log(1 + input), exact near 0."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """ln softmax(input) along `dim`, where no small number is taken the logarithm of; `dtype` converts the input first."""

def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """ln(x / (1 - x)), the inverse of sigmoid; x is kept within [eps, 1 - eps] if `eps` is given."""

def multigammaln(input: Tensor, p: builtins.int) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)"""

def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""

def round(input: Tensor, *, decimals: builtins.int = ..., out: Any = ...) -> Tensor:
    """To the nearest number with that many decimals; what lies half way goes to the even one."""

def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """sin(πx) / πx, and 1 at 0."""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Exponential weights along `dim`, summing to one; `dtype` converts the input first."""

def xlogy(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """input · ln(other), 0 where the input is 0 unless `other` is NaN."""
