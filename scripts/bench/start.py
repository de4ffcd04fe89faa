"""Time from opening a page to a story's first word and to the console's prompt, and of `import tallow` in Pyodide.

`scripts/bench.py start --browser --wllama FOLDER` compares the story page with a page of wllama, which runs the same
model as a GGUF file on one thread. FOLDER is wllama's package:

    npm pack @wllama/wllama && tar xf wllama-*.tgz    # FOLDER is package/

Each round has a new browser profile. The first visit has empty caches and lasts until the page has fetched its
snapshot; the later ones have what the browser kept. The server is that of `tallow demo`, on this
computer, so no time is spent on a network. A script in the page presses Generate and takes the time: Playwright's
own, of 330 kB, would compile during the start.

Claims: the story's first word after 3.5 s on a first visit, and after 1.3 s and 0.8 of wllama's time on later ones; the
console's prompt after 1.3 s; 9 MB, compressed, before the model; micropip and import 0.6 s after NumPy.
"""

from __future__ import annotations

import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from build_site import build_wheel, fetch

from bench.report import Row
from bench.turns import load_note
from tallow.models.built_in import stories
from tallow.site.build import build_site
from tallow.site.static_server import SiteHandler, SiteServer

NAME = "start"
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
FIRST, LATER = "first", "later"
LATER_VISITS = 3
STORY, CONSOLE = "wasm_examples/llama2c/", "wasm_examples/console/"
WLLAMA, PLAIN = (
    "runtime/wllama/index.html",
    "runtime/plain/index.html",
)  # cached like tallow's files
MODELS = (".gguf", "/stories.tgz")
# Files of these types are compressed by static hosts such as GitHub Pages; archives are sent as they are.
COMPRESSED_BY_HOSTS = {".css", ".html", ".js", ".json", ".mjs", ".py", ".svg", ".wasm"}
# Noted in the worker: the stages of Pyodide's start that its own code does not report.
STOPWATCH = """
for (const name of ["instantiateStreaming", "instantiate", "compileStreaming"]) {
  const original = WebAssembly[name];
  WebAssembly[name] = async (...sources) => {
    const start = performance.now();
    try {
      return await original.call(WebAssembly, ...sources);
    } finally {
      performance.measure("wasm", { start });
    }
  };
}
"""
READ_STAGES = """
() => {
  const total = (entries) => Math.max(0, ...entries.map(({ startTime, duration }) => startTime + duration)) / 1000;
  const [resources, compiled] = [performance.getEntriesByType("resource"), performance.getEntriesByName("wasm")];
  return {
    fetched: total(resources.filter(({ name }) => name.includes("/runtime/"))),
    compiled: compiled.length ? (compiled[0].startTime + compiled[0].duration) / 1000 : NaN,
    opened: performance.timeOrigin,
  };
}
"""
# Whether the page has fetched what the next visit starts from; it does so some seconds after its start.
HAS_SNAPSHOT = """
async () => {
  const { snapshot } = await (await fetch("/site.json")).json();
  const store = await caches.open("tallow-snapshots");
  return Boolean(await store.match(new URL(snapshot.url, location.origin)));
}
"""
# Presses Generate when app.js has run, and notes the time of the first word, or of the console's prompt.
WATCH = """
new MutationObserver((_, observer) => {
  const [generate, stats, status] = ["generate", "stats", "status"].map((id) => document.getElementById(id));
  const now = performance.now() / 1000;
  if (!window.pressed && document.querySelector("#presets button")) {
    window.pressed = now;
    generate.click();
  }
  if (stats?.textContent.includes("Page to Python")) window.ready ??= now;
  if (generate ? !stats?.textContent.includes("first word") : !status?.textContent.startsWith("Ready")) return;
  window.done = now;
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
START_MS = 2000  # without a word to the page
CACHE_MS = 4000  # V8 writes the code to its cache when it has optimised nothing for two seconds
Visit = dict[str, float]


def measure(options: dict[str, Any], chromium: Callable[[str], Any]) -> dict[str, Any]:
    """Measure all pages. `chromium` starts the browser with a profile folder and returns its context."""
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch, "site")
        _build(site, Path(scratch), options["wllama"])
        pages = {"story": (STORY, _visit_own), "console": (CONSOLE, _visit_own)}
        if options["wllama"]:
            pages["wllama"] = (WLLAMA, _visit_other)
        visits: dict[tuple[str, str], list[Visit]] = {}
        with _serving(site) as (origin, requests):
            sizes = {}
            for _ in range(options["repeats"]):
                for name, (path, visit) in pages.items():
                    sizes[name] = _profile(chromium, name, origin + path, visit, visits, requests)
            plain = [_once(chromium, origin + PLAIN) for _ in range(options["repeats"])]
        rows = [_row(name, when, times) for (name, when), times in sorted(visits.items(), key=lambda item: item[0][1])]
        _compare(rows)
        wire = [_wire(site, name, paths) for name, paths in sizes.items()]
    best = {key: min(visit[key] for visit in plain) for key in plain[0]}
    what = f"seconds from opening the page, medians of {options['repeats']} profiles, the best in brackets"
    notes = [
        f"{what}; {LATER_VISITS} later visits to each",
        *wire,
        f"plain Pyodide, after NumPy, best: micropip.install {best['install']:.2f} s, import {best['import']:.2f} s",
        f"and then `from tallow.transformers import pipeline` {best['pipeline']:.2f} s",
        load_note(),
    ]
    return {"rows": rows, "notes": notes}


def _build(site: Path, scratch: Path, wllama: Path | None) -> None:
    """Write tallow's site, and in its runtime/ the pages to compare with."""
    pyodide = fetch("fetch_pyodide.py")
    tokenizers, markdown = fetch("fetch_npm.py", "tokenizers"), fetch("fetch_npm.py", "markdown")
    wheel = build_wheel(scratch)
    build_site(site, wheel=wheel, pyodide=pyodide, tokenizers=tokenizers, markdown=markdown)
    worker = site / "web" / "worker.js"
    worker.write_text(worker.read_text(encoding="utf-8") + STOPWATCH, encoding="utf-8")
    plain = site / PLAIN
    shutil.copytree(pyodide, plain.parent)
    (published,) = site.glob("runtime/*/tallow-*.whl")  # which has bytecode
    _page(plain, "start_plain.mjs", {"wheel": f"/{published.relative_to(site).as_posix()}"})
    if wllama:
        peer = site / WLLAMA
        shutil.copytree(wllama / "esm", peer.parent / "esm")
        model = peer.parent / "stories.gguf"
        convert = [sys.executable, "-m", "tallow", "convert", str(stories.FOLDER), str(model), "--quant", "f16"]
        subprocess.run(
            [*convert, "--tokenizer", str(stories.FOLDER / "tokenizer.bin")], check=True, capture_output=True
        )
        _page(peer, "start_wllama.mjs", {"model": model.name})


