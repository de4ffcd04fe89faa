"""torch.fx.experimental.symbolic_shapes: conditions on unknown sizes. Sizes are known, so each is True or False."""

from __future__ import annotations

from typing import Any


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition on an unknown size, of which there is none."""


def guard_or_false(a: Any) -> bool:
    """Return whether a condition is true."""
    return bool(a)


guard_or_true = statically_known_true = guard_or_false


def free_symbols(val: Any) -> set[Any]:
    """Return the unknown sizes in a value: none."""
    return set()


free_unbacked_symbols = free_symbols
