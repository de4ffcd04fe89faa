"""The modules that pages import until their first answer: those of site/start_modules.txt, which load first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from support import builds
from tests.browser.conftest import START_MS, serving

from tallow.site.parts import START_MODULES

# For the test: the page's own code cannot ask Python for this.
LIST = """
import js
from pyodide.ffi import create_proxy
js.loaded_modules = create_proxy(lambda: " ".join(sys.modules))
"""
# Files of the page, modules of JavaScript, and what extension modules make.
NOT_IN_ARCHIVES = {
    "__main__", "_cython_3_2_6", "_pyodide_core", "answers", "app", "bridge", "chats", "cython_runtime",
    "datasets", "digits", "files", "huggingface_tokenizers", "inspection", "js", "later", "magics", "memory_check",
    "packages", "points", "progress", "pyodide_js", "pyodide_js._api", "script", "settings", "storyteller",
    "tallow_kernel_threads", "training", "waits", "working_folder",
}  # fmt: skip
# Large, and of no use to a page's first answer; the second set not to those two pages'.
UNWANTED = {
    "ctypes.util", "email", "http", "importlib.metadata", "multiprocessing", "numpy.ctypeslib", "numpy.f2py",
    "numpy.ma", "numpy.polynomial", "numpy.testing", "pydoc", "tallow.cli", "tallow.keras", "tallow.site",
    "tallow.training", "tallow_cuda", "tarfile", "unittest", "xml",
}  # fmt: skip
UNWANTED_HERE = {"numpy.fft", "tallow.data", "tallow.distributed", "tallow.models.gguf.models", "urllib"}
MODELS = {f"tallow.models.built_in.{name}" for name in ("emoji", "glosses", "spoken", "stories")}
FRONT = "front page"
LEAN = (FRONT, "console", "llama2c")
START = set(START_MODULES.read_text(encoding="utf-8").split())
LATER = "/runtime/python-"


class Visit(NamedTuple):
    """The modules in Python, and the parts that were loaded later."""

    modules: set[str]
    parts: set[str]


def tell_a_story(page: Page, folder: Path) -> None:
    page.get_by_test_id("steps").fill("8")
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)


def chat(page: Page, folder: Path) -> None:
    page.get_by_test_id("max-tokens").fill("8")
    page.get_by_test_id("example").first.click()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)


def run_a_cell(page: Page, folder: Path) -> None:
    page.get_by_test_id("prompt").fill("(tl.ones(2, 3) @ tl.ones(3, 2)).sum().item()")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("output")).to_contain_text("12.0", timeout=START_MS)


def train(page: Page, folder: Path) -> None:
    page.get_by_test_id("train").click()
    expect(page.get_by_test_id("stats")).to_contain_text("loss", ignore_case=True, timeout=START_MS)


def transcribe(page: Page, folder: Path) -> None:
    page.get_by_test_id("sample").first.click()
    expect(page.get_by_test_id("status")).to_contain_text("Done", timeout=START_MS)


def compare(page: Page, folder: Path) -> None:
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)


def find(page: Page, folder: Path) -> None:
    expect(page.get_by_test_id("counts")).to_contain_text(".", timeout=START_MS)


def search(page: Page, folder: Path) -> None:
    expect(page.get_by_test_id("result").first).to_be_visible(timeout=START_MS)


def tell_on_the_front_page(page: Page, folder: Path) -> None:
    page.get_by_test_id("tell").click()
    expect(page.get_by_test_id("measured")).to_be_visible(timeout=START_MS)


# The page of ONNX models is not among them: it names the part of Python that has the operators.
ANSWERS = {
    FRONT: tell_on_the_front_page,
    "bert": compare,
    "chat": chat,
    "console": run_a_cell,
    "find": find,
    "llama2c": tell_a_story,
    "search": search,
    "train": train,
    "whisper": transcribe,
}


@pytest.fixture(scope="module")
def listing_site(site_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site, whose Python tells its modules."""
    folder = builds.linked_copy(site_dir, tmp_path_factory.mktemp("listing") / "site")
    builds.change(folder / "web" / "bridge.py", lambda script: script + LIST)
    with serving(folder) as server:
        yield server.url


@pytest.fixture(scope="module")
def visits(browser: Browser, listing_site: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Visit]:
    """Each page after its first answer."""
    found = {}
    for name, answer in ANSWERS.items():
        context = browser.new_context()
        page = context.new_page()
        requested: list[str] = []
        context.on("request", lambda request, requested=requested: requested.append(request.url))
        page.goto(listing_site if name == FRONT else f"{listing_site}wasm_examples/{name}/")
        answer(page, tmp_path_factory.mktemp("model"))
        modules = set(page.workers[0].evaluate("loaded_modules()").split())
        found[name] = Visit(
            modules, {url.rpartition("/")[2] for url in requested if LATER in url and "/start/" not in url}
        )
        context.close()
    return found


@pytest.mark.parametrize("name", ANSWERS)
def test_first_answer_needs_the_start_only(visits: dict[str, Visit], name: str) -> None:
    modules, parts = visits[name]
    assert sorted(modules - START - MODELS - NOT_IN_ARCHIVES) == []
    stories = {"stories.tgz"}
    models = {
        **dict.fromkeys((FRONT, "chat", "llama2c"), stories),
        "bert": {"glosses.tgz"},
        "search": {"emoji.tgz"},
        "whisper": {"spoken.tgz"},
    }
    assert parts == models.get(name, set())
    assert sorted(modules & (UNWANTED | UNWANTED_HERE if name in LEAN else UNWANTED)) == []


def test_start_has_nothing_that_no_page_imports(visits: dict[str, Visit]) -> None:
    assert sorted(START - set().union(*(visit.modules for visit in visits.values()))) == []
