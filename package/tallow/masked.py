"""Reductions and normalizations that leave out masked elements, as torch.masked.

A mask is True where an element counts. A masked element is replaced by the identity of the reduction: 0 for a sum, 1
for a product, -inf for a maximum. What has no elements is that identity; a mean of nothing is NaN. Tensors that carry
a mask are refused.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, NoReturn

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, UnsupportedError

__all__ = [
    "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor", "log_softmax",
    "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin",
    "std", "sum", "var",
]  # fmt: skip

Dims = int | tuple[int, ...] | None


def _filled(input: Tensor, mask: Tensor | None, identity: float | bool, dtype: Any = None) -> Tensor:
    x = input if dtype is None else input.to(dtype)
    return x if mask is None else x.masked_fill(~mask.expand(x.shape), identity)


def _lowest(dtype: Any) -> float:
    return (
        -math.inf
        if dtype.is_floating_point or dtype.is_complex
        else False
        if dtype is dtypes.bool
        else dtypes.iinfo(dtype).min
    )


def _highest(dtype: Any) -> float:
    return math.inf if dtype.is_floating_point else True if dtype is dtypes.bool else dtypes.iinfo(dtype).max


def _dims(input: Tensor, dim: Dims) -> tuple[int, ...]:
    dims = builtins.range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return tuple(d % builtins.max(input.ndim, 1) for d in dims)


def _counts(input: Tensor, dim: Dims, mask: Tensor | None, keepdim: bool = False) -> Tensor:
    """Return the number of elements that each reduction leaves."""
    ones = input.detach().new_ones(input.shape).long()
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def _of_sums(dtype: Any) -> Any:
    """Return the dtype of a sum or product: integers and booleans become int64."""
    return dtype if dtype.is_floating_point or dtype.is_complex else dtypes.int64


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Sum the elements that count along `dim`; all dims without it."""
    x = _filled(input, mask, 0, _of_sums(input.dtype) if dtype is None else dtype)
    return x.sum(_dims(x, dim), keepdim) if x.ndim else x.clone()


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Multiply the elements that count along `dim`; all dims without it."""
    x = _filled(input, mask, 1, _of_sums(input.dtype) if dtype is None else dtype)
    for d in sorted(_dims(x, dim), reverse=True):
        x = x.prod(d, keepdim)
    return x


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the running sum along `dim`, to which masked elements add nothing."""
    return _filled(input, mask, 0, dtype).cumsum(dim, dtype=dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the running product along `dim`, which masked elements do not change."""
    return _filled(input, mask, 1, dtype).cumprod(dim, dtype=dtype)


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the greatest element that counts along `dim`; the gradient is divided among equal ones."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _lowest(x.dtype)).amax(_dims(x, dim), keepdim)


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the least element that counts along `dim`; the gradient is divided among equal ones."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _highest(x.dtype)).amin(_dims(x, dim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the index of the greatest element that counts, in the dtype of the input, as PyTorch does."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _lowest(x.dtype)).argmax(dim, keepdim).to(x.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the index of the least element that counts, in the dtype of the input, as PyTorch does."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _highest(x.dtype)).argmin(dim, keepdim).to(x.dtype)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the mean of the elements that count along `dim`; NaN if there are none.

    Raises:  ArgumentError for integers without `dtype`
    """
    kind = input.dtype if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise ArgumentError(
            f"mean(): Could not infer output dtype. Input dtype must be a floating point dtype. Got: {input.dtype}",
            hint="pass dtype=tallow.float32",
        )
    total = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _counts(input, dim, mask, keepdim)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the lower median of the elements that count along `dim`; NaN if there are none, or one is NaN."""
    x = input if dtype is None else input.to(dtype)
    if mask is None:
        return x.median(dim, keepdim).values
    return _filled(x, mask, math.nan).nanmedian(dim, keepdim).values


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord) of the elements that count along `dim`."""
    x = _filled(input, mask, math.inf if ord == -math.inf else 0, dtype)
    return x.norm(ord, _dims(x, dim), keepdim)


def _variance(
    input: Tensor, dim: Dims, unbiased: bool | None, correction: float | None, keepdim: bool, dtype: Any, mask: Any
) -> Tensor:
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    x = input if dtype is None else input.to(dtype)
    x = x if x.is_floating_point() or x.is_complex() else x.float()
    counts = _counts(x, dim, mask, True)
    centred = x - sum(x, dim, keepdim=True, mask=mask) / counts
    squares = sum(centred * centred.conj(), dim, keepdim=keepdim, mask=mask)
    counts = counts if keepdim else counts.reshape(squares.shape)
    return squares / (counts - correction).clamp(min=0)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the elements that count along `dim`, divided by their number less `correction`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the root of `var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of the exponentials of the elements that count."""
    x = input if dtype is None else input.to(dtype)
    x = _filled(x, mask, _lowest(x.dtype))
    return x.logsumexp(_dims(x, dim), keepdim).to(x.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return ln(exp(input) + exp(other)), where a masked element counts as -inf."""
    return _filled(input, input_mask, -math.inf, dtype).logaddexp(_filled(other, other_mask, -math.inf, dtype))


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the softmax over the elements that count along `dim`; masked ones are 0, and NaN if none counts."""
    return _filled(input, mask, -math.inf, dtype).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the logarithm of `softmax`."""
    return _filled(input, mask, -math.inf, dtype).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the softmax of the negative elements that count."""
    return (-_filled(input, mask, math.inf, dtype)).softmax(dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Divide by the norm of the elements that count along `dim`, or by `eps` if it is smaller. Masked ones are 0."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, 0) / norm(x, ord, dim, keepdim=True, mask=mask).clamp(min=eps)


def is_masked_tensor(obj: object) -> bool:
    """Return False: there are no tensors that carry a mask."""
    return False


def masked_tensor(data: object, mask: object, requires_grad: bool = False) -> NoReturn:
    """Raise UnsupportedError: tensors that carry a mask do not exist here."""
    raise UnsupportedError("masked_tensor is not supported", hint="pass mask= to the functions of tallow.masked")


as_masked_tensor = masked_tensor
