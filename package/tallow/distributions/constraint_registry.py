"""Tables of the transforms from unconstrained values to constraints, as torch.distributions.constraint_registry.

`biject_to` gives bijections, for densities; `transform_to` gives any transform that reaches the constraint, for
optimization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.distributions import constraints, transforms
from tallow.distributions.constraints import Constraint
from tallow.distributions.transforms import Transform
from tallow.errors import ArgumentTypeError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Table of functions that make a transform for a constraint, by the class of the constraint.

    Calling it with a constraint returns the transform from unconstrained values to it.

    Example:
        >>> from tallow.distributions import biject_to, constraints
        >>> biject_to(constraints.simplex)
        StickBreakingTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function that takes a constraint of this class and returns a transform; also as a decorator.

        Args:
            constraint: a class of constraints, or an instance, which means its class.
        Raises:  ArgumentTypeError for what is not a constraint
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise ArgumentTypeError(f"register: expected a class of constraints or a constraint, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Return the transform to the constraint.

        Raises:  NotImplementedError for a constraint whose class is not registered
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform to {constraint} is registered; see ConstraintRegistry.register")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _above(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _below(constraint: Any) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _register_common(to: ConstraintRegistry) -> None:
    """Register what both tables have; `to` itself finds the transforms of parts."""

    def independent(constraint: Any) -> Transform:
        return transforms.IndependentTransform(to(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> Transform:
        return transforms.CatTransform([to(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> Transform:
        return transforms.StackTransform([to(c) for c in constraint.cseq], constraint.dim)

    to.register(constraints.real, lambda _: transforms.identity_transform)
    to.register(constraints.independent, independent)
    to.register(constraints.greater_than, _above)
    to.register(constraints.greater_than_eq, _above)
    to.register(constraints.less_than, _below)
    to.register(constraints.interval, _between)
    to.register(constraints.half_open_interval, _between)
    to.register(constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform())
    to.register(constraints.cat, cat)
    to.register(constraints.stack, stack)


_register_common(biject_to)
_register_common(transform_to)
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform())
