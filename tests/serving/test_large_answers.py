"""Large answers are made and written in pieces, while others are answered."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_encoder import small_encoder
from support.small_server import Running, connected, post, running, story_teller

from tallow.serving.catalog import Catalog
from tallow.serving.encoding import embedder
from tallow.serving.http import large_json
from tallow.serving.http.app import make_app
from tallow.serving.http.completions import ECHOED

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_pieces_are_the_json_of_a_value(value: Any) -> None:
    written = b"".join(large_json.pieces(value))
    assert written.decode() == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_pieces_are_short() -> None:
    value = {"data": [{"vector": [0.5] * 100_000, "name": "a"}] * 3, "tops": [{"a": 1.5}] * 20_000, "empty": []}
    parts = list(large_json.pieces(value))
    assert json.loads(b"".join(parts)) == value
    assert max(map(len, parts)) <= 4 * large_json.PIECE
    assert list(large_json.pieces(iter([[1], "a"]))) == [b"[", b"", b"[1]", b",", b'"a"', b"]"]
    with pytest.raises(ValueError, match="JSON"):
        list(large_json.pieces([float("nan")]))


@pytest.fixture(scope="module")
def server() -> Any:
    catalog = Catalog(texts={"stories": story_teller(slots=1)})
    catalog.encoders["encoder"] = embedder("encoder", small_encoder())
    with running(make_app(catalog), catalog) as started:
        yield started


TEXT = {"prompt": "Lily has a dog. " * 20, "max_tokens": 2, "temperature": 0, "logprobs": 3, "echo": True}
CHAT = {"messages": [{"role": "user", "content": "Lily"}], "max_tokens": 2, "logprobs": True, "top_logprobs": 3}
DETAILS = {"inputs": "Lily", "parameters": {"max_new_tokens": 2, "details": True, "top_n_tokens": 3}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", TEXT),
        ("/v1/chat/completions", CHAT),
        ("/generate", DETAILS),
        ("/v1/embeddings", {"input": "a"}),
        ("/embed", {"inputs": "a"}),
        ("/embed_all", {"inputs": "a"}),
        ("/tokenize", {"inputs": "a"}),
    ],
)
def test_what_may_be_large_is_written_in_a_thread(
    server: Running, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    names, pieces = set(), large_json.pieces

    def record(value: Any) -> Any:
        names.add(threading.current_thread().name)
        return pieces(value)

    monkeypatch.setattr(large_json, "pieces", record)
    assert post(server, path, body)[0] == 200
    assert names == {"tallow requests"}


def test_a_stream_has_the_log_probabilities_of_a_prompt_in_parts(server: Running) -> None:
    (whole,) = post(server, "/v1/completions", TEXT)[1]["choices"]
    with connected(server) as connection:
        connection.request("POST", "/v1/completions", json.dumps(TEXT | {"stream": True}))
        events = connection.getresponse().read().decode().split("\n\n")[:-2]
    parts = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events]
    assert "".join(part["text"] for part in parts) == whole["text"]
    for name, listed in whole["logprobs"].items():
        assert [item for part in parts for item in part["logprobs"][name]] == listed
    assert max(len(part["logprobs"]["tokens"]) for part in parts) <= ECHOED
    assert len(parts) > 3
