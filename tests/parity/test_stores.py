"""Stores of torch.distributed: the same answers as PyTorch's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as theirs

import tallow.distributed as ours
from tallow.distributed import frames
from tallow.distributed.frames import packed, unpacked
from tallow.distributed.stores import Table
from tallow.errors import ArgumentError, ArgumentTypeError

pytestmark = pytest.mark.native
SHORT = timedelta(milliseconds=30)
MAKERS: dict[str, Callable[[Any, Path], Any]] = {
    "hash": lambda m, folder: m.HashStore(),
    "file": lambda m, folder: m.FileStore(str(folder / m.__name__), -1),
    "tcp": lambda m, folder: m.TCPStore("127.0.0.1", 0, 1, True),
    "prefix": lambda m, folder: m.PrefixStore("a", m.PrefixStore("b", m.HashStore())),
}


Call = Callable[[], Any]


def history(m: Any, store: Any) -> list[Any]:
    """Return what a store answers."""
    store.set("k", "v")
    seen: list[Any] = [store.timeout, store.get("k"), store.add("n", 3), store.add("n", -1), store.get("n")]
    seen += [store.compare_set("c", "x", "y"), store.check(["c"])]
    seen += [store.compare_set("c", "", "y"), store.compare_set("c", "y", "z"), store.compare_set("c", "q", "w")]
    seen += [store.check(["k", "n"]), store.check(["k", "none"]), store.num_keys()]
    seen += [store.delete_key("k"), store.num_keys()]
    store.append("long", "a")
    store.append("long", "bc")
    store.multi_set(["u", "v"], ["1", "2"])
    seen += [store.get("long"), store.multi_get(["v", "u"])]
    store.set_timeout(SHORT)
    calls: list[Call] = [lambda: store.get("none"), lambda: store.wait(["none"], SHORT), lambda: store.set("k", 1)]
    for call in calls:
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call()
        seen.append(isinstance(caught.value, TypeError))
    return seen


@pytest.mark.parametrize("kind", MAKERS)
def test_answers(kind: str, tmp_path: Path) -> None:
    assert history(ours, MAKERS[kind](ours, tmp_path)) == history(theirs, MAKERS[kind](theirs, tmp_path))


@pytest.mark.parametrize("kind", ["hash", "tcp", "prefix"])
def test_queues(kind: str, tmp_path: Path) -> None:
    for m in (ours, theirs):
        store = MAKERS[kind](m, tmp_path)
        store.queue_push("q", "1")
        store.queue_push("q", "2")
        assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q", False)) == (2, b"1", b"2")
        with pytest.raises(m.QueueEmptyError):
            store.queue_pop("q", False)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_key_is_deleted_once(kind: str, tmp_path: Path) -> None:
    for m in (ours, theirs) if kind != "file" else (ours,):  # PyTorch's in a file answers True each time
        store = MAKERS[kind](m, tmp_path)
        store.set("k", "v")
        assert (store.delete_key("k"), store.delete_key("k"), store.check(["k"])) == (True, False, False)


def test_a_file_of_another_kind_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(ours.DistStoreError, match="is not the file of a store"):
        ours.FileStore(str(path))
    path.write_bytes(b"\0\0\0\0")
    with pytest.raises(ours.DistStoreError, match="is not the file of a store"):
        ours.FileStore(str(path))
    path.write_bytes(b"\0\0\0\1\0\0\0\x09ab")
    with pytest.raises(ours.DistStoreError, match="ends early"):
        ours.FileStore(str(path))


def test_appends_do_not_copy_what_is_there() -> None:
    table = Table()
    table.apply([b"append", b"k", b"ab"])
    held = table.values[b"k"]
    table.apply([b"append", b"k", b"c"])
    assert table.values[b"k"] is held
    assert table.apply([b"compare_set", b"k", b"abc", b"d"]) == [b"d"]


def test_operations_of_others_are_applied_once_after_a_refused_one(tmp_path: Path) -> None:
    one, two = (ours.FileStore(str(tmp_path / "store")) for _ in range(2))
    one.set("text", "x")
    one.add("n", 1)
    with pytest.raises(ArgumentError, match="is not a number"):
        two.add("text", 1)
    assert two.add("n", 1) == 2


def test_connections_that_speak_otherwise_stop_nobody() -> None:
    store = ours.TCPStore("127.0.0.1", 0, 1, True)
    for message in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\2\0\0\0\3xyz\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0"):
        with socket.create_connection((store.host, store.port)) as other:
            other.sendall(message)
    store.set("k", "v")
    assert store.clone().get("k") == b"v"
    with pytest.raises(ArgumentError, match="is not a number"):
        store.add("k", 1)


def test_an_answer_that_comes_late_is_not_that_of_the_next_operation() -> None:
    gave_up = threading.Event()

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            unpacked(connection.recv)  # that there is one user more
            connection.sendall(packed([b"ok", b"1"]))
            unpacked(connection.recv)
            gave_up.wait()
            connection.sendall(packed([b"ok", b"of the first"]))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        store = ours.TCPStore("127.0.0.1", server.getsockname()[1], timeout=SHORT)
        with pytest.raises(ours.DistNetworkError):
            store.get("first")
        gave_up.set()
        with pytest.raises(ours.DistNetworkError):
            store.get("second")
        thread.join()


def test_an_answer_that_is_too_long_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ours.TCPStore("127.0.0.1", 0, 1, True)
    monkeypatch.setattr(frames, "MAX_BYTES", 100)
    store.append("k", "v" * 60)
    store.append("k", "v" * 60)
    with pytest.raises(ArgumentError, match="at most"):
        store.get("k")
    assert store.delete_key("k")


def test_a_reader_waits_for_the_value() -> None:
    store = ours.TCPStore("127.0.0.1", 0, None, True)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(store.clone().get("late")))
    thread.start()
    store.set("late", "value")
    thread.join()
    assert found == [b"value"]


def test_the_process_with_the_values_waits_for_the_others() -> None:
    with pytest.raises(ours.DistStoreError, match="wait timeout"):
        ours.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=1))  # what answers at once has a second
    with pytest.raises(ours.DistNetworkError, match="nothing answers"):
        ours.TCPStore("127.0.0.1", 1, 2, False, SHORT)
    store = ours.TCPStore("127.0.0.1", 0, 1, True, multi_tenant=True)
    assert ours.TCPStore("127.0.0.1", store.port, 2, True, multi_tenant=True).port == store.port
    with pytest.raises(ours.DistNetworkError, match="cannot listen"):
        ours.TCPStore("127.0.0.1", store.port, 1, True)


def test_the_port_is_free_after_the_last_store_that_shares_it() -> None:
    one = ours.TCPStore("127.0.0.1", 0, 1, True, multi_tenant=True)
    port, other = one.port, ours.TCPStore("127.0.0.1", one.port, 1, True, multi_tenant=True)
    one.set("k", "v")
    del one
    assert other.get("k") == b"v"
    del other
    assert not ours.TCPStore("127.0.0.1", port, 1, True).check(["k"])


def test_arguments_of_the_wrong_kind() -> None:
    store: Any = ours.HashStore()
    calls: list[Call] = [lambda: store.set("k", 1), lambda: store.add("k", 1.5), lambda: store.set_timeout(3)]
    for call in calls:
        with pytest.raises(ArgumentTypeError):
            call()
    with pytest.raises(ArgumentError, match="2 keys, but 1 values"):
        store.multi_set(["a", "b"], ["c"])
    for options, message in (
        ({"store": store}, "world_size must be positive"),
        ({"store": store, "init_method": "env://"}, "Cannot specify both"),
        ({"store": store, "world_size": 3, "rank": 0}, "but MPI has 1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            ours.init_process_group("gloo", **options)
