"""torch.multiprocessing: children have the stand-in, and tensors of shared memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
import torch.multiprocessing as mp

def work(i, x, model):
    x[i] += 10
    with torch.no_grad():
        model.weight.add_(1)
    raise ValueError("of process 0")

if __name__ == "__main__":
    x, model = torch.zeros(3).share_memory_(), torch.nn.Linear(2, 1, bias=False).share_memory()
    before = model.weight.detach().clone()
    try:
        mp.spawn(work, args=(x[1:], model), nprocs=1)
    except mp.ProcessRaisedException as error:
        assert error.error_index == 0 and "of process 0" in str(error)
        print(x.tolist(), round((model.weight - before)[0, 0].item(), 5))
"""


@pytest.mark.native
def test_spawned_processes_share_tensors(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "tallow.compat", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.stdout.splitlines()[-1:] == ["[0.0, 10.0, 0.0] 1.0"], result.stderr
