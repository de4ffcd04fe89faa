"""Qwen3.5 as its repositories hold it: the language model beside an encoder of images and heads for further tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import DELTA, EXPERTS, LLAMA_SIZES, tokens

import tallow as tl
from tallow.io import safetensors
from tallow.models import AutoModel, Qwen3_5, Qwen3_5Moe

ROPE = {"mrope_interleaved": True, "mrope_section": [2, 1, 1]}
TEXT = LLAMA_SIZES | DELTA | {"rope_parameters": DELTA["rope_parameters"] | ROPE, "num_hidden_layers": 4}
IMAGES = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32}


@pytest.mark.parametrize("name", ["Qwen3_5", "Qwen3_5Moe"])
def test_the_language_model_of_a_model_of_images(name: str, tmp_path: Path) -> None:
    kind: Any = getattr(transformers, f"{name}ForConditionalGeneration")
    text = TEXT | (EXPERTS | {"shared_expert_intermediate_size": 20} if name == "Qwen3_5Moe" else {})
    torch.manual_seed(0)
    reference = kind(kind.config_class(text_config=text, vision_config=IMAGES)).eval()
    reference.save_pretrained(tmp_path)
    state = dict(safetensors.load(tmp_path / "model.safetensors"))
    assert any(key.startswith("model.visual.") for key in state)
    safetensors.save(state | {"mtp.fc.weight": tl.zeros(32, 64)}, tmp_path / "model.safetensors", {"format": "pt"})
    entries = json.loads((tmp_path / "config.json").read_text())
    entries["text_config"] |= {"mtp_num_hidden_layers": 1, "attn_output_gate": True, "mamba_ssm_dtype": "float32"}
    (tmp_path / "config.json").write_text(json.dumps(entries))
    model = AutoModel.from_pretrained(tmp_path)
    assert isinstance(model, Qwen3_5 if name == "Qwen3_5" else Qwen3_5Moe)
    batch = tokens(40)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(batch)).numpy(), expected, atol=1e-4)
