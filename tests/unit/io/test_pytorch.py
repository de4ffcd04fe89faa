"""PyTorch checkpoints: files it writes load; pickles that do anything else are refused, and no code runs."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from contextlib import suppress
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzz import Reader
from support.memory_limit import limit_peak_memory
from support.pytorch_files import LEGACY, ZIP

import tallow as tl
from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, TallowError
from tallow.io import pytorch, pytorch_names, unpickler
from tallow.nn.parameter import Parameter

MIB = 2**20


def archive(pickled: bytes, storages: dict[str, bytes] | None = None, **entries: bytes) -> bytes:
    """Return a checkpoint around an unchecked pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("model/data.pkl", pickled)
        for key, content in (storages or {}).items():
            opened.writestr(f"model/data/{key}", content)
        for name, content in entries.items():
            opened.writestr(f"model/{name}", content)
    return file.getvalue()


def name(full: str) -> bytes:
    """Return the opcode that imports a global name."""
    module, _, last = full.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def storage(kind: str = "torch.FloatStorage", key: str = "0", location: str = "cpu", count: int = 6) -> bytes:
    text = b"".join(b"X" + struct.pack("<I", len(t)) + t.encode() for t in (key, location))
    return b"(X\x07\x00\x00\x00storage" + name(kind) + text + b"\x8a\x08" + struct.pack("<q", count) + b"tQ"


def plain(value: Any) -> bytes:
    """Return the opcodes of a plain value."""
    return pickle.dumps(value, 2)[2:-1]


def tensor(offset: Any, size: Any, stride: Any, *, of: bytes | None = None, requires_grad: Any = False) -> bytes:
    return (
        name("torch._utils._rebuild_tensor_v2")
        + b"("
        + (storage() if of is None else of)
        + b"".join(map(plain, (offset, size, stride, requires_grad)))
        + name("collections.OrderedDict")
        + b")RtR"
    )


SIX = {"0": np.arange(6, dtype=np.float32).tobytes()}


def load(pickled: bytes, storages: dict[str, bytes] | None = None, **entries: bytes) -> Any:
    return pytorch.load(archive(b"\x80\x02" + pickled + b".", SIX if storages is None else storages, **entries))


@pytest.mark.parametrize("file", [ZIP, LEGACY], ids=["zip", "legacy"])
def test_files_written_by_pytorch_load(file: bytes) -> None:
    loaded = pytorch.load(file)
    assert list(loaded) == ["x", "column", "p", "bf", "epoch"]
    assert loaded["x"].tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    assert loaded["column"].tolist() == [0.5, 2]
    assert isinstance(loaded["p"], Parameter)
    assert loaded["p"].requires_grad
    assert loaded["p"].tolist() == [1.5]
    assert loaded["bf"].dtype is tl.bfloat16
    assert loaded["bf"].array.dtype == np.uint16
    assert loaded["bf"].tolist() == [1, -2]
    assert loaded["epoch"] == 3


@pytest.mark.parametrize("file", [ZIP, LEGACY], ids=["zip", "legacy"])
def test_views_of_one_storage_share_it_again(file: bytes) -> None:
    loaded = pytorch.load(bytearray(file))
    loaded["x"].array[1, 1] = 9
    assert loaded["column"].tolist() == [0.5, 9]


def test_stored_tensors_are_views_of_the_file() -> None:
    buffer = bytearray(ZIP)
    loaded = pytorch.load(buffer)
    at = buffer.index(np.float32([0, 0.5, 1]).tobytes())
    buffer[at : at + 4] = np.float32(7).tobytes()
    assert loaded["x"].array[0, 0] == 7


def test_mapped_tensors_can_be_written_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(ZIP)
    pytorch.load(path)["x"].array[...] = 9
    assert path.read_bytes() == ZIP


def test_compressed_archive_is_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(ZIP)) as stored, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        for entry in stored.namelist():
            pack.writestr(entry, stored.read(entry))
    loaded = pytorch.load(file.getvalue())
    assert loaded["x"].tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    loaded["x"].array[...] = 1  # and is writable


