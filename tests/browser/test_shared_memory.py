"""web/threads/shared-memory.js: a stock Pyodide on a shared memory, in a page of others and in the site's runtime."""

from __future__ import annotations

import base64
import hashlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, Worker
from support import builds, paths
from tests.browser.conftest import START_MS, wait_until

HERE = Path(__file__).parent
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class Isolated(SimpleHTTPRequestHandler):
    """Answers with the headers that isolate a page, and without a policy, as a page of others may."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Receiver(socketserver.StreamRequestHandler):
    """Accepts a WebSocket and keeps its first message, of less than 126 bytes."""

    server: Any

    def handle(self) -> None:
        lines = [line.decode().strip() for line in iter(self.rfile.readline, b"\r\n")]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        digest = hashlib.sha1(headers["sec-websocket-key"].encode() + WEBSOCKET).digest()
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
            % (base64.b64encode(digest), headers["sec-websocket-protocol"].encode())
        )
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 15 == 8:  # closed
            return self.server.messages.append(None)
        mask = self.rfile.read(4)
        data = self.rfile.read(head[1] & 127)
        self.server.messages.append(bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))


@contextmanager
def running(server: socketserver.TCPServer) -> Iterator[int]:
    """Run a server and yield its port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, pyodide_dir: Path, pure_wheel: Path) -> Iterator[str]:
    """Serve a page that boots a stock Pyodide, and return its address."""
    folder = tmp_path_factory.mktemp("host")
    for file in HERE.glob("sharing/*"):
        (folder / file.name).symlink_to(file)
    (folder / "web").symlink_to(paths.ROOT / "web")
    builds.pyodide_with_threads(folder / "pyodide", pyodide_dir)
    (folder / pure_wheel.name).symlink_to(pure_wheel)
    with running(ThreadingHTTPServer(("127.0.0.1", 0), partial(Isolated, directory=folder))) as port:
        yield f"http://127.0.0.1:{port}/"


def booted(realm: Page | Worker) -> None:
    """Wait until Python runs there."""
    end = time.monotonic() + START_MS / 1000
    while True:
        with suppress(Error):  # the script has not run yet
            if realm.evaluate("async () => { await booting; return true }"):
                return
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module", params=["worker", "page"])
def realm(request: pytest.FixtureRequest, browser: Browser, host: str) -> Iterator[Page | Worker]:
    """A worker or a page in which a stock Pyodide runs on a shared memory."""
    context = browser.new_context()
    page = context.new_page()
    realm: Page | Worker = page
    if request.param == "worker":
        with page.expect_worker() as info:
            page.goto(f"{host}?worker")
        realm = info.value
    else:
        page.goto(host)
    booted(realm)
    yield realm
    context.close()


def test_heap_is_the_shared_memory(realm: Page | Worker) -> None:
    assert realm.evaluate("pyodide._module.HEAPU8.buffer === sharing.memory.buffer")
    assert realm.evaluate("sharing.memory.buffer instanceof SharedArrayBuffer")
    assert realm.evaluate("python('import numpy as np; float((np.eye(3) * 2).sum())')") == 6
    assert realm.evaluate("python('\"\U0001f525\" * 100')") == "\U0001f525" * 100


def test_another_worker_shares_arrays_in_memory_that_has_grown(realm: Page | Worker) -> None:
    """Python sees what the worker writes, and the worker what Python has written: half a gigabyte after the start."""
    read = realm.evaluate("""async () => {
      const address = python("array = np.arange(60_000_000.0); array.ctypes.data");
      const script = `onmessage = ({ data: { memory, address } }) => {
        const array = new Float64Array(memory.buffer, address, 60_000_000);
        array[0] = 42;
        postMessage(array[59_999_999]);
      }`;
      const worker = new Worker(URL.createObjectURL(new Blob([script])));
      const answer = new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
      worker.postMessage({ memory: sharing.memory, address });
      const read = await answer;
      worker.terminate();
      return read;
    }""")
    assert read == 59_999_999
    assert realm.evaluate("python('float(array[0])')") == 42
    assert realm.evaluate("pyodide._module.HEAPU8.length === sharing.memory.buffer.byteLength")
    assert realm.evaluate("pyodide._module.HEAPU8.length") > 480_000_000
    assert realm.evaluate("python('str(array[-3:]) * 20')") == "[59999997. 59999998. 59999999.]" * 20
    assert realm.evaluate("Array.from(python('array[-2:]').toJs())") == [59_999_998, 59_999_999]
    realm.evaluate("python('del array')")


