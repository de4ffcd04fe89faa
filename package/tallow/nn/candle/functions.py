"""Functions as modules, and a chain of modules and functions: candle's `func`, `func_t` and `seq`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.nn.container import Sequential
from tallow.nn.module import Module


class Func(Module):
    """A module that calls a function of the input."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, input: Any) -> Any:
        return self.function(input)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


class FuncT(Func):
    """A module that calls a function of the input and of its training mode."""

    def forward(self, input: Any) -> Any:
        return self.function(input, self.training)


class Chain(Sequential):
    """A Sequential with candle's `add` and `add_fn`, as candle_nn::Sequential."""

    def add(self, layer: Module) -> Chain:
        """Append a module and return the chain."""
        self.append(layer)
        return self

    def add_fn(self, function: Callable[[Any], Any]) -> Chain:
        """Append a function and return the chain."""
        return self.add(Func(function))

    def forward_all(self, input: Any) -> list[Any]:
        """Return the results of all layers, each called with the result of the previous one."""
        results = []
        for layer in self:
            input = layer(input)
            results.append(input)
        return results


def func(function: Callable[[Any], Any]) -> Func:
    """Return a module that calls `function(input)`."""
    return Func(function)


def func_t(function: Callable[[Any, bool], Any]) -> FuncT:
    """Return a module that calls `function(input, training)`."""
    return FuncT(function)


def seq() -> Chain:
    """Return an empty chain.

    Example:
        >>> import tallow as tl
        >>> chain = tl.nn.seq().add(tl.nn.Identity()).add_fn(lambda x: x + 1).add_fn(tl.sqrt)
        >>> chain(tl.tensor([3.0, 8.0]))
        tensor([2., 3.])
    """
    return Chain()
