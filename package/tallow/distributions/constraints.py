"""Constraints on the values of parameters and samples, as torch.distributions.constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.ops.decomposition import linalg_eigvalsh
from tallow.ops.joining import cat as cat_op
from tallow.ops.joining import stack as stack_op


class Constraint:
    """A region of values. A subclass defines `check`.

    Attributes:
        event_dim: the number of last dims that `check` reduces.
        is_discrete: whether the values are integers.
    """

    event_dim = 0
    is_discrete = False

    def check(self, value: Tensor) -> Tensor:
        """Return for each event whether its value lies in the region.

        Shapes:  value (..., *event) -> (...)
        """
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class _Independent(Constraint):
    """A constraint whose events have `reinterpreted_batch_ndims` more dims, each of which must satisfy the base."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete

    def check(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return inside.flatten(inside.ndim - n).all(-1) if n else inside

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that satisfy the constraint of every component of a mixture.

    Args:
        base_constraint: the support of the components, whose last batch dim is that of the mixture.
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.event_dim, self.is_discrete = base_constraint.event_dim, base_constraint.is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint})"


class _Cat(Constraint):
    """Values whose parts along `dim`, of the given lengths, satisfy a constraint each.

    Args:    as torch.distributions.constraints.cat; each length is 1 by default
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ArgumentError(f"constraints.cat: {len(self.lengths)} lengths for {len(self.cseq)} constraints")
        self.event_dim = max(constraint.event_dim for constraint in self.cseq)
        self.is_discrete = any(constraint.is_discrete for constraint in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = zip(self.cseq, value.split(self.lengths, self.dim), strict=True)
        checks = [independent(c, self.event_dim - c.event_dim).check(part) for c, part in parts]
        dim = (self.dim - value.ndim if self.dim >= 0 else self.dim) + self.event_dim  # among the dims of the checks
        return apply(cat_op, checks, dim) if dim < 0 else apply(stack_op, checks).all(0)


class _Stack(Constraint):
    """Values whose slices along `dim` satisfy a constraint each.

    Args:    as torch.distributions.constraints.stack
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        event_dim = max(constraint.event_dim for constraint in self.cseq)
        self.event_dim = event_dim + 1 if dim + event_dim < 0 else event_dim
        self.is_discrete = any(constraint.is_discrete for constraint in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        checks = [c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim), strict=True)]
        return apply(stack_op, checks, self.dim)


class _Bounded(Constraint):
    """A constraint with bounds, which its text shows."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.lstrip('_')}({bounds})"


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Interval(_Between):
    """Values within [lower_bound, upper_bound]."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Values within [lower_bound, upper_bound)."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Integers within [lower_bound, upper_bound]."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Integers at or above the bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _GreaterThan(_Above):
    """Values above the bound."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """Values at or above the bound."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Values below the bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Multinomial(_Below):
    """Vectors of nonnegative numbers that sum to at most the bound; fractions may stand for expected counts."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of matrices of correlations: their rows have the length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * dtypes.finfo(value.dtype).eps  # rounding of a sum of squares
        lengths = (value.detach().square().sum(-1)).sqrt()
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-1] == value.shape[-2]
        return value.new_full(value.shape[:-2], is_square, dtype=dtypes.bool)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if value.shape[-1] != value.shape[-2]:
            return square
        return value.isclose(value.mT, atol=1e-6).flatten(-2).all(-1) & self._check_eigenvalues(value.detach())

    def _check_eigenvalues(self, value: Tensor) -> Tensor | bool:
        return True


class _PositiveSemidefinite(_Symmetric):
    def _check_eigenvalues(self, value: Tensor) -> Tensor:
        return (apply(linalg_eigvalsh, value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def _check_eigenvalues(self, value: Tensor) -> Tensor:
        return (apply(linalg_eigvalsh, value) > 0).all(-1)


class _Dependent(Constraint):
    """The constraint of a class whose instances have different ones."""

    def check(self, value: Tensor) -> Tensor:
        raise ArgumentError("a dependent constraint has no check", hint="ask the constraint of an instance")


class dependent_property(property, _Dependent):
    """A property whose value is the constraint of an instance, as torch.distributions' `dependent_property`."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> dependent_property:
        """Decorate, after `@dependent_property(is_discrete=False, event_dim=0)`."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Return whether the constraint is that of a class whose instances have different ones."""
    return isinstance(constraint, _Dependent)


# The classes under the names that programs call them by.
independent = _Independent
cat = _Cat
stack = _Stack
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial

dependent = _Dependent()
real = _Real()
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
real_vector = independent(real, 1)
nonnegative_vector = independent(nonnegative, 1)
