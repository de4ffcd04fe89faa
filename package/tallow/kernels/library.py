"""The compiled kernels: finding the library that suits this machine, loading it, and telling which it was.

Loading happens when the first kernel is wanted on the CPU, never at import. A machine without a library (it was not
built, or not for this architecture) uses the array code; `info()` and `explain` say so and why.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallow.errors import KernelUnavailable
from tallow.kernels import table

FOLDER = Path(__file__).parent / "lib"
IN_BROWSER = sys.platform == "emscripten"
BACKEND = "wasm" if IN_BROWSER else "native"
NOT_BUILT = "the compiled kernels are not built; run `python build_kernels.py`, or install a wheel that has them"

POINTER = ctypes.c_void_p
SIZE = ctypes.c_size_t
OFFSET = ctypes.c_ssize_t
INT = ctypes.c_int
FLOAT = ctypes.c_float


@dataclass(frozen=True)
class KernelInfo:
    """What `info()` answers.

    `library` is such as "wasm simd128", "wasm relaxed-simd", "native x86-64-v3", or "none"; `kernels` names what it
    computes; `reason` says why there is no library, or is empty.
    """

    library: str
    kernels: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        if self.reason:
            return f"{self.library} ({self.reason})"
        return f"{self.library}: {', '.join(self.kernels)}"


class _Library:
    """The library that was loaded, if any."""

    handle: ctypes.CDLL | None = None
    name = "none"
    reason = ""


def info() -> KernelInfo:
    """Which library of compiled kernels is loaded, and what it computes; loads it if nothing has yet."""
    table.provide("cpu")
    return KernelInfo(_Library.name, tuple(table.names(BACKEND)), _Library.reason)


def provide() -> dict[str, str]:
    """Load the library and register its kernels: the provider of the device "cpu"."""
    absent = {"native": "runs outside browsers only"} if IN_BROWSER else {"wasm": "runs in browsers and Node only"}
    try:
        _Library.handle, _Library.name = _load_wasm() if IN_BROWSER else _load_native()
    except KernelUnavailable as error:
        _Library.reason = str(error)
        return absent | {BACKEND: _Library.reason}
    # Not at the top: importing the bindings looks up the functions of the library that has just been loaded.
    import tallow.kernels.bindings  # noqa: F401

    return absent


def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """The C function `name` of the loaded library."""
    try:
        found = getattr(_Library.handle, name)
    except AttributeError:
        raise KernelUnavailable(
            f"{_Library.name}: the library in {FOLDER} has no {name}; it was built from other sources",
            mend="run `python build_kernels.py`",
        ) from None
    found.restype, found.argtypes = result, arguments
    return found


def _load_wasm() -> tuple[ctypes.CDLL, str]:
    if not (FOLDER / "tallow-wasm-simd128.wasm").exists():
        raise KernelUnavailable(NOT_BUILT)
    try:
        return ctypes.CDLL(str(FOLDER / "tallow-wasm-relaxed-simd.wasm")), "wasm relaxed-simd"
    except OSError:  # this engine does not know relaxed SIMD (Node 20 does not): it refuses to compile the module
        return ctypes.CDLL(str(FOLDER / "tallow-wasm-simd128.wasm")), "wasm simd128"


def _load_native() -> tuple[ctypes.CDLL, str]:
    machine = platform.machine().lower()
    architecture = {"amd64": "x86-64", "x86_64": "x86-64", "arm64": "aarch64"}.get(machine, machine)
    suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
    base = FOLDER / f"tallow-{architecture}.{suffix}"
    if not base.exists():
        raise KernelUnavailable(NOT_BUILT)
    library = ctypes.CDLL(str(base))
    better = FOLDER / f"tallow-x86-64-v3.{suffix}"
    if library.tl_cpu_level() >= 3 and better.exists():
        return ctypes.CDLL(str(better)), "native x86-64-v3"
    return library, f"native {architecture}"
