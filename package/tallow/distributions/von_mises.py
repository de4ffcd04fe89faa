"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import ClassVar

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.creation import arange, full
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.functions.sampling import rand

POINTS = 32  # of half a period: the error of the trapezoid rule is I_64(x), below 1e-17 I_0(x) for x ≤ 50
ASYMPTOTIC_ABOVE = 50.0
TERMS = 12


def scaled_bessel(order: int, x: Tensor) -> Tensor:
    """Return exp(-x) I_order(x) of positive x, the modified Bessel function of an integer order.

    By the trapezoid rule for DLMF 10.32.3, and for large x by the expansion in 1 / x, DLMF 10.40.1.

    Shapes:  (...) -> (...)
    """
    theta = arange(POINTS + 1, dtype=x.dtype, device=x.device) * (math.pi / POINTS)
    small = x.clamp(max=ASYMPTOTIC_ABOVE).unsqueeze(-1)
    values = (order * theta).cos() * (small * (theta.cos() - 1)).exp()
    integral = (values.sum(-1) - 0.5 * (values[..., 0] + values[..., -1])) / POINTS

    large = x.clamp(min=ASYMPTOTIC_ABOVE)
    term = series = large * 0 + 1
    for k in range(1, TERMS):
        term = term * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * large)
        series = series + term
    return integral.where(x <= ASYMPTOTIC_ABOVE, series * (2 * math.pi * large).rsqrt())


class VonMises(Distribution):
    """log p(x) = κ cos(x - loc) - ln 2π - ln I_0(κ) for angles x in radians,  κ the concentration

    Samples lie within [-π, π). `mean` and `variance` are the circular ones.

    Args:    as torch.distributions.VonMises
    Source:  sampling: Best & Fisher 1979, Applied Statistics 28(2)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support: ClassVar = constraints.real

    def __init__(self, loc: Number, concentration: Number, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 1 - scaled_bessel(1, self.concentration) / scaled_bessel(0, self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        cosine = (self._validate_sample(value) - self.loc).cos()
        log_bessel = scaled_bessel(0, self.concentration).log()  # less κ
        return self.concentration * (cosine - 1) - math.log(2 * math.pi) - log_bessel

    @no_grad()
    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        kappa = self.concentration.double().expand(shape)  # float32 would reject all proposals of a small κ
        tau = 1 + (1 + 4 * kappa.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 / kappa + kappa).where(kappa < 1e-5, (1 + rho.square()) / (2 * rho))
        angle = full(shape, math.nan, dtype=dtypes.float64, device=kappa.device)
        while bool(angle.isnan().any()):
            z, u, side = (rand(shape, dtype=dtypes.float64, device=kappa.device) for _ in range(3))
            z = (math.pi * z).cos()
            f = ((1 + r * z) / (r + z)).clamp(-1, 1)
            c = kappa * (r - f)
            accepted = (c * (2 - c) > u) | ((c / u).log() + 1 >= c)
            angle = ((side - 0.5).sign() * f.acos()).where(accepted, angle)
        return ((angle + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
