"""Damaged heaps of strings in HDF5 files are refused; in a browser this keeps libhdf5 from a loop without end."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.hdf5_files import HEAP, hanging, legacy

from tallow.errors import CheckpointError
from tallow.keras.saving.hdf5_heaps import PART, require_heaps

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "emscripten", reason="a browser has no processes")


def check(raw: bytes | bytearray) -> None:
    require_heaps(np.frombuffer(raw, np.uint8), "a.h5")


def changed(raw: bytes, offset: int, value: int) -> bytes:
    """Return a file with another number of eight bytes so far behind the start of its first heap."""
    at = raw.index(HEAP) + offset
    return raw[:at] + value.to_bytes(8, "little") + raw[at + 8 :]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_whole_files_pass(libver: str) -> None:
    file = io.BytesIO()
    with h5py.File(file, "w", libver=libver) as opened:
        for index in range(40):  # strings of all lengths, in several heaps
            opened.attrs[f"names{index}"] = ["x" * (index * length) for length in range(1, 30)]
        opened["numbers"] = np.frombuffer(b"GCOL\x01\0\0\0" * 1000, np.float64)  # heaps by their first letters
    assert file.getvalue().count(HEAP) > 1002
    check(file.getvalue())
    check(b"no HDF5")
    check(b"")


@pytest.mark.parametrize(
    ("offset", "value"),
    [(16 + 8, 0), (16 + 8, 2**64 - 1), (16 + 8, 2**64 - 16), (16 + 8, 1 << 20)],
)
def test_an_object_of_an_impossible_size(offset: int, value: int) -> None:
    with pytest.raises(CheckpointError, match=r"a\.h5 is damaged: object \d of a heap has \d+ bytes"):
        check(changed(legacy(["dense", "dense_1"]), offset, value))


@pytest.mark.parametrize("before", [0, 512, PART - 3, PART - 24, PART])
def test_a_heap_is_found_anywhere(before: int) -> None:
    raw = hanging()
    start = raw.index(HEAP)
    with pytest.raises(CheckpointError, match="object 0 of a heap has 0 bytes"):
        check(bytes(before) + raw[start:])


@pytest.mark.parametrize(("libver", "at"), [("earliest", 13), ("latest", 9)])
def test_lengths_of_other_sizes_are_refused(libver: str, at: int) -> None:
    """Heaps of such files have another layout."""
    file = io.BytesIO()
    with h5py.File(file, "w", libver=libver):
        pass
    for place in (at, at + 1):  # the sizes of addresses and of lengths
        raw = bytearray(file.getvalue())
        assert raw[place] == 8
        raw[place] = 4
        with pytest.raises(CheckpointError, match="do not have 8 bytes"):
            check(raw)


def test_where_there_are_no_processes_the_file_is_refused_before_libhdf5_loops(tmp_path: Path) -> None:
    path = tmp_path / "bad.h5"
    path.write_bytes(hanging())
    program = """
import sys
from tallow import keras
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
sys.platform = "emscripten"
model.load_weights(sys.argv[1])
"""
    ended = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=300)
    assert "CheckpointError" in ended.stderr
    assert "bad.h5 is damaged: object 0 of a heap has 0 bytes" in ended.stderr
