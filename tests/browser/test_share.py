"""Links with the state of a page fill its form and start nothing; damaged ones leave the defaults. No Python runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

TEXT = "Mia & Tom: 100% = „größer“ + #1?\n<b>bold</b>"


class Shared(NamedTuple):
    """The fields of a page in links, by their test ids: the name in the link, and a value."""

    page: str
    fields: dict[str, tuple[str, str]]


PAGES = {
    "llama2c": {
        "prompt": ("prompt", TEXT),
        "steps": ("steps", "12"),
        "temperature": ("temperature", "0.55"),
        "top-p": ("top_p", "0.5"),
        "seed": ("seed", "41"),
    },
    "train": {
        "dataset": ("dataset", "spirals"),
        "noise": ("noise", "0.2"),
        "activation": ("activation", "GELU"),
        "hidden": ("hidden", "8, 4"),
        "optimizer": ("optimizer", "SGD"),
        "lr": ("learning_rate", "0.003"),
        "batch-size": ("batch_size", "7"),
        "l1": ("l1", "0.001"),
        "weight-decay": ("weight_decay", "0.01"),
        "speed": ("speed", "10"),
        "seed": ("seed", "3"),
    },
    "bert": {"texts": ("lines", TEXT), "query": ("query", "größer & 100%")},
    "depth": {
        "look": ("look", "removed"),
        "border": ("border", "0.3"),
        "blur": ("blur", "20"),
        "detail": ("detail", "518"),
    },
    "describe": {
        "text": ("text", TEXT.replace("\n", " ")),
        "steps": ("steps", "9"),
        "temperature": ("temperature", "0.7"),
    },
    "find": {"threshold": ("threshold", "0.6"), "masks": ("masks", "off"), "boxes": ("boxes", "off")},
    "search": {"query": ("query", "größer & 100%"), "labels": ("labels", "a, b")},
    "whisper": {
        "task": ("task", "translate"),
        "timestamps": ("timestamps", "words"),
        "live-on": ("live", "off"),
        "address": ("sound", "https://example.org/a &b.mp3"),
    },
}
DAMAGED = {
    "llama2c": [
        "prompt=%E0%A4%A",
        "prompt",
        "prompt=a=b",
        "nothing=1",
        "__proto__=1",
        "seed=-1",
        "seed=one",
        "top_p=2",
    ],
    "train": ["dataset=mnist", "noise=7", "hidden=" + "9" * 99, "learning_rate=NaN", "optimizer=", "l1=-1", "speed=5"],
    "bert": ["query=" + "a" * 2001, "lines=" + "a" * 20_001],
    "depth": ["look=upside", "border=2", "blur=0", "detail=1000000"],
    "describe": ["text=" + "a" * 401, "steps=0", "temperature=3"],
    "find": ["threshold=2", "scene=one", "scene=1234567890", "masks=maybe", "boxes="],
    "search": ["query=" + "a" * 201, "labels=" + "a" * 401, "nothing=1"],
    "whisper": ["language=<b>", "task=sing", "live=maybe", "sound=" + "a" * 2001],
}


@pytest.fixture(scope="module")
def idle(browser: Browser) -> Iterator[Page]:
    """A page whose worker never starts."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.route("**/web/worker.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    yield page
    context.close()


@pytest.fixture(params=PAGES)
def shared(request: pytest.FixtureRequest) -> Shared:
    return Shared(request.param, PAGES[request.param])


def visit(page: Page, site: str, name: str, fragment: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}wasm_examples/{name}/{fragment and '#'}{fragment}")


def set_value(field: Locator, value: str) -> None:
    """Change a field as a user does, whatever its kind; also a field that is folded away."""
    field.evaluate(
        "(it, value) => { it.value = value; for (const t of ['input', 'change']) it.dispatchEvent(new Event(t)); }",
        value,
    )


def values(page: Page, shared: Shared) -> dict[str, str]:
    return {test_id: page.get_by_test_id(test_id).input_value() for test_id in shared.fields}


def test_link_carries_the_form(idle: Page, site: str, shared: Shared) -> None:
    visit(idle, site, shared.page)
    defaults = values(idle, shared)
    expected = {test_id: value for test_id, (_, value) in shared.fields.items()}
    for test_id, value in expected.items():
        set_value(idle.get_by_test_id(test_id), value)
    idle.get_by_test_id("share").click()
    expect(idle.get_by_test_id("share-note")).to_contain_text("was copied")
    link = idle.evaluate("navigator.clipboard.readText()")
    assert idle.url == link
    visit(idle, site, shared.page, link.partition("#")[2])
    assert values(idle, shared) == expected
    assert all(expected[test_id] != defaults[test_id] for test_id in expected)


def test_link_with_one_value_leaves_the_others(idle: Page, site: str, shared: Shared) -> None:
    visit(idle, site, shared.page)
    expected = values(idle, shared)
    test_id, (name, value) = next(iter(shared.fields.items()))
    visit(idle, site, shared.page, f"{name}={quote(value)}")
    assert values(idle, shared) == expected | {test_id: value}


def test_damaged_link_shows_a_message_and_the_defaults(idle: Page, site: str, shared: Shared) -> None:
    visit(idle, site, shared.page)
    defaults = values(idle, shared)
    note = idle.get_by_test_id("share-note")
    first, *others = DAMAGED[shared.page]
    visit(idle, site, shared.page, first)
    expect(note).to_contain_text("damaged")
    assert values(idle, shared) == defaults
    for fragment in others:
        idle.evaluate("location.hash = ''")
        expect(note).to_have_text("")
        idle.evaluate("(fragment) => { location.hash = fragment; }", fragment)
        expect(note).to_contain_text("damaged")
        assert values(idle, shared) == defaults, fragment


def test_back_and_forward(idle: Page, site: str, shared: Shared) -> None:
    visit(idle, site, shared.page)
    defaults = values(idle, shared)
    test_id, (_, value) = next(iter(shared.fields.items()))
    set_value(idle.get_by_test_id(test_id), value)
    idle.get_by_test_id("share").click()
    expect(idle.get_by_test_id("share-note")).to_contain_text("was copied")
    field = idle.get_by_test_id(test_id)
    idle.go_back()
    expect(field).to_have_value(defaults[test_id])
    idle.go_forward()
    expect(field).to_have_value(value)


def test_language_of_a_link_waits_for_a_model_that_has_it(idle: Page, site: str) -> None:
    visit(idle, site, "whisper", "language=de")
    expect(idle.get_by_test_id("language")).to_have_value("")
    idle.get_by_test_id("share").click()
    expect(idle.get_by_test_id("share-note")).to_contain_text("was copied")
    assert "language=de" in idle.url
