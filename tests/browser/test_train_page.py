"""wasm_examples/train in Chromium: networks that train in the page, as a user sees them."""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Browser, Page, expect
from support.scripts import run_script
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop

import tallow as tl
from tallow.io import safetensors

PAGE = "wasm_examples/train/"
DATASETS = ["moons", "circles", "spirals", "xor", "own", "digits"]


class Bench:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")

    def open(self, site: str) -> Bench:
        self.page.goto(site + PAGE)
        expect(self.status).to_have_text("Python is ready. Press Train.", timeout=START_MS)
        return self

    def choose(self, **selected: str) -> Bench:
        for name, value in selected.items():
            self.page.get_by_test_id(name.replace("_", "-")).select_option(value)
        return self

    def fill(self, **fields: object) -> Bench:
        for name, value in fields.items():
            field = self.page.get_by_test_id(name.replace("_", "-"))
            field.fill(str(value))
            field.press("Enter")
        return self

    def click(self, *buttons: str) -> Bench:
        for name in buttons:
            self.page.get_by_test_id(name).click()
        return self

    def figure(self, name: str) -> str:
        place = self.page.get_by_test_id("stats").locator("div").filter(has=self.page.get_by_text(name, exact=True))
        return place.locator("dd").inner_text()

    def number(self, name: str) -> float:
        return float(self.figure(name).rstrip("%").replace(",", ""))

    def reaches(self, name: str, value: float) -> None:
        """Wait until a figure reaches this value."""
        wait_until(
            self.page,
            """([name, value]) => [...document.querySelectorAll("#stats div")].some((figure) =>
                figure.firstChild.textContent === name
                && parseFloat(figure.lastChild.textContent.replace(",", "")) >= value)""",
            [name, value],
        )

    def fails_with(self, *words: str) -> None:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)

    def stands_still(self) -> None:
        steps = self.figure("Steps")
        self.page.wait_for_timeout(300)
        assert self.figure("Steps") == steps

    def draw(self, *strokes: list[tuple[float, float]]) -> Bench:
        """Draw on the pad with the mouse; coordinates are 0 to 1."""
        pad = self.page.get_by_test_id("draw-pad")
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        assert box
        for stroke in strokes:
            places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            self.page.mouse.move(*places[0])
            self.page.mouse.down()
            for place in places[1:]:
                self.page.mouse.move(*place, steps=5)
            self.page.mouse.up()
        return self

    def click_plane(self, x: float, y: float) -> Bench:
        """Click the point (x, y) of a plane that shows -1.4 to 1.4."""
        box = self.page.get_by_test_id("boundary").bounding_box()
        assert box
        position = {"x": (x / 1.4 + 1) / 2 * box["width"], "y": (1 - y / 1.4) / 2 * box["height"]}
        self.page.get_by_test_id("boundary").click(position=position)  # type: ignore[arg-type]
        return self

    def colors(self, canvas: str) -> int:
        """Return the number of colours in a canvas."""
        return self.page.get_by_test_id(canvas).evaluate(
            "(it) => new Set(new Uint32Array("
            "it.getContext('2d').getImageData(0, 0, it.width, it.height).data.buffer)).size"
        )

    def drop(self, *paths: Path) -> Bench:
        drop(self.page, {path.name: path for path in paths})
        return self

    def saved(self, folder: Path) -> Path:
        with self.page.expect_download() as download:
            self.click("export")
        assert download.value.suggested_filename == "weights.safetensors"
        path = folder / "weights.safetensors"
        download.value.save_as(path)
        return path


@pytest.fixture(scope="module")
def site(revisited_site: str) -> str:
    return revisited_site


@pytest.fixture(scope="module")
def opened(browser: Browser, site: str) -> Iterator[Page]:
    """A page with Python running, shared by the tests of this module."""
    context = browser.new_context()
    page = context.new_page()
    Bench(page).open(site)
    yield page
    context.close()


@pytest.fixture
def bench(opened: Page) -> Iterator[Bench]:
    """The shared page after a reset; an error on its console fails the test."""
    bugs: list[str] = []
    note = lambda error: bugs.append(str(error))  # noqa: E731  named, to be removed again
    opened.on("pageerror", note)
    bench = Bench(opened).click("reset").choose(speed="0").fill(seed=1, batch_size=32, weight_decay=0, l1=0, lr=0.01)
    bench.choose(dataset="moons").fill(hidden="16, 16").choose(activation="Tanh", optimizer="Adam").click("reset")
    expect(bench.error).to_be_hidden()
    yield bench
    opened.remove_listener("pageerror", note)
    assert not bugs


