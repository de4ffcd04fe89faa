"""Have another process read an HDF5 file, which ends if libhdf5 hangs, crashes or takes too much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

import numpy as np

from tallow.errors import CheckpointError, WorkerError
from tallow.io.source import Bytes
from tallow.keras.saving import hdf5_tree
from tallow.keras.saving.hdf5_tree import ANSWER, ASK, NUMBER, PAIR

CPU_S = 10  # of a processor, for an order; files of Keras take milliseconds
WALL_S = 120  # after which the process is killed, where the system does not count that
FREE_BYTES, DESCRIPTION_EXPANSION = 1 << 20, 8  # of the description, from the size of the file


class Hdf5Process:
    """An open file, with the interface of `Hdf5Tree`. Starting the process takes about a quarter of a second.

    Raises:  CheckpointError if the process ends before it answers; WorkerError if it does not start
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self._data = data
        self._name = name
        # -P: no module from the folder of the program. Plugins of libhdf5, which a file can name, are not loaded.
        command = [sys.executable, "-P", hdf5_tree.__file__, str(len(data)), str(CPU_S)]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        paths = os.pathsep.join(filter(None, sys.path))
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **threads, "PYTHONPATH": paths, "HDF5_PLUGIN_PRELOAD": "::"},
            )
        except OSError as error:
            raise WorkerError(
                f"no process can be started to read {name}: {error}", hint="check that sys.executable is Python's path"
            ) from error
        try:
            text = self._answer(FREE_BYTES + DESCRIPTION_EXPANSION * len(data))
            self.description: dict[str, Any] = json.loads(text.tobytes())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # the end of an order was still to be sent
                pipe.close()  # type: ignore[union-attr]

    def read(self, number: int) -> Bytes:
        """As `Hdf5Tree.read`."""
        array = [*self.description["arrays"].values()][number]
        try:
            self._send(NUMBER.pack(number))
        except OSError:
            raise self._ended() from None
        return self._answer(hdf5_tree.FREE_BYTES + hdf5_tree.MAX_EXPANSION * array["bytes"])

    def _send(self, data: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _answer(self, most: int) -> Bytes:
        """Return the next answer, of at most so many bytes; meanwhile, send parts of the file that are asked for."""
        timer = threading.Timer(WALL_S + most * hdf5_tree.CPU_S_PER_BYTE, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            while (kind := self._receive(1).tobytes()) == ASK:
                offset, size = PAIR.unpack(self._receive(PAIR.size).data)
                self._send(self._data[offset : offset + size].data)
            (size,) = NUMBER.unpack(self._receive(NUMBER.size).data)
            if size > most:
                raise CheckpointError(f"{self._name} is damaged: {size} bytes of text or of an array")
            answer = self._receive(size)
        except OSError:
            raise self._ended() from None
        finally:
            timer.cancel()
        if kind != ANSWER:
            raise CheckpointError(
                f"{self._name} is damaged or not an HDF5 file: {answer.tobytes().decode(errors='replace')}",
                hint="download or save it again",
            )
        return answer

    def _receive(self, size: int) -> Bytes:
        assert self._process.stdout is not None
        received = np.empty(size, np.uint8)
        view, done = received.data, 0
        while done < size and (count := self._process.stdout.readinto(view[done:])):  # type: ignore[attr-defined]
            done += count
        if done < size:
            raise self._ended()
        return received

    def _ended(self) -> CheckpointError:
        self._process.kill()
        return CheckpointError(
            f"{self._name} is damaged: h5py ended ({self._process.wait()}) while it read the file, "
            f"which takes at most {CPU_S} s of a processor and some memory",
            hint="download or save it again",
        )
