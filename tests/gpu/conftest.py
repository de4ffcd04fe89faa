"""The device `cuda` twice: CuPy on a GPU, and without one a stand-in that has CuPy's names and manners."""

from __future__ import annotations

import pytest
from support import cupy_like

from tallow import devices
from tallow.errors import DeviceError


@pytest.fixture(params=[pytest.param("cupy", marks=pytest.mark.gpu), "like cupy"])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a device that works."""
    if request.param == "cupy":
        skip_without_gpu()
    else:
        backend = cupy_like.Backend()
        monkeypatch.setitem(devices._BY_TYPE, backend.type, backend)
        monkeypatch.setitem(devices._BY_ARRAY, backend.array_type, backend)
    return "cuda"


@pytest.fixture
def gpu() -> str:
    """A device with a GPU behind it; the test is skipped without one."""
    skip_without_gpu()
    return "cuda"


def skip_without_gpu() -> None:
    try:
        devices.get_backend("cuda")
    except DeviceError as error:
        pytest.skip(str(error).splitlines()[0])
