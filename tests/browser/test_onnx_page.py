"""wasm_examples/onnx in Chromium: a file is drawn and run in the page, with onnxruntime's numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support.onnx_files import encoded_model, node, value
from support.paths import ROOT
from tests.browser.conftest import START_MS
from tests.browser.consoles import Console
from tests.browser.dropping import drop
from tests.browser.hub import Hub, no_hub

PAGE = "wasm_examples/onnx/"
DIGITS = ROOT / PAGE / "models" / "digits.onnx"


class Runner:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.name = page.get_by_test_id("model-name")

    def choose(self, *files: tuple[str, bytes]) -> Runner:
        self.page.get_by_test_id("model-files").set_input_files(
            [{"name": name, "mimeType": "application/octet-stream", "buffer": data} for name, data in files]
        )
        return self

    def is_ready(self) -> Runner:
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        expect(self.error).to_be_hidden()
        return self

    def run(self) -> Runner:
        self.page.get_by_test_id("run").click()
        expect(self.status).to_contain_text("Done in", timeout=START_MS)
        return self

    def table(self, name: str) -> list[list[str]]:
        output = self.page.get_by_test_id(f"output-{name}")
        choice = self.page.get_by_test_id(f"view-{name}")
        if choice.count():
            choice.select_option("table")
        rows = output.get_by_test_id("table").locator("tr")
        return rows.evaluate_all("(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")

    def fails_with(self, *words: str) -> Runner:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)
        return self


@pytest.fixture(scope="module")
def runner(browser: Browser, revisited_site: str) -> Iterator[Runner]:
    """A page that has run its own model, shared by the tests."""
    context = browser.new_context()
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(revisited_site + PAGE)
    yield Runner(page)
    context.close()
    assert not bugs


def test_the_built_in_model_runs_at_once(runner: Runner) -> None:
    page = runner.page
    expect(runner.status).to_contain_text("Done in", timeout=START_MS)
    expect(page.get_by_test_id("classes").locator("li").first).to_contain_text("class 7")  # the drawn sample
    expect(page.get_by_test_id("times").locator("li").first).to_contain_text("ms")
    expect(page.get_by_test_id("flame").get_by_text("Conv")).to_be_visible()
    expect(page.get_by_test_id("stats")).to_contain_text("5,258 numbers")
    assert "tl.onnx.load" in (page.get_by_test_id("console").get_attribute("href") or "")


def test_the_graph_is_walked_with_the_keys(runner: Runner) -> None:
    page = runner.page
    page.get_by_test_id("graph").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_test_id("node-name")).to_contain_text("Conv, 1 × 8 × 26 × 26 float32")
    expect(page.get_by_test_id("node-lines")).to_contain_text("conv2d")
    expect(page.get_by_test_id("node-lines")).to_contain_text("8 × 1 × 3 × 3 float32")
    expect(page.get_by_test_id("node-value").get_by_test_id("values-picture")).to_be_visible()
    page.get_by_test_id("zoom-fit").click()
    page.get_by_test_id("zoom-in").click()
    canvas = page.get_by_test_id("graph")
    colours = (
        "(c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert canvas.evaluate(colours) > 10


def test_a_picture_gives_the_numbers_of_onnxruntime(runner: Runner) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    image = pytest.importorskip("PIL.Image")
    pixels = (np.random.default_rng(0).random((28, 28, 3)) * 255).astype(np.uint8)
    pixels[...] = pixels[..., :1]
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    runner.page.get_by_test_id("picture-image").set_input_files(
        {"name": "noise.png", "mimeType": "image/png", "buffer": file.getvalue()}
    )
    runner.page.wait_for_timeout(300)
    runner.run()
    wanted = onnxruntime.InferenceSession(DIGITS).run(None, {"image": pixels[None, None, ..., 0] / np.float32(255)})[0]
    found = np.array(runner.table("digit")[1], np.float64)
    np.testing.assert_allclose(found, wanted[0], rtol=2e-4, atol=2e-4)  # the table has five digits


def test_numbers_and_two_inputs(runner: Runner) -> None:
    file = encoded_model([node("Sub", "a", "b")], [value("a", "n", 2), value("b", 2)], [value("y", "n", 2)])
    runner.choose(("pair.onnx", file)).is_ready()
    page = runner.page
    page.get_by_test_id("dim-a-0").fill("2")
    for name, numbers in (("a", "5 7 9, 11"), ("b", "1 2")):
        page.get_by_test_id(f"fill-{name}").select_option("list")
        page.get_by_test_id(f"numbers-{name}").fill(numbers)
    assert runner.run().table("y") == [["0", "1"], ["4", "5"], ["8", "9"]]
    page.get_by_test_id("numbers-b").fill("1")
    page.get_by_test_id("run").click()
    runner.fails_with("The input b has 1 numbers; its dims are 2")


def test_a_file_with_missing_operators_is_drawn_and_says_which(runner: Runner) -> None:
    nodes = [node("Relu", "x", output="r"), node("Frobnicate", "r", domain="com.example")]
    runner.choose(("strange.onnx", encoded_model(nodes, [value("x", 2)], [value("y", 2)])))
    runner.fails_with("com.example.Frobnicate (1)", "in red")
    runner.page.get_by_test_id("graph").focus()
    for _ in range(3):
        runner.page.keyboard.press("ArrowDown")
    expect(runner.page.get_by_test_id("node-name")).to_contain_text("com.example.Frobnicate")
    runner.page.get_by_test_id("run").click()
    runner.fails_with("Choose another model")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04" + bytes(100), "a zip archive"),
        (b"<!doctype html><title>404</title>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (bytes(range(256)) * 4, "no ONNX file"),
        (b"", "no ONNX model"),
        (DIGITS.read_bytes()[:9000], "truncated"),
    ],
)
def test_other_files_are_refused_in_clear_words(runner: Runner, data: bytes, words: str) -> None:
    runner.choose(("other.onnx", data)).fails_with(words)
    expect(runner.status).to_have_text("Could not load other.onnx.")


def test_a_dropped_model_replaces_the_last_one(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "digits again.onnx"
    path.write_bytes(DIGITS.read_bytes())
    drop(runner.page, {path.name: path})
    runner.is_ready()
    expect(runner.name).to_contain_text("digits again.onnx: opset ai.onnx 18")
    runner.run()


def test_a_run_stops(runner: Runner) -> None:
    loop = [node("Relu", "x", output="r0")]
    loop += [node("MatMul", f"r{i}", "x", output=f"r{i + 1}") for i in range(400)]
    shape = (700, 700)
    runner.choose(("long.onnx", encoded_model(loop, [value("x", *shape)], [value("r400", *shape)]))).is_ready()
    runner.page.get_by_test_id("run").click()
    expect(runner.status).to_contain_text("MatMul", timeout=START_MS)
    runner.page.get_by_test_id("stop").click()
    expect(runner.status).to_have_text("Stopped.", timeout=START_MS)
    runner.page.get_by_test_id("preset-digits").click()
    expect(runner.status).to_contain_text("Done in", timeout=START_MS)


def test_the_console_opens_the_same_model(browser: Browser, revisited_site: str, runner: Runner) -> None:
    link = runner.page.get_by_test_id("console").get_attribute("href") or ""
    context = browser.new_context()
    console = Console(context.new_page()).open(revisited_site, link[link.index("#") :])
    console.page.get_by_test_id("run").click()
    console.wrote("def forward(self, image):")
    context.close()


def test_a_file_of_the_hub_comes_with_the_names_of_its_classes(runner: Runner) -> None:
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    names = {str(i): word for i, word in enumerate(words)}
    settings = {"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    files = {
        "onnx/model.onnx": DIGITS.read_bytes(),
        "config.json": json.dumps({"id2label": names}).encode(),
        "preprocessor_config.json": json.dumps(settings).encode(),
    }
    runner.page.context.route("https://huggingface.co/**", Hub(digits=files))
    runner.page.get_by_test_id("model-id").fill("who/digits:onnx/model.onnx")
    runner.page.get_by_test_id("load").click()
    expect(runner.name).to_contain_text("model.onnx: opset", timeout=START_MS)
    expect(runner.page.get_by_test_id("scale-image")).to_have_value("signed")
    runner.page.get_by_test_id("scale-image").select_option("unit")
    runner.run()
    expect(runner.page.get_by_test_id("classes").locator("li").first).to_contain_text("seven")
