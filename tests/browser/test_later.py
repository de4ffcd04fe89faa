"""Parts of Python that load when they are imported, and what a page says if it cannot get them."""

from __future__ import annotations

import gzip

from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.browser.conftest import START_MS

CONSOLE = "wasm_examples/console/"


def run(page: Page, code: str) -> None:
    page.get_by_test_id("prompt").fill(code)
    page.keyboard.press("Enter")


def test_modules_of_every_part_are_imported(page: Page, site: str) -> None:
    requests: list[str] = []
    page.context.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    page.goto(site + CONSOLE)
    output = page.get_by_test_id("output")
    run(page, "import encodings.cp1252, pydoc; b'\\x80'.decode('cp1252')")
    expect(output).to_contain_text("'€'", timeout=START_MS)
    assert "numpy.tgz" not in requests
    run(page, "import numpy.polynomial as P; P.Polynomial([1, 2])(3).item()")
    expect(output).to_contain_text("7.0", timeout=START_MS)
    run(page, "from tallow import models as m; [m.Falcon, m.GPT2, m.Gemma3, m.Mistral, m.Phi3, m.Qwen3][-1].__name__")
    expect(output).to_contain_text("'Qwen3'", timeout=START_MS)
    assert "tallow.tgz" not in requests
    run(page, "import tallow.keras; 40 + len(tl.keras.Sequential([tl.keras.layers.Dense(3)]).layers)")
    expect(output).to_contain_text("41", timeout=START_MS)
    run(page, "from tallow.models import stories; stories.load()[0].num_parameters() > 500_000")
    expect(output).to_contain_text("True", timeout=START_MS)
    parts = [name for name in requests if name.endswith(".tgz") and name != "packages.tgz"]
    assert parts == ["stdlib.tgz", "numpy.tgz", "models.tgz", "tallow.tgz", "stories.tgz"]
    run(page, "import inspect; inspect.getsource(tl.core.tensor).splitlines()[0][:3]")
    expect(output).to_contain_text('\'"""\'', timeout=START_MS)
    run(page, "import no_such_module")
    expect(output).to_contain_text("No module named 'no_such_module'", timeout=START_MS)


def test_part_that_was_replaced_says_to_reload(page: Page, site: str) -> None:
    page.context.route("**/tallow.tgz", lambda route: route.fulfill(status=404, body=""))
    page.goto(site + CONSOLE)
    run(page, "import tallow.keras")
    expect(page.get_by_test_id("output")).to_contain_text("reload the page", timeout=START_MS)
    run(page, "tl.ones(2).sum().item() + 40")  # the session goes on
    expect(page.get_by_test_id("output")).to_contain_text("42.0", timeout=START_MS)
    page.context.unroute("**/tallow.tgz")
    run(page, "import tallow.keras; 'imported ' + 'now'")
    expect(page.get_by_test_id("output")).to_contain_text("imported now", timeout=START_MS)


def test_start_that_was_replaced_says_to_reload(page: Page, site: str) -> None:
    page.context.route("**/start/packages.tgz", lambda route: route.fulfill(status=404, body=""))
    page.goto(site + CONSOLE)
    expect(page.get_by_test_id("error")).to_contain_text("reload the page", timeout=START_MS)
    page.context.unroute("**/start/packages.tgz")
    page.get_by_test_id("error").get_by_role("button", name="Try again").click()
    expect(page.get_by_test_id("status")).to_contain_text("Ready: ", timeout=START_MS)


def test_archive_that_a_host_has_decompressed_is_read(page: Page, site: str) -> None:
    """Some hosts send gzip archives with `Content-Encoding: gzip`, and the browser decompresses them."""

    def label(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=gzip.decompress(response.body()))

    page.context.route("**/start/packages.tgz", label)
    page.goto(site + CONSOLE)
    expect(page.get_by_test_id("status")).to_contain_text("Ready: ", timeout=START_MS)


def test_two_pages_start_at_once(context: BrowserContext, revisited_site: str) -> None:
    pages = [context.new_page(), context.new_page()]
    for page in pages:
        page.goto(f"{revisited_site}wasm_examples/llama2c/")
    for page in pages:
        page.get_by_test_id("steps").fill("8")
        page.get_by_test_id("generate").click()  # while Python starts
    for page in pages:
        expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)
