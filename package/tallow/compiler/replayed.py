"""Functions of tallow that a plan calls again: they make arrays, draw random numbers, write to them, clip gradients."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tallow.compiler.recording import Unknown
from tallow.core import creation
from tallow.functions import dropout, indexing, like, sampling
from tallow.nn.utils import clip_grad

MADE = "arange empty eye full linspace logspace ones scalar_tensor tensor tril_indices triu_indices zeros"
LIKE = "empty_like full_like ones_like zeros_like new_empty new_full new_ones new_zeros"
DRAWN = "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm"


@dataclass(frozen=True)
class Replayed:
    """A function that plans call.

    Attributes:
        has_effect: it draws from the generator, or writes to its arguments.
    """

    function: Any
    has_effect: bool

    def arguments(self, frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call that has just begun. Raises: Unknown for data that may change unseen."""
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames
        args = [values[name] for name in names[: code.co_argcount]]
        keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        kwargs = {name: values[name] for name in keywords}
        at = code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & inspect.CO_VARARGS:
            args += values[names[at]]
            at += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs |= values[names[at]]
        if kwargs.get("generator") is not None:
            raise Unknown("a generator")
        if code.co_name == "tensor" and _has_arrays(args[0]):
            raise Unknown("an array that may change")
        return args, kwargs


def _has_arrays(data: Any) -> bool:
    return isinstance(data, np.ndarray | np.generic) or (
        isinstance(data, list | tuple) and any(_has_arrays(part) for part in data)
    )


@cache
def replayed_functions() -> dict[CodeType, Replayed]:
    """Return the functions by their code."""
    table: dict[CodeType, Replayed] = {}
    for module, names, has_effect in (
        (creation, MADE, False),
        (like, LIKE, False),
        (sampling, DRAWN, True),
        (dropout, "draw_keep", True),
        (indexing, "as_element", False),
        (indexing, "places_in", False),
        (indexing, "put_at_once", True),
        (clip_grad, "get_total_norm", False),
        (clip_grad, "scale_gradients", True),
    ):
        for name in names.split():
            function = getattr(module, name, None)
            if function is not None:
                table[inspect.unwrap(function).__code__] = Replayed(function, has_effect)
    return table
