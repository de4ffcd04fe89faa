"""NVRTC, NVIDIA's compiler for kernels, from its wheel: it needs no GPU to say whether a source compiles for one.

Source: NVIDIA, "NVRTC", the C interface
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tallow.errors import KernelCompileError

CARDS = ("sm_80", "sm_86", "sm_89", "sm_90")  # A100; RTX 30 and A10; RTX 40 and L4; H100 and H200
# What CuPy adds to every source (cupy/cuda/compiler.py): float32 numbers below 2^-126 count as zero.
OF_CUPY = (b"-std=c++17", b"-ftz=true", b"--device-as-default-execution-space")


@cache
def _library() -> ctypes.CDLL | None:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*"))]
    return ctypes.CDLL(str(found[0])) if found else None


def is_available() -> bool:
    return _library() is not None


def compile(source: str, options: Sequence[str], card: str) -> bytes:
    """The machine code for one of CARDS; PTX within the source is assembled too.

    Raises:  KernelCompileError, with what the compiler says
    """
    library = _library()
    assert library is not None
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    given = [f"--gpu-architecture={card}".encode(), *OF_CUPY, *(option.encode() for option in options)]
    try:
        failed = library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
        size = ctypes.c_size_t()
        if failed:
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise KernelCompileError(f"the kernel does not compile for {card}:\n{log.value.decode()}")
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, code)
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
