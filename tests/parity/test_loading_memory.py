"""Memory allocated by loading a model: almost nothing if the file's dtype is used, else one copy of the weights.

The tests measure the peak of Python's and NumPy's allocations; pages of a mapped file are not counted.
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

MORE = 0.15  # relative to the size of the weights, for everything else at the peak
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


def write_shards(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder, max_shard_size="10MB")
    assert len([*folder.glob("*.safetensors")]) > 2
    return folder


def write_pickle(model: Any, folder: Path) -> Path:
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def write_float32(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder


def write_bfloat16(model: Any, folder: Path) -> Path:
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


def write_gguf(kind: str | None) -> Callable[[Any, Path], Path]:
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
        (write_float32, None, 0),
        (write_float32, tl.bfloat16, 1),
        (write_shards, None, 0),
        (write_shards, tl.float16, 1),
        (write_pickle, None, 0),
        (write_pickle, tl.bfloat16, 1),
        (write_bfloat16, None, 0),
        (write_bfloat16, tl.float32, 1),
        (write_gguf(None), None, 0),
        (write_gguf("F16"), tl.float32, 1),
        (write_gguf("Q8_0"), tl.float32, 1),
        (write_gguf("Q4_0"), tl.bfloat16, 1),
    ],
)
def test_peak(
    write: Callable[[Any, Path], Path],
    dtype: tl.dtype | None,
    copies: int,
    parameters: dict[str, torch.Tensor],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if request.config.getoption("--compiled"):
        pytest.skip("each op is recorded first, which takes memory of its own")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    model.load_state_dict(parameters)
    path = write(model, tmp_path)
    AutoModel.from_pretrained(path, dtype)  # do not count modules and caches that the first use creates
    tracemalloc.start()
    try:
        loaded = AutoModel.from_pretrained(path, dtype)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    weights = sum(parameter.nbytes for parameter in loaded.parameters())
    assert peak <= (copies + MORE) * weights


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_peak_of_quantised_weights(kind: str, parameters: dict[str, torch.Tensor], tmp_path: Path) -> None:
    """They stay in the file; the first products may make one copy of them, in another order."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    model.load_state_dict(parameters)
    path = write_gguf(kind)(model, tmp_path)
    tokens = tl.tensor([[1, 2, 3]])
    with tl.no_grad():
        AutoModel.from_pretrained(path)(tokens)
        tracemalloc.start()
        try:
            loaded = AutoModel.from_pretrained(path)
            peak_of_loading = tracemalloc.get_traced_memory()[1]
            loaded(tokens)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak_of_loading <= MORE * path.stat().st_size
    assert peak <= (1 + MORE) * path.stat().st_size
