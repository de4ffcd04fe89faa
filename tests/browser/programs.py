"""The programs of console/programs, for packages for PyTorch: what runs in the console, and what PyTorch prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from fetch_packages import WHEELS
from tests.browser.consoles import Console

FOLDER = Path(__file__).with_name("console") / "programs"
MODULES = sorted(path.stem.removeprefix("run_") for path in FOLDER.glob("run_*.py"))
RTOL = 2e-4  # of float32 through dozens of layers


def source(module: str) -> str:
    """Return the program for a package."""
    return (FOLDER / f"run_{module}.py").read_text(encoding="utf-8")


def prepare(console: Console) -> None:
    """Write the module that the programs share to the session's folder."""
    text = (FOLDER / "prelude.py").read_text(encoding="utf-8")
    console.run(f"from pathlib import Path\n_ = Path('prelude.py').write_text({text!r})")


def install(console: Console, module: str) -> None:
    """Install a package that an import does not: without a version, `transformers` is tallow's own."""
    for wheel in WHEELS:
        if wheel.startswith("transformers==") and module == "transformers":
            console.run(f"pip install {wheel}")


def compare(output: str, module: str) -> None:
    """Check what a program has printed.  Raises: AssertionError if it has failed, or if PyTorch's numbers differ"""
    assert "Traceback" not in output, output
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))[module]
    np.testing.assert_allclose(json.loads(output.strip().splitlines()[-1]), expected, rtol=RTOL, atol=1e-6)
