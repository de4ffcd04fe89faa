"""torch._subclasses.fake_tensor: tensors without values. Tensors on the device meta have none either."""

from __future__ import annotations

from tallow.compat.absent import absent

FakeTensor = absent("torch._subclasses.FakeTensor", "use tensors on the device meta")
FakeTensorMode = absent("torch._subclasses.FakeTensorMode", "use tensors on the device meta")


def is_fake(x: object) -> bool:
    """Return whether an object is a FakeTensor: none is."""
    return isinstance(x, FakeTensor)
