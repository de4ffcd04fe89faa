"""safetensors: allowed files load, forbidden ones are refused, in agreement with the package."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzz

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io import safetensors
from tallow.io.atomic import atomic_write

F32 = np.array([[1.0, -2.5], [0.0, 3.25]], dtype=np.float32)


def pack(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """Build a file from its parts without checking them."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if not isinstance(header, bytes):
        text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str = "F32", shape: Any = (2, 2), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


VALID = pack(
    {"a": entry(), "b": entry("I64", (), (16, 24)), "__metadata__": {"format": "pt"}}, F32.tobytes() + b"\x07" * 8
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def test_file_written_by_hand_reads_as_written() -> None:
    loaded = safetensors.load(VALID)
    np.testing.assert_array_equal(loaded["a"].numpy(), F32)
    assert loaded["b"].item() == 0x0707070707070707
    assert loaded["b"].shape == ()
    with safetensors.safe_open(VALID) as file:
        assert file.keys() == ["a", "b"]
        assert "a" in file
        assert "c" not in file
        assert file.metadata() == {"format": "pt"}
        assert file.info("b") == safetensors.TensorInfo("I64", (), 16, 24)


@pytest.mark.parametrize(
    ("name", "raw", "dtype", "values"),
    [
        ("F64", struct.pack("<2d", 0.5, -1), tl.float64, [0.5, -1]),
        ("F16", bytes.fromhex("003c00c0"), tl.float16, [1, -2]),
        ("BF16", bytes.fromhex("803f00c0"), tl.bfloat16, [1, -2]),
        ("I32", struct.pack("<2i", 5, -6), tl.int32, [5, -6]),
        ("I16", struct.pack("<2h", 5, -6), tl.int16, [5, -6]),
        ("I8", struct.pack("<2b", 5, -6), tl.int8, [5, -6]),
        ("U32", struct.pack("<2I", 5, 2**32 - 1), tl.uint32, [5, 2**32 - 1]),
        ("U8", b"\x05\xff", tl.uint8, [5, 255]),
        ("BOOL", b"\x01\x00", tl.bool, [True, False]),
    ],
)
def test_every_dtype_reads_little_endian(name: str, raw: bytes, dtype: tl.dtype, values: list[float]) -> None:
    tensor = safetensors.load(pack({"x": entry(name, (2,), (0, len(raw)))}, raw))["x"]
    assert tensor.dtype is dtype
    assert tensor.tolist() == values


def test_unaligned_tensor_is_read_aligned() -> None:
    raw = b"\x01" + F32.tobytes()
    file = pack({"byte": entry("U8", (1,), (0, 1)), "x": entry("F32", (2, 2), (1, 17))}, raw)
    for pad in range(4):  # whatever the buffer's address
        buffer = np.frombuffer(b"\0" * pad + file, dtype=np.uint8)[pad:]
        x = safetensors.load(buffer)["x"].numpy()
        assert x.flags.aligned
        np.testing.assert_array_equal(x, F32)


def test_loading_from_memory_shares_it() -> None:
    buffer = bytearray(VALID)
    tensor = safetensors.load(buffer)["b"]
    buffer[-8:] = bytes(8)
    assert tensor.item() == 0


def test_mapped_tensor_can_be_written_and_the_file_stays(path: Path) -> None:
    path.write_bytes(VALID)
    tensor = safetensors.load(path)["a"]
    tensor.array[...] = 9
    assert path.read_bytes() == VALID


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "0 bytes are too few"),
        (b"1234567", "7 bytes are too few"),
        (pack({}, length=100_000_001), "limit is 100000000"),
        (pack({}, length=2**64 - 1), "limit is 100000000"),
        (pack(b"{}", length=3), "truncated: the header ends at byte 11"),
        (pack(b""), "is empty; expected a JSON object"),
        (pack(b"[]"), "is not a JSON object"),
        (pack(b" {}"), "is not a JSON object"),
        (pack(b"{"), "is not valid JSON"),
        (pack(b'{"a":NaN}'), "is not valid JSON"),
        (pack(b"{} {}"), "is not valid JSON"),
        (pack(b'{"\xff":1}'), "is not UTF-8"),
        (pack(b'{"\\ud800":1}'), "is not valid JSON"),
        (pack(b'{"a":' * 100_000), "is not valid JSON"),
        (pack(b'{"a":' + b"9" * 5000 + b"}"), "is not valid JSON"),
        (pack(b'{"a":{},"a":{}}'), "'a' appears twice"),
        (pack({"__metadata__": {"a": 1}}), "not an object of strings"),
        (pack({"__metadata__": []}), "not an object of strings"),
        (pack({"a": []}), "not an object with dtype"),
        (pack({"a": {"dtype": "F32", "shape": []}}), "not an object with dtype"),
        (pack({"a": entry("F33")}, bytes(16)), "has dtype 'F33'"),
        (pack({"a": entry("F32") | {"dtype": ["F32"]}}, bytes(16)), "has dtype ['F32']"),
        (pack({"a": entry(shape=(-2, -2))}, bytes(16)), "has shape [-2, -2]"),
        (pack({"a": entry(shape=(4.0,))}, bytes(16)), "has shape [4.0]"),
        (pack({"a": entry(shape=(True, 4))}, bytes(16)), "has shape [True, 4]"),
        (pack({"a": entry(shape=(0, 2**64), offsets=(0, 0))}), "has shape [0, 18446744073709551616]"),
        (pack({"a": entry(shape=[1] * 65, offsets=(0, 4))}, bytes(4)), "at most 64 lengths"),
        (pack({"a": entry(offsets=(0, 8, 16))}, bytes(16)), "has data_offsets [0, 8, 16]"),
        (pack({"a": entry(offsets=(16, 0))}, bytes(16)), "has data_offsets [16, 0]"),
        (pack({"a": entry(offsets=(-16, 0))}, bytes(16)), "has data_offsets [-16, 0]"),
        (pack({"a": entry(shape=(5,))}, bytes(16)), "F32[5] takes 20 bytes; its data_offsets span 16"),
        (pack({"a": entry(shape=(2**40, 2**40))}, bytes(16)), "its data_offsets span 16"),
        (pack({"a": entry(offsets=(4, 20))}, bytes(20)), "leaves a gap after 'the data', which ends at 0"),
        (pack({"a": entry(), "b": entry(offsets=(8, 24))}, bytes(24)), "'b' starts at byte 8 and overlaps 'a'"),
        (
            pack({"a": entry(), "b": entry(offsets=(20, 36))}, bytes(36)),
            "'b' starts at byte 20 and leaves a gap after 'a'",
        ),
        (pack({"a": entry()}, bytes(15)), "truncated: the tensors end at byte 16 of the data, which has 15 bytes"),
        (pack({"a": entry()}, bytes(17)), "oversized: the tensors end at byte 16 of the data, which has 17 bytes"),
        (pack({"a": entry(offsets=(2**62, 2**62 + 16))}, bytes(16)), "leaves a gap"),
    ],
)
def test_forbidden_files_are_refused(file: bytes, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        safetensors.load(file)
    assert message in str(caught.value)


def test_unsupported_dtype_raises_only_on_access() -> None:
    entries = {"f6": entry("F6_E2M3", (4,), (0, 3)), "f4": entry("F4", (2,), (3, 4)), "x": entry("U8", (1,), (4, 5))}
    file = pack(entries, bytes(5))
    with safetensors.safe_open(file) as opened:
        assert opened.get_tensor("x").tolist() == [0]
        with pytest.raises(CheckpointError, match="dtype F6_E2M3, which tallow lacks"):
            opened.get_tensor("f6")


def test_uint16_is_not_read_as_bfloat16() -> None:
    loaded = safetensors.load(pack({"x": entry("U16", (1,), (0, 2))}, b"\x80\x3f"))["x"]
    assert (loaded.dtype, loaded.tolist()) == (tl.uint16, [0x3F80])


def test_boolean_bytes_other_than_0_and_1_are_refused() -> None:
    with pytest.raises(CheckpointError, match="other than 0 and 1"):
        safetensors.load(pack({"x": entry("BOOL", (2,), (0, 2))}, b"\x01\x02"))


def test_impossible_shape_of_an_empty_tensor_is_refused() -> None:
    with pytest.raises(CheckpointError, match="'x' has shape"):
        safetensors.load(pack({"x": entry("U8", (0, 2**63), (0, 0))}))


def test_unknown_name_and_closed_file_say_so() -> None:
    with safetensors.safe_open(VALID) as file, pytest.raises(CheckpointError, match="has no tensor 'c'"):
        file.get_tensor("c")
    with pytest.raises(CheckpointError, match="is closed"):
        file.get_tensor("a")


def test_reachable_from_the_package() -> None:
    assert tl.io.safetensors is safetensors


def test_source_must_be_path_or_bytes() -> None:
    with pytest.raises(ArgumentTypeError, match="path or a bytes-like object, got int"):
        safetensors.load(3)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="not contiguous"):
        safetensors.load(memoryview(VALID)[::2])
    with pytest.raises(FileNotFoundError):
        safetensors.load("no such file")


