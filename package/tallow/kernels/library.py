"""Find and load the library of compiled kernels for this machine.

The library is loaded before the first kernel is chosen on the CPU, never at import. A machine without a library (not
built, or not for this architecture) uses the array code; `info()` and `explain` print the reason.
"""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tallow.errors import KernelUnavailable, warn
from tallow.kernels import on_arrays, table, threads

FOLDER = os.path.join(os.path.dirname(__file__), "lib")  # not pathlib, which takes 2 ms to import
IN_BROWSER = threads.IN_BROWSER
BACKEND = "wasm" if IN_BROWSER else "native"
SOURCES = os.path.join(os.path.dirname(__file__), "src")  # only in a checkout; a wheel has the compiled libraries
NOT_BUILT = "the compiled kernels are not built; run `python build_kernels.py`, or install a wheel that has them"

POINTER = ctypes.c_void_p
SIZE = ctypes.c_size_t
OFFSET = ctypes.c_ssize_t
INT = ctypes.c_int
FLOAT = ctypes.c_float


class KernelInfo(NamedTuple):
    """The loaded library of compiled kernels.

    `library` is "wasm simd128", "wasm relaxed-simd", "native x86-64-v4" or similar, or "none". x86-64-v4 is the library
    of x86-64-v3 with other products of quantised weights, and longer vectors where they pay; x86-64-v4-amx has products
    by the matrix tiles of AMX too, and x86-64-v4-bf16 by the dot products of AVX512-BF16, on AMD's; aarch64-dot is for
    processors that have the dot product of int8. `kernels` are the names of all kernels; `reason` says why there is no
    library, or is empty; `enabled` is False under TALLOW_KERNELS=off. `threads` is the number that kernels may use;
    `one_thread` says why it is 1 in a browser, or is empty.
    """

    library: str
    kernels: tuple[str, ...]
    reason: str
    enabled: bool
    threads: int = 1
    one_thread: str = ""

    @property
    def summary(self) -> str:
        """The library and the threads, such as "wasm relaxed-simd, 8 threads"."""
        if self.one_thread:
            return f"{self.library}, 1 thread: {self.one_thread}"
        return f"{self.library}, {self.threads} thread{'s' * (self.threads != 1)}"

    def __str__(self) -> str:
        what = f"{self.summary if self.kernels else self.library} ({self.reason or ', '.join(self.kernels)})"
        return what if self.enabled else f"{what}, switched off"


class CFunction(Protocol):
    """A function of the library: called with addresses and numbers by ctypes, which releases the GIL.

    `on_arrays` is the same function for small calls, with arrays and with the GIL held; `in_parts` calls it for parts,
    and exists if there is a `plan`, which is that of `tallow.kernels.on_arrays`.
    """

    __name__: str
    plan: on_arrays.Plan | None
    on_arrays: Callable[..., None]
    in_parts: Callable[..., int]

    def __call__(self, *arguments: Any) -> Any: ...


class _Unusable(KernelUnavailable):
    """Libraries that were built, but are older than their sources, or do not load."""


class _Loaded(NamedTuple):
    """The result of loading: libraries in the order in which functions are looked up."""

    handles: tuple[ctypes.CDLL, ...]
    name: str
    reason: str = ""


NOTHING = _Loaded((), "none")
# glibc returns more freed memory than this to the system. Its own limit, twice the largest array that was freed, is
# less than a training step needs: the system then clears the same pages for each step, a quarter to a third of the
# time of a small network.
KEPT_BYTES = 256 << 20
SERVED_BYTES = 32 << 20  # of a server, which has no such steps
LARGEST_IN_HEAP = 32 << 20  # larger arrays are mapped one by one; glibc takes no larger limit
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h
_SETTINGS_OF_MALLOC = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
_AT_HWCAP, _HWCAP_ASIMDDP = 16, 1 << 20  # of Linux' elf.h, and of asm/hwcap.h for aarch64: the dot product of int8
_loaded = NOTHING
_numbers: dict[str, int] = {}  # of the functions, by which threads of the tab know them
_builtins: on_arrays.Builtins | None = None


def info() -> KernelInfo:
    """Return the loaded library of compiled kernels and their names; load it if necessary."""
    table.provide("cpu")
    kernels = () if not _loaded.handles else tuple(table.names(BACKEND))
    count, one = threads.thread_count(), threads.one_thread_because()
    return KernelInfo(_loaded.name, kernels, _loaded.reason, table.enabled(), count, one)


def provide() -> dict[str, str]:
    """Load the library and register its kernels: the provider of the device "cpu"."""
    global _builtins, _loaded
    absent = {"native": "runs outside browsers only"} if IN_BROWSER else {"wasm": "runs in browsers and Node only"}
    try:
        _loaded = _load_wasm() if IN_BROWSER else _load_native()
    except KernelUnavailable as error:
        _loaded = _Loaded((), "none", str(error))
        if isinstance(error, _Unusable) and os.path.isdir(SOURCES):
            warn(f"{error}; until then ops compute with NumPy alone, many times slower")
        return absent | {BACKEND: _loaded.reason}
    _keep_freed_memory()
    _builtins = on_arrays.Builtins(_loaded.handles[-1])
    # Not at the top: importing the bindings looks up the functions of the library that has just been loaded.
    import tallow.kernels.bindings  # noqa: F401 - each module registers what it binds

    return absent


