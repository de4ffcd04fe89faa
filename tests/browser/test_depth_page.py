"""wasm_examples/depth in Chromium: depths of a picture with native numbers, its background, the camera, ONNX files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support.onnx_files import encoded_model, node, value
from tests.browser.axe import expect_no_violation
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop
from tests.browser.hub import Hub, no_hub

import tallow as tl
from tallow import transformers as tf
from tallow.models import AutoModel
from tallow.onnx.protobuf import TensorProto

image = pytest.importorskip("PIL.Image")

PAGE = "wasm_examples/depth/"
SIZE = (252, 189)  # a picture that the page does not resize, for patches of 7 pixels
MEAN = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a small Depth Anything with random weights."""
    folder = tmp_path_factory.mktemp("depth")
    tl.manual_seed(3)
    dino = {"model_type": "dinov2", "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    dino |= {"image_size": 28, "patch_size": 7, "out_indices": [1, 2], "initializer_range": 0.5}
    config = tf.DepthAnythingConfig(
        backbone_config=dino,
        patch_size=7,
        reassemble_hidden_size=24,
        reassemble_factors=[2, 1],
        neck_hidden_sizes=[6, 8],
        fusion_hidden_size=8,
        depth_estimation_type="metric",
        max_depth=9,
        initializer_range=0.15,
    )
    tf.DepthAnythingForDepthEstimation(config).save_pretrained(folder)
    tf.DPTImageProcessor(**MEAN).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    """A picture of smooth colours, (Y, X, 3)."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    waves = [128 + 120 * np.sin(x / a + y / b) for a, b in ((30, 50), (17, 90), (80, 23))]
    return np.stack(waves, -1).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


class Looker:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.name = page.get_by_test_id("model-name")

    def seen(self) -> int:
        """Return how often the page has looked."""
        return int(self.page.get_by_test_id("view").get_attribute("data-seen") or 0)

    def has_seen(self, before: int) -> Looker:
        wait_until(self.page, f"Number(document.querySelector('#view').dataset.seen) > {before}")
        return self

    def choose(self, pixels: np.ndarray) -> Looker:
        file = {"name": "some.png", "mimeType": "image/png", "buffer": png(pixels)}
        self.page.get_by_test_id("picture-file").set_input_files(file)  # type: ignore[arg-type]
        return self

    def saved(self, look: str) -> np.ndarray:
        """Return the picture that the page saves with a look, (Y, X, 4)."""
        self.page.get_by_test_id("look").select_option(look)
        with self.page.expect_download() as download:
            self.page.get_by_test_id("save").click()
        return np.asarray(image.open(download.value.path()).convert("RGBA")).astype(int)

    def fails_with(self, *words: str) -> Looker:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)
        return self


@pytest.fixture(scope="module")
def looker(launch: Callable[..., Browser], revisited_site: str) -> Iterator[Looker]:
    """A page without a model, shared by the tests, in a browser whose camera shows a test picture."""
    browser = launch("--use-fake-device-for-media-stream")
    context = browser.new_context(permissions=["camera"])
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(revisited_site + PAGE)
    yield Looker(page)
    browser.close()
    assert not bugs


def test_a_picture_gives_the_native_numbers(looker: Looker, model: Path, pixels: np.ndarray) -> None:
    looker.choose(pixels)
    expect(looker.status).to_contain_text("Choose a model", timeout=START_MS)
    before = looker.seen()
    drop(looker.page, {path.name: path for path in model.iterdir()})
    looker.has_seen(before)
    expect(looker.status).to_have_text("Done.")
    expect(looker.name).to_contain_text("tells metres")
    scaled = (pixels / 255 - MEAN["image_mean"]) / MEAN["image_std"]
    with tl.no_grad():
        depth = AutoModel.from_pretrained(model)(tl.tensor(scaled.astype(np.float32).transpose(2, 0, 1)[None])).numpy()
    assert depth.max() - depth.min() > 0.5
    stats = looker.page.get_by_test_id("stats")
    expect(stats).to_contain_text(f"{depth.min():.1f} to {depth.max():.1f} m")
    expect(stats).to_contain_text(f"{SIZE[0]} × {SIZE[1]}")
    shown = looker.saved("depth")
    assert shown.shape == (SIZE[1], SIZE[0], 4)
    light = shown[..., :3].sum(-1)  # near pixels are light
    near, far = depth[0] < np.quantile(depth, 0.1), depth[0] > np.quantile(depth, 0.9)
    assert light[near].mean() > 2 * light[far].mean()
    looker.page.get_by_test_id("look").select_option("removed")  # depths have no border
    looker.page.get_by_test_id("border").fill("0.6")
    removed = looker.saved("removed")
    share = 1 - (depth[0] - depth.min()) / (depth.max() - depth.min())
    assert removed[..., 3][share < 0.55].max() == 0
    assert removed[..., 3][share > 0.65].min() == 255
    kept = share > 0.65
    assert abs(removed[..., :3] - pixels)[kept].max() <= 2
    blurred = looker.saved("blurred")
    assert blurred[..., 3].min() == 255
    assert abs(blurred[..., :3] - pixels)[kept].max() <= 2
    assert abs(blurred[..., :3] - pixels)[share < 0.55].mean() > 1
    assert abs(looker.saved("picture")[..., :3] - pixels).max() <= 1


def test_the_camera_is_live_until_it_is_stopped(looker: Looker) -> None:
    page = looker.page
    page.get_by_test_id("look").select_option("blurred")
    page.get_by_test_id("camera").click()
    expect(page.get_by_test_id("rate")).to_contain_text("frames a second", timeout=START_MS)
    expect(looker.status).to_have_text("Looking through the camera.")
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("camera")).to_have_text("Use the camera")
    expect(page.get_by_test_id("stop")).to_be_disabled()


def test_what_does_not_fit_loses_nothing(looker: Looker, model: Path, pixels: np.ndarray, tmp_path: Path) -> None:
    page = looker.page
    before = looker.seen()
    looker.choose(pixels).has_seen(before)
    notes = tmp_path / "notes.txt"
    notes.write_text("no picture")
    drop(page, {"notes.txt": notes})
    looker.fails_with("notes.txt is not a picture")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    drop(page, {"config.json": config, "model.safetensors": model / "model.safetensors"})
    looker.fails_with("BertModel tells no depths", "Depth Anything")
    entries = json.loads((model / "config.json").read_text()) | {"reassemble_factors": [2, 1, 1]}
    config.write_text(json.dumps(entries))
    rest = {name: model / name for name in ("model.safetensors", "preprocessor_config.json")}
    drop(page, {"config.json": config} | rest)
    looker.fails_with("reassemble_factors")
    drop(page, {"deep.onnx": notes})
    looker.fails_with("ONNX")
    expect(looker.name).to_contain_text("tells metres")
    before = looker.seen()
    looker.choose(pixels).has_seen(before)
    expect(looker.error).to_be_hidden()


def test_an_onnx_file_cuts_out_the_foreground(looker: Looker, pixels: np.ndarray, tmp_path: Path) -> None:
    channel = TensorProto(dims=[1], data_type=7, name="axes", int64_data=np.array([1]))
    ends = value("input", 1, 3, "height", "width"), value("output", 1, 1, "height", "width")
    data = encoded_model([node("ReduceMean", "input", "axes", output="output")], ends[:1], ends[1:], [channel])
    file = tmp_path / "matte.onnx"
    file.write_bytes(data)
    page, before = looker.page, looker.seen()
    drop(page, {"matte.onnx": file})
    looker.has_seen(before)
    expect(looker.name).to_contain_text("cuts out the foreground")
    before = looker.seen()
    page.get_by_test_id("levels").select_option("unit")
    looker.has_seen(before)
    opacity = looker.saved("removed")[..., 3]
    # The frame has sides of whole 32 pixels, so the map is another one than that of the picture.
    assert abs(opacity - pixels.mean(-1)).mean() < 6


def test_a_model_of_the_hub_is_loaded_at_one_press(looker: Looker, model: Path) -> None:
    page = looker.page
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    page.context.route("https://huggingface.co/**", Hub("depth-anything", **{"Depth-Anything-V2-Small-hf": files}))
    before = looker.seen()
    page.get_by_test_id("preset").first.click()
    looker.has_seen(before)
    expect(page.get_by_test_id("preset").first).to_have_attribute("aria-pressed", "true")


def test_axe_finds_no_violation_in_results(looker: Looker, axe: str) -> None:
    looker.page.evaluate(axe)
    expect_no_violation(looker.page, "with depths")
