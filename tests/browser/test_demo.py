"""`tallow demo`: the installed package serves the pages, and a wheel of itself for them to install."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import START_MS
from tests.browser.sentence_folder import write_sentence_folder

DEMO = [sys.executable, "-m", "tallow", "demo"]


@contextmanager
def running_demo(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `tallow demo`; return the process and the address that it prints."""
    process = subprocess.Popen(
        [*DEMO, "--port=0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    with process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()  # if killed, it would leave its folder behind


@pytest.fixture(scope="module")
def models(model: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a llama2.c model, its tokenizer, and an encoder."""
    folder = tmp_path_factory.mktemp("models")
    for path in (model, tokenizer):
        shutil.copy(path, folder)
    write_sentence_folder(folder / "tiny")
    return folder


@pytest.fixture(scope="module")
def url(pyodide_dir: Path, models: Path) -> Iterator[str]:
    """The address of a demo with the models of a folder."""
    with running_demo(f"--pyodide={pyodide_dir}", f"--model-dir={models}") as (_, url):
        yield url


def test_demo_serves_the_models_of_a_folder(page: Page, url: str) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
    page.goto(url)
    page.get_by_role("link", name="tells a story").click()
    page.get_by_test_id("preset-stories260K").click()
    page.get_by_test_id("temperature").fill("0")
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_have_text("Done.", timeout=START_MS)
    expect(page.get_by_test_id("output")).to_contain_text("Once upon a time, there was a little girl named Lily.")
    expect(page.get_by_test_id("stats")).to_contain_text("wasm")


def test_demo_serves_the_encoders_of_a_folder(page: Page, url: str) -> None:
    page.goto(f"{url}wasm_examples/bert/")
    packaged, offered = page.get_by_test_id("preset-glosses"), page.get_by_test_id("preset-tiny")
    expect(packaged).to_have_attribute("aria-pressed", "true")
    offered.click()
    expect(offered).to_have_attribute("aria-pressed", "true", timeout=START_MS)
    expect(packaged).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)
    page.get_by_test_id("texts").fill("a cat\na dog")
    page.get_by_test_id("query").fill("dog")
    page.get_by_test_id("embed").click()
    expect(page.get_by_test_id("results").locator("li")).to_have_count(2, timeout=START_MS)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_demo_ends_when_asked_and_leaves_no_folder(
    signum: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if signal.getsignal(signum) is signal.SIG_IGN:
        pytest.skip("ignored by a program that runs in the background")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running_demo("--pyodide=cdn") as (process, _):
        assert list(tmp_path.iterdir())
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert errors.endswith("stopped\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--port=65536", "expected 0 to 65535"),
        ("--pyodide=/nowhere", "Pyodide not found"),
        ("--model-dir=/nowhere", "folder not found"),
    ],
)
def test_demo_refuses(option: str, message: str) -> None:
    process = subprocess.run([*DEMO, option], capture_output=True, text=True, timeout=60)
    assert process.returncode == 2
    assert message in process.stderr
    assert "Traceback" not in process.stderr


def test_demo_names_the_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = subprocess.run([*DEMO, "--pyodide=cdn", f"--port={port}"], capture_output=True, text=True, timeout=60)
    assert process.returncode == 2
    assert port in process.stderr
