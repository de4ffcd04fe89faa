"""torch.__config__: how the library is built."""

from __future__ import annotations

import platform

import numpy

from tallow import __version__
from tallow.kernels import threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return a description of the build."""
    return f"tallow {__version__}\n  - Python {platform.python_version()}\n  - NumPy {numpy.__version__}\n"


def parallel_info() -> str:
    """Return a description of the threads."""
    return f"Threads of kernels: {threads.thread_count()}\n"
