"""Checks of optimizer options, which reject what PyTorch rejects, with its messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError

WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def check_not_negative(**options: Any) -> None:
    """Raise ArgumentError for negative values and NaN."""
    for name, value in options.items():
        _check_number(name, value)
        if not value >= 0:
            raise ArgumentError(
                f"Invalid {WORDS.get(name, f'{name} value')}: {value}", hint=f"{name} must be at least 0"
            )


def check_betas(betas: Any) -> None:
    """Raise ArgumentError unless betas are two numbers from 0 to less than 1."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ArgumentError(f"betas must be two numbers, not {betas!r}")
    for i, beta in enumerate(betas):
        _check_number(f"betas[{i}]", beta)
        if not 0 <= beta < 1:
            raise ArgumentError(f"Invalid beta parameter at index {i}: {beta}", hint="use betas from 0 to less than 1")


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ArgumentError(f"Tensor {name} must be 1-element, not of shape {tuple(value.shape)}")
    elif not isinstance(value, int | float | np.number):
        raise ArgumentTypeError(f"{name} must be a number, not {value!r}")
