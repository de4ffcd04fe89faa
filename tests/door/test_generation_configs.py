"""The generation_config.json of public repositories: small models choose the tokens of transformers.

The models have random weights and a small vocabulary: ids and lengths of a file are scaled to it, nothing else. Files
with `decoder_start_token_id` are of encoder-decoder models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.hub_files import records

from tallow.generation import Sampler
from tallow.generation.processors import Text, apply_processors
from tallow.models import AutoModel
from tallow.models.generation_config import GENERATION, GenerationConfig

RECORDS = records("generation_configs")
WHISPER = [record for record in RECORDS if "lang_to_id" in record["content"]]  # Whisper has a decoder of its own
TEXTS = [record for record in RECORDS if record not in WHISPER]
VOCAB, LONGEST, SHORTEST, NEW = 48, 30, 9, 20
SIZES = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
LLAMA = SIZES | {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
BART = {
    **SIZES,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "max_position_embeddings": 64,
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 48),
}
PROMPT = [7, 30, 22, 30, 7, 41]
# One of these ids may be that of padding, which transformers would mask.
INPUTS = {"inputs": torch.tensor([PROMPT]), "attention_mask": torch.ones(1, len(PROMPT), dtype=torch.int64)}
ATOL = 1e-3  # of probabilities

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:transformers")
needs_data = pytest.mark.skipif(not RECORDS, reason="no real data; set TALLOW_TEST_DATA")


def scaled(entries: dict[str, Any]) -> dict[str, Any]:
    """Return entries with ids of a small vocabulary, in their order, and with short lengths."""

    def is_ids(name: str) -> bool:
        return name.endswith(("_token_id", "_ids", "suppress_tokens"))

    def ids_of(value: Any) -> Iterator[int]:
        if isinstance(value, list):
            for item in value:
                yield from ids_of(item)
        elif value is not None:
            yield value

    def small(value: Any) -> Any:
        return [small(item) for item in value] if isinstance(value, list) else places.get(value)

    known = sorted({token for name, value in entries.items() if is_ids(name) for token in ids_of(value)})
    places = {token: token if token < 4 else 44 - 3 * i for i, token in enumerate(known)}
    limits = {"max_length": LONGEST, "max_new_tokens": NEW, "min_length": SHORTEST}
    return {
        name: small(value) if is_ids(name) else min(value, limits[name]) if name in limits else value
        for name, value in entries.items()
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Return the folders of a language model and of an encoder-decoder model."""
    torch.manual_seed(2)
    models = (
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
        transformers.BartForConditionalGeneration(transformers.BartConfig(**BART)),
    )
    folders = {}
    for is_seq2seq, model in enumerate(models):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(4)  # texts that vary
        folders[bool(is_seq2seq)] = tmp_path_factory.mktemp("model")
        model.save_pretrained(folders[bool(is_seq2seq)])
    return folders


@needs_data
@pytest.mark.parametrize("record", TEXTS, ids=lambda record: record["source"])
def test_tokens(folders: dict[bool, Path], record: dict[str, Any]) -> None:
    entries = scaled(record["content"])
    folder = folders["decoder_start_token_id" in entries]
    (folder / GENERATION).write_text(json.dumps(entries), encoding="utf-8")
    if entries.get("do_sample"):
        same_probabilities(folder)
    else:
        same_text(folder, has_limit=bool({"max_length", "max_new_tokens"} & entries.keys()))


def load(folder: Path) -> tuple[Any, Any]:
    """Return tallow's model, without a tokenizer, and that of transformers."""
    ours = AutoModel.from_pretrained(folder)
    ours.tokenizer = SimpleNamespace(stop_ids=frozenset())
    name = json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0]
    return ours, getattr(transformers, name).from_pretrained(folder).eval()


def same_text(folder: Path, *, has_limit: bool) -> None:
    """Compare the likeliest tokens, or those of the best beam."""
    ours, theirs = load(folder)
    limit = {} if has_limit else {"max_new_tokens": NEW}
    text = theirs.generate(**INPUTS, **limit)[0].tolist()
    expected = text[1 if theirs.config.is_encoder_decoder else len(PROMPT) :]
    ends = [place for place, token in enumerate(expected) if token in ours.stop_ids]
    got = list(ours.generate_ids(PROMPT, max_tokens=limit.get("max_new_tokens")))
    assert got == expected[: min(ends, default=len(expected))]
    # With tied embeddings, a text that starts with the end id is likely to end there.
    assert len(got) > 1 or theirs.generation_config.decoder_start_token_id in ours.stop_ids


def same_probabilities(folder: Path) -> None:
    """Compare the probabilities of each token of a text that transformers draws."""
    ours, theirs = load(folder)
    options: dict[str, Any] = {"max_new_tokens": 8, "output_scores": True, "return_dict_in_generate": True}
    drawn = theirs.generate(**INPUTS, **options)
    text, config = Text(PROMPT), ours.generation_config
    rules = config.rules(PROMPT, 8, ours.stop_ids, VOCAB)
    sampler = Sampler(**config.sampling | {"repetition_penalty": 1.0})  # the penalty is among the rules
    for scores, token in zip(drawn.scores, drawn.sequences[0, len(PROMPT) :].tolist(), strict=True):
        logits = apply_processors(ours.next_logits(text, ours.new_cache(length=len(text))), text, rules)
        expected = torch.softmax(scores[0].double(), -1).numpy()
        np.testing.assert_allclose(sampler.distribution(logits, text), expected, atol=ATOL)
        text.append(token)


@needs_data
@pytest.mark.parametrize("record", WHISPER, ids=lambda record: record["source"])
def test_files_of_whisper_are_read(record: dict[str, Any]) -> None:
    config = GenerationConfig.from_entries(record["content"], record["source"])
    assert config.suppress_tokens == tuple(record["content"]["suppress_tokens"])


@pytest.mark.parametrize(
    "entries",
    [
        {"bos_token_id": 5, "eos_token_id": 2},
        {"bos_token_id": 5, "decoder_start_token_id": 7, "eos_token_id": [2, 9]},
        {"decoder_start_token_id": 7},
    ],
)
def test_beginnings_of_texts(folders: dict[bool, Path], entries: dict[str, Any]) -> None:
    """Without `decoder_start_token_id`, texts begin with `bos_token_id`."""
    (folders[True] / GENERATION).write_text(json.dumps(entries), encoding="utf-8")
    same_text(folders[True], has_limit=False)


@pytest.mark.parametrize("is_seq2seq", [False, True])
def test_settings_in_the_config(folders: dict[bool, Path], is_seq2seq: bool, tmp_path: Path) -> None:
    """Old folders have no such file; their settings are in `config.json`."""
    for path in folders[is_seq2seq].iterdir():
        if path.name != GENERATION:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    settings = {"decoder_start_token_id": 5} if is_seq2seq else {}
    settings |= {"max_length": 22, "no_repeat_ngram_size": 2, "bad_words_ids": [[30], [7, 22]], "min_length": 12}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | settings | {"num_beams": 2}), encoding="utf-8")
    same_text(tmp_path, has_limit=True)
