"""torch.onnx.symbolic_helper: decorators for functions that an export would call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.compat.absent import absent
from tallow.compat.torch import onnx
from tallow.errors import MissingNameError


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """Return a decorator that returns the function itself."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that returns the function itself."""
    return lambda fn: fn


cast_pytorch_to_onnx = {str(kind.name).capitalize(): kind for kind in onnx.TensorProtoDataType}


def __getattr__(name: str) -> Any:
    """Return a name of an export's functions, which raises where it is called."""
    if name.startswith("__"):
        raise MissingNameError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.onnx.symbolic_helper.{name}", onnx._HINT)
