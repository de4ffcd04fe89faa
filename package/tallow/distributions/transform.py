"""The base class of transforms, and transforms that are made of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint
from tallow.distributions.distribution import sum_rightmost
from tallow.errors import ArgumentError

Shape = Sequence[int]


class Transform:
    """A function of tensors, its inverse `inv`, and the logarithm of its Jacobian's determinant.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 keeps the last input and output, so that `inv` of that very output returns that input: exact
            where the inverse is not, as for tanh of large inputs.
    """

    bijective = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"{type(self).__name__}: cache_size must be 0 or 1, not {cache_size!r}")
        self._cache_size = cache_size
        self._cached: tuple[Tensor | None, Tensor | None] = None, None

    @property
    def domain(self) -> Constraint:
        """The constraint on inputs."""
        return constraints.real

    @property
    def codomain(self) -> Constraint:
        """The constraint on outputs."""
        return constraints.real

    @property
    def sign(self) -> Any:
        """The sign of the derivative, 1 or -1.

        Raises:  NotImplementedError unless the function is monotonic, of one number
        """
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def event_dim(self) -> int:
        """The number of last dims that are transformed together."""
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, _cache_size=cache_size, _cached=(None, None))
        return other

    def __call__(self, x: Tensor) -> Tensor:
        if self._cached[0] is x:
            assert self._cached[1] is not None
            return self._cached[1]
        return self._keep(x, self._call(x))[1]

    def _inverse_call(self, y: Tensor) -> Tensor:
        if self._cached[1] is y:
            assert self._cached[0] is not None
            return self._cached[0]
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._cached = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return ln |det dy/dx|, given the input and the output.

        Shapes:  -> that of x without its last `event_dim` dims
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the shape of the output for an input's shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the shape of the input for an output's shape."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same function: their classes are the same, and their parameters equal."""
        if type(self) is not type(other):
            return False
        theirs = vars(other)
        return all(_are_equal(value, theirs[name]) for name, value in vars(self).items() if "_cache" not in name)

    __hash__ = None  # type: ignore[assignment]  # as in PyTorch: parameters may change

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _are_equal(a: Any, b: Any) -> bool:
    equal = a == b
    return bool(equal.all() if isinstance(equal, Tensor) else equal)


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._of = transform

    bijective = property(lambda self: self._of.bijective)
    domain = property(lambda self: self._of.codomain)
    codomain = property(lambda self: self._of.domain)
    sign = property(lambda self: self._of.sign)

    @property
    def inv(self) -> Transform:
        return self._of

    def with_cache(self, cache_size: int = 1) -> Transform:
        return _InverseTransform(self._of.with_cache(cache_size))

    def __call__(self, x: Tensor) -> Tensor:
        return self._of._inverse_call(x)

    def _inverse_call(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        return self._of.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._of!r})"


class ComposeTransform(Transform):
    """Apply several transforms, the first one first.

    Args:    as torch.distributions.transforms.ComposeTransform
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    def _end(self, parts: Sequence[Transform], domain: str, codomain: str) -> Constraint:
        """Return the domain of the first of the parts, with as many event dims as the later parts need."""
        if not parts:
            return constraints.real
        end: Constraint = getattr(parts[0], domain)
        event_dim = getattr(parts[-1], codomain).event_dim
        for part in reversed(parts):
            event_dim += getattr(part, domain).event_dim - getattr(part, codomain).event_dim
            event_dim = max(event_dim, getattr(part, domain).event_dim)
        extra = event_dim - end.event_dim
        return constraints.independent(end, extra) if extra else end

    @property
    def domain(self) -> Constraint:
        return self._end(self.parts, "domain", "codomain")

    @property
    def codomain(self) -> Constraint:
        return self._end(self.parts[::-1], "codomain", "domain")

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total, event_dim = x.new_zeros(() if self.parts else x.shape), self.domain.event_dim
        for part in self.parts:
            after = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, after), event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Treat `reinterpreted_batch_ndims` more last dims as one event: the log determinants are summed over them.

    Args:    as torch.distributions.transforms.IndependentTransform
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size) if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    @property
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
