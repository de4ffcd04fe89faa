"""A callback defined by functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.callbacks.callback import Callback


class LambdaCallback(Callback):
    """Call functions as hooks: `LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs))`.

    Raises:  ArgumentTypeError for an unknown hook name
    """

    def __init__(self, **hooks: Callable[..., Any] | None) -> None:
        super().__init__()
        for name, function in hooks.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ArgumentTypeError(f"LambdaCallback: unknown hook {name!r}")
            if function is not None:
                setattr(self, name, _positional_hook(function))


def _positional_hook(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook that passes all arguments by position, so that the function may name its parameters freely."""

    def hook(*position: int, logs: Any = None) -> None:
        function(*position, logs)

    return hook
