"""torch._dynamo: the front of PyTorch's compiler. Settings are stored, and decorators return the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow import compiler
from tallow.compiler import allow_in_graph, disable, is_compiling, list_backends, reset

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]

OptimizedModule = compiler.OptimizedModule


def assume_constant_result(fn: Any) -> Any:
    """Return the function itself."""
    return fn


disallow_in_graph = forbid_in_graph = run = assume_constant_result


def graph_break(*args: object, **kwargs: object) -> None:
    """Do nothing: a function of Python has no graph."""


def mark_dynamic(t: Any, index: Any = None, **kwargs: Any) -> None:
    """Do nothing: a plan is for given shapes."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic


def optimize(*args: Any, nopython: bool = False, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function, as `torch.compile` does."""
    return lambda function: compiler.compile(function, fullgraph=nopython)
