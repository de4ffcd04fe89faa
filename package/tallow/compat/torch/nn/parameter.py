"""Names of `torch.nn.parameter` that tallow itself does not have."""

from __future__ import annotations

from tallow.nn.parameter import UninitializedBuffer, UninitializedParameter


class UninitializedTensorMixin:
    """The base class of parameters and buffers without a shape, for `isinstance`."""


def is_lazy(param: object) -> bool:
    """Return whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedParameter | UninitializedBuffer)
