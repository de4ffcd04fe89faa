"""Nobody learns from the server whether another client has sent a prompt."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.small_server import Running, connected, post, running, story_teller

from tallow.cli import serve
from tallow.errors import ArgumentError
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.front import PROMPTS, _beginnings

PROMPT = "Once there was a red ball in a big park. " * 4
MESSAGES = [{"role": "user", "content": PROMPT}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": PROMPT, "max_tokens": 1},
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 1},
    "/generate": {"inputs": PROMPT, "parameters": {"max_new_tokens": 1}},
}


@contextmanager
def serving(**options: Any) -> Iterator[Callable[..., tuple[int, Any]]]:
    """Run a server with two keys; yield what sends a request, and returns the tokens that were known and the usage."""
    engine = story_teller(slots=1, prefix_bytes=64 << 20, **options)
    catalog = Catalog(texts={"stories": engine})

    def ask(path: str, key: str, **fields: Any) -> tuple[int, Any]:
        before, body = engine.counters.cached, BODIES[path]
        if path == "/generate":
            fields = {"parameters": body["parameters"] | fields}
        status, answer, _ = post(server, path, body | fields, key=key)
        assert status == 200, answer
        return engine.counters.cached - before, answer.get("usage")

    with running(make_app(catalog, Access(("one", "two"))), catalog) as server:
        ask.server = server  # type: ignore[attr-defined]
        yield ask


@pytest.mark.parametrize("path", BODIES)
def test_prompts_are_known_to_the_client_that_sent_them(path: str) -> None:
    with serving() as ask:
        assert [ask(path, "one")[0], ask(path, "two")[0]] == [0, 0]
        known, usage = ask(path, "one")
        assert known >= 32
        assert ask(path, "two")[0] == known
    if usage is not None:
        details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
        assert details["cached_tokens"] == known


@pytest.mark.parametrize("field", ["cache_salt", "extra_key"])
@pytest.mark.parametrize("path", BODIES)
def test_prompts_share_pages_with_equal_salts_only(path: str, field: str) -> None:
    with serving(shares_prefixes=True) as ask:
        assert ask(path, "one", **{field: "a"})[0] == 0
        assert ask(path, "two")[0] == 0
        assert ask(path, "two", **{field: "b"})[0] == 0
        assert ask(path, "two", **{field: "a"})[0] >= 32
        assert ask(path, "one", cache_salt="a", extra_key="a")[0] == 0


def test_prompts_with_log_probabilities_are_known_by_their_salt() -> None:
    with serving() as ask:
        ask("/v1/completions", "one", prompt_logprobs=1, cache_salt="a")
        assert ask("/v1/completions", "one")[0] == 0
        assert ask("/v1/completions", "one", cache_salt="a")[0] >= 32


def metrics(server: Running) -> str:
    with connected(server) as connection:
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer two"})
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("reports", [False, True])
def test_of_shared_prompts_nothing_is_told_unless_it_is_asked_for(reports: bool) -> None:
    with serving(shares_prefixes=True, reports_cached=reports) as ask:
        ask("/v1/completions", "one")
        known, usage = ask("/v1/completions", "two")
        _, of_response = ask("/v1/responses", "two")
        text = metrics(ask.server)  # type: ignore[attr-defined]
    assert known >= 32
    assert usage.get("prompt_tokens_details") == ({"cached_tokens": known} if reports else None)
    assert of_response["input_tokens_details"]["cached_tokens"] == (known if reports else 0)
    for name in ("tallow_text_hits_total", "tallow_text_cached_total", "tallow_prefix_cache_bytes"):
        assert (f"{name}{{" in text) == reports
    assert "tallow_text_prompt_tokens_total{" in text


def test_salts_that_are_none() -> None:
    with serving() as ask:
        for salt in ("", 3, ["a"], "a" * 1025):
            body = BODIES["/v1/completions"] | {"cache_salt": salt}
            status, answer, _ = post(ask.server, "/v1/completions", body, key="one")  # type: ignore[attr-defined]
            assert (status, answer["error"]["param"]) == (400, "cache_salt")


def test_the_front_of_replicas_keeps_clients_and_salts_apart() -> None:
    def blocks(salt: bytes = b"", client: str = "", more: bytes = b"") -> list[int]:
        body = b'{"model": "m", ' + salt + b'"messages": [{"content": "' + PROMPT.encode() + b'"}' + more + b"]}"
        return _beginnings("/v1/chat/completions", body, client)

    assert len(blocks()) == 1
    assert blocks(more=b', {"content": "More."}' * 20)[:1] == blocks()
    salted = blocks(b'"cache_salt": "a\\"b", ')
    assert salted == blocks(b'"cache_salt":"a\\"b",')
    others = [b"", b'"cache_salt": "a", ', b'"extra_key": "a", ', b'"extra_key": "a\\"b", ']
    different = [salted, *map(blocks, others), blocks(client="one"), blocks(client="two")]
    assert len({each[0] for each in different}) == len(different)
    assert _beginnings("/v1/chat/completions", b'"cache_salt"' * 1000 + b"\\", "") == []
    assert _beginnings("/embed", b'{"inputs": "a"}', "") == []
    assert set(BODIES) <= set(PROMPTS)


@pytest.mark.parametrize(
    ("options", "mib"),
    [
        ("", 512),
        ("--prefix-cache shared", 512),
        ("--prefix-cache off", 0),
        ("--prefix-cache 0", 0),
        ("--prefix-cache 7", 7),
        ("--prefix-cache private --prefix-cache-mib 9", 9),
    ],
)
def test_the_option_takes_a_mode_or_a_size(options: str, mib: int) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert serve._prefix_mib(parser.parse_args(options.split())) == mib
    with pytest.raises((SystemExit, ArgumentError)):
        parser.parse_args(["--prefix-cache", "some"])
