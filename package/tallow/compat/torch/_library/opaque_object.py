"""torch._library.opaque_object: objects that custom ops pass on."""

from __future__ import annotations


def is_opaque_type(cls: object) -> bool:
    """Return whether a class is registered as one whose objects ops pass on: none is."""
    return cls is NotImplemented
