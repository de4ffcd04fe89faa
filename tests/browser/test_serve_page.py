"""The page of `tallow serve` sends the examples of its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.small_server import KEY, Running, post, running, story_teller
from tests.browser.axe import expect_no_violation

from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access

TEXT, GREEDY = "Once upon a time", {"temperature": 0, "stream": True}
# Requests for a stream.
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": TEXT, "max_tokens": 50, **GREEDY},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 50, **GREEDY},
    "/v1/responses": {"input": TEXT, "max_output_tokens": 50, **GREEDY},
    "/generate_stream": {"inputs": TEXT, "parameters": {"max_new_tokens": 50}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller()})
    with running(make_app(catalog, Access((KEY,))), catalog) as started:
        yield started


def text_of(server: Running, path: str) -> str:
    """Return the text of the answer as a whole."""
    _, answer, _ = post(server, path.removesuffix("_stream"), STREAMS[path] | {"stream": False})
    if "generated_text" in answer:
        return answer["generated_text"]
    if "output" in answer:
        return answer["output"][0]["content"][0]["text"]
    return answer["choices"][0].get("text") or answer["choices"][0]["message"]["content"]


@pytest.fixture
def opened(page: Page, server: Running) -> Page:
    page.goto(server.url)
    expect(page.get_by_label("Request")).to_have_value(re.compile(TEXT))
    return page


@pytest.mark.parametrize("path", STREAMS)
def test_it_shows_a_stream_as_text(opened: Page, server: Running, path: str) -> None:
    opened.get_by_label("API key").fill(KEY)
    opened.get_by_label("Endpoint").select_option(path)
    opened.get_by_label("Request").fill(json.dumps(STREAMS[path]))
    opened.get_by_role("button", name="Send").click()
    expect(opened.get_by_role("status")).to_have_text(text_of(server, path))


def test_it_shows_other_answers_and_errors(opened: Page, axe: str) -> None:
    status, send = opened.get_by_role("status"), opened.get_by_role("button", name="Send")
    send.click()
    expect(status).to_contain_text("invalid_api_key")
    opened.get_by_label("API key").fill(KEY)
    opened.get_by_label("Endpoint").select_option("/generate")
    expect(opened.get_by_label("Request")).to_have_value(
        json.dumps({"inputs": TEXT, "parameters": {"max_new_tokens": 50}}, indent=2)
    )
    send.click()
    expect(status).to_contain_text('{"generated_text":')
    opened.evaluate(axe)
    expect_no_violation(opened, "with an answer")
