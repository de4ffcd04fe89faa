"""Tokenizers inside Pyodide: the JavaScript library gives the ids and texts of the package `tokenizers`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import subsuite, tokenizer_folders, tokenizer_kinds
from tests.pyodide.conftest import InPyodide


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_tokenizers_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    tokenizer_kinds.write_cases(folder)
    tokenizer_folders.write_cases(folder)
    account_for("of tokenizers in Pyodide", in_pyodide("tests/pyodide/tokenizers_inside.py", mounts={"/cases": folder}))
