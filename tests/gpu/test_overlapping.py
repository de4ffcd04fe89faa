"""Kernels of a captured graph that overlap: which ones, and what the driver gets."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from support import cuda_emulator
from support.card import Card

from tallow import kernels
from tallow.errors import DeviceError
from tallow_cuda import overlapping
from tallow_cuda.linear_rows import linear_rows


def test_a_product_overlaps_only_where_that_is_allowed(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    if not card.emulated:
        pytest.skip("counted on the stand-in")
    seen: list[dict[str, Any]] = []
    plain = cuda_emulator.compile_kernel

    def compile_kernel(*args: Any) -> Any:
        run = plain(*args)
        return lambda *args, **options: seen.append(options) or run(*args, **options)  # type: ignore[func-returns-value]

    monkeypatch.setattr(card.backend, "compile_kernel", compile_kernel)
    card.backend.kernels.clear()
    x, weight = card.put(np.ones((1, 16))), card.put(np.ones((3, 16)))
    columns = card.put(np.ones((16, 3))).T  # not contiguous: a copy is made just before the kernel, which must wait
    linear_rows(x, weight)
    with overlapping.overlapping():
        linear_rows(x, weight)
        linear_rows(x, columns)
        kernels.run("rms_norm", x, None, 1e-5)
    linear_rows(x, weight)
    assert [options.get("overlaps", False) for options in seen] == [False, True, False, False, False]


def test_what_the_driver_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and offsets as in cuda.h, of CUDA 12 and 13."""
    assert (ctypes.sizeof(overlapping.Attribute), overlapping.Attribute.value.offset) == (72, 8)
    assert (ctypes.sizeof(overlapping.Configuration), overlapping.Configuration.stream.offset) == (56, 32)

    class Driver:
        def cuLaunchKernelEx(self, configuration: Any, function: Any, arguments: Any, extra: Any) -> int:
            made = configuration._obj
            assert (list(made.grid), list(made.block)) == ([5, 1, 1], [32, 4, 1])
            assert (made.shared_bytes, made.stream, function.value, extra) == (128, 77, 99, None)
            assert (made.attribute_count, made.attributes[0].id, made.attributes[0].value[0]) == (1, 6, 1)
            assert ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_longlong))[0] == -3
            assert ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_float))[0] == 0.5
            return 1

    monkeypatch.setattr(overlapping, "_driver", Driver)
    with pytest.raises(DeviceError, match="cuLaunchKernelEx returned 1"):
        overlapping.launch(99, (5,), (32, 4), (np.int64(-3), np.float32(0.5)), 128, 77)
