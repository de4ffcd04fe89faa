"""wasm_examples/llama2c in Chromium, as a user sees it, with the real checkpoint."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from support.gguf_files import write_llama2c
from support.qwen3 import save_qwen3
from tests.browser.conftest import START_MS, serving
from tests.browser.dropping import drop
from tests.browser.host import Host, hosting
from tests.browser.hub import Hub, no_hub

PAGE = "wasm_examples/llama2c/"


class Reader:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.output = page.get_by_test_id("output")
        self.error = page.get_by_test_id("error")
        self.stats = page.get_by_test_id("stats")

    def open(self, site: str) -> Reader:
        self.page.goto(site + PAGE)
        return self

    def choose(self, model: Path, tokenizer: Path) -> Reader:
        self.page.get_by_test_id("model-file").set_input_files(model)
        self.page.get_by_test_id("tokenizer-file").set_input_files(tokenizer)
        return self

    def drop(self, files: dict[str, Path]) -> Reader:
        drop(self.page, files)
        return self

    def is_ready(self) -> Reader:
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        expect(self.error).to_be_hidden()
        return self

    def fill(self, **fields: object) -> Reader:
        for name, value in fields.items():
            self.page.get_by_test_id(name.replace("_", "-")).fill(str(value))
        return self

    def generate(self) -> Reader:
        self.page.get_by_test_id("generate").click()
        return self

    def stop(self) -> Reader:
        self.page.get_by_test_id("stop").click()
        return self

    def story(self) -> str:
        """Return the text after generation has ended."""
        expect(self.status).to_contain_text("Done.", timeout=START_MS)
        return self.text()

    def text(self) -> str:
        return self.output.text_content() or ""

    def tell(self, **fields: object) -> str:
        return self.fill(**fields).generate().story()

    def fails_with(self, *words: str) -> None:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)


@pytest.fixture(scope="module")
def site(revisited_site: str) -> str:
    return revisited_site


@pytest.fixture(scope="module")
def reference(data_dir: Path) -> list[dict[str, Any]]:
    """Return run.c's output at temperature 0."""
    cases: list[dict[str, Any]] = json.loads((data_dir / "llama2c_reference.json").read_text())["cases"]
    return cases


@pytest.fixture(scope="module")
def loaded_page(browser: Browser, site: str, model: Path, tokenizer: Path) -> Iterator[Page]:
    """A page with the model loaded, shared by the tests of this module."""
    context = browser.new_context()
    no_hub(context)
    page = context.new_page()
    Reader(page).open(site).choose(model, tokenizer).is_ready()
    yield page
    context.close()


@pytest.fixture
def reader(loaded_page: Page) -> Iterator[Reader]:
    """The shared page as it is after loading; an error on its console fails the test."""
    bugs: list[str] = []
    note = lambda error: bugs.append(str(error))  # noqa: E731  named, to be removed again
    loaded_page.on("pageerror", note)
    yield Reader(loaded_page).fill(prompt="Once upon a time", steps=256, temperature=0, top_p=0.9, seed=1)
    loaded_page.remove_listener("pageerror", note)
    assert not bugs


@pytest.fixture
def fresh(page: Page, site: str) -> Reader:
    """A newly opened page."""
    return Reader(page).open(site)


def native_story(model: Path | None = None, tokenizer: Path | None = None, **options: object) -> str:
    """Return the output of `tallow generate`."""
    files = [f"--{name}={path}" for name, path in (("model", model), ("tokenizer", tokenizer)) if path is not None]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "tallow", "generate", *files, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout


def test_greedy_stories_equal_run_c(reader: Reader, reference: list[dict[str, Any]]) -> None:
    for case in reference:
        story = reader.tell(prompt=case["prompt"], steps=case["steps"], temperature=0)
        assert story + "\n" == case["text"]  # run.c ends with a newline


@pytest.mark.parametrize(
    "options", [{"seed": 1}, {"seed": 7, "temperature": 0.7, "top_p": 0.5}, {"seed": 3, "top_p": 1}]
)
def test_seeded_stories_equal_the_terminals(
    reader: Reader, model: Path, tokenizer: Path, options: dict[str, Any]
) -> None:
    options = {"prompt": "The cat", "steps": 200, "temperature": 1.0, "top_p": 0.9} | options
    assert reader.tell(**options) + "\n" == native_story(model, tokenizer, **options)


