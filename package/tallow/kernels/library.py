"""The compiled kernels: finding the library that suits this machine, loading it, and telling which it was.

Loading happens when the first kernel is wanted on the CPU, never at import. A machine without a library (it was not
built, or not for this architecture) uses the array code; `info()` and `explain` say so and why.
"""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from tallow.errors import KernelUnavailable
from tallow.kernels import table

FOLDER = os.path.join(os.path.dirname(__file__), "lib")  # not by pathlib: it costs 2 ms at import
IN_BROWSER = sys.platform == "emscripten"
BACKEND = "wasm" if IN_BROWSER else "native"
SOURCES = os.path.join(os.path.dirname(__file__), "src")  # in a checkout only; a wheel has what they compile to
NOT_BUILT = "the compiled kernels are not built; run `python build_kernels.py`, or install a wheel that has them"

POINTER = ctypes.c_void_p
SIZE = ctypes.c_size_t
OFFSET = ctypes.c_ssize_t
INT = ctypes.c_int
FLOAT = ctypes.c_float


class KernelInfo(NamedTuple):
    """What `info()` answers.

    `library` is such as "wasm simd128", "wasm relaxed-simd", "native x86-64-v3", or "none"; `kernels` names what it
    computes; `reason` says why there is no library, or is empty; `enabled` is False under TALLOW_KERNELS=off.
    """

    library: str
    kernels: tuple[str, ...]
    reason: str
    enabled: bool

    def __str__(self) -> str:
        what = f"{self.library} ({self.reason or ', '.join(self.kernels)})"
        return what if self.enabled else f"{what}, switched off"


class _Loaded(NamedTuple):
    """What loading came to."""

    handle: ctypes.CDLL | None
    name: str
    reason: str = ""


NOTHING = _Loaded(None, "none")
_loaded = NOTHING


def info() -> KernelInfo:
    """Which library of compiled kernels is loaded, and what it computes; loads it if nothing has yet."""
    table.provide("cpu")
    kernels = () if _loaded.handle is None else tuple(table.names(BACKEND))
    return KernelInfo(_loaded.name, kernels, _loaded.reason, table.enabled())


def provide() -> dict[str, str]:
    """Load the library and register its kernels: the provider of the device "cpu"."""
    global _loaded
    absent = {"native": "runs outside browsers only"} if IN_BROWSER else {"wasm": "runs in browsers and Node only"}
    try:
        _loaded = _load_wasm() if IN_BROWSER else _load_native()
    except KernelUnavailable as error:
        _loaded = _Loaded(None, "none", str(error))
        return absent | {BACKEND: _loaded.reason}
    # Not at the top: importing the bindings looks up the functions of the library that has just been loaded.
    import tallow.kernels.bindings  # noqa: F401

    return absent


def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """The C function `name` of the loaded library."""
    try:
        found = getattr(_loaded.handle, name)
    except AttributeError:
        raise KernelUnavailable(
            f"{_loaded.name}: the library in {FOLDER} has no {name}; it was built from other sources",
            mend="run `python build_kernels.py`",
        ) from None
    found.restype, found.argtypes = result, arguments
    return found


def _load_wasm() -> _Loaded:
    try:
        return _Loaded(_open("tallow-wasm-relaxed-simd.wasm"), "wasm relaxed-simd")
    except OSError:  # this engine does not know relaxed SIMD (Node 20 does not): it refuses to compile the module
        return _Loaded(_open("tallow-wasm-simd128.wasm"), "wasm simd128")


def _load_native() -> _Loaded:
    suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
    built = [name for name in ("x86-64", "aarch64") if _exists(f"tallow-{name}.{suffix}")]
    for architecture in built:
        try:
            library = _open(f"tallow-{architecture}.{suffix}")
        except OSError as error:  # built on another machine
            refusal = str(error)
            continue
        if library.tl_cpu_level() >= 3 and _exists(f"tallow-x86-64-v3.{suffix}"):
            return _Loaded(_open(f"tallow-x86-64-v3.{suffix}"), "native x86-64-v3")
        return _Loaded(library, f"native {architecture}")
    raise KernelUnavailable(f"the compiled kernels do not load: {refusal}" if built else NOT_BUILT)


def _exists(name: str) -> bool:
    return os.path.exists(os.path.join(FOLDER, name))


def _open(name: str) -> ctypes.CDLL:
    if not _exists(name):
        raise KernelUnavailable(NOT_BUILT)
    library = ctypes.CDLL(os.path.join(FOLDER, name))
    if os.path.isdir(SOURCES) and library.tl_sources() & 0xFFFFFFFF != _checksum():
        raise KernelUnavailable("the compiled kernels are older than their sources; run `python build_kernels.py`")
    return library


def _checksum() -> int:
    """As in build_kernels.py."""
    total = 0
    for name in sorted(name for name in os.listdir(SOURCES) if name.endswith((".c", ".h"))):
        with open(os.path.join(SOURCES, name), "rb") as file:
            total = zlib.crc32(file.read(), total)
    return total
