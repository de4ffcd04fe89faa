"""gpt-oss with experts in MXFP4, as OpenAI's repositories hold them, compared with transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.model_pairs import VOCAB, reference_model, tokens
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import tallow as tl
from tallow.errors import CheckpointError
from tallow.generation import generate
from tallow.models import AutoModel
from tallow.nn.block_layers import BlockLinear

ATOL = 1e-4  # both compute in float32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with random blocks and scales; the model of transformers gets their values."""
    reference = reference_model("gpt-oss")
    reference.save_pretrained(tmp_path)
    return tmp_path


def packed(folder: Path) -> dict[str, Any]:
    """Replace the experts of a folder by random ones in MXFP4, and return all tensors as floats."""
    generator = torch.Generator().manual_seed(0)
    state = load_file(folder / "model.safetensors")
    floats = dict(state)
    for name in [name for name in state if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, columns, rows = state.pop(name).shape
        blocks = torch.randint(256, (experts, rows, columns // 32, 16), dtype=torch.uint8, generator=generator)
        scales = torch.randint(120, 126, blocks.shape[:-1], dtype=torch.uint8, generator=generator)
        state |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        floats[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))
    return floats


def test_experts_stay_in_four_bits(folder: Path) -> None:
    reference = reference_model("gpt-oss")
    reference.load_state_dict(packed(folder))
    model = AutoModel.from_pretrained(folder)
    expert = model.model.layers[0].mlp.experts[0]
    assert {type(getattr(expert, name)) for name in expert.names} == {BlockLinear}
    batch = tokens(20)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(batch)).numpy(), expected, atol=ATOL)
    written = reference.generate(torch.tensor([batch[0][:5]]), max_new_tokens=12, do_sample=False)[0, 5:].tolist()
    assert list(generate(model, batch[0][:5], max_tokens=12)) == written
    assert max(written) < VOCAB


@pytest.mark.parametrize("end", ["blocks", "scales"])
def test_blocks_of_floats_are_refused(folder: Path, end: str) -> None:
    packed(folder)
    state = load_file(folder / "model.safetensors")
    name = f"model.layers.0.mlp.experts.down_proj_{end}"
    save_file(state | {name: state[name].float()}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"down_proj_blocks and its scales are .*float32.*, not uint8"):
        AutoModel.from_pretrained(folder)


def test_blocks_without_scales_are_refused(folder: Path) -> None:
    packed(folder)
    state = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.experts.down_proj_scales"
    save_file({key: value for key, value in state.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="down_proj_blocks has no scales of its shape"):
        AutoModel.from_pretrained(folder)
