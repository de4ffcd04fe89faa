"""The CUDA kernels of the kernel table: importing a module registers what it binds."""

from tallow_cuda.bindings import cross_entropy as cross_entropy
from tallow_cuda.bindings import matmul as matmul
from tallow_cuda.bindings import normalization as normalization
