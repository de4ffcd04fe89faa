"""torch.utils._contextlib: contexts that decorate functions, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, Self

from tallow.tape.modes import _ModeSwitch


class _DecoratorContextManager:
    """The base class of contexts that decorate: each call of a function, or step of a generator, has a context."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        if isgeneratorfunction(orig_func):
            return _ModeSwitch._wrap_generator(self, orig_func)  # type: ignore[arg-type]

        @wraps(orig_func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inside

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __enter__")

    def __exit__(self, *exc_info: object) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines no __exit__")

    def clone(self) -> Self:
        """Return a context like this one; one with arguments defines it."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The base class of contexts without arguments, which decorate without brackets too."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
