"""web/boot/start.js: Python in a page from the site's snapshot, and a plain start where the snapshot cannot be used."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import START_MS, wait_until

START = """async (hasPython) => {
  const runtime = Runtime.create();
  try {
    const { snapshot, unshared } = await runtime.start(app);
    const { result } = await runtime.call("softmax", { row: [0.5, 1.5] });
    return { snapshot, unshared, result, python: hasPython && await runtime.call("python") };
  } finally {
    runtime.close();
  }
}"""
# As after a visit that has fetched the snapshot.
VISITED = """async () => {
  const { snapshot } = await (await fetch("/site.json")).json();
  if (snapshot) await (await caches.open("tallow-snapshots")).put(`/${snapshot.url}`, new Response(snapshot.sha256));
}"""
# The files of unpacked memories.
FILES = """async () => {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle("tallow-snapshots", { create: true });
  return Array.fromAsync(folder.values());
}"""
# Replace the stored memory.
STORE_MEMORY = f"""async (size) => {{
  const [file] = await ({FILES})();
  const writable = await file.createWritable();
  await writable.truncate(size);
  await writable.close();
}}"""
# Change words of the stored memory.
DAMAGE_MEMORY = f"""async () => {{
  const [file] = await ({FILES})();
  const writable = await file.createWritable({{ keepExistingData: true }});
  await writable.write({{ type: "write", position: 8_000_000, data: new Uint32Array(7).fill(0x5eed) }});
  await writable.close();
}}"""
HASH_MEMORY = f"""async () => {{
  const [file] = await ({FILES})();
  const digest = await crypto.subtle.digest("SHA-256", await (await file.getFile()).arrayBuffer());
  return Array.from(new Uint8Array(digest)).join();
}}"""
FROM_MEMORY = "continued from its stored memory"  # how Python began
FROM_FILES = "started from its files:"
SAYS_HOW = "[...document.querySelectorAll('dt')].some(({ textContent }) => textContent === 'Python')"
FETCHED = """caches.open("tallow-snapshots")
  .then(async (store) => (await store.keys()).some(({ url }) => url.endsWith("snapshot.json.gz")))"""
SOFTMAX = [pytest.approx(0.26894143), pytest.approx(0.73105857)]
REST_MS = 200  # of the tests that wait for it, in place of three seconds
MEMORY, DESCRIPTION = "**/memory.bin.gz", "**/snapshot.json.gz"


def starts(page: Page, site: str, *, python: bool = False, visited: bool = True) -> dict[str, Any]:
    """Start a runtime on the page of the stand-in. Return how, and if asked for what `python` returns."""
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    if visited:
        page.evaluate(VISITED)
    started: dict[str, Any] = page.evaluate(START, python)
    assert started["result"] == SOFTMAX
    return started


def answer_with(page: Page, pattern: str, change: Callable[[bytes], bytes]) -> None:
    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=change(response.body()))

    page.route(pattern, answer)


def rest_soon(page: Page) -> None:
    """Shorten the time without a request after which the worker fetches the snapshot."""

    def change(script: bytes) -> bytes:
        assert script.count(b"REST_MS = 3000") == 1
        return script.replace(b"REST_MS = 3000", b"REST_MS = %d" % REST_MS)

    answer_with(page, "**/web/worker.js", change)


def reason_not_used(page: Page, site: str) -> str:
    """Return why a start does without the snapshot. It ends there: that the rest works is shown by a damaged one."""

    def change(script: bytes) -> bytes:
        assert script.count(b"await plain?.()") == 1
        return script.replace(b"await plain?.()", b"(() => { throw new Error(String(reason)); })()")

    answer_with(page, "**/web/worker.js", change)
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    page.evaluate(VISITED)
    return str(page.evaluate("() => Runtime.create().start(app).then(() => 'used', ({ message }) => message)"))


def described(page: Page, site_dir: Path, **changes: Any) -> None:
    """Change the snapshot's description, and take its hash from site.json."""
    answer_with(
        page, DESCRIPTION, lambda body: gzip.compress(json.dumps(json.loads(gzip.decompress(body)) | changes).encode())
    )
    site = json.loads((site_dir / "site.json").read_text(encoding="utf-8"))
    changed = site | {"snapshot": site["snapshot"] | {"sha256": None}}
    page.route("**/site.json", lambda route: route.fulfill(json=changed))


def test_page_starts_from_the_snapshot_on_shared_memory_and_loads_no_package(page: Page, site: str) -> None:
    names: list[str] = []
    page.on("request", lambda request: names.append(request.url.rpartition("/")[2]))
    started = starts(page, site)
    assert (started["snapshot"], started["unshared"]) == (True, None)
    assert "memory.bin.gz" in names
    assert not [name for name in names if name.endswith((".whl", "stdlib.zip"))]


