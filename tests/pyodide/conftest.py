"""Run pytest inside Pyodide, in Node."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import paths, subsuite

from tallow.site import build as site
from tallow.site.node import RELAXED_SIMD, known_options

HERE = Path(__file__).parent
TIMEOUT_S = 1200
PACKAGES = "/packages"


# Beginnings of allowed skip reasons, with their maximum share of all tests. A missing kernel library is not one of
# them: it would skip whole files.
SKIPS = {
    "needs processes, threads or the checkout": 0.2,
    "no real data": 0.1,
    "could not import": 0.05,
    "collection skipped": 0.001,  # whole files about Pillow, soundfile or h5py
    "Pillow is not installed": 0.001,
    "h5py": 0.02,
    "matplotlib": 0.02,
    "the compiler comes from": 0.02,
    "no compiled kernels for": 0.02,
    "not on x86-64 Linux": 0.02,
    "in WASM the kernel takes": 0.02,
    "the libraries for WASM lack it": 0.02,
    "looks in /proc": 0.02,
    "needs mprotect": 0.02,
    "needs /dev/full": 0.02,
    "only there do mapped files count": 0.02,
    "WASM has no functions of Python's": 0.02,
}


def wheels_of_pytest() -> list[Path]:
    """Return pytest, hypothesis and their requirements as pure wheels, downloaded once to the cache."""
    requirements = HERE / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = paths.cache_dir() / f"pyodide-test-wheels-{digest}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may need them at the same time
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
    """Return packages that have no pure wheel: their paths inside Pyodide, and their folders here.

    Jinja needs MarkupSafe, which runs without its compiled part if that is for another machine.
    """
    specs = {name: importlib.util.find_spec(name) for name in ("jinja2", "markupsafe")}
    return {f"{PACKAGES}/{name}": str(Path(spec.origin).parent) for name, spec in specs.items() if spec and spec.origin}


@pytest.fixture(scope="session")
def compiled(built_site: Path) -> list[Path]:
    """Return Python's library and the wheels of NumPy and tallow with bytecode, as pages get them."""
    names = (site.STDLIB, site.NUMPY_WHEEL, "tallow-*.whl")
    return [path for name in names for path in (built_site / "runtime").glob(f"*/{name}")]


class InPyodide:
    """Runs unit tests inside Pyodide with the wheels."""

    def __init__(
        self, node: str, pyodide: Path, site: Path, compiled: list[Path], tokenizers: Path, folder: Path
    ) -> None:
        self.node, self.pyodide = node, pyodide
        self.stdlib, *self.installed = compiled
        self.wheels = [*self.installed, *wheels_of_pytest()]
        self.snapshot = (site / json.loads((site / "site.json").read_text())["snapshot"]["url"]).as_uri()
        self.tokenizers, self.folder = tokenizers, folder

    def __call__(
        self,
        *tests: str,
        mounts: Mapping[str, Path] | None = None,
        shared_memory: bool = False,
        threads: int = 1,
        from_snapshot: bool = False,
    ) -> subsuite.Outcome:
        """Run `tests`.

        Args:
            mounts: maps paths inside Pyodide to folders.
            shared_memory: whether Python's memory is shared, as on pages that are cross-origin isolated.
            threads: number of threads for kernels, which then divide the smallest work; several share the memory.
            from_snapshot: whether Python starts from the site's snapshot, with relaxed SIMD, as pages do.
        """
        data = paths.data_dir()
        config = {
            "pyodide": str(self.pyodide),
            "shared": shared_memory or threads > 1,
            "stdlib": str(self.stdlib),
            "snapshot": self.snapshot if from_snapshot else None,
            "wheels": [str(wheel) for wheel in self.wheels if not from_snapshot or wheel not in self.installed],
            "modules": {"huggingface_tokenizers": str(self.tokenizers / "tokenizers.min.mjs")},
            "mounts": {f"/checkout/{name}": str(paths.ROOT / name) for name in ("tests", "examples")}
            | {"/report": str(self.folder)}
            | mounted_packages()
            | ({"/data": str(data)} if data.is_dir() else {})
            | {inside: str(folder) for inside, folder in (mounts or {}).items()},
            "files": {"/checkout/pyproject.toml": (paths.ROOT / "pyproject.toml").read_text()},
            "env": {"TALLOW_TEST_DATA": "/data"},
            "path": [PACKAGES],
            "cwd": "/checkout",
            "threads": threads,
            "args": [*tests, "-v", "-p", "no:cacheprovider", "--junitxml=/report/junit.xml"],
        }
        config_file = self.folder / "config.json"
        config_file.write_text(json.dumps(config))
        return subsuite.run(
            [
                self.node,
                *(known_options(self.node, [RELAXED_SIMD]) if from_snapshot else ()),
                str(HERE / "run_pytest.mjs"),
                str(config_file),
            ],
            self.folder / "junit.xml",
            env=os.environ,
            cwd=self.folder,
            timeout_s=TIMEOUT_S,
        )


@pytest.fixture
def in_pyodide(
    node: str, pyodide_dir: Path, built_site: Path, compiled: list[Path], tokenizers_dir: Path, tmp_path: Path
) -> InPyodide:
    return InPyodide(node, pyodide_dir, built_site, compiled, tokenizers_dir, tmp_path)
