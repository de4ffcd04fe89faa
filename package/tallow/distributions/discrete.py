"""Discrete distributions, defined by either probabilities or logits.

Letters: V the number of categories.
"""

from __future__ import annotations

from typing import ClassVar

from tallow import dtypes
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.distributions.utils import probs_to_logits
from tallow.errors import ArgumentError
from tallow.functions.sampling import bernoulli, multinomial, rand
from tallow.nn import functional as F


def _check_exclusive(name: str, probs: object, logits: object) -> None:
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{name}: pass either probs or logits")


class _BinaryDistribution(Distribution):
    """Base class of distributions with one probability per element, given directly or as logits."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self, probs: Number | None = None, logits: Number | None = None, validate_args: bool | None = None
    ) -> None:
        _check_exclusive(type(self).__name__, probs, logits)
        name = "logits" if probs is None else "probs"
        (value,) = broadcast(logits if probs is None else probs)  # type: ignore[arg-type]
        self.__dict__[name] = value
        super().__init__(value.shape, validate_args=validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name == "probs" and "logits" in self.__dict__:
            return self.logits.sigmoid()
        if name == "logits" and "probs" in self.__dict__:
            return probs_to_logits(self.probs, is_binary=True)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def param_shape(self) -> Size:
        """The shape of the parameters: batch_shape."""
        return self._batch_shape


class Bernoulli(_BinaryDistribution, ExponentialFamily):
    """1 with probability `probs`, else 0.

    Args:    as torch.distributions.Bernoulli
    """

    support: ClassVar = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        shape = (value + self.logits).shape
        return -F.binary_cross_entropy_with_logits(self.logits.expand(shape), value.expand(shape), reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._integers(2, self.probs, expand)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return F.softplus(x)


class Geometric(_BinaryDistribution):
    """The number of failures before the first success, with success probability `probs`.

    Args:    as torch.distributions.Geometric
    """

    support: ClassVar = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs.detach() * 0

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        probs = self.probs.detach()
        uniform = rand(self._extended_shape(sample_shape), dtype=probs.dtype, device=probs.device)
        return ((-uniform).log1p() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        failure = (1 - self.probs).masked_fill((self.probs == 1) & (value == 0), 1.0)  # treats 0 · ln 0 as 0
        return value * failure.log() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class _OverCategories(Distribution):
    """A distribution over V categories, by probs (..., V), which need not sum to 1, or by logits."""

    arg_constraints: ClassVar = {
        "probs": constraints.independent(constraints.nonnegative, 1),
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        _check_exclusive(type(self).__name__, probs, logits)
        values = logits if probs is None else probs
        assert values is not None
        if values.ndim < 1:
            raise ArgumentError(f"{type(self).__name__}: expected at least one dim, got a scalar")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = values - values.logsumexp(-1, keepdim=True)
        super().__init__(values.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name == "probs" and "logits" in self.__dict__:
            return self.logits.exp()
        if name == "logits" and "probs" in self.__dict__:
            return probs_to_logits(self.probs)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _num_events(self) -> int:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"].shape[-1]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameters: (*batch_shape, V)."""
        return Size((*self._batch_shape, self._num_events))

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=dtypes.finfo(self.logits.dtype).min)  # 0 · -inf would be NaN
        return -(logits * self.probs).sum(-1)


class Categorical(_OverCategories):
    """One of V categories, by index.

    Args:    as torch.distributions.Categorical; probs need not sum to 1

    Shapes:  probs, logits (..., V): batch_shape is (...)
    """

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self.probs.detach()[..., 0] * float("nan")  # categories have no mean

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        count = 1
        for n in sample_shape:
            count *= n
        rows = self.probs.detach().reshape(-1, self._num_events)
        samples = multinomial(rows, count, True).t()
        return samples.reshape((*sample_shape, *self._batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value).long().unsqueeze(-1)
        logits = self.logits
        shape = (*(value[..., 0] + logits[..., 0]).shape, 1)
        return logits.expand(*shape[:-1], self._num_events).gather(-1, value.expand(shape)).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._integers(self._num_events, self.probs, expand).long()


class OneHotCategorical(_OverCategories):
    """One of V categories, as a one-hot vector.

    Args:    as torch.distributions.OneHotCategorical

    Shapes:  probs, logits (..., V): batch_shape is (...), event_shape (V,)
    """

    support = constraints.one_hot

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._event_shape = type(self._batch_shape)((self._num_events,))

    @property
    def _categorical(self) -> Categorical:
        name = "probs" if "probs" in self.__dict__ else "logits"
        return Categorical(**{name: self.__dict__[name]}, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(-1), self._num_events).to(self.probs.dtype)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return F.one_hot(self._categorical.sample(sample_shape), self._num_events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._validate_sample(value).argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        indices = self._categorical.enumerate_support(expand)
        return F.one_hot(indices, self._num_events).to(self.probs.dtype)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass gradients to `probs` unchanged (straight-through estimator).

    Args:    as torch.distributions.OneHotCategoricalStraightThrough
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
