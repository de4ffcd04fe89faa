"""Clients take turns: none waits for the end of what another has sent, and none fills the line for the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.own_loop import run_coroutine
from support.small_encoder import small_encoder
from support.small_server import HANG_S, Running, post, running, story_teller

from tallow.serving.catalog import Catalog, built_in_speech
from tallow.serving.encoding import embedder
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.clients import address_of
from tallow.serving.http.forwarding import exchange
from tallow.serving.queue import Busy, Closed, WaitingLine
from tallow.serving.worker import Threads

TEXT = {"prompt": "Lily", "max_tokens": 2}
PAUSE_S = 0.005  # between looks at what other threads do, so that they get on


def line_of(limit: int, *items: str) -> WaitingLine[str]:
    """Return a line of items that name their client, and then their priority: "a-1" leaves before "b0"."""
    line: WaitingLine[str] = WaitingLine(limit, lambda item: item[0], lambda item: int(item[1:] or 0))
    for item in items:
        line.put(item)
    return line


def test_the_first_request_of_a_client_waits_for_one_of_each_other_client() -> None:
    line = line_of(100, *["a"] * 100, *["b"] * 2, "c")
    assert line.take(6, wait=False) == ["a", "b", "c", "a", "b", "a"]
    line.put("b")
    assert line.take(3, wait=False) == ["a", "b", "a"]
    assert len(line) == 103 + 1 - 9


def test_priorities_come_before_turns() -> None:
    line = line_of(100, "a", "a-1", "b-1", "a-1", "b7", "c", "c7")
    assert line.take(100, wait=False) == ["a-1", "b-1", "a-1", "a", "c", "b7", "c7"]


def test_requests_that_leave_change_no_turns() -> None:
    line = line_of(100, "a1", "b1", "a2", "b2", "a1", "b1")
    assert line.remove(lambda item: item == "b1") == ["b1", "b1"]
    assert line.remove(lambda item: item == "c") == []
    assert line.take(100, wait=False) == ["a1", "a1", "a2", "b2"]
    assert line.take(1, wait=False) == []


def test_a_client_leaves_room_for_others() -> None:
    line = line_of(8, *["a"] * 8)
    with pytest.raises(Busy, match="8 requests are waiting"):
        line.put("a")
    line.put("b", "b", "b", "b")  # half of the places that one client leaves
    with pytest.raises(Busy):
        line.put("b")
    line.put("c", "c")
    with pytest.raises(Busy):
        line.put("c")
    line.put("d")
    assert len(line) == 15  # and there is one more place
    for client in "efgh":
        line.put("z") if client == "e" else None
    assert len(line) == 16
    with pytest.raises(Busy):
        line.put("y")
    assert line.take(16, wait=False)[:5] == [*"abcdz"]


def test_all_requests_of_one_call_find_a_place_or_none() -> None:
    line = line_of(4, "a")
    with pytest.raises(Busy):
        line.put(*["a"] * 4)
    line.put(*["a"] * 3)
    assert len(line) == 4
    assert line.close() == ["a"] * 4
    with pytest.raises(Closed):
        line.put("b")


def test_threads_call_the_functions_of_clients_in_turn() -> None:
    threads, called, go_on = Threads("test", 1), [], threading.Event()
    first = threads.submit(go_on.wait, "a")
    results = [threads.submit(lambda name=name: called.append(name), name[0]) for name in ("a1", "a2", "a3", "b1")]
    results[1].cancel()
    threads.start()
    go_on.set()
    failed = threads.submit(lambda: 1 // 0, "b")
    assert first.result(HANG_S)
    with pytest.raises(ZeroDivisionError):
        failed.result(HANG_S)
    results[2].result(HANG_S)
    assert called == ["b1", "a1", "a3"]
    threads.stop()


KEYS = ("one", "two")


@pytest.fixture
def server() -> Iterator[Running]:
    speech = built_in_speech()
    catalog = Catalog({"stories": story_teller(slots=1, queue=2)}, listeners={speech.name: speech})
    catalog.encoders["encoder"] = embedder("encoder", small_encoder())
    with running(make_app(catalog, Access(KEYS)), catalog) as started:
        yield started


def test_one_key_does_not_fill_the_line_for_another(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, go_on, began = server.engine, threading.Event(), []
    admit = engine._admit

    def wait(generation: Any) -> None:
        began.append(generation.request.client)
        assert go_on.wait(HANG_S)
        admit(generation)

    monkeypatch.setattr(engine, "_admit", wait)
    statuses: dict[str, list[int]] = {key: [] for key in KEYS}

    def ask(key: str) -> None:
        statuses[key].append(post(server, "/v1/completions", TEXT, key=key)[0])

    asked = [threading.Thread(target=ask, args=("one",)) for _ in range(6)]
    for thread in asked:
        thread.start()
    while statuses["one"].count(429) < 3:  # one is read, and two wait
        assert any(thread.is_alive() for thread in asked)
        time.sleep(PAUSE_S)
    asked.append(threading.Thread(target=ask, args=("two",)))
    asked[-1].start()
    while len(engine.line) < 3:
        assert asked[-1].is_alive()
        time.sleep(PAUSE_S)
    go_on.set()
    for thread in asked:
        thread.join(HANG_S)
    assert statuses == {"one": [429] * 3 + [200] * 3, "two": [200]}
    assert began == ["key 0", "key 0", "key 1", "key 0"]


def test_all_lines_know_who_asks(server: Running, monkeypatch: pytest.MonkeyPatch, sound: Path) -> None:
    clients: list[str] = []
    put = WaitingLine.put

    def record(line: WaitingLine[Any], *items: Any) -> None:
        clients.extend(map(line._client, items))
        put(line, *items)

    monkeypatch.setattr(WaitingLine, "put", record)
    messages = [{"role": "user", "content": "Lily"}]
    for path, body, lines in (
        ("/v1/completions", TEXT, 2),
        ("/v1/chat/completions", {"messages": messages, "max_tokens": 1, "stream": False}, 2),
        ("/v1/responses", {"input": "Lily", "max_output_tokens": 1}, 2),
        ("/generate", {"inputs": "Lily", "parameters": {"max_new_tokens": 1}}, 2),
        ("/v1/embeddings", {"input": "a"}, 4),
        ("/embed", {"inputs": "a"}, 4),
        ("/tokenize", {"inputs": "a"}, 2),
    ):
        clients.clear()
        status, answer, _ = post(server, path, body, key="two")
        assert (status, clients) == (200, ["key 1"] * lines), (path, answer)
    clients.clear()
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.flac"\r\n\r\n' + sound.read_bytes()
    upload = {"Content-Type": "multipart/form-data; boundary=x"}
    assert post(server, "/v1/audio/transcriptions", form + b"\r\n--x--\r\n", key="one", **upload)[0] == 200
    assert set(clients) == {"key 0"}


def test_each_of_several_keys_is_one(server: Running) -> None:
    for key, status in (("one", 200), ("two", 200), ("three", 401), ("", 401), ("one,two", 401)):
        assert post(server, "/v1/completions", TEXT, key=key)[0] == status


def test_who_shares_the_only_key_is_told_apart_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, clients = Catalog({"stories": story_teller(slots=1)}), []
    submit_all = catalog.texts["stories"].submit_all

    def record(requests: Any) -> Any:
        clients.extend(request.client for request, _ in requests)
        return submit_all(requests)

    monkeypatch.setattr(catalog.texts["stories"], "submit_all", record)
    with running(make_app(catalog, Access(("one",))), catalog) as server:
        post(server, "/v1/completions", TEXT, key="one", **{"X-Tallow-Client": "another"})
    assert clients == ["127.0.0.1"]


def test_priorities_have_no_effect_unless_the_server_obeys_them(server: Running) -> None:
    status, answer, _ = post(server, "/v1/completions", TEXT | {"priority": -1}, key="one")
    assert (status, answer["error"]["param"]) == (400, "priority")
    assert "--priority" in answer["error"]["message"]
    assert post(server, "/v1/completions", TEXT | {"priority": 0}, key="one")[0] == 200


def test_a_client_without_a_key_is_an_address_or_a_network_of_version_6() -> None:
    def client(address: str) -> str:
        return address_of({"client": (address, 5000)})

    assert client("192.0.2.1") != client("192.0.2.2")
    assert client("2001:db8::1") == client("2001:db8::ffff:0:0:2") != client("2001:db8:0:1::1")
    assert client("fe80::1%eth0") == client("fe80::2%eth0")
    assert client("::ffff:192.0.2.1") == "192.0.2.1"
    assert client("a proxy's name") == "a proxy's name"
    assert address_of({"client": None}) == address_of({}) == ""


def test_only_the_front_of_replicas_says_who_asks(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_unix_server(answer, tmp_path / "socket"):
            headers = [(b"X-Tallow-Client", b"another")]
            async for _ in exchange(str(tmp_path / "socket"), "GET", b"/", headers, client="key 1"):
                pass

    run_coroutine(ask())
    assert b"key 1" in heads[0]
    assert b"another" not in heads[0]