# ---- training


def test_training_on_moons(bench: Bench) -> None:
    assert bench.number("Test: accuracy") < 95
    bench.fill(lr=0.03).click("train")
    bench.reaches("Test: accuracy", 95)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    assert bench.number("Training: accuracy") >= 95
    assert bench.number("Loss") < 0.5
    assert re.fullmatch(r"\d+ steps/s", bench.figure("Speed"))
    assert "wasm" in bench.figure("Kernels")
    for canvas in ("boundary", "loss-curve"):
        assert bench.colors(canvas) > 10


def test_preset_solves_the_spiral(bench: Bench) -> None:
    """Also after another preset, which trains at that time."""
    presets = bench.page.get_by_test_id("presets")
    presets.get_by_text("A line is not enough").click()
    bench.reaches("Steps", 20)
    presets.get_by_text("Solve the spiral").click()
    bench.reaches("Test: accuracy", 99)
    assert bench.page.get_by_test_id("hidden").input_value() == "32, 32"
    expect(bench.status).to_have_text("Training.")
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    bench.stands_still()


def test_pause_step_and_train_continue(bench: Bench) -> None:
    bench.click("train")
    bench.reaches("Steps", 20)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    bench.stands_still()
    paused = bench.number("Steps")
    bench.click("step")
    expect(bench.status).to_have_text(f"Step {paused + 1:,.0f}.")
    assert bench.number("Steps") == paused + 1
    bench.click("train")
    bench.reaches("Steps", paused + 20)


def test_reset_makes_the_network_new(bench: Bench) -> None:
    new = bench.figure("Test: loss")
    bench.click("train")
    bench.reaches("Steps", 50)
    bench.click("reset")
    expect(bench.status).to_have_text("The network is new. Press Train.")
    expect(bench.page.get_by_test_id("stats")).to_contain_text(re.compile(r"Steps\s*0"))
    bench.stands_still()
    assert bench.figure("Test: loss") == new


# The steps in about a second, and how long it was.
PACE = """async () => {
  const now = () => {
    const shown = [...document.querySelectorAll("#stats div")].find((it) => it.firstChild.textContent === "Steps");
    return [parseFloat(shown.lastChild.textContent), performance.now()];
  };
  const begin = now();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return now().map((value, i) => value - begin[i]);
}"""


def test_speed_sets_the_steps_between_two_pictures(bench: Bench) -> None:
    bench.choose(speed="1").click("train")
    bench.reaches("Steps", 2)
    steps, elapsed_ms = bench.page.evaluate(PACE)
    assert steps <= elapsed_ms / 80 + 2, "a picture takes 80 ms"
    steps = bench.number("Steps")
    bench.choose(speed="100")
    bench.reaches("Steps", steps + 200)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    bench.stands_still()


def test_l1_makes_weights_small(bench: Bench, tmp_path: Path) -> None:
    """With a strong penalty most weights are near zero, and the loss that is shown is without it."""
    near_zero = []
    for l1 in (0, 0.03):
        bench.fill(l1=l1).click("reset", "train")
        bench.reaches("Steps", 400)
        bench.click("pause")
        expect(bench.status).to_contain_text("Paused after")
        weights = [each.numpy() for each in tl.load(bench.saved(tmp_path)).values() if each.ndim > 1]
        near_zero.append(float(np.mean(np.abs(np.concatenate([each.ravel() for each in weights])) < 0.02)))
    assert near_zero[0] < 0.3 < 0.6 < near_zero[1]
    assert bench.number("Loss") < 1


def test_accuracy_curve_and_network_are_drawn(bench: Bench) -> None:
    before = bench.colors("diagram")
    assert before > 10
    words = bench.page.get_by_test_id("diagram-words")
    bench.page.get_by_text("The network in words").click()
    expect(words.locator("li")).to_have_count(4)
    expect(words).to_contain_text("Hidden layer 1 has 16 neurons, of which 8 are drawn")
    picture = "(it) => it.toDataURL()"
    pictures = {name: bench.page.get_by_test_id(name).evaluate(picture) for name in ("accuracy-curve", "diagram")}
    text = words.inner_text()
    bench.click("train")
    bench.reaches("Steps", 100)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    for name, earlier in pictures.items():
        assert bench.page.get_by_test_id(name).evaluate(picture) != earlier
    assert words.inner_text() != text
    bench.fill(hidden="")
    expect(words.locator("li")).to_have_count(2)
    bench.fill(hidden="3, 5, 7, 9")
    expect(words.locator("li")).to_have_count(6)
    bench.page.get_by_text("The network in words").click()


