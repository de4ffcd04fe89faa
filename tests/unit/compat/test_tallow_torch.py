"""recipes/tallow-torch: a distribution that provides the stand-in as `torch`."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.paths import ROOT

import tallow

pytestmark = pytest.mark.native
FOLDER = ROOT / "recipes" / "tallow-torch"
PROGRAM = """
import torch.nn.functional as F, torch, importlib.metadata as metadata, tallow
assert F.relu is tallow.nn.functional.relu and torch.Tensor is tallow.Tensor
print(torch.__version__, metadata.version("torch"), metadata.version("tallow-torch"))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A new virtual environment without packages."""
    import venv  # Pyodide has none

    venv.create(tmp_path / "venv", symlinks=True)
    return tmp_path / "venv"


@pytest.fixture
def run(environment: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs its Python, which also finds some of this one's packages."""
    found = [spec.origin for name in ("numpy", "hatchling") if (spec := find_spec(name)) and spec.origin]
    path = os.pathsep.join([str(ROOT / "package"), *{str(Path(origin).parents[1]) for origin in found}])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(environment / "bin" / "python"), *arguments]
        return subprocess.run(
            command, cwd=FOLDER, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )

    return run


def test_torch_is_tallow_where_it_is_installed(
    environment: Path, run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    built = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site_packages = next(environment.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        assert "torch-2.13.0.egg-info/PKG-INFO" in archive.namelist()  # a wheel has one folder .dist-info
        archive.extractall(tmp_path / "files")
    # In front of what this Python has, which may be PyTorch itself.
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'files')!r})"
    done = run("-c", code + PROGRAM)
    assert done.returncode == 0, done.stderr
    version, of_torch, own = done.stdout.split()
    assert version == of_torch
    assert own == tallow.__version__
    (site_packages / "torch").mkdir()
    (site_packages / "torch" / "version.py").touch()
    refused = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "other"))
    assert refused.returncode != 0
    assert f"PyTorch is installed in {site_packages}" in refused.stderr