def test_page_starts_from_the_snapshot_on_plain_memory(page: Page, site: str) -> None:
    answer_with(page, "**/web/worker.js", lambda body: b"delete globalThis.SharedArrayBuffer;" + body)
    started = starts(page, site)
    assert (started["snapshot"], started["unshared"]) == (True, "this browser has no shared memory")


def test_a_first_visit_fetches_the_snapshot_for_the_next(page: Page, site: str) -> None:
    rest_soon(page)
    for expected in (f"{FROM_FILES} its memory is not stored yet", FROM_MEMORY):
        page.goto(f"{site}wasm_examples/llama2c/")
        wait_until(page, SAYS_HOW)
        assert f"Python\n{expected}" in page.inner_text("body").replace("\n\n", "\n")
        wait_until(page, FETCHED)


def test_the_snapshot_is_fetched_when_nothing_runs(page: Page, site: str) -> None:
    rest_soon(page)
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    names: list[str] = []
    page.context.on("request", lambda request: names.append(request.url.rpartition("/")[2]))
    page.evaluate(
        """async () => {
          globalThis.runtime = Runtime.create();
          await runtime.start(app);
          const controller = new AbortController();
          globalThis.stop = () => controller.abort();
          const tokens = runtime.generate({ count: 1e6, pause_s: 0.01 }, { signal: controller.signal });
          (async () => { for await (const token of tokens); })().catch(() => {});
        }"""
    )
    page.wait_for_timeout(5 * REST_MS)
    assert "snapshot.json.gz" not in names
    page.evaluate("stop()")
    wait_until(page, FETCHED)


@pytest.fixture
def visited(page: Page, site: str) -> Page:
    """A page of a browser that has stored the snapshot as during an earlier visit."""
    page.goto(f"{site}standin/")
    page.evaluate("() => { globalThis.visitor = new Worker('visitor.js', { type: 'module' }); }")
    wait_until(page, FETCHED)
    return page


def test_the_next_visit_reads_the_unpacked_memory_and_the_model_from_its_part(visited: Page, site: str) -> None:
    assert len(visited.evaluate(FILES)) == 1
    visited.route(MEMORY, lambda route: route.abort())
    names: list[str] = []
    visited.on("request", lambda request: names.append(request.url.rpartition("/")[2]))
    assert reason_of(visited, site) == FROM_MEMORY
    expect(visited.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)
    assert "stories.tgz" in names
    assert not [name for name in names if name.endswith(".whl")]


def test_stored_memory_with_other_words_or_of_another_size_is_not_used(visited: Page, site: str) -> None:
    intact = visited.evaluate(HASH_MEMORY)
    visited.evaluate(DAMAGE_MEMORY)
    assert visited.evaluate(HASH_MEMORY) != intact
    with visited.expect_request(MEMORY):
        assert reason_of(visited, site) == FROM_MEMORY
    wait_until(visited, FETCHED)
    assert visited.evaluate(HASH_MEMORY) == intact
    visited.evaluate(STORE_MEMORY, 1 << 20)
    assert starts(visited, site, visited=False)["snapshot"] is True


def test_mark_of_another_snapshot_does_not_count(visited: Page, site: str) -> None:
    visited.evaluate(
        """async () => {
          const store = await caches.open("tallow-snapshots");
          for (const request of await store.keys()) await store.put(request, new Response("0".repeat(64)));
        }"""
    )
    assert reason_of(visited, site) == f"{FROM_FILES} its memory is not stored yet"


