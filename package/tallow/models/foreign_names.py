"""Arguments that people know from transformers: tallow's functions name their own in the error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from tallow.errors import ArgumentTypeError

P = ParamSpec("P")
R = TypeVar("R")

IN_SAMPLER = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty")
# transformers' arguments, and what to write in their place.
OWN = {
    **{name: f"sample=Sampler({name}=...)" for name in IN_SAMPLER},
    "do_sample": "sample=Sampler()",
    "max_new_tokens": "max_tokens",
    "stop_strings": "stop",
    "stopping_criteria": "stop, or end the loop over the pieces",
    "streamer": "a loop over the pieces, which come one by one",
    "logits_processor": "processors",
    "torch_dtype": "dtype",
    "device_map": "device",
    "load_in_8bit": 'quant="int8"',
    "load_in_4bit": 'quant="q4_0"',
    "quantization_config": "quant",
}


def unknown_arguments(function: str, names: Iterable[str]) -> ArgumentTypeError:
    """Return the error for arguments that a function does not have."""
    names = sorted(names)
    known = [f"{OWN[name]} for {name}" for name in names if name in OWN]
    hint = f"write {'; '.join(known)}. tallow.transformers has transformers' arguments" if known else None
    return ArgumentTypeError(f"{function}() has no argument {', '.join(names)}", hint=hint)


def refuses_foreign(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse transformers' names of its arguments with a hint.

    Raises:  (the function) ArgumentTypeError for an argument of `OWN`
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not OWN.keys().isdisjoint(kwargs):
            raise unknown_arguments(function.__qualname__, OWN.keys() & kwargs.keys())
        return function(*args, **kwargs)

    return call
