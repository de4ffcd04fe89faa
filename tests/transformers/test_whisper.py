"""Whisper's `generate`: texts that are not good enough, times of tokens, and texts of windows before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import WHISPER, Folders
from tests.transformers.tokenizer_folders import LANGUAGES, write_whisper

import tallow as tl
import tallow.transformers as mine
from tallow.errors import ArgumentError

SOUND = np.random.default_rng(3).normal(size=(1, 80, 100)).astype(np.float32)
LONG = np.random.default_rng(2).normal(size=(1, 80, 330)).astype(np.float32)
MASK = (np.arange(100) < 70).astype(np.int64)[None]
TINY = 1e-4  # draws at this temperature are the likeliest tokens

CASES: dict[str, dict[str, Any]] = {
    "times of tokens": {"return_token_timestamps": True},
    "times of tokens, cropped": {"return_token_timestamps": True, "attention_mask": MASK},
    "times of tokens and passages": {"return_token_timestamps": True, "return_timestamps": True},
    "times of tokens in segments": {"return_token_timestamps": True, "return_segments": True},
    "times of tokens, beams": {"return_token_timestamps": True, "num_beams": 2},
    "times of tokens, long": {"input_features": LONG, "return_token_timestamps": True, "return_segments": True},
    "a good text": {"temperature": (0.0, TINY), "compression_ratio_threshold": 9.0, "logprob_threshold": -99.0},
    "none is good": {"temperature": (0.0, TINY, TINY), "compression_ratio_threshold": 0.01},
    "none is likely": {"temperature": (0.0, TINY), "logprob_threshold": -0.01},
    "beams that are unlikely": {"temperature": (0.0, TINY), "logprob_threshold": -0.01, "num_beams": 2},
    "thresholds of one temperature": {
        "temperature": 0.0,
        "compression_ratio_threshold": 1.0,
        "logprob_threshold": -1.0,
    },
    "no speech": {"temperature": 0.0, "logprob_threshold": 0.0, "no_speech_threshold": 0.0, "input_features": LONG},
    "speech": {"temperature": 0.0, "logprob_threshold": 0.0, "no_speech_threshold": 1.0, "input_features": LONG},
    "the text before": {"condition_on_prev_tokens": True, "input_features": LONG},
    "not the text before a draw": {
        "condition_on_prev_tokens": True,
        "input_features": LONG,
        "temperature": (0.0, 0.6),
        "compression_ratio_threshold": 99.0,
    },
    "a prompt of the first window": {
        "prompt_ids": [50361, 7, 8],
        "condition_on_prev_tokens": True,
        "input_features": LONG,
        "prompt_condition_type": "first-segment",
    },
    "a prompt of all windows": {
        "prompt_ids": [50361, 7, 8],
        "condition_on_prev_tokens": True,
        "input_features": LONG,
        "prompt_condition_type": "all-segments",
    },
    "a prompt alone": {"prompt_ids": [50361, 7, 8], "return_token_timestamps": True},
}


def speaker(tf: Any, folders: Folders) -> Any:
    model = tf.WhisperForConditionalGeneration.from_pretrained(folders("WhisperForConditionalGeneration"))
    config = model.generation_config
    config.lang_to_id = {"<|en|>": 50259, "<|de|>": 50261}
    config.task_to_id = {"transcribe": 50359, "translate": 50358}
    config.no_timestamps_token_id, config.is_multilingual, config.max_initial_timestamp_index = 50363, True, 10
    config.eos_token_id, config.pad_token_id, config.decoder_start_token_id = 50257, 50257, 50258
    config.alignment_heads, config.prev_sot_token_id = [[0, 1], [1, 0], [1, 1]], 50361
    return model


def arguments(torch: Any, options: dict[str, Any]) -> dict[str, Any]:
    arrays = {"input_features": SOUND, "max_new_tokens": 8, "language": "en"} | options
    if arrays["input_features"] is LONG:
        arrays["return_timestamps"] = True
    names = ("input_features", "attention_mask", "prompt_ids")
    return {name: torch.tensor(value) if name in names else value for name, value in arrays.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_speech(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        result = speaker(tf, folders).generate(**arguments(torch, CASES[name]))
        if not hasattr(result, "keys"):
            return result.long()  # without any text, theirs are floats
        segments = [
            [{key: value for key, value in each.items() if key not in ("result", "idxs")} for each in row]
            for row in result.get("segments", [])
        ]
        return [result["sequences"], result.get("token_timestamps"), segments]

    both(program)


@pytest.mark.parametrize(
    "options",
    [
        {"prompt_condition_type": "all-segments"},
        {"prompt_condition_type": "some", "condition_on_prev_tokens": True},
        {"no_speech_threshold": 0.5, "logprob_threshold": None},
    ],
)
def test_options_that_need_others(options: dict[str, Any], folders: Folders) -> None:
    both_raise(
        lambda tf, torch: speaker(tf, folders).generate(**arguments(torch, options)),
        errors=ArgumentError,
    )


@pytest.mark.parametrize("temperature", [(), (-1.0,), ("hot",)])
def test_temperatures(temperature: Any, folders: Folders) -> None:
    with pytest.raises(ArgumentError, match="temperature"):
        speaker(mine, folders).generate(**arguments(tl, {"temperature": temperature}))


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a Whisper whose windows last one second, its tokenizer and its feature extractor."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = write_whisper(tmp_path_factory.mktemp("talker"))
    tokenizer = transformers.WhisperTokenizer.from_pretrained(folder)
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("startoftranscript", "endoftext")}
    start, end = ids["startoftranscript"], ids["endoftext"]
    sizes = WHISPER | {"vocab_size": len(tokenizer) + 1501, "pad_token_id": end, "eos_token_id": end}
    sizes |= {"bos_token_id": end, "decoder_start_token_id": start, "max_target_positions": 60}
    torch.manual_seed(1)
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**sizes)).eval()
    config = model.generation_config = transformers.GenerationConfig(
        pad_token_id=end, eos_token_id=end, bos_token_id=end, decoder_start_token_id=start
    )
    config.lang_to_id = {f"<|{name}|>": tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in LANGUAGES}
    config.task_to_id = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("transcribe", "translate")}
    config.no_timestamps_token_id = tokenizer.convert_tokens_to_ids("<|notimestamps|>")
    config.is_multilingual, config.alignment_heads = True, [[1, 0], [1, 1]]
    config.suppress_tokens = [each for each in tokenizer.all_special_ids if each != end]
    model.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(chunk_length=1).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("seconds", "options"),
    [
        (0.9, {}),
        (0.9, {"return_timestamps": True}),
        (0.9, {"return_timestamps": "word"}),
        (2.3, {"return_timestamps": "word"}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_pipeline(options: dict[str, Any], seconds: float, talker: str) -> None:
    sound = np.random.default_rng(4).uniform(-0.5, 0.5, int(16000 * seconds)).astype(np.float32)

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("automatic-speech-recognition", talker, device=-1)
        generated = {"language": "en", "max_new_tokens": 12, "num_beams": 1}
        return pipe(sound.copy(), generate_kwargs=generated, **options)

    both(program)
