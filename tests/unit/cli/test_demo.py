"""`tallow demo`, run in this process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tallow.cli import main

pytestmark = pytest.mark.native


def test_signal_handlers_are_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        assert main(["demo", "--pyodide", str(tmp_path)]) == 2
        assert "Pyodide not found" in capsys.readouterr().err
        assert [signal.getsignal(number) for number in numbers] == [signal.SIG_DFL] * len(numbers)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
