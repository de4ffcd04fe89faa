"""NumPy files: NumPy reads files saved here, and files saved by NumPy load, except object and record arrays."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.fuzz import Reader, change_zip
from support.memory_limit import limit_peak_memory

import tallow as tl
from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, TallowError
from tallow.io import npz

DTYPES = [d.storage for d in dtypes.ALL if d is not dtypes.bfloat16]
MIB = 2**20


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def archive(write: Any = np.savez, **named: Any) -> bytes:
    file = io.BytesIO()
    write(file, **named)
    return file.getvalue()


def with_header(text: str, data: bytes = b"", *, version: bytes = b"\x01\x00") -> bytes:
    return npz.MAGIC + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text.encode() + data


VALID = npy(np.arange(6, dtype=np.float32).reshape(2, 3))
VALID_NPZ = archive(a=np.arange(3.0), b=np.array([True]))
VALID_COMPRESSED = archive(np.savez_compressed, a=np.arange(3.0))


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(
            dtype.newbyteorder(">") if dtype.itemsize % 3 == 2 else dtype, arrays.array_shapes(min_dims=0, min_side=0)
        )
    ),
    st.booleans(),
)
def test_files_saved_by_numpy_load(array: np.ndarray[Any, Any], fortran: bool) -> None:
    array = np.asarray(array, order="F" if fortran else "C")
    native = array.astype(array.dtype.newbyteorder("="))
    np.testing.assert_array_equal(npz.load_array(npy(array)).numpy(), native, strict=True)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_archives_of_numpy_are_read(write: Any) -> None:
    loaded = npz.load(archive(write, a=np.arange(6).reshape(2, 3), **{"layer.0/w": np.float32(2)}))
    assert {name: t.tolist() for name, t in loaded.items()} == {"a": [[0, 1, 2], [3, 4, 5]], "layer.0/w": 2.0}
    loaded["a"].array[...] = 1 if write is np.savez_compressed else loaded["a"].array


def test_big_endian_is_converted() -> None:
    assert npz.load_array(npy(np.array([1.5, -2], ">f4"))).tolist() == [1.5, -2]


def test_stored_arrays_are_views() -> None:
    buffer = bytearray(VALID)
    loaded = npz.load_array(buffer)
    buffer[-4:] = np.float32(9).tobytes()
    assert loaded[1, 2].item() == 9


@given(st.dictionaries(st.text("ab./é", min_size=1), st.sampled_from(DTYPES), max_size=3))
def test_numpy_loads_saved_files(named: dict[str, np.dtype[Any]]) -> None:
    tensors = {name: tl.from_numpy(np.ones((2, 3), dtype).T) for name, dtype in named.items()}
    file = io.BytesIO()
    try:
        npz.save(tensors, file)
    except ArgumentError:  # a path that leads out of the archive
        assert any(name.startswith("/") or ".." in name.split("/") for name in named)
        return
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as loaded:
        assert set(loaded) == set(tensors)
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(loaded[name], tensor.numpy(), strict=True)
    assert all(t.tolist() == tensors[name].tolist() for name, t in npz.load(file.getvalue()).items())


def test_shapes_survive_numpy() -> None:
    for tensor in (tl.tensor(3), tl.zeros(0, 2), tl.arange(6).reshape(2, 3).T):
        file = io.BytesIO()
        npz.save_array(tensor, file)
        loaded = np.load(io.BytesIO(file.getvalue()), allow_pickle=False)
        np.testing.assert_array_equal(loaded, tensor.numpy(), strict=True)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "not an .npy file"),
        (VALID[:11], "not an .npy file"),
        (VALID[:-1], "23 bytes for 6 elements of float32"),
        (VALID + b"\0", "25 bytes for 6 elements"),
        (VALID.replace(b"\x01\x00", b"\x04\x00", 1), "version 4"),
        (VALID[:40], "a header of"),
        (npy(np.array([None]), allow_pickle=True), "does not describe an array of numbers"),
        (npy(np.zeros(2, [("a", "f4")])), "does not describe an array of numbers"),
        (npy(np.array([1j])).replace(b"<c16", b"<c32"), "'<c32', which tallow lacks"),
        (npy(np.array([1], np.float16)).replace(b"<f2", b"<f3"), "'<f3', which tallow lacks"),
        (npy(np.array(["text"])), "which tallow lacks"),
        (npy(np.array([1], "M8[s]")), "does not describe an array of numbers"),
        (npy(np.array([True])).replace(b"\x01", b"\x02")[:0] + npy(np.array([True]))[:-1] + b"\x02", "booleans other"),
        (
            with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (100000000,), }"),
            "0 bytes for 100000000",
        ),
        (
            with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999999999999), }"),
            "exceeds all memory",
        ),
        (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "0," * 65 + "), }"), "exceeds all memory"),
        (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "does not describe an array"),
        (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 1,), }"), "is damaged"),
        (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': '<f4', }"), "is damaged"),
        (with_header("{'descr': '<f4', 'fortran_order': False}"), "does not describe an array"),
        (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': ()}"), "does not describe an array"),
        (with_header("[" * 9000), "does not describe an array"),
        (with_header("{'shape': (" + "1" * 9000 + "x"), "does not describe an array"),
        (with_header(" " * 10_001), "a header of 10001 bytes"),
    ],
)
def test_arrays_that_cannot_be_read_say_why(file: bytes, message: str) -> None:
    with limit_peak_memory(MIB), pytest.raises(CheckpointError) as caught:
        npz.load_array(file)
    assert message in str(caught.value)


def test_headers_of_other_writers_are_read() -> None:
    """Headers without a trailing comma, in another order, in version 2, with Python 2's long integers."""
    data = np.arange(2, dtype=np.int16).tobytes()
    for text in (
        "{'shape': (2,), 'fortran_order': False, 'descr': '<i2'}",
        '{"descr":"<i2","fortran_order":True,"shape":(2L,)}\n',
    ):
        for version in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
            assert npz.load_array(with_header(text, data, version=version)).tolist() == [0, 1]


def test_archive_with_other_entries_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"it has an entry 'a\.txt'"):
        npz.load(VALID_NPZ.replace(b"a.npy", b"a.txt"))


def test_compression_bombs_are_refused() -> None:
    bomb = archive(np.savez_compressed, a=np.zeros(20_000_000, np.float32))
    with limit_peak_memory(MIB), pytest.raises(CheckpointError, match="would expand to"):
        npz.load(bomb)


def test_unsupported_values_raise() -> None:
    with pytest.raises(ArgumentTypeError, match="'a' is ndarray"):
        npz.save({"a": np.ones(2)}, io.BytesIO())  # type: ignore[dict-item]
    with pytest.raises(ArgumentTypeError, match="bfloat16"):
        npz.save_array(tl.ones(2, dtype=tl.bfloat16), io.BytesIO())


@given(st.binary(max_size=40))
def test_any_bytes_are_an_array_or_a_tallow_error(file: bytes) -> None:
    with suppress(TallowError):
        assert npz.load_array(file).array.nbytes <= len(file)


@pytest.mark.parametrize("valid", [VALID_NPZ, VALID_COMPRESSED], ids=["stored", "compressed"])
def test_damaged_files_are_an_archive_or_a_tallow_error(valid: bytes, read_damaged: Any) -> None:
    read_damaged("npz of arrays", Reader(valid, lambda raw, place: npz.load(raw), change_zip))
