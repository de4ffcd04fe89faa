"""Training on `cuda`: checkpoints keep the device, variables are created and loaded there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow import nn


class Run:
    def __init__(self, device: str, seed: int, dropout: float) -> None:
        tl.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(dropout), nn.Linear(4, 1)).to(device)
        self.optimizer = tl.optim.AdamW(self.model.parameters(), lr=0.01)
        self.device = device

    def step(self) -> float:
        x = tl.randn(8, 3).to(self.device)
        loss = (self.model(x) ** 2).mean()
        self.optimizer.backward_step(loss)
        return loss.item()

    def devices(self) -> set[str]:
        state = [value for entry in self.optimizer.state.values() for name, value in entry.items() if name != "step"]
        return {tensor.device.type for tensor in (*self.model.parameters(), *state)}


@pytest.mark.parametrize("other", ["cpu", "cuda"])
def test_a_checkpoint_goes_to_the_device_of_the_model(other: str, cuda: str, tmp_path: Path) -> None:
    dropout = 0.2 if other == cuda else 0.0  # the noise comes from the device's own generator
    run = Run(cuda, 1, dropout)
    run.step()
    tl.save_checkpoint(tmp_path / "run", model=run.model, optimizer=run.optimizer)
    straight = [run.step() for _ in range(3)]
    again = Run(other, 2, dropout)
    tl.load_checkpoint(tmp_path / "run", model=again.model, optimizer=again.optimizer)
    assert [again.step() for _ in range(3)] == pytest.approx(straight, rel=1e-4 if other == "cpu" else 0)
    assert again.devices() == {other}


def test_variables_are_on_the_device_of_the_builder(cuda: str, tmp_path: Path) -> None:
    varmap = nn.VarMap()
    layers: list[Any] = [nn.linear(3, 2, nn.VarBuilder.from_varmap(varmap, device=cuda))]
    varmap.save(tmp_path / "m.safetensors")
    layers.append(nn.linear(3, 2, nn.VarBuilder.from_safetensors(tmp_path / "m.safetensors", device=cuda)))
    for layer in layers:
        assert {p.device.type for p in layer.parameters()} == {"cuda"}
    x = tl.ones(1, 3, device=cuda)
    assert layers[0](x).tolist() == layers[1](x).tolist()
    varmap.load(tmp_path / "m.safetensors")
    assert varmap.all_vars()[0].device.type == "cuda"