def _page(path: Path, script: str, job: dict[str, str]) -> None:
    shutil.copy(HERE / script, path.parent)
    (path.parent / "job.json").write_text(json.dumps(job))
    path.write_text(f'<!doctype html><meta charset="utf-8"><script type="module" src="{script}"></script>')


class _Counting(SiteHandler):
    """Notes which files are sent."""

    sent: list[str]

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if code == 200:
            self.sent.append(self.path.partition("?")[0])


@contextmanager
def _serving(site: Path) -> Iterator[tuple[str, list[str]]]:
    sent: list[str] = []
    server = SiteServer(site, host="127.0.0.1", port=0, models={})
    server.RequestHandlerClass = type("Handler", (_Counting,), {"sent": sent})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.url, sent
    server.shutdown()


def _profile(
    chromium: Callable[[str], Any],
    name: str,
    url: str,
    visit: Callable[[Any, str], Visit],
    visits: dict[tuple[str, str], list[Visit]],
    requests: list[str],
) -> list[str]:
    """Visit a page with a new profile, and again. Return the paths of the files that the first visit loads."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        context = chromium(profile)
        _one(context, "about:blank", lambda page, url: {})
        requests.clear()
        loaded: list[str] = []

        def stay(page: Any) -> None:
            loaded.extend(requests)
            while visit is not _visit_other and not page.evaluate(HAS_SNAPSHOT):
                page.wait_for_timeout(500)

        visits.setdefault((name, FIRST), []).append(_one(context, url, visit, stay))
        for _ in range(LATER_VISITS):
            visits.setdefault((name, LATER), []).append(_one(context, url, visit))
        context.close()
    return loaded


def _one(
    context: Any, url: str, visit: Callable[[Any, str], Visit], stay: Callable[[Any], None] = lambda page: None
) -> Visit:
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(WATCH)
    page.goto(url, wait_until="commit")
    page.wait_for_timeout(START_MS)
    times = visit(page, url)
    stay(page)
    page.wait_for_timeout(CACHE_MS)
    page.close()
    return times


def _visit_own(page: Any, url: str) -> Visit:
    page.wait_for_function("() => window.done")
    return {**_stages(page), **page.evaluate("() => ({ ready: window.ready ?? window.done, done: window.done })")}


def _visit_other(page: Any, url: str) -> Visit:
    page.wait_for_function("() => window.result || window.failure")
    failure = page.evaluate("() => window.failure")
    assert not failure, failure
    result: Visit = page.evaluate("() => window.result")
    return result


def _stages(page: Any) -> Visit:
    """Return when the files had arrived and the main module was compiled, from the opening of the page."""
    stages: Visit = page.workers[0].evaluate(READ_STAGES)
    late = (stages.pop("opened") - page.evaluate("() => performance.timeOrigin")) / 1000
    return {"worker": late, **{name: value + late for name, value in stages.items()}}


def _once(chromium: Callable[[str], Any], url: str) -> Visit:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        context = chromium(profile)
        times = _one(context, url, _visit_other)
        context.close()
    return times


def _row(name: str, when: str, visits: list[Visit]) -> Row:
    row: Row = {"visit": f"{when}, {name}"}
    for key in ("worker", "fetched", "compiled", "ready", "done"):
        values = [visit[key] for visit in visits if key in visit]
        row[key] = f"{statistics.median(values):.2f} ({min(values):.2f})" if values else ""
    row["median"] = statistics.median(visit["done"] for visit in visits)
    return row


def _compare(rows: list[Row]) -> None:
    """Add the ratios to wllama of the same kind of visit."""
    medians = {row["visit"]: row.pop("median") for row in rows}
    for row in rows:
        when, _, name = row["visit"].partition(", ")
        peer = medians.get(f"{when}, wllama")
        if peer and name == "story":
            row["of wllama"] = medians[row["visit"]] / peer


def _wire(site: Path, name: str, paths: list[str]) -> str:
    """Describe the bytes of the files, as sent by `tallow demo` and compressed by hosts, without and with the model."""
    files = [(path, site / path.lstrip("/")) for path in paths]
    files = [(path, file / "index.html" if file.is_dir() else file) for path, file in files]
    files = [(path, file) for path, file in files if file.is_file()]
    python = [file for path, file in files if not path.endswith(MODELS)]
    model = sum(file.stat().st_size for path, file in files if path.endswith(MODELS)) / 1e6
    raw = sum(file.stat().st_size for file in python) / 1e6
    gzipped = sum(_sent(file, _gzip) for file in python) / 1e6
    brotli = sum(_sent(file, _brotli) for file in python) / 1e6
    compressed = f"{gzipped:.1f} MB from a host that compresses with gzip, {brotli:.1f} MB with Brotli"
    return (
        f"{name}, first visit: {len(files)} files, {raw:.1f} MB without a model; {compressed}; the model {model:.1f} MB"
    )


def _sent(file: Path, compress: Callable[[bytes], bytes]) -> int:
    """Return the bytes that a host sends."""
    data = file.read_bytes()
    return len(compress(data) if file.suffix in COMPRESSED_BY_HOSTS else data)


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 9)


def _brotli(data: bytes) -> bytes:
    """Compress as Node does; its quality 9 is what hosts use that compress once."""
    script = (
        "const z = require('zlib'), p = { params: { [z.constants.BROTLI_PARAM_QUALITY]: 9 } };"
        "process.stdout.write(z.brotliCompressSync(require('fs').readFileSync(0), p))"
    )
    return subprocess.run(["node", "-e", script], input=data, stdout=subprocess.PIPE, check=True).stdout
