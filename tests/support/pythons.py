"""Other Pythons of this machine, and environments of theirs that have tallow as `pip install .` leaves it."""

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

from support import places


def find(version: str) -> Path | None:
    """A Python of this version, such as "3.12": on PATH, or one of pyenv's or uv's."""
    return next((path for path in _candidates(version) if _is_version(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    if found := shutil.which(name):
        yield Path(found)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    for folder in (pyenv, uv):
        yield from sorted(folder.glob(f"*/bin/{name}"), reverse=True)


def _is_version(path: Path, version: str) -> bool:
    """A shim of pyenv's is there for versions that it refuses to start."""
    code = "import sys, venv; print(*sys.version_info[:2], sep='.')"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version


def installed(python: Path, folder: Path) -> Path:
    """The Python of a new environment in `folder` where `pip install .` was run in this checkout.

    What tallow needs to be built, to run and to be tested comes from the cache, where it is put once.
    """
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    mine = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([mine, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    (Path(packages) / "base.pth").write_text(f"{_base(python)}\n")
    # Without isolation: a new copy of Zig, 100 MB, would take longer to unpack than all else here.
    _pip(mine, "--no-index", "--no-deps", "--no-build-isolation", "--no-compile", str(places.ROOT))
    return mine


def _base(python: Path) -> Path:
    """A folder of what tallow requires, pytest and hypothesis, for this Python."""
    with (places.ROOT / "pyproject.toml").open("rb") as file:
        config = tomllib.load(file)
    project = config["project"]
    tests = [line for line in project["optional-dependencies"]["test"] if re.match(r"(pytest|hypothesis)\b(?!-)", line)]
    requirements = [*config["build-system"]["requires"], *project["dependencies"], *tests]
    version = subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\n".join([version, str(python), *requirements]).encode()).hexdigest()[:12]
    base = places.cache_dir() / f"test-python-{key}"  # scripts/test removes what begins so and is long unused
    if base.is_dir():
        base.touch()
        return base
    base.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base.parent, prefix=".python-") as scratch:
        packages = Path(scratch) / "packages"
        _pip(python, "--target", str(packages), *requirements)
        try:
            packages.rename(base)  # atomic: a base is either whole or absent
        except OSError:
            if not base.is_dir():  # another process may have finished first: its base is as good
                raise
    return base


def _pip(python: Path, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *arguments], env=environment(), check=True)


def environment() -> dict[str, str]:
    """This process's, without the packages that it may name."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
