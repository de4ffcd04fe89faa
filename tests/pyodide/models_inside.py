"""Run inside Pyodide by test_models_in_pyodide.py: models saved by transformers give its outputs and texts.

support.model_pairs.write_cases wrote /cases.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.outputs import outputs_of, without_padding

from tallow.generation import generate
from tallow.models import AutoModel

# Both compute in float32; sums of up to 128 terms are taken in a different order.
ATOL = 1e-4
FOLDERS = sorted(Path("/cases").iterdir())
EXPECTED = {folder.name: dict(np.load(folder / "expected.npz")) for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_outputs(folder: Path) -> None:
    arrays = EXPECTED[folder.name]
    inputs = {name.removeprefix("in "): array for name, array in arrays.items() if name.startswith("in ")}
    expected = [array for name, array in arrays.items() if name.startswith("out ")]
    got = outputs_of(AutoModel.from_pretrained(folder), inputs)
    for ours, theirs in zip(without_padding(got, inputs), without_padding(expected, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=ATOL)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if "text" in EXPECTED[f.name]], ids=lambda folder: folder.name)
def test_greedy_text(folder: Path) -> None:
    prompt, text = EXPECTED[folder.name]["prompt"].tolist(), EXPECTED[folder.name]["text"].tolist()
    assert list(generate(AutoModel.from_pretrained(folder), prompt, max_tokens=len(text))) == text
