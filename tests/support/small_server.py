"""A server of small models on a free port, in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from openai import OpenAI
from starlette.applications import Starlette

from tallow.models.built_in import stories
from tallow.serving import TextEngine, TextModel
from tallow.serving.catalog import Catalog
from tallow.serving.http.limits import Deadlines, Room, room
from tallow.serving.http.listener import listen
from tallow.serving.http.server import Server

KEY = "a key"
HANG_S = 180  # until an answer counts as missing: a busy machine may hold up a process for half a minute


@dataclass
class Running:
    """A server that answers at `url`."""

    url: str
    catalog: Catalog

    def client(self, *, strict: bool = True) -> OpenAI:
        """Return a client; a strict one raises errors for answers that do not have the package's types."""
        options: Any = {"_strict_response_validation": strict}
        return OpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0, timeout=HANG_S, **options)

    @property
    def engine(self) -> TextEngine:
        return next(iter(self.catalog.texts.values()))


@contextmanager
def running(
    app: Starlette, catalog: Catalog, deadlines: Deadlines | None = None, free: Room | None = None, **options: Any
) -> Iterator[Running]:
    """Start a server and end it.  Args: options: of uvicorn, such as ssl_certfile"""
    listener = listen("127.0.0.1", 0, free or room())
    server = Server(app, deadlines or Deadlines(), drain_timeout_s=5, **options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", catalog)
    finally:
        server.should_exit = True
        thread.join(HANG_S)
        listener.close()
    assert not thread.is_alive()


def story_teller(**limits: Any) -> TextEngine:
    model, words = stories.load()
    return TextEngine(TextModel("stories", model, words, template="plain"), **limits)


def post(
    server: Running, path: str, body: bytes | dict[str, Any], *, key: str = KEY, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Return the status, the JSON and the headers of the answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _request(server, "POST", path, data, {"Authorization": f"Bearer {key}", **headers})


def get(server: Running, path: str) -> tuple[int, Any, dict[str, str]]:
    """Return the status, the JSON and the headers of the answer."""
    return _request(server, "GET", path, None, {"Authorization": f"Bearer {KEY}"})


def _request(
    server: Running, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> tuple[int, Any, dict[str, str]]:
    with connected(server) as connection:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), dict(answer.getheaders())


def connected(server: Running) -> closing[HTTPConnection]:
    """Return a connection to the server for a `with`, which closes it also after an error."""
    return closing(HTTPConnection(urlsplit(server.url).netloc, timeout=HANG_S))
