"""The CUDA kernels of the kernel table; importing a module registers its kernels.

A binding has the file name of the module with the op's array implementation.
"""

from tallow_cuda.bindings import activation as activation
from tallow_cuda.bindings import adam as adam
from tallow_cuda.bindings import attention as attention
from tallow_cuda.bindings import convolution as convolution
from tallow_cuda.bindings import cross_entropy as cross_entropy
from tallow_cuda.bindings import decode_block as decode_block
from tallow_cuda.bindings import dropout as dropout
from tallow_cuda.bindings import embedding as embedding
from tallow_cuda.bindings import gates as gates
from tallow_cuda.bindings import linear as linear
from tallow_cuda.bindings import matmul as matmul
from tallow_cuda.bindings import multi_tensor as multi_tensor
from tallow_cuda.bindings import normalization as normalization
from tallow_cuda.bindings import quantized_linear as quantized_linear
from tallow_cuda.bindings import reduction as reduction
from tallow_cuda.bindings import rotary as rotary
from tallow_cuda.bindings import sampling as sampling
from tallow_cuda.bindings import sgd as sgd
from tallow_cuda.bindings import softmax as softmax
