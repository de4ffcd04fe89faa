"""Partial reads of tensors from a file: only the requested part is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.errors import CheckpointError
from tallow.io.stored import StoredTensor, stored_folder

TENSORS = {
    "cube": tl.arange(24).reshape(2, 3, 4),
    "half": tl.arange(6).reshape(3, 2).to(tl.bfloat16),
    "scalar": tl.tensor(7.0),
    "nothing": tl.ones(0, 3),
}


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, StoredTensor]:
    tl.save(TENSORS, tmp_path / "model.safetensors")
    return stored_folder(tmp_path)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_part_along_any_axis(dim: int, stored: dict[str, StoredTensor]) -> None:
    full = TENSORS["cube"]
    for start in range(full.shape[dim]):
        for stop in range(start, full.shape[dim] + 1):
            part = stored["cube"].read(dim, start, stop)
            np.testing.assert_array_equal(part.numpy(), full.narrow(dim, start, stop - start).numpy())


@pytest.mark.parametrize("name", TENSORS)
def test_the_whole_tensor(name: str, stored: dict[str, StoredTensor]) -> None:
    full = stored[name].read()
    assert full.dtype is TENSORS[name].dtype
    assert full.shape == TENSORS[name].shape == stored[name].shape
    assert tl.equal(full, TENSORS[name].cpu())


def test_sixteen_bits_in_part(stored: dict[str, StoredTensor]) -> None:
    assert tl.equal(stored["half"].read(1, 1, 2), TENSORS["half"][:, 1:].cpu())


def test_a_file_that_has_become_shorter_is_noticed(stored: dict[str, StoredTensor]) -> None:
    path = Path(stored["cube"].path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CheckpointError, match=r"model\.safetensors ends within tensor 'cube'\n.*download it again"):
        stored["cube"].read(2, 1, 3)


def test_only_safetensors_can_be_read_in_part(tmp_path: Path) -> None:
    tl.save(TENSORS, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"cannot be read in part\n.*tallow convert"):
        stored_folder(tmp_path)


def test_shards(tmp_path: Path) -> None:
    for name, tensor in TENSORS.items():
        tl.save({name: tensor}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in TENSORS}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert tl.equal(stored_folder(tmp_path)["cube"].read(1, 0, 2), TENSORS["cube"][:, :2].cpu())