def test_buttons_with_nothing_to_do(bench: Bench) -> None:
    expect(bench.page.get_by_test_id("pause")).to_be_disabled()
    bench.click("train", "train")
    expect(bench.status).to_have_text("Training is already running.")
    expect(bench.error).to_be_hidden()


def test_pause_and_train_at_once_leave_one_run(bench: Bench) -> None:
    bench.page.evaluate(
        "document.getElementById('status').textContent = '';"
        "for (const id of ['train', 'pause', 'train', 'pause']) document.getElementById(id).click()"
    )
    expect(bench.status).to_have_text(re.compile("Paused after|network is new"))
    bench.stands_still()


def test_learning_rate_changes_what_steps_do_at_once(bench: Bench) -> None:
    bench.click("train")
    bench.reaches("Steps", 20)
    bench.fill(lr=0)
    for _ in range(3):  # Python may be in the middle of steps that began before
        bench.reaches("Steps", bench.number("Steps") + 1)
    loss = bench.figure("Test: loss")
    bench.reaches("Steps", bench.number("Steps") + 50)
    assert bench.figure("Test: loss") == loss
    bench.fill(lr=0.1)
    for _ in range(3):
        bench.reaches("Steps", bench.number("Steps") + 100)
    assert bench.figure("Test: loss") != loss


@pytest.mark.parametrize("optimizer", ["SGD", "momentum", "AdamW", "RMSprop", "Adagrad"])
def test_optimizer_changes_while_it_trains(bench: Bench, optimizer: str) -> None:
    bench.click("train")
    bench.reaches("Steps", 5)
    bench.choose(optimizer=optimizer)
    expect(bench.page.get_by_test_id("code")).to_contain_text(optimizer.replace("momentum", "SGD"))
    steps = bench.number("Steps")
    assert steps >= 5, "the network kept training"
    bench.reaches("Steps", steps + 20)
    expect(bench.error).to_be_hidden()


def test_another_network_starts_over_and_keeps_training(bench: Bench) -> None:
    bench.click("train")
    bench.reaches("Steps", 30)
    bench.fill(hidden="4")
    expect(bench.page.get_by_test_id("stats")).to_contain_text(re.compile(r"Parameters\s*22"))
    bench.reaches("Steps", 5)


def test_same_seed_same_steps(bench: Bench) -> None:
    losses = []
    for seed in (5, 6, 5):
        bench.fill(seed=seed)
        for step in (1, 2):
            bench.click("step")
            expect(bench.status).to_have_text(f"Step {step}.")
        losses.append(bench.figure("Loss"))
        bench.click("reset")
    assert losses[0] == losses[2] != losses[1]


def test_diverged_training_stops_with_a_message(bench: Bench) -> None:
    bench.choose(optimizer="SGD", activation="ReLU").fill(lr=1e30).click("train")
    bench.fails_with("The loss is no longer a number", "Lower the learning rate")
    expect(bench.status).to_have_text("Training has ended.")
    bench.fill(lr=0.1).click("reset", "train")
    bench.reaches("Steps", 10)
    expect(bench.error).to_be_hidden()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("hidden", "16, x", ["Hidden layers", "16, x", "from 1 to 512"]),
        ("hidden", "16, 0", ["from 1 to 512"]),
        ("hidden", "9 " * 9, ["9 hidden layers", "at most 8"]),
        ("lr", "", ["Learning rate"]),
        ("lr", -1, ["Learning rate cannot be -1", "at least 0"]),
        ("batch-size", 0, ["Batch size cannot be 0", "at least 1"]),
        ("batch-size", 1.5, ["Batch size", "whole number"]),
        ("weight-decay", -1, ["L2 (weight decay) cannot be -1"]),
        ("l1", -1, ["L1 cannot be -1"]),
        ("seed", "", ["Seed"]),
    ],
)
def test_bad_setting_is_named_and_the_page_keeps_working(
    bench: Bench, field: str, value: Any, words: list[str]
) -> None:
    right = bench.page.get_by_test_id(field).input_value()
    bench.fill(**{field: value}).fails_with(*words)
    bench.click("train").fails_with(*words)
    bench.fill(**{field: right}).click("train")
    bench.reaches("Steps", 3)
    expect(bench.error).to_be_hidden()


