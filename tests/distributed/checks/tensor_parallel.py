"""A Llama divided among the ranks: logits, texts and gradients of the whole model, from a part of its bytes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.distributed as dist
from tallow.errors import ArgumentError, CheckpointError
from tallow.generation import generate
from tallow.io import stored
from tallow.models.decoders.llama import Llama
from tallow.models.parallel import TensorParallelLlama
from tallow.nn import functional as F

SIZES: dict[str, Any] = {
    "vocab_size": 37,  # not divisible by any number of ranks
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "initializer_range": 0.3,
}
PROMPT = [1, 36, 3, 5]
DIVIDED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def write(folder: Path, name: str, dtype: Any = tl.float32, shards: bool = False, **changes: Any) -> Path:
    """Write a model's folder in rank 0."""
    folder /= name
    if dist.get_rank() == 0:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(SIZES | changes | {"model_type": "llama"}))
        tl.manual_seed(0)
        config = Llama.config_class.from_json(folder / "config.json")
        state = {key: value.to(dtype) for key, value in Llama(config).state_dict().items()}
        if shards:
            parts = {"a.safetensors": dict([*state.items()][:7]), "b.safetensors": dict([*state.items()][7:])}
            index = {"weight_map": {key: part for part, tensors in parts.items() for key in tensors}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        else:
            parts = {"model.safetensors": state}
        for part, tensors in parts.items():
            tl.save(tensors, folder / part)
    dist.barrier()
    return folder


def check_logits_and_texts(folder: Path) -> None:
    for name, options in {"plain": {}, "tied": {"tie_word_embeddings": True}, "shards": {"shards": True}}.items():
        place = write(folder, name, **options)
        full_model, divided = Llama.from_pretrained(place), TensorParallelLlama.from_pretrained(place)
        tokens = tl.tensor([PROMPT, PROMPT[::-1]])
        with tl.no_grad():
            np.testing.assert_allclose(divided(tokens).numpy(), full_model(tokens).numpy(), atol=2e-5, err_msg=name)
        texts = [list(generate(model, PROMPT, max_tokens=24)) for model in (full_model, divided)]
        assert texts[0] == texts[1], name
        assert divided.new_cache().layers[0].keys.shape[1] == SIZES["num_key_value_heads"] // dist.get_world_size()


def check_a_head_of_its_own_beside_a_config_that_ties_it(folder: Path) -> None:
    place = write(folder, "own head")
    if not dist.get_rank():
        config = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    dist.barrier()
    full_model, divided = Llama.from_pretrained(place), TensorParallelLlama.from_pretrained(place)
    assert divided.lm_head is not None
    with tl.no_grad():
        tokens = tl.tensor([PROMPT])
        np.testing.assert_allclose(divided(tokens).numpy(), full_model(tokens).numpy(), atol=2e-5)


def check_a_token_beyond_the_vocabulary(folder: Path) -> None:
    divided = TensorParallelLlama.from_pretrained(write(folder, "beyond"))
    for token in (-1, SIZES["vocab_size"]):
        with pytest.raises(IndexError):
            divided(tl.tensor([[1, token]]))


def check_bfloat16(folder: Path) -> None:
    place = write(folder, "bfloat16", dtype=tl.bfloat16)
    full_model, divided = Llama.from_pretrained(place), TensorParallelLlama.from_pretrained(place)
    assert divided.head_weight.dtype is tl.bfloat16
    tokens = tl.tensor([PROMPT])
    with tl.no_grad():
        expected = full_model(tokens).float().numpy()
        # The parts of a sum are rounded to eight bits before they are added.
        np.testing.assert_allclose(divided(tokens).float().numpy(), expected, atol=0.05 * np.abs(expected).max())


def check_gradients(folder: Path) -> None:
    place = write(folder, "gradients")
    full_model, divided = Llama.from_pretrained(place).train(), TensorParallelLlama.from_pretrained(place).train()
    for model in (full_model, divided):
        F.cross_entropy(model(tl.tensor([PROMPT[:-1]]))[0], tl.tensor(PROMPT[1:])).backward()
    for name, parameter in divided.named_parameters():
        expected = full_model.get_parameter(name).grad
        layer: Any = divided.get_submodule(name.rpartition(".")[0])
        dim = getattr(layer, "sharded", {}).get(name.rpartition(".")[2])
        assert expected is not None
        assert parameter.grad is not None
        if dim is not None:
            expected = expected.narrow(dim, layer.share.start, layer.share.size)
        scale = full_model.get_parameter(name).grad.abs().max().item()
        np.testing.assert_allclose(parameter.grad.numpy(), expected.numpy(), atol=1e-5 * scale, err_msg=name)


def check_that_each_rank_reads_its_part_only(folder: Path) -> None:
    class Counting(io.FileIO):
        bytes_read = 0

        def readinto(self, buffer: Any) -> int | None:
            count = super().readinto(buffer)
            Counting.bytes_read += count or 0
            return count

    place = write(folder, "counted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "FileIO", Counting)
        TensorParallelLlama.from_pretrained(place)
    state = Llama.from_pretrained(place).state_dict()
    rank, n = dist.get_rank(), dist.get_world_size()
    rows = -(-SIZES["vocab_size"] // n)
    rows = min(SIZES["vocab_size"], (rank + 1) * rows) - rank * rows
    expected = 0
    for name, tensor in state.items():
        if name.split(".")[-2] in DIVIDED:
            expected += tensor.nbytes // n
        elif name.split(".")[-2] in ("embed_tokens", "lm_head"):
            expected += rows * tensor.shape[1] * tensor.itemsize
        else:
            expected += tensor.nbytes
    assert Counting.bytes_read == expected


def check_what_does_not_fit(folder: Path) -> None:
    n = dist.get_world_size()
    place = write(folder, "heads", num_attention_heads=3, num_key_value_heads=3, head_dim=4)
    with pytest.raises(ArgumentError, match=rf"num_attention_heads=3 in {n} processes"):
        TensorParallelLlama.from_pretrained(place)
    place = write(folder, "narrow")
    if dist.get_rank() == 0:
        (place / "config.json").write_text(json.dumps(SIZES | {"intermediate_size": 96, "model_type": "llama"}))
    dist.barrier()
    with pytest.raises(CheckpointError, match=r"mlp\.down_proj\.weight: file \(32, 48\), model \(32, 96\)"):
        TensorParallelLlama.from_pretrained(place)
    dist.barrier()
    if dist.get_rank() == 0:
        (place / "model.safetensors").unlink()
        tl.save({"x": tl.ones(1)}, place / "pytorch_model.bin")
    dist.barrier()
    with pytest.raises(CheckpointError, match=r"cannot be read in part\n.*tallow convert"):
        TensorParallelLlama.from_pretrained(place)
