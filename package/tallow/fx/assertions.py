"""Checks that a graph can hold: functions in place of the statement `assert`."""

from __future__ import annotations

from typing import Any

from tallow.core.overrides import overridden


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition is true. While tracing, add a node that does it."""
    if overridden(_assert, (condition, message), {}) is NotImplemented and not condition:
        raise AssertionError(message)


def _assert_is_none(value: Any, message: str) -> None:
    """Raise AssertionError with the message unless the value is None. While tracing, add a node that does it."""
    if overridden(_assert_is_none, (value, message), {}) is NotImplemented and value is not None:
        raise AssertionError(message)
