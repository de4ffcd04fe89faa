"""The normal distribution of vectors.

Letters: D the number of elements of a vector.
"""

from __future__ import annotations

from typing import ClassVar

from tallow.core.apply import apply
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.continuous import LOG_ROOT_TWO_PI
from tallow.distributions.distribution import Distribution, Shape
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn
from tallow.ops.decomposition import linalg_cholesky
from tallow.ops.linalg import linalg_inv, linalg_solve_triangular

MATRICES = "covariance_matrix", "precision_matrix", "scale_tril"


class MatrixDistribution(Distribution):
    """Base class of distributions with a positive definite matrix, given as it is, inverted, or by its factor.

    The given one is an attribute; the two others are computed when they are asked for.
    """

    _unbroadcasted_scale_tril: Tensor  # the Cholesky factor; packages override it, so it has PyTorch's name

    def _given_matrix(self, *matrices: Tensor | None) -> tuple[str, Tensor]:
        """Return the only matrix that is not None, and its name."""
        given = [(name, matrix) for name, matrix in zip(MATRICES, matrices, strict=True) if matrix is not None]
        kind = type(self).__name__
        if len(given) != 1:
            raise ArgumentError(f"{kind}: pass exactly one of {', '.join(MATRICES)}; got {len(given)}")
        ((name, matrix),) = given
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ArgumentError(f"{kind}: expected {name} (..., D, D), got {tuple(matrix.shape)}")
        return name, matrix

    def _factorize(self, name: str, matrix: Tensor) -> None:
        if name == "precision_matrix":
            # P = U Uᵀ with U upper triangular, so that Σ = (U⁻¹)ᵀ U⁻¹: the factor of the flipped matrix, flipped back.
            factor = apply(linalg_cholesky, matrix.flip(-2, -1)).flip(-2, -1)
            self._unbroadcasted_scale_tril = apply(linalg_inv, factor.mT)
        else:
            self._unbroadcasted_scale_tril = matrix if name == "scale_tril" else apply(linalg_cholesky, matrix)

    def __getattr__(self, name: str) -> Tensor:
        if name in MATRICES:
            if name == "scale_tril":
                return self._unbroadcasted_scale_tril
            if name == "covariance_matrix":
                return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT
            inverse = apply(linalg_inv, self._unbroadcasted_scale_tril)
            return inverse.mT @ inverse
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(MatrixDistribution):
    """log p(x) = -½ (x - loc)ᵀ Σ⁻¹ (x - loc) - ½ ln det Σ - D/2 ln 2π,  Σ the covariance matrix, L its Cholesky factor

    Args:    as torch.distributions.MultivariateNormal; one of the three matrices

    Shapes:  loc (..., D), matrices (..., D, D): batch_shape is (...), event_shape (D,)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: ClassVar = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._given_matrix(covariance_matrix, precision_matrix, scale_tril)
        if loc.ndim < 1:
            raise ArgumentError(f"MultivariateNormal: expected loc (..., D), got {tuple(loc.shape)}")
        batch_shape = PUBLIC["tl"]["broadcast_shapes"](matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch_shape, loc.shape[-1])
        matrix = self.__dict__[name] = matrix.expand(*batch_shape, *matrix.shape[-2:])
        super().__init__(batch_shape, loc.shape[-1:], validate_args)
        self._factorize(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        difference = (self._validate_sample(value) - self.loc).unsqueeze(-1)
        standard = apply(linalg_solve_triangular, self._unbroadcasted_scale_tril, difference, upper=False).squeeze(-1)
        return -0.5 * standard.square().sum(-1) - self._half_log_det() - self._event_shape[0] * LOG_ROOT_TWO_PI

    def entropy(self) -> Tensor:
        return self._event_shape[0] * (0.5 + LOG_ROOT_TWO_PI) + self._half_log_det()
