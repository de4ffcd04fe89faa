"""wasm_examples/chat in Chromium, as a user sees it: conversations, branches, models, and hostile input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from playwright.sync_api import Browser, Page, expect
from support.gguf_files import write_llama2c
from support.qwen3 import save_qwen3
from support.tokenizer_folders import LLAMA, spm, write
from support.tool_caller import ANSWER, CALL, save_tool_caller
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop
from tests.browser.hub import Hub, no_hub

from tallow.generation import Sampler
from tallow.models.auto import AutoModel

PAGE = "wasm_examples/chat/"
TEMPLATE = "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a:"
REFUSING = "{{ raise_exception('this template refuses ' ~ messages[0].content) }}"
HOSTILE_NAME = "<img src=x onerror='window.hit = 1'>.gguf"
GREEDY = {"temperature": 0, "max-tokens": 24, "seed": 1}


class Talk:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.prompt = page.get_by_test_id("prompt")
        self.answers = page.locator("[data-testid=assistant] > [data-testid=text]")
        self.figures = page.locator("[data-testid=assistant] > [data-testid=figures]")
        self.questions = page.locator("[data-testid=user] > [data-testid=text]")

    def is_ready(self) -> Talk:
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        expect(self.error).to_be_hidden()
        return self

    def set(self, **fields: object) -> Talk:
        for name, value in fields.items():
            self.page.get_by_test_id(name.replace("_", "-")).fill(str(value))
        return self

    def ask(self, text: str) -> Talk:
        self.prompt.fill(text)
        self.prompt.press("Enter")
        return self

    def is_done(self) -> str:
        """Return the last answer after it has ended."""
        expect(self.status).to_have_text("Done.", timeout=START_MS)
        expect(self.page.locator(".writing")).to_have_count(0)
        return self.answers.last.inner_text()

    def say(self, text: str) -> str:
        before = self.answers.count()
        self.ask(text)
        expect(self.answers).to_have_count(before + 1, timeout=START_MS)  # until then "Done." is of the answer before
        return self.is_done()

    def click(self, name: str) -> Talk:
        self.page.get_by_test_id(name).last.click()
        return self

    def new(self) -> Talk:
        """Start anew: an empty conversation with the options of `GREEDY`."""
        self.page.get_by_test_id("new").click()
        expect(self.page.get_by_test_id("messages").locator("li")).to_have_count(0)
        expect(self.page.get_by_test_id("export-json")).to_be_hidden()
        self.page.get_by_test_id("system").fill("")
        for name, value in (GREEDY | {"context": 4096}).items():
            self.page.get_by_test_id(name).fill(str(value))
        return self

    def choose(self, path: Path) -> Talk:
        field = self.page.get_by_test_id("model-file")
        field.set_input_files([])  # the same file again would be no change
        field.set_input_files(path)
        expect(self.page.get_by_test_id("model-name")).to_contain_text(f"{path.name}:", timeout=START_MS)
        return self.is_ready()

    def fails_with(self, *words: str) -> Talk:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)
        return self


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, model: Path, tokenizer: Path) -> dict[str, Path]:
    """GGUF files: a model with a chat template, and unusable ones."""
    folder = tmp_path_factory.mktemp("gguf")
    write_llama2c(model, tokenizer, folder / "tiny.gguf", template=TEMPLATE)
    write_llama2c(model, tokenizer, folder / "refusing.gguf", template=REFUSING)
    data = (folder / "tiny.gguf").read_bytes()
    (folder / "truncated.gguf").write_bytes(data[:-10_000])
    (folder / "garbage.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 8)
    (folder / "text.gguf").write_bytes(b"<html>not found</html>")
    return {path.stem: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def native(files: dict[str, Path]) -> Any:
    return AutoModel.from_pretrained(files["tiny"])


@pytest.fixture(scope="module")
def shared_page(browser: Browser, revisited_site: str, files: dict[str, Path]) -> Iterator[Page]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    no_hub(context)
    page = context.new_page()
    page.goto(revisited_site + PAGE)
    yield page
    context.close()


@pytest.fixture
def story(shared_page: Page) -> Iterator[Talk]:
    """The page with the built-in model, in a new conversation. An uncaught error on the page fails the test."""
    yield from watched(shared_page, lambda talk: talk.page.get_by_test_id("presets").get_by_text("Storyteller").click())


@pytest.fixture
def talk(shared_page: Page, files: dict[str, Path]) -> Iterator[Talk]:
    """The page with the model of tiny.gguf, in a new conversation."""

    def choose(talk: Talk) -> None:
        if "tiny.gguf" not in (talk.page.get_by_test_id("model-name").text_content() or ""):
            talk.page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
            talk.choose(files["tiny"])

    yield from watched(shared_page, choose)


def watched(page: Page, choose: Any) -> Iterator[Talk]:
    bugs: list[str] = []
    note = lambda error: bugs.append(str(error))  # noqa: E731  named, to be removed again
    page.on("pageerror", note)
    talk = Talk(page)
    choose(talk)
    expect(talk.page.get_by_test_id("model-name")).to_contain_text("parameters", timeout=START_MS)
    yield talk.new()
    page.remove_listener("pageerror", note)
    assert not bugs


def expected(model: Any, *messages: tuple[str, str]) -> str:
    """Return the answer of the model without the page and without a cache of earlier prompts."""
    conversation = [{"role": role, "content": content} for role, content in messages]
    pieces = model.chat(conversation, max_tokens=GREEDY["max-tokens"], sample=Sampler(temperature=0))
    return "".join(pieces)


def same(shown: str, text: str) -> bool:
    """Compare a text with its Markdown on the page, which joins and trims lines."""
    return shown.split() == text.split()


# ---- the built-in model


def test_the_built_in_model_tells_stories_and_goes_on(story: Talk) -> None:
    story.set(max_tokens=40)
    assert story.say("Tell me a story").startswith("Once upon a time")
    assert story.say("tell me a tale about a shy otter named Pip.").startswith("Once upon a time there was a shy otter")
    assert story.say("Nora was a curious girl").startswith("Nora was a curious girl")
    told = story.answers.last.inner_text()
    assert story.say("go on") != told
    expect(story.figures.last).to_contain_text(
        re.compile(r"\d+ tokens · \d.* tokens/s · prompt of \d+.* s · .* MB of memory")
    )
    expect(story.page.get_by_test_id("advice")).to_contain_text("tells stories")


# When the first piece arrives, not when it is shown: by the next frame the story may have ended.
ESCAPE_AFTER_THE_FIRST_PIECE = """async () => {
  const { Runtime } = await import("/web/tallow.js");
  const { generate } = Runtime.prototype;
  Runtime.prototype.generate = async function* (...request) {
    Runtime.prototype.generate = generate;
    for await (const piece of this.generate(...request)) {
      yield piece;
      dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    }
  };
}"""


def test_keys_send_break_lines_and_stop(story: Talk) -> None:
    story.set(max_tokens=450, temperature=2)  # no story ends soon
    story.prompt.fill("Nora was")
    story.prompt.press("Shift+Enter")
    story.prompt.press_sequentially("a girl")
    expect(story.prompt).to_have_value("Nora was\na girl")
    story.page.evaluate(ESCAPE_AFTER_THE_FIRST_PIECE)
    story.prompt.press("Enter")
    expect(story.status).to_have_text("Stopped.")
    story.set(max_tokens=24, temperature=0)
    expect(story.questions.last).to_have_text("Nora was\na girl", use_inner_text=True)
    assert story.answers.last.inner_text()
    expect(story.prompt).to_have_value("")
    assert story.say("Tell me a story"), "the next answer starts at once"


def test_only_the_finished_answer_is_announced(story: Talk) -> None:
    announcer = story.page.get_by_test_id("announcer")
    announced = announcer.evaluate_handle(
        """element => {
          const texts = [];
          new MutationObserver(() => texts.push(element.textContent)).observe(element, { childList: true });
          return texts;
        }"""
    )
    answer = story.set(max_tokens=200).say("Nora was a curious girl")
    (text,) = [text for text in announced.json_value() if "Nora" in text]
    assert same(text, answer)
    expect(announcer).to_have_attribute("aria-live", "polite")
    expect(story.page.get_by_test_id("output")).not_to_have_attribute("aria-live", re.compile(""))
    expect(story.error).to_have_attribute("role", "alert")


# ---- a chat model


def test_answers_are_those_of_the_library_and_prompts_are_read_once(talk: Talk, native: Any) -> None:
    talk.page.get_by_test_id("system").fill("Be kind")
    talk.page.get_by_test_id("system").blur()
    first = expected(native, ("system", "Be kind"), ("user", "a cat"))
    assert same(talk.say("a cat"), first)
    expect(talk.figures.last).not_to_contain_text("reused")
    second = expected(native, ("system", "Be kind"), ("user", "a cat"), ("assistant", first), ("user", "a dog"))
    assert same(talk.say("a dog"), second)
    reused, prompt = (
        int(re.search(rf"{at}", talk.figures.last.inner_text())[1])
        for at in (r"(\d+) tokens reused", r"prompt of (\d+)")
    )  # type: ignore[index]
    assert prompt / 2 < reused < prompt


def test_branches_stay_reachable(talk: Talk, native: Any) -> None:
    first = talk.say("a cat")
    talk.set(temperature=2).click("again").is_done()
    expect(talk.page.get_by_test_id("assistant").get_by_text("2/2")).to_be_visible()
    second = talk.answers.last.inner_text()
    assert second != first
    talk.click("previous")
    assert talk.answers.last.inner_text() == first
    talk.set(temperature=0).click("edit")
    field = talk.page.get_by_test_id("edit-text")
    expect(field).to_be_focused()
    expect(field).to_have_value("a cat")
    field.fill("a dog")
    field.press("Enter")
    assert same(talk.is_done(), expected(native, ("user", "a dog")))
    talk.page.get_by_test_id("user").get_by_test_id("previous").click()
    expect(talk.questions).to_have_text(["a cat"])
    assert talk.answers.last.inner_text() == first
    talk.click("next")
    assert talk.answers.last.inner_text() == second


def test_copy_and_exports(talk: Talk) -> None:
    talk.page.get_by_test_id("system").fill("Be kind")
    talk.page.get_by_test_id("system").blur()
    answer = talk.say("a *cat* / 1")
    talk.click("copy")
    expect(talk.page.get_by_test_id("copy").last).to_have_text("Copied")
    assert same(talk.page.evaluate("navigator.clipboard.readText()"), answer)
    saved = {}
    for kind in ("json", "markdown"):
        with talk.page.expect_download() as download:
            talk.click(f"export-{kind}")
        saved[download.value.suggested_filename] = Path(download.value.path()).read_text(encoding="utf-8")
    assert sorted(saved) == ["a-cat-1.json", "a-cat-1.md"]
    messages = json.loads(saved["a-cat-1.json"])["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert same(messages[2]["content"], answer)
    assert "## You\n\na *cat* / 1\n\n## tiny.gguf\n\n" in saved["a-cat-1.md"]


def test_json_mode_writes_what_the_schema_allows(talk: Talk) -> None:
    talk.page.get_by_test_id("json").check()
    try:
        schema = {
            "type": "object",
            "properties": {"n": {"enum": [1, 2]}, "b": {"type": "boolean"}},
            "required": ["n", "b"],
        }
        answer = json.loads(talk.set(schema=json.dumps(schema)).say("a cat"))
        assert answer["n"] in (1, 2)
        assert answer["b"] in (True, False)
        talk.set(schema="{").ask("a dog").fails_with("schema is not JSON")
        talk.set(schema='{"type": "cat"}').ask("a dog").fails_with("cat")
    finally:
        talk.page.get_by_test_id("json").uncheck()


KEPT = """async () => {
  const { Store } = await import("/wasm_examples/chat/store.js");
  const [last] = await new Store(() => {}).all();
  return Object.values(last.messages).some(({ role, content }) => role === "assistant" && content);
}"""


def test_conversations_survive_a_reload_and_can_be_deleted(talk: Talk) -> None:
    talk.set(max_tokens=400).ask("a cat")
    expect(talk.answers.last).not_to_be_empty()
    wait_until(talk.page, KEPT)  # parts of an answer are kept every second
    talk.page.reload()
    expect(talk.questions).to_have_text(["a cat"])
    expect(talk.answers).to_have_count(1)
    assert talk.answers.last.inner_text()
    expect(talk.page.locator(".writing")).to_have_count(0)
    talk.is_ready()
    kept = talk.page.get_by_test_id("conversation")
    count = kept.count()
    talk.page.get_by_role("button", name="Delete “a cat”").first.click()
    expect(kept).to_have_count(count - 1)
    expect(talk.questions).to_have_count(0)


def test_deleted_conversations_come_back_as_they_were(talk: Talk) -> None:
    answer = talk.say("a cat with a hat")
    talk.new().say("a dog with a hat")
    for title in ("a cat with a hat", "a dog with a hat"):
        talk.page.get_by_role("button", name=f"Delete “{title}”").click()
    expect(talk.questions).to_have_count(0)
    undo, deleted = talk.page.get_by_test_id("undo"), talk.page.get_by_test_id("deleted")
    expect(deleted).to_have_text("Deleted “a dog with a hat”. Undo")
    undo.click()
    expect(talk.questions).to_have_text(["a dog with a hat"])
    expect(deleted).to_have_text("Deleted “a cat with a hat”. Undo")
    undo.click()
    expect(talk.questions).to_have_text(["a cat with a hat"])
    talk.page.reload()
    expect(deleted).to_be_hidden()
    talk.page.get_by_test_id("conversation").get_by_text("a cat with a hat").click()
    expect(talk.questions).to_have_text(["a cat with a hat"])
    assert same(talk.answers.last.inner_text(), answer)
    expect(talk.page.get_by_test_id("advice")).to_contain_text("tiny.gguf wrote the last answer")
    talk.is_ready()


# ---- a full context


def test_a_full_context_forgets_the_oldest_messages_but_shows_them(talk: Talk, native: Any) -> None:
    told = [(text, talk.say(text)) for text in ("a cat", "a dog", "a bird")]
    talk.set(context=90).ask("a fish").fails_with("the context is 90")
    talk.error.get_by_role("button", name="Forget the oldest messages").click()
    expect(talk.answers).to_have_count(4, timeout=START_MS)
    answer = talk.is_done()
    line = talk.page.get_by_test_id("forgotten")
    expect(line).to_contain_text("The model no longer reads the messages above.")
    unread = talk.page.locator(".unread[data-testid=user]").count()
    assert 0 < unread <= 3
    read = [turn for question, reply in told[unread:] for turn in (("user", question), ("assistant", reply))]
    assert same(answer, expected(native, *read, ("user", "a fish")))
    expect(talk.questions).to_have_text(["a cat", "a dog", "a bird", "a fish"])
    # A message that is too long alone: there is nothing left to forget.
    talk.ask("so " * 200).fails_with("the context is 90")
    talk.error.get_by_role("button", name="Forget the oldest messages").click()
    talk.fails_with("the context is 90")
    expect(talk.error.get_by_role("button", name="Try again")).to_be_visible()
    talk.click("remember")
    expect(line).to_have_count(0)
    expect(talk.page.locator(".unread")).to_have_count(0)


# ---- tools


def test_a_model_calls_a_tool(talk: Talk, tmp_path: Path) -> None:
    page = talk.page
    switch, note = page.get_by_test_id("tools"), page.get_by_test_id("no-tools")
    expect(switch).to_be_disabled()
    expect(note).to_have_text("This model's chat template does not tell it of tools.")
    save_tool_caller(tmp_path)
    page.get_by_test_id("model-folder").set_input_files(tmp_path)
    expect(note).to_be_hidden(timeout=START_MS)
    assert talk.say("What is 7*6?") == ANSWER
    expect(page.get_by_test_id("call")).to_have_count(0)
    page.get_by_test_id("json").check()
    expect(switch).to_be_disabled()
    page.get_by_test_id("json").uncheck()
    switch.check()
    talk.set(max_tokens=100)
    assert talk.say("Tell me, what is 7*6?") == ANSWER
    call = page.get_by_test_id("call")
    expect(call).to_have_js_property("open", False)
    call.get_by_text("Called calculator").click()
    expect(call.locator("pre")).to_have_text([CALL["arguments"], "42"])
    asked = talk.say("And again?")
    assert asked == ANSWER
    expect(talk.figures.last).to_contain_text("tokens reused")
    page.reload()
    expect(call).to_have_count(2)
    expect(call.last.locator("pre")).to_have_text([CALL["arguments"], "42"])
    expect(switch).to_be_checked()
    saved = {}
    for kind in ("json", "markdown"):
        with page.expect_download() as download:
            talk.click(f"export-{kind}")
        saved[kind] = Path(download.value.path()).read_text(encoding="utf-8")
    messages = json.loads(saved["json"])["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        *["user", "assistant", "tool", "assistant"] * 2,
    ]
    (exported,) = messages[3]["tool_calls"]
    assert (exported["function"], exported["type"]) == (CALL, "function")
    assert (messages[4]["tool_call_id"], messages[4]["content"]) == (exported["id"], "42")
    assert f"    calculator {CALL['arguments']}\n    42\n\n{ANSWER}" in saved["markdown"]
    switch.evaluate("(it) => { it.checked = false; it.dispatchEvent(new Event('change')); }")
    talk.is_ready()


# ---- hostile and unusable input


RENDER = """
async (texts) => {
  const { loadMarkdown, showMarkdown } = await import("/web/markdown.js");
  await loadMarkdown();
  return texts.map((text) => {
    const box = document.createElement("div");
    document.body.append(box);
    showMarkdown(box, text);
    const html = box.innerHTML;
    for (const link of box.querySelectorAll("a")) link.href.startsWith("http") || link.click();
    box.remove();
    return html;
  });
}
"""
HOSTILE = [
    "<img src=x onerror='window.hit = 1'>",
    "<script>window.hit = 1</script>",
    "[x](javascript:window.hit=1)",
    "[x](<JaVaScRiPt:window.hit=1>)",
    "[x](data:text/html,<script>window.hit=1</script>)",
    "![x](https://example.org/leak.png)",
    "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "<svg onload='window.hit = 1'></svg>",
    "<details open ontoggle='window.hit = 1'>x</details>",
    "```html onload=alert(1)\n<b onclick='window.hit = 1'>\n```",
    '<a id="prompt" name="status" style="position:fixed;inset:0" href="https://example.org">x</a>',
    "<form action='https://example.org'><input name=q></form>",
]


def test_what_a_model_writes_cannot_become_active(talk: Talk) -> None:
    requested: list[str] = []
    talk.page.on("request", lambda request: requested.append(request.url))
    for text, html in zip(HOSTILE, talk.page.evaluate(RENDER, HOSTILE), strict=True):
        tags = set(re.findall(r"<([a-z]+)", html))
        assert tags <= {"p", "a", "pre", "code", "br"}, (text, html)
        assert not re.search(r"<[^>]*\b(on\w+|style|id|name|src|srcdoc|class)=", html), (text, html)
        assert "javascript:" not in re.sub(r">[^<]*<", "", html).lower(), (text, html)
    assert talk.page.evaluate("window.hit") is None
    assert not [url for url in requested if "example.org" in url]


def test_markdown_is_rendered(talk: Talk) -> None:
    texts = ["**b** *i* `c`", "- x\n- y", "| a |\n|---|\n| 1 |", "[t](https://example.org)", "1 < 2 & <b>3</b>"]
    shown = talk.page.evaluate(RENDER, texts)
    assert shown[0].strip() == "<p><strong>b</strong> <em>i</em> <code>c</code></p>"
    assert "<li>x</li>" in shown[1]
    assert "<td>1</td>" in shown[2]
    assert 'rel="noopener noreferrer nofollow"' in shown[3]
    assert "1 &lt; 2 &amp; &lt;b&gt;3&lt;/b&gt;" in shown[4]


def test_messages_from_right_to_left_stand_at_the_right(talk: Talk) -> None:
    talk.set(max_tokens=2).say("مرحبا بكم.")
    assert talk.questions.last.evaluate("it => getComputedStyle(it).direction") == "rtl"
    code = talk.page.evaluate(RENDER, ["مرحبا\n```\nx = 1\n```"])[0]
    assert 'dir="ltr"' in code


GROW = """
async (texts) => {
  const { GrowingMarkdown, loadMarkdown, showMarkdown } = await import("/web/markdown.js");
  await loadMarkdown();
  return texts.map((text) => {
    const [whole, grown] = [document.createElement("div"), document.createElement("div")];
    showMarkdown(whole, text);
    const markdown = new GrowingMarkdown(grown);
    let first;
    for (let end = 1; end <= text.length; end++) {
      markdown.show(text.slice(0, end));
      if (grown.children.length === 2) first ??= grown.firstElementChild;
    }
    return { whole: whole.innerHTML, grown: grown.innerHTML, stays: grown.firstElementChild === first };
  });
}
"""


# Texts as JavaScript: what takes a parser of Markdown minutes, all memory or its stack, and what does not.
TOO_MUCH = [
    '"> ".repeat(2000) + "a"',
    '"- ".repeat(2000) + "a"',
    'Array.from({ length: 2000 }, (_, i) => "  ".repeat(i) + "- a\\n").join("")',
    '(Array.from({ length: 60 }, (_, i) => "  ".repeat(i) + "- a\\n").join("")).repeat(2200)',
    '"a".repeat(50_000) + "@"',
    '"|a".repeat(20_000) + "|\\n" + "|-".repeat(20_000) + "|\\n" + "|a\\n".repeat(20_000)',
    '"[a](".repeat(5000)',
    '"*a **b ".repeat(5000)',
    '"a\\n".repeat(50_000)',
]
ORDINARY = [
    '"Words, **bold** and [a link](https://example.org) with `code`.\\n\\n- a\\n- b\\n\\n".repeat(3000)',
    '"```\\n" + "let code = 1;\\n".repeat(10_000) + "```"',
    '"**bold** " + "a".repeat(10_000) + "@"',
    '"**bold** a" + " ".repeat(10_000) + "b"',
    'Array.from({ length: 20 }, (_, i) => "  ".repeat(i) + "- **a**\\n").join("")',
]
BOUNDED = """
async (sources) => {
  const { GrowingMarkdown, loadMarkdown } = await import("/web/markdown.js");
  await loadMarkdown();
  const { warn } = console;
  return sources.map(([text, times]) => {
    let warnings = 0;
    console.warn = () => warnings++;
    const box = document.createElement("div");
    const markdown = new GrowingMarkdown(box);
    for (let i = 1; i <= times; i++) markdown.show(text.slice(0, (text.length * i) / times));
    const tags = box.querySelectorAll("*").length;
    const shown = { plain: box.classList.contains("plain"), same: box.textContent === text, warnings, tags };
    markdown.show("");
    const empty = box.textContent;
    markdown.show("**other**");
    console.warn = warn;
    return { ...shown, empty, after: box.innerHTML.trim() };
  });
}
"""


def bounded(talk: Talk, texts: list[str], times: int = 1) -> list[dict[str, Any]]:
    """Show texts, each growing to its whole in so many steps."""
    sources = ", ".join(f"[{text}, {times}]" for text in texts)
    shown: list[dict[str, Any]] = talk.page.evaluate(f"() => ({BOUNDED.strip()})([{sources}])")
    return shown


@pytest.mark.parametrize("times", [1, 20])
def test_markdown_that_takes_too_much_work_is_shown_as_it_is_written(talk: Talk, times: int) -> None:
    for text, shown in zip(TOO_MUCH, bounded(talk, TOO_MUCH, times), strict=True):
        assert (shown["plain"], shown["same"], shown["tags"]) == (True, True, 0), text
        assert shown["warnings"] == 1, f"{text}: longer ones are not parsed"
        assert (shown["empty"], shown["after"]) == ("", "<p><strong>other</strong></p>")


def test_ordinary_markdown_is_within_the_bounds(talk: Talk) -> None:
    for text, shown in zip(ORDINARY, bounded(talk, ORDINARY), strict=True):
        assert (shown["plain"], shown["warnings"]) == (False, 0), text
        assert shown["tags"] > 1


def test_addresses_are_found_but_not_in_long_blocks(talk: Talk) -> None:
    near, far, other = talk.page.evaluate(
        RENDER,
        [
            "see https://example.org and a@example.org",
            f"see https://example.org and a@example.org{'a' * 2000}",
            f"{'a' * 2000}\n\nsee https://example.org",
        ],
    )
    assert near.count("<a ") == 2
    assert "<a " not in far
    assert other.count("<a ") == 1


def test_text_that_grows_renders_its_last_block_only(talk: Talk) -> None:
    texts = [
        "# A\n\nb **c**\nd\n\n- e\n\n- f\n\n  g\n\nh\n===\n\n1. i",
        "a\n\n```python\nx = 1\n\n# y\n```\nz\r\n\r\n| a | b |\n|---|---|\n| 1 | <b> |\nc\n",
        "> a\n> b\n\nc\n\n    d\n\n    e\n\n***\n<b>f</b>",
    ]
    for shown in talk.page.evaluate(GROW, texts):
        assert shown["grown"] == shown["whole"]
        assert shown["stays"]
    [defined] = talk.page.evaluate(GROW, ["see [a]\n\nb\n\n[a]: https://example.org\n\nc\n"])
    assert defined["grown"] == defined["whole"]
    assert 'href="https://example.org"' in defined["grown"]


def test_a_model_made_to_write_an_attack_only_shows_it(talk: Talk) -> None:
    talk.page.get_by_test_id("json").check()
    try:
        talk.set(schema=json.dumps({"const": HOSTILE[0] + HOSTILE[2]}), max_tokens=200).ask(HOSTILE[0]).is_done()
    finally:
        talk.page.get_by_test_id("json").uncheck()
    expect(talk.answers.last).to_contain_text("<img src=x onerror=")
    expect(talk.questions.last).to_have_text(HOSTILE[0])
    assert talk.page.evaluate("window.hit") is None
    assert talk.page.locator("#messages img").count() == 0


def test_hostile_file_name_is_text(talk: Talk, files: dict[str, Path]) -> None:
    drop(talk.page, {HOSTILE_NAME: files["tiny"]})
    expect(talk.page.get_by_test_id("model-name")).to_contain_text(f"{HOSTILE_NAME}:", timeout=START_MS)
    talk.say("a cat")
    expect(talk.page.locator("#messages .assistant .author")).to_have_text(HOSTILE_NAME)
    assert talk.page.evaluate("window.hit") is None
    talk.choose(files["tiny"])


@pytest.mark.parametrize(
    ("name", "words"),
    [("truncated", ["truncated"]), ("garbage", ["GGUF"]), ("text", ["is a web page, not a GGUF file"])],
)
def test_unusable_file_is_explained_and_the_model_stays(
    talk: Talk, files: dict[str, Path], name: str, words: list[str]
) -> None:
    talk.page.get_by_test_id("model-file").set_input_files(files[name])
    talk.fails_with(*words)
    expect(talk.page.get_by_test_id("model-name")).to_contain_text("tiny.gguf")
    assert talk.say("a cat")


def test_a_failing_template_loses_nothing(talk: Talk, files: dict[str, Path], native: Any) -> None:
    first = talk.say("a cat")
    talk.choose(files["refusing"]).ask("a dog").fails_with("this template refuses a cat")
    expect(talk.questions).to_have_text(["a cat", "a dog"])
    expect(talk.answers).to_have_count(1)
    talk.choose(files["tiny"]).click("edit")
    talk.page.get_by_test_id("edit-send").click()
    last = expected(native, ("user", "a cat"), ("assistant", first), ("user", "a dog"))
    assert same(talk.is_done(), last)


def test_a_message_without_an_answer_is_answered_after_a_reload(talk: Talk, files: dict[str, Path]) -> None:
    talk.choose(files["refusing"]).ask("a cat").fails_with("this template refuses a cat")
    talk.page.reload()
    talk.is_ready()
    talk.set(**GREEDY | {"max-tokens": 5})
    talk.click("answer").is_done()
    expect(talk.questions).to_have_text(["a cat"])
    expect(talk.answers).to_have_count(1)
    expect(talk.page.get_by_test_id("answer")).to_be_hidden()


def test_bad_settings_are_named(talk: Talk) -> None:
    talk.set(top_p=0).ask("a cat").fails_with("Top-p cannot be 0")
    talk.set(top_p=1, seed=-3).ask("a cat").fails_with("Write a whole number of at least 0.")
    talk.set(top_p=1, seed="9" * 20).ask("a cat").fails_with("Seed is too large", "at most 9007199254740991")
    talk.set(top_p=0.9, seed=1, context=4).error.get_by_role("button").click()
    talk.fails_with("context is 4", "new conversation")
    talk.set(context=4096).error.get_by_role("button", name="Try again").click()
    talk.is_done()


def test_thoughts_are_folded(talk: Talk) -> None:
    divide = """async (texts) => {
      const { divide } = await import("/wasm_examples/chat/thoughts.js");
      return texts.map((text) => Object.values(divide(text)));
    }"""
    texts = ["plain", "<think>\nhm", "<think>hm</think>\n\nyes", "hm\n</think>\nyes", "<think>\n\n</think>\n\nyes"]
    assert talk.page.evaluate(divide, texts) == [
        [None, "plain", False],
        ["hm", "", True],
        ["hm", "yes", False],
        ["hm", "yes", False],
        [None, "yes", False],
    ]


# ---- other ways to load


def test_a_link_fills_a_new_conversation_and_starts_nothing(story: Talk) -> None:
    page = story.page
    story.say("Tell me a story")
    story.set(system="Be brief.", prompt="And then?", temperature=1.5, seed="").click("share")
    expect(page.get_by_test_id("share-note")).to_contain_text("The link was copied")
    link = page.evaluate("navigator.clipboard.readText()")
    other = page.context.new_page()
    other.goto(link.replace("model=", "model=who%2Fx%3Ay.gguf"))
    opened = Talk(other).is_ready()
    expect(opened.prompt).to_have_value("And then?")
    expect(opened.answers).to_have_count(0)
    for name, value in {"system": "Be brief.", "temperature": "1.5", "seed": "", "model-url": "who/x:y.gguf"}.items():
        expect(other.get_by_test_id(name)).to_have_value(value)
    expect(other.get_by_test_id("share-note")).to_contain_text("The link is for the model who/x:y.gguf")
    expect(other.get_by_test_id("model-name")).to_contain_text("Storyteller")
    other.evaluate("location.hash = '#message=Hello&system=Shout.&temperature=0.5'")
    expect(opened.prompt).to_have_value("Hello")
    expect(other.get_by_test_id("system")).to_have_value("Shout.")
    expect(other.get_by_test_id("temperature")).to_have_value("0.5")
    other.evaluate("location.hash = '#temperature=%3Cscript%3E'")
    expect(other.get_by_test_id("share-note")).to_contain_text("The link is damaged: its temperature cannot be used.")
    expect(opened.prompt).to_have_value("")
    other.close()
    page.evaluate("history.back()")  # to the address without a fragment


def test_hub_file_and_folder(talk: Talk, files: dict[str, Path], data_dir: Path, tmp_path: Path) -> None:
    save_qwen3(tmp_path / "qwen3", data_dir / "gpt2.tiktoken")
    talk.page.context.route("https://huggingface.co/**", Hub(tiny={"a.gguf": files["tiny"].read_bytes()}))
    talk.set(model_url="who/tiny:a.gguf").click("load-url")
    expect(talk.page.get_by_test_id("model-name")).to_contain_text("a.gguf:", timeout=START_MS)
    expect(talk.page.get_by_text("1 download is kept")).to_be_visible()
    talk.is_ready().page.get_by_test_id("model-folder").set_input_files(tmp_path / "qwen3")
    expect(talk.page.get_by_test_id("model-name")).to_contain_text("qwen3:", timeout=START_MS)
    assert same(
        talk.say("Hello there"), expected(AutoModel.from_pretrained(tmp_path / "qwen3"), ("user", "Hello there"))
    )
    talk.set(model_url="who/tiny:b.gguf").click("load-url")
    talk.fails_with("no file b.gguf", "a.gguf")
    talk.set(model_url="not a model").click("load-url")
    talk.fails_with("not a model")
    talk.set(model_url=" ").click("load-url")
    talk.fails_with("An empty name is neither")


def test_folder_with_a_sentencepiece_model_alone(talk: Talk, tmp_path: Path) -> None:
    """As Llama 2's first repositories were: no `tokenizer.json`, the template in a file of its own."""
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False}
    folder = write(tmp_path / "older", spm("llama", "tokenizer.model", "bpe", config, **LLAMA))
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    entries = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 600, **sizes}
    write(folder, {"config.json": entries, "chat_template.jinja": TEMPLATE})
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**entries, initializer_range=0.5)).save_pretrained(folder)
    talk.page.get_by_test_id("model-folder").set_input_files(folder)
    expect(talk.page.get_by_test_id("model-name")).to_contain_text("older:", timeout=START_MS)
    answer = expected(AutoModel.from_pretrained(folder), ("user", "The cat sleeps"))
    assert answer.strip()
    assert same(talk.say("The cat sleeps"), answer)


