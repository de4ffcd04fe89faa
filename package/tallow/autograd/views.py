"""How a view was made, so that the same view can be taken of another array of its base's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallow.dtypes import Array


class View(NamedTuple):
    """The op that made a view from its parent, and the parent's own `View` if that is one too."""

    make: Callable[[Array], Array]
    parent: View | None


def replay(tensor: Any, array: Array) -> Array:
    """Apply to `array`, shaped like the base of the view `tensor`, the view ops that made it."""
    steps = []
    view = tensor._view
    while view is not None:
        steps.append(view)
        view = view.parent
    for step in reversed(steps):
        array = step.make(array)
    return array
