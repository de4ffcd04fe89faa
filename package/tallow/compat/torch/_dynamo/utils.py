"""torch._dynamo.utils: queries for the compiler."""

from __future__ import annotations


def is_compile_supported(device_type: str) -> bool:
    """Return whether `torch.compile` accepts functions of tensors on a device: always, as calls may run eagerly."""
    return bool(device_type)