def test_memory_that_does_not_exist_is_an_error(realm: Page | Worker) -> None:
    assert realm.evaluate("""python(`
try:
    [np.empty(2**31 - 1, np.uint8) for _ in range(2)]
except MemoryError:
    refused = True
refused`)""")
    assert realm.evaluate("python('float(np.ones(1000).sum())')") == 1000


SOCKET = """
import socket
connection = socket.socket()
connection.setblocking(False)
connection.connect_ex(("127.0.0.1", PORT))
connection.send(b"from the heap")"""
# For each replaced function: how Python uses it, and what comes out; then a call with a view.
USES = {
    "TextDecoder.decode": ("python(`'text' * 50`)", "text" * 50),
    "Crypto.getRandomValues": ("python(`import os; len(os.urandom(8))`)", 8),
    "TextEncoder.encodeInto": ("pyodide.setStdin({ stdin: () => 'a line' }), python(`input()`)", "a line"),
}
CALLS = {
    "TextDecoder.decode": "(f, view) => f.call(new TextDecoder(), view)",
    "Crypto.getRandomValues": "(f, view) => f.call(crypto, view)",
    "TextEncoder.encodeInto": "(f, view) => f.call(new TextEncoder(), 'text', view)",
    "WebSocket.send": "(f, view) => f.call(new WebSocket('ws://127.0.0.1:1'), view)",
}
# Count the calls of a function with a view of shared memory.
SPY = """(name) => {
  const [owner, method] = name.split(".");
  const { prototype } = globalThis[owner];
  const original = prototype[method];
  globalThis.spy = { calls: 0, end: () => (prototype[method] = original) };
  prototype[method] = function (...values) {
    if (values.some((value) => (value?.buffer ?? value) instanceof SharedArrayBuffer)) spy.calls++;
    return original.apply(this, values);
  };
}"""


@contextmanager
def called_with_shared_memory(realm: Page | Worker, name: str) -> Iterator[None]:
    realm.evaluate(SPY, name)
    yield
    assert realm.evaluate("() => { spy.end(); return spy.calls; }") > 0


@pytest.mark.parametrize("name", USES)
def test_python_passes_views_of_its_heap(realm: Page | Worker, name: str) -> None:
    code, result = USES[name]
    with called_with_shared_memory(realm, name):
        assert realm.evaluate(f"() => {{ return {code}; }}") == result


@pytest.mark.parametrize("name", CALLS)
def test_browser_refuses_views_without_the_replacement(realm: Page | Worker, name: str) -> None:
    """If this fails, a browser accepts them: remove the replacement when all browsers do."""
    error = realm.evaluate(f"""() => {{
      try {{
        ({CALLS[name]})(originals["{name}"], new Uint8Array(sharing.memory.buffer, 0, 1));
      }} catch (error) {{
        return `${{error.name}}: ${{error.message}}`;
      }}
    }}""")
    assert error.startswith("TypeError")
    assert "shared" in error


def test_replacements_do_what_the_originals_do(realm: Page | Worker) -> None:
    """On shared memory and on plain memory."""
    for kind in ("SharedArrayBuffer", "ArrayBuffer"):
        assert realm.evaluate(f"""() => {{
          const memory = new {kind}(16);
          const bytes = new Uint8Array(memory);
          const written = new TextEncoder().encodeInto("h\u00e9!", bytes.subarray(2));
          const decoder = new TextDecoder();
          const texts = [[0, 4], [4, 12]].map(
            ([at, size]) => decoder.decode(new DataView(memory, at, size), {{ stream: true }}),
          );
          const words = new Uint16Array(memory, 8, 4);
          const same = crypto.getRandomValues(words) === words;
          const refused = [() => crypto.getRandomValues(new Float32Array(memory)), () => new TextDecoder().decode(7)];
          const names = refused.map((f) => {{ try {{ f(); }} catch (error) {{ return error.name; }} }});
          return [written, Array.from(bytes.subarray(0, 8)), texts, same, words.some(Boolean), names];
        }}""") == [
            {"read": 3, "written": 4},
            [0, 0, 104, 0xC3, 0xA9, 33, 0, 0],
            ["\0\0h", "\u00e9!" + "\0" * 10],
            True,
            True,
            ["TypeMismatchError", "TypeError"],
        ]


