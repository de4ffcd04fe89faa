"""The names of quantised weights that loaders take as `quant`."""

from __future__ import annotations

from typing import Any

from tallow import devices
from tallow.errors import ArgumentError
from tallow.kernels.quantized.gguf_quantize import QUANTIZERS
from tallow.nn.block_layers import multiplies_blocks

# Name -> format of the blocks: "int8", and the formats in lower case.
QUANTS = {"int8": "Q8_0"} | {name.lower(): name for name in QUANTIZERS}


def check_quant(quant: str | None, device: Any = None) -> None:
    """Check the argument of a loader before it downloads anything; None leaves the weights in floats.

    Raises:  as `block_format`
    """
    if quant is not None:
        block_format(quant, device)


def block_format(quant: str, device: Any = None) -> str:
    """Return the format of the blocks that `quant` names.

    Args:    device: of the model; None means the default device
    Raises:  ArgumentError for an unknown name, and for a device without kernels for quantised weights
    """
    if quant not in QUANTS:
        raise ArgumentError(f"quant={quant!r}", hint=f"use one of {', '.join(map(repr, QUANTS))}")
    if not multiplies_blocks(chosen := devices.chosen(device)):
        raise ArgumentError(f"quant={quant!r} on {chosen}, which has no kernels for quantised weights")
    return QUANTS[quant]
