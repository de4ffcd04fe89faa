"""The export of programs to ONNX.

`registry` says what an exporter is; each family of ops has a file of them. `conversion` calls them for the nodes of a
program, `builder` collects what they make, and `program` writes it.
"""

from tallow.onnx.exporters import (
    activation,
    convolution,
    creation,
    elementwise,
    indexing,
    losses,
    matmul,
    normalization,
    quantized,
    recurrent,
    reduction,
    shape,
    sizes,
)
