"""tl.cuda, on machines with and without a GPU."""

from __future__ import annotations

import pytest

import tallow as tl
from tallow.errors import DeviceError


def test_a_device_is_available_where_tensors_can_be_made_on_it() -> None:
    if tl.cuda.is_available():
        assert tl.cuda.device_count() > 0
        assert tl.zeros(1, device="cuda").is_cuda
    else:
        assert tl.cuda.device_count() == 0
        with pytest.raises(DeviceError):
            tl.zeros(1, device="cuda")


def test_devices_are_counted_by_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        class cuda:
            class runtime:
                getDeviceCount = staticmethod(lambda: 2)

    class Backend:
        module = Library

    monkeypatch.setattr("tallow.cuda.get_backend", lambda type: Backend)
    assert tl.cuda.is_available()
    assert tl.cuda.device_count() == 2


def test_one_seed_serves_all_devices() -> None:
    tl.cuda.manual_seed_all(7)
    first = tl.rand(3)
    tl.manual_seed(7)
    assert tl.rand(3).tolist() == first.tolist()


def test_asking_for_a_capture_loads_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs ask at every step, such as transformers' `generate`."""
    monkeypatch.setattr("tallow.cuda.graphs.is_loaded", lambda type: False)
    monkeypatch.setattr("tallow.cuda.graphs.get_backend", lambda type: pytest.fail("asked for the backend"))
    assert not tl.cuda.is_current_stream_capturing()
