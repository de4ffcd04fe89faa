"""What comes out of a file, compared with what it is to stand in place of: before anything is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any

import numpy as np

from tallow.tensor import Tensor

NUMBERS = int | float | np.integer | np.floating


def fault(own: Any, value: Any, infinite: bool = False) -> str | None:
    """What keeps `value` from standing in place of `own`, if anything does.

    A number may be a tensor of one element, on either side. None and a flag stand for each other, as in the options
    that say "whatever is best"; where there is None, any plain value may be.

    Args:  infinite: whether numbers may be, too
    """
    if _is_number(own) or (isinstance(own, Tensor) and own.numel() == 1):
        return number_fault(value, infinite)
    if own is None:
        return None if value is None or isinstance(value, bool | str) else number_fault(value, infinite)
    if isinstance(own, bool):
        return None if value is None or isinstance(value, bool) else _not(value, "True or False")
    if isinstance(own, str):
        return None if isinstance(value, str) else _not(value, "a string")
    if isinstance(own, Counter):
        return _counts_fault(value)
    if isinstance(own, dict):
        if not isinstance(value, dict) or own.keys() != value.keys():
            return _not(value, f"a dict of {', '.join(map(str, own))}")
        return _first(fault(own[name], value[name], infinite) for name in own)
    if isinstance(own, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(own):
            return _not(value, f"{len(own)} values")
        return _first(fault(mine, theirs, infinite) for mine, theirs in zip(own, value, strict=True))
    return None  # of a class of somebody's own, which alone knows


def attributes_fault(own: dict[str, Any] | None, value: Any) -> str | None:
    """What keeps attributes from being set on an object that has `own`; None is no object's, and sets none."""
    if value is None or own is None:
        return None if isinstance(value, dict | None) else _not(value, "a dict of attributes")
    if not isinstance(value, dict) or not value.keys() <= own.keys():
        return _not(value, f"a dict of {', '.join(own)}")
    return _first(fault(own[name], each) for name, each in value.items())


def number_fault(value: Any, infinite: bool = False) -> str | None:
    """What keeps a value from being a number, if anything does."""
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.dtype.is_complex:
            return f"has shape {tuple(value.shape)}; expected a number"
        value = value.item()
    if not _is_number(value):
        return _not(value, "a number")
    try:
        holds = not isnan(value) if infinite else isfinite(value)
    except OverflowError:  # an integer beyond all floats
        holds = False
    return None if holds else f"is {value!r:.40}"


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def _counts_fault(value: Any) -> str | None:
    holds = isinstance(value, Mapping) and all(
        type(key) is int and type(count) is int and 0 < count < 2**31 for key, count in value.items()
    )
    return None if holds else _not(value, "how often each epoch counts")


def _not(value: Any, expected: str) -> str:
    return f"is {value!r:.80}; expected {expected}"


def _first(faults: Any) -> str | None:
    return next(filter(None, faults), None)


# ------------------------------------------------------------------------------------------------------------- options

Check = Callable[[Any], bool]


def _each(value: Any, count: int, holds: Check) -> bool:
    return isinstance(value, list | tuple) and len(value) == count and all(map(holds, value))


def _at_least_0(value: Any) -> bool:
    return bool(value >= 0)


def _is_eps(value: Any) -> bool:
    """A number; or the two of Adafactor, of which the first may be None."""
    several = value if isinstance(value, list | tuple) else (value,)
    return all(each is None or (_is_number(each) and each >= 0) for each in several)


# Options that an update would fail or overflow with where they are out of range. A learning rate is not among them:
# schedules may leave one a hair below zero.
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
    "adjust_lr_fn": ("None or a rule of Muon's", lambda value: value in (None, "original", "match_rms_adamw")),
    "betas": ("two numbers from 0 to less than 1", lambda value: _each(value, 2, lambda beta: bool(0 <= beta < 1))),
    "etas": ("one below and one above 1", lambda value: _each(value, 2, _at_least_0) and value[0] < 1 < value[1]),
    "step_sizes": ("the smallest and the largest", lambda v: _each(v, 2, _at_least_0) and v[0] <= v[1]),
    **dict.fromkeys(
        ("max_iter", "max_eval", "history_size"), ("a positive integer", lambda value: type(value) is int and value > 0)
    ),
    "line_search_fn": ("None or 'strong_wolfe'", lambda value: value in (None, "strong_wolfe")),
}


def option_fault(name: str, own: Any, value: Any) -> str | None:
    """What keeps a loaded option from standing in place of an optimizer's own, if anything does."""
    if wrong := fault(own, value):
        return wrong
    expected, holds = RANGES.get(name, ("", lambda value: True))
    return None if holds(value) else _not(value, expected)
