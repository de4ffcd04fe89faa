"""web/: the protocol between page and worker, and loading of bytes into Python, without a model."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.conftest import wait_until
from tests.browser.host import Host, hosting

DATA = bytes(range(256)) * 8192  # 2 MiB: several chunks
OTHER = b"smaller"
FILES = {"data": DATA, "other": OTHER, "refused": b"refuse me" + DATA}

LOAD = """
async ({ urls, abortAfter }) => {
  const progress = [];
  const controller = new AbortController();
  const files = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }]));
  const onProgress = (report) => {
    progress.push(report);
    if (abortAfter !== null && report.loaded > abortAfter) controller.abort();
  };
  try {
    return { ...(await runtime.load(files, { onProgress, signal: controller.signal })), progress };
  } catch (error) {
    return { error: error.name, message: error.message, hint: error.hint, progress };
  }
}
"""

GENERATE = """
async ({ options, stopAt, abortAfterMs }) => {
  const controller = new AbortController();
  let text = "", stats = {}, messages = 0, abortedAt;
  if (abortAfterMs !== null) {
    setTimeout(() => { abortedAt = performance.now(); controller.abort(); }, abortAfterMs);
  }
  try {
    for await (const token of runtime.generate(options, { signal: controller.signal })) {
      text += token.text;
      stats = token.stats;
      messages += 1;
      if (messages === stopAt) break;
    }
    return { text, stats, messages };
  } catch (error) {
    const { name, message, hint, details } = error;
    return { text, stats, messages, error: name, message, hint, details, stopped_ms: performance.now() - abortedAt };
  }
}
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with hosting(FILES) as host:
        yield host


@pytest.fixture(scope="module")
def standin(browser: Browser, site: str) -> Iterator[Page]:
    """A page with a running worker and the demo standin/app.py."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    page.evaluate("async () => { window.runtime = Runtime.create(); window.started = await runtime.start(app); }")
    yield page
    context.close()


@pytest.fixture
def runtime(standin: Page) -> Page:
    """The same page, with an empty cache."""
    standin.evaluate("async () => { for (const name of await caches.keys()) await caches.delete(name); }")
    return standin


def load(page: Page, abort_after: int | None = None, **urls: str) -> dict[str, Any]:
    return page.evaluate(LOAD, {"urls": urls, "abortAfter": abort_after})


def generate(page: Page, *, stop_at: int = 0, abort_after_ms: int | None = None, **options: object) -> dict[str, Any]:
    return page.evaluate(GENERATE, {"options": options, "stopAt": stop_at, "abortAfterMs": abort_after_ms})


def expected_report(data: bytes) -> list[object]:
    """Return the stand-in's report about a file that was loaded completely."""
    return [len(data), hashlib.sha256(data).hexdigest()]


def cached_responses(page: Page) -> int:
    """Return the number of downloads in the browser's cache, complete or not."""
    return page.evaluate(
        "async () => (await Promise.all((await caches.keys()).filter((name) => name !== 'tallow-snapshots').map("
        "async (name) => (await (await caches.open(name)).keys()).length))).reduce((a, b) => a + b, 0)"
    )


def stages(result: dict[str, Any]) -> set[str]:
    return {report["stage"] for report in result["progress"]}


def test_page_is_isolated_and_start_says_what_runs(runtime: Page) -> None:
    assert runtime.evaluate("crossOriginIsolated")
    started = runtime.evaluate("started")
    assert started["python"].startswith("3.14.")
    assert {"fetch", "python", "import"} <= started["seconds"].keys()


def test_text_arrives_complete_and_in_order(runtime: Page) -> None:
    result = generate(runtime, count=2000)
    assert result["text"] == "".join(f"{i} " for i in range(2000))
    assert result["stats"]["made"] == 2000
    assert result["messages"] < 1000, "steps within one frame must share a message"


