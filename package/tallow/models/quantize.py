"""The names of quantised weights that loaders take as `quant`."""

from __future__ import annotations

from typing import Any

from tallow import devices
from tallow.errors import ArgumentError
from tallow.kernels.gguf_quantize import QUANTIZERS
from tallow.nn.quantization import BlockConfig

# Name -> format of the blocks: "int8", and the formats in lower case.
QUANTS = {"int8": "Q8_0"} | {name.lower(): name for name in QUANTIZERS}


def block_config(quant: str, device: Any = None) -> BlockConfig:
    """Return the config that `quant` names.

    Args:    device: of the model; None means the default device
    Raises:  ArgumentError for an unknown name, and for a device other than the CPU
    """
    if quant not in QUANTS:
        raise ArgumentError(f"quant={quant!r}", hint=f"use one of {', '.join(map(repr, QUANTS))}")
    if (chosen := devices.chosen(device)).type != "cpu":
        raise ArgumentError(
            f"quant={quant!r} on {chosen}; quantised blocks compute on the CPU",
            hint="load without quant, then call nn.quantization.quantize_(model, Int8WeightOnlyConfig())",
        )
    return BlockConfig(QUANTS[quant])