@pytest.mark.parametrize("extra", range(8))
def test_tensors_begin_at_a_multiple_of_eight_whatever_the_header(path: Path, extra: int) -> None:
    """Names of eight lengths, seven of which need padding with spaces."""
    safetensors.save({"x" * (1 + extra): tl.tensor([1.5], dtype=tl.float64)}, path)
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = raw[8 : 8 + length]
    assert length % 8 == 0
    assert header == header.rstrip() + b" " * (length - len(header.rstrip()))
    assert raw[8 + length :] == np.float64(1.5).tobytes()


def test_saved_file_follows_the_format(path: Path) -> None:
    tensors = {
        "half": tl.tensor([1.0, -2.0], dtype=tl.bfloat16),
        "wide": tl.tensor([1.5], dtype=tl.float64),
        "é": tl.tensor([True]),
        "strided": tl.tensor(F32).T,
        "scalar": tl.tensor(7),
        "empty": tl.zeros(0, 3),
    }
    safetensors.save(tensors, path, metadata={"format": "pt"})
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0
    assert header["__metadata__"] == {"format": "pt"}
    begin, end = header["half"]["data_offsets"]
    assert (header["half"]["dtype"], raw[8 + length :][begin:end].hex()) == ("BF16", "803f00c0")
    begin, end = header["strided"]["data_offsets"]
    assert raw[8 + length :][begin:end] == F32.T.tobytes()
    for name, info in header.items():
        if name != "__metadata__":
            assert info["data_offsets"][0] % tensors[name].dtype.itemsize == 0
            assert info["shape"] == list(tensors[name].shape)
    loaded = safetensors.load(path)
    assert {name: t.tolist() for name, t in loaded.items()} == {name: t.tolist() for name, t in tensors.items()}


