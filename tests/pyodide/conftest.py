"""pytest inside Pyodide, in Node."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support import builds, places, subsuite

HERE = Path(__file__).parent
TIMEOUT_S = 1200
PACKAGES = "/packages"
DOWNLOADING = threading.Lock()
# Node 20 knows the instructions of relaxed SIMD only when told to; newer ones always do.
RELAXED_SIMD = "--experimental-wasm-relaxed-simd"
KERNELS = (
    *("agree", "attention", "build", "channel_norm", "compiled", "convolution", "cross_decode_block", "decode_block"),
    *("encoder_blocks", "pooling", "recurrent", "softmax"),
)


def wheels_of_pytest() -> list[Path]:
    """pytest, hypothesis and what they need as pure wheels, downloaded once and kept in the cache."""
    requirements = HERE / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = places.cache_dir() / f"pyodide-test-wheels-{digest}"
    with DOWNLOADING:
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            options = ["--no-deps", "--only-binary=:all:", "--python-version=3.14", "--platform=any", "--abi=none"]
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", *options, "-r", requirements, "-d", partial], check=True
            )
            partial.replace(folder)
    return sorted(folder.glob("*.whl"))


def mounted_packages() -> dict[str, str]:
    """Where packages of this environment that have no pure wheel lie here, by the places that they have inside.

    Jinja needs MarkupSafe, which does without its compiled part where that is for another machine.
    """
    found = {name: importlib.util.find_spec(name) for name in ("jinja2", "markupsafe")}
    return {f"{PACKAGES}/{name}": str(Path(spec.origin).parent) for name, spec in found.items() if spec and spec.origin}


class InPyodide:
    """Runs the unit tests, or some of them, on the wheel inside Pyodide."""

    def __init__(self, pyodide: Path, wheels: list[Path], tokenizers: Path, folder: Path) -> None:
        self.pyodide, self.wheels, self.tokenizers, self.folder = pyodide, wheels, tokenizers, folder
        node = shutil.which("node")
        assert node, "node is not on PATH; scripts/test installs it"
        self.node = node

    def __call__(self, *tests: str, mounts: Mapping[str, Path] | None = None) -> subsuite.Outcome:
        """Run `tests`; `mounts` are folders by the places that they have inside."""
        return self.start(*tests, mounts=mounts).outcome(TIMEOUT_S)

    def start(
        self, *tests: str, flags: tuple[str, ...] = (), mounts: Mapping[str, Path] | None = None
    ) -> subsuite.Running:
        data = places.data_dir()
        config = {
            "pyodide": str(self.pyodide),
            "wheels": [str(wheel) for wheel in self.wheels],
            "modules": {"huggingface_tokenizers": str(self.tokenizers / "tokenizers.min.mjs")},
            "mounts": {f"/checkout/{name}": str(places.ROOT / name) for name in ("tests", "examples")}
            | {"/report": str(self.folder)}
            | mounted_packages()
            | ({"/data": str(data)} if data.is_dir() else {})
            | {inside: str(folder) for inside, folder in (mounts or {}).items()},
            "files": {"/checkout/pyproject.toml": (places.ROOT / "pyproject.toml").read_text()},
            "env": {"TALLOW_TEST_DATA": "/data", "PYTHONPATH": PACKAGES},
            "cwd": "/checkout",
            "args": [*tests, "-v", "-p", "no:cacheprovider", "--junitxml=/report/junit.xml"],
        }
        config_file = self.folder / "config.json"
        config_file.write_text(json.dumps(config))
        return subsuite.Running(
            [self.node, *flags, str(HERE / "run_pytest.mjs"), str(config_file)],
            self.folder / "junit.xml",
            env=os.environ,
            cwd=self.folder,
        )


@pytest.fixture
def in_pyodide(pyodide_dir: Path, pure_wheel: Path, tokenizers_dir: Path, tmp_path: Path) -> InPyodide:
    return InPyodide(pyodide_dir, [*wheels_of_pytest(), pure_wheel], tokenizers_dir, tmp_path)


class Beside:
    """The long suites, one after the other in a thread, beside the tests that come before theirs."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._pool = ThreadPoolExecutor(1)
        self._running: subsuite.Running | None = None
        self._stopped = False
        prepared = self._pool.submit(self._prepare)
        self._unit = self._pool.submit(self._run, prepared, "unit", ["tests/unit"])
        kernels = [f"tests/unit/test_kernels_{name}.py" for name in KERNELS]
        self._kernels = self._pool.submit(self._run, prepared, "kernels", kernels, RELAXED_SIMD)

    def unit(self) -> subsuite.Outcome:
        """All unit tests."""
        return self._unit.result()

    def kernels(self) -> subsuite.Outcome:
        """Those of kernels, with relaxed SIMD: with the library that browsers take."""
        return self._kernels.result()

    def _prepare(self) -> InPyodide:
        folder = Path(self._folder.name)
        wheels = [*wheels_of_pytest(), builds.wheel("pure", folder)]
        return InPyodide(builds.pyodide(), wheels, builds.tokenizers(), folder)

    def _run(self, prepared: Future[InPyodide], name: str, tests: list[str], flag: str = "") -> subsuite.Outcome:
        shared = prepared.result()
        folder = shared.folder / name
        folder.mkdir()
        inside = InPyodide(shared.pyodide, shared.wheels, shared.tokenizers, folder)
        known = flag and flag in subprocess.run([inside.node, "--v8-options"], capture_output=True, text=True).stdout
        self._running = inside.start(*tests, flags=(flag,) if known else ())
        if self._stopped:
            self._running.stop()
        return self._running.outcome(TIMEOUT_S)

    def stop(self) -> None:
        """End what still runs, without a word."""
        self._stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._running is not None:
            self._running.kill()
        self._pool.shutdown()
        self._folder.cleanup()


STARTED: list[Beside] = []


def pytest_collection_finish(session: pytest.Session) -> None:
    chosen = any(item.path == HERE / "test_unit_in_pyodide.py" for item in session.items)
    if chosen and not session.config.option.collectonly:
        STARTED.append(Beside())


@pytest.fixture
def beside() -> Beside:
    return STARTED[0]


def pytest_sessionfinish() -> None:
    for suites in STARTED:
        suites.stop()
