"""ONNX operators as functions of tensors, one file per family."""

from tallow.onnx.operators import (
    activation,
    attention,
    casting,
    constant,
    control_flow,
    convolution,
    elementwise,
    index,
    linear,
    normalization,
    pooling,
    recurrent,
    reduce,
    shape,
)
