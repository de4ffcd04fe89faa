"""Architectures that tallow has no file for, run by transformers on tallow: equal numbers to those with PyTorch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT
from tests.compat.by_transformers import KINDS

from tallow.errors import ArgumentError, CheckpointError
from tallow.models import AutoModel
from tallow.models.architectures import MODEL_TYPES

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[float]]]:
    """The numbers of each architecture, by library: PyTorch first, which writes the folders."""
    folder = str(tmp_path_factory.mktemp("models"))
    found: dict[str, dict[str, list[float]]] = {}
    program = str(Path(ROOT, "tests", "compat", "by_transformers.py"))
    for library in ("torch", "tallow"):
        command = [sys.executable, "-W", "ignore", program, library, folder]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
        found[library] = {name: json.loads(rest) for name, _, rest in (x.partition("\t") for x in text.splitlines())}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_pytorchs(numbers: dict[str, dict[str, list[float]]], kind: str) -> None:
    assert kind not in MODEL_TYPES
    np.testing.assert_allclose(numbers["tallow"][kind], numbers["torch"][kind], rtol=2e-4, atol=2e-5)


def test_an_unknown_architecture_is_refused_with_the_way_to_run_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bloom", "architectures": ["BloomForCausalLM"]}')
    with pytest.raises(CheckpointError, match=r'BloomForCausalLM\n.*via="transformers".*--via transformers'):
        AutoModel.from_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="via='torch'"):
        AutoModel.from_pretrained(tmp_path, via="torch")


def test_a_class_that_is_no_model_is_refused(tmp_path: Path) -> None:
    names = ["pipeline", "AutoTokenizer", "NewForCausalLM"]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bloom", "architectures": names}))
    program = "import sys; from tallow.models import AutoModel as A; A.from_pretrained(sys.argv[1], via='transformers')"
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)]
    text = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=100).stderr
    assert re.search(rf"CheckpointError.*transformers has no model {', '.join(names)}", text)
