"""Names of `torch.jit` that tallow itself does not have. Scripted functions run as Python, so most do nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tallow.compat.absent import absent
from tallow.fx.compile.scripted import ScriptModule
from tallow.jit import trace

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "RecursiveScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "enable_onednn_fusion",
    "fork",
    "fuser",
    "interface",
    "last_executed_optimized_graph",
    "onednn_fusion_enabled",
    "optimized_execution",
    "run_frozen_optimizations",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace_module",
    "wait",
]

RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule
CompilationUnit = absent("torch.jit.CompilationUnit", "tallow runs Python functions, not TorchScript's text")


class Error(RuntimeError):
    """An error in a scripted function. Errors keep their own classes here, so none is of this one."""


class TracingCheckError(Exception):
    """A traced function whose results differ from those of the original. Traces are not checked here."""


class ScriptWarning(Warning):
    """A part of a module that TorchScript leaves out. Nothing is left out here."""


class TracerWarning(Warning):
    """A value that a trace keeps for all inputs. Traces follow Python's control flow here, so there is none."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: there are no such warnings."""


class Attribute(NamedTuple):
    """A value of a module with its type."""

    value: Any
    type: Any


class strict_fusion:
    """A block in which PyTorch raises if ops are not fused. Nothing is checked here."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Do nothing: calls are compiled as always."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Do nothing: there is one compiler."""
    yield


def interface(obj: Any) -> Any:
    """Return the class itself."""
    return obj


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


_script_if_tracing = _overload = _overload_method = script_method


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Trace a module's `forward`, as `trace` does. Raises: NotImplementedError for other methods"""
    if list(inputs) != ["forward"]:
        return absent("torch.jit.trace_module", "trace forward alone, or one method at a time by jit.trace")()
    return trace(mod, inputs["forward"], *args, **kwargs)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function. Return its result, which `wait` returns."""
    return func(*args, **kwargs)


_fork = fork


def wait(future: Any) -> Any:
    """Return the result of `fork`."""
    return future


_wait = wait


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing: there is no such library."""


def onednn_fusion_enabled() -> bool:
    """Return False: there is no such library."""
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the strategy. It has no effect."""
    return strategy


def run_frozen_optimizations(mod: Any, *args: object, **kwargs: object) -> None:
    """Do nothing: modules are not frozen."""


def last_executed_optimized_graph() -> Any:
    """Raise UnsupportedError: there are no graphs of TorchScript."""
    return absent("torch.jit.last_executed_optimized_graph", "explain() of a compiled function prints its plans")()
