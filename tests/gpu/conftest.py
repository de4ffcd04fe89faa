"""Run each test with the device `cuda` twice: CuPy on a GPU, and the CuPy stand-in without one."""

from __future__ import annotations

import pytest
from support import cupy_like
from support.card import Card

import tallow_cuda
from tallow import devices
from tallow.errors import DeviceError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    gpu_marked = [item for item in items if item.get_closest_marker("gpu")]
    try:
        if gpu_marked:
            devices.get_backend("cuda")
    except DeviceError as error:
        for item in gpu_marked:
            item.add_marker(pytest.mark.skip(reason=str(error).splitlines()[0]))


@pytest.fixture(params=[pytest.param("cupy", marks=pytest.mark.gpu), "like cupy"])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an available device."""
    if request.param == "like cupy":
        backend = cupy_like.Backend()
        monkeypatch.setitem(devices._BY_TYPE, backend.type, backend)
        monkeypatch.setitem(devices._BY_ARRAY, backend.array_type, backend)
        tallow_cuda.register_kernels(backend)
    return "cuda"


@pytest.fixture
def card(request: pytest.FixtureRequest, cuda: str, monkeypatch: pytest.MonkeyPatch) -> Card:
    """Run CUDA kernels on a GPU, or on the CPU by tests/support/cuda_emulator."""
    return Card(monkeypatch, emulated=devices.get_backend("cuda").module is cupy_like.MODULE)