def test_first_step_is_a_message_of_its_own(runtime: Page) -> None:
    assert generate(runtime, stop_at=1, count=5)["text"] == "0 "


def test_nothing_to_generate(runtime: Page) -> None:
    assert generate(runtime, count=0) == {"text": "", "stats": {}, "messages": 0}


def test_python_error_arrives_with_hint_and_traceback(runtime: Page) -> None:
    result = generate(runtime, count=5, fail_at=2)
    assert result["text"] == "0 1 "
    assert (result["error"], result["message"], result["hint"]) == (
        "CheckpointError",
        "failed on purpose",
        "ask for less",
    )
    assert "app.py" in result["details"]


def test_bytecode_of_the_site_has_no_columns(runtime: Page) -> None:
    """They are a fifth of its bytes. Code that the user writes has them."""
    assert runtime.evaluate("runtime.call('columns')") == [False, False, False, True]


def test_bug_in_python_is_called_one(runtime: Page) -> None:
    result = generate(runtime, no_such_option=1)
    assert result["error"] == "TypeError"
    assert "no_such_option" in result["message"]
    assert "bug" in result["hint"]


def test_leaving_the_loop_stops_python(runtime: Page) -> None:
    before = generate(runtime, count=1)["stats"]["closed"]
    generate(runtime, stop_at=3, count=1_000_000, pause_s=0.001)
    assert generate(runtime, count=1)["stats"]["closed"] == before + 2


def test_abort_takes_effect_within_frames(runtime: Page) -> None:
    result = generate(runtime, abort_after_ms=200, count=1_000_000, pause_s=0.001)
    assert result["error"] == "AbortError"
    assert result["text"].startswith("0 1 2 ")
    assert result["stopped_ms"] < 1000


def test_abort_before_the_first_step(runtime: Page) -> None:
    assert generate(runtime, abort_after_ms=0, count=10, pause_s=0.05)["error"] == "AbortError"
    assert generate(runtime, count=2)["text"] == "0 1 ", "the worker must keep running"


def test_abort_gives_its_reason(runtime: Page) -> None:
    """As with fetch: the pending promise rejects with the reason passed to `abort`."""
    assert (
        runtime.evaluate("""async () => {
      const controller = new AbortController();
      try {
        for await (const _ of runtime.generate({ count: 1e6, pause_s: 0.001 }, { signal: controller.signal }))
          controller.abort(new RangeError("enough"));
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
    }""")
        == "RangeError: enough"
    )


CALL = """
async ({ method, keywords, interruptAfterMs }) => {
  const events = [];
  const onEvent = (value) => {
    events.push(value);
    if (interruptAfterMs !== null) setTimeout(() => runtime.interrupt(), interruptAfterMs);
  };
  const emits = method === "count" || method === "loop_forever";
  try {
    const result = await runtime.call(method, keywords, emits ? { onEvent } : {});
    return { result, events };
  } catch (error) {
    return { error: error.name, message: error.message, hint: error.hint };
  }
}
"""


def call(page: Page, method: str, *, interrupt_after_ms: int | None = None, **keywords: object) -> dict[str, Any]:
    return page.evaluate(CALL, {"method": method, "keywords": keywords, "interruptAfterMs": interrupt_after_ms})


def test_call_carries_plain_values_and_arrays(runtime: Page) -> None:
    described = """async () => {
      const it = await runtime.call("describe", { numbers: [1, 2.5], text: "ü", nested: { a: [1, null] } });
      const typed = (data) => [data.constructor.name, ...data];
      return { ...it, array: typed(it.array), bytes: typed(it.bytes) };
    }"""
    assert runtime.evaluate(described) == {
        "sum": 3.5,
        "array": ["Float32Array", 2, 5],
        "bytes": ["Uint8Array", 0, 255],
        "rest": {"text": "ü", "nested": {"a": [1, None]}},
        "none": None,
    }


