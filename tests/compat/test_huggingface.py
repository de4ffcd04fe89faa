"""transformers on tallow: models load from folders that PyTorch wrote, and compute and generate the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT
from tests.compat.huggingface import CONFIGS

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[float]]]:
    """The numbers of each model, by library: PyTorch first, which writes the folders."""
    folder = str(tmp_path_factory.mktemp("models"))
    found: dict[str, dict[str, list[float]]] = {}
    program = str(Path(ROOT, "tests", "compat", "huggingface.py"))
    for library in ("torch", "tallow"):
        command = [sys.executable, "-W", "ignore", program, library, folder]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
        found[library] = {name: json.loads(rest) for name, _, rest in (x.partition("\t") for x in text.splitlines())}
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_the_numbers_are_pytorchs(numbers: dict[str, dict[str, list[float]]], name: str) -> None:
    np.testing.assert_allclose(numbers["tallow"][name], numbers["torch"][name], rtol=2e-4, atol=2e-5)
