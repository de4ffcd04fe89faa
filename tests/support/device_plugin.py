"""Pytest plugin: `--device cuda` puts tensors on a GPU, `--device like-cuda` on the CuPy stand-in.

New tensors are then created on the device unless a test says otherwise, including those created at import. Tests read
results as on the CPU: `numpy()` and NumPy functions copy them to the host if a test calls them; if tallow itself calls
them, they raise as usual. A test that only makes sense on the CPU has a mark with the reason:

    @pytest.mark.cpu("shares memory with NumPy")
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import devices

TESTS = str(Path(__file__).parents[1])
NUMPY = str(Path(np.__file__).parent)


class DevicePlugin:
    """The plugin, active if `--device` names a device other than the CPU."""

    def __init__(self, device: str) -> None:
        self.device = device
        if device == "like-cuda":
            from support import cupy_like

            cupy_like.register()
        devices.get_backend("cuda")  # raises with a hint if something is missing
        self._numpy, self._array = tl.Tensor.numpy, tl.Tensor.__array__

    def pytest_sessionstart(self) -> None:
        original_numpy, original_array = self._numpy, self._array

        def numpy(self: tl.Tensor, *, force: bool = False) -> Any:
            return original_numpy(self.cpu() if _called_by_test() else self, force=force)

        def array(self: tl.Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
            return original_array(self.cpu() if _called_by_test() else self, dtype, copy)

        tl.Tensor.numpy, tl.Tensor.__array__ = numpy, array  # type: ignore[method-assign]
        tl.set_default_device("cuda")

    def pytest_sessionfinish(self) -> None:
        tl.set_default_device(None)
        tl.Tensor.numpy, tl.Tensor.__array__ = self._numpy, self._array  # type: ignore[method-assign]

    def pytest_report_header(self) -> str:
        return f"tensors: on {self.device}"

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if (about := item.get_closest_marker("cpu")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"about the CPU: {about.args[0]}"))

    @pytest.fixture(autouse=True)
    def _default_device(self) -> Any:
        """Undo a test's changes of the default device."""
        tl.set_default_device("cuda")


def _called_by_test() -> bool:
    """Return whether the code that requests a host copy is a test, possibly through NumPy."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(NUMPY):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename.startswith(TESTS)
