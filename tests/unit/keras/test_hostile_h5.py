"""Damaged HDF5 files that make libhdf5 hang, or fill memory, end the process that reads them, and nothing else."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hdf5_files import hanging, legacy
from support.memory_limit import limit_peak_memory

from tallow import keras
from tallow.errors import CheckpointError, WorkerError
from tallow.io.byte_file import ByteFile
from tallow.keras import layers
from tallow.keras.saving import hdf5_process
from tallow.keras.saving.hdf5 import WeightsFile
from tallow.keras.saving.hdf5_process import Hdf5Process
from tallow.keras.saving.hdf5_tree import Hdf5Tree

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "emscripten", reason="a browser has no processes")

REFERENCE = struct.Struct("<IQI")  # to a string: its length, the place of the collection, the number of the object


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that read files; all have ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(hdf5_process.subprocess, "Popen", Popen)
    yield started
    assert started
    assert all(process.returncode is not None for process in started)


def model() -> keras.Sequential:
    return keras.Sequential([keras.Input((2,)), layers.Dense(1, name="dense")])


def test_a_file_that_hangs_libhdf5_ends_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(hdf5_process, "CPU_S", 1)
    path = tmp_path / "bad.h5"
    path.write_bytes(hanging())
    with pytest.raises(CheckpointError, match=r"bad\.h5 is damaged: h5py ended \(-"):
        model().load_weights(path)
    with pytest.raises(CheckpointError, match=r"bad\.h5 is damaged: h5py ended \(-"):
        keras.models.load_model(path)
    assert len(processes) == 2


def test_weights_within_a_keras_file_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    path, bad = tmp_path / "good.keras", tmp_path / "bad.keras"
    model().save(path)
    with zipfile.ZipFile(path) as good, zipfile.ZipFile(bad, "w") as copy:
        for name in good.namelist():
            copy.writestr(name, hanging() if name.endswith(".h5") else good.read(name))
    assert keras.models.load_model(path).count_params() == 3
    monkeypatch.setattr(hdf5_process, "CPU_S", 1)
    with pytest.raises(CheckpointError, match=r"bad\.keras: model\.weights\.h5 is damaged: h5py ended \(-"):
        keras.models.load_model(bad)


def test_strings_that_share_their_bytes_do_not_fill_memory(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    """3000 times the same million letters."""
    letters = 1_000_000
    raw = bytearray(legacy(["x" * letters, *("y" * 3000)]))
    first = raw.index(struct.pack("<I", letters))
    reference = bytes(raw[first : first + REFERENCE.size])
    assert REFERENCE.unpack(reference)[0] == letters
    raw[first : first + 3000 * REFERENCE.size] = reference * 3000
    path = tmp_path / "bad.h5"
    path.write_bytes(raw)
    with limit_peak_memory(32 << 20), pytest.raises(CheckpointError, match=r"bad\.h5 is damaged"):
        model().load_weights(path)


def test_a_program_without_python_says_that_it_has_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.weights.h5"
    model().save_weights(path)
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(WorkerError, match=r"no process can be started to read .*a\.weights\.h5"):
        model().load_weights(path)


def test_arrays_that_do_not_lie_in_the_file_as_they_are() -> None:
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened.create_dataset("a", data=np.zeros(1 << 16, "f4"), compression="gzip")
        opened.create_dataset("b", data=np.arange(6, dtype=">i4").reshape(2, 3))
    weights = WeightsFile(np.frombuffer(file.getvalue(), np.uint8), "weights")
    try:
        assert weights.read(weights.dataset_at("b")).tolist() == [[0, 1, 2], [3, 4, 5]]
        array = weights.dataset_at("a")
        assert weights.read(array).shape == (1 << 16,)
        with pytest.raises(CheckpointError, match="262144 of 12 bytes"):  # what the process says is checked
            weights.read(array._replace(shape=(3,)))
    finally:
        weights.close()


def test_texts_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "bad.h5"
    model().save(path)
    path.write_bytes(path.read_bytes().replace(b'"module": "keras"', b'"module":\xff"keras"'))
    with pytest.raises(CheckpointError, match=r"bad\.h5: model_config is not valid JSON"):
        keras.models.load_model(path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_limits_of_the_user_hold_too(tmp_path: Path) -> None:
    path = tmp_path / "a.weights.h5"
    model().save_weights(path)
    program = """
import resource, sys
from tallow import keras
for kind, most in ((resource.RLIMIT_AS, 8 << 30), (resource.RLIMIT_CPU, 600), (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(kind, (most, most))
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
model.load_weights(sys.argv[1])
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=300)


def test_a_browser_reads_the_same_without_a_process(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    whole = model()
    whole.compile("adam", "mse")
    whole.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    whole.save(path)
    data = np.fromfile(path, np.uint8)
    with closing(Hdf5Process(data, "a.h5")) as process, closing(Hdf5Tree(ByteFile(data), len(data))) as tree:
        assert process.description == json.loads(json.dumps(tree.description))
        arrays = process.description["arrays"]
        assert {"model_weights/dense/0_kernel", "optimizer_weights/0_array"} <= arrays.keys()
        for number in range(len(arrays)):
            assert process.read(number).tobytes() == tree.read(number).tobytes()


def test_groups_that_contain_themselves(tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    path = tmp_path / "bad.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense")
        group["layers"] = file["layers"]
    with pytest.raises(CheckpointError, match="missing"):
        model().load_weights(path)
