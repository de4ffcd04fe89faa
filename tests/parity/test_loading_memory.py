"""What loading a model allocates: next to nothing where the file's own dtype will do, else the weights once.

Counted is what Python and NumPy allocate, at its peak; pages of a mapped file are the file's, and come and go with it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.gguf_files import write_model

import tallow as tl
from tallow.models import AutoModel

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

MORE = 0.15  # of the weights' size, for whatever stands beside them at the peak
SIZES = {
    "vocab_size": 2000,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}


def sharded(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder, max_shard_size="10MB")
    assert len([*folder.glob("*.safetensors")]) > 2
    return folder


def pickled(model: Any, folder: Path) -> Path:
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def whole(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder


def whole_in_bfloat16(model: Any, folder: Path) -> Path:
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


def quantised(kind: str | None) -> Callable[[Any, Path], Path]:
    def write(model: Any, folder: Path) -> Path:
        write_model(model, folder / "model.gguf", kind and gguf.GGMLQuantizationType[kind])
        return folder / "model.gguf"

    return write


@pytest.fixture(scope="module")
def parameters() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(
    ("write", "dtype", "copies"),
    [
        (whole, None, 0),
        (whole, tl.bfloat16, 1),
        (sharded, None, 0),
        (sharded, tl.float16, 1),
        (pickled, None, 0),
        (pickled, tl.bfloat16, 1),
        (whole_in_bfloat16, None, 0),
        (whole_in_bfloat16, tl.float32, 1),
        (quantised(None), None, 0),
        (quantised("F16"), tl.float32, 1),
        (quantised("Q8_0"), tl.float32, 1),
        (quantised("Q4_0"), tl.bfloat16, 1),
    ],
)
def test_peak(
    write: Callable[[Any, Path], Path],
    dtype: tl.dtype | None,
    copies: int,
    parameters: dict[str, torch.Tensor],
    tmp_path: Path,
) -> None:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    model.load_state_dict(parameters)
    path = write(model, tmp_path)
    AutoModel.from_pretrained(path, dtype)  # what is imported and kept at first use is not the model's
    tracemalloc.start()
    try:
        loaded = AutoModel.from_pretrained(path, dtype)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    weights = sum(parameter.nbytes for parameter in loaded.parameters())
    assert peak <= (copies + MORE) * weights