def test_a_later_visit_offers_the_model_used_last(page: Page, revisited_site: str, files: dict[str, Path]) -> None:
    no_hub(page.context)
    page.goto(revisited_site + PAGE)
    talk = Talk(page).is_ready()
    offer = page.get_by_test_id("last-model")
    expect(offer).to_be_hidden()
    page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
    page.context.route("https://huggingface.co/**", Hub(tiny={"a.gguf": files["tiny"].read_bytes()}))
    talk.set(model_url="who/tiny:a.gguf").click("load-url")
    expect(page.get_by_test_id("model-name")).to_contain_text("a.gguf:")
    page.context.unroute_all()
    no_hub(page.context)
    page.reload()
    expect(offer).to_have_text("Use a.gguf again: kept in this browser, no download")
    offer.click()
    expect(page.get_by_test_id("model-name")).to_contain_text("a.gguf:")
    expect(offer).to_be_hidden()
    page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
    page.get_by_test_id("presets").get_by_text("Storyteller").click()
    expect(offer).to_be_visible()
    page.get_by_test_id("forget").click()
    expect(offer).to_be_hidden()
    page.evaluate("localStorage.setItem('tallow-last-model /wasm_examples/chat/', '[')")  # as of another version
    page.reload()
    talk.is_ready()
    expect(offer).to_be_hidden()


# ---- the page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows(talk: Talk, width: int, scheme: Any) -> None:
    talk.page.set_viewport_size({"width": width, "height": 844})
    talk.page.emulate_media(color_scheme=scheme)
    talk.say("x" * 300)
    assert talk.page.evaluate("document.documentElement.scrollWidth") <= width
    for button in talk.page.locator("#messages button, #composer button").all():
        box = button.bounding_box()
        assert not box or box["x"] + box["width"] <= width
