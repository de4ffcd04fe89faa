"""`pytest --device cuda`: the tests with their tensors on a GPU; `--device like-cuda`, on a stand-in that needs none.

New tensors then go to the device where a test does not say otherwise, those made at import too. Tests read results as
on the CPU: `numpy()`, and NumPy's functions, copy them to the host where a test calls them; where tallow itself does
they raise as ever. A test that is about the CPU says so, with the reason:

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


class OnDevice:
    """The plugin: `--device` was given, and not as the CPU."""

    def __init__(self, chosen: str) -> None:
        self.chosen = chosen
        if chosen == "like-cuda":
            from support import cupy_like

            cupy_like.register()
        devices.get_backend("cuda")  # says what is missing
        self._numpy, self._array = tl.Tensor.numpy, tl.Tensor.__array__

    def pytest_sessionstart(self) -> None:
        plain_numpy, plain_array = self._numpy, self._array

        def numpy(self: tl.Tensor, *, force: bool = False) -> Any:
            return plain_numpy(self.cpu() if _asked_by_a_test() else self, force=force)

        def array(self: tl.Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
            return plain_array(self.cpu() if _asked_by_a_test() else self, dtype, copy)

        tl.Tensor.numpy, tl.Tensor.__array__ = numpy, array  # type: ignore[method-assign]
        tl.set_default_device("cuda")

    def pytest_sessionfinish(self) -> None:
        tl.set_default_device(None)
        tl.Tensor.numpy, tl.Tensor.__array__ = self._numpy, self._array  # type: ignore[method-assign]

    def pytest_report_header(self) -> str:
        return f"tensors: on {self.chosen}"

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if (about := item.get_closest_marker("cpu")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"about the CPU: {about.args[0]}"))

    @pytest.fixture(autouse=True)
    def _default_device(self) -> Any:
        """What a test did to the default device is gone after it."""
        tl.set_default_device("cuda")


def _asked_by_a_test() -> bool:
    """Whether the code that wants the host's copy is a test, which may have asked through NumPy."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(NUMPY):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename.startswith(TESTS)
