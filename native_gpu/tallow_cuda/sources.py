"""Load the kernels of src/*.cu: expand their headers, and compile them once per set of definitions.

NVRTC compiles a kernel on first use, for the current card; CuPy caches the result on disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tallow.devices import get_backend
from tallow.dtypes import BF16, F16, Array
from tallow.errors import KernelCompileError

FOLDER = Path(__file__).parent / "src"
HOPPER = "-arch=sm_90a"  # replaces CuPy's -arch=sm_90, which lacks the instructions of src/wgmma.cuh
INCLUDE = re.compile(r'^#include "([a-z0-9_]+\.cuh)"\n', re.MULTILINE)


@cache
def source_of(file: str) -> str:
    """Return the text of src/<file>, with its headers."""
    return with_headers((FOLDER / file).read_text())


def with_headers(source: str) -> str:
    """Return a source with every src/ header that it includes in place, once.

    CuPy's cache on disk is keyed by the text alone, so it must be complete.
    """
    included: set[str] = set()

    def expand(text: str) -> str:
        return INCLUDE.sub(lambda match: header(match[0], match[1]), text)

    def header(line: str, name: str) -> str:
        if name in included:
            return ""
        included.add(name)
        path = FOLDER / name
        return expand(path.read_text()).replace("#pragma once\n", "") if path.exists() else line

    return expand(source)


Kernel = Callable[..., None]  # (grid, block, args, shared_mem=0)


def load(file: str, name: str, **defines: str | int) -> Kernel:
    """Return the kernel `name` of src/<file>, compiled with these definitions.

    Call it as `kernel((blocks,), (threads,), (array, np.int64(5), np.float32(0.1), null), shared_mem=bytes)`.
    """
    backend: Any = get_backend("cuda")
    key = (file, name, *defines.items())
    kernel = backend.kernels.get(key)
    if kernel is None:
        options = [f"-D{k}={v}" for k, v in defines.items()] + [HOPPER] * bool(defines.get("WGMMA"))
        kernel = backend.kernels[key] = backend.compile_kernel(source_of(file), name, options)
    return kernel


@cache
def hopper_compiles() -> bool:
    """Return whether kernels can use src/wgmma.cuh: NVRTC before 12.9 refuses a second -arch."""
    backend: Any = get_backend("cuda")
    source = '#include "wgmma.cuh"\nextern "C" __global__ void fence() { warpgroup_fence(); }'
    try:
        backend.compile_kernel(source, "fence", ("-DWGMMA=1", HOPPER))
    except KernelCompileError:
        return False
    return True


def element(array: Array | None) -> str:
    """Return the C++ name of a float array's element type; float for None."""
    if array is None or (array.dtype.kind == "f" and array.dtype.itemsize == 4):
        return "float"
    return {F16: "f16", BF16: "bf16"}[array.dtype]