def test_sockets_send_views_of_the_heap(realm: Page | Worker) -> None:
    server: Any = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Receiver)
    server.messages, server.daemon_threads = [], True
    with running(server) as port, called_with_shared_memory(realm, "WebSocket.send"):
        realm.evaluate("(code) => { python(code); }", SOCKET.replace("PORT", str(port)))
        end = time.monotonic() + START_MS / 1000
        while not server.messages and time.monotonic() < end:
            realm.evaluate("0")
            time.sleep(0.02)
        assert server.messages == [b"from the heap"]


MULTIPLY = """
import numpy as np
import tallow as tl
from tallow import kernels

a = np.arange(160_000, dtype=np.float32).reshape(400, 400) % 7
kernels.run("matmul", a, a).tolist() == (a @ a).tolist()
"""


def test_kernels_compute_on_threads(realm: Page | Worker, pure_wheel: Path) -> None:
    """As docs/threads.md says for own pages: in a worker, and on the main thread, which must not sleep."""
    realm.evaluate("(name) => pyodide.loadPackage(new URL(name, location.href).href)", pure_wheel.name)
    end = time.monotonic() + START_MS / 1000
    while True:
        assert realm.evaluate("(code) => python(code)", MULTIPLY)
        if realm.evaluate("python('kernels.bindings.tab_threads.parts_of_others()')"):
            break
        assert time.monotonic() < end
        time.sleep(0.05)
    assert realm.evaluate("python('kernels.info().summary')") == "wasm relaxed-simd, 2 threads"
    assert realm.evaluate("python('kernels.bindings.tab_threads.may_wait()')") == isinstance(realm, Worker)


START = """async () => {
  const runtime = Runtime.create();
  try {
    const { unshared } = await runtime.start(app);
    return [unshared, (await runtime.call("softmax", { row: [0.5, 1.5] })).result, await runtime.call("memory")];
  } finally {
    runtime.close();
  }
}"""
SOFTMAX = [pytest.approx(0.26894143), pytest.approx(0.73105857)]


def starts(page: Page, site: str) -> Any:
    """Start a runtime on the page of the stand-in. Return why its memory is plain, and what Python computes."""
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    return page.evaluate(START)


@pytest.mark.parametrize("shared_memory", [True, False])
def test_module_of_the_guide_for_other_pages(page: Page, host: str, shared_memory: bool) -> None:
    page.goto(f"{host}empty.html")
    assert page.evaluate(
        """async (shared) => {
          if (!shared) delete globalThis.SharedArrayBuffer;
          const { loadPyodide, version } = await import("./pyodide/pyodide-shared.mjs");
          const packageBaseUrl = new URL("pyodide/", location.href).href;
          const pyodide = await loadPyodide({ packages: ["numpy"], packageBaseUrl });
          const sum = pyodide.runPython("import numpy; float(numpy.ones(5).sum())");
          return [pyodide._module.HEAPU8.buffer.constructor.name, sum, version === pyodide.version];
        }""",
        shared_memory,
    ) == ["SharedArrayBuffer" if shared_memory else "ArrayBuffer", 5, True]


def modules_of_python(page: Page) -> list[str]:
    """Return a list to which the names of the main modules are added that the page requests."""
    names: list[str] = []

    def note(route: Route) -> None:
        names.append(route.request.url.rpartition("/")[2])
        route.continue_()

    page.route("**/pyodide*.asm.wasm", note)
    return names


def without_copy(page: Page, site_dir: Path) -> None:
    """Take the module with a shared memory from the site, as on a site that was built without Node."""
    site = json.loads((site_dir / "site.json").read_text(encoding="utf-8"))
    assert site["shared"]
    page.route("**/site.json", lambda route: route.fulfill(json=site | {"shared": None}))


def test_isolated_page_runs_on_shared_memory(page: Page, site: str) -> None:
    names = modules_of_python(page)
    assert starts(page, site) == [None, SOFTMAX, "SharedArrayBuffer"]
    assert names == ["pyodide-shared.asm.wasm"]


