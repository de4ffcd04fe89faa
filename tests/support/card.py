"""A GPU, or its emulation, as tests of CUDA kernels see it: arrays go there and back, kernels run between guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from support import cuda_emulator
from tallow import devices, dtypes, kernels
from tallow.dtypes import dtype

GUARD = 512  # bytes; a multiple of what kernels ask of alignment
POISON = 0xFF  # NaN in every float format, and -1


class Card:
    """Where kernels run: CuPy, or its stand-in, on which they are emulated.

    Args:  emulated: then each call of `run` is made twice, with the threads in both orders, and must give the same bits
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, emulated: bool) -> None:
        self.backend: Any = devices.get_backend("cuda")
        self.emulated = emulated
        self._memory: list[Any] = []
        xp = self.backend.module
        plain_empty = xp.empty

        def empty(shape: Any, dtype: Any = np.float32, **_: Any) -> Any:
            shape = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            memory = plain_empty(GUARD + size + GUARD, np.uint8)
            memory[...] = POISON
            self._memory.append(memory)
            return memory[GUARD : GUARD + size].view(dtype).reshape(shape)

        monkeypatch.setattr(xp, "empty", empty)
        monkeypatch.setattr(xp, "empty_like", lambda a, dtype=None, **_: empty(a.shape, dtype or a.dtype))

    def put(self, array: Any, to: dtype | None = None) -> Any:
        """The array on the card, converted; one of float64 becomes float32 at least."""
        array = np.asarray(array)
        if to is None and array.dtype == np.float64:
            to = dtypes.float32
        stored = array if to is None else dtypes.cast(array.astype(np.float32), to)
        return self.backend.from_host(stored, devices.device("cuda"))

    def get(self, array: Any) -> Any:
        """A result on the host: floats in float64."""
        host = self.backend.to_host(array)
        return dtypes.widen(host).astype(np.float64) if dtypes.dtype_of(host).is_floating_point else host

    def run(self, name: str | Callable[..., Any], *args: Any) -> Any:
        """What the CUDA kernel `name` gives, or a function that starts some; it must not write into its arguments."""
        result = self.run_once(name, *args)
        if self.emulated:
            with backwards():
                again = self.run_once(name, *args)
            for a, b in zip(_each(result), _each(again), strict=True):
                assert a.host.tobytes() == b.host.tobytes(), f"{name}: the order of threads matters"
        return result

    def run_once(self, name: str | Callable[..., Any], *args: Any) -> Any:
        with kernels.require("cuda"):
            result = name(*args) if callable(name) else kernels.run(name, *args)
        for memory in self._memory:
            host = self.backend.to_host(memory)
            assert (host[:GUARD] == POISON).all(), f"{name} wrote before an array"
            assert (host[-GUARD:] == POISON).all(), f"{name} wrote behind an array"
        self._memory.clear()
        return result


def _each(result: Any) -> list[Any]:
    return [part for part in result if part is not None] if isinstance(result, tuple | list) else [result]


@contextmanager
def backwards() -> Iterator[None]:
    """Within the block, emulated threads run in the reverse order."""
    cuda_emulator.backwards = True
    try:
        yield
    finally:
        cuda_emulator.backwards = False


def rounded(array: Any, to: dtype) -> Any:
    """The values of an array of `to` that is nearest, in float64."""
    return dtypes.widen(dtypes.cast(np.asarray(array, np.float32), to)).astype(np.float64)


# How far a result of a dtype may lie from the exact value, as a part of it: half a unit in the last place, and more for
# the float32 arithmetic on the way.
PRECISION = {dtypes.float32: 2e-6, dtypes.float16: 1e-3, dtypes.bfloat16: 8e-3}
FLOATS = list(PRECISION)
