"""The text tab of wasm_examples/train in Chromium: a character Llama, and LoRA on the story model."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support import paths
from support.scripts import run_script
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop

import tallow as tl
from tallow.io import safetensors
from tallow.models.built_in import stories
from tallow.peft import PeftModel

PAGE = "wasm_examples/train/"
TEXT = "The cat sat on the mat. The dog ate the rat.\n" * 60
EXAMPLES = paths.ROOT / "wasm_examples" / "train" / "texts"
# In lines, since the browser takes half a minute to fold a long one, and at once, since it inserts each line by itself.
LONG = ("a" * 99 + "\n") * 20_000 + "a"
PASTE = "(it, text) => { it.value = text; it.dispatchEvent(new Event('input', { bubbles: true })); }"


class TextBench:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("text-status")
        self.error = page.get_by_test_id("text-error")
        self.samples = page.get_by_test_id("text-samples").locator("li")

    def open(self) -> TextBench:
        self.page.get_by_test_id("tab-text").click()
        expect(self.status).to_have_text("Ready. Press Train.", timeout=START_MS)
        return self

    def fill(self, text: str = TEXT, **fields: object) -> TextBench:
        self.page.get_by_test_id("text").evaluate(PASTE, text)
        for name, value in fields.items():
            field = self.page.get_by_test_id(f"text-{name}")
            if not field.is_visible():
                continue  # the other task has it
            if field.evaluate("(it) => it.tagName") == "SELECT":
                field.select_option(str(value))
            else:
                field.fill(str(value))
        return self

    def small(self, text: str = TEXT, **fields: object) -> TextBench:
        """Choose a model that trains quickly."""
        sizes = {"task": "new", "width": 32, "layers": 1, "context": 32, "batch": 4, "lr": 0.01, "seed": 1}
        return self.fill(text, **sizes | fields)

    def click(self, name: str) -> TextBench:
        self.page.get_by_test_id(f"text-{name}").click()
        return self

    def start(self) -> TextBench:
        """Train a new model. The figures of the one before are gone when this returns."""
        self.click("reset")
        expect(self.status).to_have_text("The model is new. Press Train.", timeout=START_MS)
        return self.click("train")

    def figure(self, name: str) -> str:
        stats = self.page.get_by_test_id("text-stats")
        return stats.locator("div").filter(has=self.page.get_by_text(name, exact=True)).locator("dd").inner_text()

    def reaches(self, steps: int) -> TextBench:
        wait_until(
            self.page,
            """(steps) => parseInt(document.querySelector("#text-stats dd")?.textContent.replace(",", "")) >= steps""",
            steps,
        )
        return self

    def pause(self) -> TextBench:
        self.click("pause")
        expect(self.status).to_contain_text("Paused after", timeout=START_MS)
        return self

    def fails_with(self, *words: str) -> None:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)

    def saved(self, folder: Path, name: str) -> Path:
        with self.page.expect_download() as download:
            self.click("export")
        assert download.value.suggested_filename == name
        download.value.save_as(folder / name)
        return folder / name


@pytest.fixture(scope="module")
def opened(browser: Browser, revisited_site: str) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(revisited_site + PAGE)
    TextBench(page).open()
    yield page
    context.close()


@pytest.fixture
def bench(opened: Page) -> Iterator[TextBench]:
    """The shared page; an error on its console fails the test."""
    bugs: list[str] = []
    note = lambda error: bugs.append(str(error))  # noqa: E731  named, to be removed again
    opened.on("pageerror", note)
    yield TextBench(opened)
    opened.remove_listener("pageerror", note)
    assert not bugs


def test_a_character_model_learns_a_text(bench: TextBench, tmp_path: Path) -> None:
    bench.small().start().reaches(150).pause()
    assert float(bench.figure("Loss")) < 0.7 < 2 < np.log(20)
    assert float(bench.figure("Test: loss")) < 1
    expect(bench.samples.last).to_contain_text("Before training")
    assert bench.samples.count() >= 6
    expect(bench.samples.first).to_contain_text("The ")
    paused = int(bench.figure("Steps"))
    bench.click("train").reaches(paused + 5).pause()
    assert bench.samples.count() >= 7, "it went on with the same model"
    bench.page.get_by_test_id("text-prompt").fill("The c§")
    bench.click("generate")
    expect(bench.page.get_by_test_id("text-output")).to_contain_text(re.compile("The c§.+"))
    expect(bench.status).to_contain_text("does not know “§”")
    weights = tl.load(bench.saved(tmp_path, "characters.safetensors"))
    assert weights["model.embed_tokens.weight"].shape == (len(set(TEXT)) + 1, 32)


def test_saved_weights_come_back(bench: TextBench, tmp_path: Path) -> None:
    bench.small().start().reaches(40).pause()
    path = bench.saved(tmp_path, "characters.safetensors")
    first = tl.load(path)
    bench.small(width=64).start().reaches(2).pause()
    bench.page.get_by_test_id("text-import").set_input_files(path)
    expect(bench.status).to_contain_text("has the weights of characters.safetensors")
    expect(bench.page.get_by_test_id("text-width")).to_have_value("32")
    again = tl.load(bench.saved(tmp_path, "characters.safetensors"))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    bench.click("train").reaches(1).pause()
    assert float(bench.figure("Loss")) < 2, "it continues from the weights"


def test_lora_changes_what_the_story_model_writes(bench: TextBench, tmp_path: Path) -> None:
    bench.fill(TEXT, task="lora", context=32, batch=2, lr=0.01, rank=4, seed=1).start().reaches(40).pause()
    expect(bench.samples.last).to_contain_text("Once upon a time there was")
    assert bench.figure("Trained") != bench.figure("Parameters")
    assert "The cat" in bench.samples.first.inner_text() or "the mat" in bench.samples.first.inner_text()
    archive = bench.saved(tmp_path, "adapter.zip")
    zipfile.ZipFile(archive).extractall(tmp_path / "adapter")
    model, tokenizer = stories.load()
    tokens = tl.tensor([tokenizer.encode("The cat sat on the mat.", bos=True)])

    def loss() -> float:
        logits = model(tokens[:, :-1])
        return tl.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()

    before = loss()
    PeftModel.from_pretrained(model, tmp_path / "adapter")
    assert loss() < 0.5 * before


@pytest.mark.parametrize("task", ["new", "lora"])
def test_script_prints_the_losses_of_the_page(bench: TextBench, tmp_path: Path, task: str) -> None:
    text = "".join(f"A cat had {i} mice, ü. " for i in range(200))
    bench.small(text, task=task, lr=0.003).start().reaches(10).pause()
    script = bench.page.get_by_test_id("text-code")
    steps = int(bench.figure("Steps"))
    expect(script).to_contain_text(f'"steps": {steps}')
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    (tmp_path / "script.py").write_text(script.inner_text())
    printed = re.findall(r"step (\d+): loss ([\d.]+)", run_script(tmp_path / "script.py", folder=tmp_path))
    assert int(printed[-1][0]) == steps
    assert float(printed[-1][1]) == pytest.approx(float(bench.figure("Loss")), rel=2e-3)


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("", {}, ["There is no text"]),
        (" \n ", {}, ["There is no text"]),
        ("a", {}, ["more text"]),
        (LONG, {}, ["2000001 characters"]),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 8001))), {}, ["8001 different characters"]),
        (TEXT, {"layers": 7}, ["Layers cannot be 7"]),
        (TEXT, {"lr": 0}, ["Learning rate cannot be 0"]),
        (TEXT, {"batch": ""}, ["Batch size"]),
    ],
    ids=["empty", "blank", "one", "long", "characters", "layers", "rate", "batch"],
)
def test_bad_input_is_named_and_the_tab_keeps_working(
    bench: TextBench, text: str, fields: dict[str, object], words: list[str]
) -> None:
    bench.small(text, **fields).click("train").fails_with(*words)
    bench.small().start().reaches(2).pause()
    expect(bench.error).to_be_hidden()


def test_a_text_of_one_repeated_character_is_learned(bench: TextBench) -> None:
    bench.small("a" * 500).start().reaches(20).pause()
    assert float(bench.figure("Loss")) < 0.1


def test_diverged_training_stops_with_a_message(bench: TextBench) -> None:
    bench.small(lr=1e30).click("train").fails_with("The loss is no longer a number", "Lower the learning rate")
    expect(bench.status).to_have_text("Training has ended.")
    bench.small().start().reaches(3).pause()


def test_two_presses_and_settings_during_training(bench: TextBench) -> None:
    bench.small().start().click("train")
    bench.reaches(3).fill(TEXT, width=64).reaches(int(bench.figure("Steps")) + 2).pause()
    parameters = bench.figure("Parameters")
    bench.click("train")
    value = bench.page.get_by_test_id("text-stats").locator("dd").nth(4)
    expect(value).not_to_have_text(parameters, timeout=START_MS)
    bench.reaches(1).pause()
    bench.page.evaluate(
        "document.getElementById('text-status').textContent = '';"
        "for (const id of ['train', 'pause', 'train', 'pause']) document.getElementById(`text-${id}`).click()"
    )
    expect(bench.status).to_contain_text("Paused after")
    steps = bench.figure("Steps")
    bench.page.wait_for_timeout(300)
    assert bench.figure("Steps") == steps


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("photo.txt", b"\x89PNG\r\n\x1a\n\xff\xfe", ["photo.txt is not a text in UTF-8"]),
        ("zeros.txt", bytes(100), ["zero bytes"]),
        ("empty.txt", b"", ["empty.txt is empty"]),
        ("huge.txt", b"a" * 100_000_000, ["100.0 MB", "at most"]),
    ],
    ids=["binary", "zeros", "empty", "huge"],
)
def test_unusable_files(bench: TextBench, tmp_path: Path, name: str, content: bytes, words: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    bench.page.get_by_test_id("text").fill(TEXT)
    bench.page.get_by_test_id("text-file").set_input_files(tmp_path / name)
    bench.fails_with(*words)
    expect(bench.page.get_by_test_id("text")).to_have_value(TEXT)


def test_a_dropped_text_is_taken(bench: TextBench, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("Grüße, <b>Mia</b>! " * 50, encoding="utf-8")
    drop(bench.page, {"own.txt": tmp_path / "own.txt"})
    expect(bench.page.get_by_test_id("text")).to_have_value("Grüße, <b>Mia</b>! " * 50)
    bench.page.get_by_test_id("text-example").click()
    expect(bench.page.get_by_test_id("text")).to_have_value((EXAMPLES / "stories.txt").read_text())


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, ["weights of another model"]),
        ({"tallow.train": "{"}, ["damaged"]),
        ({"tallow.train": '{"width": 32, "layers": 9, "context": 32, "characters": "ab"}'}, ["cannot be used"]),
        ({"tallow.train": '{"width": 1e9, "layers": 1, "context": 32, "characters": "ab"}'}, ["cannot be used"]),
        ({"tallow.train": '{"width": 32, "layers": 1, "context": 32, "characters": "ba"}'}, ["cannot be used"]),
        ({"tallow.train": '{"width": 32, "layers": 1, "context": 32, "characters": "ab"}'}, ["missing"]),
    ],
)
def test_weights_that_do_not_fit(bench: TextBench, tmp_path: Path, metadata: dict[str, str], words: list[str]) -> None:
    bench.small()
    safetensors.save({"weight": tl.zeros(3)}, tmp_path / "other.safetensors", metadata)
    bench.page.get_by_test_id("text-import").set_input_files(tmp_path / "other.safetensors")
    bench.fails_with(*words)


def test_network_tab_stops_when_the_text_tab_opens(bench: TextBench) -> None:
    page = bench.page
    page.get_by_test_id("tab-network").click()
    page.get_by_test_id("train").click()
    expect(page.get_by_test_id("status")).to_have_text("Training.")
    page.get_by_test_id("tab-network").press("ArrowRight")
    expect(page.get_by_test_id("text-panel")).to_be_visible()
    expect(page.get_by_test_id("tab-text")).to_be_focused()
    expect(page.get_by_test_id("status")).to_contain_text("Paused after")
    bench.small().start().reaches(2)
    page.get_by_test_id("tab-network").click()
    expect(bench.status).to_contain_text("Paused after")
    page.get_by_test_id("tab-text").click()


def test_a_reload_keeps_the_own_text_and_the_tab(page: Page, revisited_site: str) -> None:
    page.goto(revisited_site + PAGE)
    text = page.get_by_test_id("text")
    page.get_by_test_id("tab-text").click()
    expect(text).to_have_value(re.compile("."))  # the example
    text.fill("My own text.")
    page.reload()
    expect(text).to_have_value("My own text.")
    page.get_by_test_id("text-example").click()
    expect(text).to_have_value(re.compile(".{1000}", re.DOTALL))
    page.get_by_test_id("tab-network").click()
    page.reload()
    expect(page.get_by_test_id("tab-network")).to_have_attribute("aria-selected", "true")
    page.get_by_test_id("tab-text").click()
    expect(text).to_have_value(re.compile(".{1000}", re.DOTALL))


def test_link_opens_the_tab_and_nothing_of_it_is_loaded_before(page: Page, revisited_site: str) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
    page.goto(revisited_site + PAGE)
    expect(page.get_by_test_id("status")).to_have_text("Python is ready. Press Train.", timeout=START_MS)
    assert not {"text-tab.js", "words.py", "stories.txt", "tallow.tgz"} & set(requested)
    page.goto("about:blank")
    page.goto(f"{revisited_site}{PAGE}#tab=text&task=lora&rank=4&text_learning_rate=0.001&prompt=Mia")
    expect(page.get_by_test_id("text-status")).to_have_text("Ready. Press Train.", timeout=START_MS)
    values = {"task": "lora", "rank": "4", "lr": "0.001", "prompt": "Mia"}
    for name, value in values.items():
        expect(page.get_by_test_id(f"text-{name}")).to_have_value(value)
    expect(page.get_by_test_id("text")).to_have_value((EXAMPLES / "pirates.txt").read_text())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_needs_no_sideways_scroll(browser: Browser, revisited_site: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{revisited_site}{PAGE}#tab=text")
    expect(page.get_by_test_id("text-panel")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    context.close()
