"""The log of `tallow serve`: each entry is one line of its own, whatever clients and models are called."""

from __future__ import annotations

import http.client
import json
import logging
import re
import sys
from pathlib import Path

from support.serve_process import serving
from support.small_server import HANG_S

from tallow.serving.http.server import EntryFormatter

FORGED = "2030-01-01 00:00:00,000 INFO all is well"
HOSTILE = f"a\r\n{FORGED}\x1b]0;owned\x07\x9b2J\u202e\u2028{FORGED}\x7f"
ENTRY = re.compile(r"\d{4}-\d\d-\d\d \S+ (INFO|WARNING|ERROR) ")


def commands(text: str) -> set[str]:
    return set(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text))


def test_an_entry_is_one_line() -> None:
    form = EntryFormatter("%(asctime)s %(levelname)s %(message)s")
    record = logging.LogRecord("tallow.serving", logging.ERROR, "path", 1, "the model %s failed", (HOSTILE,), None)
    assert len(form.format(record).splitlines()) == 1
    assert not commands(form.format(record))
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        record = logging.LogRecord("tallow.serving", logging.ERROR, "path", 1, "failed", (), sys.exc_info())
    first, *rest = form.format(record).splitlines()
    assert ENTRY.match(first)
    assert f"    {FORGED}" in "\n".join(rest)
    assert all(line.startswith("    ") for line in rest)
    assert not commands("\n".join(rest))


def test_requests_forge_no_entries(tmp_path: Path) -> None:
    path = "/v1/%0d%0a" + FORGED.replace(" ", "%20")
    body = json.dumps({"model": "stories", "prompt": HOSTILE, "max_tokens": 1, HOSTILE: 1}, ensure_ascii=False).encode()
    with serving("--log-requests", cwd=tmp_path) as (process, url):
        connection = http.client.HTTPConnection(url.removeprefix("http://").removesuffix("/v1"))
        for target in (path, "/v1/completions"):
            connection.request("POST", target, body)
            connection.getresponse().read()
        connection.close()
        process.terminate()  # it ends when the log is written
        process.wait(HANG_S)
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert not commands(log)
    entries = [line for line in log.splitlines() if ENTRY.match(line)]
    assert not [line for line in entries if line.startswith(FORGED)]
    requests = [json.loads(line.partition(" INFO ")[2]) for line in entries if '"method"' in line]
    assert [(entry["path"], entry["status"]) for entry in requests] == [("other", 404), ("/v1/completions", 200)]
    assert json.loads(requests[1]["request"])["prompt"] == HOSTILE  # the entry is still JSON
