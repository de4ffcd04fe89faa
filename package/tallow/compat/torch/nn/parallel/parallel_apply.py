"""torch.nn.parallel.parallel_apply: call several modules, each with its own inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.nn.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None
) -> list[Any]:
    """Return the output of each module for its inputs, one after the other."""
    named = kwargs_tup or [{}] * len(modules)
    calls = zip(modules, inputs, named, strict=True)
    return [module(*(x if isinstance(x, tuple) else (x,)), **kwargs) for module, x, kwargs in calls]
