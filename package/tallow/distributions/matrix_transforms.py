"""Transforms to Cholesky factors and positive definite matrices.

Letters: D the number of rows of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.transform import Transform
from tallow.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.ops.decomposition import linalg_cholesky


class LowerCholeskyTransform(Transform):
    """Keep what is below the diagonal, take the exponential of the diagonal, and drop what is above.

    Shapes:  (..., D, D) -> (..., D, D)
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Multiply the Cholesky factor that LowerCholeskyTransform makes by its transpose.

    Shapes:  (..., D, D) -> (..., D, D)
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(apply(linalg_cholesky, y))


class CorrCholeskyTransform(Transform):
    """Cholesky factor of a matrix of correlations, from unconstrained values.

    r_ij = tanh(x_ij), the partial correlations; y_ij = r_ij √(Π_{k<j} (1 - r_ik²)) for j < i, and r_ii = 1

    Shapes:  (..., D (D - 1) / 2) -> (..., D, D)
    Source:  Lewandowski, Kurowicka & Joe 2009, Journal of Multivariate Analysis 100(9), section 2
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        limit = 1 - dtypes.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-limit, limit), diag=-1)
        rest = (1 - partial.square()).sqrt().cumprod(-1)
        rest = F.pad(rest[..., :-1], (1, 0), value=1)
        one = x.new_ones(partial.shape[-1:]).diag_embed()
        return (partial + one) * rest

    def _inverse(self, y: Tensor) -> Tensor:
        partial = tril_matrix_to_vec(y, -1) / self._rest(y).sqrt()
        return partial.atanh()

    def _rest(self, y: Tensor) -> Tensor:
        """Return 1 - Σ_{k<j} y_ik² for each j < i, as a vector."""
        used = F.pad(y.square().cumsum(-1)[..., :-1], (1, 0), value=0)
        return tril_matrix_to_vec(1 - used, -1)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_slope_of_tanh = 2 * (math.log(2) - x - F.softplus(-2 * x))
        return (0.5 * self._rest(y).log() + log_slope_of_tanh).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        count = shape[-1] if len(shape) else 0
        n = (1 + math.isqrt(1 + 8 * count)) // 2
        if not len(shape) or n * (n - 1) // 2 != count:
            raise ArgumentError(f"CorrCholeskyTransform: expected D (D - 1) / 2 values, got the shape {tuple(shape)}")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ArgumentError(f"CorrCholeskyTransform: expected square matrices, got the shape {tuple(shape)}")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)