def test_kernels_use_relaxed_simd(runtime: Page) -> None:
    """Chromium supports relaxed SIMD since version 114; the plain library would work too, but slower."""
    assert call(runtime, "softmax", row=[0.0, math.log(3.0)]) == {
        "result": {"result": [pytest.approx(0.25), pytest.approx(0.75)], "library": "wasm relaxed-simd"},
        "events": [],
    }


@pytest.mark.parametrize("method", ["fail", "fail_later"])
def test_call_that_fails(runtime: Page, method: str) -> None:
    assert call(runtime, method) == {"error": "CheckpointError", "message": "failed on purpose", "hint": "ask for less"}


def test_private_methods_cannot_be_called(runtime: Page) -> None:
    assert "is private" in call(runtime, "__init__")["message"]


def test_events_come_before_the_result_and_while_python_runs(runtime: Page) -> None:
    assert call(runtime, "count", to=3) == {"result": "counted", "events": [{"at": 0}, {"at": 1}, {"at": 2}]}
    live = """() => new Promise((resolve) => {
      const times = [];
      const onEvent = () => times.push(performance.now());
      runtime.call("count", { to: 100 }, { onEvent }).then(() => resolve(times.at(-1) - times[0]));
    })"""
    assert runtime.evaluate(live) > 100, "100 events, 10 ms apart, must arrive one by one"


def test_calls_are_answered_while_generate_runs(runtime: Page) -> None:
    result = runtime.evaluate("""async () => {
      const controller = new AbortController();
      let answer;
      try {
        for await (const token of runtime.generate({ count: 1_000_000, pause_s: 0.001 }, { signal: controller.signal }))
          answer ??= runtime.call("describe", { numbers: [] }).then(() => controller.abort());
      } catch (error) {
        return error.name;
      }
    }""")
    assert result == "AbortError"


def test_interrupt_ends_a_loop_without_end(runtime: Page) -> None:
    assert call(runtime, "loop_forever", interrupt_after_ms=50) == {"result": "interrupted", "events": ["begun"]}
    assert call(runtime, "count", to=1)["result"] == "counted", "the loop must be the only thing interrupted"


def test_download_arrives_whole_and_is_kept(runtime: Page, host: Host) -> None:
    url = host.url("plain/data")
    before = host.requests["/plain/data"]
    first = load(runtime, model=url)
    assert first["info"]["model"] == expected_report(DATA)
    assert first["progress"][-2]["loaded"] == first["progress"][-2]["total"] == len(DATA)
    again = load(runtime, model=url)
    assert again["info"]["model"] == expected_report(DATA)
    assert stages(first) == {"download", "model"}
    assert stages(again) == {"cache", "model"}
    assert host.requests["/plain/data"] == before + 1


def test_several_files_in_one_load(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("plain/data"), tokenizer=host.url("plain/other"))
    assert result["info"] == {"model": expected_report(DATA), "tokenizer": expected_report(OTHER)}
    assert result["bytes"] == len(DATA) + len(OTHER)


def test_size_is_not_needed(runtime: Page, host: Host) -> None:
    assert load(runtime, model=host.url("chunked/data"))["info"]["model"] == expected_report(DATA)


def test_a_file_of_unknown_size_is_whole_after_its_memory_has_grown(runtime: Page, host: Host) -> None:
    """Bytes that no earlier test has left in Python's memory."""
    data = host.files["unlike"] = random.Random(0).randbytes(5 << 20)
    assert load(runtime, model=host.url("chunked/unlike"))["info"]["model"] == expected_report(data)


DAMAGE = """
async ([cache, url]) => {
  const store = await caches.open(cache);
  const bytes = new Uint8Array(await (await store.match(url)).arrayBuffer());
  bytes[bytes.length - 1] ^= 1;
  await store.put(url, new Response(bytes));
}
"""


