"""Random tensors. Each function takes a `generator`; the default is the one that `manual_seed` seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.creation import Device, Dtype, as_size, int64_or, number, place
from tallow.core.factories import creates
from tallow.core.overrides import overridable
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import default_or
from tallow.errors import ArgumentTypeError, DtypeError, NumericError, ShapeError
from tallow.functions.filling import copy_
from tallow.ops.checks import unsupported
from tallow.ops.dims import as_int
from tallow.ops.memory_format import dims_back, dims_in_memory, memory_format
from tallow.random import Generator, default_generator

HostArray = np.ndarray[Any, Any]
Shape = tuple[int, ...]
MANTISSA_BITS = {dtypes.float16: 11, dtypes.bfloat16: 8}


def _source(generator: Generator | None) -> np.random.Generator:
    if generator is None:
        return default_generator.numpy
    if not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"generator must be a Generator, not {type(generator).__name__}",
            hint="pass tl.Generator().manual_seed(seed)",
        )
    return generator.numpy


def _float_dtype(name: str, d: dtypes.dtype, or_complex: bool = False) -> dtypes.dtype:
    if not (d.is_floating_point or (or_complex and d.is_complex)):
        raise unsupported(name, d, "a floating-point dtype")
    return d


def _uniform(generator: Generator | None, shape: Shape, d: dtypes.dtype) -> HostArray:
    """Draw numbers in [0, 1) that stay below 1 when rounded to `d`."""
    if d.is_complex:  # both parts
        return _uniform(generator, (*shape, 2), d.to_real()).view(d.storage)[..., 0]
    source = _source(generator)
    if d in MANTISSA_BITS:
        steps = 2 ** MANTISSA_BITS[d]
        return np.asarray(source.integers(0, steps, shape, np.int64) / steps, np.float32)  # exact
    return np.asarray(source.random(shape, d.storage.type))


def _normal(generator: Generator | None, shape: Shape, d: dtypes.dtype) -> HostArray:
    if d.category == 3:  # complex, of variance 1, half of it in each part
        parts = _normal(generator, (*shape, 2), d.to_real())
        return np.multiply(parts, 0.5**0.5, dtype=parts.dtype).view(d.storage)[..., 0]
    return _source(generator).standard_normal(shape, np.float64 if d is dtypes.float64 else np.float32)


# ------------------------------------------------------------------------------------------------------ by size


@public("tl")
@creates
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw from the uniform distribution on [0, 1)."""
    d = default_or(dtype)
    if d.category < 2:  # neither floats nor complex numbers
        raise unsupported("rand", d, "a floating-point dtype")
    return place(_uniform(generator, as_size(sizes, "rand", size), d), d, device, requires_grad)


@public("tl")
@creates
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw from the standard normal distribution."""
    d = default_or(dtype)
    if d.category < 2:  # neither floats nor complex numbers
        raise unsupported("randn", d, "a floating-point dtype")
    return place(_normal(generator, as_size(sizes, "randn", size), d), d, device, requires_grad)


@public("tl")
@creates
def randint(
    *bounds: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw integers in [low, high): randint(high, size), randint(low, high, size).

    Dtypes: int64 by default; may be a float dtype.
    """
    if bounds and isinstance(bounds[-1], list | tuple):
        *bounds, size = bounds  # type: ignore[assignment]
    if len(bounds) == 1 and high is None:
        (high,) = bounds
    elif bounds:
        low, high, *_ = (*bounds, high)
    if size is None or high is None:
        raise ArgumentTypeError("randint: expected randint(high, size) or randint(low, high, size)")
    d = int64_or(dtype)
    drawn = _integers(generator, as_size((size,), "randint"), low, high, d, "randint")
    return place(drawn, d, device, requires_grad)


def _integers(generator: Generator | None, shape: Shape, low: int, high: int, d: dtypes.dtype, name: str) -> HostArray:
    low, high = as_int(low, name), as_int(high, name)
    if low >= high:
        raise NumericError(f"{name}: expects 'from' to be less than 'to', got from={low} >= to={high}")
    if d.category == 1 and not dtypes.iinfo(d).min <= low <= high - 1 <= dtypes.iinfo(d).max:
        raise NumericError(f"{name}: [{low}, {high}) is out of bounds for {d.name}")
    return _source(generator).integers(low, high, shape, np.int64)


