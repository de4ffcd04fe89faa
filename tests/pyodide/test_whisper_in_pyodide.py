"""Whisper inside Pyodide: spectrograms, logits and texts match openai-whisper."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import subsuite
from tests.pyodide.conftest import InPyodide


# OpenAI's tokenizer leaves its vocabulary file open, and its beam search sorts tensors with NumPy.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
def test_whisper_in_pyodide(
    in_pyodide: InPyodide,
    account_for: subsuite.AccountFor,
    tmp_path: Path,
    data_dir: Path,
) -> None:
    pytest.importorskip("whisper")
    from support import whisper_pair  # needs PyTorch

    folder = tmp_path / "cases"
    whisper_pair.write_cases(folder, data_dir)
    outcome = in_pyodide("tests/pyodide/whisper_inside.py", mounts={"/cases": folder})
    account_for("of Whisper in Pyodide", outcome)
    assert outcome.passed == 6
