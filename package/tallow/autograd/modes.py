"""Recording modes: `no_grad`, `enable_grad`, `inference_mode`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, overload

from tallow.dtypes import dtype

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    """Whether ops are recorded, and in which precision they compute; each thread has its own."""

    recording = True
    inference = False
    autocast: dict[str, dtype] | None = None  # device type -> the dtype that `tallow.amp.autocast` lowers to there


mode = _mode = _Mode()  # `_mode` where PyTorch calls an argument `mode`


class _ModeSwitch:
    """A context manager, and a decorator of functions and generators, that sets the mode and puts it back."""

    recording: bool
    inference: bool | None = None  # None: as it is outside

    def __enter__(self) -> None:
        stack = self.__dict__.setdefault("_saved", [])
        stack.append((mode.recording, mode.inference))
        self._switch()

    def _switch(self) -> None:
        if self.inference is not None:
            mode.inference = self.inference
        mode.recording = self.recording and not mode.inference

    def __exit__(self, *exc_info: object) -> None:
        mode.recording, mode.inference = self._saved.pop()  # type: ignore[attr-defined]

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return self._run(lambda: function(*args, **kwargs))

        return wrapped  # type: ignore[return-value]

    def _run(self, function: Callable[[], Any]) -> Any:
        before = mode.recording, mode.inference
        self._switch()
        try:
            return function()
        finally:
            mode.recording, mode.inference = before

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The mode holds while the generator runs, not while its consumer does."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    try:
                        item = self._run(resume)
                    except StopIteration as end:
                        return end.value
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as thrown:
                        resume = functools.partial(generator.throw, thrown)
                    else:
                        resume = functools.partial(generator.send, sent)
            finally:
                self._run(generator.close)

        return wrapped


class _PlainSwitch(_ModeSwitch):
    """A switch without arguments, which decorates without parentheses too: `@no_grad`."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)


class no_grad(_PlainSwitch):
    """Record nothing inside: `with no_grad():` or `@no_grad`."""

    recording = False


class enable_grad(_PlainSwitch):
    """Record inside, even within `no_grad`."""

    recording = True


class inference_mode(_ModeSwitch):
    """As `no_grad`, and what is made inside can never take part in a recorded op: `@inference_mode` decorates too."""

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.recording = not mode
        self.inference = mode


class set_grad_enabled(_ModeSwitch):
    """Switch recording at once, and back at the end of the block if used as one; or inside a function it decorates."""

    def __init__(self, mode: bool) -> None:
        self.recording = mode
        self._saved = [(_mode.recording, _mode.inference)]
        self._switch()

    def __enter__(self) -> None:
        self._switch()

    def __call__(self, function: F) -> F:
        _mode.recording, _mode.inference = self._saved[0]
        return super().__call__(function)


def is_grad_enabled() -> bool:
    return mode.recording


def is_inference_mode_enabled() -> bool:
    return mode.inference
