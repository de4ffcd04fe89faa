"""Requests that cannot be answered: the error of OpenAI's API, and the server goes on."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
from support.small_server import HANG_S, KEY, Running, connected, get, post, running, story_teller

from tallow.serving.catalog import Catalog
from tallow.serving.http import running as running_texts
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.middleware import is_key

TEXT = {"prompt": "Lily"}
CHAT = {"messages": [{"role": "user", "content": "Lily"}]}


BAD_TEXTS: dict[str, Any] = {
    "not JSON": b"{",
    "not an object": b"[1]",
    "empty": b"",
    "invalid UTF-8": b'{"prompt": "\xff"}',
    "a lone surrogate": b'{"prompt": "\\ud800"}',
    "NaN": b'{"prompt": "a", "temperature": NaN}',
    "a name twice": b'{"prompt": "a", "prompt": "b"}',
    "deep": b'{"prompt": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "no prompt": {},
    "a prompt of another type": {"prompt": 3},
    "an empty list": {"prompt": []},
    "mixed prompts": {"prompt": ["a", 3]},
    "an id outside the vocabulary": {"prompt": [1, 99999]},
    "a negative id": {"prompt": [-1]},
    "a huge id": {"prompt": [10**30]},
    "too many prompts": {"prompt": ["a"] * 10_000},
    "too long": {"prompt": "dog " * 300},
    "a huge n": TEXT | {"n": 10_000},
    "n is true": TEXT | {"n": True},
    "negative max_tokens": TEXT | {"max_tokens": -1},
    "a huge temperature": TEXT | {"temperature": 1e9},
    "huge logprobs": TEXT | {"logprobs": 10**6},
    "an empty stop string": TEXT | {"stop": [""]},
    "a stop number": TEXT | {"stop": 3},
    "a bias for no token": TEXT | {"logit_bias": {"dog": 1}},
    "a bias outside the vocabulary": TEXT | {"logit_bias": {"99999": 1}},
    "a huge bias": TEXT | {"logit_bias": {"5": 1e9}},
    "an unknown format": TEXT | {"response_format": {"type": "xml"}},
    "a suffix": TEXT | {"suffix": "end"},
    "stream is a word": TEXT | {"stream": "yes"},
    "stream_options is a list": TEXT | {"stream_options": [1]},
    "a priority that is a word": TEXT | {"priority": "high"},
    "a huge priority": TEXT | {"priority": 2**40},
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a"}}
BAD_CHATS: dict[str, Any] = {
    "no messages": {"messages": []},
    "a message that is none": {"messages": ["hello"]},
    "an unknown role": {"messages": [{"role": "king", "content": "a"}]},
    "no content": {"messages": [{"role": "user"}]},
    "a picture": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]},
    "tools": CHAT | {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "top_logprobs alone": CHAT | {"top_logprobs": 3},
    "no schema": CHAT | {"response_format": SCHEMA},
    "a schema that is none": CHAT
    | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "dragon"}}}},
    "a schema without end": CHAT
    | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"$ref": "#"}}}},
    "a schema that needs itself": CHAT
    | {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "a",
                "schema": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
            },
        }
    },
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_completions(server: Running, name: str) -> None:
    status, answer, _ = post(server, "/v1/completions", BAD_TEXTS[name])
    assert status == 400, answer
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["type"] == "invalid_request_error"


BAD_INPUTS = {
    "ids outside the vocabulary": [1, 10**6],
    "a negative id": [[-1]],
    "texts and ids": ["a", 1],
    "none": None,
    "empty": [],
    "an empty text": [""],
    "a number": 3,
    "many": ["a"] * 10_000,
}


@pytest.mark.parametrize("name", BAD_INPUTS)
@pytest.mark.parametrize(
    ("path", "field"), [("/v1/embeddings", "input"), ("/embed", "inputs"), ("/tokenize", "inputs")]
)
def test_bad_inputs(server: Running, path: str, field: str, name: str) -> None:
    status, answer, _ = post(server, path, {field: BAD_INPUTS[name]})
    assert status == 400 if path == "/v1/embeddings" else status in (413, 422)
    message = answer["error"]["message"] if path == "/v1/embeddings" else answer["error"]
    assert message.startswith(field)


@pytest.mark.parametrize("name", BAD_CHATS)
def test_bad_chats(server: Running, name: str) -> None:
    status, answer, _ = post(server, "/v1/chat/completions", BAD_CHATS[name])
    assert status == 400, answer
    assert answer["error"]["type"] == "invalid_request_error"


def test_errors_name_the_field(server: Running) -> None:
    _, answer, _ = post(server, "/v1/completions", TEXT | {"temperature": 3})
    assert answer["error"]["param"] == "temperature"
    _, answer, _ = post(server, "/v1/completions", {"prompt": "dog " * 300})
    assert (answer["error"]["param"], answer["error"]["code"]) == ("prompt", "context_length_exceeded")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/embeddings"])
def test_an_unknown_model(server: Running, path: str) -> None:
    status, answer, _ = post(server, path, TEXT | CHAT | {"input": "a", "model": "gpt-4"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")


def test_an_unknown_path_and_a_wrong_method(server: Running) -> None:
    assert post(server, "/v1/nothing", TEXT)[0] == 404
    status, answer, _ = post(server, "/v1/models", TEXT)
    assert status == 405
    assert "error" in answer


def test_prompts_that_are_much_too_long_are_not_tokenized(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*args: Any, **options: Any) -> list[int]:
        raise AssertionError

    monkeypatch.setattr(server.engine.served, "encode", encode)
    long = "a" * 256 * 300
    for path, body in {
        "/v1/completions": {"prompt": long},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": long}]},
    }.items():
        status, answer, _ = post(server, path, body)
        assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
    assert post(server, "/generate", {"inputs": long})[0] == 422
    monkeypatch.undo()
    short = {"max_new_tokens": 3, "truncate": 5, "details": True}
    assert post(server, "/generate", {"inputs": long, "parameters": short})[0] == 200


def test_the_key_is_asked_for(server: Running) -> None:
    for key in ("", "another", "\xe9", KEY + "x"):
        status, answer, headers = post(server, "/v1/completions", TEXT, key=key)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert headers["www-authenticate"] == "Bearer"


def test_a_key_beyond_ascii_is_sent_as_utf8() -> None:
    catalog = Catalog()
    bodies = {"schl\xfcssel \u9375": 404, "schl\xfcssel": 401, "schl\xfcssel \u9374": 401}
    with running(make_app(catalog, Access(("schl\xfcssel \u9375",))), catalog) as server:
        for key, wanted in bodies.items():
            sent = key.encode().decode("latin-1")  # http.client writes headers in Latin-1
            assert post(server, "/v1/completions", TEXT, key=sent)[0] == wanted
    assert is_key("\xff", "\udcff")  # bytes of the environment that are no text


def test_large_bodies_are_refused(server: Running) -> None:
    status, answer, _ = post(server, "/v1/completions", b" " * (2 << 20))
    assert (status, answer["error"]["code"]) == (413, "body_too_large")

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (1 << 16)

    headers = {"Authorization": f"Bearer {KEY}"}
    with connected(server) as connection:
        connection.request("POST", "/v1/completions", chunks(), headers, encode_chunked=True)
        assert connection.getresponse().status == 413


NOT_A_NUMBER = io.BytesIO()
soundfile.write(NOT_A_NUMBER, np.full(16000, np.nan, np.float32), 16000, format="WAV", subtype="FLOAT")
NO_SOUNDS = {
    "empty": b"",
    "text": b"not a sound",
    "header only": b"RIFF\0\0\0\0WAVE",
    "not a number": NOT_A_NUMBER.getvalue(),
}


@pytest.mark.parametrize("data", NO_SOUNDS.values(), ids=NO_SOUNDS.keys())
def test_sounds_that_are_none(server: Running, data: bytes) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + data + b"\r\n--x--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    status, answer, _ = post(server, "/v1/audio/transcriptions", form, **headers)
    assert status == 400, answer
    assert post(server, "/v1/audio/transcriptions", b"--x--\r\n", **headers)[0] == 400
    assert post(server, "/v1/audio/transcriptions", {"file": "a"})[0] == 400


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_frees_its_slot(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=1)
    read = engine._slots.read
    monkeypatch.setattr(engine._slots, "read", lambda *new: (time.sleep(0.05), read(*new))[1])  # 12 s for a text
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            body = json.dumps(TEXT | {"max_tokens": 240, "stream": stream}).encode()
            head = f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            wait_until(lambda: engine.active == 1)
        wait_until(lambda: engine.active == 0)
        assert engine.counters.cancelled == 1
        assert engine.counters.generated_tokens < 200


def test_a_full_queue_is_refused_with_the_time_to_try_again() -> None:
    engine = story_teller(slots=1, queue=1)
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server:
        status, answer, headers = post(server, "/v1/completions", TEXT | {"n": 2})
        assert (status, answer["error"]["type"]) == (429, "rate_limit_error")
        assert int(headers["retry-after"]) >= 1
        assert post(server, "/v1/completions", TEXT)[0] == 200


FOREIGN = {
    "another site": {"Origin": "https://example.org"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "a file or a sandbox": {"Origin": "null"},
    "a sandbox of this site": {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    "a form": {"Origin": "https://example.org", "Content-Type": "multipart/form-data; boundary=x"},
    "a browser that hides the origin": {"Sec-Fetch-Site": "cross-site"},
    "another port of this host": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_pages_cannot_call_the_server(server: Running, headers: dict[str, str]) -> None:
    before = server.engine.counters.requests
    for path in ("/v1/completions", "/generate", "/v1/audio/transcriptions"):
        status, answer, got = post(server, path, TEXT, **headers)
        assert status == 403
        assert "--cors" in str(answer["error"])
        assert not [name for name in got if name.lower().startswith("access-control")]
    assert server.engine.counters.requests == before


def test_pages_of_the_server_can_call_it(server: Running) -> None:
    body = TEXT | {"max_tokens": 1}
    assert post(server, "/v1/completions", body, Origin=server.url)[0] == 200
    proxied = {"Origin": "https://models.example.org", "Sec-Fetch-Site": "same-origin"}
    assert post(server, "/v1/completions", body, **proxied)[0] == 200
    with connected(server) as connection:
        connection.request("GET", "/health", headers={"Origin": "https://example.org"})
        assert connection.getresponse().status == 200


def test_pages_that_are_named_can_call_the_server() -> None:
    catalog = Catalog(texts={"stories": story_teller(slots=1)})
    app = make_app(catalog, Access(cors=("https://example.org",), hosts=("127.0.0.1",)))
    headers = {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}
    with running(app, catalog) as server:
        status, _, got = post(server, "/v1/completions", TEXT | {"max_tokens": 1}, **headers)
        assert (status, got["access-control-allow-origin"]) == (200, "https://example.org")
        headers["Origin"] = "https://evil.example"
        assert post(server, "/v1/completions", TEXT | {"max_tokens": 1}, **headers)[0] == 403


def test_other_host_names_are_refused() -> None:
    catalog = Catalog()
    app = make_app(catalog, Access(hosts=("127.0.0.1",)))
    with running(app, catalog) as server, connected(server) as connection:
        connection.request("GET", "/health", headers={"Host": "evil.example"})
        assert connection.getresponse().status == 400


def test_errors_say_what_is_expected(server: Running) -> None:
    for body, message in (
        (b"", "the body is empty; expected a JSON object"),
        (TEXT | {"max_tokens": -1}, "max_tokens: expected an integer of at least 0, got -1"),
        (TEXT | {"n": 10_000}, "n: expected an integer from 1 to 16, got 10000"),
    ):
        status, answer, _ = post(server, "/v1/completions", body)
        assert (status, answer["error"]["message"]) == (400, message)


@pytest.mark.parametrize("log_bodies", [False, True])
def test_texts_are_logged_if_asked_for(log_bodies: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="tallow.serving.access")
    catalog = Catalog(texts={"stories": story_teller(slots=1)})
    with running(make_app(catalog, Access(log_bodies=log_bodies)), catalog) as server:
        status, _, headers = post(server, "/v1/completions", TEXT)
        assert status == 200
        number = headers["x-request-id"]  # a server of another test may write its last line meanwhile
        wait_until(lambda: any(number in record.message for record in caplog.records))
    (line,) = [json.loads(record.message) for record in caplog.records if number in record.message]
    assert line["status"] == 200
    assert json.loads(line.get("request", "null")) == (TEXT if log_bodies else None)


def test_a_server_that_warms_up_is_alive_but_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=1)
    catalog = Catalog(texts={"stories": engine})
    proceed = threading.Event()
    warm_up = catalog.warm_up
    monkeypatch.setattr(catalog, "warm_up", lambda: (proceed.wait(), warm_up()))
    with running(make_app(catalog, warmup=True), catalog) as server:
        assert (get(server, "/health")[0], get(server, "/ready")[0]) == (200, 503)
        proceed.set()
        wait_until(lambda: get(server, "/ready")[0] == 200)
        assert engine.counters.generated_tokens == 2


def test_health_and_metrics(server: Running) -> None:
    for path in ("/health", "/ready", "/metrics"):
        with connected(server) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
            answer = connection.getresponse()
            assert answer.status == 200
            text = answer.read().decode()
    assert 'tallow_text_generated_tokens_total{model="stories"}' in text
    assert "process_resident_memory_bytes" in text or not Path("/proc").exists()


def address_of(server: Running) -> tuple[str, int]:
    host, _, port = urlsplit(server.url).netloc.partition(":")
    return host, int(port)


def request_text(body: bytes) -> bytes:
    head = f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def test_a_client_that_writes_slowly_holds_up_nobody(server: Running) -> None:
    data = request_text(json.dumps(TEXT | {"max_tokens": 3}).encode())
    with socket.create_connection(address_of(server), timeout=HANG_S) as slow:
        for i in range(0, len(data), 40):
            slow.sendall(data[i : i + 40])
            assert post(server, "/v1/completions", TEXT | {"max_tokens": 1})[0] == 200
        assert read_all(slow).startswith(b"HTTP/1.1 200")


# Log-probabilities of many tokens: more than the buffers of the sockets hold.
LONG_STREAM = json.dumps(TEXT | {"max_tokens": 120, "n": 16, "stream": True, "logprobs": 20}).encode()


@contextmanager
def slow_reader(server: Running) -> Iterator[socket.socket]:
    """Ask for a long stream, and read its first bytes."""
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(HANG_S)
        slow.connect(address_of(server))
        slow.sendall(request_text(LONG_STREAM))
        assert slow.recv(10) == b"HTTP/1.1 2"
        yield slow


def test_a_client_that_reads_slowly_holds_up_nobody() -> None:
    engine = story_teller(slots=2)
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server, slow_reader(server) as slow:
        assert post(server, "/v1/completions", TEXT | {"max_tokens": 5})[0] == 200
        wait_until(lambda: engine.active == 0)  # the texts end, although nobody reads them yet
        assert b"data: [DONE]" in read_all(slow)
    assert (engine.counters.requests, engine.counters.cancelled) == (17, 0)


def test_a_stream_that_nobody_reads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_texts, "MOST_UNREAD_BYTES", 200_000)
    engine = story_teller(slots=2)
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server:
        with slow_reader(server) as slow:
            wait_until(lambda: engine.counters.cancelled > 8 and engine.active == 0)
            assert engine.counters.generated_tokens < 960
            end = read_all(slow)
        assert b'"code": "client_too_slow"' in end.rpartition(b"data: ")[2]
        assert b"[DONE]" not in end
        assert post(server, "/v1/completions", TEXT | {"max_tokens": 100, "logprobs": 5})[0] == 200


def test_a_body_that_ends_too_early_is_no_error_of_the_server(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(request_text(json.dumps(TEXT | {"max_tokens": 3}).encode())[:-5])
        connection.shutdown(socket.SHUT_WR)  # the body ends before its length
        assert not read_all(connection).startswith(b"HTTP/1.1 200")
    assert post(server, "/v1/completions", TEXT | {"max_tokens": 1})[0] == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


LENGTH, CHUNKED = b"Content-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n"
POST = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
NOT_HTTP = {
    "TLS": b"\x16\x03\x01\x02",
    "a word": b"GET\r\n\r\n",
    "a length that is none": POST + b"Content-Length: x\r\n",
    "a negative length": POST + b"Content-Length: -4\r\n",
    "two lengths": POST + LENGTH + b"Content-Length: 40\r\n",
    "a length with a sign": POST + b"Content-Length: +4\r\n",
    "a length of hexadecimal digits": POST + b"Content-Length: 0x4\r\n",
    "an empty length": POST + b"Content-Length:\r\n",
    "a length of 21 digits": POST + b"Content-Length: 100000000000000000000\r\n",
    "a length and an encoding": POST + LENGTH + CHUNKED,
    "an encoding and a length": POST + CHUNKED + LENGTH,
    "an encoding twice": POST + CHUNKED + CHUNKED,
    "a list of lengths": POST + b"Content-Length: 4, 40\r\n",
    "an unknown encoding": POST + b"Transfer-Encoding: xchunked\r\n",
    "two encodings": POST + CHUNKED + b"Transfer-Encoding: identity\r\n",
    "a space after a name": POST + b"Transfer-Encoding : chunked\r\n",
    "two hosts": POST + LENGTH + b"Host: b\r\n",
}


@pytest.mark.parametrize("data", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_what_is_not_http_is_refused(server: Running, data: bytes) -> None:
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(data + b"\r\n\r\n")
        answer = read_all(connection)
        assert b" 400 " in answer.partition(b"\r\n")[0]
        assert answer.count(b"HTTP/1.1 ") == 1


def test_what_follows_a_doubtful_length_is_no_request(server: Running) -> None:
    hidden = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(POST + CHUNKED + f"Content-Length: {len(hidden)}\r\n\r\n".encode() + hidden)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_requests_in_a_row_are_answered_in_order(server: Running) -> None:
    head = f"Host: a\r\nAuthorization: Bearer {KEY}\r\n".encode()
    rows = b"".join(b"GET /v1/models/" + name + b" HTTP/1.1\r\n" + head + b"\r\n" for name in (b"a", b"stories", b"c"))
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(rows + request_text(b"{"))
        answers = read_all(connection).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"404", b"200", b"404", b"400"]


# Little more than 64 KiB: what the server leaves unread could take its answer away.
LONG_HEADS = {
    "a long line": (b"GET /" + b"a" * (64 << 10), b"414"),
    "a long header": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (64 << 10), b"431"),
    "many headers": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: abcd\r\n" * (8 << 10), b"431"),
}


@pytest.mark.parametrize(("data", "status"), LONG_HEADS.values(), ids=LONG_HEADS)
def test_long_heads_are_refused(server: Running, data: bytes, status: bytes) -> None:
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(data)
        assert read_all(connection).startswith(b"HTTP/1.1 " + status)


def test_a_broken_body_of_an_answered_request_ends_the_connection(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(address_of(server), timeout=HANG_S) as connection:
        connection.sendall(POST + CHUNKED + b"\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401 ")
        connection.sendall(b"no chunk\r\n")
        read_all(connection)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_not_a_number_of_one_text_is_its_error_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=4)
    read = engine._slots.read
    bad = engine.served.encode("Tom")

    def broken(new: Mapping[int, Sequence[int]], every: Collection[int]) -> list[Any]:
        logits = read(new, every)
        begins_badly = [engine._slots.texts[slot][: len(bad)] == bad for slot in new]
        return [row * np.float32("nan") if is_bad else row for row, is_bad in zip(logits, begins_badly, strict=True)]

    monkeypatch.setattr(engine._slots, "read", broken)
    catalog = Catalog(texts={"stories": engine})
    answers: list[tuple[int, Any]] = []

    def ask(server: Running, prompt: str) -> None:
        answers.append(post(server, "/v1/completions", {"prompt": prompt, "max_tokens": 60, "temperature": 0})[:2])

    with running(make_app(catalog), catalog) as server:
        threads = [threading.Thread(target=ask, args=(server, prompt)) for prompt in ("Lily", "Tom", "Lily")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        ask(server, "Lily")
        status, answer, _ = post(server, "/v1/completions", {"prompt": "Tom"})
    assert (status, answer["error"]["code"]) == (500, "not_a_number")
    assert sorted(status for status, _ in answers) == [200, 200, 200, 500]
    texts = {answer["choices"][0]["text"] for status, answer in answers if status == 200}
    assert len(texts) == 1


def test_cached_tokens_are_counted() -> None:
    engine = story_teller(slots=2, prefix_bytes=64 << 20)
    catalog = Catalog(texts={"stories": engine})
    body = {"prompt": "Once there was a red ball in a big park. " * 8, "max_tokens": 3, "n": 2, "temperature": 0}
    with running(make_app(catalog), catalog) as server:
        cold, warm = (post(server, "/v1/completions", body)[1] for _ in range(2))
        with connected(server) as metrics:
            metrics.request("GET", "/metrics")
            text = metrics.getresponse().read().decode()
    assert cold["choices"] == warm["choices"]
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    known = warm["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert warm["usage"]["prompt_tokens"] - 40 < known < warm["usage"]["prompt_tokens"]
    assert f'tallow_prefix_cache_bytes{{model="stories"}} {float(engine.pages.nbytes)}' in text
    assert 'tallow_text_hits_total{model="stories"} 3.0' in text
