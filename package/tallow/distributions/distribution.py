"""The base class of the distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.creation import arange, as_tensor
from tallow.core.public_api import PUBLIC
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.distributions.constraints import Constraint, is_dependent
from tallow.errors import ArgumentError

D = TypeVar("D", bound="Distribution")
Number = Tensor | float
Shape = Sequence[int]


class Distribution:
    """A batch of distributions over events of the same shape, as torch.distributions.Distribution.

    A subclass stores its parameters, broadcast to `batch_shape`, under the names in `arg_constraints`.

    Args:
        batch_shape: the shape of the parameters; samples of different elements are independent.
        event_shape: the shape of one sample of one distribution, () for scalars.
        validate_args: check parameters and the values passed to `log_prob`; True by default.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}  # name of a parameter -> where its values lie
    has_rsample = False  # whether gradients flow through samples to the parameters
    has_enumerate_support = False  # whether the support is finite, see `enumerate_support`
    _validate_args: bool = True  # of the class: what `validate_args=None` means

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = type(self)._validate_args if validate_args is None else validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in self.__dict__ and not is_dependent(constraint):
                    self._check(f"parameter {name}", self.__dict__[name], constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set what `validate_args=None` means; True at first."""
        Distribution._validate_args = value

    def _check(self, what: str, value: Tensor, constraint: Constraint) -> None:
        if not bool(constraint.check(value).all()):
            raise ArgumentError(
                f"{type(self).__name__}: {what} must satisfy the constraint {constraint}, but found\n{value!r}"
            )

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def support(self) -> Constraint | None:
        """The constraint on samples; None if unknown."""
        return None

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw independent samples without gradients.

        Shapes:  -> (*sample_shape, *batch_shape, *event_shape)
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw samples as `sample` does, as a differentiable function of the parameters (reparameterized)."""
        raise NotImplementedError(f"{type(self).__name__} has no reparameterized samples")

    def sample_n(self, n: int) -> Tensor:
        """Draw n samples, `sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log of the density or of the probability at `value`.

        Shapes:  value broadcasts with (*batch_shape, *event_shape) -> the same without event_shape
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def entropy(self) -> Tensor:
        """Return the entropy in nats.

        Shapes:  -> batch_shape
        """
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of the cumulative distribution function at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of the support, along a new first dim; `expand` expands them to batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def expand(self: D, batch_shape: Shape, _instance: Any = None) -> D:
        """Return the distribution with its parameters expanded to a larger batch.

        Args:    _instance: an object of a subclass to fill in, in place of a new one
        """
        expanded: Any = type(self).__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                expanded.__dict__[name] = value.expand(*batch_shape, *value.shape[len(self._batch_shape) :])
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the object that `expand` of a subclass fills in.

        Raises: NotImplementedError if the class has its own constructor, but no `expand`
        """
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"{type(self).__name__} has its own __init__: it must define expand() too")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any, support: Constraint | None = None) -> Tensor:
        """Return `value`, which must lie in the support, or in that which is given.

        Raises:  ArgumentError for a value whose shape or values are not those of a sample
        """
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{type(self).__name__}: the value must be a Tensor, not {type(value).__name__}")
        if self._validate_args:
            shape, expected = value.shape, (*self._batch_shape, *self._event_shape)
            pairs = zip(reversed(shape), reversed(expected), strict=False)
            if len(shape) < len(self._event_shape) or not all(n == m or 1 in (n, m) for n, m in pairs):
                raise ArgumentError(
                    f"{type(self).__name__}: the value's shape {tuple(shape)} does not broadcast with batch_shape "
                    f"{tuple(self._batch_shape)} + event_shape {tuple(self._event_shape)}"
                )
            support = self.support if support is None else support
            if support is not None:
                self._check("value", value, support)
        return value

    def _integers(self, n: int, like: Tensor, expand: bool) -> Tensor:
        """Return 0 to n - 1 along a new first dim, for `enumerate_support`."""
        values = arange(n, dtype=like.dtype, device=like.device).view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def __repr__(self) -> str:
        parameters = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        items = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in parameters.items()]
        return f"{type(self).__name__}({', '.join(items)})"


def broadcast(*values: Number) -> list[Tensor]:
    """Convert parameters to float tensors of a common shape; numbers take the dtype of the first tensor."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = dtypes.get_default_dtype() if like is None or not like.is_floating_point() else like.dtype
    device = None if like is None else like.device
    tensors = [v if isinstance(v, Tensor) else as_tensor(v, dtype=dtype, device=device) for v in values]
    return list(PUBLIC["tl"]["broadcast_tensors"](*tensors))


def sum_rightmost(x: Tensor, n: int) -> Tensor:
    """Sum over the last n dims."""
    return x.sum(tuple(range(-n, 0))) if n else x
