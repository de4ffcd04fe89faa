"""`tallow inspect` and `tallow convert`: what files hold, and the same weights in another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.cli import main
from tallow.io import llama2c, safetensors
from tallow.io.contents import contents
from tallow.models.llama import Llama, LlamaConfig

SIZES = {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
}


def llama(**changes: Any) -> Llama:
    tl.manual_seed(0)
    return Llama(LlamaConfig(**SIZES | {"initializer_range": 0.4} | changes)).eval().requires_grad_(False)


def run(*arguments: Any) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_goes_to_llama2c_and_back(tied: bool, tmp_path: Path) -> None:
    model = llama(rope_interleaved=True, tie_word_embeddings=tied)
    tokens = tl.tensor([[1, 5, 9, 2, 7]])
    safetensors.save(model.state_dict(), tmp_path / "model.safetensors")
    entries = SIZES | {"model_type": "llama", "rope_interleaved": True, "tie_word_embeddings": tied}
    (tmp_path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    assert run("convert", tmp_path, tmp_path / "model.bin") == 0
    np.testing.assert_allclose(
        Llama.from_llama2c(tmp_path / "model.bin")(tokens).detach().numpy(), model(tokens).numpy(), atol=1e-5
    )
    # Hugging Face's order of rows: the same model without neighbours as rotary pairs.
    assert run("convert", tmp_path / "model.bin", tmp_path / "folder") == 0
    there = Llama.from_pretrained(tmp_path / "folder")
    assert not there.config.rope_interleaved
    np.testing.assert_allclose(there(tokens).detach().numpy(), model(tokens).numpy(), atol=1e-5)
    assert run("convert", tmp_path / "folder", tmp_path / "again.bin") == 0
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "model.bin").read_bytes()


def test_the_tables_of_llama2c(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "stories260K.bin"
    assert run("convert", source, tmp_path / "again.bin") == 0
    expected, written = (np.fromfile(path, np.float32) for path in (source, tmp_path / "again.bin"))
    np.testing.assert_allclose(written, expected, atol=1e-4)  # angles of up to 512 radians, rounded to float32 by one
    loaded = (llama2c.load(path).arrays for path in (source, tmp_path / "again.bin"))
    for ours, theirs in zip(*(arrays.values() for arrays in loaded), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("extension", [".pth", ".npz", ".safetensors"])
def test_tensors_go_to_other_formats_under_their_names(extension: str, tmp_path: Path) -> None:
    tensors = {"a.weight": tl.randn(3, 4), "count": tl.tensor(7)}
    tl.save(tensors, tmp_path / "in.safetensors")
    target = tmp_path / f"out{extension}"
    assert run("convert", tmp_path / "in.safetensors", target, "--dtype", "float16") == 0
    loaded = tl.load(target)
    assert tl.equal(loaded["a.weight"], tensors["a.weight"].half().cpu())
    assert loaded["count"].dtype is tl.int64


def test_an_entry_is_chosen_by_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"state_dict": {"weight": tl.ones(2)}, "epoch": 3}, tmp_path / "in.pth")
    assert run("convert", tmp_path / "in.pth", tmp_path / "out.npz") == 2
    assert "does not hold tensors by name, but state_dict, epoch; choose an entry by its key" in capsys.readouterr().err
    assert run("convert", tmp_path / "in.pth", tmp_path / "out.npz", "--key", "state_dict") == 0
    assert tl.load(tmp_path / "out.npz")["weight"].tolist() == [1, 1]
    assert run("convert", tmp_path / "in.pth", tmp_path / "other.npz", "--key", "model") == 2
    assert "has no entry 'model'" in capsys.readouterr().err


def test_what_exists_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "in.npz")
    (tmp_path / "out.npz").write_bytes(b"precious")
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.npz") == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out.npz").read_bytes() == b"precious"
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.npz", "--force") == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rope_theta": 5e5}, "rope_theta=10000.0"),
        ({"rms_norm_eps": 1e-6}, "rms_norm_eps=1e-05"),
        ({"attention_bias": True}, "attention_bias=False"),
        ({"head_dim": 8}, "head_width=4"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "does not compute"),
    ],
)
def test_what_llama2c_does_not_compute(
    changes: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    safetensors.save(llama(**changes).state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(SIZES | {"model_type": "llama"} | changes), encoding="utf-8")
    assert run("convert", tmp_path, tmp_path / "out.bin") == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out.bin").exists()


def test_an_extension_that_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "in.npz")
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.onnx") == 2
    assert ".safetensors" in capsys.readouterr().err


def test_inspect_says_what_a_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save(
        {"w": tl.zeros(300, 1000), "b": tl.zeros(7, dtype=tl.bfloat16)}, path, {"note": "a\x1b[2J" + "z" * 300}
    )
    assert run("inspect", path) == 0
    out = capsys.readouterr().out
    assert out.startswith("format  safetensors\n")
    assert "\x1b" not in out
    assert "w  F32   300 x 1000    1.2 MB" in out
    assert "b  BF16  7           14 bytes" in out
    assert out.endswith("2 tensors, 300,007 elements, 1.2 MB (F32, BF16)\n")
    assert max(map(len, out.splitlines())) < 120


def test_inspect_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"model": {"w": tl.zeros(2, 3)}, "epoch": 4, "losses": [1.0, 0.5]}, tmp_path / "x.pth")
    assert run("inspect", tmp_path / "x.pth", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tensors"] == [{"name": "model.w", "dtype": "float32", "shape": [2, 3], "bytes": 24}]
    assert found["metadata"] == {"epoch": 4, "losses": [1.0, 0.5]}


def test_contents_of_every_format(data_dir: Path, tmp_path: Path) -> None:
    found = contents(data_dir / "stories260K.bin")
    assert found.format == "llama2c, version 0"
    assert found.metadata["dim"] == 64
    assert sum(entry.bytes for entry in found.tensors) + 28 == (data_dir / "stories260K.bin").stat().st_size
    tl.save(tl.zeros(2, 3), tmp_path / "x.npy")
    assert contents(tmp_path / "x.npy").tensors[0].shape == (2, 3)
    tl.save({"a": tl.zeros(5)}, tmp_path / "x.npz")
    assert [entry.name for entry in contents(tmp_path / "x.npz").tensors] == ["a"]


@pytest.mark.parametrize("content", [b"", b"hello", b"<html>" + b"x" * 200, bytes(64)])
def test_inspect_refuses_what_it_does_not_know(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert run("inspect", path) == 2
    assert "is in no format that tallow reads" in capsys.readouterr().err


def test_inspect_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", tmp_path / "none") == 2
    assert "none" in capsys.readouterr().err
