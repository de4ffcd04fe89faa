"""Every model class: results, hidden states and attentions equal those of transformers on the same folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

from tallow.transformers.model_names import NAMES

PIXELS = np.random.default_rng(0).normal(size=(2, 3, 24, 24)).astype(np.float32)
SOUND = np.random.default_rng(1).normal(size=(2, 80, 100)).astype(np.float32)
IDS = np.arange(5, 17).reshape(2, 6)
# A name of older versions, and classes whose folders the real package does not write.
ELSEWHERE = {"RWForCausalLM", "T5WithLMHeadModel"}
CLASSES = sorted({*NAMES} - ELSEWHERE)


def inputs_of(model: Any, torch: Any) -> dict[str, Any]:
    ids = torch.tensor(IDS)
    if type(model).__name__.endswith("ForMultipleChoice"):
        ids = torch.tensor(IDS.reshape(2, 2, 3))
    texts: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.main_input_name == "input_features":
        return {"input_features": torch.tensor(SOUND), "decoder_input_ids": ids}
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.tensor(PIXELS)}
    if model.config.model_type == "clip":
        return texts | {"pixel_values": torch.tensor(PIXELS)}
    is_written = model.config.is_encoder_decoder and not type(model).__name__.endswith("EncoderModel")
    return texts | ({"decoder_input_ids": ids} if is_written else {})


def entries(result: Any) -> dict[str, Any]:
    """Return a result without its cache, which is only as long as the other's."""
    past = result.get("past_key_values")
    others = {name: value for name, value in result.items() if name != "past_key_values"}
    return others if past is None else others | {"length": past.get_seq_length()}


@pytest.mark.parametrize("name", CLASSES)
def test_results(name: str, folders: Folders) -> None:
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder, attn_implementation="eager")
        with torch.no_grad():
            inputs = inputs_of(model, torch)
            cache = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
            result = model(**inputs, output_hidden_states=True, output_attentions=True, **cache)
            plain = model(**inputs, return_dict=False)
        return [entries(result), plain[0], model.training]

    both(program)
