"""The Wishart distribution of positive definite matrices.

Letters: D the number of rows of a matrix.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tallow.core.apply import apply
from tallow.core.creation import arange, as_tensor
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint
from tallow.distributions.distribution import Number, Shape
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.distributions.gamma import reparameterized_gamma
from tallow.distributions.multivariate_normal import MatrixDistribution
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn
from tallow.ops.decomposition import linalg_cholesky
from tallow.ops.linalg import linalg_solve_triangular


class Wishart(MatrixDistribution, ExponentialFamily):
    """Sum of the outer products of df normal vectors of covariance Σ; df may be any real number above D - 1.

    log p(X) = ½ (df - D - 1) ln det X - ½ tr(Σ⁻¹ X) - ½ df (D ln 2 + ln det Σ) - ln Γ_D(½ df)

    Args:    as torch.distributions.Wishart; one of the three matrices

    Shapes:  df (...), matrices (..., D, D): batch_shape is (...), event_shape (D, D)
    Source:  sampling: Bartlett 1933, Proceedings of the Royal Society of Edinburgh 53
    """

    support: ClassVar = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        df: Number,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._given_matrix(covariance_matrix, precision_matrix, scale_tril)
        df = df if isinstance(df, Tensor) else as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        size = matrix.shape[-1]
        if bool((df <= size - 1).any()):
            raise ArgumentError(f"Wishart: df must be above {size - 1} for matrices of {size} rows, got {df!r}")
        batch_shape = PUBLIC["tl"]["broadcast_shapes"](matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        matrix = self.__dict__[name] = matrix.expand(*batch_shape, *matrix.shape[-2:])
        super().__init__(batch_shape, matrix.shape[-2:], validate_args)
        self._factorize(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        above = self.df - self._event_shape[-1] - 1
        return above.masked_fill(above <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (covariance.square() + products)

    def _halves(self, df: Tensor) -> Tensor:
        """Return (df - i) / 2 for each row i."""
        return 0.5 * (df.unsqueeze(-1) - arange(self._event_shape[-1], dtype=df.dtype, device=df.device))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * reparameterized_gamma(self._halves(self.df), shape[:-1])
        below = randn(shape, dtype=chi2.dtype, device=chi2.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + chi2.sqrt().diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        factor, size = apply(linalg_cholesky, self._validate_sample(value)), self._event_shape[-1]
        log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        trace = (
            apply(linalg_solve_triangular, self._unbroadcasted_scale_tril, factor, upper=False).square().sum((-2, -1))
        )
        scale = self.df * (0.5 * size * math.log(2) + self._half_log_det())
        return 0.5 * (self.df - size - 1) * log_det - 0.5 * trace - scale - (0.5 * self.df).mvlgamma(size)

    def entropy(self) -> Tensor:
        size, half = self._event_shape[-1], 0.5 * self.df
        digammas = self._halves(self.df).digamma().sum(-1)
        scale = (size + 1) * (self._half_log_det() + 0.5 * size * math.log(2))
        return scale + half.mvlgamma(size) - (half - 0.5 * (size + 1)) * digammas + half * size

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        matrix, power = natural_params
        size = self._event_shape[-1]
        half_log_det = apply(linalg_cholesky, -matrix).diagonal(dim1=-2, dim2=-1).log().sum(-1)
        half_df = power + 0.5 * (size + 1)
        return half_df.mvlgamma(size) - 2 * half_df * half_log_det