def test_module_is_changed_as_it_loads_if_the_site_has_no_copy(page: Page, site: str, site_dir: Path) -> None:
    without_copy(page, site_dir)
    names = modules_of_python(page)
    assert starts(page, site) == [None, SOFTMAX, "SharedArrayBuffer"]
    assert names == ["pyodide.asm.wasm"]


def test_page_that_is_not_isolated_runs_on_plain_memory(page: Page, site: str) -> None:
    def without_isolation(route: Route) -> None:
        response = route.fetch()
        headers = {name: value for name, value in response.headers.items() if not name.startswith("cross-origin")}
        route.fulfill(response=response, headers=headers)

    page.route(f"{site}standin/", without_isolation)
    names = modules_of_python(page)
    assert starts(page, site) == ["the page is not cross-origin isolated", SOFTMAX, "ArrayBuffer"]
    assert names == ["pyodide.asm.wasm"]


def replace_once(page: Page, pattern: str, change: Callable[[bytes], bytes]) -> list[str]:
    """Change the first answer to a request. Return the list of the requests so far."""
    requests: list[str] = []

    def answer(route: Route) -> None:
        requests.append(route.request.url)
        if len(requests) > 1:
            return route.continue_()
        response = route.fetch()
        route.fulfill(response=response, body=change(response.body()))

    page.route(pattern, answer)
    return requests


def second_memory(module: bytes) -> bytes:
    """Return Pyodide's main module with one more memory, which browsers accept."""
    one = bytes.fromhex("05 07 01 01 e0 03 80 80 04")  # 480 to 65536 pages
    assert module.count(one) == 1
    return module.replace(one, bytes.fromhex("05 09 02 01 e0 03 80 80 04 00 01"))


def cut_off(module: bytes) -> bytes:
    return module[: len(module) // 2]


@pytest.mark.parametrize(
    ("pattern", "change", "reason", "requests"),
    [
        ("**/pyodide.asm.wasm", second_memory, "the module has 2 memories", 2),
        ("**/pyodide.asm.wasm", cut_off, "a module cannot be loaded with a shared memory: CompileError", 2),
        ("**/pyodide-shared.asm.wasm", cut_off, "a module cannot be loaded with a shared memory: CompileError", 1),
        ("**/memory_check.py", lambda source: source + b"\nround_trip = lambda *values: values * 2", "text, arrays", 1),
        ("**/memory_check.py", lambda source: b"1 / 0", "Python failed on a shared memory", 1),
    ],
    ids=["second memory", "cut off", "cut off copy", "wrong values", "exception"],
)
def test_failure_of_the_shared_memory_boots_on_plain_memory(
    page: Page,
    site: str,
    revisited_site: str,
    site_dir: Path,
    pattern: str,
    change: Callable[[bytes], bytes],
    reason: str,
    requests: int,
) -> None:
    if "shared" not in pattern:
        without_copy(page, site_dir)
    seen = replace_once(page, pattern, change)
    checks = "memory_check" in pattern  # also of a memory from the snapshot, which starts in half the time
    unshared, result, memory = starts(page, revisited_site if checks else site)
    assert reason in unshared
    assert (result, memory) == (SOFTMAX, "ArrayBuffer")
    assert len(seen) == requests


def before_boot(page: Page, script: str) -> None:
    """Run a script in the worker before Python boots."""

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=script.encode() + response.body())

    page.route("**/web/worker.js", answer)


def test_browser_without_shared_memory(page: Page, revisited_site: str) -> None:
    before_boot(page, "delete globalThis.SharedArrayBuffer;")
    assert starts(page, revisited_site) == ["this browser has no shared memory", SOFTMAX, "ArrayBuffer"]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (16384, [None, SOFTMAX, "SharedArrayBuffer"]),
        (1024, ["this device cannot reserve shared memory", SOFTMAX, "ArrayBuffer"]),
    ],
)
def test_device_with_little_address_space(page: Page, revisited_site: str, pages: int, expected: list[object]) -> None:
    before_boot(
        page,
        f"""
        const {{ Memory }} = WebAssembly;
        WebAssembly.Memory = new Proxy(Memory, {{
          construct(target, [type]) {{
            if (type.maximum > {pages}) throw new RangeError();
            return new target(type);
          }},
        }});
        """,
    )
    assert starts(page, revisited_site) == expected
