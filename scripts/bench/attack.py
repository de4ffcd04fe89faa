"""`tallow serve` under hostile requests, one class after the other, beside a client that reads greedy texts.

Claims: the other client's texts never change; the longest time between two of its tokens is at most 1 s; at the end the
server's memory is at most 1.5 times that of its start. The first token of a text may wait for a place: its time has a
column of its own. The statuses of the hostile requests are counted: `closed` is a connection that ended without an
answer, `silent` one that had none within the time of its class. Linux only: the clients have two loopback addresses.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import resource
import socket
import statistics
import struct
import time
import wave
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.report import Row
from bench.serve import resident_mb, serving
from tallow.serving.http.app import GIVE_BACK_S

NAME = "attack"
ROOT = Path(__file__).resolve().parents[2]
CLASS_S = 20.0  # of each class, after which its clients are killed
AFTER_S = 3.0  # the other client reads on for so long: work that goes on after its client has left shows in its gaps
PREFIX_MIB = 16  # of known prompts, which count as memory
FILES = 1024  # open files that the server may have
TIMEOUT_S = 120
ADDRESS = "127.0.0.2"  # of the hostile client; the server tells clients by their addresses
WITNESS = {"prompt": "Once upon a time", "max_tokens": 100, "temperature": 0, "stream": True}

Statuses = Iterator[str]
COMPLETIONS = "/v1/completions"
BLOW_UP = r".*[a-m].{40}|.*[aeiou].{40}|.*[bdfhjlnprtvxz].{40}|(.?){4000}"
SCHEMAS: list[Any] = [
    {"type": "integer", "minimum": 10**309},
    {"type": "object", "required": [[1]]},
    {"oneOf": [{"type": [["string"]]}, {"type": "null"}]},
    {"$ref": "#/x", "x": [1]},
    {"$ref": "#/" + "1" * 5000},
    {"type": "object", "properties": {"n" * 3000: {"type": "string"}}},
    {"enum": [-1e999]},
    {"type": "string", "pattern": BLOW_UP},
    {"type": "string", "pattern": "a" * 2_000_000},
    {"type": "array", "minItems": 10**9},
]


def measure(options: dict[str, Any]) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    _sounds()  # which take time to make
    with serving("--prefix-cache-mib", str(PREFIX_MIB)) as (pid, port):
        _first_requests(port)
        first = next(_texts(port))
        before = resident_mb(pid)
        rows: list[Row] = [{"class": "none", **_worst([first]), "memory, MB": before}]
        for attack in ATTACKS:
            rows.append(_beside(attack, port, first.text) | {"memory, MB": resident_mb(pid)})
        time.sleep(GIVE_BACK_S + AFTER_S)
        after = resident_mb(pid)
    rows += [
        {"class": "all: worst gap", "worst gap, ms": max(row["worst gap, ms"] for row in rows[1:]), "claim": "<= 1000"},
        {"class": "texts that changed", "changed": sum(row["changed"] for row in rows[1:]), "claim": "0"},
        {"class": "memory after, of before", "memory, MB": after, "ratio": after / before, "claim": "<= 1.5"},
    ]
    return {"rows": rows, "notes": [f"the usual time between two tokens is {statistics.mean(first.gaps) * 1e3:.2g} ms"]}


def _first_requests(port: int) -> None:
    """Send a request of each kind, and fill all slots, so that what the server has for them counts as memory before."""
    requests = [
        complete(port, prompt=["Lily"] * 8, max_tokens=240, logprobs=5),
        complete(port, guided_json={"type": "integer"}, max_tokens=8),
        post(port, "/v1/embeddings", b'{"input": "a cat"}'),
        _transcribe(port, (ROOT / "wasm_examples/whisper/samples/numbers.flac").read_bytes()),
    ]
    if set(_statuses(requests)) != {"200"}:
        raise RuntimeError("the server does not answer")


def _beside(attack: Callable[[int], Statuses], port: int, wanted: str) -> Row:
    """Run an attack in a process of its own while this one reads texts."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_attack, args=(attack, port, sender))
    process.start()
    sender.close()
    ends = time.monotonic() + CLASS_S
    texts, ended = [], 0.0
    for text in _texts(port):
        texts.append(text)
        now = time.monotonic()
        if not ended and (now > ends or not process.is_alive()):
            process.kill()
            ended = now
        if ended and now > ended + AFTER_S:
            break
    process.join()
    statuses: Counter[str] = Counter()
    while receiver.poll():
        try:
            statuses[receiver.recv()] += 1
        except EOFError:
            break
    shown = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    summary = (attack.__doc__ or "").rstrip(".")
    return {"class": summary, **_worst(texts), "changed": sum(it.text != wanted for it in texts), "statuses": shown}


