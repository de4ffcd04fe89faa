"""A torch.distributed program, unchanged, gives PyTorch's single-process result for the combined batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.distributed.conftest import HERE, start
from torch.utils.data import DistributedSampler

PROCESSES, BATCH = 2, 2


def expected() -> list[float]:
    x, y = torch.arange(32.0).reshape(16, 2) / 32, torch.arange(16.0).reshape(16, 1) / 16
    shares = [list(DistributedSampler(range(16), PROCESSES, rank, shuffle=False)) for rank in range(PROCESSES)]
    model = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, 0.5)
    torch.nn.init.constant_(model.bias, 0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        for i in range(0, len(shares[0]), BATCH):
            rows = [row for share in shares for row in share[i : i + BATCH]]
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    return [loss.item(), *model.weight.tolist()[0]]


def test_a_program_for_pytorch(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    program = str(HERE / "programs" / "regression.py")
    process = start(PROCESSES, "-m", "tallow.compat", program, str(result), launcher=True)
    assert process.returncode == 0, process
    assert json.loads(result.read_text()) == pytest.approx(expected(), rel=1e-5)
