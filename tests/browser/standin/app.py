"""A demo without a model, for the tests of web/."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow import kernels
from tallow.errors import CheckpointError, WorkerError

REFUSED = b"refuse me"


class Demo:
    def __init__(self) -> None:
        self.closed = 0

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if head.startswith(REFUSED):
            raise CheckpointError(f"{name} of size {size} is refused", hint="send another")
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        return {name: [array.size, hashlib.sha256(array).hexdigest()] for name, array in files.items()}

    def describe(self, *, numbers: list[float], **rest: Any) -> dict[str, Any]:
        """Return a value of every type that a call can return."""
        array = np.asarray(numbers, dtype=np.float32)
        return {"sum": float(array.sum()), "array": 2 * array, "bytes": b"\x00\xff", "rest": rest, "none": None}

    def softmax(self, *, row: list[float]) -> dict[str, Any]:
        """Return a compiled kernel's result, and the name of its library."""
        with kernels.require("wasm"):
            result = tl.softmax(tl.tensor(row), dim=0)
        return {"result": result.tolist(), "library": kernels.info().library}

    def memory(self) -> str:
        """Return the JavaScript type of Python's memory."""
        from pyodide_js import _module  # a module of Pyodide

        return str(_module.HEAPU8.buffer.constructor.name)

    def columns(self) -> list[bool]:
        """Return whether code has columns of its instructions: of Python's library, NumPy and tallow, and new code."""
        new = compile("def f():\n    return f(1)", "new", "exec")
        known = (json.loads.__code__, np.ndindex.__init__.__code__, tl.nn.Linear.forward.__code__, new)
        return [any(column is not None for *_, column in code.co_positions()) for code in known]

    def python(self) -> dict[str, Any]:
        """Return what differs from one start of Python to the next, and what Python finds in its files."""
        import colorsys
        import ctypes
        import importlib.resources
        import inspect

        import numpy.fft

        increment = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda value: value + 1)
        texts = importlib.resources.files("numpy")
        return {
            "random": {
                "random": random.random(),
                "numpy": np.random.rand(),
                "generator": np.random.default_rng().random(),
                "tallow": tl.rand(1).item(),
                "uuid": str(uuid.uuid1()),
                "folder": tempfile.mkdtemp(),
            },
            "time_zone": [time.timezone, True],
            "time": datetime.datetime.now().astimezone().isoformat(),
            "language": os.environ["LANG"],
            "folder": os.getcwd(),
            "later": [
                colorsys.__name__,
                numpy.fft.fft(np.ones(4)).real.tolist(),
                inspect.getsource(tl.nn.Linear).splitlines()[0],
                next(name for name in ("numpy",) if texts.joinpath("py.typed").read_bytes() == b""),
                increment(41),
            ],
        }

    async def multiply(self, *, size: int, attempts: int = 2000) -> dict[str, Any]:
        """Multiply until another thread takes part, and compare the products with one thread's."""
        a, b = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
        tl.set_num_threads(1)
        expected = kernels.run("matmul", a, b)
        tl.set_num_threads(2)
        # Not at the top: the first kernel that is wanted loads the library, which the bindings need.
        from tallow.kernels.bindings import tab_threads

        others, same = 0, True
        for _ in range(attempts):
            same = same and bool((kernels.run("matmul", a, b) == expected).all())
            others = tab_threads.parts_of_others()
            if others:
                break
            await asyncio.sleep(0.05)
        return {"same": same, "others": others, "threads": tl.get_num_threads(), "summary": kernels.info().summary}

    def multiply_without_pause(self, *, size: int) -> dict[str, int]:
        """Multiply for at most a minute until another thread takes part, while the worker receives no events."""
        a = np.ones((size, size), np.float32)
        tl.set_num_threads(2)
        kernels.run("softmax", a)  # loads the library
        from tallow.kernels.bindings import tab_threads

        before, end = int(tab_threads._team().alive[0]), time.monotonic() + 60
        while time.monotonic() < end:
            kernels.run("matmul", a, a)
            if tab_threads.parts_of_others():
                break
        return {"before": before, "others": tab_threads.parts_of_others()}

    def multiply_in_new_memory(self, *, size: int) -> bool:
        """Multiply arrays in memory that Python has only now, and return whether another thread has done its part."""
        from pyodide_js import _module

        from tallow.kernels.bindings import tab_threads

        end = _module.HEAPU8.length
        memory = np.ones(end // 4, np.float32)
        assert memory.ctypes.data + memory.nbytes > end
        a, b, c = memory[-3 * size * size :].reshape(3, size, size)
        c[:] = kernels.run("matmul", a, b)
        return bool((c == size).all()) and tab_threads.parts_of_others() > 0

    def compute_until_lost(self, *, emit: Callable[[Any], None]) -> dict[str, Any]:
        """Compute products on two threads until a part of the other one is lost."""
        from tallow.kernels.bindings import threads

        threads.WORTH_A_THREAD = 1
        expected = self._product()
        emit("begun")
        try:
            while True:
                start = time.monotonic()
                self._product()
        except WorkerError as error:
            seconds = time.monotonic() - start
            emit("lost")
            time.sleep(0.2)  # the page ends no more threads
            return {"error": str(error), "seconds": seconds, "same": self._product() == expected}

    def _product(self) -> float:
        a = np.ones((1000, 1000), np.float32)
        return float(kernels.run("matmul", a, a).sum())

    def multiply_forever(self, *, emit: Callable[[Any], None]) -> str:
        a = np.ones((320, 320), np.float32)
        emit("begun")
        try:
            while True:
                kernels.run("matmul", a, a)
        except KeyboardInterrupt:
            return "interrupted"

    def fail(self) -> None:
        raise CheckpointError("failed on purpose", hint="ask for less")

    async def fail_later(self) -> None:
        await asyncio.sleep(0)
        self.fail()

    def count(self, *, to: int, emit: Callable[[Any], None]) -> str:
        for i in range(to):
            emit({"at": i})
            time.sleep(0.01)
        return "counted"

    def loop_forever(self, *, emit: Callable[[Any], None]) -> str:
        emit("begun")
        try:
            while True:
                pass
        except KeyboardInterrupt:
            return "interrupted"

    def generate(
        self, *, count: int, pause_s: float = 0.0, fail_at: int = -1
    ) -> Iterator[tuple[str, dict[str, float]]]:
        try:
            for i in range(count):
                if i == fail_at:
                    raise CheckpointError("failed on purpose", hint="ask for less")
                time.sleep(pause_s)
                yield f"{i} ", {"made": i + 1, "closed": self.closed}
        finally:
            self.closed += 1
