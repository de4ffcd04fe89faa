"""Custom kernels in CUDA C++."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.devices import get_backend
from tallow.io.regular import read_regular

__all__ = ["compile_kernel"]


def compile_kernel(
    kernel_source: str | os.PathLike[str], kernel_name: str, options: Sequence[str] = ()
) -> Callable[..., None]:
    """Compile CUDA C++ for the current GPU, and return one of its kernels as a function.

    NVRTC compiles it in less than a second, and the binary is cached on disk. CuPy always compiles with -ftz=true:
    float32 numbers below 2^-126 count as zero. The source may include tallow's headers, such as "element.cuh" (float,
    f16 and bf16) and "reduce.cuh" (sums over warps and blocks). docs/kernels.md shows how to make an op of a kernel.

    Args:
        kernel_source: the source text, or the path of a file; declare the kernel `extern "C" __global__ void`.
        options: compiler options, such as "-DWIDTH=64".

    Returns: kernel(grid, block, args, shared_mem=0), which starts it on the current stream and does not wait.
        `grid` and `block` are tuples of one to three integers. Tensors and arrays become the addresses of their first
        elements; a Python int becomes a `long long`, a float a `float`, None a null pointer; NumPy scalars keep their
        type. Nothing is checked: a kernel may write to any address. `shared_mem` is in bytes.

    Raises: KernelCompileError with the compiler's output; DeviceError without CuPy or a GPU.
    """
    source = kernel_source if isinstance(kernel_source, str) else read_regular(kernel_source).decode()
    backend: Any = get_backend("cuda")
    compiled = backend.compile_kernel(source, kernel_name, options)

    def kernel(grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0) -> None:
        arrays = [a.array if isinstance(a, Tensor) else a for a in args]
        compiled(tuple(grid), tuple(block), tuple(arrays), shared_mem=shared_mem)

    return kernel