@pytest.mark.parametrize(("name", "part"), [("other", 0), ("large", 1)])
def test_damaged_copy_is_downloaded_again(name: str, part: int, runtime: Page, host: Host) -> None:
    """In a file of one part, which the reading thread checks, and in one of two, which a worker checks."""
    data = OTHER if name == "other" else host.files.setdefault("large", DATA * 9)
    url = host.url(f"plain/{name}")
    load(runtime, model=url)
    runtime.evaluate(DAMAGE, ["tallow-downloads", f"{url}?tallow-part={part}"])
    result = load(runtime, model=url)
    assert result["info"]["model"] == expected_report(data)
    assert "damaged" in result["notice"]
    again = load(runtime, model=url)
    assert (again["notice"], stages(again)) == (None, {"cache", "model"})


READ = """
async ([url, type]) => {
  const { ByteReader } = await import(url);
  const chunks = [[1, 2, 3, 4, 5], [6], [7, 8, 9]].map((numbers) => Uint8Array.from(numbers));
  const pull = (controller) => {
    if (chunks.length) return controller.enqueue(chunks.shift());
    controller.close();
    controller.byobRequest?.respond(0);
  };
  const reader = new ByteReader(new ReadableStream({ type, pull }));
  const found = [];
  for (let chunk = new Uint8Array(2); chunk.length; found.push(...chunk))
    chunk = await reader.read(new Uint8Array(chunk.buffer));
  await reader.cancel();
  return found;
}
"""


@pytest.mark.parametrize("type", ["bytes", None])
def test_streams_are_read_into_memory(type: str | None, runtime: Page, site: str) -> None:
    """Not every browser has streams of bytes for stored downloads."""
    read = READ if type else READ.replace("type, pull", "pull")
    assert runtime.evaluate(read, [f"{site}web/download.js", type]) == [*range(1, 10)]


HASH = """
async ([url, isForbidden]) => {
  const { HashWorker } = await import(url);
  const RealWorker = globalThis.Worker;
  const failing = URL.createObjectURL(new Blob(["throw new Error()"]));
  if (isForbidden) globalThis.Worker = class { constructor() { return new RealWorker(failing); } };
  const worker = new HashWorker();
  globalThis.Worker = RealWorker;
  const { digest } = SubtleCrypto.prototype;
  SubtleCrypto.prototype.digest = () => Promise.reject(); // not on this thread
  while (!isForbidden && !(await worker.hash(new Uint8Array(1)).catch(() => null))) {
    await new Promise((go) => setTimeout(go, 10));
  }
  if (isForbidden) SubtleCrypto.prototype.digest = digest;
  const parts = [1_100_001, 1].map((length, i) => new Uint8Array(length).fill(i));
  const answers = await Promise.all(parts.map((part) => worker.hash(part)));
  SubtleCrypto.prototype.digest = digest;
  worker.close();
  return answers.map(({ hash, memory }) => [hash, memory.byteLength]);
}
"""


@pytest.mark.parametrize("is_forbidden", [False, True])
def test_blocks_are_hashed_in_a_worker_or_without(is_forbidden: bool, runtime: Page, site: str) -> None:
    data = bytes(1_100_001)
    blocks = [data[i : i + (1 << 19)] for i in range(0, len(data), 1 << 19)]
    expected = [hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in part)) for part in (blocks, [b"\1"])]
    answers = runtime.evaluate(HASH, [f"{site}web/sha256.js", is_forbidden])
    assert answers == [[each.hexdigest(), size] for each, size in zip(expected, (len(data), 1), strict=True)]


@pytest.mark.parametrize("record", ['{"size": 7, "version": null, "sha256": "00"}', '{"parts": ["', "7"])
def test_copy_whose_record_has_no_hashes_is_downloaded_again(record: str, runtime: Page, host: Host) -> None:
    url = host.url("plain/other")
    load(runtime, model=url)
    put = "async ([url, it]) => (await caches.open('tallow-downloads-records')).put(url, new Response(it))"
    runtime.evaluate(put, [url, record])
    assert stages(load(runtime, model=url)) == {"download", "model"}