def test_status_belongs_to_the_current_network(bench: Bench) -> None:
    """Messages about a previous network disappear; remarks are replaced by progress."""
    new = "The network is new. Press Train."
    bench.click("step")
    expect(bench.status).to_have_text("Step 1.")
    bench.fill(hidden="4")
    expect(bench.status).to_have_text(new)
    bench.click("step", "export")
    expect(bench.status).to_contain_text("Saved weights.safetensors")
    expect(bench.status).to_have_text("Step 1.")
    bench.fill(lr=0.02)
    expect(bench.status).to_have_text("Paused after 1 step.")
    bench.choose(dataset="circles")
    expect(bench.status).to_have_text(new)
    bench.choose(dataset="own")
    bench.drop(Path(__file__)).fails_with("not a dataset")
    expect(bench.status).to_have_text(new)


# ---- the script


def output_of(code: str, folder: Path, library: str = "tallow") -> str:
    """Run the script in `folder` and return its output."""
    script = folder / "script.py"
    script.write_text(code.replace("import tallow as tl", f"import {library} as tl"))
    return run_script(script, folder=folder)


@pytest.mark.parametrize("penalties", [{}, {"l1": 0.01, "weight_decay": 0.02}])
def test_script_prints_what_the_page_shows(bench: Bench, tmp_path: Path, penalties: dict[str, float]) -> None:
    bench.fill(batch_size=100, **penalties)  # an epoch of four steps
    code = bench.page.get_by_test_id("code")
    for value in ("split(100)", *map(str, penalties.values())):  # each is a change of its own
        expect(code).to_contain_text(value)
    lines = output_of(code.inner_text(), tmp_path).splitlines()
    for epoch, line in enumerate(lines[:3], start=1):
        for step in range(4 * epoch - 3, 4 * epoch + 1):
            bench.click("step")
            expect(bench.status).to_have_text(f"Step {step}.")
        printed = re.fullmatch(r"epoch (\d+): loss ([\d.]+), accuracy ([\d.]+)%", line)
        assert printed
        assert (int(printed[1]), float(printed[3])) == (bench.number("Epochs"), bench.number("Test: accuracy"))
        assert float(printed[2]) == pytest.approx(bench.number("Test: loss"), abs=2e-4)
    assert set(tl.load(tmp_path / "model.pt")) == {f"{i}.{name}" for i in (0, 2, 4) for name in ("weight", "bias")}


@pytest.mark.parametrize(
    ("dataset", "library"), [*((name, "tallow") for name in DATASETS), ("moons", "torch"), ("digits", "torch")]
)
def test_script_of_every_dataset_runs(bench: Bench, tmp_path: Path, dataset: str, library: str) -> None:
    bench.choose(dataset=dataset, activation="LeakyReLU", optimizer="momentum")
    if dataset == "own":
        bench.click_plane(-0.5, 0).page.get_by_label("class 2").check()
        bench.click_plane(0.5, 0)
        expect(bench.page.get_by_test_id("data-hint")).to_contain_text("2 points")
    code = bench.page.get_by_test_id("code")
    expect(code).to_contain_text({"own": "your own points"}.get(dataset, "def "))
    text = re.sub(r"range\(\d+\):\n    model", "range(2):\n    model", code.inner_text())
    assert output_of(text, tmp_path, library).startswith("epoch 1: loss")
    bench.choose(dataset="own").click("clear-points")


def test_script_is_copied(bench: Bench) -> None:
    bench.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    bench.click("copy")
    expect(bench.status).to_contain_text("copied")
    assert bench.page.evaluate("navigator.clipboard.readText()") == bench.page.locator("#code").inner_text()


def test_a_browser_that_does_not_let_the_page_copy(bench: Bench) -> None:
    bench.page.evaluate("() => void (navigator.clipboard.writeText = () => Promise.reject(Error('denied')))")
    bench.click("copy")
    expect(bench.status).to_contain_text("does not let the page copy")
    bench.page.evaluate("delete navigator.clipboard.writeText")


# ---- weights


