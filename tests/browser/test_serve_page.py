"""The pages of `tallow serve`: one chats, one sends the examples of its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.gguf_files import write_llama2c
from support.small_server import KEY, Running, post, running, story_teller
from support.tool_caller import ANSWER, CALL, save_tool_caller
from tests.browser.axe import expect_no_violation

from tallow.models.auto import AutoModel
from tallow.serving import TextEngine, TextModel
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.pages import Pages
from tallow.site.server_pages import server_pages

TEMPLATE = "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a:"
TEXT, GREEDY = "Once upon a time", {"temperature": 0, "stream": True}
CALCULATOR = {
    "name": "calculator",
    "description": "Compute an expression.",
    "strict": True,
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
}
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


@pytest.fixture(scope="module")
def chatting(tmp_path_factory: pytest.TempPathFactory, model: Path, tokenizer: Path) -> Iterator[Running]:
    """A server of a model with a chat template, whose context is short, and of one without."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_llama2c(model, tokenizer, path, template=TEMPLATE)
    loaded = AutoModel.from_pretrained(path)
    tiny = TextEngine(TextModel("tiny", loaded, loaded.tokenizer), length=100)
    catalog = Catalog(texts={"tiny": tiny, "stories": story_teller()})
    with running(make_app(catalog, Access((KEY,)), pages=Pages(server_pages)), catalog) as started:
        yield started


def talk(page: Page, text: str) -> str:
    """Send a message, and return the answer after it has ended."""
    answers = page.locator("[data-testid=assistant] > [data-testid=text]")
    count = answers.count()
    page.get_by_test_id("prompt").fill(text)
    page.get_by_test_id("prompt").press("Enter")
    expect(answers).to_have_count(count + 1)
    expect(page.get_by_test_id("status")).to_have_text("Done.")
    return answers.last.inner_text()


def test_the_chat_page_answers_by_the_models_of_the_server(page: Page, chatting: Running, axe: str) -> None:
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(chatting.url)
    expect(page.get_by_test_id("error")).to_contain_text("API key")
    page.get_by_test_id("key").fill(KEY)
    page.get_by_test_id("key").press("Enter")
    expect(page.get_by_test_id("model-name")).to_contain_text("tiny: context of 100 tokens")
    for name, value in {"temperature": 0, "max-tokens": 16}.items():
        page.get_by_test_id(name).fill(str(value))
    told = [{"role": "user", "content": "a cat"}]
    first = talk(page, "a cat")
    expected = chatting.client().chat.completions.create(model="tiny", messages=told, temperature=0, max_tokens=16)
    assert first.split() == (expected.choices[0].message.content or "").split()
    expect(page.get_by_test_id("figures").last).to_contain_text(re.compile(r"16 tokens · .*tokens/s · prompt of \d+"))
    while page.get_by_test_id("error").is_hidden():
        page.get_by_test_id("prompt").fill("and then a dog came to the cat, and they went home")
        page.get_by_test_id("prompt").press("Enter")
        expect(page.get_by_test_id("status")).to_have_text(re.compile("Done|No answer"))
        expect(page.locator(".writing")).to_have_count(0)
    page.get_by_role("button", name="Forget the oldest messages").click()
    expect(page.get_by_test_id("status")).to_have_text("Done.")
    expect(page.get_by_test_id("forgotten")).to_be_visible()
    page.get_by_test_id("new").click()
    page.get_by_test_id("model").select_option("stories")
    expect(page.get_by_test_id("advice")).to_contain_text("has no chat template")
    continued = chatting.client().completions.create(model="stories", prompt=TEXT, temperature=0, max_tokens=16)
    assert talk(page, TEXT).split() == continued.choices[0].text.split()
    page.evaluate(axe)
    expect_no_violation(page, "with an answer")
    assert not bugs


def test_the_user_writes_what_tools_return(page: Page, tmp_path: Path) -> None:
    save_tool_caller(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    catalog = Catalog(texts={"caller": TextEngine(TextModel("caller", loaded, loaded.tokenizer))})
    with running(make_app(catalog, pages=Pages(server_pages)), catalog) as started:
        page.goto(started.url)
        expect(page.get_by_test_id("model-name")).to_contain_text("caller")
        page.get_by_test_id("temperature").fill("0")
        page.get_by_test_id("functions").fill("{")
        page.get_by_test_id("prompt").fill("What is 7*6?")
        page.get_by_test_id("prompt").press("Enter")
        expect(page.get_by_test_id("error")).to_contain_text("functions cannot be read")
        page.get_by_test_id("functions").fill(json.dumps([CALCULATOR]))
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_test_id("status")).to_contain_text("waits for the results")
        expect(page.get_by_test_id("call")).to_contain_text("Called calculator" + CALL["arguments"])
        page.get_by_test_id("result").fill("42")
        page.get_by_test_id("results").click()
        expect(page.get_by_test_id("status")).to_have_text("Done.")
        expect(page.get_by_test_id("call")).to_contain_text("42")
        expect(page.get_by_test_id("result")).to_have_count(0)
        expect(page.locator("[data-testid=assistant] > [data-testid=text]")).to_have_text(ANSWER)


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
    page.goto(f"{server.url}/requests")
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