def test_full_storage_does_not_stop_a_download(runtime: Page, host: Host, site: str) -> None:
    devtools = runtime.context.new_cdp_session(runtime)
    origin = site.rstrip("/")
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 100_000})
    try:
        result = load(runtime, model=host.url("plain/data"), tokenizer=host.url("chunked/data"))
    finally:
        devtools.send("Storage.overrideQuotaForOrigin", {"origin": origin})
        devtools.detach()
    assert result["info"] == {"model": expected_report(DATA), "tokenizer": expected_report(DATA)}
    assert "not kept" in result["notice"]
    assert cached_responses(runtime) == 0


def test_refused_head_ends_the_download_and_keeps_nothing(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("slow/refused"))
    assert (result["error"], result["hint"]) == ("CheckpointError", "send another")
    assert str(len(FILES["refused"])) in result["message"], "the size is known before the check runs"
    assert cached_responses(runtime) == 0


def test_missing_file(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("plain/nothing"))
    assert result["error"] == "DownloadError"
    assert "404" in result["message"]
    assert cached_responses(runtime) == 0


def test_host_without_cors(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("closed/data"))
    assert result["error"] == "DownloadError"
    assert "CORS" in result["hint"]


def test_unreachable_host(runtime: Page) -> None:
    assert load(runtime, model="http://127.0.0.1:9/data")["error"] == "DownloadError"


