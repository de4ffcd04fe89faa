"""Names of `torch.compiler` that tallow itself does not have."""

from __future__ import annotations

from typing import Any

from tallow.compiler import is_compiling

__all__ = [
    "assume_constant_result",
    "is_dynamo_compiling",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

is_dynamo_compiling = is_compiling


def assume_constant_result(fn: Any) -> Any:
    """Return the function itself."""
    return fn


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Any:
    """Return a decorator that returns the function itself."""
    return assume_constant_result


def wrap_numpy(fn: Any) -> Any:
    """Return the function itself: it runs as Python."""
    return fn


class set_stance:
    """A setting of what the compiler does with new shapes. It has no effect; also a block, or a decorator."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance, self.options = stance, options

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False. Processes do not exchange whether they compile."""
    return False