class Evil:
    """An object whose pickle calls a function."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call = call, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Evil(os.mkdir, "made"), ".mkdir'"),
        (Evil(eval, "1"), "'builtins.eval'"),
        (Evil(getattr, [], "append"), "'builtins.getattr'"),
        (Evil(os.system, "true"), ".system'"),
        (Evil(pickle.loads, b""), "pickle.loads'"),
        (OrderedDict(a=[Evil(print)]), "'builtins.print'"),
        (Path("a"), "Path'"),
        (np.dtype("O"), "NumPy dtype other than plain little-endian numbers"),
        (np.array([None]), "NumPy dtype other than"),
        (np.array([1, 2], ">i4"), "big-endian"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_anything_but_plain_data_is_refused_by_name(
    value: Any, message: str, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(value, protocol)
    with pytest.raises(CheckpointError) as caught:
        pytorch.load(archive(pickled))
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [1, -1, 255, 65536, 2**31, -(2**70), 1.5, float("inf")],
        "é\ud800",
        b"\x00\xff",
        bytearray(b"ab"),
        (1, (2, (3, (4,)))),
        {"a": {1: [2], (1, "b"): None}, 1.5: ()},
        OrderedDict([("b", 1), ("a", 2)]),
        Counter({"a": 2}),
        pytest.param({1, "a"}, id="set"),  # the order of its repr depends on the hash seed
        1 - 2j,
        np.float32(1.5),
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        {"state": ("MT19937", np.arange(5, dtype=np.uint32), 5, 0, 0.5)},
    ],
    ids=repr,
)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    loaded = pytorch.load(archive(pickle.dumps(value, protocol)))
    assert type(loaded) is type(value)
    assert repr(loaded) == repr(value)


def test_identities_come_back() -> None:
    value: list[Any] = [{"a": []}]
    value += [value[0]["a"], value[0]]
    loaded = pytorch.load(archive(pickle.dumps(value)))
    assert loaded[1] is loaded[0]["a"]
    assert loaded[2] is loaded[0]


def test_long_containers_come_back() -> None:
    value = {"numbers": list(range(5000)), "more": {i: [i] for i in range(5000)}}  # Python writes a thousand at a time
    assert pytorch.load(archive(pickle.dumps(value))) == value


def test_cyclic_values_are_refused() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    held: dict[str, Any] = {}
    held["tuple"] = (held,)
    for value in (cyclic, held):
        with pytest.raises(CheckpointError, match="values that contain themselves"):
            pytorch.load(archive(pickle.dumps(value)))


INTO_TUPLE = b"\x85"
INTO_LIST = b"q\x010]h\x01a"  # memoize, pop; a list with the memoized value
INTO_DICT = b"q\x010}Nh\x01s"
INTO_COUNTER = INTO_DICT + b"q\x010" + name("collections.Counter") + b"h\x01\x85R"
INTO_ATTRIBUTE = b"q\x010" + name("collections.OrderedDict") + b")R}" + plain("a") + b"h\x01sb"


@pytest.mark.parametrize("into", [INTO_TUPLE, INTO_LIST, INTO_DICT, INTO_COUNTER, INTO_ATTRIBUTE])
def test_nesting_that_would_exhaust_the_stack_is_refused(into: bytes) -> None:
    assert load(b"N" + into * 100) is not None
    with pytest.raises(CheckpointError, match="nested more than 500 levels deep"):
        load(b"N" + into * 20_000)


def test_strides_and_offsets_are_kept() -> None:
    assert load(tensor(0, (2, 3), (3, 1))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert load(tensor(0, (3, 2), (1, 3))).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert load(tensor(1, (2,), (3,))).tolist() == [1, 4]
    assert load(tensor(5, (), ())).item() == 5
    assert load(tensor(2, (3, 2), (0, 1))).tolist() == [[2, 3]] * 3
    assert load(tensor(6, (0, 3), (3, 1))).shape == (0, 3)
    assert load(tensor(0, (2,), (1,), requires_grad=True)).requires_grad


def test_a_storage_alone_is_a_flat_tensor() -> None:
    assert load(storage()).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (tensor(0, (7,), (1,)), "reaches element 6 of a storage of 6"),
        (tensor(1, (2, 3), (3, 1)), "reaches element 6 of a storage of 6"),
        (tensor(0, (2,), (2**62,)), "reaches element"),
        (tensor(-1, (2,), (1,)), "offset is not a natural number"),
        (tensor(0, (-1,), (1,)), "size or stride"),
        (tensor(0, (2,), (-1,)), "size or stride"),
        (tensor(0, (2.0,), (1,)), "size or stride"),
        (tensor(0, [2], [1]), "size or stride"),
        (tensor(0, (2,), (1, 1)), "1 dims with 2 strides"),
        (tensor(0, (1,) * 65, (1,) * 65), "size or stride"),
        (tensor(0, (2**40, 2**40), (0, 0)), "exceeds all memory"),
        (tensor(0, (0, 2**62, 2**62), (1, 1, 1)), "exceeds all memory"),
        (tensor(0, (2,), (1,), of=b"N"), "without a storage"),
        (tensor(0, (2,), (1,), requires_grad=1), "requires_grad is not a bool"),
        (tensor(0, (1,), (1,), requires_grad=True, of=storage("torch.LongStorage", count=3)), "tensor of tallow.int64"),
        (storage(count=7), "has 24 bytes for 7"),
        (storage(count=2**62), "has 24 bytes for"),
        (storage(count=-1), "without class, key, device or length"),
        (storage("torch.DoubleStorage"), "has 24 bytes for 6 of tallow.float64"),
        (storage("torch.QInt8Storage"), "'torch.QInt8Storage'"),
        (storage(key="1"), "has no entry 'model/data/1'"),
        (storage(key="../../etc/passwd"), "has no entry"),
        pytest.param(storage(location="cuda:0"), "map_location='cpu'", marks=pytest.mark.cpu("there is a GPU")),
        (storage(location="nowhere"), "map_location='cpu'"),
        (b"(" + storage() + storage("torch.IntStorage") + b"t", "as FloatStorage and as IntStorage"),
        (name("torch._utils._rebuild_tensor_v2") + b")R", "unexpected arguments"),
        (name("torch.quint3x2"), "'torch.quint3x2'"),
        (name("torch.Tensor") + b")R", "call of a tensor class"),
        (name("torch.nn.parameter.Parameter") + b")\x81", "call of a tensor class"),
        (b"K\x01)R", "calls a int"),
        (b"K\x01N", "does not end with exactly one value"),
        (b"", "does not end with exactly one value"),
        (b"(", "does not end with exactly one value"),
        (b"0", "takes a value from an empty stack"),
        (b"t", "returns to a mark that does not exist"),
        (b"K\x01K\x02a", "fills a int"),
        (b"}(K\x01u", "a key without a value"),
        (b"}]K\x01s", "a list as a key"),
        (b"}" + plain((((),),)) + b"K\x01s", "a tuple as a key"),
        (b"h\x05", "loads value 5"),
        (b"NNb", "a state for a NoneType"),
        (b"I1\n", "instruction 0x49 is not supported"),
        (b"\x80\x06N", "protocol 6"),
        (b"X\x02\x00\x00\x00\xff\xff", "not UTF-8"),
        (b"c" + b"a" * 2000 + b"\nb\n", "a name without an end"),
        (b"\x93", "takes a value from an empty stack"),
        (b"X\xff\xff\xff\x7f", "truncated"),
    ],
)
def test_malformed_pickles_are_refused(pickled: bytes, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        load(pickled)
    assert message in str(caught.value)


def test_pickles_made_to_exhaust_memory_or_time_are_refused() -> None:
    million = b"X" + struct.pack("<I", 10**6) + b"a" * 10**6
    encode = b"(" + million + b"q\x090" + (name("_codecs.encode") + b"h\x09" + plain("latin1") + b"\x86R") * 1000 + b"t"
    huge_string = b"\x8d" + struct.pack("<Q", 2**60)
    huge_bytes = b"\x8e" + struct.pack("<Q", 2**60)
    far_memo = b"Nr\xff\xff\xff\xff"  # valid: the memo is not an array
    nested = b")" + b"\x85" * 10**6
    nested_key = b"}" + nested + b"Ns"
    doubled_key = b"}" + b"K\x01" + b"q\x00h\x00\x86" * 100 + b"Ns"  # hashing it would take 2**100 steps
    with limit_peak_memory(200 * MIB):
        assert load(far_memo) is None
        for pickled in (nested, encode, huge_string, huge_bytes, nested_key, doubled_key):
            with pytest.raises(CheckpointError):
                load(pickled)


def memoize(values: list[bytes]) -> bytes:
    """Memoize these values from index 100 on and pop them from the stack."""
    return b"".join(value + b"q" + bytes([100 + i]) + b"0" for i, value in enumerate(values))


def recall(index: int) -> bytes:
    return b"h" + bytes([100 + index])


def string(text: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text


def pairs(keys: list[Any]) -> bytes:
    return b"(" + b"".join(plain(key) + b"N" for key in keys)


SAME_HASH = 2**61 - 1
BYTES = "torch.UntypedStorage"


@pytest.mark.parametrize(
    "keys",
    [
        [i * SAME_HASH for i in range(200)],
        [complex(-1000003.0 * i, i) for i in range(200)],
        [(complex(-1000003.0 * i, i),) for i in range(200)],
    ],
    ids=["integers", "complex numbers", "tuples"],
)
def test_keys_of_one_hash_are_refused(keys: list[Any]) -> None:
    listed = b"](" + b"".join(map(plain, keys)) + b"e"
    in_pairs = b"](" + b"".join(plain(key) + b"N\x86" for key in keys) + b"e"
    for pickled in (
        b"}" + pairs(keys) + b"u",
        b"}" + b"".join(plain(key) + b"Ns" for key in keys),
        b"\x8f(" + b"".join(map(plain, keys)) + b"\x90",
        name("builtins.set") + listed + b"\x85R",
        name("collections.OrderedDict") + in_pairs + b"\x85R",
        name("collections.OrderedDict") + b")R" + pairs(keys) + b"u",
    ):
        with pytest.raises(CheckpointError, match=r"more than 64 keys with the same hash|beyond int64 as a key"):
            load(pickled)


def test_numbers_that_could_collide_in_a_hash_table_are_refused() -> None:
    keys = b"(" + b"".join(b"J" + struct.pack("<i", i << 12) + b"N" for i in range(33_000)) + b"u"
    with pytest.raises(CheckpointError, match="32768 numbers that do not count upwards"):
        load(b"}" + keys)


def test_numbers_as_keys_come_back_in_any_order() -> None:
    for keys in (range(40_000), range(5000, 0, -1), range(0, 10**18, 10**14), [-1, -2, 2**63 - 1, -(2**63), 0.5]):
        value = dict.fromkeys(keys, "x")
        assert pytorch.load(archive(pickle.dumps(value, 2))) == value


def test_keys_that_cannot_be_read_are_not_saved(tmp_path: Path) -> None:
    for value in ({2**63: 1}, {complex(-1000003.0 * i, i) for i in range(100)}):
        with pytest.raises(ArgumentError, match="cannot save"):
            tl.save(value, tmp_path / "keys.pt")


def test_long_strings_are_not_compared_repeatedly() -> None:
    long = string(b"a" * 10**6)
    two = memoize([long, long])
    sets = two + b"}" + recall(0) + b"Ns" + (recall(1) + b"Ns") * 200_000
    tuples = two + b"}" + recall(0) + b"\x85Ns" + (recall(1) + b"\x85Ns") * 200_000
    for pickled in (sets, tuples):
        with pytest.raises(CheckpointError, match="copies the same values over and over"):
            load(pickled)
    keys = memoize([string(b"a" * 10**6)]) + b"](" + recall(0) * 100_000 + b"e"
    head = b"".join(pickle.dumps(x, 2) for x in (pytorch.LEGACY_MAGIC, 1001, {"little_endian": True}))
    with pytest.raises(CheckpointError, match="list of storages differs"):
        pytorch.load(head + b"\x80\x02N." + b"\x80\x02" + keys + b".")


REBUILD_V3 = name("torch._utils._rebuild_tensor_v3")


def arguments_v3(of: bytes, dtype: str = "torch.uint32") -> bytes:
    return b"(" + of + b"".join(map(plain, (0, (1,), (1,), False, None))) + name(dtype) + b"t"


def test_storages_are_converted_once() -> None:
    content = np.arange(7, 250_007, dtype=np.uint32).tobytes()
    for shift in range(4):  # three of them have a storage not aligned for its elements, so that converting copies it
        pickled = string(b"x" * shift) + b"0" + memoize([arguments_v3(storage(BYTES, count=10**6))])
        with limit_peak_memory(20 * MIB):
            tensors = load(pickled + b"(" + (REBUILD_V3 + recall(0) + b"R") * 300 + b"t", {"0": content})
        assert [m.tolist() for m in tensors[::100]] == [[7], [7], [7]]


def test_unaligned_views_count_towards_the_memory_limit() -> None:
    views = b""
    for start in range(1, 400, 2):
        place = b"(" + string(b"v") + plain(start) + plain(10**6) + b"t"
        views += REBUILD_V3 + arguments_v3(storage(BYTES, count=2 * 10**6)[:-2] + place + b"tQ") + b"R"
    with limit_peak_memory(20 * MIB), pytest.raises(CheckpointError, match="copies the same values over and over"):
        load(b"(" + views + b"t", {"0": bytes(2 * 10**6)})


def test_parts_of_legacy_storages_are_not_copied_before_they_are_filled() -> None:
    place = b"(" + string(b"v") + plain(1) + plain(8) + b"t"
    pickled = b"\x80\x02" + REBUILD_V3 + arguments_v3(storage(BYTES, count=12)[:-2] + place + b"tQ") + b"R."
    head = b"".join(pickle.dumps(x, 2) for x in (pytorch.LEGACY_MAGIC, 1001, {"little_endian": True}))
    file = head + pickled + pickle.dumps(["0"], 2) + struct.pack("<q", 12) + bytes(12)
    with pytest.raises(CheckpointError, match="a part of a storage that is not aligned"):
        pytorch.load(file)


def test_nested_states_count_towards_the_memory_limit() -> None:
    state = b"}(" + b"".join(string(b"k%d" % i) + b"N" for i in range(5_000)) + b"u"
    inner = b"(" + tensor(0, (1,), (1,)) + plain(False) + b"N" + recall(0) + b"t"
    call = b"(" + name("torch._utils._rebuild_parameter_with_state") + name("torch.Tensor") + recall(1) + b"}t"
    pickled = (
        memoize([state, inner, call]) + b"(" + (name("torch._tensor._rebuild_from_type_v2") + recall(2) + b"R") * 1000
    )
    with limit_peak_memory(100 * MIB), pytest.raises(CheckpointError, match="copies the same values over and over"):
        load(pickled + b"t")


def test_booleans_over_bytes_are_refused() -> None:
    with pytest.raises(CheckpointError, match="of bool over bytes"):
        load(REBUILD_V3 + arguments_v3(storage(BYTES, count=24), "torch.bool") + b"R")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "not a PyTorch checkpoint"),
        (b"PK\x03\x04", "damaged"),
        (ZIP[:-100], "damaged"),
        (archive(b"N.", {}, byteorder=b"big"), "is big-endian"),
        (archive(b"N.", {}, **{"constants.pkl": b""}), "TorchScript"),
        (LEGACY.replace(b"little_endian", b"little_endiaN"), "is big-endian"),
        (LEGACY[:-1], "truncated"),
        (LEGACY[:200], "truncated"),
    ],
)
def test_files_that_cannot_be_read_say_why(file: bytes, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        pytorch.load(file)
    assert message in str(caught.value)


def test_legacy_storages_larger_than_the_file_are_not_allocated() -> None:
    file = LEGACY.replace(b"K\x06Nt", b"\x8a\x06\x00\x00\x00\x00\x00\x01Nt")
    with limit_peak_memory(MIB), pytest.raises(CheckpointError, match="its storages take"):
        pytorch.load(file)


def pack(*entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytearray:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as opened:
        for entry, content in entries:
            opened.writestr(zipfile.ZipInfo(entry), content, method)
    return bytearray(file.getvalue())


def test_zip_bomb_is_refused_before_reading() -> None:
    bomb = pack(("model/data.pkl", bytes(80 * MIB)), method=zipfile.ZIP_DEFLATED)
    with limit_peak_memory(MIB), pytest.raises(CheckpointError, match="would expand to"):
        pytorch.load(bomb)


def test_entry_that_expands_beyond_its_declared_size_is_refused() -> None:
    liar = pack(("model/data.pkl", bytes(20 * MIB)), method=zipfile.ZIP_DEFLATED)
    liar = liar.replace(struct.pack("<I", 20 * MIB), struct.pack("<I", 10))
    with limit_peak_memory(MIB), pytest.raises(CheckpointError, match="does not match its directory"):
        pytorch.load(liar)


@pytest.mark.parametrize("path", ["../data.pkl", "/data.pkl", "a/../../b", "C:/b", "a\\b"])
def test_entries_that_reach_out_of_the_archive_are_refused(path: str) -> None:
    with pytest.raises(CheckpointError, match="leads out of the archive"):
        pytorch.load(pack(("model/data.pkl", b"N."), (path.replace("\\", "!"), b"")).replace(b"a!b", b"a\\b"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_that_share_a_name_or_bytes_are_refused() -> None:
    with pytest.raises(CheckpointError, match="appears twice"):
        pytorch.load(pack(("model/data.pkl", b"N."), ("model/data.pkl", b"N.")))
    overlapping = pack(("model/data.pkl", b"N."), ("b", b"12345"))
    directory = overlapping.rindex(b"PK\x01\x02")
    overlapping[directory + 42 : directory + 46] = bytes(4)  # the second storage starts where the first one does
    with pytest.raises(CheckpointError, match=r"overlap|damaged"):
        pytorch.load(overlapping)


def test_encrypted_and_oddly_compressed_entries_are_refused() -> None:
    file = pack(("model/data.pkl", b"N."))
    directory = file.index(b"PK\x01\x02")
    file[directory + 8] |= 1
    with pytest.raises(CheckpointError, match="encrypted"):
        pytorch.load(file)
    file = pack(("model/data.pkl", b"N."))
    file[directory + 10] = 12
    with pytest.raises(CheckpointError, match="method 12"):
        pytorch.load(file)


# --------------------------------------------------------------------------------------------------------- map_location


def test_map_location_moves_storages() -> None:
    file = archive(b"\x80\x02" + storage(location="cuda:1") + b".", SIX)
    for location in ("cpu", tl.device("cpu"), {"cuda:1": "cpu"}, lambda storage, location: storage):
        assert pytorch.load(file, location).tolist() == [0, 1, 2, 3, 4, 5]
    seen = []
    with pytest.raises(CheckpointError, match="'cuda:1'"):
        pytorch.load(file, lambda storage, location: seen.append((storage.numel(), location)))
    assert seen == [(6, "cuda:1")]
    with pytest.raises(CheckpointError):
        pytorch.load(file, {"cuda:0": "cpu"})
    with pytest.raises(ArgumentTypeError, match="must return the storage"):
        pytorch.load(file, lambda storage, location: "cpu")  # type: ignore[arg-type, return-value]
    assert str(pytorch.load(ZIP, "meta")["p"].device) == "meta"


# -------------------------------------------------------------------------------------------------------------- writing


def roundtrip(value: Any) -> Any:
    file = io.BytesIO()
    tl.save(value, file)
    return tl.load(file.getvalue())


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_dtype_round_trips(dtype: tl.dtype) -> None:
    x = tl.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    loaded = roundtrip([x, x.T, x[:, 1]])
    assert [t.dtype for t in loaded] == [dtype] * 3
    assert [t.tolist() for t in loaded] == [x.tolist(), x.T.tolist(), x[:, 1].tolist()]


def test_shared_storage_is_saved_once_and_stays_shared() -> None:
    x = tl.arange(10000)
    other = tl.zeros(10000, dtype=tl.int64)
    file = io.BytesIO()
    tl.save({"x": x, "even": x[::2], "odd": x[1::2], "same": x, "other": other}, file)
    assert len(file.getvalue()) < 2.1 * x.nbytes
    loaded = tl.load(bytearray(file.getvalue()))
    assert loaded["same"] is loaded["x"]
    loaded["x"].array[:2] = 7
    assert loaded["even"].tolist()[:2] == [7, 2]
    assert loaded["odd"].tolist()[:2] == [7, 3]
    assert not np.shares_memory(loaded["x"].array, loaded["other"].array)


def test_saving_a_view_saves_only_its_part() -> None:
    file = io.BytesIO()
    tl.save(tl.zeros(100_000)[10:20], file)
    assert len(file.getvalue()) < 2000


def test_reversed_and_broadcast_tensors_round_trip() -> None:
    assert roundtrip(tl.from_numpy(np.arange(4)[::-1])).tolist() == [3, 2, 1, 0]
    assert roundtrip(tl.tensor([1.0, 2.0]).expand(3, 2)).tolist() == [[1, 2]] * 3
    assert roundtrip(tl.zeros(0, 3)).shape == (0, 3)


def test_containers_parameters_and_numbers_round_trip() -> None:
    state = OrderedDict(weight=Parameter(tl.ones(2)), frozen=Parameter(tl.ones(1), requires_grad=False))
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    loaded = roundtrip({"model": state, "rate": np.float32(0.5), "shape": tl.ones(2, 3).shape, "d": tl.float16})
    assert type(loaded["model"]) is OrderedDict
    assert loaded["model"]._metadata == {"": {"version": 1}}
    assert [type(p) for p in loaded["model"].values()] == [Parameter, Parameter]
    assert [p.requires_grad for p in loaded["model"].values()] == [True, False]
    assert loaded["rate"] == 0.5
    assert type(loaded["shape"]) is tl.Size
    assert loaded["d"] is tl.float16


def test_entries_are_aligned() -> None:
    file = io.BytesIO()
    tl.save([tl.ones(3), tl.ones(5, dtype=tl.int8), tl.ones(2, dtype=tl.float64)], file)
    for array in [t.array for t in tl.load(file.getvalue())]:
        assert not array.flags.owndata
    with zipfile.ZipFile(file) as opened:
        assert opened.testzip() is None


def test_same_content_gives_the_same_file() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        tl.save({"a": tl.ones(2)}, file)
    assert files[0].getvalue() == files[1].getvalue()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([{"a": lambda: 0}], PicklingError, "lambda"),
        (2**3000, ArgumentError, "an integer of 376 bytes"),
        (tl.ones(2, device="meta"), ArgumentError, "has no data"),
        ([x := tl.ones(2), x.view(tl.int32)], ArgumentError, "view the same memory"),
    ],
)
def test_unsupported_values_raise_and_leave_the_old_file(
    value: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"old")
    with pytest.raises(error) as caught:
        tl.save(value, path)
    assert message in str(caught.value)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_unbounded_nesting_is_not_saved() -> None:
    nested: list[Any] = []
    for _ in range(200):
        nested = [nested]
    with pytest.raises(ArgumentError, match="nested more than"):
        roundtrip(nested)


# -------------------------------------------------------------------------------------------------------------- fuzzing

instructions = st.sampled_from(
    [
        *(bytes([code]) for code in unpickler.OPCODES if code not in b"XUTCBr"),
        b"q\x00",
        b"h\x00",
        b"K\x02",
        plain("a"),
        plain((2, 3)),
        plain(2**40),
        plain((1, 2)),
        storage(),
        tensor(0, (2, 3), (3, 1)),
        *(name(known) for known in pytorch_names.NAMES),
    ]
)


@given(st.binary(max_size=40))
def test_any_bytes_load_or_raise_a_tallow_error(file: bytes) -> None:
    with suppress(TallowError):
        pytorch.load(file)


@given(st.lists(instructions, max_size=30).map(b"".join))
def test_any_pickle_loads_or_raises_a_tallow_error(pickled: bytes) -> None:
    with suppress(TallowError):
        load(pickled)


def test_damaged_pickles_load_or_raise_a_tallow_error(read_damaged: Any) -> None:
    pickled = tensor(1, (2, 2), (1, 2)) + b"q\x00" + plain({"a": [1, (2, 3)]}) + b"h\x00\x87"
    read_damaged("pickle", Reader(pickled, lambda raw, place: load(raw)))
