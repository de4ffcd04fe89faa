#!/usr/bin/env python3
"""Write docs/ecosystem.md: the packages for PyTorch that were tried on tallow, and what came of it.

    scripts/ecosystem.py FOLDER

FOLDER has packages that `pip install --no-deps --target FOLDER` put there, without PyTorch. Each that `PACKAGES` names
is imported in a process of its own; the cases of tests/compat/packages.py are computed with PyTorch too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "compat" / "packages.py"
RTOL = 2e-4  # as in tests/compat/test_packages.py
# The name of a distribution, where it is not that of the module.
DISTRIBUTIONS = {"open_clip": "open-clip-torch", "pyro": "pyro-ppl", "fastai": "fastai"}
PACKAGES = (
    *("accelerate", "botorch", "diffusers", "einops", "ema_pytorch", "gpytorch", "kornia", "lightning"),
    *("linear_operator", "local_attention", "lpips", "monai", "open_clip", "peft", "performer_pytorch", "pyro"),
    *("segment_anything", "segmentation_models_pytorch", "skorch", "timm", "torchinfo", "torchmetrics", "torchvision"),
    *("transformers", "ultralytics", "vector_quantize_pytorch", "vit_pytorch", "x_transformers", "zuko"),
)
IMPORT = "import tallow.compat, importlib, sys; tallow.compat.install_torch(); importlib.import_module(sys.argv[1])"
HEAD = """# Packages

The packages below are written for PyTorch. They were installed without it (`pip install --no-deps`) and run unchanged
on the stand-in, `tallow.compat.install_torch()`. "equal" means that outputs and the gradient of each parameter agree
with PyTorch's to a relative difference of {rtol:g}, from the same weights; `tests/compat` repeats that in each run of
the tests. `scripts/ecosystem.py` writes this page.

| package | version | run | result |
| --- | --- | --- | --- |
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)


def computed(folder: Path) -> dict[str, bool]:
    """Return for each case whether both libraries compute the same."""
    names = subprocess.run(
        [sys.executable, "-c", "import packages; print(*packages.CASES)"],
        cwd=CASES.parent, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    numbers: list[dict[str, Any]] = []
    for library in ("torch", "tallow"):
        lines = run(folder, str(CASES), library, *names).stdout.splitlines()
        numbers.append({name: json.loads(text) for name, text in (line.split("\t") for line in lines if "\t" in line)})
    return {name: _agree(*(found.get(name, "not run") for found in numbers)) for name in names}


def _agree(expected: Any, found: Any) -> bool:
    if isinstance(expected, str) or isinstance(found, str) or len(expected) != len(found):
        return False
    return bool(np.allclose(found, expected, rtol=RTOL, atol=1e-6))


def row(folder: Path, versions: dict[str, str], equal: dict[str, bool], package: str) -> str:
    """Return the line of a package."""
    version = versions.get(DISTRIBUTIONS.get(package, package).replace("_", "-"), "?")
    if package in equal:
        return f"| {package} | {version} | a model with its gradient | {'equal' if equal[package] else '**differs**'} |"
    done = run(folder, "-c", IMPORT, package)
    if done.returncode == 0:
        return f"| {package} | {version} | import | imports |"
    reason = done.stderr.strip().splitlines()[-1].split(": ", 1)[-1].split(": tallow")[0]
    return f"| {package} | {version} | import | stops at `{reason:.80}` |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write docs/ecosystem.md.")
    parser.add_argument("folder", type=Path, help="a folder of packages, without PyTorch")
    folder = parser.parse_args().folder
    found = distributions(path=[str(folder)])
    versions = {each.name.lower().replace("_", "-"): each.version for each in found}
    equal = computed(folder)
    rows = [row(folder, versions, equal, package) for package in PACKAGES]
    (ROOT / "docs" / "ecosystem.md").write_text(HEAD.format(rtol=RTOL) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