@public("tl")
@creates
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""
    n = as_int(n, "randperm")
    if n < 0:
        raise ShapeError(f"randperm: n must be non-negative, got {n}")
    # Sorting random numbers gives the same order on every platform; NumPy's shuffle depends on the width of its int.
    d = int64_or(dtype)
    if d is dtypes.bool:
        raise unsupported("randperm", d, "numbers")
    keys = _source(generator).random(n)
    order = np.argsort(keys)
    if (np.diff(keys[order]) == 0).any():  # of equal keys the first comes first, which sorting takes longer for
        order = np.argsort(keys, kind="stable")
    return place(order.astype(np.int64), d, device, requires_grad)


# -------------------------------------------------------------------------------------------- after another tensor


@public("tl")
@creates
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draw from the uniform distribution on [0, 1), with the input's size, dtype and device."""
    d, device = dtype or input.dtype, device or input.device
    drawn = rand(input.shape, generator=generator, dtype=d, device=device)
    return _in_order(drawn, input, memory_format, requires_grad)


@public("tl")
@creates
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draw from the standard normal distribution, with the input's size, dtype and device."""
    d, device = dtype or input.dtype, device or input.device
    drawn = randn(input.shape, generator=generator, dtype=d, device=device)
    return _in_order(drawn, input, memory_format, requires_grad)