def test_saved_weights_are_read_natively_and_come_back(bench: Bench, tmp_path: Path) -> None:
    bench.fill(lr=0.03).click("train")
    bench.reaches("Test: accuracy", 95)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    accuracy = bench.figure("Test: accuracy")
    path = bench.saved(tmp_path)
    weights = tl.load(path)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    assert shapes == {
        "0.weight": (16, 2),
        "0.bias": (16,),
        "2.weight": (16, 16),
        "2.bias": (16,),
        "4.weight": (2, 16),
        "4.bias": (2,),
    }
    bench.click("reset")
    bench.page.get_by_test_id("import").set_input_files(path)
    expect(bench.status).to_contain_text("has the weights of weights.safetensors")
    assert bench.figure("Test: accuracy") == accuracy
    assert bench.number("Steps") == 0
    assert all(np.array_equal(weights[name], tl.load(bench.saved(tmp_path))[name]) for name in weights)


@pytest.fixture
def unusable(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.safetensors" for name in ("garbage", "empty", "other", "nan", "truncated")}
    paths["photo.png"] = tmp_path / "photo.png"
    paths["photo.png"].write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    paths["garbage"].write_bytes(b"<!doctype html>" * 20)
    paths["empty"].write_bytes(b"")
    safetensors.save({"0.weight": tl.zeros(3, 2), "0.bias": tl.zeros(16)}, paths["other"])
    safetensors.save({"0.weight": tl.full((16, 2), tl.nan)}, paths["nan"])
    paths["truncated"].write_bytes(paths["other"].read_bytes()[:-4])
    return paths


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("garbage", ["not a safetensors file"]),
        ("empty", ["not a safetensors file"]),
        ("photo.png", ["not a safetensors file", "weights saved by this page"]),
        ("other", ["0.weight", "(3, 2)", "(16, 2)", "missing", "4.bias"]),
        ("nan", ["0.weight", "NaN"]),
        ("truncated", ["The file: truncated"]),
    ],
)
def test_weights_that_do_not_fit(bench: Bench, unusable: dict[str, Path], fault: str, words: list[str]) -> None:
    before = bench.figure("Test: loss")
    bench.page.get_by_test_id("import").set_input_files(unusable[fault])
    bench.fails_with(*words)
    expect(bench.error).not_to_contain_text("MNIST")
    expect(bench.status).to_have_text("The network is new. Press Train.")
    assert bench.figure("Test: loss") == before
    bench.click("step")
    expect(bench.status).to_have_text("Step 1.")


# ---- own points


@pytest.fixture
def own(bench: Bench) -> Iterator[Bench]:
    bench.choose(dataset="own").page.get_by_label("class 1").check()
    yield bench
    bench.choose(dataset="own").click("clear-points")


def test_own_points_are_learned(own: Bench) -> None:
    hint = own.page.get_by_test_id("data-hint")
    for x, y in ((-0.9, -0.9), (0.9, 0.9), (-0.8, -0.6)):
        own.click_plane(x, y)
    own.page.get_by_label("class 2").check()
    for x, y in ((-0.9, 0.9), (0.9, -0.9)):
        own.click_plane(x, y)
    expect(hint).to_contain_text("5 points")
    own.fill(lr=0.1).click("train")
    own.reaches("Training: accuracy", 100)
    own.page.get_by_label("class 3").check()
    own.click_plane(0, 0)
    expect(hint).to_contain_text("6 points")
    own.reaches("Training: accuracy", 100)
    own.click("clear-points")
    expect(hint).to_contain_text("0 points")


def test_points_by_the_keyboard(own: Bench) -> None:
    plane = own.page.get_by_test_id("boundary")
    plane.focus()
    for key in ("ArrowLeft", "ArrowUp", "Enter", "ArrowRight", "Space"):
        plane.press(key)
    expect(own.page.get_by_test_id("data-hint")).to_contain_text("2 points")


def test_training_without_data(own: Bench) -> None:
    own.click("train").fails_with("same class", "two classes")
    own.click_plane(0.5, 0.5).click("step").fails_with("two classes")


# ---- digits


ONE = [[(0.5, 0.15), (0.5, 0.85)]]
SEVEN = [[(0.25, 0.2), (0.75, 0.2), (0.45, 0.85)]]
FOUR = [[(0.35, 0.15), (0.25, 0.55), (0.75, 0.55)], [(0.65, 0.2), (0.62, 0.9)]]


