"""The continuous Bernoulli distribution."""

from __future__ import annotations

from typing import ClassVar

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.discrete import _BinaryDistribution
from tallow.distributions.distribution import Number, Shape
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.distributions.utils import clamp_probs
from tallow.functions.sampling import rand
from tallow.nn import functional as F


class ContinuousBernoulli(_BinaryDistribution, ExponentialFamily):
    """log p(x) = x ln λ + (1 - x) ln(1 - λ) + C(λ) on [0, 1],  C(λ) = ln(2 artanh(1 - 2λ) / (1 - 2λ)), λ the probs

    Args:    as torch.distributions.ContinuousBernoulli; for probs within `lims`, where the closed forms divide zero by
        zero, series in λ - 1/2 take their place
    Source:  Loaiza-Ganem & Cunningham 2019, arXiv:1907.06845
    """

    support: ClassVar = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if "probs" in self.__dict__:
            self.__dict__["probs"] = clamp_probs(self.__dict__["probs"])
        self._lims = lims

    def _split(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return whether the series hold, λ - 1/2, and for the closed forms λ away from 1/2 and 2 artanh(1 - 2λ)."""
        probs = clamp_probs(self.probs)
        low, high = self._lims
        near = (probs > low) & (probs <= high)
        away = probs.masked_fill(near, low)
        return near, probs - 0.5, away, (-away).log1p() - away.log()

    def _log_constant(self) -> Tensor:
        near, x, away, span = self._split()
        square = x.square()
        series = 0.69314718055994531 + (4 / 3 + 104 / 45 * square) * square
        return series.where(near, (span / (1 - 2 * away)).log())

    @property
    def mean(self) -> Tensor:
        near, x, away, span = self._split()
        return (0.5 + (1 / 3 + 16 / 45 * x.square()) * x).where(near, away / (2 * away - 1) + 1 / span)

    @property
    def variance(self) -> Tensor:
        near, x, away, span = self._split()
        square = x.square()
        closed = away * (away - 1) / (1 - 2 * away).square() + 1 / span.square()
        return (1 / 12 - (1 / 15 - 128 / 945 * square) * square).where(near, closed)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        like = self.probs
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        shape = (value + self.logits).shape
        cross_entropy = F.binary_cross_entropy_with_logits(
            self.logits.expand(shape), value.expand(shape), reduction="none"
        )
        return self._log_constant() - cross_entropy

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        near, _, away, _ = self._split()
        closed = (away.pow(value) * (1 - away).pow(1 - value) + away - 1) / (2 * away - 1)
        return value.where(near, closed).masked_fill(value <= 0, 0.0).masked_fill(value >= 1, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        near, _, away, span = self._split()
        return value.where(near, ((-away).log1p() - (-away + value * (2 * away - 1)).log1p()) / span)

    def entropy(self) -> Tensor:
        return -self.mean * self.logits - (-clamp_probs(self.probs)).log1p() - self._log_constant()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (eta,) = natural_params
        near = eta.abs() < 0.02  # beyond, the next term of the series is above the rounding of float64
        away, square = eta.masked_fill(near, 1.0), eta.square()
        return (eta / 2 + square / 24 - square.square() / 2880).where(near, (away.expm1() / away).log())