def test_two_pages_read_the_unpacked_memory_at_once(visited: Page, site: str) -> None:
    visited.context.route(MEMORY, lambda route: route.abort())
    pages = [visited.context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(f"{site}wasm_examples/llama2c/")
    for page in pages:
        wait_until(page, SAYS_HOW)
        assert page.locator("dt:text-is('Python') + dd").inner_text() == FROM_MEMORY


def reason_of(page: Page, site: str) -> str:
    """Open the story page, and return what it says about the snapshot."""
    page.goto(f"{site}wasm_examples/llama2c/")
    wait_until(page, SAYS_HOW)
    return page.locator("dt:text-is('Python') + dd").inner_text()


def limit_storage(page: Page, site: str, size: int) -> None:
    page.goto(f"{site}standin/")
    session = page.context.new_cdp_session(page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": site.rstrip("/"), "quotaSize": size})


def test_browser_that_stores_nothing(page: Page, site: str) -> None:
    """The page says why it starts plainly, and fetches nothing for the next visit."""
    rest_soon(page)
    limit_storage(page, site, 1)
    names: list[str] = []
    page.on("request", lambda request: names.append(request.url.rpartition("/")[2]))
    assert reason_of(page, site) == f"{FROM_FILES} the browser stores nothing: QuotaExceededError: Quota exceeded."
    page.wait_for_timeout(5 * REST_MS)  # longer than the delay of the fetch
    assert "memory.bin.gz" not in names


def test_browser_without_room_for_the_unpacked_memory(page: Page, site: str) -> None:
    rest_soon(page)
    limit_storage(page, site, 1_000_000)
    assert "not stored yet" in reason_of(page, site)
    wait_until(page, FETCHED)
    assert page.evaluate(FILES) == []
    assert reason_of(page, site) == FROM_MEMORY


def test_damaged_snapshot_is_not_used(page: Page, site: str) -> None:
    answer_with(page, MEMORY, lambda body: body[:-1] + bytes([body[-1] ^ 1]))
    started = starts(page, site)
    assert "the snapshot's memory has another SHA-256" in started["snapshot"]
    assert started["unshared"] is None


def test_damaged_description_is_not_used(page: Page, site: str) -> None:
    answer_with(page, DESCRIPTION, lambda body: body + b"\0")
    assert "the snapshot's description has another SHA-256" in reason_not_used(page, site)


def test_damaged_library_for_shared_memory_starts_on_plain_memory(page: Page, site: str) -> None:
    answer_with(page, "**/0-shared.wasm", lambda body: body[: len(body) // 2])
    started = starts(page, site)
    assert started["snapshot"] is True
    assert "CompileError" in started["unshared"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 0}, "the snapshot has format 0, not 3"),
        ({"build": "0" * 64}, "the snapshot is of another build of Pyodide"),
        ({"table": {"before": 1, "after": 2, "free": []}}, "functions, not 1"),
    ],
    ids=["format", "build", "table"],
)
def test_snapshot_of_another_version_is_not_used(
    page: Page, site: str, site_dir: Path, changes: dict[str, Any], reason: str
) -> None:
    described(page, site_dir, **changes)
    assert reason in reason_not_used(page, site)


def test_missing_snapshot_is_not_used(page: Page, site: str) -> None:
    page.route(MEMORY, lambda route: route.fulfill(status=404))
    assert "memory.bin.gz: the server answers 404" in reason_not_used(page, site)


def test_site_without_a_snapshot(page: Page, site: str, site_dir: Path) -> None:
    config = json.loads((site_dir / "site.json").read_text(encoding="utf-8"))
    page.route("**/site.json", lambda route: route.fulfill(json=config | {"snapshot": None}))
    assert "the site has no snapshot" in reason_not_used(page, site)


def test_two_starts_draw_different_numbers(page: Page, site: str) -> None:
    first, second = (starts(page, site, python=True)["python"] for _ in range(2))
    assert len(first["random"]) == 6
    assert not [name for name in first["random"] if first["random"][name] == second["random"][name]]


def test_python_is_that_of_this_tab(page: Page, site: str) -> None:
    """The time zone and the language are the browser's, and what was not imported before can be."""
    browser = page.context.browser
    assert browser
    context = browser.new_context(timezone_id="Asia/Kolkata", locale="fr-FR")
    tab = context.new_page()
    python = starts(tab, site, python=True)["python"]
    context.close()
    assert python["time_zone"] == [-19800, "+05:30" in python["time"]] == [-19800, True]
    assert python["language"] == "fr_FR.UTF-8"
    assert python["folder"] == "/home/pyodide"
    assert python["later"] == ["colorsys", [4, 0, 0, 0], "class Linear(Module):", "numpy", 42]


def wheel_of(name: str, source: str) -> bytes:
    """Return a wheel with one module."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: numpy\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return written.getvalue()


def test_console_from_the_snapshot_installs_packages(page: Page, site: str, pyodide_dir: Path) -> None:
    (micropip,) = pyodide_dir.glob("micropip-*.whl")
    wheels = {micropip.name: micropip.read_bytes(), "greet-1.0-py3-none-any.whl": wheel_of("greet", "WORD = 'hello'")}
    page.route("**/wheels/*", lambda route: route.fulfill(body=wheels[route.request.url.rpartition("/")[2]]))
    page.goto(f"{site}standin/")
    page.evaluate(VISITED)
    with page.expect_request(MEMORY):
        page.goto(f"{site}wasm_examples/console/")
    url = f"{site}wheels"
    cell = f"""
import pyodide_js
await pyodide_js.loadPackage("{url}/{micropip.name}")
import micropip
await micropip.install("{url}/greet-1.0-py3-none-any.whl")
import greet
print(greet.WORD, "numpy" in micropip.list())"""
    page.get_by_test_id("prompt").fill(cell)
    page.get_by_test_id("run").click()
    written = page.get_by_test_id("output").locator(".written")
    expect(written.filter(has_text="hello True")).to_have_count(1, timeout=START_MS)
