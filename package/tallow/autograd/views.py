"""How a view was made, so that the same view can be taken of another array of its base's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tallow.autograd.broadcast import fit
from tallow.devices import array_module
from tallow.dtypes import Array


class View(NamedTuple):
    """The op that made a view from its parent, and the parent's own `View` if that is one too.

    Attributes:
        make: takes an array of the parent's shape; returns the view of it, and what takes a gradient of the view back
            to one of the parent.
    """

    make: Callable[[Array], tuple[Array, Callable[[Array], Array]]]
    parent: View | None

    def _from_the_base(self) -> Iterator[View]:
        steps = []
        view: View | None = self
        while view is not None:
            steps.append(view)
            view = view.parent
        return reversed(steps)

    def of(self, array: Array) -> Array:
        """The same view of an array of the base's shape."""
        for step in self._from_the_base():
            array, _ = step.make(array)
        return array

    def backward_to(self, base: Array) -> Callable[[Array], Array]:
        """What takes a gradient of the view back to one of its base."""
        steps = []
        for step in self._from_the_base():
            shape = base.shape
            base, back = step.make(base)
            steps.append((back, shape))

        def backward(g: Array) -> Array:
            for back, shape in reversed(steps):
                g = fit(back(g), shape, g.dtype)
            return g

        return backward


class Layout:
    """The order in memory of an array's axes: a view that is possible on it is possible on any array ordered so."""

    def __init__(self, array: Array) -> None:
        self.outermost_first = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        self.inverse = sorted(range(array.ndim), key=self.outermost_first.__getitem__)

    def copy(self, array: Array) -> Array:
        xp = array_module(array)
        return xp.array(array.transpose(self.outermost_first), order="C").transpose(self.inverse)
