"""Constraints on the values of parameters and samples, as torch.distributions.constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.ops.decomposition import linalg_eigvalsh

Check = Callable[[Tensor], Tensor]


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


class _Region(Constraint):
    """The region where a function of the value is true."""

    def __init__(self, text: str, check: Check, event_dim: int = 0, is_discrete: bool = False) -> None:
        self.text, self._check, self.event_dim, self.is_discrete = text, check, event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self._check(value)

    def __repr__(self) -> str:
        return self.text


class _Independent(Constraint):
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


independent = _Independent


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Values within [lower_bound, upper_bound]."""
    text = f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Region(text, lambda x: (x >= lower_bound) & (x <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Values within [lower_bound, upper_bound)."""
    text = f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Region(text, lambda x: (x >= lower_bound) & (x < upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Integers within [lower_bound, upper_bound]."""
    text = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Region(text, lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound), is_discrete=True)


def greater_than(lower_bound: Any) -> Constraint:
    """Values above the bound."""
    return _Region(f"GreaterThan(lower_bound={lower_bound})", lambda x: x > lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Values at or above the bound."""
    return _Region(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: x >= lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Values below the bound."""
    return _Region(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def multinomial(upper_bound: Any) -> Constraint:
    """Vectors of nonnegative integers that sum to at most the bound."""
    return _Region(
        f"Multinomial(upper_bound={upper_bound})",
        lambda x: ((x % 1 == 0) & (x >= 0)).all(-1) & (x.sum(-1) <= upper_bound),
        event_dim=1,
        is_discrete=True,
    )


def _sums_to_one(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _is_lower_cholesky(x: Tensor) -> Tensor:
    return (x.tril() == x).flatten(-2).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_positive_definite(x: Tensor) -> Tensor:
    symmetric = x.isclose(x.mT, atol=1e-6).flatten(-2).all(-1)
    return symmetric & (apply(linalg_eigvalsh, x.detach()) > 0).all(-1)


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


dependent = _Dependent()
real = _Region("Real()", lambda x: x == x)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Region("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
one_hot = _Region("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, is_discrete=True)
nonnegative_integer = _Region("IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True)
positive_integer = _Region("IntegerGreaterThan(lower_bound=1)", lambda x: (x % 1 == 0) & (x >= 1), is_discrete=True)
simplex = _Region("Simplex()", _sums_to_one, 1)
lower_triangular = _Region("LowerTriangular()", lambda x: (x.tril() == x).flatten(-2).all(-1), 2)
lower_cholesky = _Region("LowerCholesky()", _is_lower_cholesky, 2)
positive_definite = _Region("PositiveDefinite()", _is_positive_definite, 2)
real_vector = independent(real, 1)
nonnegative_vector = independent(nonnegative, 1)
