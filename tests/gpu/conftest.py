"""The device `cuda` twice: CuPy on a GPU, and without one a stand-in that has CuPy's names and manners."""

from __future__ import annotations

import pytest
from support import cupy_like
from support.card import Card

import tallow_cuda
from tallow import devices
from tallow.errors import DeviceError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    try:
        if marked:
            devices.get_backend("cuda")
    except DeviceError as error:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=str(error).splitlines()[0]))


@pytest.fixture(params=[pytest.param("cupy", marks=pytest.mark.gpu), "like cupy"])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a device that works."""
    if request.param == "like cupy":
        backend = cupy_like.Backend()
        monkeypatch.setitem(devices._BY_TYPE, backend.type, backend)
        monkeypatch.setitem(devices._BY_ARRAY, backend.array_type, backend)
        tallow_cuda.register_kernels(backend)
    return "cuda"


@pytest.fixture
def card(request: pytest.FixtureRequest, cuda: str, monkeypatch: pytest.MonkeyPatch) -> Card:
    """Where CUDA kernels run: on a GPU, and on the CPU by tests/support/cuda_emulator."""
    return Card(monkeypatch, emulated=devices.get_backend("cuda").module is cupy_like.MODULE)