def test_drawn_digits_are_recognized(bench: Bench) -> None:
    bench.choose(dataset="digits").fill(hidden="64", lr=0.003).click("train")
    bench.reaches("Test: accuracy", 97)
    bench.click("pause")
    guess = bench.page.get_by_test_id("guess")
    for strokes, digit in ((ONE, 1), (SEVEN, 7), (FOUR, 4)):
        bench.click("clear-pad")
        expect(guess).to_contain_text("Draw a digit")
        bench.draw(*strokes)
        expect(guess).to_contain_text(f"Prediction: {digit}")
    expect(bench.page.get_by_test_id("probabilities").locator("li")).to_have_count(10)
    predictions = bench.page.get_by_test_id("predictions").locator("li")
    expect(predictions).to_have_count(24)
    wrong = bench.page.get_by_test_id("predictions").locator("li.wrong")
    assert wrong.count() < 6
    bench.click("reset")
    expect(wrong.first).to_contain_text(re.compile(r"\d, not \d"))


def test_confusion_and_mistakes_agree(bench: Bench) -> None:
    """The confusion matrix counts the test images; its errors are in the gallery, its accuracy in the figures."""
    bench.choose(dataset="digits").fill(lr=0.003).click("train")
    bench.reaches("Test: accuracy", 80)
    bench.click("pause")
    expect(bench.status).to_contain_text("Paused after")
    table = bench.page.get_by_test_id("confusion")
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    counts = np.array([[int(cell or 0) for cell in row] for row in rows])
    assert counts.shape == (10, 10)
    assert counts.sum() == 420
    assert f"{100 * counts.trace() / 420:.1f}%" == bench.figure("Test: accuracy")
    gallery = bench.page.get_by_test_id("mistakes").locator("li")
    wrong = int(counts.sum() - counts.trace())
    expect(gallery).to_have_count(min(wrong, 24))
    shown = [re.fullmatch(r"(\d) \(\d+%\), not (\d)", text) for text in gallery.all_inner_texts()]
    for match in shown:
        assert match
        assert counts[int(match[2]), int(match[1])] > 0
        assert match[1] != match[2]
    expect(bench.page.get_by_test_id("confusion-summary")).to_have_text(f"{420 - wrong} of 420 test images are right.")


def test_digit_drawn_by_the_keyboard(bench: Bench) -> None:
    bench.choose(dataset="digits", network="mlp")
    bench.click("clear-pad")
    seen = bench.page.get_by_test_id("seen")
    expect(seen).to_be_hidden()
    pad = bench.page.get_by_test_id("draw-pad")
    pad.focus()
    for key in ("Enter", *["ArrowDown"] * 5, "Enter"):
        pad.press(key)
    expect(bench.page.get_by_test_id("guess")).to_contain_text("Prediction: ")
    expect(seen).to_be_visible()


def test_empty_drawing(bench: Bench) -> None:
    bench.choose(dataset="digits").click("clear-pad", "classify").fails_with("drawing is empty", "Draw a digit first")


# ---- files in MNIST's format


