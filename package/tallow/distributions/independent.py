"""Independent: reinterpret batch dims as event dims."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint, independent
from tallow.distributions.distribution import Distribution, Shape, sum_rightmost
from tallow.errors import ArgumentError


class Independent(Distribution):
    """Treat the last `reinterpreted_batch_ndims` batch dims as event dims; their log_probs are summed.

    Args:    as torch.distributions.Independent
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if n > len(batch):
            raise ArgumentError(f"Independent: reinterpreted_batch_ndims={n} exceeds the {len(batch)} batch dims")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        split = len(batch) - n
        super().__init__(batch[:split], (*batch[split:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Constraint | None:
        base = self.base_dist.support
        return independent(base, self.reinterpreted_batch_ndims) if base and self.reinterpreted_batch_ndims else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        expanded = super().expand(batch_shape, _instance)
        count = len(self._event_shape) - len(self.base_dist.event_shape)
        expanded.base_dist = self.base_dist.expand((*batch_shape, *self._event_shape[:count]))
        return expanded

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
