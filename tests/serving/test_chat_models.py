"""Models that chat: the list of /v1/models, and the answer to a chat if there is none."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from support.small_server import KEY, Running, get, post, running

from tallow.serving import TextEngine
from tallow.serving.catalog import Catalog, built_in_texts
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.pages import Pages

pytestmark = pytest.mark.native  # threads and sockets

MESSAGES = [{"role": "user", "content": "Hello!"}]
CHATS = {"/v1/chat/completions": {"messages": MESSAGES}, "/v1/responses": {"input": "Hello!"}}
FILES = {"": b"<!doctype html>", "web/a.js": b"1", "secret.py": b""}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": TextEngine(built_in_texts())})
    with running(make_app(catalog, Access((KEY,)), pages=Pages(lambda: FILES)), catalog) as started:
        yield started


@pytest.mark.parametrize("path", CHATS)
@pytest.mark.parametrize("name", [{}, {"model": "tgi"}])
def test_a_story_model_does_not_chat(server: Running, path: str, name: dict[str, str]) -> None:
    status, answer, _ = post(server, path, CHATS[path] | name)
    assert status == 400
    assert answer["error"]["code"] == "model_cannot_chat"
    assert "--model" in answer["error"]["message"]
    assert "/v1/completions" in answer["error"]["message"]


def test_it_continues_the_messages_of_who_names_it(server: Running) -> None:
    chat = {"model": "stories", "messages": MESSAGES, "max_tokens": 4, "temperature": 0}
    status, answer, _ = post(server, "/v1/chat/completions", chat)
    text = post(server, "/v1/completions", {"prompt": "Hello!", "max_tokens": 4, "temperature": 0})[1]
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == text["choices"][0]["text"]


def test_the_list_says_which_models_chat(server: Running) -> None:
    (card,) = get(server, "/v1/models")[1]["data"]
    assert card["capabilities"] == ["completion"]
    assert card["max_model_len"] == server.engine.length


def test_the_list_renders_a_template_once_and_does_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    served = built_in_texts()
    calls: list[int] = []
    monkeypatch.setattr(served.words, "tells_of_tools", lambda: not calls.append(1))
    assert served.capabilities == served.capabilities == ["completion", "tools"]
    assert len(calls) == 1
    monkeypatch.undo()
    other = built_in_texts()
    monkeypatch.setattr(other.words, "chat_template", "{{ messages }}")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert other.capabilities == ["completion", "chat"]


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/web/a.js", 200), ("/web/b.js", 404), ("/secret.py", 401)])
def test_files_of_the_page(server: Running, path: str, status: int) -> None:

    try:
        with urllib.request.urlopen(server.url + path) as answer:
            found, kind = answer.status, answer.headers["Content-Type"]
            assert kind.startswith("text/javascript" if path.endswith("js") else "text/html")
    except urllib.error.HTTPError as error:
        found = error.code
    assert found == status