def _worst(texts: list[Text]) -> Row:
    return {
        "worst gap, ms": max(gap for text in texts for gap in text.gaps) * 1e3,
        "first token, ms": max(text.first_s for text in texts) * 1e3,
    }


def _attack(attack: Callable[[int], Statuses], port: int, sender: Connection) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for status in attack(port):
        sender.send(status)


class Text(NamedTuple):
    """A text of the client beside, the seconds to its first token, and those between the others.

    A broken one is empty, and all its time is a gap.
    """

    text: str
    first_s: float
    gaps: list[float]


def _texts(port: int) -> Iterator[Text]:
    """Read texts as the client beside, one after the other."""
    while True:
        begun = time.monotonic()
        pieces, times = [], []
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
            connection.request("POST", COMPLETIONS, json.dumps(WITNESS))
            answer = connection.getresponse()
            while line := answer.readline():
                if line.startswith(b"data: {"):
                    pieces.append(json.loads(line[6:])["choices"][0]["text"])
                    times.append(time.monotonic())
            connection.close()
            yield Text("".join(pieces), times[0] - begun, np.diff(times).tolist())
        except (OSError, HTTPException, LookupError):
            yield Text("", 0.0, [time.monotonic() - begun])


class Hostile:
    """A connection that sends bytes of its own choice."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=(ADDRESS, 0))

    def send(self, data: bytes) -> Hostile:
        """Send bytes, or as many as the server takes."""
        with suppress(OSError):  # the server has closed the connection; its answer may be there
            self.socket.sendall(data)
        return self

    def status(self, wait_s: float = TIMEOUT_S) -> str:
        """Return the status of the answer, `closed`, or `silent`."""
        self.socket.settimeout(wait_s)
        try:
            head = self.socket.recv(64)
        except TimeoutError:
            return "silent"
        except OSError:
            return "closed"
        return head.split(b" ")[1].decode() if head.startswith(b"HTTP/") else "closed"


def head(path: str, length: int, *lines: str) -> bytes:
    """Return the head of a POST with a body of `length` bytes."""
    fields = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *lines)
    return "\r\n".join((*fields, "", "")).encode()


def post(port: int, path: str, body: bytes, *lines: str) -> Hostile:
    """Send a POST, and do not wait for its answer."""
    return Hostile(port).send(head(path, len(body), *lines) + body)


def complete(port: int, **fields: Any) -> Hostile:
    return post(port, COMPLETIONS, json.dumps({"prompt": "Lily", "max_tokens": 512} | fields).encode())


def _statuses(connections: list[Hostile]) -> Statuses:
    for connection in connections:
        yield connection.status()


def grammars(port: int) -> Statuses:
    """Patterns of many configurations."""
    yield from _statuses([complete(port, guided_regex=BLOW_UP + "x" * number) for number in range(4)])


def grammars_left(port: int) -> Statuses:
    """Such patterns, whose client leaves."""
    for number in range(20):
        yield complete(port, guided_regex=BLOW_UP + "y" * number).status(0.2)


def schemas(port: int) -> Statuses:
    """Schemas that are none."""
    for schema in SCHEMAS:
        yield complete(port, guided_json=schema).status()


def patterns(port: int) -> Statuses:
    """Patterns of 8 MB, and nested grammars."""
    yield complete(port, guided_regex="(a|b)" * 1_600_000).status()
    yield complete(port, guided_regex="(" * 100_000 + ")" * 100_000).status()
    yield complete(port, guided_grammar="root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000).status()


def bodies(port: int) -> Statuses:
    """JSON of 30 MB, and of 3.9 MB."""
    for size in (30_000_000, 3_900_000):
        yield post(port, COMPLETIONS, b'{"prompt": [' + b"1," * (size // 2) + b"1]}").status()
        yield post(port, COMPLETIONS, b'{"prompt": "' + b"a" * size + b'"}').status()
        yield post(port, COMPLETIONS, b'{"messages": [' + b"{}," * (size // 3) + b"{}]}").status()
    yield post(port, COMPLETIONS, b"[" * 100_000 + b"]" * 100_000).status()


def lengths(port: int) -> Statuses:
    """Lengths that do not fit."""
    yield Hostile(port).send(head(COMPLETIONS, 10**12)).status()
    yield Hostile(port).send(head(COMPLETIONS, 4, "Transfer-Encoding: chunked") + b"0\r\n\r\n").status()
    yield Hostile(port).send(head(COMPLETIONS, 4, "Content-Length: 5") + b"{}{}").status()
    yield Hostile(port).send(head(COMPLETIONS, -4) + b"{}{}").status()
    yield Hostile(port).send(b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n").status()
    yield Hostile(port).send(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200_000).status()


def half_heads(port: int) -> Statuses:
    """Connections that send half a head."""
    opened = []
    for _ in range(2 * FILES):
        try:
            opened.append(Hostile(port).send(b"POST /v1/completions HTTP/1.1\r\nHost: 127"))
        except OSError:
            yield "closed"
    for connection in opened:
        yield connection.status(CLASS_S / len(opened))


def unread(port: int) -> Statuses:
    """Streams that nobody reads."""
    opened = [complete(port, prompt=["Once"] * 8, max_tokens=240, logprobs=5, stream=True) for _ in range(16)]
    time.sleep(CLASS_S / 2)
    yield from _statuses(opened)


def many(port: int) -> Statuses:
    """A client's hundred requests at once."""
    yield from _statuses([complete(port, max_tokens=100) for _ in range(100)])


