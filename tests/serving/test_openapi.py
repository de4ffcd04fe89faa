"""The OpenAPI document, and the page that sends its examples."""

from __future__ import annotations

import json

import pytest
from support.small_server import KEY, Running, connected

from tallow.serving.http.app import GETS, POSTS
from tallow.serving.http.errors import TEI_PATHS
from tallow.serving.http.openapi import EXAMPLES, document


def test_the_document_has_all_endpoints() -> None:
    paths = document("1")["paths"]
    assert {path for path, calls in paths.items() if "post" in calls} == POSTS.keys() - {"/"}
    gets = {path.replace(":path", "") for path in GETS}
    assert {path for path, calls in paths.items() if "get" in calls} == gets - {"/", "/openapi.json"}


def head(server: Running, method: str, path: str, body: str = "", key: str = "") -> tuple[int, str]:
    """Return the status and the type of the answer."""
    with connected(server) as connection:
        connection.request(method, path, body, {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Content-Type", "").split(";")[0]


@pytest.mark.parametrize("path", sorted(EXAMPLES.keys() - TEI_PATHS))
def test_examples_are_answered(server: Running, path: str) -> None:
    is_stream = path == "/generate_stream" or "stream" in EXAMPLES[path]
    kind = "text/event-stream" if is_stream else "application/json"
    assert head(server, "POST", path, json.dumps(EXAMPLES[path]), KEY) == (200, kind)


def test_the_page_and_the_document_need_no_key(server: Running) -> None:
    assert head(server, "GET", "/") == (200, "text/html")
    assert head(server, "GET", "/openapi.json") == (200, "application/json")
    assert head(server, "POST", "/", '{"inputs": "Lily"}')[0] == 401
