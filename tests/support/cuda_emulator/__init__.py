"""Compile CUDA C++ kernels for the CPU and run them there, to test their results without a GPU.

`compile_kernel` replaces the method of `tallow_cuda.backend.CupyBackend`: it compiles the source together with
emulator.hpp, which implements the CUDA names it uses, by Zig's C++ compiler, and returns a function that runs all
threads of a launch. Compiled kernels are cached. emulator.hpp says what is emulated and how; speed is not.

If NVRTC is installed, every source that runs here is also compiled for the GPUs in `nvrtc.CARDS`.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from support import nvrtc, paths, streams_like
from tallow.errors import KernelCompileError
from tallow_cuda.launching import argument
from tallow_cuda.sources import HOPPER, with_headers

EMULATOR = Path(__file__).with_name("emulator.hpp")
FLAGS = ("-x", "c++", "-std=c++17", "-O1", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-nostdlib++", "-w")
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')
ENTRY = """
static void call_NAME(void** arguments) { emulated::call(&NAME, arguments); }
extern "C" const char* launch_NAME(
    const unsigned* grid, const unsigned* block, int shared_bytes, void** arguments, int backwards) {
    return emulated::launch(call_NAME, grid, block, shared_bytes, arguments, backwards);
}
"""

max_shared_bytes = 227 << 10  # bytes of shared memory a block can have on compute capability 9.0
backwards = False  # whether blocks, and the threads of a block, run in reverse order
launched: list[str] = []  # names of the kernels that have run


def compile_kernel(source: str, name: str, options: Sequence[str] = ()) -> Callable[..., None]:
    """Return the kernel `name` of a source as a function, as `CupyBackend.compile_kernel` does.

    Raises:
        KernelCompileError: the source does not compile; the message has the compiler's output.
    """
    launch = getattr(_library(with_headers(source), tuple(options)), f"launch_{name}", None)
    if launch is None:
        raise KernelCompileError(f"the source has no kernel {name!r}")
    launch.restype = ctypes.c_char_p

    def run(
        grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0, overlaps: bool = False
    ) -> None:
        if shared_mem > max_shared_bytes:
            raise RuntimeError(f"{name}: more shared memory than a block can have")
        values = [_argument_bytes(argument(a)) for a in args]
        pointers = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
        dimensions = [(ctypes.c_uint * 3)(*size, *[1] * (3 - len(size))) for size in (grid, block)]

        def start(alive: Any = (values, args)) -> None:
            launched.append(name)
            error = launch(*dimensions, shared_mem, pointers, backwards)
            if error is not None:
                raise RuntimeError(f"{name}: {error.decode()}")

        if not streams_like.record(start):
            start()

    return run


def _argument_bytes(argument_value: Any) -> np.ndarray[Any, Any]:
    """Return the bytes of an argument: a number, a struct (array of one element), or the address of an array."""
    if isinstance(argument_value, np.generic | np.ndarray):
        assert argument_value.size == 1, "CuPy passes NumPy arrays of one element by value, and no others"
        return np.array(argument_value)
    return np.array(argument_value.data.ptr, np.uint64)


@cache
def _library(source: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """Compile all kernels of a source into a shared library and load it."""
    entries = "".join(ENTRY.replace("NAME", name) for name in KERNEL.findall(source))
    # Without unrolling, which only pays with a GPU's many registers, compiling takes half the time.
    rolled = source.replace("#pragma unroll\n", "\n")
    text = "\n".join([EMULATOR.read_text(), '#line 1 "kernel.cu"', rolled, entries])
    key = hashlib.sha256("\0".join([text, *options, *FLAGS]).encode()).hexdigest()[:32]
    folder = paths.cache_dir() / "emulated"
    folder.mkdir(parents=True, exist_ok=True)
    if nvrtc.is_available():
        _compile_for_cards(source, options, folder)
    target = folder / f"{key}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            file = Path(scratch, "kernel.cpp")
            file.write_text(text)
            built = Path(scratch, "kernel.so")
            defines = [option for option in options if option != HOPPER]
            command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, *defines, str(file), "-o", str(built)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise KernelCompileError(f"the kernel does not compile:\n{result.stderr}")
            built.replace(target)
    return ctypes.CDLL(str(target))


def _compile_for_cards(source: str, options: tuple[str, ...], folder: Path) -> None:
    """Compile each variant of a source for the newest GPU, and only one variant for the others, which takes a second.

    Instructions that a GPU may lack do not depend on the element types. A file in the cache records each successful
    compilation, so later runs skip it.
    """
    *others, newest = nvrtc.CARDS if HOPPER not in options else ("sm_90",)
    for cards, what in ((others, [source]), ([newest], [source, *options])):
        compiled = folder / f"{hashlib.sha256(chr(0).join([*cards, *what]).encode()).hexdigest()[:32]}.compiled"
        if not compiled.exists():
            for card in cards:
                nvrtc.compile(source, options, card)
            compiled.touch()
