"""torch.ao.quantization: quantization to int8, which tallow does not have. Its stubs do nothing; the rest raises."""

from __future__ import annotations

from typing import Any

from tallow.compat.absent import absent
from tallow.core.tensor import Tensor
from tallow.errors import MissingNameError
from tallow.nn.module import Module

__all__ = ["DeQuantStub", "QuantStub"]

_HINT = "tallow.nn.quantize has weights of 8 and 4 bits; quantization of PyTorch is left out"
# The names whose use raises; others do not exist.
_NAMES = frozenset(
    [
        "QConfig",
        "QConfigMapping",
        "QuantWrapper",
        "FakeQuantize",
        "MinMaxObserver",
        "HistogramObserver",
        "MovingAverageMinMaxObserver",
        "PerChannelMinMaxObserver",
        "ObserverBase",
        "convert",
        "prepare",
        "prepare_qat",
        "quantize",
        "quantize_dynamic",
        "quantize_qat",
        "fuse_modules",
        "fuse_modules_qat",
        "get_default_qconfig",
        "get_default_qat_qconfig",
        "get_default_qconfig_mapping",
        "default_qconfig",
        "default_observer",
        "default_weight_observer",
        "default_per_channel_weight_observer",
        "default_fake_quant",
        "add_quant_dequant",
        "propagate_qconfig_",
        "disable_observer",
        "enable_observer",
        "disable_fake_quant",
        "enable_fake_quant",
    ]
)


class QuantStub(Module):
    """The place where a model's input is quantized, once the model is converted. Until then it returns its input."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """The place where a model's output is dequantized, once the model is converted. Until then it returns its input."""


def __getattr__(name: str) -> Any:
    """Return a name of the module, which raises where it is called."""
    if name not in _NAMES:
        raise MissingNameError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.ao.quantization.{name}", _HINT)
