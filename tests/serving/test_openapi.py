"""The OpenAPI document, and the page that sends its examples."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import build_field_tables
import pytest
from starlette.datastructures import UploadFile
from support.read_fields import read_by
from support.small_server import KEY, Running, connected, get

from tallow.serving.http import open_inference
from tallow.serving.http.app import GETS, OPEN_INFERENCE, POSTS, SOUNDS
from tallow.serving.http.errors import TEI_PATHS
from tallow.serving.http.fields import Fields
from tallow.serving.http.known_fields import SPEECH
from tallow.serving.http.openapi import EXAMPLES, document
from tallow.serving.http.speech import transcripts


def test_the_document_has_all_endpoints() -> None:
    paths = document("1", {path: post.table for path, post in POSTS.items()} | dict.fromkeys(SOUNDS, SPEECH))["paths"]
    infer = {f"{path}/infer" for path in open_inference.RUNNERS}
    assert {path for path, calls in paths.items() if "post" in calls} == POSTS.keys() | SOUNDS.keys() | infer
    gets = {path.replace(":path", "") for path in GETS} | OPEN_INFERENCE.keys()
    assert {path for path, calls in paths.items() if "get" in calls} == gets - {"/", "/openapi.json", "/requests"}


def test_the_document_has_all_fields(server: Running) -> None:
    paths = get(server, "/openapi.json")[1]["paths"]
    for path, post in POSTS.items():
        (body,) = paths[path]["post"]["requestBody"]["content"].values()
        names = {*post.table.read, *post.table.refused}
        properties = body["schema"]["properties"]
        assert properties.keys() == {name.partition(".")[0] for name in names} | (properties.keys() & {"parameters"})
        assert all(properties[name]["description"] for name in post.table.read if "." not in name)
    refused = paths["/v1/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert refused["best_of"] == {"description": "not supported", "enum": [None, 1]}
    sound = paths["/v1/audio/transcriptions"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert sound["required"] == ["file"]
    assert sound["properties"]["file"]["format"] == "binary"


@pytest.mark.parametrize("path", [path for path in POSTS if path not in ("/rerank", "/predict", "/embed_sparse")])
def test_the_fields_of_the_document_are_those_that_are_read(server: Running, path: str) -> None:
    if path in ("/tokenize", "/decode"):
        engine: Any = None
    else:
        engine = next(iter(getattr(server.catalog, POSTS[path].kind.engines).values()))
    assert read_by(path, EXAMPLES[path], engine) == POSTS[path].table.read.keys()


def test_the_guide_has_the_tables() -> None:
    text = build_field_tables.FILE.read_text()
    assert text == build_field_tables.with_section(text), "run `python scripts/build_field_tables.py`"


def test_the_fields_of_sounds_are_those_that_are_read() -> None:
    fields = Fields({"file": UploadFile(io.BytesIO(b""))})
    transcripts(fields, cast(Any, None), "transcribe")
    assert fields.asked | {"model"} == SPEECH.read.keys()


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
    others = "audio/wav" if path == "/v1/audio/speech" else "application/json"
    kind = "text/event-stream" if is_stream else others
    assert head(server, "POST", path, json.dumps(EXAMPLES[path]), KEY) == (200, kind)


def test_the_page_and_the_document_need_no_key(server: Running) -> None:
    assert head(server, "GET", "/") == (200, "text/html")
    assert head(server, "GET", "/openapi.json") == (200, "application/json")
    assert head(server, "POST", "/", '{"inputs": "Lily"}')[0] == 401
