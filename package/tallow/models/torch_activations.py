"""Activations that config files name by the path of a class in PyTorch."""

from __future__ import annotations

from typing import Any

from tallow import nn
from tallow.errors import CheckpointError

_PLACES = ("torch.nn", "torch.nn.modules.activation", "torch.nn.modules.linear")
_UNFIT = {"Softmax2d", "Threshold"}  # one is for images, and one has no defaults
_NAMES = {"Identity", *nn.FAMILIES["activation"].split()} - _UNFIT


def activation_of(path: Any, source: str) -> nn.Module:
    """Return the activation of vectors that a path such as "torch.nn.modules.activation.Tanh" names, in evaluation
    mode. Nothing is imported by that path.

    Args:    source: where the path stands, for the error
    Raises:  CheckpointError for other paths than those of PyTorch's activations
    """
    place, _, name = str(path).rpartition(".")
    if place not in _PLACES or name not in _NAMES:
        raise CheckpointError(
            f"{source}: tallow has no activation {path!r:.120}",
            hint="it reads the paths of torch.nn's activations, such as torch.nn.modules.linear.Identity",
        )
    made: nn.Module = getattr(nn, name)()
    if hasattr(made, "dim"):
        made.dim = -1  # PyTorch chooses the last of two dimensions if none is given
    return made.eval()
