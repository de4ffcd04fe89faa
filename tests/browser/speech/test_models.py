"""wasm_examples/whisper in Chromium: its models, from the Hub, addresses and files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import START_MS
from tests.browser.dropping import drop
from tests.browser.host import Host, hosting
from tests.browser.hub import Hub
from tests.browser.listening import PAGE, Listener

from tallow.models.built_in import spoken


@pytest.fixture
def host(tiny: Path) -> Iterator[Host]:
    with hosting({"tiny.bin": tiny.read_bytes()}) as host:
        yield host


def test_other_models_and_back(shared: Listener, tiny: Path, sounds: Path) -> None:
    shared.choose(tiny)
    expect(shared.name).to_contain_text("tiny.bin: ")
    expect(shared.page.get_by_test_id("knows")).to_be_hidden()
    folder = Path(spoken.FOLDER)
    shared.choose(*(path for path in folder.iterdir() if path.suffix != ".py" and path.is_file()))
    expect(shared.name).to_contain_text("The chosen files: ")
    shared.hear(sounds / "0.wav").is_done()
    expect(shared.segments).to_have_count(1)
    shared.page.get_by_test_id("model").select_option("")
    expect(shared.name).to_contain_text("The built-in model: ")
    expect(shared.segments).to_have_count(0)  # they belonged to another model
    expect(shared.page.get_by_test_id("knows")).to_contain_text("numbers to 999")
    for name in ("tiny", "base", "small"):
        expect(shared.page.get_by_test_id("model")).to_contain_text(f"Whisper {name}, ")


def test_a_whisper_of_the_hub_at_one_press(shared: Listener, tiny: Path) -> None:
    name = "ggml-tiny-q8_0.bin"
    hub = Hub(owner="ggerganov", **{"whisper.cpp": {name: tiny.read_bytes()}})
    shared.page.context.route("https://huggingface.co/**", hub)
    try:
        expect(shared.page.get_by_test_id("larger")).to_have_text("Load Whisper tiny, 44 MB, 99 languages")
        shared.press("larger")
        expect(shared.name).to_contain_text(f"{name}: ", timeout=START_MS)
        expect(shared.page.get_by_test_id("larger")).to_be_hidden()
        expect(shared.page.get_by_test_id("model")).to_have_value(f"ggerganov/whisper.cpp:{name}")
        shared.page.get_by_test_id("model").select_option("ggerganov/whisper.cpp:ggml-base-q8_0.bin")
        shared.fails_with("has no file ggml-base-q8_0.bin", f"It has {name}.")
    finally:
        shared.page.context.unroute("https://huggingface.co/**")
        shared.page.get_by_test_id("model").select_option("")
        expect(shared.name).to_contain_text("The built-in model: ")


def test_a_broken_download_of_a_model_resumes(shared: Listener, host: Host, tiny: Path) -> None:
    host.breaks_at = len(tiny.read_bytes()) // 2
    shared.page.locator("#choices").evaluate("(it) => { it.open = true; }")
    shared.page.get_by_test_id("model-id").fill(host.url("weak/tiny.bin"))
    shared.press("load")
    expect(shared.name).to_contain_text("tiny.bin: ", timeout=START_MS)
    assert host.requests["/weak/tiny.bin"] == 2
    requests = host.requests.total()
    shared.page.get_by_test_id("model").select_option("")
    expect(shared.name).to_contain_text("The built-in model: ")
    shared.page.locator("#choices").evaluate("(it) => { it.open = true; }")
    shared.press("load")  # from the browser's copy
    expect(shared.name).to_contain_text("tiny.bin: ", timeout=START_MS)
    assert host.requests.total() == requests
    shared.page.get_by_test_id("model").select_option("")
    expect(shared.name).to_contain_text("The built-in model: ")


def test_status_belongs_to_the_latest_load(shared: Listener, tiny: Path) -> None:
    """The message that the other load was stopped must not replace the progress of the new one."""
    shared.page.route("https://huggingface.co/**", lambda _: None)  # never answered
    models = shared.page.get_by_test_id("model")
    models.select_option("openai/whisper-base")
    expect(shared.status).to_have_text("Loading openai/whisper-base")
    shared.page.evaluate("""() => {
        const status = document.querySelector("[data-testid=status]");
        window.said = [];
        window.watch = new MutationObserver(() => window.said.push(status.textContent));
        window.watch.observe(status, { childList: true });
    }""")
    shared.choose(tiny)
    expect(shared.name).to_contain_text("tiny.bin: ", timeout=START_MS)
    statuses = shared.page.evaluate("() => { window.watch.disconnect(); return window.said; }")
    assert statuses == ["Loading tiny.bin", "Ready."]
    models.select_option("openai/whisper-base")
    expect(shared.status).to_have_text("Loading openai/whisper-base")
    shared.press("stop")
    expect(shared.status).to_have_text("Loading stopped.")
    shared.page.unroute("https://huggingface.co/**")


def test_a_model_chosen_during_a_transcription_stops_it(shared: Listener, tiny: Path, sounds: Path) -> None:
    shared.hear(sounds / "long.wav")
    expect(shared.segments.first).to_be_visible(timeout=START_MS)
    drop(shared.page, {"tiny.bin": tiny})
    expect(shared.status).to_have_text("Ready.", timeout=START_MS)
    expect(shared.segments).to_have_count(0)
    expect(shared.page.get_by_test_id("hearing")).to_be_hidden()
    shared.page.get_by_test_id("model").select_option("")
    expect(shared.name).to_contain_text("The built-in model: ")


def test_stop_while_python_starts(page: Page, site: str) -> None:
    page.goto(site + PAGE)
    listener = Listener(page).press("stop")
    expect(listener.status).to_have_text("Python is ready. Choose a model.", timeout=START_MS)
    expect(page.get_by_test_id("progress")).to_be_hidden()


def test_progress_replaces_remarks(shared: Listener, sounds: Path) -> None:
    shared.hear(sounds / "0.wav").is_done()
    for button, remark in (("copy", "The text was copied."), ("download-txt", "Saved 0.txt.")):
        shared.press(button)
        expect(shared.status).to_have_text(remark)
        expect(shared.status).to_contain_text("Done.", timeout=START_MS)


NO_MODEL: dict[str, tuple[dict[str, bytes], str]] = {
    "another": ({"config.json": b'{"model_type": "bert"}'}, "bert"),
    "config": ({"config.json": b"{"}, "config.json"),
    "truncated": ({"model.safetensors": b"\x40\0\0\0\0\0\0\0{"}, "model.safetensors"),
    "page": ({"model.safetensors": b"<!doctype html>"}, "model.safetensors is a web page"),
    "alone": ({"x.pt": b"<!doctype html>"}, "x.pt is a web page"),
    "pickle": ({"x.pt": b"Hello."}, "x.pt is not a PyTorch checkpoint"),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_models_that_cannot_be_loaded(case: str, shared: Listener, tmp_path: Path) -> None:
    changes, messages = NO_MODEL[case]
    if "x.pt" not in changes:
        for path in Path(spoken.FOLDER).iterdir():
            if path.is_file():
                shutil.copy(path, tmp_path)
    for name, content in changes.items():
        (tmp_path / name).write_bytes(content)
    shared.choose(*(path for path in tmp_path.iterdir() if path.suffix != ".py")).fails_with(messages)
    expect(shared.name).to_contain_text("million parameters")  # of the model that is still loaded


def test_a_truncated_checkpoint(shared: Listener, tiny: Path, tmp_path: Path) -> None:
    content = tiny.read_bytes()
    (tmp_path / "cut.bin").write_bytes(content[: len(content) // 2])
    shared.choose(tmp_path / "cut.bin").fails_with("cut.bin is truncated", "Download it again")
