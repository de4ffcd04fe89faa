"""Names of `torch.nn.modules.transformer` that tallow itself does not have."""

from __future__ import annotations

import copy
from typing import Any

from tallow.errors import ArgumentError
from tallow.nn import Module, ModuleList, functional


def _get_clones(module: Module, N: int) -> ModuleList:
    """Return copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Any:
    """Return the function of a name, "relu" or "gelu"."""
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)
