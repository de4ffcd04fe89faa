"""The CUDA kernels of the kernel table: importing a module registers what it binds."""

from tallow_cuda.bindings import activation as activation
from tallow_cuda.bindings import attention as attention
from tallow_cuda.bindings import convolution as convolution
from tallow_cuda.bindings import cross_entropy as cross_entropy
from tallow_cuda.bindings import decode_block as decode_block
from tallow_cuda.bindings import dropout as dropout
from tallow_cuda.bindings import embedding as embedding
from tallow_cuda.bindings import linear_rows as linear_rows
from tallow_cuda.bindings import matmul as matmul
from tallow_cuda.bindings import normalization as normalization
from tallow_cuda.bindings import optimizers as optimizers
from tallow_cuda.bindings import rotary as rotary
from tallow_cuda.bindings import sampling as sampling
from tallow_cuda.bindings import softmax as softmax