def idx(array: npt.NDArray[np.uint8]) -> bytes:
    """Write the format of http://yann.lecun.com/exdb/mnist/."""
    return struct.pack(f">2xBB{array.ndim}I", 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with 400 images, with a bar at the position given by the label, and damaged ones."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 400).astype(np.uint8)
    images = rng.integers(0, 60, (400, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[4:24, 2 + 2 * label : 5 + 2 * label] = 250
    contents = {
        "images.idx": idx(images),
        "labels.idx": idx(labels),
        "images.idx.gz": gzip.compress(idx(images)),
        "labels.idx.gz": gzip.compress(idx(labels)),
        "fewer.idx": idx(labels[:399]),
        "letters.idx": idx(np.where(np.arange(400) == 7, 11, labels).astype(np.uint8)),
        "narrow.idx": idx(images[:, :, :20].copy()),
        "truncated.idx": idx(images)[:5000],
        "truncated.idx.gz": gzip.compress(idx(images))[:5000],
        "no-idx.idx": b"<!doctype html>" * 100,
        "huge.idx": struct.pack(">2xBB3I", 8, 3, 2**31, 28, 28) + bytes(1000),
    }
    folder = tmp_path_factory.mktemp("mnist")
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("names", [("images.idx", "labels.idx"), ("labels.idx.gz", "images.idx.gz")])
def test_files_in_mnists_format_are_learned(bench: Bench, mnist: dict[str, Path], names: tuple[str, str]) -> None:
    bench.choose(dataset="files")
    bench.page.get_by_test_id("data-files").set_input_files([mnist[name] for name in names])
    expect(bench.status).to_contain_text("400 images of images.idx")
    expect(bench.page.get_by_test_id("data-hint")).to_contain_text("320 training examples, 80 test examples")
    bench.click("train")
    bench.reaches("Test: accuracy", 90)


def test_dropped_files_are_taken(bench: Bench, mnist: dict[str, Path], tmp_path: Path) -> None:
    bench.drop(mnist["labels.idx"], mnist["images.idx"])
    expect(bench.status).to_contain_text("400 images of images.idx")
    expect(bench.page.get_by_test_id("dataset")).to_have_value("files")
    path = bench.saved(tmp_path)
    bench.click("step")
    bench.drop(path)
    expect(bench.status).to_contain_text("has the weights of")


def test_script_reads_the_files(bench: Bench, mnist: dict[str, Path], tmp_path: Path) -> None:
    bench.drop(mnist["labels.idx.gz"], mnist["images.idx"])
    expect(bench.status).to_contain_text("400 images")
    for name in ("labels.idx.gz", "images.idx"):
        (tmp_path / name).write_bytes(mnist[name].read_bytes())
    assert "epoch 10: loss" in output_of(bench.page.get_by_test_id("code").inner_text(), tmp_path, "torch")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["images.idx"], ["images.idx alone", "two files"]),
        (["images.idx", "labels.idx", "fewer.idx"], ["3 files", "two files"]),
        (["images.idx", "images.idx.gz"], ["both contain images"]),
        (["images.idx", "fewer.idx"], ["400 images", "399 labels"]),
        (["images.idx", "letters.idx"], ["letters.idx", "label 11", "image 7"]),
        (["narrow.idx", "labels.idx"], ["narrow.idx", "20"]),
        (["truncated.idx", "labels.idx"], ["truncated"]),
        (["truncated.idx.gz", "labels.idx"], ["truncated.idx.gz", "damaged"]),
        (["no-idx.idx", "labels.idx"], ["no-idx.idx", "MNIST's format"]),
        (["huge.idx", "labels.idx"], ["huge.idx", "2147483648"]),
    ],
)
def test_unusable_files(bench: Bench, mnist: dict[str, Path], names: list[str], words: list[str]) -> None:
    bench.choose(dataset="files")
    bench.page.get_by_test_id("data-files").set_input_files([mnist[name] for name in names])
    bench.fails_with(*words)
    bench.choose(dataset="moons").click("step")
    expect(bench.status).to_have_text("Step 1.")


# ---- the page


def test_train_before_python_has_started_and_without_files(page: Page, site: str) -> None:
    page.goto(site + PAGE)
    bench = Bench(page).click("train")
    bench.reaches("Steps", 3)
    expect(bench.status).to_have_text("Training.")
    bench.choose(dataset="files")  # of which there are none: they are requested
    expect(bench.status).to_contain_text("Choose a file of images")
    bench.click("train")
    expect(bench.status).to_contain_text("Choose a file of images")


def test_page_without_python_shows_an_error(page: Page, site: str) -> None:
    page.route("**/pyodide.mjs", lambda route: route.abort())
    page.goto(site + PAGE)
    Bench(page).fails_with("Python could not be loaded")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_every_control_has_a_label(bench: Bench) -> None:
    """Every control has a label that a screen reader can find."""
    nameless = bench.page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, canvas")].filter((it) =>
            !(it.labels?.length || it.getAttribute("aria-label") || it.textContent.trim())).map((it) => it.id)"""
    )
    assert nameless == []


@pytest.fixture(scope="module")
def phone(browser: Browser, site: str) -> Iterator[Bench]:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    yield Bench(context.new_page()).open(site)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("dataset", ["own", "digits"])
def test_phone_needs_no_sideways_scroll(phone: Bench, scheme: Any, dataset: str) -> None:
    phone.page.emulate_media(color_scheme=scheme)
    phone.choose(dataset=dataset).click("step")
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 360
    matrix = phone.page.get_by_test_id("confusion")
    assert matrix.evaluate("(it) => it.parentElement.scrollWidth - it.parentElement.clientWidth") == 0
