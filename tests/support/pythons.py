"""Other Python versions on this machine, and environments of theirs where tallow is installed by `pip install .`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support import paths


def find(version: str) -> Path | None:
    """Return a Python of the version, such as "3.12", from PATH, pyenv or uv. Return None if there is none."""
    return next((path for path in _candidates(version) if _is_version(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    if path := shutil.which(name):
        yield Path(path)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    for folder in (pyenv, uv):
        yield from sorted(folder.glob(f"*/bin/{name}"), reverse=True)


def _is_version(path: Path, version: str) -> bool:
    """Start the Python and compare its version. pyenv has shims for versions that it refuses to start."""
    code = "import sys, venv; print(*sys.version_info[:2], sep='.')"
    process = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return process.returncode == 0 and process.stdout.strip() == version


def install(python: Path, folder: Path) -> Path:
    """Create an environment in `folder`, run `pip install .` for this checkout, and return its Python.

    Requirements for building, running and testing come from a cache, which the first call fills.
    """
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    mine = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site_packages = subprocess.run([mine, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    (Path(site_packages) / "base.pth").write_text(f"{_base(python)}\n")
    # Without isolation: unpacking another copy of Zig (100 MB) would take longer than everything else here.
    _pip(mine, "--no-index", "--no-deps", "--no-build-isolation", "--no-compile", str(paths.ROOT))
    return mine


def _base(python: Path) -> Path:
    """Return a folder of tallow's requirements, pytest and hypothesis for this Python."""
    with (paths.ROOT / "pyproject.toml").open("rb") as file:
        config = tomllib.load(file)
    project = config["project"]
    tests = [line for line in project["optional-dependencies"]["test"] if re.match(r"(pytest|hypothesis)\b(?!-)", line)]
    return packages(python, [*config["build-system"]["requires"], *project["dependencies"], *tests])


def packages(python: Path, requirements: list[str]) -> Path:
    """Return a folder in the cache with these requirements for this Python, installed on first use."""
    version = subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\n".join([version, str(python), *requirements]).encode()).hexdigest()[:12]
    base = paths.cache_dir() / f"test-python-{key}"  # scripts/test removes folders with this prefix if unused for long
    if base.is_dir():
        base.touch()
        return base
    base.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base.parent, prefix=".python-") as scratch:
        target = Path(scratch) / "packages"
        _pip(python, "--no-compile", "--target", str(target), *requirements)
        try:
            target.rename(base)  # atomic: a base is complete or absent
        except OSError:
            if not base.is_dir():  # another process may have finished first: use its base
                raise
    return base


def _pip(python: Path, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *arguments], env=environment(), check=True)


def environment() -> dict[str, str]:
    """Return the environment variables of this process without PYTHONPATH."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
