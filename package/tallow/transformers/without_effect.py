"""Arguments that transformers has and that change no answer here: they are taken, with a warning that names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tallow.errors import TallowWarning, warn

# Arguments by name, and the values that ask for nothing else than what happens here.
Neutral: TypeAlias = Mapping[str, tuple[Any, ...]]

ATTENTION: Neutral = {
    **dict.fromkeys(("attn_implementation", "experts_implementation"), (None, "eager", "sdpa")),
    "use_flash_attention_2": (None, False),
}


def effective(owner: str, arguments: Mapping[str, Any], neutral: Neutral) -> dict[str, Any]:
    """Return the arguments that have an effect; warn of the others, unless they have a value of `neutral`.

    Args:    owner: the function or class that takes them
    """
    useless = [name for name, values in neutral.items() if name in arguments and not _is_in(arguments[name], values)]
    if useless:
        warn(f"{owner}: no effect: {', '.join(f'{name}={arguments[name]!r:.80}' for name in useless)}", TallowWarning)
    return {name: value for name, value in arguments.items() if name not in neutral}


def _is_in(value: Any, values: tuple[Any, ...]) -> bool:
    """Return whether a value, or each value of a dictionary by parts of a model, is one of `values`."""
    if isinstance(value, dict) and value:
        return all(_is_in(each, values) for each in value.values())
    return any(str(value) == each if isinstance(each, str) else value is each for each in values)