def function(name: str, result: Any, *arguments: Any) -> CFunction:
    """Return the C function `name` of the first loaded library that has it, with its argument types set.

    Raises: KernelUnavailable if none has it.
    """
    try:
        c_function: Any = next(getattr(handle, name) for handle in _loaded.handles if hasattr(handle, name))
    except StopIteration:
        raise KernelUnavailable(
            f"{_loaded.name}: the library in {FOLDER} has no {name}; it was built from other sources",
            hint="run `python build_kernels.py`",
        ) from None
    c_function.restype, c_function.argtypes = result, arguments
    plan = on_arrays.plan(c_function, _numbers.setdefault(name, len(_numbers)), result, arguments)
    c_function.plan = plan
    if _builtins is not None:
        c_function.on_arrays = _builtins.make(c_function, plan)
        if plan is not None:
            c_function.in_parts = _builtins.make_in_parts(c_function, plan)
    return c_function


def has_function(name: str) -> bool:
    """Return whether a loaded library has the C function `name`, which is in libraries of some levels only."""
    return any(hasattr(handle, name) for handle in _loaded.handles)


def function_names() -> list[str]:
    """Return the names of the functions that `function` has returned, in the order of the first calls."""
    return list(_numbers)


def name() -> str:
    """Return the loaded library's name, as in `info`, without loading one."""
    return _loaded.name


def has_long_vectors() -> bool:
    """Return whether the loaded library has the kernels of floats for AVX-512."""
    return "-v4" in _loaded.name


def path() -> str:
    """Return the path of the first loaded library."""
    return str(_loaded.handles[0]._name)


def _load_wasm() -> _Loaded:
    try:
        return _Loaded((_open("tallow-wasm-relaxed-simd.wasm"),), "wasm relaxed-simd")
    except _Unusable:  # this engine lacks relaxed SIMD (as Node 20 does) and refuses to compile the module
        return _Loaded((_open("tallow-wasm-simd128.wasm"),), "wasm simd128")


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next arrays."""
    _set_malloc({_M_TRIM_THRESHOLD: KEPT_BYTES, _M_MMAP_THRESHOLD: LARGEST_IN_HEAP})


def share_arena() -> None:
    """Let all threads that start from now on free to one arena of glibc, instead of keeping as much for each."""
    table.provide("cpu")  # which changes other settings
    _set_malloc({_M_ARENA_MAX: 1})


def give_memory_back() -> None:
    """Give freed memory back to the system, but for SERVED_BYTES: glibc itself keeps what lies below a block in use."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(ctypes.c_size_t(SERVED_BYTES))


def _set_malloc(settings: Mapping[int, int]) -> None:
    """Change settings of glibc's malloc, unless the environment has some."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None and not any(name in os.environ for name in _SETTINGS_OF_MALLOC):
        for parameter, value in settings.items():
            mallopt(parameter, value)


def _of_glibc(name: str) -> Any:
    """Return a function of the C library; None outside Linux, and of other C libraries that lack it."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def _load_native() -> _Loaded:
    suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
    refusal = KernelUnavailable(NOT_BUILT)
    for architecture in ("x86-64", "aarch64"):
        if not _exists(f"tallow-{architecture}.{suffix}"):
            continue
        try:
            library = _open(f"tallow-{architecture}.{suffix}")
        except _Unusable as error:  # such as those built on another machine
            refusal = error
            continue
        if _exists(f"tallow-{architecture}-dot.{suffix}") and _capabilities() & _HWCAP_ASIMDDP:
            return _Loaded((_open(f"tallow-{architecture}-dot.{suffix}"),), f"native {architecture}-dot")
        level = library.tl_cpu_level()
        if level < 3 or not _exists(f"tallow-{architecture}-v3.{suffix}"):
            return _Loaded((library,), f"native {architecture}")
        library = _open(f"tallow-{architecture}-v3.{suffix}")
        if level < 4 or not _exists(f"tallow-{architecture}-v4.{suffix}"):
            return _Loaded((library,), f"native {architecture}-v3")
        products = _open(f"tallow-{architecture}-v4.{suffix}")
        library.tl_use_products(products.tl_product)
        return _with_tiles(_Loaded((products, library), f"native {architecture}-v4"), suffix)
    raise refusal


def _with_tiles(loaded: _Loaded, suffix: str) -> _Loaded:
    """Add the products by AMX, or by AVX512-BF16 where it is fast, if the system allows them and they are right."""
    products, library = loaded.handles
    for unit, is_allowed in (("amx", library.tl_allow_tiles), ("bf16", library.tl_has_fast_dots)):
        file = f"tallow-{loaded.name.removeprefix('native ')}-{unit}.{suffix}"
        if not _exists(file) or not is_allowed():
            continue
        tiles = _open(file)
        if not tiles.tl_tiles_are_exact():
            continue
        if hasattr(tiles, "tl_panel_tiles"):
            products.tl_use_tiles(tiles.tl_panel_tiles)
        return _Loaded((tiles, *loaded.handles), f"{loaded.name}-{unit}")
    return loaded


def _capabilities() -> int:
    """Return the bits of what this processor can do, under Linux."""
    return int(ctypes.CDLL(None).getauxval(_AT_HWCAP))


def _exists(name: str) -> bool:
    return os.path.exists(os.path.join(FOLDER, name))


def _open(name: str) -> ctypes.CDLL:
    if not _exists(name):
        raise KernelUnavailable(NOT_BUILT)
    try:
        library = ctypes.CDLL(os.path.join(FOLDER, name))
    except OSError as error:
        raise _Unusable(f"the compiled kernels do not load ({error}); run `python build_kernels.py`") from error
    if os.path.isdir(SOURCES) and library.tl_sources() & 0xFFFFFFFF != _checksum():
        raise _Unusable("the compiled kernels are older than their sources; run `python build_kernels.py`")
    return library


def _checksum() -> int:
    """Return the checksum of the sources, computed as in build_kernels.py."""
    total = 0
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(SOURCES) for name in names)
    for path in sorted(path for path in paths if path.endswith((".c", ".h"))):
        with open(path, "rb") as file:
            total = zlib.crc32(file.read(), total)
    return total
