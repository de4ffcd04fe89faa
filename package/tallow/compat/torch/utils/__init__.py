"""Names of `torch.utils` that tallow itself does not have."""

from __future__ import annotations

from typing import Any

import tallow

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend", "set_module", "swap_tensors"]


def set_module(obj: Any, mod: Any) -> None:
    """Set the module of an object, if `mod` is a name."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: tallow.Tensor, t2: tallow.Tensor) -> None:
    """Exchange the values of two tensors: each name refers to what the other was."""
    t1.data, t2.data = t2.data, t1.data


def rename_privateuse1_backend(backend_name: str) -> None:
    """Do nothing: no library can register a backend of this kind."""


def generate_methods_for_privateuse1_backend(*args: object, **kwargs: object) -> None:
    """Do nothing: no library can register a backend of this kind."""
