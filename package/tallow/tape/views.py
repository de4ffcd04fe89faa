"""Views: how each was made, so that the same view can be taken of another array, such as a gradient of its base."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.tape.broadcast import fit

Fields = tuple[Any, ...]  # those of `View`


class View(NamedTuple):
    """The op that made a view from its parent, and how the parent was made if that is a view too.

    A tensor notes these fields in a plain tuple, which takes a third of the time: most views never need them.

    Attributes:
        function: the op's array function.
        rest, kwargs: its arguments after the parent's array.
        output: which output of an op with several; None for an op with one.
    """

    function: Callable[..., Any]
    rest: Sequence[Any]
    kwargs: dict[str, Any]
    output: int | None
    parent: Fields | None

    def make(self, array: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the view of an array of the parent's shape, and what maps its gradient to one of the parent."""
        value, backward = self.function(array, *self.rest, **self.kwargs)
        if self.output is None:
            return value, _alone(backward)
        return value[self.output], _one_of(backward, value, self.output)

    def _from_the_base(self) -> Iterator[View]:
        """Yield the views from the base to this one."""
        steps = []
        view: View | None = self
        while view is not None:
            steps.append(view)
            view = None if view.parent is None else View(*view.parent)
        return reversed(steps)

    def of(self, array: Array) -> Array:
        """Return the same view of an array of the base's shape."""
        for step in self._from_the_base():
            array, _ = step.make(array)
        return array

    def backward_to(self, base: Array) -> ToBase:
        """Return what maps a gradient of the view to one of its base."""
        steps, layout = [], Layout(base)
        for step in self._from_the_base():
            shape = base.shape
            base, back = step.make(base)
            steps.append((back, shape))
        return ToBase(self, layout, steps)


def reshaped(before: Fields | None, undo: Fields) -> Fields:
    """Return the fields that a base notes when its shape is changed in place: views made before stay views of it.

    Args:
        before: what the base has noted at earlier changes.
        undo: function, rest, kwargs and output of the view of the new shape that has the shape before.
    """
    done = () if before is None else before[1][0]
    return same, ((*done, undo),), {}, None, None


def same(array: Array, _changes: Sequence[Fields]) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    """Return the array itself: the first step of views made after these changes of their base's shape."""
    return array, lambda g: (g,)


def of_base(view: Fields, base: Fields | None) -> Fields:
    """Return a view of a base that has noted `base`: with the changes undone that came after the view was made."""
    function, rest, kwargs, output, parent = view
    if parent is not None:
        return function, rest, kwargs, output, of_base(parent, base)
    if base is None or function is same:
        done = rest[0] if function is same else ()
        if base is None or len(done) == len(base[1][0]):
            return view
    else:
        done = ()
    chain = base
    for undo in reversed(base[1][0][len(done) :]):
        chain = (*undo, chain)
    return chain if function is same else (function, rest, kwargs, output, chain)


class ToBase(NamedTuple):
    """The map of a view's gradient to one of its base, and its adjoint: the same view of another array."""

    view: View
    layout: Layout
    steps: list[tuple[Callable[[Array], Array], tuple[int, ...]]]

    def __call__(self, g: Array) -> Array:
        """Map a gradient."""
        for back, shape in reversed(self.steps):
            g = fit(back(g), shape, g.dtype)
        return g

    def adjoint(self, array: Array) -> Array:
        """Return a copy of the view of an array of the base's shape."""
        return self.view.of(self.layout.copy(array)).copy()


class Layout:
    """The order of an array's axes in memory. A view that is possible on the array is possible on any copy so ordered.

    A gradient may come in another order than the base, and a view such as `flatten` cannot be taken of a transposed
    array.
    """

    def __init__(self, array: Array) -> None:
        self.outermost_first = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        self.inverse = sorted(range(array.ndim), key=self.outermost_first.__getitem__)

    def copy(self, array: Array) -> Array:
        """Copy an array of the same shape into this order."""
        xp = array_module(array)
        return xp.array(array.transpose(self.outermost_first), order="C").transpose(self.inverse)


def _alone(backward: Any) -> Callable[..., Array]:
    """Return the closure of an op with one operand as a function that returns one array."""

    def back(*gs: Array) -> Array:
        (entry,) = backward(*gs)
        return entry() if callable(entry) else entry

    return back


def _one_of(backward: Any, values: Sequence[Array], index: int) -> Callable[[Array], Array]:
    """Return the closure of an op with several outputs as a function of the gradient of one; the others are zero."""
    shapes, back = [v.shape for v in values], _alone(backward)

    def for_one(g: Array) -> Array:
        xp = array_module(g)
        return back(*(g if i == index else xp.zeros(shape, g.dtype) for i, shape in enumerate(shapes)))

    return for_one