def test_same_seed_same_story_and_another_seed_another(reader: Reader) -> None:
    first = reader.tell(temperature=1, seed=5)
    assert reader.tell(seed=6) != first
    assert reader.tell(seed=5) == first


def test_an_empty_seed_is_random_and_a_link_keeps_it(reader: Reader) -> None:
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first = reader.tell(temperature=1, seed="")
    again = reader.tell()
    assert again != first
    seed = (reader.page.get_by_test_id("used-seed").text_content() or "").removeprefix("Seed ")
    reader.page.get_by_test_id("copy").click()
    expect(reader.status).to_have_text("The story was copied.")
    assert reader.page.evaluate("navigator.clipboard.readText()") == again
    reader.page.get_by_test_id("share").click()
    assert f"seed={seed}" in reader.page.url
    assert reader.tell(seed=seed) == again


def test_steps_count_the_prompt(reader: Reader, model: Path, tokenizer: Path) -> None:
    for steps in (1, 3, 20, 512):
        options = {"prompt": "Once upon a time", "steps": steps, "temperature": 0}
        assert reader.tell(**options) + "\n" == native_story(model, tokenizer, **options)
        expect(reader.status).to_have_text("Done.")


def test_steps_beyond_the_context_are_limited_with_a_note(reader: Reader, model: Path, tokenizer: Path) -> None:
    long = {"prompt": "The cat " * 165, "temperature": 0}
    assert reader.tell(steps=100_000, **long) + "\n" == native_story(model, tokenizer, steps=512, **long)
    expect(reader.status).to_contain_text("512 tokens of your 100000")
    reader.tell(prompt="The", steps=100_000)  # this one ends before
    expect(reader.status).to_have_text("Done.")


def test_characters_of_many_bytes_are_whole(reader: Reader) -> None:
    prompt = "Zoë saw a 🐈 and said: «çà»"
    assert reader.tell(prompt=prompt, steps=80).startswith(prompt)


def test_text_from_right_to_left_stands_at_the_right(reader: Reader) -> None:
    reader.tell(prompt="كان يا ما كان،", steps=60)
    assert [
        reader.page.locator(place).evaluate("it => getComputedStyle(it).direction") for place in ("#prompt", "#output")
    ] == ["rtl", "rtl"]


def test_numbers_are_shown(reader: Reader) -> None:
    reader.tell()
    for shown in (r"\d+ tokens/s", r"Kernels.*wasm", r"Model load\d+\.\d\d s", r"Page to first word\d", "Python 3.14"):
        expect(reader.stats).to_have_text(re.compile(shown))


def test_stop_keeps_the_text_and_the_next_story_begins_at_once(reader: Reader, reference: list[dict[str, Any]]) -> None:
    reader.page.evaluate(
        "() => new MutationObserver((_, o) => { o.disconnect(); document.querySelector('#stop').click(); })"
        ".observe(document.querySelector('#output').appendChild(document.createElement('i')).parentNode,"
        " { childList: true, subtree: true, characterData: true })"
    )
    reader.generate()
    expect(reader.status).to_have_text("Stopped.")
    assert reference[1]["text"].startswith(reader.text())
    assert reader.tell() + "\n" == reference[1]["text"]


def test_example_replaces_a_running_story(reader: Reader) -> None:
    """The new text starts at once, and contains nothing of the previous story."""
    example = reader.page.get_by_test_id("example").last
    alone = reader.tell(prompt=example.inner_text())
    reader.fill(prompt="The cat " * 100, steps=512).generate()
    expect(reader.output).to_contain_text("The cat The cat")
    reader.fill(steps=256)
    example.click()
    expect(reader.output).not_to_contain_text("The cat The cat")
    assert reader.story() == alone


def test_second_click_on_generate_changes_nothing(reader: Reader, reference: list[dict[str, Any]]) -> None:
    reader.page.get_by_test_id("generate").dblclick()
    assert reader.story() + "\n" == reference[1]["text"]


