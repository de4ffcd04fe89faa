"""GGUF: a file built by hand reads correctly; a damaged one is refused before any allocation."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fuzz import Reader
from support.memory_limit import limit_peak_memory

import tallow as tl
from tallow.errors import CheckpointError, TallowError
from tallow.io import gguf
from tallow.kernels.quantized import gguf_blocks

MIB = 2**20
U32, F32, STRING, ARRAY = 4, 6, 8, 9  # types of metadata


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, items: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + items


def info(name: str, lengths: tuple[int, ...], kind: int, begin: int) -> bytes:
    dims = struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
    return text(name) + dims + struct.pack("<IQ", kind, begin)


def file(
    entries: list[bytes],
    infos: list[bytes],
    data: bytes = b"",
    *,
    magic: bytes = b"GGUF",
    version: bytes = b"\x03\0\0\0",
    alignment: int = 32,
) -> bytes:
    head = magic + version + struct.pack("<QQ", len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
# One block: scale 0.5, then the integers -16 .. 15.
Q8 = np.float16(0.5).tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
# One block: scale 2, then in each byte the weights i and i + 16, here 0 .. 15 and 15 .. 0, each minus 8.
Q4 = np.float16(2).tobytes() + bytes(i | (15 - i) << 4 for i in range(16))
VALID = file(
    [
        entry("general.architecture", STRING, text("llama")),
        entry("llama.block_count", U32, struct.pack("<I", 2)),
        entry("tokens", ARRAY, array(STRING, 2, text("a") + text("é"))),
        entry("scores", ARRAY, array(F32, 2, struct.pack("<2f", 0.5, -1))),
        entry("nested", ARRAY, array(ARRAY, 2, array(0, 1, b"\x07") + array(7, 2, b"\x01\x00"))),
        entry("big", 10, struct.pack("<Q", 2**64 - 1)),
    ],
    [
        info("matrix", (3, 2), 0, 0),
        info("q8", (32, 1), 8, 32),
        info("q4", (32,), 2, 96),
        info("bf", (2,), 30, 128),
        info("scalar", (), 26, 160),
        info("foreign", (256,), 15, 0),
    ],
    MATRIX.tobytes().ljust(32, b"\0")
    + Q8.ljust(64, b"\0")
    + Q4.ljust(32, b"\0")
    + bytes.fromhex("803f00c0").ljust(32, b"\0")
    + struct.pack("<i", -5),
)


def test_file_written_by_hand_reads_as_written() -> None:
    loaded = tl.load(VALID)
    assert isinstance(loaded, Mapping)
    assert loaded.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "tokens": ["a", "é"],
        "scores": [0.5, -1.0],
        "nested": [[7], [True, False]],
        "big": 2**64 - 1,
    }
    assert list(loaded) == ["matrix", "q8", "q4", "bf", "scalar", "foreign"]
    assert loaded["matrix"].tolist() == MATRIX.tolist()
    assert loaded["q8"].dtype is tl.float32
    assert loaded["q8"].tolist() == [[i / 2 for i in range(-16, 16)]]
    assert loaded["q4"].tolist() == [2 * (i - 8) for i in [*range(16), *reversed(range(16))]]
    assert loaded["bf"].dtype is tl.bfloat16
    assert loaded["bf"].tolist() == [1, -2]
    assert loaded["scalar"].item() == -5
    assert loaded.info("matrix") == gguf.TensorInfo("F32", (2, 3), 0)
    assert loaded.get_blocks("q8").tobytes() == Q8
    assert "matrix" in loaded
    assert "none" not in loaded
    with pytest.raises(KeyError):
        loaded["none"]
    with pytest.raises(CheckpointError, match="format Q8_K, which tallow does not read"):
        loaded["foreign"]


def test_plain_tensors_are_views_and_quantised_ones_are_new(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(VALID)
    loaded = gguf.load(path)
    loaded["matrix"].array[...] = 9
    assert loaded["matrix"].tolist() == np.full((2, 3), 9).tolist()
    loaded["q8"].array[...] = 9
    assert loaded["q8"][0, 0].item() == -8
    assert path.read_bytes() == VALID


def test_quantised_matrices_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(VALID)
    loaded = gguf.load(path)
    matrix = loaded.matrix("q8")
    assert matrix is not None
    assert (matrix.shape, matrix.format) == ((1, 32), "Q8_0")
    assert np.shares_memory(matrix.blocks, loaded.get_blocks("q8"))
    np.testing.assert_array_equal(matrix.widen(), loaded["q8"].numpy())
    assert loaded.matrix("matrix") is None  # of floats
    assert loaded.matrix("scalar") is None


def test_a_var_builder_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(VALID)
    vb = tl.nn.VarBuilder.from_gguf(path, dtype=tl.float32)
    assert vb.get((2, 3), "matrix").tolist() == MATRIX.tolist()
    assert vb.get(2, "bf").dtype is tl.float32
    assert vb.get((1, 32), "q8")[0, 0].item() == -8


def test_map_location() -> None:
    assert str(tl.load(VALID, map_location="meta")["q8"].device) == "meta"


def test_large_tensors_are_dequantized_in_chunks() -> None:
    blocks = np.random.default_rng(0).integers(0, 256, (3 * gguf_blocks.CHUNK // 32 + 5, 18), dtype=np.uint8)
    blocks[:, :2] = np.frombuffer(np.float16(0.5).tobytes(), np.uint8)
    values = gguf_blocks.dequantize("Q4_0", blocks.reshape(-1)).reshape(len(blocks), 32)
    for i in (0, gguf_blocks.CHUNK // 32 - 1, gguf_blocks.CHUNK // 32, len(blocks) - 1):
        np.testing.assert_array_equal(gguf_blocks.dequantize("Q4_0", blocks[i]), values[i])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "truncated"),
        (b"GGUF", "truncated"),
        (file([], [], magic=b"GGML"), "is not a GGUF file: it starts with 'GGML' "),
        (file([], [], magic=b"\x80\x02}q"), r"it starts with '\x80\x02}q' "),
        (file([], [], version=b"\x01\0\0\0"), "of version 1"),
        (file([], [], version=b"\0\0\0\x03"), "big-endian"),
        (VALID[:200], "truncated"),
        (VALID[:-1], "truncated: tensor 'scalar' ends at byte 164 of the data, but the data has 163 bytes"),
        (VALID.replace(text("tokens"), text(b"\xff" * 6)), "not UTF-8"),
        (file([entry("a", U32, bytes(4))] * 2, []), "metadata 'a' twice"),
        (file([], [info("a", (1,), 0, 0)] * 2, bytes(32)), "tensor 'a' twice"),
        (file([entry("a", 13, bytes(8))], []), "unknown type 13"),
        (file([entry("a", ARRAY, array(ARRAY, 1, b"") * 9)], []), "nested too deep"),
        (file([entry("a", ARRAY, array(U32, 2**62, b""))], []), "truncated"),
        (file([entry("a", ARRAY, array(STRING, 2**62, b""))], []), "truncated"),
        (file([entry("a", ARRAY, array(STRING, 9, text("a") * 8 + struct.pack("<Q", 99)))], []), "truncated"),
        (file([entry("a", ARRAY, array(STRING, 9, text("a") * 8 + text(b"\xff")))], []), "not UTF-8"),
        (file([entry("a", STRING, struct.pack("<Q", 2**63))], []), "truncated"),
        (b"GGUF\x03\0\0\0" + struct.pack("<QQ", 2**63, 0), "truncated"),
        (b"GGUF\x03\0\0\0" + struct.pack("<QQ", 0, 2**63), "truncated"),
        (file([], [info("a", (1,) * 5, 0, 0)]), "5 dims"),
        (file([], [info("a", (1,), 5, 0)]), "format number 5"),
        (file([], [info("a", (1,), 0, 4)], bytes(36)), "not a multiple of 32"),
        (file([], [info("a", (16,), 8, 0)], bytes(34)), "not multiples of 32"),
        (file([], [info("a", (), 8, 0)], bytes(34)), "not multiples of 32"),
        (file([], [info("a", (128, 2), 12, 0)], bytes(144)), "not multiples of 256"),
        (file([], [info("a", (2**40, 2**40), 0, 0)]), "exceeds all memory"),
        (file([], [info("a", (0, 2**63), 0, 0)]), "exceeds all memory"),
        (file([], [info("a", (2**27,), 0, 0)], bytes(64)), "truncated: tensor 'a'"),
        (file([], [info("a", (1,), 0, 2**62)], bytes(64)), "truncated: tensor 'a'"),
        (file([], [info("a", (8,), 0, 0), info("b", (8,), 0, 0)], bytes(32)), "'b' begins at byte 0 of the data"),
        (file([], [info("a", (32,), 8, 0), info("b", (1,), 0, 32)], bytes(64)), "'b' begins at byte 32 of the data"),
        (file([], [info("a", (1,), 41, 2**64 - 1)]), "not a multiple of 32"),
        (file([], [info("a", (1,), 0, 2**64 - 32)], bytes(64)), "truncated: tensor 'a'"),
        (file([], [info("a", (256,), 16, 0)], bytes(65)), "truncated: tensor 'a' ends at byte 66"),
        (file([], [info("a", (255,), 29, 0)], bytes(56)), "not multiples of 256"),
        (file([], [info("a", (2**62,), 15, 0)]), "exceeds all memory"),
        (file([], [struct.pack("<Q", 2**63)]), "truncated"),
        (file([], [text("a") + struct.pack("<I", 2**32 - 1)]), "4294967295 dims"),
        (file([entry(gguf.ALIGNMENT_KEY, U32, struct.pack("<I", 2**31))], []), "not a power of two"),
        (file([entry(gguf.ALIGNMENT_KEY, 5, struct.pack("<i", -32))], []), "not a power of two: -32"),
        (file([entry(gguf.ALIGNMENT_KEY, U32, struct.pack("<I", 0))], []), "not a power of two: 0"),
        (file([entry(gguf.ALIGNMENT_KEY, U32, struct.pack("<I", 24))], []), "not a power of two: 24"),
        (file([entry(gguf.ALIGNMENT_KEY, STRING, text("32"))], []), "not a power of two: '32'"),
    ],
)
def test_files_that_cannot_be_read_say_why(raw: bytes, message: str) -> None:
    with limit_peak_memory(MIB), pytest.raises(CheckpointError) as caught:
        gguf.load(raw)
    assert message in str(caught.value)


@pytest.mark.parametrize("odd", ["", "\0", "a\0", "\0" * 9 + "a", "é" * 128, "a" * 255, "a" * 256, "a" * 70_000])
def test_arrays_of_strings(odd: str) -> None:
    """Most strings are decoded many at a time; one that does not allow that may come first, last or between others."""
    words = [f"{'é' * (i % 7)}{i}" for i in range(6000)]
    for items in ([odd, *words], [*words, odd], [*words[:3000], odd, odd, *words[3000:], "b"]):
        raw = file([entry("a", ARRAY, array(STRING, len(items), b"".join(map(text, items)))), entry("b", 7, b"\1")], [])
        assert gguf.load(raw).metadata == {"a": items, "b": True}


def test_a_matrix_without_rows() -> None:
    matrix = gguf.load(file([], [info("a", (32, 0), 8, 0)], b"")).matrix("a")
    assert matrix is not None
    assert matrix.shape == (0, 32)


def test_alignment_of_the_file() -> None:
    entries = [entry(gguf.ALIGNMENT_KEY, U32, struct.pack("<I", 8))]
    raw = file(entries, [info("a", (1,), 0, 8)], bytes(8) + np.float32(3).tobytes(), alignment=8)
    assert gguf.load(raw)["a"].tolist() == [3]


@pytest.mark.parametrize(("kind", "dtype"), [(0, "u1"), (1, "i1"), (2, "<u2"), (3, "<i2"), (7, "?")])
def test_arrays_of_narrow_integers_stay_compact(kind: int, dtype: str) -> None:
    """A Python object per number would take 36 bytes each."""
    rng = np.random.default_rng(0)
    items = np.frombuffer(rng.bytes(2**19), "u1" if dtype == "?" else dtype)
    items = (items & 1).astype(dtype) if dtype == "?" else items
    raw = file([entry("items", ARRAY, array(kind, len(items), items.tobytes()))], [])
    with limit_peak_memory(10 * len(raw)):
        narrow_items = gguf.load(raw).metadata["items"]
    assert {*map(type, narrow_items)} == {bool if dtype == "?" else int}
    assert np.array_equal(narrow_items, items)


def test_damaged_files_load_or_raise_a_tallow_error(read_damaged: Any) -> None:
    def read(raw: bytes, place: Path) -> None:
        loaded: Any = gguf.load(raw)
        for name in loaded:
            with suppress(TallowError):
                assert loaded[name].array.nbytes <= 8 * len(raw)

    read_damaged("gguf, of every kind", Reader(VALID, read))


# ------------------------------------------------------------------------------------------------------------- shards

U16, I32 = 2, 5


def shard(number: int, count: int, *names: str, tensors: int = 3, extra: tuple[bytes, ...] = ()) -> bytes:
    """Return a shard with a tensor [number, index] for each name."""
    entries = [
        entry("split.no", U16, struct.pack("<H", number)),
        entry("split.count", U16, struct.pack("<H", count)),
        entry("split.tensors.count", I32, struct.pack("<i", tensors)),
    ]
    infos = [info(name, (2,), 0, 32 * i) for i, name in enumerate(names)]
    data = b"".join(np.float32([number, i]).tobytes().ljust(32, b"\0") for i in range(len(names)))
    return file([*entries, *extra], infos, data)


SHARDS = {
    "m-00001-of-00003.gguf": shard(0, 3, extra=(entry("general.architecture", STRING, text("llama")),)),
    "m-00002-of-00003.gguf": shard(1, 3, "a", "b"),
    "m-00003-of-00003.gguf": shard(2, 3, "c"),
}


def write_shards(folder: Path, **changed: bytes | None) -> list[Path]:
    """Write shards and return their paths in order.

    `changed` replaces contents by suffix (`_1` to `_3`); None omits a file.
    """
    paths = []
    for number, (name, raw) in enumerate(SHARDS.items(), 1):
        paths.append(folder / name)
        content = changed.get(f"_{number}", raw)
        if content is not None:
            paths[-1].write_bytes(content)
    return paths


def test_the_path_of_any_shard_loads_the_model(tmp_path: Path) -> None:
    for path in write_shards(tmp_path):
        loaded: Any = tl.load(path)
        assert {name: loaded[name].tolist() for name in loaded} == {"a": [1, 0], "b": [1, 1], "c": [2, 0]}
        assert loaded.metadata["general.architecture"] == "llama"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"_3": None}, r"is one of 3 shards; .*m-00003-of-00003\.gguf is missing"),
        ({"_2": shard(2, 3, "a", "b")}, r"m-00002.*: split\.no is 2, split\.count is 3; its name says 1 and 3"),
        ({"_2": file([], [])}, r"m-00002.*: split\.no is None, split\.count is None; its name says 1 and 3"),
        ({"_3": shard(2, 3, "b")}, r"m-00003.*: tensor 'b' is in another shard too"),
        ({"_3": shard(2, 3)}, "the shards have 2 tensors, not 3"),
        ({"_3": shard(2, 3, "c")[:-30]}, r"m-00003.*truncated: tensor 'c'"),
        ({"_1": shard(3, 3)}, r"m-00001.*: split\.no is 3, split\.count is 3"),
        ({"_1": shard(1, 3)}, r"m-00001.* is shard 2 of 3; its name does not match"),
        ({"_1": file([entry("split.count", STRING, text("3"))], [])}, r"m-00001.*split\.count is '3'"),
    ],
)
def test_shards_that_do_not_fit_are_named(changed: dict[str, bytes | None], message: str, tmp_path: Path) -> None:
    paths = write_shards(tmp_path, **changed)
    with pytest.raises(CheckpointError, match=message):
        gguf.load(paths[0])


def test_a_shard_in_memory_or_by_another_name_cannot_find_the_others(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(SHARDS["m-00002-of-00003.gguf"])
    for source in (SHARDS["m-00002-of-00003.gguf"], tmp_path / "model.gguf"):
        with pytest.raises(CheckpointError, match=r"shard 2 of 3; [^\n]*\n.*ends in -00002-of-00003\.gguf"):
            gguf.load(source)