@public("tl")
@creates
def randint_like(
    input: Tensor,
    *bounds: int,
    low: int = 0,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draw integers in [low, high), with the input's size, dtype and device; see `randint`."""
    d, device = dtype or input.dtype, device or input.device
    result = randint(*bounds, low=low, high=high, size=input.shape, generator=generator, dtype=d, device=device)
    return _in_order(result, input, memory_format, requires_grad)


def _in_order(drawn: Tensor, like: Tensor, order: memory_format | None, requires_grad: bool) -> Tensor:
    """Copy into a memory format. The numbers at each index do not depend on the format."""
    dims = dims_in_memory(like.array.strides, order)
    if dims != tuple(range(drawn.ndim)):
        drawn.array = drawn.array.transpose(dims).copy(order="C").transpose(dims_back(dims))
    return drawn.requires_grad_(requires_grad) if requires_grad else drawn


@public("tl Tensor")
@recorded_whole
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draw ones with the probabilities in the input, or all with probability `p`; zeros otherwise."""
    if p is None and not input.is_floating_point():
        raise unsupported("bernoulli", input.dtype, "probabilities as floats")
    drawn = _bernoulli(generator, input.shape, input._host() if p is None else p)
    return place(drawn, input.dtype, input.device, False)


@public("tl")
@recorded_whole
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from Poisson distributions with the rates in the input, in its dtype."""
    rates = input._host()
    if not np.all(rates >= 0):
        raise NumericError("poisson: expected rates >= 0")
    return place(
        np.asarray(_source(generator).poisson(rates)), _float_dtype("poisson", input.dtype), input.device, False
    )


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draw from gamma distributions with the given concentrations and rate 1, in their dtype."""
    drawn = np.asarray(_source(None).standard_gamma(concentration._host()))
    return place(drawn, concentration.dtype, concentration.device, False)


@public("tl")
@recorded_whole
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw the number of successes in `count` trials with success probability `prob`, in the dtype of count."""
    trials, p = count._host(), prob._host()
    if not (np.all(trials >= 0) and np.all((p >= 0) & (p <= 1))):
        raise NumericError("binomial: expected counts >= 0 and 0 <= prob <= 1")
    drawn = np.asarray(_source(generator).binomial(trials.astype(np.int64), p))
    return place(drawn, _float_dtype("binomial", count.dtype), count.device, False)


def _bernoulli(generator: Generator | None, shape: Shape, p: Any) -> HostArray:
    if not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise NumericError("bernoulli: expected probabilities p with 0 <= p <= 1")
    return np.asarray(_source(generator).random(shape) < p)


@public("tl")
@overridable
@creates
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw from normal distributions, each element with its own mean and standard deviation; or all from one."""
    if size is not None:  # then 0-d tensors are numbers
        mean, std = (number(t) if isinstance(t, Tensor) and not t.ndim else t for t in (mean, std))
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors and size is None:
        raise ArgumentTypeError("normal: expected a size, or a tensor for mean or std")
    if tensors and size is not None:
        raise ArgumentTypeError("normal: a size goes with numbers for mean and std, not with tensors")
    d = _float_dtype("normal", tensors[0].dtype if tensors else default_or(dtype))
    m, s = (t._host() if isinstance(t, Tensor) else t for t in (mean, std))
    shape = as_size((size,), "normal") if size is not None else np.broadcast_shapes(np.shape(m), np.shape(s))
    where = tensors[0].device if tensors else device
    values = np.asarray(_checked_std(s, "normal") * _normal(generator, shape, d) + m)
    return place(values, d, where, requires_grad)


def _checked_std(std: Any, name: str) -> Any:
    if not np.all(np.asarray(std) >= 0):
        raise NumericError(f"{name}: expects all elements of std >= 0, got {np.min(std)}")
    return std


@public("tl Tensor")
@recorded_whole
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draw indices with the weights in each row of the input, which need not sum to one.

    Shapes:  input (N, V) or (V,) -> (N, num_samples) or (num_samples,), int64

    Source:  without replacement, Efraimidis & Spirakis 2006: the smallest of exponential waiting times
    """
    if not input.is_floating_point():
        raise DtypeError(f"multinomial: only supports floating-point dtypes for input, got {input.dtype.name}")
    if input.ndim not in (1, 2):
        raise ShapeError(f"multinomial: input must have 1 or 2 dims, got {input.ndim}")
    V, num_samples = input.shape[-1], as_int(num_samples, "multinomial")
    if num_samples <= 0 or (num_samples > V and not replacement):
        raise NumericError(
            f"multinomial: cannot draw {num_samples} of {V} {'with' if replacement else 'without'} replacement"
        )
    weights_NV = input._host().astype(np.float64).reshape(-1, V)
    if not np.isfinite(weights_NV).all() or (weights_NV < 0).any():
        raise NumericError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    totals_N = weights_NV.sum(axis=1)
    if not totals_N.all():
        raise NumericError("multinomial: invalid distribution: the sum of the weights is 0")
    draw = _with_replacement if replacement else _without_replacement
    drawn = draw(_source(generator), weights_NV / totals_N[:, None], num_samples)
    return place(drawn.reshape(*input.shape[:-1], num_samples), dtypes.int64, input.device, False)


def _without_replacement(source: np.random.Generator, p_NV: HostArray, count: int) -> HostArray:
    with np.errstate(divide="ignore"):
        waiting_NV = source.standard_exponential(p_NV.shape) / p_NV
    return np.argsort(waiting_NV, axis=1, kind="stable")[:, :count].astype(np.int64)


def _with_replacement(source: np.random.Generator, p_NV: HostArray, count: int) -> HostArray:
    N, V = p_NV.shape
    rows_N1 = np.arange(N, dtype=np.float64)[:, None]  # row r lives in [r, r + 1): one search serves all rows
    ladder = (np.cumsum(p_NV, axis=1) + rows_N1).ravel()
    flat = np.searchsorted(ladder, source.random((N, count)) + rows_N1, side="right").astype(np.int64)
    last_N1 = V - 1 - (p_NV[:, ::-1] > 0).argmax(axis=1).astype(np.int64)[:, None]
    return np.clip(flat - np.arange(N, dtype=np.int64)[:, None] * V, 0, last_N1)


# ------------------------------------------------------------------------------------------------------- in place


def _refill(input: Tensor, drawn: HostArray) -> Tensor:
    """Write random numbers into a tensor, as an in-place op that autograd notices."""
    return copy_(input, place(np.asarray(drawn), input.dtype, input.device, False))


@public("Tensor_")
def uniform_(
    input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **named: float
) -> Tensor:
    """Fill with numbers from the uniform distribution on [from, to), both parts of complex numbers."""
    low = named.pop("from", from_)  # `from` is a keyword of Python
    if named:
        raise ArgumentTypeError(f"uniform_: unexpected arguments {', '.join(named)}")
    d, low, to = _float_dtype("uniform_", input.dtype, or_complex=True), number(low), number(to)
    if low > to:
        raise NumericError(f"uniform_: expects a range [from, to), got from={low} > to={to}")
    return _refill(input, _uniform(generator, input.shape, d) * (to - low) + (low + low * 1j if d.is_complex else low))


@public("Tensor_")
def normal_(input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from the normal distribution. Complex numbers share the variance between their parts."""
    if input.dtype.is_complex:
        parts, scale = (
            _normal(generator, (*input.shape, 2), input.dtype.to_real()),
            _checked_std(std, "normal_") / 2**0.5,
        )
        return _refill(input, (parts[..., 0] + 1j * parts[..., 1]) * scale + mean)
    d, mean, std = _float_dtype("normal_", input.dtype), number(mean), number(std)
    return _refill(input, _normal(generator, input.shape, d) * _checked_std(std, "normal_") + mean)


@public("Tensor_")
def log_normal_(input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from a log-normal distribution; `mean` and `std` are those of the logarithm."""
    d, mean, std = _float_dtype("log_normal_", input.dtype), number(mean), number(std)
    if not std > 0:
        raise NumericError(f"log_normal_: expects std > 0, got {std}")
    return _refill(input, np.exp(_normal(generator, input.shape, d) * std + mean))


@public("Tensor_")
def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from the exponential distribution of rate `lambd`: p(x) = λ exp(-λ x)."""
    _float_dtype("exponential_", input.dtype)
    lambd = number(lambd)
    if not lambd > 0:
        raise NumericError(f"exponential_: expects lambda > 0, got {lambd}")
    return _refill(input, _source(generator).standard_exponential(input.shape) / lambd)


@public("Tensor_")
def cauchy_(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from the Cauchy distribution."""
    _float_dtype("cauchy_", input.dtype)
    median, sigma = number(median), number(sigma)
    if not sigma > 0:
        raise NumericError(f"cauchy_: expects sigma > 0, got {sigma}")
    return _refill(input, _source(generator).standard_cauchy(input.shape) * sigma + median)


@public("Tensor_")
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from the geometric distribution: the number of trials up to the first success."""
    p = number(p)
    if not 0 < p < 1:
        raise NumericError(f"geometric_: expects 0 < p < 1, got {p}")
    return _refill(input, np.ceil(np.log1p(-_source(generator).random(input.shape)) / np.log1p(-p)).clip(1))


@public("Tensor_")
def bernoulli_(input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones, with probability `p`, and zeros."""
    return _refill(input, _bernoulli(generator, input.shape, p._host() if isinstance(p, Tensor) else p))


@public("Tensor_")
def random_(
    input: Tensor, *bounds: int, to: int | None = None, generator: Generator | None = None, **named: int
) -> Tensor:
    """Fill with integers in [from, to): random_(to), random_(from, to); by default the range of the dtype."""
    if (from_ := named.pop("from", None)) is not None:  # a keyword of Python
        bounds = (from_, *bounds)
    if named:
        raise ArgumentTypeError(f"random_: unexpected arguments {', '.join(named)}")
    bounds = bounds if to is None else (*bounds, to)
    if len(bounds) == 2:
        low, high = bounds
    elif bounds:
        low, high = 0, bounds[0]
    elif input.is_floating_point():
        low, high = 0, 2 ** MANTISSA_BITS.get(input.dtype, 53 if input.dtype is dtypes.float64 else 24) + 1
    else:
        low, high = 0, dtypes.iinfo(input.dtype).max if input.dtype is not dtypes.bool else 2
    return _refill(input, _integers(generator, input.shape, low, high, input.dtype, "random_"))
