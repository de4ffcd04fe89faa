"""The places to measure a claim: this interpreter, Pyodide in Node, Pyodide in Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import build_kernels

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
WLLAMA = ("esm/index.min.js", "esm/wasm/wllama.wasm")  # of its package
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@dataclass
class Job:
    """A claim to measure: `name` is the module, `checkpoints` are names of files in the job's folder."""

    name: str
    options: dict[str, Any]
    checkpoints: list[str] = field(default_factory=list)
    run_c: Path | None = None
    onnx: Path | None = None
    wllama: Path | None = None
    jax: Path | None = None
    threads: int = 1  # in a browser


def native(job: Job, folder: Path) -> dict[str, Any]:
    """Measure in this interpreter, on one thread (the caller has set OMP_NUM_THREADS)."""
    if job.name == "matmul":
        job.options["peak"] = [str(path) for path in _peak_libraries(folder, "native")]
    measure = importlib.import_module(f"bench.{job.name}").measure
    if job.run_c:
        program = folder / "run_c"
        # -Ofast spelled out: Zig's driver turns the short form into -O2
        _zig("cc", "-O3", "-ffast-math", "-march=native", "-w", *_run_c(job.run_c), "-lm", "-o", str(program))
        measure = functools.partial(measure, run_c=functools.partial(_run_natively, program))
    with contextlib.chdir(folder):
        result: dict[str, Any] = measure(job.options)
    from tallow import kernels

    result["library"] = kernels.info().library
    return result


def node(job: Job, folder: Path) -> dict[str, Any]:
    """Measure in Pyodide in Node."""
    pyodide = _prepare(job, folder)
    _write_job(job, folder, pyodide)
    done = subprocess.run(["node", str(HERE / "node.mjs"), str(folder)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def browser(job: Job, folder: Path) -> dict[str, Any]:
    """Measure in Pyodide in a page in Chromium, headless."""
    import prerequisites  # it and Playwright import test dependencies, which only this place needs
    from playwright.sync_api import sync_playwright

    if job.name == "start":
        return _pages(job, prerequisites.chromium(), sync_playwright)
    pyodide = _prepare(job, folder)
    for name in (
        "page.html",
        "inside.mjs",
        "jax.mjs",
        "onnx_matmul.mjs",
        "onnx_whisper.mjs",
        "threads.mjs",
        "wllama.mjs",
    ):
        shutil.copy(HERE / name, folder)
    for path in (ROOT / "web" / "threads").glob("*.js"):
        shutil.copy(path, folder)
    rivals = [*job.onnx.iterdir()] if job.onnx else []
    rivals += [job.wllama / name for name in WLLAMA] if job.wllama else []
    for path in rivals:
        (folder / path.name).symlink_to(path.resolve())
    if job.jax:
        (folder / "jax").symlink_to((job.jax / "dist").resolve())
    executable = prerequisites.chromium()
    with _served(folder, pyodide) as origin, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        page = chromium.new_page()
        page.set_default_timeout(0)
        page.goto(f"{origin}/page.html")
        page.wait_for_function("() => Boolean(window.run)")  # evaluate() would call a function
        result: dict[str, Any] = page.evaluate("job => window.run(job)", _as_json(job, pyodide))
        result["engine"] = f"Chromium {chromium.version}"
        chromium.close()
    return result


def _pages(job: Job, executable: str | None, sync_playwright: Any) -> dict[str, Any]:
    """Measure tallow's own pages, from outside."""
    measure = importlib.import_module(f"bench.{job.name}").measure
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch_persistent_context

        def open_profile(profile: str) -> Any:
            return launch(profile, executable_path=executable, args=CHROMIUM_FLAGS)

        result: dict[str, Any] = measure(job.options, open_profile)
        result["engine"] = "Chromium"
    return result


PLACES = {"native": native, "pyodide": node, "browser": browser}


def _prepare(job: Job, folder: Path) -> Path:
    """Copy the files that the place needs into the folder; return Pyodide's folder."""
    peak = _peak_libraries(folder, "wasm") if job.name == "matmul" else []
    job.options["peak"] = [path.name for path in peak]
    if job.run_c:
        wasi = ["-target", "wasm32-wasi", "-mexec-model=reactor", "-D_WASI_EMULATED_MMAN", "-lwasi-emulated-mman"]
        for variant in build_kernels.variants("wasm"):  # with the same instructions as the kernels
            cpu = next(flag for flag in variant.compile if flag.startswith("-mcpu="))
            program = folder / variant.file.replace("tallow-wasm", "run_c")
            _zig("cc", *wasi, "-O3", "-ffast-math", cpu, "-w", *_run_c(job.run_c), "-o", str(program))
    with zipfile.ZipFile(folder / "bench.zip", "w") as archive:
        for root, name in ((ROOT / "package", "tallow"), (HERE.parent, "bench")):
            for path in sorted((root / name).rglob("*")):
                if path.suffix in (".py", ".wasm"):
                    archive.write(path, path.relative_to(root))
        for path in peak:
            archive.write(path, path.name)
    fetched = subprocess.run(
        [sys.executable, ROOT / "scripts/fetch_pyodide.py"], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(fetched.stdout.splitlines()[-1])


def _peak_libraries(folder: Path, target: str) -> list[Path]:
    """Compile peak.c like the kernels."""
    libraries = []
    for variant in build_kernels.variants(target):
        library = folder / variant.file.replace("tallow-wasm-", "peak-").replace("tallow-", "peak-")
        compiled = library.with_suffix(".o")
        _zig("cc", *build_kernels.FLAGS, *variant.compile, "-c", str(HERE / "peak.c"), "-o", str(compiled))
        _zig(*variant.link, str(compiled), "-o", str(library))
        libraries.append(library)
    return libraries


def _run_c(source: Path) -> list[str]:
    return [f'-DRUN_C="{source.resolve()}"', str(HERE / "run_c.c")]


def _run_natively(program: Path, checkpoint: str, steps: int) -> float:
    done = subprocess.run([program, checkpoint, str(steps)], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def _zig(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", *arguments], check=True)


def _as_json(job: Job, pyodide: Path) -> dict[str, Any]:
    entries = {"run_c": None, "runC": job.run_c is not None, "pyodide": str(pyodide)}
    return asdict(job) | entries | {name: getattr(job, name) is not None for name in ("onnx", "wllama", "jax")}


def _write_job(job: Job, folder: Path, pyodide: Path) -> None:
    (folder / "job.json").write_text(json.dumps(_as_json(job, pyodide)))


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serve the job's folder, and Pyodide under /pyodide/. Pages are isolated, which gives them a precise clock."""

    extensions_map = {  # noqa: RUF012 - the base class's
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, *args: Any, pyodide: Path, **kwargs: Any) -> None:
        self.pyodide = pyodide
        super().__init__(*args, **kwargs)

    def translate_path(self, path: str) -> str:
        if path.startswith("/pyodide/"):
            return str(self.pyodide / Path(path).name)
        return super().translate_path(path)

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def _served(folder: Path, pyodide: Path) -> Iterator[str]:
    handler = functools.partial(_Handler, directory=str(folder), pyodide=pyodide)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
