"""The compiled kernels as functions of NumPy arrays, registered in the kernel table.

A binding has the file name of the module with the op's array implementation. The package is imported once the library
is loaded. C checks nothing, so each binding checks that every address it passes points to as many elements, of the
dtype and in the order, as the contract in the C file requires.
"""

from tallow.kernels.bindings import (
    activation,
    adam,
    arithmetic,
    attention,
    axis_index,
    casting,
    chain,
    channel_normalization,
    convolution,
    cross_decode_block,
    cross_entropy,
    decode_block,
    decode_stack,
    embedding,
    encoder_block,
    expert_block,
    formulas,
    fourier,
    gates,
    image_convolution,
    integer_convolution,
    integer_product,
    linear,
    losses,
    matmul,
    normalization,
    pooling,
    quantized_linear,
    recurrent,
    reduction,
    rotary,
    scan,
    selection,
    sgd,
    softmax,
    sparse,
    special,
)
