"""Files whose weights hold NaN or infinities: a clear error, and `tallow inspect --check` names the tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.cli import main
from tallow.errors import CheckpointError, NumericError
from tallow.generation import PromptCache, Sampler, beam_search, generate, generate_batch, speculate
from tallow.io import gguf
from tallow.io.non_finite import non_finite
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.models import AutoModel
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.gguf.export import save_gguf

SIZES = {"vocab_size": 40, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16}
NAME = "blk.1.ffn_up.weight"
VALUES = pytest.mark.parametrize("value", [np.nan, -np.inf])
TYPES = pytest.mark.parametrize("file_type", ["Q8_0", "Q4_K_M"])
STAY = pytest.mark.cpu("elsewhere, blocks are converted on loading")


def damaged(folder: Path, file_type: str, value: float, name: str = NAME) -> Path:
    """Write a GGUF file in which a scale of one block is `value`."""
    tl.manual_seed(0)
    path = folder / "model.gguf"
    save_gguf(Llama(LlamaConfig(**SIZES)).eval(), path, file_type)
    file = gguf.load(path.read_bytes())
    blocks, record = file.get_blocks(name).tobytes(), FORMATS[file.info(name).type].record
    assert record.fields is not None
    content = bytearray(path.read_bytes())
    at = content.index(blocks) + 3 * record.itemsize + record.fields["d"][1]
    content[at : at + 2] = np.float16(value).tobytes()
    path.write_bytes(content)
    return path


WAYS: dict[str, Callable[[Any], Any]] = {
    "greedy": lambda model: list(generate(model, [1, 2, 3], max_tokens=4)),
    "sampled": lambda model: list(generate(model, [1, 2, 3], max_tokens=4, sample=Sampler(seed=0))),
    "batch": lambda model: list(generate_batch(model, [[1, 2, 3], [4]], max_tokens=4)),
    "int8 cache": lambda model: list(generate(model, [1, 2, 3], max_tokens=4, cache_dtype=tl.int8)),
    "prompt cache": lambda model: list(PromptCache(model).generate([1, 2, 3], max_tokens=4)),
    "beams": lambda model: beam_search(model, [1, 2, 3], num_beams=2, max_tokens=4),
    "speculation": lambda model: list(speculate(model, model, [1, 2, 3], max_tokens=4)),
}


@STAY
@TYPES
@VALUES
def test_generation_says_that_the_logits_are_not_numbers(file_type: str, value: float, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(damaged(tmp_path, file_type, value))
    for name, way in WAYS.items():
        with pytest.raises(NumericError, match=r"the logits hold NaN(.|\n)*tallow inspect --check FILE"):
            pytest.fail(f"{name}: {way(model)}")


@STAY
@pytest.mark.parametrize("name", ["token_embd.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "output.weight"])
def test_any_matrix(name: str, tmp_path: Path) -> None:
    """In a table only the row of a token is damaged: that of token 0, which the prompt has."""
    model = AutoModel.from_pretrained(damaged(tmp_path, "Q8_0", np.nan, name))
    with pytest.raises(NumericError, match="the logits hold NaN"):
        list(generate(model, [0], max_tokens=2))


@TYPES
@VALUES
def test_scales_that_are_converted_are_checked(file_type: str, value: float, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=rf"{NAME}' has scales that are infinite or NaN"):
        AutoModel.from_pretrained(damaged(tmp_path, file_type, value), dtype=tl.float32)


@TYPES
def test_inspect_names_the_tensors(file_type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = damaged(tmp_path, file_type, np.nan)
    assert main(["inspect", str(path)]) == 0
    assert "NaN" not in capsys.readouterr().out
    assert main(["inspect", str(path), "--check"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"{NAME} holds NaN or infinities"
    assert main(["inspect", str(path), "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["non_finite"] == [NAME]
    save_gguf(Llama(LlamaConfig(**SIZES)), path, file_type)
    assert main(["inspect", str(path), "--check"]) == 0
    assert capsys.readouterr().out.endswith("all weights are finite\n")


@pytest.mark.parametrize("dtype", [tl.float64, tl.float32, tl.float16, tl.bfloat16])
def test_tensors_of_floats(dtype: tl.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.io.non_finite.AT_ONCE", 7)
    weights = {name: tl.ones(3, 5, dtype=dtype, device="cpu") for name in ("fine", "nan", "inf", "empty", "ends")}
    weights |= {"integers": tl.ones(4, dtype=tl.int64, device="cpu"), "empty": tl.ones(0, 5, dtype=dtype, device="cpu")}
    weights["nan"][1, 2], weights["inf"][0, 0], weights["ends"][2, 4] = np.nan, np.inf, -np.inf
    for name in ("x.safetensors", "x.pt"):
        tl.save(weights, tmp_path / name)
        assert sorted(non_finite(tmp_path / name)) == ["ends", "inf", "nan"]
    tl.save({"model": weights, "list": [weights["nan"], 1]}, tmp_path / "x.pt")
    assert sorted(non_finite(tmp_path / "x.pt")) == ["list.0", "model.ends", "model.inf", "model.nan"]


def test_folders(tmp_path: Path) -> None:
    tl.save({"w": tl.ones(2, device="cpu") / 0}, tmp_path / "model.safetensors")
    assert list(non_finite(tmp_path)) == ["w"]


@pytest.mark.cpu("float8 in files")
def test_nan_among_complex_numbers_and_in_float8(tmp_path: Path) -> None:
    nan = float("nan")
    tensors = {"complex": tl.tensor([complex(0, nan)]), "float8": tl.tensor([nan]).to(tl.float8_e4m3fn)}
    tl.save(tensors | {"finite": tl.tensor([1j])}, tmp_path / "a.safetensors")
    assert sorted(non_finite(tmp_path / "a.safetensors")) == ["complex", "float8"]
