"""generation_config.json compared with transformers: tokens are drawn with the same probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import reference_model, tokens

from tallow.errors import ArgumentError, TallowWarning
from tallow.generation import Sampler, greedy
from tallow.models import AutoModel

# Logits agree within 1e-4, and a temperature may divide them by as little as 0.7.
ATOL = 1e-3
FILES: dict[str, dict[str, Any]] = {
    "top_k is 50 where the file does not say": {"do_sample": True},
    "0 keeps all": {"do_sample": True, "top_k": 0, "temperature": 1.7},
    "temperature, top_k and top_p": {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8},
    "min_p and a penalty": {"do_sample": True, "min_p": 0.1, "repetition_penalty": 1.3, "top_k": 0},
    "other filters": {
        "do_sample": True,
        "top_k": 0,
        "top_h": 0.95,
        "typical_p": 0.9,
        "epsilon_cutoff": 0.002,
        "eta_cutoff": 0.003,
    },
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


WORDS = {
    "suppress_tokens": list(range(40, 60)),
    "begin_suppress_tokens": [3, 4, 5],
    "bad_words_ids": [[7], [11, 12], [60, 61, 62]],
    "sequence_bias": [[[5], 1.5], [[8, 9], -4.0]],
}
RULES: dict[str, dict[str, Any]] = {
    "words": WORDS,
    "n-grams and penalties": {
        "no_repeat_ngram_size": 2,
        "encoder_no_repeat_ngram_size": 3,
        "encoder_repetition_penalty": 1.3,
        "repetition_penalty": 1.2,
    },
    "ends": {"min_new_tokens": 5, "exponential_decay_length_penalty": [6, 1.2], "forced_eos_token_id": [4, 9]},
    "a length with the prompt": {"min_length": 18, "max_length": 25, "max_new_tokens": None},
    "beams": {"num_beams": 3, "length_penalty": 0.7, "early_stopping": True},
    "beams with everything": {
        **WORDS,
        "num_beams": 4,
        "no_repeat_ngram_size": 2,
        "repetition_penalty": 1.3,
        "renormalize_logits": True,
        "forced_eos_token_id": 95,
    },
    "invalid values": {"remove_invalid_values": True, "min_new_tokens": 3},
}


@pytest.mark.parametrize("file", RULES.values(), ids=list(RULES))
def test_tokens(folder: Path, file: dict[str, Any]) -> None:
    """The file's rules, lengths and beams give the tokens of transformers."""
    entries = {"max_new_tokens": 16, "eos_token_id": [70, 95, 96], "pad_token_id": 0} | file
    write(folder, entries)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model = without_tokenizer(folder)
    plain = [*model.generate_ids([5], max_tokens=8, sample=greedy)]
    for prompt in (list(tokens(12, batch=1)[0]), [9, *plain]):
        expected = reference.generate(torch.tensor([prompt]))[0, len(prompt) :].tolist()
        if expected[-1] in entries["eos_token_id"]:
            expected.pop()
        assert [*model.generate_ids(prompt)] == expected


def test_arguments_go_before_the_file(folder: Path) -> None:
    write(folder, {"max_new_tokens": 5, "num_beams": 3, "repetition_penalty": 2.0, "suppress_tokens": [1, 2]})
    model = without_tokenizer(folder)
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = list(tokens(12, batch=1)[0])

    def theirs(**options: Any) -> list[int]:
        return reference.generate(torch.tensor([prompt]), pad_token_id=0, **options)[0, len(prompt) :].tolist()

    def ours(**options: Any) -> list[int]:
        return [*model.generate_ids(prompt, **options)]

    assert ours() == theirs()
    assert ours(max_tokens=9, num_beams=1) == theirs(max_new_tokens=9, num_beams=1)
    # A sample stands for the penalty; what the file suppresses stays suppressed.
    assert ours(sample=greedy) == theirs(num_beams=1, repetition_penalty=1.0)
    with pytest.raises(ArgumentError, match="num_beams=2 with sampling"):
        ours(sample=greedy, num_beams=2)


def test_a_prompt_as_long_as_the_file_allows(folder: Path) -> None:
    write(folder, {"max_length": 4})
    model = without_tokenizer(folder)
    with pytest.raises(ArgumentError, match=r"takes 4 tokens.*max_length 4"):
        model.generate_ids([1, 2, 3, 4])
    assert len([*model.generate_ids([1, 2, 3, 4], max_tokens=3)]) == 3


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ({"guidance_scale": 2.0, "num_beam_groups": 1, "penalty_alpha": 0.0, "profiles": {}}, "guidance_scale 2.0"),
        ({"watermarking_config": {"bias": 2.0}, "use_cache": False, "max_time": 2}, "watermarking_config"),
        ({"do_sample": True, "num_beams": 4}, "num_beams 4"),
    ],
)
def test_entries_that_are_not_obeyed_are_named(folder: Path, entries: dict[str, Any], named: str) -> None:
    write(folder, entries)
    model = without_tokenizer(folder)
    with pytest.warns(TallowWarning, match=f"entries without effect: {named}") as caught:
        config = model.generation_config
    assert caught[0].filename == __file__  # the line that called tallow
    assert config.sampling["repetition_penalty"] == 1


def test_without_the_file_settings_of_the_config_count(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    path = folder / "config.json"
    before = path.read_text()
    path.write_text(json.dumps(json.loads(before) | {"suppress_tokens": list(range(60)), "max_length": 20}))
    reference = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = list(tokens(12, batch=1)[0])
    model = without_tokenizer(folder)
    expected = reference.generate(torch.tensor([prompt]), pad_token_id=0)[0, len(prompt) :].tolist()
    assert [*model.generate_ids(prompt)] == expected
    path.write_text(before)


def write(folder: Path, entries: dict[str, Any]) -> None:
    entries = {name: value for name, value in entries.items() if value is not None}
    (folder / "generation_config.json").write_text(json.dumps(entries))


def without_tokenizer(folder: Path) -> Any:
    """Return the model of a folder without a tokenizer."""
    model = AutoModel.from_pretrained(folder)
    model.tokenizer = SimpleNamespace(stop_ids=frozenset())
    return model
