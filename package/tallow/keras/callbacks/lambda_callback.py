"""A callback made of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.callbacks.callback import Callback


class LambdaCallback(Callback):
    """Calls the functions given by the names of hooks: `LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs))`.

    Raises:  ArgumentTypeError for a name that is no hook
    """

    def __init__(self, **hooks: Callable[..., Any] | None) -> None:
        super().__init__()
        for name, function in hooks.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ArgumentTypeError(f"LambdaCallback: there is no hook {name!r}")
            if function is not None:
                setattr(self, name, _with_logs_by_place(function))


def _with_logs_by_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that passes everything by place: the function may call its arguments what it likes."""

    def hook(*where: int, logs: Any = None) -> None:
        function(*where, logs)

    return hook
