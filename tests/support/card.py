"""Access to a GPU or its emulator for CUDA kernel tests: copy arrays, run kernels, detect out-of-bounds writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from support import cuda_emulator
from tallow import devices, dtypes, kernels
from tallow.dtypes import dtype

GUARD = 512  # bytes; a multiple of the alignment that kernels require
POISON = 0xFF  # NaN in every float format, -1 as an integer


class Card:
    """A device to run kernels on: CuPy on a GPU, or its stand-in, which runs them in the emulator.

    While it is in use, `empty` of the array library surrounds each array with guard bytes, so out-of-bounds writes are
    found, and fills the array with NaN, so elements that are not written are found.

    Args:
        emulated: if True, `run` calls each kernel twice, with the threads in both orders, and requires equal bits.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, emulated: bool) -> None:
        self.backend: Any = devices.get_backend("cuda")
        self.emulated = emulated
        self._memory: list[Any] = []
        xp = self.backend.module
        original_empty = xp.empty

        def empty(shape: Any, dtype: Any = np.float32, **_: Any) -> Any:
            shape = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            memory = original_empty(GUARD + size + GUARD, np.uint8)
            memory[...] = POISON
            self._memory.append(memory)
            return memory[GUARD : GUARD + size].view(dtype).reshape(shape)

        monkeypatch.setattr(xp, "empty", empty)
        monkeypatch.setattr(xp, "empty_like", lambda a, dtype=None, **_: empty(a.shape, dtype or a.dtype))

    def put(self, array: Any, to: dtype | None = None) -> Any:
        """Copy an array to the device, converted to `to`. Without `to`, float64 becomes float32."""
        array = np.asarray(array)
        if to is None and array.dtype == np.float64:
            to = dtypes.float32
        stored = array if to is None else dtypes.cast(array.astype(np.float32), to)
        return self.backend.from_host(stored, devices.device("cuda"))

    def get(self, array: Any) -> Any:
        """Copy a result to the host; floats become float64."""
        host = self.backend.to_host(array)
        return dtypes.widen(host).astype(np.float64) if dtypes.dtype_of(host).is_floating_point else host

    def run(self, name: str | Callable[..., Any], *args: Any) -> Any:
        """Run the CUDA kernel `name`, or a function that launches kernels, and return the result. No stray writes."""
        result = self.run_once(name, *args)
        if self.emulated:
            with reverse_threads():
                again = self.run_once(name, *args)
            for a, b in zip(_as_list(result), _as_list(again), strict=True):
                assert a.host.tobytes() == b.host.tobytes(), f"{name}: the result depends on the order of threads"
        return result

    def run_once(self, name: str | Callable[..., Any], *args: Any) -> Any:
        with kernels.require("cuda"):
            result = name(*args) if callable(name) else kernels.run(name, *args)
        for memory in self._memory:
            host = self.backend.to_host(memory)
            assert (host[:GUARD] == POISON).all(), f"{name} wrote before the start of an array"
            assert (host[-GUARD:] == POISON).all(), f"{name} wrote past the end of an array"
        self._memory.clear()
        return result


def _as_list(result: Any) -> list[Any]:
    return [part for part in result if part is not None] if isinstance(result, tuple | list) else [result]


@contextmanager
def reverse_threads() -> Iterator[None]:
    """Run emulated threads in reverse order within the block."""
    cuda_emulator.backwards = True
    try:
        yield
    finally:
        cuda_emulator.backwards = False


def round_to(array: Any, to: dtype) -> Any:
    """Round an array to the dtype `to` and return the values in float64."""
    return dtypes.widen(dtypes.cast(np.asarray(array, np.float32), to)).astype(np.float64)


# Relative tolerances of results by dtype: half a unit in the last place, plus the error of intermediate float32
# arithmetic.
PRECISION = {dtypes.float32: 2e-6, dtypes.float16: 1e-3, dtypes.bfloat16: 8e-3}
FLOATS = list(PRECISION)
