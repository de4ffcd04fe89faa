"""What PyTorch's programs set for the whole process: threads, precision, determinism."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

from tallow import backends, dtypes
from tallow.errors import ArgumentError

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_num_threads",
    "use_deterministic_algorithms",
]

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
PRECISIONS = ("highest", "high", "medium")


class _Process:
    """What was set."""

    precision = "highest"
    deterministic = False


def set_num_threads(num: int) -> None:
    """Use this many threads where NumPy's BLAS multiplies matrices on the CPU.

    It needs the package threadpoolctl; without it there is a warning, and the number stays as it is. In a browser there
    is one thread.

    Raises:  ArgumentError for no positive number
    """
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_threads: expected a positive number of threads, got {num!r}")
    pools = _thread_pools()
    if pools is not None:
        pools.limit(limits=num, user_api="blas")
    elif num != get_num_threads():
        warnings.warn(
            f"set_num_threads({num}) changes nothing without threadpoolctl: install it, or set "
            f"OMP_NUM_THREADS={num} before Python starts",
            stacklevel=2,
        )


def get_num_threads() -> int:
    """How many threads NumPy's BLAS may use."""
    pools = _thread_pools()
    if pools is not None:
        return max((pool["num_threads"] for pool in pools.info() if pool["user_api"] == "blas"), default=1)
    if sys.platform == "emscripten":
        return 1
    given = [os.environ[name] for name in THREAD_VARIABLES if os.environ.get(name, "").isdigit()]
    return int(given[0]) if given else os.cpu_count() or 1


def _thread_pools() -> Any:
    """The thread pools of the loaded libraries, or None without threadpoolctl."""
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None


def get_num_interop_threads() -> int:
    """1: operations run one after the other."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accepted for any positive number, which in PyTorch is an upper limit."""
    if num < 1:
        raise ArgumentError(f"set_num_interop_threads: expected a positive number of threads, got {num!r}")


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 matrices less precision than float32, "high" or "medium".

    On the CPU none is less precise; on a GPU it is `backends.cuda.matmul.allow_tf32`.
    """
    if precision not in PRECISIONS:
        raise ArgumentError(f"set_float32_matmul_precision: {precision!r}", mend=f"use one of {PRECISIONS}")
    _Process.precision = precision
    backends.cuda.matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    return _Process.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Promise the same numbers in every run. On the CPU they always are; CuPy makes no such promise for sums into one
    place, such as the gradient of an embedding."""
    _Process.deterministic = mode


def are_deterministic_algorithms_enabled() -> bool:
    return _Process.deterministic


def set_default_tensor_type(t: Any) -> None:
    """The older form of `set_default_dtype`: of "torch.FloatTensor", or the class."""
    name = (t if isinstance(t, str) else t.__name__).split(".")[-1]
    known = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16}
    if name not in known:
        raise ArgumentError(f"set_default_tensor_type: {name} is no CPU type of floats", mend=f"use one of {[*known]}")
    dtypes.set_default_dtype(known[name])
