"""The service worker: after one visit the site works without its server, and an update is taken at the next visit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import START_MS, wait_for, wait_until
from tests.browser.plain_host import serving_plainly

ISOLATING = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
KEPT = """
async () => (await (await caches.open("tallow-site")).keys()).map(({ url }) => url.slice(document.baseURI.length))
"""
STORY = "wasm_examples/llama2c/"


@pytest.fixture
def pages(site_dir: Path, tmp_path: Path) -> Path:
    """A copy of the site without its runtime."""
    return shutil.copytree(site_dir, tmp_path / "site", ignore=shutil.ignore_patterns("runtime"))


def open_controlled(page: Page, url: str) -> None:
    """Open a page, which the service worker reloads once."""
    page.goto(url)
    wait_until(
        page, "crossOriginIsolated && document.readyState === 'complete' && !!navigator.serviceWorker.controller"
    )


def change(folder: Path, name: str, old: str, new: str) -> None:
    """Publish another version of a file."""
    file = folder / name
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    site = json.loads((folder / "site.json").read_text())
    (folder / "site.json").write_text(json.dumps(site | {"version": f"{site['version']}+"}))


def test_update_is_taken_at_the_next_visit(page: Page, pages: Path) -> None:
    with serving_plainly(pages) as host:
        open_controlled(page, f"{host.url}{STORY}")
        open_controlled(page, host.url)
        change(pages, "index.html", "Deep learning in a browser tab, and on a GPU</h1>", "Version two</h1>")
        change(pages, f"{STORY}index.html", "A small Llama tells a story</h1>", "Version two</h1>")
        page.goto(host.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("Version two")
        # A page that was not opened since is renewed too, so that it fits the modules that it shares.
        story = f"{host.url}{STORY}"
        wait_until(page, "async (url) => (await (await caches.match(url)).text()).includes('Version two')", story)
        host.stop()
        page.goto(story)
        expect(page.get_by_role("heading", level=1)).to_have_text("Version two")


def test_copies_are_deleted_only_if_an_update_lacks_them(page: Page, pages: Path) -> None:
    answers = {500: True, 503: True, 404: False, 410: False}  # and whether a copy is kept
    files, following = {status: f"web/{status}.js" for status in answers}, "web/wav.js"  # renewed in this order
    put = "async (url) => (await caches.open('tallow-site')).put(url, new Response('old'))"
    with serving_plainly(pages) as host:
        open_controlled(page, host.url)
        wait_until(page, f"async () => (await ({KEPT})()).includes('site.json')")
        for name in (*files.values(), following):
            page.evaluate(put, host.url + name)
        for status, file in files.items():
            host.fails[file] = status
        change(pages, "index.html", "Deep learning", "Deep learning")
        page.reload()
        wait_for(page, lambda: any(path.endswith(following) for path in host.requests))
        kept = page.evaluate(KEPT)
        for status, file in files.items():
            assert any(path.endswith(file) for path in host.requests)
            assert (file in kept) is answers[status]


def test_page_that_was_never_opened_says_so(page: Page, pages: Path) -> None:
    with serving_plainly(pages) as host:
        open_controlled(page, host.url)
        host.stop()
        page.goto(f"{host.url}wasm_examples/train/")
        expect(page.get_by_role("heading")).to_have_text("You are offline")
        page.get_by_role("link").click()
        expect(page.get_by_test_id("tell")).to_be_visible()


def test_folder_without_its_slash_is_redirected(page: Page, pages: Path) -> None:
    with serving_plainly(pages) as host:
        open_controlled(page, host.url)
        page.goto(f"{host.url}{STORY}".rstrip("/"))
        assert page.url == f"{host.url}{STORY}"


def test_copies_of_the_last_runtime_are_deleted(page: Page, pages: Path) -> None:
    put = "async (name) => (await caches.open('tallow-site')).put(new URL(name, document.baseURI).href, new Response())"
    with serving_plainly(pages) as host:
        open_controlled(page, host.url)
        current = json.loads((pages / "site.json").read_text())["parts"]
        page.evaluate(put, "runtime/python-00000000/start/stdlib.zip")
        page.evaluate(put, f"{current}start/stdlib.zip")
        wait_until(page, "async () => Boolean(await caches.match(new URL('site.json', document.baseURI).href))")
        change(pages, "index.html", "Deep learning", "Deep learning")
        page.reload()
        wait_until(page, f"async () => !(await ({KEPT})()).includes('runtime/python-00000000/start/stdlib.zip')")
        assert f"{current}start/stdlib.zip" in page.evaluate(KEPT)


DAMAGE = """
async (end) => {
  const store = await caches.open("tallow-site");
  const { url } = (await store.keys()).find(({ url }) => url.endsWith(end));
  const bytes = new Uint8Array(await (await store.match(url)).arrayBuffer());
  bytes[bytes.length >> 1] ^= 1;
  await store.put(url, new Response(bytes, { headers: { "Content-Type": "application/wasm" } }));
}
"""
DIGEST = """
async (end) => {
  const store = await caches.open("tallow-site");
  const { url } = (await store.keys()).find(({ url }) => url.endsWith(end)) ?? {};
  if (!url) return null;
  const digest = await crypto.subtle.digest("SHA-256", await (await store.match(url)).arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
"""


def files_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the runtime, as the site says."""
    return dict(json.loads((folder / "site.json").read_text())["files"])


def digest_of(folder: Path, end: str) -> str:
    return next(digest for path, digest in files_of(folder).items() if path.endswith(end))


def test_damaged_copy_of_the_runtime_is_fetched_again_and_a_story_is_told_without_the_server(
    page: Page, site_dir: Path
) -> None:
    name = "pyodide-shared.asm.wasm"
    with serving_plainly(site_dir) as host:
        open_controlled(page, host.url)
        page.get_by_test_id("tell").click()
        expect(page.get_by_test_id("measured")).to_be_visible(timeout=START_MS)
        story = page.get_by_test_id("output").text_content()
        wait_until(page, f"async () => (await ({DIGEST})('{name}')) === '{digest_of(site_dir, name)}'")
        kept = {path for path in page.evaluate(KEPT) if path in files_of(site_dir)}
        page.evaluate(DAMAGE, name)
        assert page.evaluate(DIGEST, name) != digest_of(site_dir, name)
        host.requests.clear()
        page.reload()
        page.get_by_test_id("tell").click()
        expect(page.get_by_test_id("measured")).to_be_visible(timeout=START_MS)
        wait_until(page, f"async () => (await ({DIGEST})('{name}')) === '{digest_of(site_dir, name)}'")
        asked = [path for path in kept if f"/{site_dir.name}/{path}" in host.requests]
        assert [path.rpartition("/")[2] for path in asked] == [name], "intact copies are not asked for"
        host.stop()
        page.close()
        again = page.context.new_page()
        again.goto(host.url)
        again.get_by_test_id("tell").click()
        expect(again.get_by_test_id("measured")).to_be_visible(timeout=START_MS)
        assert again.get_by_test_id("output").text_content() == story
        assert again.evaluate("crossOriginIsolated")


def test_other_content_is_not_kept_as_a_file_of_the_runtime(page: Page, site_dir: Path) -> None:
    """A page of the network, or the start of the file."""
    name = "pyodide.mjs"
    with serving_plainly(site_dir) as host:
        open_controlled(page, host.url)
        for content in (b"<!doctype html><title>Log in to this network</title>", b"\0asm\1\0\0\0"):
            host.says[name] = content
            page.get_by_test_id("tell").click()
            expect(page.get_by_test_id("error")).to_be_visible()
            wait_until(page, f"async () => !(await ({DIGEST})('{name}'))")
            page.reload()
        host.says.clear()
        page.get_by_test_id("tell").click()
        expect(page.get_by_test_id("measured")).to_be_visible(timeout=START_MS)
        wait_until(page, f"async () => (await ({DIGEST})('{name}')) === '{digest_of(site_dir, name)}'")


def test_worker_leaves_an_address_that_is_no_longer_the_site(page: Page, pages: Path) -> None:
    with serving_plainly(pages) as host:
        open_controlled(page, host.url)
        (pages / "site.json").unlink()
        (pages / "index.html").write_text("<!doctype html><title>Another site</title>")
        page.goto(host.url)
        wait_until(page, "async () => (await navigator.serviceWorker.getRegistrations()).length === 0")
        assert not page.evaluate("caches.has('tallow-site')")


@pytest.fixture
def named_host(launch: Callable[..., Browser], pages: Path) -> Iterator[tuple[Page, str, Callable[[], None]]]:
    """A page, the address of a host with a name and the headers that isolate, and a function that stops the host."""
    with serving_plainly(pages, ISOLATING) as host:
        origin = f"http://tallow.test:{host.port}"
        browser = launch(
            "--host-resolver-rules=MAP tallow.test 127.0.0.1", f"--unsafely-treat-insecure-origin-as-secure={origin}"
        )
        page = browser.new_context().new_page()
        yield page, f"{origin}/{pages.name}/", host.stop
        browser.close()


def test_host_with_headers_needs_no_reload(named_host: tuple[Page, str, Callable[[], None]]) -> None:
    page, url, stop = named_host
    loads: list[str] = []
    page.on("load", lambda: loads.append(page.url))
    page.goto(url)
    wait_until(page, f"async () => (await ({KEPT})()).includes('web/tiny-training.js')")
    wait_until(page, f"async () => (await ({KEPT})()).includes('')")
    assert len(loads) == 1
    expect(page.get_by_test_id("kept")).to_be_visible()
    stop()
    page.goto(url)
    expect(page.get_by_test_id("tell")).to_be_visible()


def test_server_of_this_computer_gets_no_worker(page: Page, site: str) -> None:
    """`tallow demo` isolates. Other servers will use its address."""
    page.goto(site, wait_until="networkidle")
    assert page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0
    expect(page.get_by_test_id("kept")).to_be_hidden()  # the front page does not promise it
