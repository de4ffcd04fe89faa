"""Settings of the whole process, as in PyTorch: threads, precision, determinism."""

from __future__ import annotations

from typing import Any

from tallow import backends, dtypes
from tallow.errors import ArgumentError, warn
from tallow.kernels import threads

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_num_threads",
    "use_deterministic_algorithms",
]

PRECISIONS = ("highest", "high", "medium")
DEBUG_MODES = ("default", "warn", "error")


class _Process:
    """The current settings."""

    precision = "highest"
    deterministic = False
    warn_only = False


def set_num_threads(num: int) -> None:
    """Set the number of threads for kernels and matrix products, natively also for NumPy itself.

    The threads of NumPy's BLAS need the package threadpoolctl; without it, this warns that they keep their number. In a
    browser the number is at most what the page offers: one thread if the page is not cross-origin isolated. Results are
    the same for any number.

    Raises: ArgumentError unless the number is positive.
    """
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_threads: expected a positive number of threads, got {num!r}")
    before = get_num_threads()
    threads.set_thread_count(num)
    libraries = threads.blas_libraries()
    if libraries is not None:
        for library in libraries:
            library.set_num_threads(num)
    elif threads.IN_BROWSER:
        if get_num_threads() < num:
            because = threads.one_thread_because()
            most = f"{threads.most_threads()} is the most here" + f": {because}" * bool(because)
            warn(f"set_num_threads({num}): {most}")
    elif num != before:
        warn(
            f"set_num_threads({num}) has no effect on NumPy's products without threadpoolctl: install it, or set "
            f"OMP_NUM_THREADS={num} before Python starts"
        )


def get_num_threads() -> int:
    """Return the number of threads that kernels may use."""
    return threads.thread_count()


def get_num_interop_threads() -> int:
    """Return 1: ops run one after the other."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing. In PyTorch the number is an upper limit. Raises: ArgumentError unless it is positive."""
    if num < 1:
        raise ArgumentError(f"set_num_interop_threads: expected a positive number of threads, got {num!r}")


def set_float32_matmul_precision(precision: str) -> None:
    """Permit less precision in products of float32 matrices: "high" or "medium" instead of "highest".

    This has no effect on the CPU; on a GPU it sets `backends.cuda.matmul.allow_tf32`.
    """
    if precision not in PRECISIONS:
        raise ArgumentError(f"set_float32_matmul_precision: {precision!r}", hint=f"use one of {PRECISIONS}")
    _Process.precision = precision
    backends.cuda.matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """Return the setting of `set_float32_matmul_precision`."""
    return _Process.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Store the settings. On the CPU results are always deterministic.

    On a GPU CuPy adds into one element in no fixed order, for example in the gradient of an embedding.
    """
    _Process.deterministic, _Process.warn_only = mode, mode and warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Return the setting of `use_deterministic_algorithms`."""
    return _Process.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the setting `warn_only` of `use_deterministic_algorithms`."""
    return _Process.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set `use_deterministic_algorithms`: 0 or "default" turns it off, 1 or "warn" only warns, 2 or "error" raises.

    Raises: ArgumentError for another mode
    """
    modes: dict[int | str, int] = {name: i for i, name in enumerate(DEBUG_MODES)} | {i: i for i in range(3)}
    if debug_mode not in modes:
        raise ArgumentError(
            f"invalid value of debug_mode, expected 0, 1, 2 or one of {DEBUG_MODES}, got {debug_mode!r}"
        )
    use_deterministic_algorithms(modes[debug_mode] > 0, warn_only=modes[debug_mode] == 1)


def get_deterministic_debug_mode() -> int:
    """Return the mode of `set_deterministic_debug_mode`: 0, 1 or 2."""
    return (1 if _Process.warn_only else 2) if _Process.deterministic else 0


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a tensor type such as "torch.FloatTensor"; the former `set_default_dtype`."""
    name = (t if isinstance(t, str) else t.__name__).split(".")[-1]
    kinds = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16}
    if name not in kinds:
        raise ArgumentError(f"set_default_tensor_type: {name} is not a CPU float type", hint=f"use one of {[*kinds]}")
    dtypes.set_default_dtype(kinds[name])
