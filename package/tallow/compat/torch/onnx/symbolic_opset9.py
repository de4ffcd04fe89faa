"""torch.onnx.symbolic_opset9: functions that an export would call. They raise where they are called."""

from tallow.compat.torch.onnx.symbolic_helper import __getattr__

__all__ = ["__getattr__"]
