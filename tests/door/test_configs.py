"""The config.json of public repositories: each loads with random weights, and the outputs equal those of transformers.

The files lie in `hub/configs.jsonl` of the folder of data. The models are small: `support.shrunk_configs` has the rule.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from support import model_pairs
from support.hub_files import HUB, records
from support.outputs import outputs_of, without_padding
from support.shrunk_configs import shrunk

from tallow.errors import CheckpointError, TallowWarning
from tallow.models import AutoModel
from tallow.models.architectures import MODEL_TYPES
from tallow.models.auto import model_class

LENGTH = 20  # tokens
SAMPLES = 2000  # of a sound
ATOL = 1e-4  # both compute in float32
# Words of the error -> why a config of an architecture that tallow has is refused.
REFUSED = {
    "quantization_config": "its weights are quantised by another library",
    "alibi_starting_size": "the repository has code of its own, for a BERT with positions by ALiBi",
    "missing vocab_size": "the file has no sizes",
    "enable_moe_block": "Gemma 4 has no experts beside its layers here",
}


FILES = [record["content"] for record in records("configs")]


def architecture(entries: dict[str, Any]) -> str:
    return (entries.get("architectures") or [MODEL_TYPES.get(entries.get("model_type", ""), "")])[0]


def write(folder: Path, entries: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(entries))


def is_here(entries: dict[str, Any], folder: Path) -> bool:
    """Return whether tallow has the architecture. If not, the error names it."""
    write(folder, entries)
    try:
        model_class(folder)
    except CheckpointError as error:
        if f"tallow does not support {architecture(entries)}" not in str(error):
            raise
        return False
    return True


def reason_of(folder: Path) -> str | None:
    """Return the words of REFUSED in the error for the folder's config; None if it is read."""
    try:
        model_class(folder).config_class.from_json(folder / "config.json")
    except CheckpointError as error:
        for words in REFUSED:
            if words in str(error):
                return words
        raise
    return None


@cache
def classes() -> dict[str, str]:
    return {name.lower(): name for name in dir(transformers)}


def reference_model(entries: dict[str, Any]) -> Any:
    """Return the model of transformers, in which all weights affect the output."""
    kind = getattr(transformers, classes()[architecture(entries).lower()])
    config = kind.config_class.from_dict(copy.deepcopy(entries) | {"attn_implementation": "eager"})
    torch.manual_seed(0)
    model = kind(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
            elif parameter.requires_grad:  # Marian's positions follow from the config
                parameter.normal_(0, 0.3)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model


def inputs_of(model: Any) -> dict[str, npt.NDArray[Any]]:
    """Return inputs for two texts, images or sounds; the second text is shorter, and padded."""
    rng, config, name = np.random.default_rng(0), model.config, type(model).__name__
    if model.main_input_name == "pixel_values":
        return {"pixel_values": rng.standard_normal((2, 3, 12, 12)).astype(np.float32)}
    if model.main_input_name == "input_values":
        return {"input_values": rng.standard_normal((2, SAMPLES)).astype(np.float32)}
    tokens = rng.integers(5, 50, (2, LENGTH))
    if model.main_input_name == "input_features":
        mel = rng.standard_normal((2, config.num_mel_bins, 2 * config.max_source_positions)).astype(np.float32)
        return {"input_features": mel, "decoder_input_ids": tokens}
    mask = np.ones((2, LENGTH), np.int64)
    mask[1, LENGTH - 5 :] = 0
    writes = name.endswith(("ForCausalLM", "LMHeadModel")) and not name.startswith(("Bert", "Roberta"))
    if writes or (name.endswith("ForConditionalGeneration") and not config.is_encoder_decoder):
        return {"input_ids": tokens}
    padding = config.pad_token_id
    padded = np.where(mask, tokens, 0 if padding is None or padding < 0 else padding)
    inputs = {"input_ids": padded, "attention_mask": mask}
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    return inputs


@pytest.mark.skipif(not FILES, reason=f"{HUB} has no configs.jsonl")
@pytest.mark.parametrize("entries", FILES, ids=[f"{i} {architecture(each)}" for i, each in enumerate(FILES)])
def test_config(entries: dict[str, Any], tmp_path: Path) -> None:
    if not is_here(entries, tmp_path):
        return
    small = shrunk(entries)
    write(tmp_path, small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TallowWarning)
        if reason_of(tmp_path):
            return
        reference = reference_model(small)
        reference.save_pretrained(tmp_path)
        write(tmp_path, small)
        model = AutoModel.from_pretrained(tmp_path)
    inputs = inputs_of(reference)
    expected = without_padding(model_pairs.outputs_of(reference, inputs), inputs)
    got = without_padding(outputs_of(model, inputs), inputs)
    for ours, theirs in zip(got, expected, strict=False):
        np.testing.assert_allclose(ours, theirs, atol=ATOL * max(1, np.abs(theirs).max()))


@pytest.mark.skipif(not FILES, reason=f"{HUB} has no configs.jsonl")
def test_few_are_refused(tmp_path: Path) -> None:
    """Of the architectures that tallow has, all but those with a known reason load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TallowWarning)
        reasons = Counter(reason_of(tmp_path) for entries in FILES if is_here(entries, tmp_path))
    assert reasons.pop(None) >= 147
    assert reasons == {
        "quantization_config": 10,
        "alibi_starting_size": 1,
        "missing vocab_size": 1,
        "enable_moe_block": 1,
    }