def test_failed_save_leaves_the_old_file(path: Path) -> None:
    path.write_bytes(b"old")
    with pytest.raises(ArgumentTypeError, match="'b' is ndarray, not a Tensor"):
        safetensors.save({"a": tl.tensor([1.0]), "b": F32}, path)  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match="__metadata__"):
        safetensors.save({"__metadata__": tl.tensor([1.0])}, path)
    with pytest.raises(ArgumentTypeError, match="maps strings to strings"):
        safetensors.save({}, path, metadata={"epoch": 3})  # type: ignore[dict-item]
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_interrupted_write_leaves_the_old_file(path: Path) -> None:
    path.write_bytes(b"old")
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.writelines([b"half of the new", "and a mistake"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.native
def test_saved_file_has_ordinary_permissions(path: Path) -> None:
    plain = path.with_name("plain")
    plain.write_bytes(b"")
    safetensors.save({}, path)
    assert path.stat().st_mode == plain.stat().st_mode


def test_package_loads_saved_files(path: Path) -> None:
    package = pytest.importorskip("safetensors")
    arrays = {"a": F32, "i": np.arange(3, dtype=np.int64), "b": np.array([True]), "s": np.array(2, np.float16)}
    safetensors.save({name: tl.from_numpy(array) for name, array in arrays.items()}, path, metadata={"k": "v"})
    with package.safe_open(path, framework="np") as file:
        assert file.metadata() == {"k": "v"}
        assert set(file.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_tensor(name), array, strict=True)


def test_files_saved_by_the_package_load(path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    arrays = {"a": F32, "i": np.arange(3, dtype=np.int64), "b": np.array([True]), "e": np.zeros((0, 2), np.float64)}
    package.save_file(arrays, path, metadata={"k": "v"})
    with safetensors.safe_open(path) as file:
        assert file.metadata() == {"k": "v"}
        assert set(file.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_array(name), array, strict=True)


@pytest.mark.native
def test_file_larger_than_memory_is_mapped(path: Path) -> None:
    """A sparse file needs no disk space; reading it all would take 16 GiB."""
    size = 2**34  # 16 GiB
    path.write_bytes(pack({"big": entry("U8", (size,), (0, size))}))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + size)
    with safetensors.safe_open(path) as opened:
        assert opened.get_array("big")[size - 1] == 0


damaged = st.integers(0, 2**32).map(lambda n: fuzz.make_case("safetensors", fuzz.change_safetensors, VALID, n))
headers = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**65) | st.sampled_from(["F32", "U8", "F4", "data_offsets", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "__metadata__", "a"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=64) | damaged | st.builds(pack, headers, st.binary(max_size=16)))
def test_any_bytes_load_or_raise_a_checkpoint_error(file: bytes) -> None:
    try:
        tensors = safetensors.load(file)
    except CheckpointError:
        return
    assert sum(t.array.nbytes for t in tensors.values()) <= len(file)


@given(damaged | st.builds(pack, headers, st.binary(max_size=16)))
def test_accepted_files_are_accepted_by_the_package(file: bytes) -> None:
    package = pytest.importorskip("safetensors")
    try:
        safetensors.safe_open(file)
    except CheckpointError:
        return
    package.deserialize(file)


@given(st.data())
def test_files_accepted_by_the_package_are_accepted(data: st.DataObject) -> None:
    package = pytest.importorskip("safetensors")
    dtype, bits = data.draw(st.sampled_from(sorted(safetensors.BITS.items())))
    shape = data.draw(st.lists(st.integers(0, 3), max_size=4))
    size_bits = int(np.prod(shape, dtype=np.int64)) * bits
    end = -(-size_bits // 8) + data.draw(st.sampled_from([0, 0, 0, 1]))
    file = pack({"x": entry(dtype, shape, (0, end))}, bytes(end + data.draw(st.sampled_from([0, 0, 0, 1]))))
    try:
        package.deserialize(file)
    except package.SafetensorError:
        with pytest.raises(CheckpointError):
            safetensors.safe_open(file)
    else:
        safetensors.safe_open(file)
