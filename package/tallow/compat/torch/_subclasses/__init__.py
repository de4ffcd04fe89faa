"""torch._subclasses: tensors without values."""

from tallow.compat.torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
