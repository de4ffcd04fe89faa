"""The CUDA kernels of the kernel table; importing a module registers its kernels.

A binding has the file name of the module with the op's array implementation.
"""

from tallow_cuda.bindings import (
    activation,
    adam,
    attention,
    casting,
    convolution,
    cross_entropy,
    decode_block,
    dropout,
    embedding,
    gates,
    linear,
    matmul,
    multi_tensor,
    normalization,
    quantized_linear,
    reduction,
    rotary,
    sampling,
    sgd,
    softmax,
)