def test_dropped_connection_reports_the_received_size(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("cut/data"))
    assert result["error"] == "ReadError"
    assert "of 2.1 MB" in result["message"]
    assert cached_responses(runtime) == 0


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_broken_connection_resumes(
    knows_ranges: bool, runtime: Page, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without range support sends the whole file again: the part already received is skipped."""
    monkeypatch.setattr(host, "knows_ranges", knows_ranges)
    data = host.files["long"] = DATA * 10
    host.breaks_at = 15_000_001  # a browser loses a few of the last MB, but not all
    result = load(runtime, model=host.url("weak/long"))
    assert result["info"]["model"] == expected_report(data)
    first, rest = host.ranges[-2:]
    assert first is None
    assert re.fullmatch(r"bytes=[1-9]\d*-", rest or "")
    assert result["progress"][-2]["loaded"] == len(data)


@pytest.mark.parametrize(
    ("content_range", "is_resumed"),
    [
        ("bytes {start}-{end}/{size}", True),
        ("bytes {before}-{end}/{size}", False),
        ("bytes {start}-{end}/{larger}", False),
        ("bytes */{size}", False),
    ],
    ids=["right", "other start", "other total", "no start"],
)
@pytest.mark.parametrize("is_later_visit", [False, True])
def test_wrong_part_starts_the_download_anew(
    content_range: str,
    is_resumed: bool,
    is_later_visit: bool,
    runtime: Page,
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "content_range", content_range)
    data = host.files["large"] = DATA * 12
    host.breaks_at, host.goes_down = len(data) - 1, is_later_visit
    result = load(runtime, model=host.url("weak/large"))
    if is_later_visit:
        assert result["error"] == "ReadError"
        host.is_down = host.goes_down = False
        result = load(runtime, model=host.url("weak/large"))
    assert result["info"]["model"] == expected_report(data)
    asked = [None if each is None else "part" for each in host.ranges[-3:]]
    assert asked[-2:] == ([None, "part"] if is_resumed else ["part", None])
    assert stages(load(runtime, model=host.url("weak/large"))) == {"cache", "model"}


def test_whole_file_without_a_version_is_not_joined_to_a_part(
    runtime: Page, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may have another file by now, of the same size."""
    monkeypatch.setattr(host, "knows_ranges", False)
    monkeypatch.setattr(host, "version", None)
    first = DATA * 10
    host.files["long"] = first
    host.breaks_at, host.then = 15_000_001, {"long": first[::-1]}
    assert load(runtime, model=host.url("weak/long"))["info"]["model"] == expected_report(first[::-1])


@pytest.mark.parametrize("has_changed", [False, True])
def test_download_resumes_in_a_later_visit(has_changed: bool, runtime: Page, host: Host) -> None:
    """Downloads are cached in parts of 16 MiB, which are valid until the file changes."""
    part = 16 << 20
    data = host.files["large"] = DATA * 12  # less than two parts, much more than one
    host.breaks_at, host.goes_down = len(data) - 1, True
    result = load(runtime, model=host.url("weak/large"))
    assert result["error"] == "ReadError"
    assert re.search(r"stopped after .* of 25\.2 MB: .* 503", result["message"])
    assert cached_responses(runtime) == 2, "one cached part and its description"
    host.is_down = host.goes_down = False
    if has_changed:
        data = host.files["large"] = data[::-1]  # of the same size
        host.version = "Sun, 22 Nov 2026 12:00:00 GMT"
    assert load(runtime, model=host.url("weak/large"))["info"]["model"] == expected_report(data)
    assert host.ranges[-1] == (None if has_changed else f"bytes={part}-")
    assert stages(load(runtime, model=host.url("weak/large"))) == {"cache", "model"}


def test_too_large_a_download_is_refused_by_its_size(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("huge/data"))
    assert result["error"] == "FileTooLarge"
    assert "4.3 GB" in result["message"]


def test_aborted_download_leaves_nothing(runtime: Page, host: Host) -> None:
    result = load(runtime, model=host.url("slow/data"), abort_after=1000)
    assert result["error"] == "AbortError"
    assert cached_responses(runtime) == 0
    assert load(runtime, model=host.url("plain/other"))["info"]["model"] == expected_report(OTHER)


def test_abort_that_comes_with_the_last_byte_loads_no_model(runtime: Page) -> None:
    """Both messages wait for a busy worker, so there is nothing left to read when it sees the abort."""
    assert (
        runtime.evaluate("""async () => {
      const controller = new AbortController();
      const before = runtime.call("count", { to: 10 }, { onEvent() {} });
      const loading = runtime.load({}, { signal: controller.signal });
      controller.abort();
      await before;
      return loading.then(() => "loaded", ({ name }) => name);
    }""")
        == "AbortError"
    )


def test_offline(runtime: Page, host: Host) -> None:
    load(runtime, model=host.url("plain/other"))
    runtime.context.set_offline(True)
    try:
        assert load(runtime, model=host.url("plain/other"))["info"]["model"] == expected_report(OTHER), (
            "cached files must still load"
        )
        result = load(runtime, model=host.url("plain/data"))
        assert result["error"] == "DownloadError"
        assert "offline" in result["message"]
    finally:
        runtime.context.set_offline(False)


def test_local_files(runtime: Page) -> None:
    result = runtime.evaluate(
        "async () => runtime.load({ model: { file: new File([new Uint8Array(3e6).fill(7)], 'seven.bin') } })"
    )
    assert result["info"]["model"] == expected_report(b"\7" * 3_000_000)
    assert cached_responses(runtime) == 0


def test_closing_rejects_pending_calls(runtime: Page) -> None:
    error = runtime.evaluate(
        "() => { const other = Runtime.create(); const start = other.start(app); other.close();"
        " return start.then(() => null, (error) => error.name); }"
    )
    assert error == "Closed"


@pytest.mark.parametrize("missing", ["web/worker.js", "site.json", "runtime/pyodide-lock.json", "standin/app.py"])
def test_missing_part_of_the_runtime_is_an_error(page: Page, site: str, missing: str) -> None:
    page.route(f"**/{missing}", lambda route: route.fulfill(status=404, body=""))
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    result = page.evaluate(
        "() => Runtime.create().start(app).then(() => null, ({ name, message, hint }) => ({ name, message, hint }))"
    )
    assert result["name"] in ("RuntimeUnavailable", "WorkerError")
    assert result["hint"]
