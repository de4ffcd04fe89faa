"""Programs written for PyTorch run on tallow unchanged, on every platform, and learn.

`tests/parity/test_whole_programs.py` compares their output with PyTorch's.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from compat.harness import PROGRAMS, run

import tallow as tl
from tallow.compat import install_torch

LOSS = re.compile(r"loss (\d+\.\d+)")


@pytest.mark.cpu("programs choose their own device")
@pytest.mark.filterwarnings("ignore:tl.compile.*on a device that plans do not support")
@pytest.mark.parametrize("program", [*PROGRAMS, "gpt --compile --plain-attention"])
def test_runs_and_learns(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tl.manual_seed(0)
    monkeypatch.setattr(tl.backends.cuda.matmul, "allow_tf32", False)  # undoes what programs set
    with install_torch(replace=True):
        run(*program.split(), "--init", str(tmp_path / "init.pt"))
        # again, from the weights that the first run wrote
        run(*program.split(), "--init", str(tmp_path / "init.pt"), "--steps", "2")
    losses = [float(loss) for loss in LOSS.findall(capsys.readouterr().out)]
    assert all(math.isfinite(loss) for loss in losses)
    if program != "agents":  # their losses measure the prediction error of rewards
        assert losses[2] < losses[0] or losses[3] < losses[0]