def test_stop_cannot_be_pressed_when_nothing_runs(reader: Reader) -> None:
    reader.tell(steps=2)
    expect(reader.page.get_by_test_id("stop")).to_be_disabled()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("steps", 0, ["Tokens cannot be 0", "whole number of at least 1"]),
        ("steps", 1.5, ["Tokens", "whole number"]),
        ("steps", "", ["Tokens"]),
        ("temperature", -1, ["Temperature cannot be -1", "at least 0"]),
        ("top_p", 0, ["Top-p cannot be 0", "above 0 and at most 1"]),
        ("top_p", 2, ["Top-p cannot be 2", "at most 1"]),
        ("seed", -1, ["Seed cannot be -1"]),
        ("prompt", "a dog " * 600, ["prompt", "512", "Shorten"]),
    ],
)
def test_bad_option_is_named_and_the_page_keeps_working(
    reader: Reader, field: str, value: object, words: list[str]
) -> None:
    last = reader.tell(prompt="Once", steps=5)
    reader.fill(**{field: value}).generate().fails_with(*words)
    assert reader.text() == last, "the previous story is still shown"
    assert reader.tell(prompt="The", steps=5, temperature=0, top_p=1, seed=1).startswith("The")
    expect(reader.error).to_be_hidden()


def test_keyboard_alone_is_enough(reader: Reader) -> None:
    prompt = reader.page.get_by_test_id("prompt")
    prompt.fill("The dog")
    prompt.press("Control+Enter")
    assert reader.story().startswith("The dog")
    prompt.press("Tab")
    expect(reader.page.get_by_test_id("generate")).to_be_focused()
    reader.page.keyboard.press("Tab")
    expect(reader.page.locator("#examples button, .examples button").first).to_be_focused()  # Stop is disabled


def test_output_and_errors_are_announced(reader: Reader) -> None:
    expect(reader.output).to_have_attribute("aria-live", "polite")
    expect(reader.status).to_have_attribute("role", "status")
    expect(reader.error).to_have_attribute("role", "alert")


# ---- choosing a model


def test_the_packaged_model_is_the_default(page: Page, context: BrowserContext, site: str) -> None:
    """No request leaves the site, and the story equals that of `tallow generate`."""
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    reader = Reader(page).open(site).is_ready()
    packaged = page.get_by_test_id("preset-stories")
    expect(packaged).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("model-name")).to_contain_text("stories: 541,536 parameters")
    options = {"prompt": "Once upon a time", "steps": 256, "temperature": 0.8, "top_p": 0.9, "seed": 1}
    assert reader.tell(**options) + "\n" == native_story(**options)
    assert all(address.startswith((site, "blob:", "data:")) for address in addresses)


def test_the_packaged_model_can_be_chosen_again(reader: Reader, model: Path, tokenizer: Path) -> None:
    reader.page.get_by_test_id("preset-stories").click()
    story = reader.is_ready().tell()
    assert story + "\n" == native_story(prompt="Once upon a time", steps=256, temperature=0)
    reader.choose(model, tokenizer).is_ready()


def test_an_example_begins_a_story(reader: Reader) -> None:
    reader.fill(steps=100)
    for example in reader.page.get_by_test_id("example").all():
        example.click()
        assert reader.story().startswith(example.inner_text())
        reader.fill(prompt="")


def test_packaged_model_loads_after_a_stop_during_loading(fresh: Reader) -> None:
    fresh.stop()
    expect(fresh.status).to_have_text("Loading stopped.")
    assert len(fresh.tell()) > 100


def test_generate_waits_for_a_model_that_is_loading(
    fresh: Reader, model: Path, tokenizer: Path, reference: list[dict[str, Any]]
) -> None:
    fresh.choose(model, tokenizer).fill(temperature=0).generate()
    assert fresh.story() + "\n" == reference[1]["text"]


def test_stop_while_everything_is_loading(fresh: Reader, model: Path, tokenizer: Path) -> None:
    fresh.choose(model, tokenizer).generate().stop()
    expect(fresh.status).to_have_text(re.compile("topped|Python is ready|Ready"), timeout=START_MS)
    assert fresh.text() == ""
    assert fresh.tell(prompt="The", steps=5).startswith("The"), "the chosen files are still loaded"


