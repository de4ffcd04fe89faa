"""wasm_examples/describe in Chromium: captions and answers as natively, token by token, and what stops them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support import tokenizer_kinds
from tests.browser.axe import expect_no_violation
from tests.browser.conftest import START_MS
from tests.browser.dropping import drop
from tests.browser.hub import no_hub

import tallow as tl
from tallow import models
from tallow.io import safetensors
from tallow.models import ImageCaptioner

image = pytest.importorskip("PIL.Image")

PAGE = "wasm_examples/describe/"
SIDE = 24
TEXT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 30}
TEXT |= {"max_position_embeddings": 500, "bos_token_id": 1, "sep_token_id": 2, "initializer_range": 0.5}
VISION = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 30}
VISION |= {"image_size": SIDE, "patch_size": 8, "initializer_range": 0.5}


def save(folder: Path, kind: str) -> Path:
    """Save a small BLIP with random weights and a tokenizer."""
    folder.mkdir()
    tokenizer = tokenizer_kinds.KINDS["words-uncased"]()
    (folder / "tokenizer.json").write_text(tokenizer)
    size = len(json.loads(tokenizer)["model"]["vocab"])
    entries = {"model_type": "blip", "architectures": [f"Blip{kind}"], "vision_config": VISION}
    entries |= {"text_config": TEXT | {"vocab_size": size + 10}, "initializer_range": 0.5}
    (folder / "config.json").write_text(json.dumps(entries))
    settings = {"image_processor_type": "BlipImageProcessor", "size": {"height": SIDE, "width": SIDE}}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    tl.manual_seed(5)
    model_class = getattr(models, f"Blip{kind}")
    model = model_class(model_class.config_class.from_entries(entries, "entries"))
    safetensors.save(model.state_dict(), folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("blip")
    return {kind: save(place / kind, kind) for kind in ("ForConditionalGeneration", "ForQuestionAnswering")}


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(4).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


class Looker:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.written = page.get_by_test_id("written")

    def take(self, folder: Path) -> Looker:
        """Drop a model."""
        drop(self.page, {path.name: path for path in folder.iterdir()})
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        return self

    def ask(self, text: str = "", tokens: int = 12) -> str:
        self.page.get_by_test_id("text").fill(text)
        self.page.get_by_test_id("steps").fill(str(tokens))
        count = self.written.count()
        self.page.get_by_test_id("ask").click()
        expect(self.written).to_have_count(count + 1)
        expect(self.status).to_contain_text("Done", timeout=START_MS)
        return str(self.written.first.text_content())


@pytest.fixture(scope="module")
def looker(browser: Browser, revisited_site: str) -> Iterator[Looker]:
    """A page without a model, shared by the tests."""
    context = browser.new_context()
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(revisited_site + PAGE)
    yield Looker(page)
    context.close()
    assert not bugs


def test_words_are_written_as_natively(looker: Looker, folders: dict[str, Path], pixels: np.ndarray) -> None:
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, "PNG")
    picture = {"name": "some.png", "mimeType": "image/png", "buffer": buffer.getvalue()}
    looker.page.get_by_test_id("picture-file").set_input_files(picture)  # type: ignore[arg-type]
    expect(looker.status).to_contain_text("Choose a model", timeout=START_MS)
    looker.take(folders["ForConditionalGeneration"])
    captioner = ImageCaptioner.from_pretrained(folders["ForConditionalGeneration"])
    for begun in ("", "the dog"):
        expected = "".join(captioner.caption(pixels, begun, max_tokens=12))
        assert looker.ask(begun).split() == f"{begun} {expected}".split()
    expect(looker.page.get_by_test_id("stats")).to_contain_text("tokens/s")
    looker.take(folders["ForQuestionAnswering"])
    answerer = ImageCaptioner.from_pretrained(folders["ForQuestionAnswering"])
    expected = "".join(answerer.answer(pixels, "what is it?", max_tokens=12))
    assert looker.ask("what is it?").split() == expected.split()


def test_what_goes_wrong_is_named_and_writing_stops(looker: Looker, folders: dict[str, Path], tmp_path: Path) -> None:
    page = looker.page
    page.get_by_test_id("text").fill("")
    page.get_by_test_id("ask").click()
    expect(looker.error).to_contain_text("answers questions")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    drop(page, {"config.json": config, "model.safetensors": folders["ForQuestionAnswering"] / "model.safetensors"})
    expect(looker.error).to_contain_text("BertModel writes no captions")
    page.get_by_test_id("text").fill("what?")
    page.get_by_test_id("steps").fill("400")
    page.get_by_test_id("temperature").fill("1.5")
    page.get_by_test_id("ask").click()
    page.get_by_test_id("stop").click()
    expect(looker.status).to_have_text("Stopped.")
    page.get_by_test_id("temperature").fill("0")
    assert looker.ask("what is it?", 3) is not None


def test_axe_finds_no_violation_in_results(looker: Looker, axe: str) -> None:
    looker.page.evaluate(axe)
    expect_no_violation(looker.page, "with words")
