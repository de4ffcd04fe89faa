"""The LKJ distribution of matrices of correlations.

Letters: D the number of rows of a matrix.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.distributions.gamma import Beta
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn
from tallow.nn import functional as F


class LKJCholesky(Distribution):
    """Cholesky factor L of a matrix of correlations with a density proportional to det(L Lᵀ) ** (concentration - 1).

    Args:    as torch.distributions.LKJCholesky; dim is D

    Shapes:  concentration (...): batch_shape is (...), event_shape (D, D)
    Source:  Lewandowski, Kurowicka & Joe 2009, Journal of Multivariate Analysis 100(9), section 3.2, the onion method
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support: ClassVar = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Number = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim must be at least 2, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _rows(self) -> Tensor:
        """Return 1 to D - 1, the number of elements of the later rows below the diagonal."""
        return arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    @no_grad()
    def sample(self, sample_shape: Shape = ()) -> Tensor:
        count = self._rows()
        beta = Beta(0.5 * count, self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - count), validate_args=False)
        squares = F.pad(beta.sample(sample_shape), (1, 0), value=0)  # of the length of each row below the diagonal
        normal = randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
        lengths = normal.norm(dim=-1, keepdim=True).clamp(min=dtypes.finfo(squares.dtype).tiny)
        below = normal / lengths * squares.sqrt().unsqueeze(-1)
        rest = (1 - below.square().sum(-1)).clamp(min=dtypes.finfo(squares.dtype).tiny)
        return below + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        log_diagonal = self._validate_sample(value).diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        # L_ii has the exponent D - i of the change from L Lᵀ to L, rows counted from 1, and 2 (concentration - 1).
        power = 2 * (self.concentration - 1).unsqueeze(-1) + (self.dim - 1 - self._rows())
        return (power * log_diagonal).sum(-1) - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        """Return the logarithm of the integral, the product over rows of their Beta and sphere parts, page 1999."""
        n = self.dim - 1
        last = self.concentration + 0.5 * n
        return 0.5 * n * math.log(math.pi) + (last - 0.5).mvlgamma(n) - n * last.lgamma()
