"""torch.nn.utils.stateless: call a module with other parameters than its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from tallow import func
from tallow.core.tensor import Tensor
from tallow.nn.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with these tensors in place of its own; see `torch.func.functional_call`."""
    given = dict(parameters_and_buffers)
    return func.functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _reparametrize_module(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> AbstractContextManager[None]:
    """Let a module have these tensors in place of its own for the length of a block."""
    return func.replaced(module, dict(parameters_and_buffers), tie_weights, strict)
