"""generation_config.json compared with transformers: tokens are drawn with the same probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import reference_model, tokens

from tallow.generation import Sampler
from tallow.models import AutoModel

# Logits agree within 1e-4, and a temperature may divide them by as little as 0.7.
ATOL = 1e-3
FILES: dict[str, dict[str, Any]] = {
    "top_k is 50 where the file does not say": {"do_sample": True},
    "0 keeps all": {"do_sample": True, "top_k": 0, "temperature": 1.7},
    "temperature, top_k and top_p": {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8},
    "min_p and a penalty": {"do_sample": True, "min_p": 0.1, "repetition_penalty": 1.3, "top_k": 0},
    "numbers without do_sample": {"temperature": 0.7, "top_p": 0.8},
    "a penalty without do_sample": {"do_sample": False, "repetition_penalty": 1.3},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    reference_model("qwen3").save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore:.*do_sample.*is set to:UserWarning")
@pytest.mark.parametrize("file", FILES.values(), ids=list(FILES))
def test_probabilities(folder: Path, file: dict[str, Any]) -> None:
    (folder / "generation_config.json").write_text(json.dumps(file | {"eos_token_id": [95, 96], "pad_token_id": 0}))
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ((*prompt,),) = tokens(12, batch=1)
    generated = reference.generate(
        torch.tensor([prompt]), max_new_tokens=6, output_scores=True, return_dict_in_generate=True
    )
    text = generated.sequences[0].tolist()
    model = AutoModel.from_pretrained(folder)
    assert model.generation_config.eos_token_id == (95, 96)
    sampler = Sampler(**model.generation_config.sampling)
    for length, scores in enumerate(generated.scores, len(prompt)):
        logits = model.next_logits(text[:length], model.new_cache(length=length))
        expected = torch.softmax(scores[0].double(), -1).numpy()
        if not file.get("do_sample"):
            expected = np.eye(len(expected))[expected.argmax()]
        np.testing.assert_allclose(sampler.distribution(logits, text[:length]), expected, atol=ATOL)
