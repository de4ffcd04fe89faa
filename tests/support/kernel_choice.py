"""The choice of the backend that computes a kernel in a test."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from tallow import kernels
from tallow.kernels import library


def using(backend: str, name: str) -> AbstractContextManager[None]:
    """Return a context in which a backend computes a kernel; skip the test where it has none."""
    if backend == "array":
        return kernels.off()
    info = kernels.info()
    if not info.enabled or name not in info.kernels:
        pytest.skip(info.reason or "kernels are switched off, or the library lacks it")
    return kernels.require(library.BACKEND)
