"""NVRTC, NVIDIA's runtime compiler, from its wheel. It checks without a GPU that a source compiles for a GPU.

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
# Options that CuPy adds to every compilation (cupy/cuda/compiler.py); -ftz flushes subnormal float32 values to zero.
CUPY_OPTIONS = (b"-std=c++17", b"-ftz=true", b"--device-as-default-execution-space")


@cache
def _library() -> ctypes.CDLL | None:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    libraries = [path for folder in folders for path in sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*"))]
    return ctypes.CDLL(str(libraries[0])) if libraries else None


def is_available() -> bool:
    return _library() is not None


def compile(source: str, options: Sequence[str], card: str) -> bytes:
    """Compile a source for a GPU architecture from CARDS, including inline PTX, and return the machine code.

    Raises:
        KernelCompileError: the source does not compile; the message has the compiler's log.
    """
    library = _library()
    assert library is not None
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    arguments = [f"--gpu-architecture={card}".encode(), *CUPY_OPTIONS, *(option.encode() for option in options)]
    try:
        failed = library.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
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
