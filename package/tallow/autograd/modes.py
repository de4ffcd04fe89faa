"""Recording modes: `no_grad`, `enable_grad`, `inference_mode`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    """Whether ops are recorded; each thread has its own."""

    recording = True
    inference = False


mode = _Mode()
_EXHAUSTED = object()


class _ModeSwitch:
    """A context manager, and a decorator of functions and generators, that sets the mode and puts it back."""

    recording: bool
    inference = False

    def __enter__(self) -> None:
        stack = self.__dict__.setdefault("_saved", [])
        stack.append((mode.recording, mode.inference))
        mode.recording, mode.inference = self.recording, self.inference

    def __exit__(self, *exc_info: object) -> None:
        mode.recording, mode.inference = self._saved.pop()  # type: ignore[attr-defined]

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            before = mode.recording, mode.inference
            mode.recording, mode.inference = self.recording, self.inference
            try:
                return function(*args, **kwargs)
            finally:
                mode.recording, mode.inference = before

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The mode holds while the generator runs, not while its consumer does."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)

            def resume() -> Any:
                return next(generator, _EXHAUSTED)

            advance = self(resume)
            try:
                while (item := advance()) is not _EXHAUSTED:
                    yield item
            finally:
                generator.close()

        return wrapped


class no_grad(_ModeSwitch):
    """Record nothing inside: `with no_grad():` or `@no_grad()`."""

    recording = False


class enable_grad(_ModeSwitch):
    """Record inside, even within `no_grad`."""

    recording = True


class inference_mode(_ModeSwitch):
    """As `no_grad`, and what is made inside can never take part in a recorded op."""

    def __init__(self, mode: bool = True) -> None:
        self.recording = not mode
        self.inference = mode


class set_grad_enabled(_ModeSwitch):
    """Switch recording at once, and back at the end of the block if used as one."""

    def __init__(self, mode_: bool) -> None:
        self.recording = mode_
        self._saved = [(mode.recording, mode.inference)]
        mode.recording = mode_

    def __enter__(self) -> None:
        mode.recording = self.recording


def is_grad_enabled() -> bool:
    return mode.recording


def is_inference_mode_enabled() -> bool:
    return mode.inference
