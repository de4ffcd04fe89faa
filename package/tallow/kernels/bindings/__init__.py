"""The compiled kernels, as functions of NumPy arrays in the kernel table.

Imported when the library has been loaded. C checks nothing, so each binding sees to it that every address it passes is
the beginning of as many elements, of the right type and order, as the contract in the C file says.
"""

from tallow.kernels.bindings import (
    activation,
    attention,
    channel_norm,
    convolution,
    cross_decode_block,
    decode_block,
    encoder_blocks,
    matmul,
    normalization,
    optimizers,
    pooling,
    recurrent,
)

__all__ = [
    "activation",
    "attention",
    "channel_norm",
    "convolution",
    "cross_decode_block",
    "decode_block",
    "encoder_blocks",
    "matmul",
    "normalization",
    "optimizers",
    "pooling",
    "recurrent",
]
