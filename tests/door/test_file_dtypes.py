"""Files with dtypes that only hold values: they are read and saved in their own dtype."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import tallow as tl
from tallow import cli
from tallow.errors import CheckpointError
from tallow.io import npz, safetensors
from tallow.models import AutoModel

FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
INTEGERS = {"uint16": (tl.uint16, 2**16), "uint64": (tl.uint64, 2**64)}


def every_byte(name: str) -> torch.Tensor:
    return torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))


def assert_same(ours: tl.Tensor, theirs: torch.Tensor) -> None:
    """Check the dtype, all values, and the sign of zeros."""
    expected = theirs.float().numpy()
    assert str(ours.dtype).removeprefix("tallow.") == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(ours.float().numpy(), expected)
    np.testing.assert_array_equal(np.signbit(ours.float().numpy()[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("name", FLOATS)
def test_floats_of_8_bits(name: str, tmp_path: Path) -> None:
    values = every_byte(name)
    safe, pickled = tmp_path / "a.safetensors", tmp_path / "a.pt"
    torch.save({"x": values.reshape(16, 16), "part": values[3:250:2]}, pickled)
    loaded = tl.load(pickled)
    assert_same(loaded["x"], values.reshape(16, 16))
    assert_same(loaded["part"], values[3:250:2])
    assert loaded["x"].data_ptr() + 3 == loaded["part"].data_ptr()
    tl.save(loaded, tmp_path / "b.pt")
    again = torch.load(tmp_path / "b.pt")
    assert again["x"].dtype == values.dtype
    assert again["x"].view(torch.uint8).flatten().tolist() == list(range(256))
    if name.endswith("fnuz") or name == "float8_e8m0fnu":  # which the package does not write
        kind = {"float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}[name]
        header = json.dumps({"x": {"dtype": kind, "shape": [256], "data_offsets": [0, 256]}}).encode()
        safe.write_bytes(len(header).to_bytes(8, "little") + header + bytes(range(256)))
    else:
        save_file({"x": values}, safe)
    assert_same(tl.load(safe)["x"].reshape(256), values)
    safetensors.save(tl.load(safe), tmp_path / "b.safetensors")
    assert (tmp_path / "b.safetensors").read_bytes()[-256:] == bytes(range(256))
    assert_same(tl.load(tmp_path / "b.safetensors")["x"], values)


@pytest.mark.parametrize("name", INTEGERS)
def test_unsigned_integers(name: str, tmp_path: Path) -> None:
    dtype, end = INTEGERS[name]
    values = np.array([[0, 1, end - 1], [5, end // 2, end // 3]], name)
    save_file({"x": torch.from_numpy(values), "byte": torch.ones(1, dtype=torch.uint8)}, tmp_path / "a.safetensors")
    torch.save({"x": torch.from_numpy(values), "last": torch.from_numpy(values)[1]}, tmp_path / "a.pt")
    np.savez(tmp_path / "a.npz", x=values, swapped=values.astype(values.dtype.newbyteorder(">")))
    np.save(tmp_path / "a.npy", values.T)
    loaded = [tl.load(tmp_path / f"a.{kind}")["x"] for kind in ("safetensors", "pt", "npz")]
    loaded += [tl.load(tmp_path / "a.npz")["swapped"], npz.load_array(tmp_path / "a.npy").T]
    for tensor in loaded:
        assert tensor.dtype is dtype
        np.testing.assert_array_equal(tensor.numpy(), values)
    assert tl.load(tmp_path / "a.pt")["last"].tolist() == values[1].tolist()
    for kind in ("safetensors", "pt", "npz"):
        tl.save({"x": loaded[0]}, tmp_path / f"b.{kind}")
        again = tl.load(tmp_path / f"b.{kind}")["x"]
        assert again.dtype is dtype
        np.testing.assert_array_equal(again.numpy(), values)
    assert load_file(tmp_path / "b.safetensors")["x"].tolist() == values.tolist()
    assert np.load(tmp_path / "b.npz")["x"].dtype == values.dtype


def test_empty_tensors_and_scalars(tmp_path: Path) -> None:
    save_file(
        {"none": torch.ones(0, 3).to(torch.uint64), "one": torch.tensor(3).to(torch.uint16)}, tmp_path / "a.safetensors"
    )
    loaded = tl.load(tmp_path / "a.safetensors")
    assert loaded["none"].shape == (0, 3)
    assert loaded["one"].item() == 3


def test_sizes_are_those_of_the_file() -> None:
    header = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 6]}}).encode()
    with pytest.raises(CheckpointError, match=r"F8_E4M3\[3\] takes 3 bytes; its data_offsets span 6"):
        safetensors.load(len(header).to_bytes(8, "little") + header + bytes(6))


def test_a_file_before_pytorch_1_6(tmp_path: Path) -> None:
    torch.save({"x": every_byte("float8_e5m2")}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    assert_same(tl.load(tmp_path / "a.pt")["x"], every_byte("float8_e5m2"))


def test_on_the_meta_device(tmp_path: Path) -> None:
    torch.save({"x": every_byte("float8_e5m2").reshape(2, 128)}, tmp_path / "a.pt")
    tensor = tl.load(tmp_path / "a.pt", map_location="meta")["x"]
    assert (tensor.shape, tensor.dtype, tensor.device.type) == ((2, 128), tl.float8_e5m2, "meta")


SIZES = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a random Llama whose projections are in 8 bits."""
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    rounded = {name: each.to(torch.float8_e4m3fn) if "_proj" in name else each for name, each in state.items()}
    save_file(rounded, tmp_path / "model.safetensors", {"format": "pt"})
    return tmp_path


def test_a_model_with_weights_in_8_bits(folder: Path) -> None:
    state = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
    theirs.load_state_dict(state)
    ids = np.arange(12).reshape(2, 6)
    with tl.no_grad():
        ours = AutoModel.from_pretrained(folder, dtype=tl.float32)(tl.tensor(ids)).numpy()
    np.testing.assert_allclose(ours, theirs(torch.tensor(ids)).logits.detach().numpy(), atol=1e-4)


def test_inspecting_weights_in_8_bits_does_not_convert_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tl.dtypes, "numbers_of", None)
    assert cli.main(["inspect", str(folder)]) == 0
    assert "float8_e4m3fn" in capsys.readouterr().out


def test_scales_of_weights_in_8_bits_are_not_ignored(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.weight_scale_inv"
    save_file(state | {name: torch.ones(1)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"unexpected   {name}"):
        AutoModel.from_pretrained(folder)
    save_file(state, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    entry = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": entry}))
    with pytest.raises(CheckpointError, match="quantization_config"):
        AutoModel.from_pretrained(folder)
