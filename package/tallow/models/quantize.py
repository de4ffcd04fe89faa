"""The names of quantised weights that loaders take as `quant`."""

from __future__ import annotations

from typing import Any

from tallow import devices
from tallow.errors import ArgumentError
from tallow.kernels.gguf_quantize import QUANTIZERS
from tallow.nn.block_layers import reads_codes

# Name -> format of the blocks: "int8", and the formats in lower case.
QUANTS = {"int8": "Q8_0"} | {name.lower(): name for name in QUANTIZERS}


def block_format(quant: str, device: Any = None) -> str:
    """Return the format of the blocks that `quant` names.

    Args:    device: of the model; None means the default device
    Raises:  ArgumentError for an unknown name, and for a device without kernels for quantised weights
    """
    if quant not in QUANTS:
        raise ArgumentError(f"quant={quant!r}", hint=f"use one of {', '.join(map(repr, QUANTS))}")
    if (chosen := devices.chosen(device)).type != "cpu" and not reads_codes(chosen):
        raise ArgumentError(f"quant={quant!r} on {chosen}, which has no kernels for quantised weights")
    return QUANTS[quant]
