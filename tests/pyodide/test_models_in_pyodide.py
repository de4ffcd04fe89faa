"""Models inside Pyodide: folders saved by transformers give its outputs and texts."""

from __future__ import annotations

from pathlib import Path

from support import model_pairs, subsuite
from tests.pyodide.conftest import InPyodide


def test_models_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    model_pairs.write_cases(folder)
    outcome = in_pyodide("tests/pyodide/models_inside.py", mounts={"/cases": folder})
    account_for("of models in Pyodide", outcome)
    assert outcome.passed == len(model_pairs.EVERY) + len(model_pairs.LANGUAGE_MODELS)
