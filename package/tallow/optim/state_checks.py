"""Validate the state from a file against the state it replaces, before anything changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor

NUMBERS = int | float | np.integer | np.floating


def fault(own: Any, value: Any, infinite: bool = False) -> str | None:
    """Return why `value` cannot replace `own`, or None if it can.

    A number may be a one-element tensor on either side. None and a bool may replace each other, as in options where
    None means "automatic"; any plain value may replace None.

    Args:  infinite: whether infinite numbers are valid
    """
    if _is_number(own) or (isinstance(own, Tensor) and own.numel() == 1):
        return number_fault(value, infinite)
    if own is None:
        return None if value is None or isinstance(value, bool | str) else number_fault(value, infinite)
    if isinstance(own, bool):
        return None if value is None or isinstance(value, bool) else _unexpected(value, "True or False")
    if isinstance(own, str):
        return None if isinstance(value, str) else _unexpected(value, "a string")
    if isinstance(own, Counter):
        return _counts_fault(value)
    if isinstance(own, dict):
        if not isinstance(value, dict) or own.keys() != value.keys():
            return _unexpected(value, f"a dict of {', '.join(map(str, own))}")
        return _first_problem(fault(own[name], value[name], infinite) for name in own)
    if isinstance(own, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(own):
            return _unexpected(value, f"{len(own)} values")
        return _first_problem(fault(own_item, item, infinite) for own_item, item in zip(own, value, strict=True))
    return None  # an object of a custom class, which only the class can validate


def attributes_fault(own: dict[str, Any] | None, value: Any) -> str | None:
    """Return why attributes cannot be set on an object that has `own`, or None if they can; None sets none."""
    if value is None or own is None:
        return None if isinstance(value, dict | None) else _unexpected(value, "a dict of attributes")
    if not isinstance(value, dict) or not value.keys() <= own.keys():
        return _unexpected(value, f"a dict of {', '.join(own)}")
    return _first_problem(fault(own[name], item) for name, item in value.items())


def number_fault(value: Any, infinite: bool = False) -> str | None:
    """Return why a value is not a valid number, or None if it is."""
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.dtype.is_complex:
            return f"has shape {tuple(value.shape)}; expected a number"
        value = value.item()
    if not _is_number(value):
        return _unexpected(value, "a number")
    try:
        is_valid = not isnan(value) if infinite else isfinite(value)
    except OverflowError:  # an integer too large for a float
        is_valid = False
    return None if is_valid else f"is {value!r:.40}"


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def _counts_fault(value: Any) -> str | None:
    is_valid = isinstance(value, Mapping) and all(
        type(key) is int and type(count) is int and 0 < count < 2**31 for key, count in value.items()
    )
    return None if is_valid else _unexpected(value, "the count of each epoch")


def _unexpected(value: Any, expected: str) -> str:
    return f"is {value!r:.80}; expected {expected}"


def _first_problem(faults: Any) -> str | None:
    return next(filter(None, faults), None)


# ------------------------------------------------------------------------------------------------------------- options

Check = Callable[[Any], bool]


def _is_list_of(value: Any, count: int, check: Check) -> bool:
    return isinstance(value, list | tuple) and len(value) == count and all(map(check, value))


def _at_least_0(value: Any) -> bool:
    return bool(value >= 0)


def _is_eps(value: Any) -> bool:
    """Return whether a value is a valid epsilon: a number, or Adafactor's two, of which the first may be None."""
    values = value if isinstance(value, list | tuple) else (value,)
    return all(v is None or (_is_number(v) and v >= 0) for v in values)


# Options whose updates would fail or overflow outside these ranges. The learning rate is not included, because
# schedules may leave it slightly below zero.
RANGES: dict[str, tuple[str, Check]] = {
    **dict.fromkeys(
        ("alpha", "weight_decay", "lr_decay", "initial_accumulator_value", "momentum_decay", "momentum"),
        ("at least 0", _at_least_0),
    ),
    "eps": ("at least 0", _is_eps),
    "rho": ("from 0 to 1", lambda value: bool(0 <= value <= 1)),
    "d": ("at least 1", lambda value: bool(value >= 1)),
    "beta2_decay": ("at most 0", lambda value: bool(value <= 0)),
    "ns_steps": ("an integer from 0 to 99", lambda value: type(value) is int and 0 <= value <= 99),
    "adjust_lr_fn": ("None or a rule of Muon", lambda value: value in (None, "original", "match_rms_adamw")),
    "betas": (
        "two numbers from 0 to less than 1",
        lambda value: _is_list_of(value, 2, lambda beta: bool(0 <= beta < 1)),
    ),
    "etas": (
        "one number below 1 and one above",
        lambda value: _is_list_of(value, 2, _at_least_0) and value[0] < 1 < value[1],
    ),
    "step_sizes": ("the minimum and the maximum", lambda v: _is_list_of(v, 2, _at_least_0) and v[0] <= v[1]),
    **dict.fromkeys(
        ("max_iter", "max_eval", "history_size"), ("a positive integer", lambda value: type(value) is int and value > 0)
    ),
    "line_search_fn": ("None or 'strong_wolfe'", lambda value: value in (None, "strong_wolfe")),
}


def option_fault(name: str, own: Any, value: Any) -> str | None:
    """Return why a loaded option cannot replace an optimizer's own, or None if it can."""
    if problem := fault(own, value):
        return problem
    expected, check = RANGES.get(name, ("", lambda value: True))
    return None if check(value) else _unexpected(value, expected)
