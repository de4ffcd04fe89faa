"""Recording modes: `no_grad`, `enable_grad`, `inference_mode`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
import operator
import threading
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, overload

from tallow.dtypes import dtype
from tallow.errors import ArgumentTypeError

F = TypeVar("F", bound=Callable[..., Any])


RECORDING, PLAIN, INFERENCE = "recording", "plain", "inference"  # values of `mode.usual`, compared by `is`


class _Mode(threading.local):
    """The recording mode of a thread: whether ops are recorded, and by whom, and whether autocast lowers precision.

    Attributes:
        usual: all of this in one word, because the lookup of a thread's attribute is a noticeable part of a small op:
            RECORDING, PLAIN or INFERENCE; None under autocast, and while `tracer` records.
        tracer: the recorder that ops report to, of `tallow.export` or `tl.compile`; None if nothing is recorded.
        batching: the innermost call of `tallow.func.vmap` that runs, a Level of tallow.functions.batching, or None.
        duals: the dual tensors, each with its tangent, of the open level of tallow.autograd.forward_ad; None without.
        finds_nan: whether backward passes look for NaN, see tallow.autograd.anomaly.
    """

    recording = True
    inference = False
    autocast: dict[str, dtype] | None = None  # device type -> the dtype that `tallow.amp.autocast` lowers to there
    tracer: Any = None
    batching: Any = None
    duals: list[tuple[Any, Any]] | None = None
    finds_nan = False
    usual: str | None = RECORDING

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.switch(self.recording, self.inference)

    def switch(self, recording: bool, inference: bool) -> None:
        """Set whether ops are recorded, and whether tensors are made that can never be."""
        is_usual = self.autocast is None and self.tracer is None
        usual = (RECORDING if recording else INFERENCE if inference else PLAIN) if is_usual else None
        own = self.__dict__
        own["recording"], own["inference"], own["usual"] = recording, inference, usual


mode = _mode = _Mode()  # `_mode` where an argument is called `mode`, as in PyTorch


class _ModeSwitch:
    """A context manager that sets the mode and restores it; also a decorator for functions and generators."""

    recording: bool
    inference: bool | None = None  # None: unchanged

    def __enter__(self) -> None:
        stack = self.__dict__.setdefault("_saved", [])
        stack.append((mode.recording, mode.inference))
        self._switch()

    def _switch(self) -> None:
        inference = mode.inference if self.inference is None else self.inference
        mode.switch(self.recording and not inference, inference)

    def __exit__(self, *exc_info: object) -> None:
        mode.switch(*self._saved.pop())  # type: ignore[attr-defined]

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            before = mode.recording, mode.inference
            self._switch()
            try:
                return function(*args, **kwargs)
            finally:
                mode.switch(*before)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a generator function so that the mode is set while the generator runs, not while its consumer does."""
        run = self(operator.call)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    try:
                        item = run(resume)
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
                run(generator.close)

        return wrapped


class _PlainSwitch(_ModeSwitch):
    """A switch without arguments, which also decorates without parentheses: `@no_grad`."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        switch = super().__new__(cls)
        return switch if function is None else switch(function)


class no_grad(_PlainSwitch):
    """Do not record ops inside: `with no_grad():` or `@no_grad`."""

    recording = False


class enable_grad(_PlainSwitch):
    """Record ops inside, even within `no_grad`."""

    recording = True


class inference_mode(_ModeSwitch):
    """Do not record ops inside; tensors made inside can never take part in a recorded op. Also a decorator."""

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        switch = super().__new__(cls)
        if isinstance(mode, bool):
            return switch
        switch.__init__()  # type: ignore[misc]
        return switch(mode)  # `mode` is the function that is decorated

    def __init__(self, mode: bool = True) -> None:
        self.recording = not mode
        self.inference = mode


class set_grad_enabled(_ModeSwitch):
    """Switch recording on or off at once; back at the end of the block, or only inside a function it decorates."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentTypeError(f"set_grad_enabled(): argument 'enabled' must be bool, not {type(mode).__name__}")
        self.recording = mode
        self._saved = [(_mode.recording, _mode.inference)]
        self._switch()

    def __enter__(self) -> None:
        self._switch()

    def __call__(self, function: F) -> F:
        _mode.switch(*self._saved[0])
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Return whether ops are recorded now."""
    return mode.recording


def is_inference_mode_enabled() -> bool:
    """Return whether inference mode is on now."""
    return mode.inference


def computes_values_only() -> bool:
    """Return whether arrays may be computed without ops: nothing is recorded, traced, batched or lowered."""
    return mode.usual in (PLAIN, INFERENCE) and mode.batching is None


def is_exporting() -> bool:
    """Return whether `tl.export` records what runs."""
    return mode.tracer is not None and mode.tracer.is_functional is True
