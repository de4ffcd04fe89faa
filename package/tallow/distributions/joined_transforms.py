"""Transforms of the parts of a tensor along a dim."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint
from tallow.distributions.distribution import sum_rightmost
from tallow.distributions.transform import Transform
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.ops.joining import cat, stack


class _Joined(Transform):
    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        for transform in tseq:
            if not isinstance(transform, Transform):
                kind = type(transform).__name__
                raise ArgumentTypeError(f"{type(self).__name__}: tseq must hold Transforms, not {kind}")
        super().__init__(cache_size)
        self.transforms = [transform.with_cache(cache_size) for transform in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(transform.bijective for transform in self.transforms)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _length(self) -> int:
        return len(self.transforms)

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != self._length():
            raise ArgumentError(
                f"{type(self).__name__}: expected {self._length()} elements along dim {self.dim}, got a tensor of "
                f"shape {tuple(x.shape)}"
            )
        return self._parts(x)

    def _mapped(self, x: Tensor, transforms: Sequence[Callable[[Tensor], Tensor]]) -> list[Tensor]:
        return [transform(part) for transform, part in zip(transforms, self._pieces(x), strict=True)]

    def _log_dets(self, x: Tensor, y: Tensor) -> list[Tensor]:
        parts = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        return [transform.log_abs_det_jacobian(before, after) for transform, before, after in parts]


class CatTransform(_Joined):
    """Apply a transform to each of the parts of given lengths along `dim`, and concatenate the results.

    Args:    as torch.distributions.transforms.CatTransform; each length is 1 by default
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(f"CatTransform: {len(self.lengths)} lengths for {len(self.transforms)} transforms")

    @property
    def event_dim(self) -> int:
        return max(transform.event_dim for transform in self.transforms)

    @property
    def length(self) -> int:
        """The number of elements along `dim`."""
        return sum(self.lengths)

    @property
    def domain(self) -> Constraint:
        return constraints.cat([transform.domain for transform in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Constraint:
        return constraints.cat([transform.codomain for transform in self.transforms], self.dim, self.lengths)

    def _length(self) -> int:
        return self.length

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return apply(cat, self._mapped(x, self.transforms), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return apply(cat, self._mapped(y, [transform.inv for transform in self.transforms]), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self._log_dets(x, y), self.transforms, strict=True)
        log_dets = [sum_rightmost(log_det, self.event_dim - transform.event_dim) for log_det, transform in pairs]
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + self.event_dim  # among the dims of log_dets
        return apply(cat, log_dets, dim) if dim < 0 else apply(stack, log_dets).sum(0)


class StackTransform(_Joined):
    """Apply a transform to each slice along `dim`, and stack the results.

    Args:    as torch.distributions.transforms.StackTransform
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @property
    def domain(self) -> Constraint:
        return constraints.stack([transform.domain for transform in self.transforms], self.dim)

    @property
    def codomain(self) -> Constraint:
        return constraints.stack([transform.codomain for transform in self.transforms], self.dim)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return apply(stack, self._mapped(x, self.transforms), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return apply(stack, self._mapped(y, [transform.inv for transform in self.transforms]), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return apply(stack, self._log_dets(x, y), self.dim)