def test_status_belongs_to_the_last_chosen_model(reader: Reader, host: Host, model: Path, tokenizer: Path) -> None:
    reader.page.evaluate(
        """() => {
          const line = document.querySelector("#status");
          window.said = [];
          new MutationObserver(() => said.push(line.textContent)).observe(line, { childList: true });
        }"""
    )
    load_addresses(reader, host.url("slow/stories260K.bin"), host.url("plain/tok512.bin"))
    expect(reader.page.get_by_test_id("progress")).to_contain_text("Downloading", timeout=START_MS)
    reader.page.get_by_test_id("preset-stories").click()
    reader.is_ready()
    assert reader.page.evaluate("said.slice(said.lastIndexOf('Loading stories'))") == ["Loading stories", "Ready."]
    reader.choose(model, tokenizer).is_ready()


def test_dropped_files_are_assigned_but_not_two_models_at_once(fresh: Reader, model: Path, tokenizer: Path) -> None:
    fresh.drop({"one.bin": model, "tok.bin": tokenizer, "two.bin": model}).fails_with("one.bin", "two.bin", "model")
    assert fresh.page.get_by_test_id("model-file").input_value() == ""
    fresh.drop({path.name: path for path in (tokenizer, model)}).is_ready()
    expect(fresh.page.get_by_test_id("model-name")).to_contain_text(model.name)
    assert fresh.tell(prompt="The", steps=5).startswith("The")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Once upon a time, there was a plain text.\n" * 9,
        b"PK\x03\x04\x14" + bytes(99),
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10\x08\x06\x00",
        b"\x60\x01" + bytes(6) + b'{"weight": {"dtype": "F32", "shape": [3]',
        bytes(99),
    ],
    ids=["empty", "text", "zip", "png", "safetensors", "zeros"],
)
def test_a_file_of_another_kind_is_refused_by_name(reader: Reader, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    reader.drop({"other.txt": tmp_path / "other"}).fails_with("other.txt is neither", "Choose a GGUF file")
    expect(reader.page.get_by_test_id("model-name")).to_contain_text("stories260K.bin")


def test_only_one_file(fresh: Reader, model: Path, damaged: dict[str, Path]) -> None:
    fresh.is_ready()
    fresh.page.get_by_test_id("model-file").set_input_files(damaged["no checkpoint"])
    fresh.fails_with("checkpoint is neither", "Choose a GGUF file")
    fresh.page.get_by_test_id("model-file").set_input_files(model)
    expect(fresh.status).to_contain_text("tokenizer")
    expect(fresh.error).to_be_hidden()


@pytest.fixture
def damaged(tmp_path: Path, model: Path, tokenizer: Path) -> dict[str, Path]:
    """Unusable files, by defect."""
    data, vocabulary = model.read_bytes(), tokenizer.read_bytes()
    contents = {
        "truncated": data[: len(data) // 2],
        "too short for a header": data[:20],
        "empty": b"",
        "oversized": data + b"\0" * 4,
        "absurd sizes": struct.pack("<7i", *[2**31 - 1] * 7) + data[28:],
        "no checkpoint": b"<!doctype html><title>Sign in</title>" * 100,
        "truncated tokenizer": vocabulary[:1000],
        "with NaN": data[:28] + b"\xff" * (len(data) - 28),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    # Sparse: needs no disk space.
    with (tmp_path / "4 GB").open("wb") as file:
        file.write(data[:28])
        file.truncate(4 << 30)
    return {path.name: path for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("truncated", ["truncated", "bytes"]),
        ("too short for a header", ["too few"]),
        ("empty", ["too few"]),
        ("oversized", ["oversized"]),
        ("absurd sizes", ["header", "2147483647"]),
        ("no checkpoint", ["header", "must divide"]),
        ("4 GB", ["4.3 GB", "smaller model"]),
    ],
)
def test_unusable_model(
    reader: Reader, damaged: dict[str, Path], tokenizer: Path, fault: str, words: list[str]
) -> None:
    reader.choose(damaged[fault], tokenizer).fails_with(*words)


# Reading the first bytes of a file takes half a second.
SLOW_READING = """
() => {
  const { text } = Blob.prototype;
  Blob.prototype.text = async function () {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return text.call(this);
  };
  window.endSlowReading = () => void (Blob.prototype.text = text);
}
"""


def test_the_same_tokenizer_is_chosen_again_while_the_model_is_read(
    reader: Reader, damaged: dict[str, Path], model: Path, tokenizer: Path
) -> None:
    """The browser has a new File of it then, and sends no event."""
    reader.choose(model, tokenizer).is_ready()
    reader.page.evaluate(SLOW_READING)
    reader.choose(damaged["truncated"], tokenizer).fails_with("truncated")
    reader.page.evaluate("endSlowReading()")


def test_unusable_tokenizer(
    reader: Reader, data_dir: Path, damaged: dict[str, Path], model: Path, tokenizer: Path
) -> None:
    reader.choose(model, data_dir / "llama2c_tokenizer_32000.bin").fails_with("512")
    reader.choose(model, damaged["truncated tokenizer"]).fails_with("truncated")
    reader.choose(model, damaged["4 GB"]).fails_with("4.3 GB")
    reader.choose(model, model).fails_with("tokenizer")
    reader.choose(model, tokenizer).is_ready()


def test_weights_that_are_not_numbers(reader: Reader, damaged: dict[str, Path], model: Path, tokenizer: Path) -> None:
    reader.choose(damaged["with NaN"], tokenizer).is_ready().generate().fails_with("NaN")
    reader.choose(model, tokenizer).is_ready()


def test_a_refused_file_keeps_the_loaded_model(
    reader: Reader, damaged: dict[str, Path], reference: list[dict[str, Any]]
) -> None:
    reader.page.get_by_test_id("model-file").set_input_files(damaged["truncated"])
    reader.fails_with("truncated")
    expect(reader.page.get_by_test_id("model-name")).to_contain_text("stories260K.bin")
    assert reader.tell() + "\n" == reference[1]["text"]


# ---- GGUF


@pytest.fixture(scope="module")
def gguf_files(tmp_path_factory: pytest.TempPathFactory, model: Path, tokenizer: Path) -> dict[str, Path]:
    """GGUF files with the weights of the checkpoint, and unusable ones by defect."""
    from gguf import GGMLQuantizationType as Type

    folder = tmp_path_factory.mktemp("gguf")

    def write(name: str, kind: Any = None, **options: Any) -> None:
        write_llama2c(model, tokenizer, folder / name, kind, **options)

    write("float32.gguf")
    write("q8_0.gguf", Type.Q8_0)
    write("endless.gguf", Type.Q8_0, context=100_000_000)
    write("unknown architecture.gguf", Type.Q8_0, arch="rwkv6")
    data = (folder / "q8_0.gguf").read_bytes()
    (folder / "truncated.gguf").write_bytes(data[:-10_000])
    (folder / "truncated header.gguf").write_bytes(data[:1000])
    (folder / "garbage.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 8)
    (folder / "empty.gguf").write_bytes(b"")
    (folder / "page.gguf").write_bytes(b"<!doctype html>" * 100)
    (folder / "mostly garbage.gguf").write_bytes(data[:8] + b"\xff" * 16 + data[24:])
    # The header of a quantised tensor ends with the type and the offset of the data.
    entry = data.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 2 * 8
    foreign = struct.pack("<I", Type.Q8_K)
    (folder / "foreign type.gguf").write_bytes(data[:entry] + foreign + data[entry + 4 :])
    with (folder / "large.gguf").open("wb") as file:  # sparse
        file.write(data)
        file.truncate(4 << 30)
    return {path.name: path for path in folder.iterdir()}


def choose_gguf(reader: Reader, path: Path) -> Reader:
    reader.page.get_by_test_id("model-file").set_input_files(path)
    return reader


def has_loaded(reader: Reader, name: str) -> Reader:
    """Wait until the page shows the model: its status may be that of the model before."""
    expect(reader.page.get_by_test_id("model-name")).to_contain_text(f"{name}: 260,032 parameters", timeout=START_MS)
    return reader.is_ready()


def test_gguf_file_continues_texts_as_run_c_does(
    reader: Reader, gguf_files: dict[str, Path], reference: list[dict[str, Any]]
) -> None:
    has_loaded(choose_gguf(reader, gguf_files["float32.gguf"]), "float32.gguf")
    expect(reader.page.get_by_test_id("model-name")).to_contain_text("5 layers of 64, context of 512 tokens")
    assert reader.page.get_by_test_id("tokenizer-file").input_value() == ""
    for case in reference:  # run.c also ends a story at BOS
        story = reader.tell(prompt=case["prompt"], steps=case["steps"], temperature=0)
        assert story.startswith(case["text"].rstrip("\n"))


def test_dropped_quantised_gguf_equals_the_terminal(reader: Reader, gguf_files: dict[str, Path]) -> None:
    path = gguf_files["q8_0.gguf"]
    has_loaded(reader.drop({"dropped.gguf": path}), "dropped.gguf")
    for options in ({"prompt": "The cat", "temperature": 0}, {"prompt": "Zoë", "temperature": 0.5, "seed": 3}):
        options = {"steps": 60, "top_p": 0.9, "seed": 1} | options
        assert reader.tell(**options) + "\n" == native_story(path, **options)


@pytest.fixture(scope="module")
def qwen3(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 with GPT-2's vocabulary."""
    folder = tmp_path_factory.mktemp("qwen3")
    save_qwen3(folder / "qwen3", data_dir / "gpt2.tiktoken")
    path = folder / "qwen3-q4.gguf"
    command = [sys.executable, "-m", "tallow", "convert", folder / "qwen3", path, "--quant", "q4_k_m"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def has_loaded_qwen3(reader: Reader) -> Reader:
    name = reader.page.get_by_test_id("model-name")
    expect(name).to_contain_text("4 layers of 256, context of 512 tokens", timeout=START_MS)
    return reader.is_ready()


def test_a_dropped_file_of_tallow_convert(reader: Reader, qwen3: Path) -> None:
    """The page writes what the terminal writes. After some tens of tokens two of the 50,000 random logits are nearly
    equal, and rounding decides."""
    has_loaded_qwen3(reader.drop({"qwen3-q4.gguf": qwen3}))
    options: dict[str, object] = {"prompt": "Once upon a time", "temperature": 0, "steps": 12, "top_p": 0.9, "seed": 1}
    story = reader.tell(**options)
    assert story + "\n" == native_story(qwen3, **options)
    assert len(story) > len("Once upon a time")


def test_gguf_on_a_first_visit_fetches_modules_of_models_alone(page: Page, site_dir: Path, qwen3: Path) -> None:
    parts: list[str] = []
    page.context.on("request", lambda it: parts.append(it.url.rpartition("/")[2]) if it.url.endswith(".tgz") else None)
    with serving(site_dir) as server:
        reader = Reader(page).open(server.url).is_ready()
        has_loaded_qwen3(reader.drop({"qwen3-q4.gguf": qwen3}))
        assert sorted(parts) == ["models.tgz", "packages.tgz", "stories.tgz"]


def test_gguf_on_a_later_visit_fetches_no_modules(fresh: Reader, qwen3: Path) -> None:
    requested: list[str] = []
    fresh.is_ready().page.context.on("request", lambda it: requested.append(it.url))
    has_loaded_qwen3(fresh.drop({"qwen3-q4.gguf": qwen3}))
    assert not [url for url in requested if "/runtime/" in url]


def test_gguf_of_the_hub(reader: Reader, gguf_files: dict[str, Path]) -> None:
    hub = Hub(tiny={"tiny-Q8_0.gguf": gguf_files["q8_0.gguf"].read_bytes(), "README.md": b""}, other={})
    reader.page.context.route("https://huggingface.co/**", hub)
    try:
        has_loaded(load_addresses(reader, "who/tiny:tiny-Q8_0.gguf", ""), "tiny-Q8_0.gguf")
        address = "https://huggingface.co/who/tiny/blob/main/tiny-Q8_0.gguf"  # of the page about the file
        has_loaded(load_addresses(reader, address, ""), "tiny-Q8_0.gguf")
        load_addresses(reader, "who/tiny:tiny-Q4_0.gguf", "").fails_with("no file tiny-Q4_0.gguf", "has tiny-Q8_0.gguf")
        load_addresses(reader, "who/other:a.gguf", "").fails_with("no file a.gguf", "no GGUF file")
        load_addresses(reader, "who/none:a.gguf", "").fails_with("no model who/none")
    finally:
        reader.page.context.unroute("https://huggingface.co/**")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("truncated.gguf", ["truncated", "it again"]),
        ("truncated header.gguf", ["truncated", "it again"]),
        ("garbage.gguf", ["version", "it again"]),
        ("empty.gguf", ["not a GGUF file"]),
        ("page.gguf", ["is a web page, not a GGUF file", "Download it again"]),
        ("mostly garbage.gguf", ["it again"]),
        ("unknown architecture.gguf", ["'rwkv6'", "llama, ", "qwen3"]),
        ("foreign type.gguf", ["Q8_K", "Q8_0"]),
        ("large.gguf", ["large.gguf has 4.3 GB", "smaller model"]),
    ],
)
def test_unusable_gguf(reader: Reader, gguf_files: dict[str, Path], fault: str, words: list[str]) -> None:
    choose_gguf(reader, gguf_files[fault]).fails_with(*words)
    assert reader.tell(prompt="The", steps=5).startswith("The"), "the last model still writes"


def test_kinds_of_files_that_do_not_fit_the_fields(reader: Reader, gguf_files: dict[str, Path], model: Path) -> None:
    files = {"a.gguf": gguf_files["q8_0.gguf"].read_bytes(), "b.bin": model.read_bytes()}
    with hosting(files) as host:
        gguf, checkpoint = host.url("plain/a.gguf"), host.url("plain/b.bin")
        load_addresses(reader, checkpoint, "").fails_with("not a GGUF file", "needs its tokenizer too")
        load_addresses(reader, gguf, checkpoint).fails_with("model is a GGUF file", "Load it alone")
        load_addresses(reader, host.url("plain/a-00001-of-00002.gguf"), "").fails_with("part of a model", "--merge")
        has_loaded(load_addresses(reader, gguf, ""), "a.gguf")


def test_text_that_does_not_fit_the_memory(
    reader: Reader, gguf_files: dict[str, Path], model: Path, tokenizer: Path
) -> None:
    has_loaded(choose_gguf(reader, gguf_files["endless.gguf"]), "endless.gguf")
    reader.fill(steps=100_000_000).generate().fails_with("needs 128.0 GB of memory", "fewer steps")
    assert reader.tell(prompt="The", steps=5, temperature=0).startswith("The")
    reader.choose(model, tokenizer).is_ready()


# ---- addresses and presets


@pytest.fixture(scope="module")
def host(model: Path, tokenizer: Path) -> Iterator[Host]:
    with hosting({path.name: path.read_bytes() for path in (model, tokenizer)}) as host:
        yield host


def load_addresses(reader: Reader, model_url: str, tokenizer_url: str) -> Reader:
    reader.page.locator("details.address").evaluate("(details) => (details.open = true)")
    reader.fill(model_url=model_url, tokenizer_url=tokenizer_url)
    reader.page.get_by_test_id("load-url").click()
    return reader


def test_model_from_an_address_is_kept_over_a_reload(fresh: Reader, site: str, host: Host) -> None:
    urls = host.url("plain/stories260K.bin"), host.url("plain/tok512.bin")
    load_addresses(fresh, *urls).is_ready()
    before = host.requests.copy()
    load_addresses(fresh.open(site), *urls).is_ready()
    assert host.requests == before
    expect(fresh.page.get_by_text("2 downloads are kept")).to_be_visible()
    fresh.page.get_by_test_id("forget").click()
    expect(fresh.page.get_by_test_id("forget")).to_be_hidden()
    load_addresses(fresh.open(site), *urls).is_ready()
    assert host.requests["/plain/stories260K.bin"] == before["/plain/stories260K.bin"] + 1


def test_download_shows_its_progress_and_can_be_stopped(
    reader: Reader, host: Host, model: Path, tokenizer: Path
) -> None:
    load_addresses(reader, host.url("slow/stories260K.bin"), host.url("plain/tok512.bin"))
    expect(reader.page.get_by_test_id("progress")).to_have_text(
        re.compile(r"Downloading the model \d\.\d of 1\.1 MB"), timeout=START_MS
    )
    reader.stop()
    expect(reader.status).to_have_text("Loading stopped.")
    expect(reader.page.get_by_test_id("progress")).to_be_hidden()
    reader.choose(model, tokenizer).is_ready()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("plain/nothing.bin", ["404", "Check the address"]),
        ("closed/stories260K.bin", ["could not be fetched"]),
        ("cut/stories260K.bin", ["stopped after"]),
        ("huge/stories260K.bin", ["4.3 GB"]),
        ("plain/tok512.bin", ["header"]),
    ],
)
def test_address_that_fails(reader: Reader, host: Host, path: str, words: list[str]) -> None:
    load_addresses(reader, host.url(path), host.url("plain/tok512.bin")).fails_with(*words)


def test_invalid_address(reader: Reader) -> None:
    load_addresses(reader, "stories.bin", "").fails_with("not the address of a model")


def test_offline(reader: Reader, host: Host) -> None:
    reader.page.context.set_offline(True)
    try:
        load_addresses(reader, host.url("plain/unseen.bin"), host.url("plain/unseen-tok.bin")).fails_with("offline")
    finally:
        reader.page.context.set_offline(False)


def test_page_without_python_shows_an_error_and_offers_a_retry(page: Page, site: str) -> None:
    page.route("**/pyodide.asm.wasm", lambda route: route.abort())
    page.route("**/pyodide.mjs", lambda route: route.abort())
    reader = Reader(page).open(site)
    reader.fails_with("Python could not be loaded")
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    reader.is_ready()


def test_presets_point_at_the_models_of_llama2c(reader: Reader) -> None:
    for name, size in (("stories15M", "60.8 MB"), ("stories42M", "167.0 MB"), ("stories110M", "438.4 MB")):
        expect(reader.page.get_by_test_id(f"preset-{name}")).to_contain_text(size)


def test_preset_downloads_the_model(reader: Reader, model: Path, tokenizer: Path) -> None:
    """Tests cannot reach the models themselves, so a smaller one is served at their addresses."""
    allow = {"Access-Control-Allow-Origin": "*"}
    page = reader.page
    page.route("https://huggingface.co/**", lambda route: route.fulfill(path=model, headers=allow))
    page.route("https://raw.githubusercontent.com/**", lambda route: route.fulfill(path=tokenizer, headers=allow))
    preset = page.get_by_test_id("preset-stories15M")
    preset.click()
    expect(preset).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("model-name")).to_contain_text("stories15M", timeout=START_MS)
    reader.is_ready()
    expect(preset).to_contain_text("kept in this browser")
    page.unroute_all()
    reader.choose(model, tokenizer).is_ready()


def test_models_of_the_server_are_presets(page: Page, site_dir: Path, model: Path, tokenizer: Path) -> None:
    preset = {"name": "tiny", "bytes": 1, "model": "models/m.bin?v=1", "tokenizer": "models/t.bin?v=1"}
    page.route(
        "**/site.json",
        lambda route: route.fulfill(json=json.loads((site_dir / "site.json").read_text()) | {"models": [preset]}),
    )
    with serving(site_dir, models={"m.bin": model, "t.bin": tokenizer}) as server:
        reader = Reader(page).open(server.url)
        page.get_by_test_id("preset-tiny").click()
        reader.is_ready()


# ---- the page


def test_closing_the_tab_while_it_generates(context: BrowserContext, site: str, model: Path, tokenizer: Path) -> None:
    page = context.new_page()
    Reader(page).open(site).choose(model, tokenizer).is_ready().fill(steps=512).generate()
    page.close()
    again = context.new_page()
    Reader(again).open(site).choose(model, tokenizer).is_ready()


@pytest.mark.parametrize("path", ["", PAGE])
def test_phone_needs_no_sideways_scroll(browser: Browser, site: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(site + path)
    page.wait_for_load_state("networkidle")
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    context.close()
