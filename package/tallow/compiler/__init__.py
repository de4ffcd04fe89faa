"""torch.compiler, and `compile`: repeat a function from a plan of its array functions, without the layer of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.autograd.modes import mode
from tallow.compiler import watch
from tallow.compiler.compiled import Compiled, GraphBreak, OptimizedModule
from tallow.core.lazy_names import names_of
from tallow.nn.module import Module

__all__ = [
    "Compiled",
    "GraphBreak",
    "OptimizedModule",
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "reset",
]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function or a module. Also a decorator, with or without arguments: `@tl.compile(fullgraph=True)`.

    The first call runs as always, and is recorded: which array functions ran, with which operands. Later calls repeat
    the list. They compute the same bits, and do the same to parameters, gradients, optimizers, running statistics and
    random numbers. A whole training step can be compiled.

    Without gradients, consecutive elementwise ops on large float32 tensors run as one pass, in which exp, tanh, sigmoid
    and silu may differ from the eager ops in the last bits.

    A plan is used if the arguments have the shapes, dtypes and strides of the recorded call, the Python values that the
    function reads are the same, and so are the modules' parameters and settings. Otherwise the call is recorded anew.
    A function that does what a plan cannot repeat, such as reading a value with `item()` or printing, runs eagerly; a
    warning says why, once. `explain()` of the result prints the plans.

    On other devices than the CPU, calls run eagerly.

    Args:
        fullgraph: raise GraphBreak where a function would run eagerly.
        disable: return the function itself.
        dynamic, backend, mode, options: have no effect.
    """
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable)
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    return Compiled(model, fullgraph)


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Let functions that call `fn` run eagerly. Return `fn`. Also a decorator, with or without arguments."""
    if fn is None:
        return disable
    watch.disable(fn)
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function itself."""
    return fn


def is_compiling() -> bool:
    """Return whether a call is being recorded."""
    return mode.tracer is not None


def reset() -> None:
    """Do nothing: each compiled function has its own plans, see `Compiled.reset`."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: no graph reuses memory in the next step."""


__getattr__, __dir__ = names_of(__name__)
