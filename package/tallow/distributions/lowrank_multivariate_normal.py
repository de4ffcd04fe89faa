"""The normal distribution of vectors whose covariance is of low rank, but for its diagonal.

Letters: D the number of elements of a vector; R the rank.
"""

from __future__ import annotations

from typing import ClassVar

from tallow.core.apply import apply
from tallow.core.creation import eye
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.continuous import LOG_ROOT_TWO_PI
from tallow.distributions.distribution import Distribution, Shape
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn
from tallow.ops.decomposition import linalg_cholesky
from tallow.ops.linalg import linalg_solve_triangular


class LowRankMultivariateNormal(Distribution):
    """MultivariateNormal with the covariance W Wᵀ + diag(d),  W the cov_factor and d the cov_diag

    log_prob takes O(D R²): with the Woodbury identity and the matrix determinant lemma, it solves systems of the
    R x R matrix I + Wᵀ diag(d)⁻¹ W only.

    Args:    as torch.distributions.LowRankMultivariateNormal

    Shapes:  loc, cov_diag (..., D), cov_factor (..., D, R): batch_shape is (...), event_shape (D,)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: ClassVar = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        shapes = tuple(loc.shape), tuple(cov_factor.shape), tuple(cov_diag.shape)
        fit = loc.ndim >= 1 and cov_factor.ndim >= 2 and cov_diag.ndim >= 1
        if not fit or cov_factor.shape[-2:-1] != loc.shape[-1:] or cov_diag.shape[-1:] != loc.shape[-1:]:
            raise ArgumentError(
                "LowRankMultivariateNormal: expected loc (..., D), cov_factor (..., D, R) and cov_diag (..., D), got "
                f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
            )
        batch_shape = PUBLIC["tl"]["broadcast_shapes"](shapes[0][:-1], shapes[1][:-2], shapes[2][:-1])
        self.loc = loc.expand(*batch_shape, *loc.shape[-1:])
        self.cov_factor = cov_factor.expand(*batch_shape, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*batch_shape, *cov_diag.shape[-1:])
        super().__init__(batch_shape, loc.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return apply(linalg_cholesky, self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        part = apply(linalg_solve_triangular, self._inner_factor(), self._scaled_factor().mT, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - part.mT @ part

    def _scaled_factor(self) -> Tensor:
        return self.cov_factor / self.cov_diag.unsqueeze(-1)

    def _inner_factor(self) -> Tensor:
        """Return the Cholesky factor of I + Wᵀ diag(d)⁻¹ W."""
        rank = self.cov_factor.shape[-1]
        identity = eye(rank, dtype=self.loc.dtype, device=self.loc.device)
        return apply(linalg_cholesky, identity + self.cov_factor.mT @ self._scaled_factor())

    def _half_log_det(self) -> Tensor:
        inner = self._inner_factor().diagonal(dim1=-2, dim2=-1)
        return inner.log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape, rank = self._extended_shape(sample_shape), self.cov_factor.shape[-1]
        common = randn((*shape[:-1], rank, 1), dtype=self.loc.dtype, device=self.loc.device)
        own = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.cov_factor @ common).squeeze(-1) + self.cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        difference = self._validate_sample(value) - self.loc
        projected = self._scaled_factor().mT @ difference.unsqueeze(-1)
        part = apply(linalg_solve_triangular, self._inner_factor(), projected, upper=False).squeeze(-1)
        distance = (difference.square() / self.cov_diag).sum(-1) - part.square().sum(-1)
        return -0.5 * distance - self._half_log_det() - self._event_shape[0] * LOG_ROOT_TWO_PI

    def entropy(self) -> Tensor:
        return self._event_shape[0] * (0.5 + LOG_ROOT_TWO_PI) + self._half_log_det()
