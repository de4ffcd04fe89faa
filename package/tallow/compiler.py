"""torch.compiler, and `compile`: record a call of a function as a graph, and repeat it; see `tallow.fx.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentError, UnsupportedError
from tallow.fx.compile import guards
from tallow.fx.compile.compiled import Compiled, GraphBreak
from tallow.fx.compile.optimized_module import OptimizedModule
from tallow.lazy_names import names_of
from tallow.nn.module import Module
from tallow.tape.modes import is_exporting, mode

BACKENDS = ("inductor", "cudagraphs", "eager", "aot_eager")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

__all__ = [
    "Compiled",
    "GraphBreak",
    "OptimizedModule",
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_exporting",
    "list_backends",
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

    The first call runs as always, and is recorded as a graph of ops: `tallow.fx`. Later calls repeat the graph without
    the Python code between its ops. They compute the same bits, and do the same to parameters, gradients, optimizers,
    running statistics and random numbers. A whole training step can be compiled.

    Without gradients, consecutive elementwise ops on large float32 tensors run as one pass, in which exp, tanh, sigmoid
    and silu may differ from the eager ops in the last bits.

    A graph is used if the arguments have the shapes, dtypes and strides of the recorded call, the Python values that
    the function may read are the same, and so are the modules' parameters and settings. Otherwise the call is recorded
    anew, up to eight times; calls that differ from all of them run eagerly. A function that may do what a graph cannot
    repeat, such as reading a value with `item()` or printing, runs eagerly; a warning says why, once. `explain()` of
    the result prints the graphs.

    On other devices than the CPU, calls run eagerly.

    Args:
        fullgraph: raise GraphBreak in place of the warning, and in every call that would run eagerly.
        dynamic: checked only: a graph is for given shapes.
        backend: a name of PyTorch's; there is one backend.
        mode, options: checked only: there is nothing to tune.
        disable: return the function itself.

    Raises:
        ArgumentError: an unknown backend or mode, or both `mode` and `options`.
        UnsupportedError: `backend` is a function.
    """
    _check(backend, mode, options)
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable)
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    return Compiled(model, fullgraph)


def _check(backend: Any, mode: str | None, options: dict[str, Any] | None) -> None:
    """Check what has no effect, as PyTorch does."""
    if callable(backend):
        raise UnsupportedError(
            "compile: backend is a function; tallow runs its graphs itself",
            hint="leave out backend; for the graph alone, call tl.export.export or tl.fx.symbolic_trace",
        )
    if backend is not None and backend not in BACKENDS:
        raise ArgumentError(f"compile: unknown backend {backend!r}", hint=f"leave it out; known: {', '.join(BACKENDS)}")
    if mode is not None and mode not in MODES:
        raise ArgumentError(f"compile: unknown mode {mode!r}; expected one of {', '.join(MODES)}")
    if mode is not None and options is not None:
        raise ArgumentError("compile: either mode or options can be given, not both")


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Let functions that call `fn` run eagerly. Return `fn`. Also a decorator, with or without arguments."""
    if fn is None:
        return disable
    guards.disable(fn)
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function itself."""
    return fn


def is_compiling() -> bool:
    """Return whether a call is being recorded."""
    return mode.tracer is not None


def list_backends() -> list[str]:
    """Return the names that `compile` takes as `backend`."""
    return list(BACKENDS)


def reset() -> None:
    """Do nothing: each compiled function has its own plans, see `Compiled.reset`."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: no graph reuses memory in the next step."""


__getattr__, __dir__ = names_of(__name__)
