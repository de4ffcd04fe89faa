"""Kernels of CUDA C++, compiled for the CPU and run there: what they compute is tested without a GPU.

Where NVRTC is installed, everything that runs here has compiled for GPUs too: for those of `nvrtc.CARDS`.

`compile_kernel` stands in for the method of `tallow_cuda.backend.CupyBackend`. emulator.hpp says what is emulated; how
fast a kernel is, only a GPU can show.
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

from support import nvrtc, places, streams_like
from tallow.errors import KernelCompileError
from tallow_cuda.launching import argument
from tallow_cuda.sources import with_headers

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

shared_most = 227 << 10  # bytes of shared memory that a block can have: on compute capability 9.0
backwards = False  # whether the threads of a block, and the blocks, run in the reverse order
launched: list[str] = []  # the kernels that have run, by name


def compile_kernel(source: str, name: str, options: Sequence[str] = ()) -> Callable[..., None]:
    """The kernel `name` of a source, as `CupyBackend.compile_kernel` gives it.

    Raises:  KernelCompileError, with what the compiler says
    """
    launch = getattr(_library(with_headers(source), tuple(options)), f"launch_{name}", None)
    if launch is None:
        raise KernelCompileError(f"the source has no kernel {name!r}")
    launch.restype = ctypes.c_char_p

    def run(grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0) -> None:
        if shared_mem > shared_most:
            raise RuntimeError(f"{name}: a block cannot have so much shared memory")
        values = [_value(argument(a)) for a in args]
        pointers = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
        three = [(ctypes.c_uint * 3)(*size, *[1] * (3 - len(size))) for size in (grid, block)]

        def start(alive: Any = (values, args)) -> None:
            launched.append(name)
            wrong = launch(*three, shared_mem, pointers, backwards)
            if wrong is not None:
                raise RuntimeError(f"{name}: {wrong.decode()}")

        if not streams_like.later(start):
            start()

    return run


def _value(given: Any) -> np.ndarray[Any, Any]:
    """The bytes of an argument: of a number, of a struct in a NumPy array, of the address of an array."""
    if isinstance(given, np.generic | np.ndarray):
        assert given.size == 1, "CuPy passes NumPy arrays of one element by value, and no others"
        return np.array(given)
    return np.array(given.data.ptr, np.uint64)


@cache
def _library(source: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """All kernels of a source."""
    entries = "".join(ENTRY.replace("NAME", name) for name in KERNEL.findall(source))
    looped = source.replace("#pragma unroll\n", "\n")  # for registers, which a CPU has few of: it halves compiling
    text = "\n".join([EMULATOR.read_text(), '#line 1 "kernel.cu"', looped, entries])
    key = hashlib.sha256("\0".join([text, *options, *FLAGS]).encode()).hexdigest()[:32]
    folder = places.cache_dir() / "emulated"
    folder.mkdir(parents=True, exist_ok=True)
    if nvrtc.is_available():
        _compile_for_cards(source, options, folder)
    target = folder / f"{key}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            file = Path(scratch, "kernel.cpp")
            file.write_text(text)
            made = Path(scratch, "kernel.so")
            command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, *options, str(file), "-o", str(made)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise KernelCompileError(f"the kernel does not compile:\n{result.stderr}")
            made.replace(target)
    return ctypes.CDLL(str(target))


def _compile_for_cards(source: str, options: tuple[str, ...], folder: Path) -> None:
    """Compile each variant of a source for the newest card, and one variant for the others, which takes a second.

    The instructions that a card may lack are those of the source, whatever its element types. A file in the cache says
    what has compiled, so a later run does not compile it again.
    """
    *others, newest = nvrtc.CARDS
    for cards, what in ((others, [source]), ([newest], [source, *options])):
        compiled = folder / f"{hashlib.sha256(chr(0).join([*cards, *what]).encode()).hexdigest()[:32]}.compiled"
        if not compiled.exists():
            for card in cards:
                nvrtc.compile(source, options, card)
            compiled.touch()