def sounds(port: int) -> Statuses:
    """Sounds that are longer than they look."""
    for sound in _sounds():
        yield _transcribe(port, sound).status(5)


def pages(port: int) -> Statuses:
    """Requests of other pages."""
    body = json.dumps({"prompt": "Lily"}).encode()
    for line in ("Origin: https://example.org", "Origin: null", "Sec-Fetch-Site: cross-site"):
        yield post(port, COMPLETIONS, body, line).status()


ATTACKS = (
    schemas, grammars, grammars_left, patterns, bodies, lengths, half_heads, unread, many, sounds, pages,
)  # fmt: skip
CONTEXT = multiprocessing.get_context("fork")


def _transcribe(port: int, sound: bytes) -> Hostile:
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + sound + b"\r\n--x--\r\n"
    return post(port, "/v1/audio/transcriptions", form, "Content-Type: multipart/form-data; boundary=x")


@cache
def _sounds() -> tuple[bytes, ...]:
    return _wave(rate=1), _wave(rate=2**31 - 1), _flac()


def _wave(rate: int) -> bytes:
    """Return half a megabyte of silence whose head has that rate."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(bytes(500_000))
    data = bytearray(file.getvalue())
    data[24:28] = struct.pack("<I", rate)
    return bytes(data)


def _flac() -> bytes:
    """Return ten hours of silence, in some 0.1 MB."""
    import soundfile

    file, rate = io.BytesIO(), 8000
    with soundfile.SoundFile(file, "w", samplerate=rate, channels=1, format="FLAC") as writer:
        for _ in range(10):
            writer.write(np.zeros(rate * 3600, np.int16))
    return file.getvalue()
